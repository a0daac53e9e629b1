#include "arena/slab.h"

#include <cstdint>

namespace ckpt::arena {

Slab::Slab(Slab &&other) noexcept
    : device_(std::move(other.device_)), desc_(other.desc_), kind_(other.kind_), data_(other.data_), bytes_(other.bytes_) {
  other.kind_ = Kind::none;
  other.desc_.release = nullptr;
}

Status Slab::take(const char *function, size_t bytes) {
  const size_t alignment = desc_.alignment_bytes;
  bytes_ = bytes;
  if (desc_.slab != nullptr) {
    data_ = desc_.slab;
    kind_ = Kind::callers;
    return CKPT_OK;
  }
  if (desc_.alloc == nullptr) {
    CKPT_TRY(device_->reserve(bytes, alignment, desc_.flags & CKPT_ARENA_PLAIN ? uint32_t{device::kReservePlain} : 0, &data_));
    kind_ = Kind::reserved;
    return CKPT_OK;
  }
  data_ = desc_.alloc(desc_.user, bytes, alignment);
  if (data_ == nullptr)
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the caller's alloc refused %zu bytes at alignment %zu", function, bytes, alignment);
  kind_ = Kind::allocated;
  if (reinterpret_cast<uintptr_t>(data_) % alignment != 0)
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the caller's alloc gave %p for %zu bytes, expected a multiple of %zu", function,
                data_, bytes, alignment);
  return CKPT_OK;
}

Slab::~Slab() {
  if (kind_ == Kind::reserved) device_->release(data_, bytes_);
  if (kind_ == Kind::allocated) desc_.free(desc_.user, data_, bytes_);
  if (desc_.release != nullptr) desc_.release(desc_.user);
}

}  // namespace ckpt::arena
