#include "json/writer.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>

namespace ckpt::json {

void append_quoted(std::string *out, std::string_view text) {
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      *out += escape;
    } else {
      *out += c;
    }
  }
  *out += '"';
}

// Unicode 15, table 3-7.
bool valid_utf8(std::string_view text) {
  const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  const auto tail = [&](size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
  for (size_t k = 0; k < text.size();) {
    const unsigned a = byte(k), b = byte(k + 1);
    if (a < 0x80) {
      k += 1;
    } else if (a >= 0xC2 && a <= 0xDF && tail(k + 1)) {
      k += 2;
    } else if (a >= 0xE0 && a <= 0xEF && tail(k + 1) && tail(k + 2) && !(a == 0xE0 && b < 0xA0) && !(a == 0xED && b > 0x9F)) {
      k += 3;
    } else if (a >= 0xF0 && a <= 0xF4 && tail(k + 1) && tail(k + 2) && tail(k + 3) && !(a == 0xF0 && b < 0x90) && !(a == 0xF4 && b > 0x8F)) {
      k += 4;
    } else {
      return false;
    }
  }
  return true;
}

void Writer::before() {
  if (after_key_ || levels_.empty()) {
    after_key_ = false;
    return;
  }
  Level &level = levels_.back();
  if (level.any) out_ += level.lines ? "," : ", ";
  level.any = true;
  if (!level.lines) return;
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

Writer &Writer::open(char first, char last, bool lines) {
  before();
  out_ += first;
  levels_.push_back({last, lines, false});
  return *this;
}

Writer &Writer::end() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.lines && level.any) {
    out_ += '\n';
    out_.append(2 * levels_.size(), ' ');
  }
  out_ += level.close;
  return *this;
}

Writer &Writer::key(std::string_view name) {
  before();
  append_quoted(&out_, name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

Writer &Writer::raw(std::string_view value) {
  before();
  out_ += value;
  return *this;
}

Writer &Writer::text(std::string_view value) {
  before();
  append_quoted(&out_, value);
  return *this;
}

Writer &Writer::real(double value) {
  char digits[32];
  const auto done = std::to_chars(digits, digits + sizeof digits, value);
  return raw({digits, static_cast<size_t>(done.ptr - digits)});
}

Writer &Writer::hash(uint64_t value) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "\"0x%016" PRIx64 "\"", value);
  return raw(digits);
}

}  // namespace ckpt::json
