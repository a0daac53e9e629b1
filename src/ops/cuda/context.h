// What a device's DeviceOps object is: the stream and element type it was made for, work space, and a few words of device memory
// that functions leave to each other (sums of the loss, factors, the first index out of range).
//
// Every operation is a function of a Context with the arguments of device_ops.h (table.h declares them all). The table's entries make
// the device the thread's (Scope) and pass them on. Failures get their text from the device: CKPT_CUDA_CALL(context, call), and
// context.gpu.fail(status, "...") for what is not a CUDA call's.
#pragma once

#include <cuda_runtime.h>  // first: the double's stands in front of what the next two include

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/cuda/gpu.h"
#include "device/cuda/launch.h"
#include "ops/device_ops.h"

namespace ckpt::ops::cuda {

using Bfloat16 = __nv_bfloat16;
using Half = __half;

// The first token or target out of range. `set` 0: none.
struct Fault {
  uint64_t place;
  uint64_t bound;
  int32_t value;
  uint32_t targets;  // 0: tokens
  uint32_t set;
  uint32_t reserved;
};

// Device memory of a context.
struct Words {
  double loss_sum;      // loss_begin clears, loss_add adds, loss_end divides
  uint64_t loss_rows;   // that count
  double norm_squared;  // of the latest norm or clip
  float loss_scale;     // of each row's gradient: loss_scale leaves, loss_gradient reads
  float clip;           // clip leaves, adamw reads
  Fault fault;
};

struct Blas;  // linear.cu: the cuBLASLt handle and what goes with it

class Context {
 public:
  static ckpt_status create(ckpt::cuda::Gpu &gpu, cudaStream_t stream, uint32_t dtype, Context **out) noexcept;
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  // Device memory for one operation, aligned to 256; its contents do not matter, and the next call may take the same. Ask once in an
  // operation, for all its parts (Parts below). Grows outside capture only (CAPTURE), and what it was before stays until the context
  // goes: a captured graph may name it. *out is NULL for 0 bytes and on failure.
  ckpt_status workspace(size_t bytes, void **out) noexcept;
  // For functions that wait for the stream: CAPTURE where it is captured.
  ckpt_status may_wait(const char *function) const noexcept { return gpu.check_not_captured(stream, function); }

  // Blocks for a kernel of grid-stride loops over `items`, `per_block` at a time: no more than `most` for each multiprocessor (8 blocks of
  // 256 threads are resident; four times that evens out what they take).
  unsigned blocks(size_t items, size_t per_block, unsigned most = 32) const noexcept;

  ckpt::cuda::Gpu &gpu;  // gpu.sm(): 90 for compute capability 9.0
  cudaStream_t const stream;
  uint32_t const dtype;
  int multiprocessors = 1;
  Words *words = nullptr;  // device memory
  Blas *blas = nullptr;

 private:
  Context(ckpt::cuda::Gpu &device, cudaStream_t on, uint32_t type) noexcept : gpu(device), stream(on), dtype(type) {}
  ckpt_status open() noexcept;
  ckpt_status grow(size_t bytes) noexcept;

  void *space_ = nullptr;
  size_t space_bytes_ = 0;
  std::vector<void *> retired_;
};

// linear.cu. Called by create and destroy: `*out` NULL on failure; `name` is for describe ("cublasLt 13.0.1").
ckpt_status blas_create(Context &context, Blas **out) noexcept;
void blas_destroy(Blas *blas) noexcept;
void blas_name(const Blas *blas, char name[64]) noexcept;

// Remembers the first of `count` indices that is not in 0 ... bound - 1 (and not *ignored), where none is remembered since the latest check.
// ignored NULL: tokens; else targets.
ckpt_status check_indices(Context &context, const int32_t *indices, size_t count, size_t bound, const int32_t *ignored);

// Parts of one workspace: sizes first, pointers after.
//   Parts parts; const size_t a = parts.add<float>(n), b = parts.add<double>(m);
//   CKPT_CUDA(parts.take(context)); float *x = parts.at<float>(a);
class Parts {
 public:
  template <class T>
  size_t add(size_t count) noexcept {
    const size_t at = bytes_;
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  ckpt_status take(Context &context) noexcept { return context.workspace(bytes_, &data_); }
  template <class T>
  T *at(size_t offset) const noexcept {
    return reinterpret_cast<T *>(static_cast<unsigned char *>(data_) + offset);
  }

 private:
  size_t bytes_ = 0;
  void *data_ = nullptr;
};

// with_type(context, [&](auto zero) -> ckpt_status { using T = decltype(zero); ... }): T is float, __nv_bfloat16 or __half.
template <class F>
ckpt_status with_type(const Context &context, const F &f) {
  if (context.dtype == kBfloat16) return f(Bfloat16{});
  if (context.dtype == kFloat16) return f(Half{});
  return f(float{});  // create refuses other types
}

// How an element-wise kernel is cut: `vectors` of 16 bytes, then single elements (element.h's `each`).
constexpr unsigned kElementBlock = 256;  // threads; no barriers and no shared memory: 8 such blocks fill a multiprocessor
struct Cut {
  unsigned blocks;
  size_t vectors;
};
inline Cut cut_vectors(const Context &context, size_t count, unsigned lanes) noexcept {
  return {context.blocks(count, kElementBlock * lanes), count / lanes};
}
inline Cut cut_singly(const Context &context, size_t count) noexcept { return {context.blocks(count, kElementBlock), 0}; }
// By whether all pointers lie on 16 bytes.
template <unsigned kEach, class... P>
Cut cut_of(const Context &context, size_t count, const P *...pointers) noexcept {
  const bool aligned = ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
  return aligned ? cut_vectors(context, count, kEach) : cut_singly(context, count);
}

inline size_t size_of(uint32_t dtype) noexcept { return dtype == kFloat32 ? 4 : 2; }

// launch(context, "layernorm_forward", kernel, grid, block, shared bytes, arguments...): on the context's stream; the name is for the
// text of a failure.
template <class... P, class... A>
ckpt_status launch(Context &context, const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                   A &&...arguments) noexcept {
  const cudaError_t error =
      ckpt::cuda::launch(kernel, grid, block, shared_bytes, context.stream, std::forward<A>(arguments)...);
  if (error == cudaSuccess) return CKPT_OK;
  return context.gpu.report(error, "launch of %s (%u x %u blocks of %u threads, %zu bytes of shared memory)", name, grid.x,
                            grid.y * grid.z, block.x * block.y * block.z, shared_bytes);
}

}  // namespace ckpt::ops::cuda

// A launch or another CUDA call; the text names it. CKPT_CUDA (gpu.h) is for what returns a ckpt_status.
#define CKPT_CUDA_CALL(context, expression)                                                           \
  do {                                                                                                \
    if (const cudaError_t call_error_ = (expression); call_error_ != cudaSuccess)                     \
      return (context).gpu.report(call_error_, "%s", #expression);                                   \
  } while (0)
