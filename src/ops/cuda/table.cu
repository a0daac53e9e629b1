#include "ops/cuda/table.h"

#include <cstdio>

#include "ops/cuda/attention_shape.h"

namespace ckpt::ops::cuda {
namespace {

using ckpt::cuda::Gpu;
using ckpt::cuda::Scope;

// The table's entry of an operation: its device becomes the thread's for the call.
template <auto kOperation>
struct Entry;
template <class... A, ckpt_status (*kOperation)(Context &, A...)>
struct Entry<kOperation> {
  static ckpt_status call(void *self, A... arguments) {
    Context &context = *static_cast<Context *>(self);
    const Scope scope(context.gpu);
    CKPT_CUDA(scope.status());
    return kOperation(context, arguments...);
  }
};

ckpt_status create(void *device, void *stream, uint32_t dtype, void **out_self) {
  *out_self = nullptr;
  Gpu &gpu = *static_cast<Gpu *>(device);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  Context *context = nullptr;
  CKPT_CUDA(Context::create(gpu, static_cast<cudaStream_t>(stream), dtype, &context));
  *out_self = context;
  return CKPT_OK;
}

void destroy(void *self) {
  if (self == nullptr) return;
  Context *const context = static_cast<Context *>(self);
  const Scope scope(context->gpu);
  delete context;
}

void describe(void *self, char isa[16], char blas[64]) {
  const Context &context = *static_cast<const Context *>(self);
  (void)std::snprintf(isa, 16, "sm_%d", context.gpu.sm());
  blas_name(context.blas, blas);
}

template <auto kOperation>
constexpr auto kEntry = &Entry<kOperation>::call;

constexpr DeviceOps kTable = {
    kDeviceOpsVersion, kLargestHead, create, destroy, describe, kEntry<check>,
    kEntry<embedding_forward>, kEntry<embedding_backward>,
    kEntry<linear_forward>, kEntry<linear_residual_forward>, kEntry<linear_backward>,
    kEntry<layernorm_forward>, kEntry<layernorm_backward>, kEntry<gelu_forward>, kEntry<gelu_backward>,
    kEntry<attention_forward>, kEntry<attention_backward>, kEntry<attention_tiled_forward>, kEntry<attention_tiled_backward>,
    kEntry<dropout_forward>, kEntry<dropout_backward>, kEntry<add>,
    kEntry<loss_begin>, kEntry<loss_add>, kEntry<loss_end>, kEntry<loss_scale>, kEntry<loss_gradient>,
    kEntry<norm>, kEntry<clip>, kEntry<adamw>, kEntry<normal>, kEntry<from_float>, kEntry<to_float>};

}  // namespace

const DeviceOps *table() noexcept { return &kTable; }

}  // namespace ckpt::ops::cuda
