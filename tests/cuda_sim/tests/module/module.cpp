// A shared library with the double and kernels of its own, as the plugin is one; loaded.cpp loads it.
#include <cuda_runtime.h>

#include "device/cuda/launch.h"

namespace {

template <int kWords>
__global__ void leftovers(unsigned *out) {
  __shared__ unsigned s[kWords];
  unsigned differ = 0;
  for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x) {
    differ += s[i] != ~0u;
    s[i] = 1;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = differ;
}

}  // namespace

// How many words of static shared memory did not begin as NaN, over all blocks and launches; -1: a call failed.
extern "C" __attribute__((visibility("default"))) int cudasim_module_leftovers() {
  constexpr unsigned kBlocks = 5, kThreads = 64;
  cudaStream_t stream = nullptr;
  unsigned *out = nullptr;
  unsigned host[kBlocks * kThreads];
  int total = 0;
  bool failed = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess || cudaMalloc(&out, sizeof host) != cudaSuccess;
  for (const auto kernel : {leftovers<8>, leftovers<5000>, leftovers<12000>, leftovers<5000>}) {
    failed = failed || ckpt::cuda::launch(kernel, kBlocks, kThreads, 0, stream, out) != cudaSuccess ||
             cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream) != cudaSuccess || cudaStreamSynchronize(stream) != cudaSuccess;
    for (const unsigned differ : host) total += static_cast<int>(differ);
  }
  failed = failed || cudaFree(out) != cudaSuccess || cudaStreamDestroy(stream) != cudaSuccess;
  return failed ? -1 : total;
}
