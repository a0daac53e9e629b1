#include "device/cuda/driver.h"

namespace ckpt::cuda {
namespace {

constexpr unsigned kSince = 12000;  // the form of the functions that is asked for: CUDA 12.0's

template <class F>
bool find(const char *name, F *out) noexcept {
  void *address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &address, kSince, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess) (void)cudaGetLastError();
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess || address == nullptr) return false;
  *out = reinterpret_cast<F>(address);
  return true;
}

}  // namespace

bool Driver::load() noexcept {
  return find("cuDeviceGet", &device_get) && find("cuDeviceGetAttribute", &device_get_attribute) &&
         find("cuMemAddressReserve", &address_reserve) && find("cuMemAddressFree", &address_free) && find("cuMemCreate", &create) &&
         find("cuMemRelease", &release) && find("cuMemMap", &map) && find("cuMemUnmap", &unmap) &&
         find("cuMemSetAccess", &set_access) && find("cuMemGetAllocationGranularity", &granularity);
}

}  // namespace ckpt::cuda
