// Two claims beside argument checks: CKPT_ASSERT (proved; debug builds only) and CKPT_VERIFY (believed; aborts in debug,
// an INTERNAL status in release; only in functions that return Status).
#pragma once

#include <cassert>

#include "base/status.h"

#define CKPT_ASSERT(condition) assert(condition)
#ifdef NDEBUG
#define CKPT_VERIFY(condition)                                                                        \
  do {                                                                                                \
    if (!(condition)) return ::ckpt::fail(CKPT_ERROR_INTERNAL, "%s:%d: %s", __FILE_NAME__, __LINE__, #condition); \
  } while (0)
#else
#define CKPT_VERIFY(condition) assert(condition)
#endif
