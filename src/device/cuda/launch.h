// The launcher that both compilers take, in place of chevrons, and the two declarations that need two texts: nvcc compiles these
// sources for devices, g++ compiles the same text against the CPU double (tests/cuda_sim, which defines CUDASIM).
#pragma once

#include <cuda_runtime.h>

#include <tuple>
#include <utility>

// Dynamic shared memory of a kernel, 16-byte aligned.
#ifdef CUDASIM
#define CKPT_DYNAMIC_SHARED(T, name) T *name = static_cast<T *>(cudasim::dyn_shared())
#else
#define CKPT_DYNAMIC_SHARED(T, name) extern __shared__ __align__(16) unsigned char name##_bytes[]; T *name = reinterpret_cast<T *>(name##_bytes)
#endif

namespace ckpt::cuda {

// launch(kernel, grid, block, shared_bytes, stream, arguments...): arguments are converted to the parameters' types.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A &&...arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
  std::tuple<P...> values(static_cast<P>(std::forward<A>(arguments))...);
  return std::apply(
      [&](auto &...value) {
        void *pointers[] = {const_cast<void *>(static_cast<const void *>(&value))..., nullptr};
#ifdef CUDASIM
        cudasim::register_kernel(kernel);
#endif
        cudaLaunchConfig_t config{};
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = shared_bytes;
        config.stream = stream;
        return cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), pointers);
      },
      values);
}

}  // namespace ckpt::cuda
