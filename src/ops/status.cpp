#include "ops/status.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace ckpt::ops {
namespace {

constexpr size_t kTextBytes = 1024;
thread_local char text[kTextBytes];

}  // namespace

const char *last_error() noexcept { return text; }

Status fail(Status code, const char *format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, kTextBytes, format, arguments);
  va_end(arguments);
  // A text that was cut ends at a whole UTF-8 character.
  if (length >= static_cast<int>(kTextBytes)) {
    size_t end = kTextBytes - 1;
    while (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0xC0u) == 0x80u) --end;
    if (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0x80u) != 0) --end;
    text[end] = 0;
  }
  return code;
}

Status fail_as_core(Status code) noexcept { return fail(code, "%s", ckpt_last_error()); }

Check &Check::pointers(std::initializer_list<Pointer> list) noexcept {
  for (const Pointer &p : list)
    if (status_ == CKPT_OK && p.value == nullptr)
      status_ = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected an address", function_, p.name);
  return *this;
}

Check &Check::sizes(std::initializer_list<Size> list) noexcept {
  size_t product = 1;
  for (const Size &s : list) {
    if (status_ != CKPT_OK) return *this;
    if (s.value == 0) {
      status_ = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is 0, expected at least 1", function_, s.name);
    } else if (s.value > INT32_MAX) {
      status_ = fail(CKPT_ERROR_OVERFLOW, "%s: %s is %zu, expected less than 2^31", function_, s.name, s.value);
    } else if (__builtin_mul_overflow(product, s.value, &product) || product > kMaxElements) {
      status_ = fail(CKPT_ERROR_OVERFLOW, "%s: the product of the sizes up to %s (%zu) is more than 2^48 elements", function_,
                     s.name, s.value);
    }
  }
  return *this;
}

Check &Check::count(const char *name, size_t value) noexcept {
  if (status_ != CKPT_OK) return *this;
  if (value == 0)
    status_ = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is 0, expected at least 1", function_, name);
  else if (value > kMaxElements)
    status_ = fail(CKPT_ERROR_OVERFLOW, "%s: %s is %zu, expected at most 2^48 elements", function_, name, value);
  return *this;
}

Check &Check::divides(Size part, Size whole) noexcept {
  if (status_ == CKPT_OK && whole.value % part.value != 0)
    status_ = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is %zu, which does not divide %s %zu", function_, part.name,
                   part.value, whole.name, whole.value);
  return *this;
}

Check &Check::probability(const char *name, float value, const void *philox) noexcept {
  if (status_ != CKPT_OK) return *this;
  if (!(value >= 0.0f && value < 1.0f))
    status_ = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is %g, expected 0 <= p < 1", function_, name,
                   static_cast<double>(value));
  else if (value > 0.0f && philox == nullptr)
    status_ = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: philox is NULL, expected a snapshot since %s is %g", function_, name,
                   static_cast<double>(value));
  return *this;
}

Check &Check::room(const ckpt_philox *philox, size_t count) noexcept {
  if (status_ == CKPT_OK && count > 0 && philox->offset > UINT64_MAX - (count - 1))
    status_ = fail(CKPT_ERROR_OVERFLOW, "%s: philox->offset is %" PRIu64 ", which leaves no room for %zu elements", function_,
                   philox->offset, count);
  return *this;
}

Check &Check::dropout(const char *name, float value, const ckpt_philox *philox, size_t count) noexcept {
  probability(name, value, philox);
  return value > 0.0f ? room(philox, count) : *this;
}

Status read_sized(const char *function, const void *from, size_t first_bytes, void *to, size_t ours) noexcept {
  if (from == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc is NULL, expected a struct", function);
  uint32_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < first_bytes)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: desc.struct_size is %u, expected at least %zu", function, size, first_bytes);
  const char *bytes = static_cast<const char *>(from);
  for (size_t k = ours; k < size; ++k)
    if (bytes[k] != 0)
      return fail(CKPT_ERROR_STRUCT_SIZE, "%s: desc.struct_size is %u, this library knows %zu bytes and byte %zu is not 0",
                  function, size, ours, k);
  std::memset(to, 0, ours);
  std::memcpy(to, from, size < ours ? size : ours);
  return CKPT_OK;
}

Status write_sized(const char *function, const void *ours, size_t first_bytes, size_t our_bytes, void *to) noexcept {
  if (to == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: out_info is NULL, expected a struct", function);
  uint32_t size = 0;
  std::memcpy(&size, to, sizeof size);
  if (size < first_bytes)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: out_info.struct_size is %u, expected at least %zu", function, size, first_bytes);
  const size_t head = sizeof size, end = size < our_bytes ? size : our_bytes;
  std::memcpy(static_cast<char *>(to) + head, static_cast<const char *>(ours) + head, end - head);
  return CKPT_OK;
}

}  // namespace ckpt::ops
