// The library's own error text and argument checks. It is linked to libckpt through the C ABI alone, so it cannot write that
// library's text; inside a frame the text is handed over with ckpt_frame_fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "ckpt/rng.h"

namespace ckpt::ops {

using Status = ckpt_status;

// Writes this thread's text and returns `code`. Never allocates.
[[nodiscard]] Status fail(Status code, const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));
// After a call into libckpt that failed: takes its text over.
[[nodiscard]] Status fail_as_core(Status code) noexcept;
const char *last_error() noexcept;

struct Pointer {
  const char *name;
  const void *value;
};
struct Size {
  const char *name;
  size_t value;
};

constexpr size_t kMaxElements = size_t{1} << 48;

// The checks that nearly every function begins with. The first one that fails writes the text; the rest do nothing.
class Check {
 public:
  explicit Check(const char *function) noexcept : function_(function) {}
  Check &pointers(std::initializer_list<Pointer> list) noexcept;  // none is NULL
  // Each at least 1 and below 2^31 (the BLAS counts in int32); their product at most kMaxElements.
  Check &sizes(std::initializer_list<Size> list) noexcept;
  Check &count(const char *name, size_t value) noexcept;  // at least 1, at most kMaxElements
  Check &divides(Size part, Size whole) noexcept;
  Check &probability(const char *name, float value, const void *philox) noexcept;  // in [0, 1); philox where it is not 0
  Check &room(const ckpt_philox *philox, size_t count) noexcept;  // offset + count is at most 2^64; after `pointers`
  Check &dropout(const char *name, float value, const ckpt_philox *philox, size_t count) noexcept;  // probability, and room where it is not 0
  Status status() const noexcept { return status_; }

 private:
  const char *function_;
  Status status_ = CKPT_OK;
};

// Structs that grow: shorter than `first_bytes` is refused, missing fields are zero, an unknown tail must be zero.
Status read_sized(const char *function, const void *from, size_t first_bytes, void *to, size_t ours) noexcept;
template <class T>
Status read_struct(const char *function, const T *from, size_t first_bytes, T *to) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  return read_sized(function, from, first_bytes, to, sizeof(T));
}
Status write_sized(const char *function, const void *ours, size_t first_bytes, size_t our_bytes, void *to) noexcept;
template <class T>
Status write_struct(const char *function, const T &value, size_t first_bytes, T *to) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  return write_sized(function, &value, first_bytes, sizeof(T), to);
}

}  // namespace ckpt::ops

#define CKPT_OPS_TRY(expression)                                              \
  do {                                                                        \
    if (const ::ckpt::ops::Status try_status_ = (expression); try_status_)    \
      return try_status_;                                                     \
  } while (0)
