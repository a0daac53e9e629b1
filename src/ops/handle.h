// What a ckpt_ops is: a table of functions and what they work on, the CPU's or a device's. A call takes its turn, so that two threads
// may use one handle.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "ckpt/ops.h"
#include "ops/device_ops.h"
#include "ops/status.h"

namespace ckpt::ops::cpu {
struct Context;
}

struct ckpt_ops {
  ckpt_ops() noexcept;
  ~ckpt_ops();
  ckpt_ops(const ckpt_ops &) = delete;
  ckpt_ops &operator=(const ckpt_ops &) = delete;

  bool on_host() const noexcept { return cpu != nullptr; }
  size_t element_bytes() const noexcept { return dtype == CKPT_DTYPE_FLOAT32 ? 4 : 2; }

  std::atomic<uint32_t> references{1};
  const ckpt::ops::DeviceOps *table = nullptr;
  void *self = nullptr;    // of the table
  uint32_t dtype = CKPT_DTYPE_FLOAT32;
  uint32_t device_kind = CKPT_DEVICE_KIND_CPU;
  void *stream = nullptr;
  std::unique_ptr<ckpt::ops::cpu::Context> cpu;  // NULL on a device
  ckpt_arena *arena = nullptr;  // on a device: memory for what layers keep (losses); it also keeps the device open
  std::mutex turn;              // of one call
  std::mutex sequence;          // of calls that hand something on in the table's `self`: losses, clipping. Taken before `turn`
};

namespace ckpt::ops {

// A function of the handle's table. Its text is this library's afterwards.
template <class... P, class... A>
Status call(ckpt_ops *ops, ckpt_status (*DeviceOps::*function)(void *, P...), A... arguments) noexcept {
  const std::lock_guard<std::mutex> lock(ops->turn);
  const Status status = (ops->table->*function)(ops->self, arguments...);
  return status == CKPT_OK || ops->on_host() ? status : fail_as_core(status);
}

const char *dtype_name(uint32_t dtype) noexcept;  // of a CKPT_DTYPE_*

// Arguments of ckpt_ops_adamw and ckpt_gpt_update; `function` is who was asked. max_norm is the caller's affair.
Status adamw_step(const char *function, const ckpt_ops *ops, const ckpt_adamw_desc &desc, DeviceAdamw *out_step) noexcept;

// Whether the device has attention for such heads.
Status head_fits(const char *function, const ckpt_ops *ops, size_t heads, size_t channels) noexcept;

// Memory that a layer keeps, one float.
Status keep_float(ckpt_ops *ops, float **out) noexcept;
void drop_float(ckpt_ops *ops, float *kept) noexcept;

}  // namespace ckpt::ops
