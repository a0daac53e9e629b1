#include "abi/struct_size.h"

namespace ckpt::abi {
namespace {

// A size beyond any plausible future: a struct_size that was never set.
constexpr size_t kLargest = 4096;

Status check_size(const char *function, const char *what, size_t size, size_t first_bytes) noexcept {
  if (size < first_bytes || size > kLargest)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: the size of %s is %zu bytes, expected at least %zu (its sizeof)", function, what,
                size, first_bytes);
  return CKPT_OK;
}

}  // namespace

Status read_sized(const char *function, const char *what, const void *from, size_t size, size_t first_bytes, void *to,
                  size_t ours) noexcept {
  CKPT_TRY(check_size(function, what, size, first_bytes));
  const auto *bytes = static_cast<const unsigned char *>(from);
  for (size_t k = ours; k < size; ++k)
    if (bytes[k] != 0)
      return fail(CKPT_ERROR_STRUCT_SIZE, "%s: %s has %zu bytes, this library knows %zu, and byte %zu beyond is not zero",
                  function, what, size, ours, k);
  const size_t known = std::min(size, ours);
  std::memcpy(to, from, known);
  std::memset(static_cast<char *>(to) + known, 0, ours - known);
  return CKPT_OK;
}

Status check_out_struct(const char *function, const char *what, const void *out, size_t first_bytes) noexcept {
  if (out == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected a struct", function, what);
  uint32_t size = 0;
  std::memcpy(&size, out, sizeof size);
  return check_size(function, what, size, first_bytes);
}

}  // namespace ckpt::abi
