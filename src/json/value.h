// A JSON text as a tree, with what error texts need: a number as it was written, and the place where a text breaks off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ckpt::json {

struct Value {
  enum class Kind : uint8_t { null, boolean, integer, real, string, list, object };

  Kind kind = Kind::null;
  bool flag = false;         // boolean
  uint64_t integer = 0;      // integer: not negative, and below 2^64; all other numbers are `real`
  double real = 0;           // integer too
  std::string text;          // string; numbers as written
  std::vector<Value> items;  // list, object
  std::vector<std::string> keys;  // object: of `items`
};

// Refuses what no file of ours holds: more than 32 levels, fields that come twice, more than 256 fields. INVALID_ARGUMENT: one
// line with `source`, path, line and column.
Status parse(std::string_view text, const char *source, Value *out);

// Of a text from outside: in quotes, without control characters, at most about 60 bytes long.
std::string in_quotes(std::string_view text);
// A value as an error shows it.
std::string shown(const Value &value);

// Sets the error text as one line: what names from outside bring along is made harmless.
Status refuse(Status code, const std::string &text) noexcept;

}  // namespace ckpt::json
