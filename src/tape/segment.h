// A registered segment: its shape and its callbacks. Immutable; counted by the handle and by each recording that uses it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "ckpt/tape.h"
#include "plan/shape.h"

struct ckpt_segment {
  std::atomic<uint32_t> refs{1};
  std::shared_ptr<const ckpt::plan::Shape> shape;
  ckpt_segment_fn forward = nullptr;
  ckpt_segment_fn backward = nullptr;
  std::vector<void *> output_memory;  // per output: the caller's, or NULL
  ckpt_state_fn save_state = nullptr;
  ckpt_state_fn restore_state = nullptr;
  size_t state_bytes = 0;

  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};
