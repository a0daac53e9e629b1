#include "json/cursor.h"

#include <cinttypes>
#include <cstdio>

#include "arena/size_rule.h"

namespace ckpt::json {
namespace {

std::string listed(std::initializer_list<const char *> names) {
  std::string text;
  for (const char *name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Cursor Cursor::at(const char *key) const {
  for (size_t k = 0; k < value_->keys.size(); ++k)
    if (value_->keys[k] == key) return Cursor(this, key, 0, &value_->items[k]);
  return Cursor(this, key, 0, nullptr);
}

std::string Cursor::path() const {
  if (up_ == nullptr) return "";
  const std::string above = up_->path();
  if (key_ == nullptr) return above + "[" + std::to_string(index_) + "]";
  return above.empty() ? key_ : above + "." + key_;
}

Status Cursor::wrong(const std::string &expected, Status code) const {
  const std::string where = path();
  return refuse(code, std::string(source_) + ": " + (where.empty() ? "the text" : where) + (value_ != nullptr ? " is " + shown(*value_) : " is missing") + ", expected " + expected);
}

Status Cursor::object(std::initializer_list<const char *> fields) const {
  if (!is(Value::Kind::object)) return wrong("an object");
  for (size_t k = 0; k < value_->keys.size(); ++k) {
    bool known = false;
    for (const char *field : fields) known |= value_->keys[k] == field;
    if (known) continue;
    const std::string where = path();
    return refuse(CKPT_ERROR_INVALID_ARGUMENT, std::string(source_) + ": " + (where.empty() ? "" : where + ": ") + "unknown field " + in_quotes(value_->keys[k]) + " (its value is " +
                                                   shown(value_->items[k]) + "), expected " + listed(fields));
  }
  return CKPT_OK;
}

Status Cursor::list(size_t least, const char *expected) const {
  if (!is(Value::Kind::list) || size() < least) return wrong(expected);
  return CKPT_OK;
}

Status Cursor::bytes(size_t *out) const {
  if (!is(Value::Kind::integer) || value_->integer > arena::SizeRule::kMaxBytes) return wrong("a whole number of bytes, 0 to 2^60");
  *out = value_->integer;
  return CKPT_OK;
}

Status Cursor::seconds(double *out) const {
  const bool number = is(Value::Kind::integer) || is(Value::Kind::real);
  if (!number || !(value_->real >= 0 && value_->real <= 1e18)) return wrong("a number of seconds, 0 to 1e18");
  *out = value_->real == 0 ? 0 : value_->real;
  return CKPT_OK;
}

Status Cursor::number(uint64_t low, uint64_t high, uint64_t *out) const {
  if (!is(Value::Kind::integer) || value_->integer < low || value_->integer > high) return wrong("a whole number, " + std::to_string(low) + " to " + std::to_string(high));
  *out = value_->integer;
  return CKPT_OK;
}

Status Cursor::flag(bool *out) const {
  if (!is(Value::Kind::boolean)) return wrong("true or false");
  *out = value_->flag;
  return CKPT_OK;
}

Status Cursor::text(const char *expected, std::string *out) const {
  if (!is(Value::Kind::string) || value_->text.empty() || value_->text.find('\0') != std::string::npos) return wrong(expected);
  *out = value_->text;
  return CKPT_OK;
}

Status Cursor::choice(std::initializer_list<const char *> names, uint32_t *out) const {
  uint32_t number = 0;
  for (const char *name : names) {
    if (is(Value::Kind::string) && value_->text == name) {
      *out = number;
      return CKPT_OK;
    }
    ++number;
  }
  return wrong("one of " + listed(names));
}

Status Cursor::flags(std::initializer_list<const char *> names, uint32_t *out) const {
  if (!is(Value::Kind::list)) return wrong("a list of names from " + listed(names));
  *out = 0;
  for (size_t k = 0; k < size(); ++k) {
    uint32_t one = 0;
    CKPT_TRY(at(k).choice(names, &one));
    *out |= uint32_t{1} << one;
  }
  return CKPT_OK;
}

Status Cursor::hash(uint64_t *out) const {
  constexpr const char *kExpected = "a text of \"0x\" and 16 hexadecimal digits";
  if (!is(Value::Kind::string) || value_->text.size() != 18 || value_->text.compare(0, 2, "0x") != 0) return wrong(kExpected);
  uint64_t h = 0;
  for (size_t k = 2; k < 18; ++k) {
    const char c = value_->text[k];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return wrong(kExpected);
    h = h << 4 | static_cast<uint64_t>(digit);
  }
  *out = h;
  return CKPT_OK;
}

}  // namespace ckpt::json
