// What a ckpt_ops is: threads, the kernels of this machine, and memory that belongs to calls (shared and one piece a thread), which
// grows to the largest need and stays. A call takes its turn first, so that two threads may use one handle.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "ckpt/ops.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/pool.h"
#include "ops/status.h"

namespace ckpt::ops {

class Scratch {
 public:
  static constexpr std::align_val_t kAlignment{256};
  Scratch() = default;
  Scratch(Scratch &&other) noexcept : data_(other.data_), floats_(other.floats_) {
    other.data_ = nullptr;
    other.floats_ = 0;
  }
  Scratch &operator=(Scratch &&) = delete;
  ~Scratch() { ::operator delete(data_, kAlignment); }
  bool reserve(size_t floats) noexcept {
    if (floats <= floats_) return true;
    void *more = ::operator new(floats * sizeof(float), kAlignment, std::nothrow);
    if (more == nullptr) return false;
    ::operator delete(data_, kAlignment);
    data_ = static_cast<float *>(more);
    floats_ = floats;
    return true;
  }
  float *data() const noexcept { return data_; }

 private:
  float *data_ = nullptr;
  size_t floats_ = 0;
};

}  // namespace ckpt::ops

struct ckpt_ops {
  explicit ckpt_ops(const ckpt::ops::Kernels &best) noexcept : kernels(best) {}

  std::atomic<uint32_t> references{1};
  ckpt::ops::blas::Hold hold;
  ckpt::ops::Pool pool;
  const ckpt::ops::Kernels &kernels;
  std::mutex turn;
  ckpt::ops::Scratch shared;
  std::vector<ckpt::ops::Scratch> of_thread;
};

namespace ckpt::ops {

class Turn {
 public:
  explicit Turn(ckpt_ops *ops) noexcept : ops_(*ops), lock_(ops->turn), kernels(ops->kernels) {}

  // Memory for this call: `shared_floats` in all, `thread_floats` for each thread.
  Status reserve(size_t shared_floats, size_t thread_floats) noexcept {
    bool there = ops_.shared.reserve(shared_floats);
    for (Scratch &scratch : ops_.of_thread) there = there && scratch.reserve(thread_floats);
    if (there) return CKPT_OK;
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops: no memory for %zu bytes of work space and %zu for each of %u threads",
                shared_floats * sizeof(float), thread_floats * sizeof(float), ops_.pool.thread_count());
  }
  float *shared() const noexcept { return ops_.shared.data(); }
  float *of_thread(unsigned thread) const noexcept { return ops_.of_thread[thread].data(); }

  // body(task, thread)
  template <class Body>
  void run(size_t count, const Body &body) const noexcept {
    ops_.pool.run(count, body);
  }
  // body(first, count, chunk, thread) over [0, total) in chunks of `chunk_size`
  template <class Body>
  void chunks(size_t total, size_t chunk_size, const Body &body) const noexcept {
    run((total + chunk_size - 1) / chunk_size, [&](size_t chunk, unsigned thread) {
      const size_t first = chunk * chunk_size;
      body(first, total - first < chunk_size ? total - first : chunk_size, chunk, thread);
    });
  }

 private:
  ckpt_ops &ops_;
  std::lock_guard<std::mutex> lock_;

 public:
  const Kernels &kernels;
};

// Elements that one task handles: 128 KiB a pass, so that starting it costs nothing and the data stays near.
constexpr size_t kChunkElements = 32768;
inline size_t rows_per_chunk(size_t columns) noexcept {
  return columns >= kChunkElements / 8 ? 8 : kChunkElements / columns;
}
inline size_t chunk_count(size_t total, size_t chunk_size) noexcept { return (total + chunk_size - 1) / chunk_size; }

}  // namespace ckpt::ops
