// Structs that grow. A desc may come from a caller that was compiled against an older or a newer header than ours:
//   shorter than in the first release    refused
//   shorter than ours                    the rest is zero
//   longer than ours                     accepted if what we do not know is zero
// Out-structs get the smaller of both sizes. `first_bytes` is the struct's size in its first release, as a literal: sizeof
// would move along when the struct grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/status.h"

namespace ckpt::abi {

// `what` is how the error calls the struct: "desc", "slots[3]". Copies min(size, ours) bytes to `to`, zeroes the rest.
Status read_sized(const char *function, const char *what, const void *from, size_t size, size_t first_bytes, void *to,
                  size_t ours) noexcept;

// A desc that starts with struct_size. out->struct_size keeps the caller's value.
template <class T>
Status read_struct(const char *function, const char *what, const T *from, size_t first_bytes, T *out) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  if (from == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected a struct", function, what);
  uint32_t size = 0;  // as bytes: a shorter struct is no T
  std::memcpy(&size, from, sizeof size);
  return read_sized(function, what, from, size, first_bytes, out, sizeof(T));
}

// Element `index` of an array whose elements have the caller's size.
template <class T>
Status read_element(const char *function, const char *what, const T *array, size_t element_bytes, size_t first_bytes,
                    size_t index, T *out) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if (array == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected an array", function, what);
  const char *at = reinterpret_cast<const char *>(array) + index * element_bytes;
  return read_sized(function, what, at, element_bytes, first_bytes, out, sizeof(T));
}

// Checks an out-struct before work is done for it.
Status check_out_struct(const char *function, const char *what, const void *out, size_t first_bytes) noexcept;

// After check_out_struct: what fits of `value`; the caller's struct_size stays.
template <class T>
void write_struct(const T &value, T *out) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  constexpr size_t kHead = sizeof(uint32_t);
  uint32_t size = 0;
  std::memcpy(&size, out, kHead);
  std::memcpy(reinterpret_cast<char *>(out) + kHead, reinterpret_cast<const char *>(&value) + kHead,
              std::min<size_t>(size, sizeof(T)) - kHead);
}

}  // namespace ckpt::abi
