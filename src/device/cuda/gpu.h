// An open CUDA device: what Table::open gives as `self`, also to the plugin's further interfaces. Thread-safe.
//
// Every entry point of the plugin looks the same:
//
//   ckpt_status f(void *self, ...) {
//     Gpu &gpu = *static_cast<Gpu *>(self);
//     const Scope scope(gpu);                    // this device is the thread's; the caller's comes back
//     CKPT_CUDA(scope.status());                 // the device was lost by an earlier error: refused with its name
//     return gpu.report(cudaMemsetAsync(...), "cudaMemsetAsync(%zu bytes)", bytes);
//   }
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/driver.h"
#include "device/cuda/error.h"
#include "device/table.h"

// Returns a status that is not CKPT_OK from the function around it.
#define CKPT_CUDA(expression)                                                   \
  do {                                                                          \
    if (const ckpt_status cuda_status_ = (expression); cuda_status_ != CKPT_OK) \
      return cuda_status_;                                                      \
  } while (0)

namespace ckpt::cuda {

struct Slab;  // memory.cpp

class Gpu {
 public:
  static ckpt_status open(const device::Host *host, uint32_t index, Gpu **out);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  int index() const noexcept { return index_; }
  const char *label() const noexcept { return label_; }  // "cuda:0"
  int sm() const noexcept { return sm_; }                // 90 for compute capability 9.0
  const Driver &driver() const noexcept { return driver_; }

  // A status of ours with a text, which begins with the device's label.
  ckpt_status fail(ckpt_status status, const char *format, ...) const noexcept __attribute__((format(printf, 3, 4)));
  // What a call returned (a CUresult has the same numbers): CKPT_OK, or a status whose text has the call as `format` says it, the
  // error's name, number and description. OUT_OF_MEMORY says what is free; CAPTURE: the call is illegal while a stream is captured;
  // else DEVICE. An error after which the device cannot be used (an illegal address, say) is remembered.
  ckpt_status report(cudaError_t error, const char *format, ...) noexcept __attribute__((format(printf, 3, 4)));
  // The same for a failed request for `wanted` bytes.
  ckpt_status report_memory(cudaError_t error, const char *call, size_t wanted) noexcept;
  // Makes the device the calling thread's, its context included: the driver's functions need that, the run-time's find it themselves.
  ckpt_status bind() noexcept;
  // CKPT_OK, or DEVICE with the error by which the device was lost.
  ckpt_status usable() const noexcept;

  // INVALID_ARGUMENT for the legacy default stream, which waits for all others.
  ckpt_status check_stream(cudaStream_t stream, const char *function) const noexcept;
  // CAPTURE while the stream is captured: `function` cannot be part of a graph.
  ckpt_status check_not_captured(cudaStream_t stream, const char *function) noexcept;

  // memory.cpp
  ckpt_status reserve(size_t bytes, size_t alignment, uint32_t flags, void **out);
  void release(void *data) noexcept;
  ckpt_status commit(void *data, size_t bytes);
  // Memory for hashes, under hash_mutex: grown to `bytes`.
  ckpt_status hash_scratch(size_t bytes, void **out);
  std::mutex hash_mutex;

 private:
  Gpu(const device::Host *host, uint32_t index) noexcept;
  ckpt_status remember(cudaError_t error, const char *call) noexcept;
  ckpt_status reserve_plain(Slab *slab, size_t bytes, size_t alignment);
  ckpt_status reserve_mapped(Slab *slab, size_t bytes, size_t alignment);
  ckpt_status map(Slab *slab, size_t begin, size_t end);
  ckpt_status map_gap(Slab *slab, size_t begin, size_t end);
  void wait_for_all_work() noexcept;
  void unmap(Slab *slab, size_t begin, size_t end) noexcept;

  const device::Host *host_;
  int index_;
  int sm_ = 0;
  char label_[16];
  Driver driver_;
  size_t granularity_ = 0;  // of mapped pages; 0: the device has none
  std::atomic<bool> lost_{false};
  char lost_text_[512];     // written once, before lost_
  std::mutex lost_mutex_, slabs_mutex_;
  std::map<uintptr_t, std::unique_ptr<Slab>> slabs_;
  void *hash_scratch_ = nullptr;
  size_t hash_scratch_bytes_ = 0;
};

// Makes a device the calling thread's for a scope, and the one that error.h's functions speak of. A device that was lost is refused.
class Scope {
 public:
  explicit Scope(Gpu &gpu) noexcept;
  ~Scope();
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;
  ckpt_status status() const noexcept { return status_; }

 private:
  Gpu *outer_;
  int before_ = -1;  // -1: nothing to put back
  ckpt_status status_;
};

// Calls that would invalidate a capture of this thread on another stream do not, for a scope.
class OutsideCapture {
 public:
  OutsideCapture() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCapture(const OutsideCapture &) = delete;
  OutsideCapture &operator=(const OutsideCapture &) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace ckpt::cuda
