// Reading a tree field by field. Each error is one line: source, path of the field, value found, what was expected.
#pragma once

#include <initializer_list>

#include "json/value.h"

namespace ckpt::json {

// A place in a text, where there may be a value or not. Lives on the stack; a child points at its parent.
class Cursor {
 public:
  Cursor(const char *source, const Value &root) : source_(source), value_(&root) {}

  Cursor at(const char *key) const;    // of an object
  Cursor at(size_t index) const { return Cursor(this, nullptr, index, &value_->items[index]); }  // of a list
  bool there() const { return value_ != nullptr; }
  size_t size() const { return value_->items.size(); }
  const Value &value() const { return *value_; }
  bool is(Value::Kind kind) const { return value_ != nullptr && value_->kind == kind; }
  std::string path() const;
  const char *source() const { return source_; }

  // The value found, or that there is none, and what was expected.
  Status wrong(const std::string &expected, Status code = CKPT_ERROR_INVALID_ARGUMENT) const;

  // Each sets *out, or says what is wrong; a value that is missing is wrong too.
  Status object(std::initializer_list<const char *> fields) const;  // with no other fields
  Status list(size_t least, const char *expected) const;
  Status bytes(size_t *out) const;   // of one thing: up to 2^60
  Status seconds(double *out) const;
  Status number(uint64_t low, uint64_t high, uint64_t *out) const;
  Status flag(bool *out) const;
  Status text(const char *expected, std::string *out) const;  // not empty, no zero byte
  Status choice(std::initializer_list<const char *> names, uint32_t *out) const;  // index of the name
  Status flags(std::initializer_list<const char *> names, uint32_t *out) const;   // list of names: bit k for name k
  Status hash(uint64_t *out) const;  // "0x" and 16 digits

 private:
  Cursor(const Cursor *up, const char *key, size_t index, const Value *value) : source_(up->source_), up_(up), key_(key), index_(index), value_(value) {}

  const char *source_;
  const Cursor *up_ = nullptr;
  const char *key_ = nullptr;
  size_t index_ = 0;
  const Value *value_;
};

}  // namespace ckpt::json
