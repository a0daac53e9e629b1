// Which kernels serve a type and a head's size: heads are padded with zeros, in shared memory alone, to the next size there is.
#pragma once

#include "ops/cuda/attention_fma.h"
#include "ops/cuda/attention_mma.h"

namespace ckpt::ops::cuda {

template <class T, unsigned D>
struct TensorKernels {
  using Element = T;
  static constexpr unsigned kThreads = tensor::kThreads, kForwardRows = tensor::kRows, kBackwardRows = tensor::kRows;
  static constexpr size_t kForwardBytes = tensor::forward_bytes<D>(), kBackwardBytes = tensor::backward_bytes<D>();
  static constexpr auto forward() { return &tensor::forward<T, D>; }
  static constexpr auto write_weights() { return &tensor::write_weights<T, D>; }
  template <tensor::Pass kPass, bool kStored>
  static constexpr auto backward() {
    return &tensor::backward<T, D, kPass, kStored>;
  }
};

template <class T, unsigned D>
struct FloatKernels {
  using Element = T;
  static constexpr unsigned kThreads = plain_float::kThreads, kForwardRows = plain_float::Forward<D>::kRows,
                            kBackwardRows = plain_float::Backward<D>::kRows;
  static constexpr size_t kForwardBytes = plain_float::forward_bytes<D>(), kBackwardBytes = plain_float::backward_bytes<D>();
  static constexpr auto forward() { return &plain_float::forward<T, D>; }
  static constexpr auto write_weights() { return &plain_float::write_weights<T, D>; }
  template <tensor::Pass kPass, bool kStored>
  static constexpr auto backward() {
    return &plain_float::backward<T, D, kPass, kStored>;
  }
};

// f(kernels) for heads of up to kLargestHead channels.
template <class F>
ckpt_status with_kernels(const Context &context, uint32_t head_size, const F &f) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (head_size <= 32) return f(FloatKernels<T, 32>{});
      if (head_size <= 64) return f(FloatKernels<T, 64>{});
      if (head_size <= 128) return f(FloatKernels<T, 128>{});
    } else {
      if (head_size <= 32) return f(TensorKernels<T, 32>{});
      if (head_size <= 64) return f(TensorKernels<T, 64>{});
      if (head_size <= 96) return f(TensorKernels<T, 96>{});
      if (head_size <= 128) return f(TensorKernels<T, 128>{});
    }
    return f(FloatKernels<T, 256>{});
  });
}

}  // namespace ckpt::ops::cuda
