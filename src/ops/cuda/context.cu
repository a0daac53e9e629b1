#include "ops/cuda/context.h"

#include <algorithm>
#include <new>

#include "ops/cuda/element.h"
#include "ops/cuda/table.h"

namespace ckpt::ops::cuda {

using ckpt::cuda::Gpu;
using ckpt::cuda::OutsideCapture;

namespace {

constexpr unsigned kCheckBlock = 1024;  // one block, so that "the first" needs no agreement between blocks; a pass over 8192 indices

// Ignored: one value that is no fault, where `targets` is 1.
__global__ void __launch_bounds__(kCheckBlock)
    find_fault(const int32_t *indices, size_t count, size_t bound, int32_t ignored, uint32_t targets, Fault *fault) {
  __shared__ uint64_t of_warp[kCheckBlock / kWarp];
  uint64_t first = UINT64_MAX;
  for (uint64_t k = threadIdx.x; k < count; k += kCheckBlock) {
    const int32_t index = indices[k];
    const bool fine = (index >= 0 && static_cast<size_t>(index) < bound) || (targets != 0 && index == ignored);
    if (!fine && first == UINT64_MAX) first = k;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const uint64_t other = __shfl_xor_sync(kWholeWarp, first, step);
    first = other < first ? other : first;
  }
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = first;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < kCheckBlock / kWarp; ++warp) first = of_warp[warp] < first ? of_warp[warp] : first;
  if (first != UINT64_MAX && fault->set == 0) *fault = Fault{first, bound, indices[first], targets, 1, 0};
}

}  // namespace

ckpt_status check_indices(Context &context, const int32_t *indices, size_t count, size_t bound, const int32_t *ignored) {
  return launch(context, "check_indices", find_fault, 1, kCheckBlock, 0, indices, count, bound, ignored != nullptr ? *ignored : 0,
                ignored != nullptr ? 1u : 0u, &context.words->fault);
}

ckpt_status Context::create(Gpu &gpu, cudaStream_t stream, uint32_t dtype, Context **out) noexcept {
  *out = nullptr;
  if (dtype > kFloat16)
    return gpu.fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: dtype is %u, expected 0 (float32), 1 (bfloat16) or 2 (float16)", dtype);
  CKPT_CUDA(gpu.check_stream(stream, "ckpt_ops_create"));
  CKPT_CUDA(gpu.check_not_captured(stream, "ckpt_ops_create"));
  Context *const context = new (std::nothrow) Context(gpu, stream, dtype);
  if (context == nullptr) return gpu.fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_create: the host refused %zu bytes", sizeof(Context));
  const ckpt_status status = context->open();
  if (status != CKPT_OK) {
    delete context;
    return status;
  }
  *out = context;
  return CKPT_OK;
}

ckpt_status Context::open() noexcept {
  CKPT_CUDA_CALL(*this, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu.index()));
  {
    const OutsideCapture outside;  // of other streams of this thread
    void *memory = nullptr;
    if (const cudaError_t error = cudaMalloc(&memory, sizeof(Words)); error != cudaSuccess)
      return gpu.report_memory(error, "cudaMalloc", sizeof(Words));
    words = static_cast<Words *>(memory);
  }
  CKPT_CUDA_CALL(*this, cudaMemsetAsync(words, 0, sizeof(Words), stream));
  return blas_create(*this, &blas);
}

Context::~Context() {
  blas_destroy(blas);
  const OutsideCapture outside;
  for (void *memory : retired_)
    if (cudaFree(memory) != cudaSuccess) (void)cudaGetLastError();
  for (void *memory : {space_, static_cast<void *>(words)})
    if (memory != nullptr && cudaFree(memory) != cudaSuccess) (void)cudaGetLastError();
}

ckpt_status Context::workspace(size_t bytes, void **out) noexcept {
  *out = nullptr;
  if (bytes == 0) return CKPT_OK;
  if (bytes > space_bytes_) CKPT_CUDA(grow(bytes));
  *out = space_;
  return CKPT_OK;
}

// At least doubles, so that all that was before takes no more than what is now.
ckpt_status Context::grow(size_t bytes) noexcept {
  CKPT_CUDA(gpu.check_not_captured(stream, "ckpt_ops: work space grows, which a step that ran before it was captured would have done; it"));
  const OutsideCapture outside;
  try {
    retired_.reserve(retired_.size() + 1);
  } catch (const std::bad_alloc &) {
    return gpu.fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops: the host refused memory for a list of %zu work spaces", retired_.size() + 1);
  }
  constexpr size_t kLeast = size_t{1} << 20;
  size_t wanted = std::max({bytes, 2 * space_bytes_, kLeast});
  void *larger = nullptr;
  cudaError_t error = cudaMalloc(&larger, wanted);
  if (error == cudaErrorMemoryAllocation && wanted > bytes) {
    (void)cudaGetLastError();
    wanted = bytes;
    error = cudaMalloc(&larger, wanted);
  }
  if (error != cudaSuccess) return gpu.report_memory(error, "cudaMalloc of the operations' work space", wanted);
  if (space_ != nullptr) retired_.push_back(space_);
  space_ = larger;
  space_bytes_ = wanted;
  return CKPT_OK;
}

unsigned Context::blocks(size_t items, size_t per_block, unsigned most) const noexcept {
  const size_t needed = (items + per_block - 1) / per_block;
  const size_t limit = static_cast<size_t>(multiprocessors) * most;
  return static_cast<unsigned>(std::max<size_t>(1, std::min(needed, limit)));
}

ckpt_status check(Context &context) {
  CKPT_CUDA(context.may_wait("ckpt_ops_check"));
  Fault fault = {};
  CKPT_CUDA_CALL(context, cudaMemcpyAsync(&fault, &context.words->fault, sizeof fault, cudaMemcpyDeviceToHost, context.stream));
  CKPT_CUDA_CALL(context, cudaStreamSynchronize(context.stream));
  if (fault.set == 0) return CKPT_OK;
  CKPT_CUDA_CALL(context, cudaMemsetAsync(&context.words->fault, 0, sizeof fault, context.stream));
  CKPT_CUDA_CALL(context, cudaStreamSynchronize(context.stream));
  const char *const name = fault.targets != 0 ? "targets" : "tokens";
  return context.gpu.fail(CKPT_ERROR_INVALID_ARGUMENT, "%s[%llu] is %d, expected 0 <= %s < %llu", name,
                          static_cast<unsigned long long>(fault.place), fault.value, name, static_cast<unsigned long long>(fault.bound));
}

}  // namespace ckpt::ops::cuda
