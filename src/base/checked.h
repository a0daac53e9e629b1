// Arithmetic on sizes that says when it does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace ckpt {

template <class T>
[[nodiscard]] constexpr bool add_overflows(T a, T b, T *out) noexcept { return __builtin_add_overflow(a, b, out); }
template <class T>
[[nodiscard]] constexpr bool mul_overflows(T a, T b, T *out) noexcept { return __builtin_mul_overflow(a, b, out); }

constexpr bool is_power_of_two(size_t x) noexcept { return x != 0 && (x & (x - 1)) == 0; }

// Rounded up to a power of two; true if it does not fit.
[[nodiscard]] constexpr bool round_up_overflows(size_t bytes, size_t alignment, size_t *out) noexcept {
  size_t sum = 0;
  if (add_overflows(bytes, alignment - 1, &sum)) return true;
  *out = sum & ~(alignment - 1);
  return false;
}

// For sizes that were checked when they came in.
constexpr size_t round_up(size_t bytes, size_t alignment) noexcept { return (bytes + alignment - 1) & ~(alignment - 1); }
constexpr size_t round_down(size_t bytes, size_t alignment) noexcept { return bytes & ~(alignment - 1); }

}  // namespace ckpt
