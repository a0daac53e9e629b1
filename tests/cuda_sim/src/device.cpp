// Devices: how many, what they are, versions, names of errors, the driver's functions.
#include <cuda.h>

#include <cstdio>

#include "state.h"

namespace cudasim {
namespace {

thread_local int current = 0;

constexpr int kMultiprocessors = 4;

struct Name {
  int code;
  const char *runtime, *driver, *text;
};
constexpr Name kNames[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {9, "cudaErrorInvalidConfiguration", "CUDA_ERROR_INVALID_CONFIGURATION", "invalid configuration argument"},
    {21, "cudaErrorInvalidMemcpyDirection", "", "invalid copy direction for memcpy"},
    {35, "cudaErrorInsufficientDriver", "", "CUDA driver version is insufficient for CUDA runtime version"},
    {98, "cudaErrorInvalidDeviceFunction", "", "invalid device function"},
    {100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {710, "cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {902, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
    {903, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
    {904, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "cudaErrorStreamCaptureIsolation", "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    {906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {908, "cudaErrorStreamCaptureWrongThread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
    {999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};
const Name *name_of(int code) {
  for (const Name &n : kNames)
    if (n.code == code) return &n;
  return nullptr;
}

CUresult cuGetErrorName(CUresult error, const char **out) {
  const Name *n = name_of(static_cast<int>(error));
  *out = n != nullptr ? n->driver : nullptr;
  return n != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char **out) {
  const Name *n = name_of(static_cast<int>(error));
  *out = n != nullptr ? n->text : nullptr;
  return n != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDriverGetVersion(int *out) {
  *out = driver_version();
  return CUDA_SUCCESS;
}

int attribute_of(int attribute) {  // the same numbers in both interfaces; -1: not known
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxBlockDimX: return 1024;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 227 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 228 << 10;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxRegistersPerBlock: return 65536;
    case cudaDevAttrMultiProcessorCount: return kMultiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrL2CacheSize: return 1 << 20;
    case cudaDevAttrAsyncEngineCount: return 2;
    case cudaDevAttrComputeCapabilityMajor: return 9;
    case cudaDevAttrComputeCapabilityMinor: return 0;
    case cudaDevAttrUnifiedAddressing: return 1;
    case cudaDevAttrConcurrentKernels: return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return virtual_memory();
    default: return -1;
  }
}

CUresult cuDeviceGet(CUdevice *out, int index) {
  if (index < 0 || index >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *out = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  if (device < 0 || device >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  const int value = attribute_of(static_cast<int>(attribute));
  if (value < 0) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}

cudaError_t entry_point(const char *name, void **out, cudaDriverEntryPointQueryResult *status) {
  if (name == nullptr || out == nullptr) return cudaErrorInvalidValue;
#define CUDASIM_FUNCTION(f) \
  if (std::strcmp(name, #f) == 0) *out = reinterpret_cast<void *>(static_cast<decltype(&::f)>(f))
  *out = driver_function(name);
  CUDASIM_FUNCTION(cuGetErrorName);
  CUDASIM_FUNCTION(cuGetErrorString);
  CUDASIM_FUNCTION(cuDriverGetVersion);
  CUDASIM_FUNCTION(cuDeviceGet);
  CUDASIM_FUNCTION(cuDeviceGetAttribute);
#undef CUDASIM_FUNCTION
  if (status != nullptr) *status = *out != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

}  // namespace

int current_device() { return current; }

}  // namespace cudasim

using namespace cudasim;

extern "C" {

cudaError_t cudaGetDeviceCount(int *out) {
  Quiet quiet;
  *out = 0;
  if (const cudaError_t error = enter(__func__); error != cudaSuccess) return keep(error);
  *out = device_count();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *out) {
  CUDASIM_ENTER();
  *out = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  CUDASIM_ENTER();
  if (!is_device(device)) return keep(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  CUDASIM_ENTER();
  return keep(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
  CUDASIM_ENTER();
  if (!is_device(device)) return keep(cudaErrorInvalidDevice);
  *out = {};
  std::snprintf(out->name, sizeof out->name, "CUDA double");
  out->totalGlobalMem = memory_total();
  out->sharedMemPerBlock = 48 << 10;
  out->sharedMemPerBlockOptin = 227 << 10;
  out->sharedMemPerMultiprocessor = 228 << 10;
  out->regsPerBlock = 65536;
  out->warpSize = 32;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsPerMultiProcessor = 2048;
  out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 0x7fffffff;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->major = 9;
  out->multiProcessorCount = kMultiprocessors;
  out->l2CacheSize = 1 << 20;
  out->asyncEngineCount = 2;
  out->concurrentKernels = out->unifiedAddressing = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int device) {
  CUDASIM_ENTER();
  if (!is_device(device)) return keep(cudaErrorInvalidDevice);
  const int value = attribute_of(attribute);
  if (value < 0) return keep(cudaErrorInvalidValue);
  *out = value;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  CUDASIM_ENTER();
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *out) {
  CUDASIM_ENTER(kNoDevice);
  *out = driver_version();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *out) {
  CUDASIM_ENTER(kNoDevice);
  *out = CUDART_VERSION;
  return cudaSuccess;
}
const char *cudaGetErrorName(cudaError_t error) {
  const Name *n = name_of(error);
  return n != nullptr ? n->runtime : "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t error) {
  const Name *n = name_of(error);
  return n != nullptr ? n->text : "unrecognized error code";
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long, cudaDriverEntryPointQueryResult *status) {
  CUDASIM_ENTER();
  return keep(entry_point(name, out, status));
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
  CUDASIM_ENTER();
  return keep(entry_point(name, out, status));
}

}  // extern "C"
