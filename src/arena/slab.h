// The memory of an arena: the caller's own, the caller's allocator's, or the device's.
#pragma once

#include "base/status.h"
#include "ckpt/arena.h"
#include "device/device.h"

namespace ckpt::arena {

// Owns what create took and calls the caller's `release` at the end, once, whether create succeeded or not.
class Slab {
 public:
  // `desc` has been validated. `bytes` of memory at desc.alignment_bytes.
  Slab(Ref<device::Device> device, const ckpt_arena_desc &desc) noexcept : device_(std::move(device)), desc_(desc) {}
  Slab(Slab &&other) noexcept;
  Slab &operator=(Slab &&) = delete;
  ~Slab();

  Status take(const char *function, size_t bytes);
  void *data() const noexcept { return data_; }
  const device::Device &device() const noexcept { return *device_; }

 private:
  enum class Kind { none, callers, allocated, reserved };

  Ref<device::Device> device_;
  ckpt_arena_desc desc_;
  Kind kind_ = Kind::none;
  void *data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace ckpt::arena
