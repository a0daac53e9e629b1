// The driver's functions that the runtime library has no counterpart of: mapped pages. Found through the runtime, so that the plugin
// loads where no driver is installed.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace ckpt::cuda {

struct Driver {
  CUresult (*device_get)(CUdevice *, int) = nullptr;
  CUresult (*device_get_attribute)(int *, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*address_reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long) = nullptr;
  CUresult (*address_free)(CUdeviceptr, size_t) = nullptr;
  CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long) = nullptr;
  CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) = nullptr;
  CUresult (*unmap)(CUdeviceptr, size_t) = nullptr;
  CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t) = nullptr;
  CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags) = nullptr;

  // All of them, or false: the driver has no mapped pages.
  bool load() noexcept;
};

}  // namespace ckpt::cuda
