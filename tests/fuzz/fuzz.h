// What the fuzz targets share.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>

#include "ckpt/ckpt.h"

inline void expect(bool holds) {
  if (!holds) std::abort();
}

// The latest error: one line that begins like this.
inline void expect_one_line(const char *begin) {
  const char *text = ckpt_last_error();
  expect(std::strncmp(text, begin, std::strlen(begin)) == 0);
  for (const char *c = text; *c != '\0'; ++c) expect(static_cast<unsigned char>(*c) >= 0x20);
}
