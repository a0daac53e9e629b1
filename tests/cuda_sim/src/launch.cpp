// Kernels: what is known of them, and launches. Arguments are copied at the launch; pointers among them are checked when it runs.
#include <map>

#include "state.h"

namespace cudasim {
namespace {

constexpr int kStandardShared = 48 << 10, kLargestShared = 227 << 10;

struct Known {
  Kernel kernel;
  int largest_shared = kStandardShared;
};
struct Kernels {
  std::mutex lock;
  std::map<const void *, Known> all;
};
Kernels &kernels() {
  static Kernels *k = new Kernels;
  return *k;
}

bool find(const void *function, Known *out) {
  std::lock_guard<std::mutex> hold(kernels().lock);
  const auto it = kernels().all.find(function);
  if (it == kernels().all.end()) return false;
  *out = it->second;
  return true;
}

cudaError_t start(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s) {
  Known known;
  if (!find(function, &known)) return cudaErrorInvalidDeviceFunction;
  if (const cudaError_t error = check_current(s); error != cudaSuccess) return error;
  const size_t threads = size_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 || grid.x > 0x7fffffff || grid.y == 0 || grid.y > 65535 ||
      grid.z == 0 || grid.z > 65535)
    return cudaErrorInvalidConfiguration;
  if (shared > static_cast<size_t>(known.largest_shared)) return cudaErrorInvalidValue;
  const unsigned delay = issue(CUDASIM_KERNEL);
  Launch launch{function, known.kernel, known.kernel.pack(arguments), grid, block, shared};
  return enqueue(s, {[launch = std::move(launch), delay] {
                   sleep_for(delay);
                   if (!launch.kernel.pointers_ok(launch.arguments.get())) {
                     set_report("kernel argument points to host memory or to memory that is freed");
                     return cudaErrorIllegalAddress;
                   }
                   return run_grid(launch);
                 }});
}

}  // namespace

void add_kernel(const void *function, Kernel kernel) {
  Quiet quiet;
  std::lock_guard<std::mutex> hold(kernels().lock);
  kernels().all[function].kernel = kernel;
}

}  // namespace cudasim

using namespace cudasim;

extern "C" {

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s) {
  CUDASIM_ENTER();
  return keep(start(function, grid, block, arguments, shared, s));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  CUDASIM_ENTER();
  if (config == nullptr) return keep(cudaErrorInvalidValue);
  if (config->numAttrs != 0) return keep(cudaErrorNotSupported);
  return keep(start(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream));
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  CUDASIM_ENTER();
  std::lock_guard<std::mutex> hold(kernels().lock);
  const auto it = kernels().all.find(function);
  if (it == kernels().all.end()) return keep(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > kLargestShared) return keep(cudaErrorInvalidValue);
    it->second.largest_shared = value;
  }
  return cudaSuccess;
}
// Registers and static shared memory are not known to this compiler.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function) {
  CUDASIM_ENTER();
  Known known;
  if (!find(function, &known)) return keep(cudaErrorInvalidDeviceFunction);
  *out = {};
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 32;
  out->binaryVersion = out->ptxVersion = 90;
  out->maxDynamicSharedSizeBytes = known.largest_shared;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *function, int threads, size_t shared) {
  CUDASIM_ENTER();
  Known known;
  if (!find(function, &known)) return keep(cudaErrorInvalidDeviceFunction);
  if (threads <= 0 || threads > 1024) return keep(cudaErrorInvalidValue);
  const int by_threads = 2048 / threads, by_shared = shared == 0 ? 32 : static_cast<int>(static_cast<size_t>(kLargestShared) / shared);
  *out = shared > static_cast<size_t>(known.largest_shared) ? 0 : std::min({by_threads, by_shared, 32});
  return cudaSuccess;
}

}  // extern "C"
