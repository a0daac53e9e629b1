// What computes on the CPU: threads, the kernels of this machine, and memory that belongs to calls (shared and one piece a thread), which
// grows to the largest need and stays. One call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "ops/cpu/blas.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/pool.h"
#include "ops/status.h"

namespace ckpt::ops::cpu {

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

struct Context {
  explicit Context(const Kernels &best) noexcept : kernels(best) {}

  blas::Hold hold;
  Pool pool;
  const Kernels &kernels;
  Scratch shared;
  std::vector<Scratch> of_thread;
  // What one call leaves for the next: see DeviceOps.
  double loss_sum = 0.0;
  size_t loss_rows = 0;  // that count
  float loss_scale = 0.0f, clip_scale = 1.0f;
};

// One call's work on a context.
class Work {
 public:
  explicit Work(void *context) noexcept : context_(*static_cast<Context *>(context)), kernels(context_.kernels) {}

  // Memory for this call: `shared_floats` in all, `thread_floats` for each thread.
  Status reserve(size_t shared_floats, size_t thread_floats) noexcept {
    bool there = context_.shared.reserve(shared_floats);
    for (Scratch &scratch : context_.of_thread) there = there && scratch.reserve(thread_floats);
    if (there) return CKPT_OK;
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops: no memory for %zu bytes of work space and %zu for each of %u threads",
                shared_floats * sizeof(float), thread_floats * sizeof(float), context_.pool.thread_count());
  }
  float *shared() const noexcept { return context_.shared.data(); }
  float *of_thread(unsigned thread) const noexcept { return context_.of_thread[thread].data(); }
  Context &context() const noexcept { return context_; }

  // body(task, thread)
  template <class Body>
  void run(size_t count, const Body &body) const noexcept {
    context_.pool.run(count, body);
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
  Context &context_;

 public:
  const Kernels &kernels;
};

// Elements that one task handles: 128 KiB a pass, so that starting it costs nothing and the data stays near.
constexpr size_t kChunkElements = 32768;
inline size_t rows_per_chunk(size_t columns) noexcept {
  return columns >= kChunkElements / 8 ? 8 : kChunkElements / columns;
}
inline size_t chunk_count(size_t total, size_t chunk_size) noexcept { return (total + chunk_size - 1) / chunk_size; }

// Elements of the only type that the CPU has.
inline const float *floats(const void *elements) noexcept { return static_cast<const float *>(elements); }
inline float *floats(void *elements) noexcept { return static_cast<float *>(elements); }

}  // namespace ckpt::ops::cpu
