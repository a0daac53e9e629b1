#include "device/cuda/gpu.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "device/cuda/memory.h"

namespace ckpt::cuda {
namespace {

constexpr int kLeastMajor = 8;  // the kernels are written for sm_80 and later

bool of_capture(cudaError_t error) noexcept {
  return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}

void write(char *text, size_t bytes, const char *format, va_list arguments) noexcept {
  (void)std::vsnprintf(text, bytes, format, arguments);
}

ckpt_status refuse(const device::Host *host, ckpt_status status, const char *format, ...) noexcept __attribute__((format(printf, 3, 4)));
ckpt_status refuse(const device::Host *host, ckpt_status status, const char *format, ...) noexcept {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  write(text, sizeof text, format, arguments);
  va_end(arguments);
  return host->fail(status, text);
}

// Is there a driver that this plugin can use, and a device of that index?
ckpt_status find_device(const device::Host *host, uint32_t index) noexcept {
  int count = 0, driver = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary) {
    if (cudaDriverGetVersion(&driver) != cudaSuccess) (void)cudaGetLastError();
    if (driver == 0) return refuse(host, CKPT_ERROR_NOT_FOUND, "cuda:%u: no NVIDIA driver is installed, or none that answers", index);
    return refuse(host, CKPT_ERROR_DEVICE, "cuda:%u: the NVIDIA driver is too old: it has CUDA %d.%d, this plugin was built with %d.%d", index,
                  driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  if (error == cudaSuccess && index < static_cast<uint32_t>(count)) return CKPT_OK;
  if (error == cudaErrorNoDevice || error == cudaSuccess)
    return refuse(host, CKPT_ERROR_NOT_FOUND, "cuda:%u: there is no such device: the driver shows %d, expected an index below that", index,
                  error == cudaSuccess ? count : 0);
  return refuse(host, CKPT_ERROR_DEVICE, "cuda:%u: cudaGetDeviceCount: %s (%d): %s", index, cudaGetErrorName(error),
                static_cast<int>(error), cudaGetErrorString(error));
}

std::atomic<const device::Host *> g_host{nullptr};
thread_local Gpu *t_gpu = nullptr;  // of the innermost Scope

}  // namespace

void set_host(const device::Host *host) noexcept { g_host.store(host, std::memory_order_relaxed); }

// CUDA's documentation says of each that the process must be ended to go on with the device.
bool loses_the_device(cudaError_t error) noexcept {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed: return true;
    default: return false;
  }
}

ckpt_status fail(ckpt_status status, const char *format, ...) noexcept {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  write(text, sizeof text, format, arguments);
  va_end(arguments);
  return t_gpu != nullptr ? t_gpu->fail(status, "%s", text) : g_host.load(std::memory_order_relaxed)->fail(status, text);
}

ckpt_status fail_call(cudaError_t error, const char *call) noexcept {
  if (error == cudaSuccess) return CKPT_OK;
  if (t_gpu != nullptr) return t_gpu->report(error, "%s", call);
  (void)cudaGetLastError();
  return fail(of_capture(error) ? CKPT_ERROR_CAPTURE : error == cudaErrorMemoryAllocation ? CKPT_ERROR_OUT_OF_MEMORY : CKPT_ERROR_DEVICE, "%s: %s (%d): %s", call,
              cudaGetErrorName(error), static_cast<int>(error), cudaGetErrorString(error));
}

Gpu::Gpu(const device::Host *host, uint32_t index) noexcept : host_(host), index_(static_cast<int>(index)) {
  (void)std::snprintf(label_, sizeof label_, "cuda:%u", index);
  lost_text_[0] = '\0';
}

ckpt_status Gpu::open(const device::Host *host, uint32_t index, Gpu **out) {
  *out = nullptr;
  set_host(host);
  CKPT_CUDA(find_device(host, index));
  std::unique_ptr<Gpu> gpu(new (std::nothrow) Gpu(host, index));
  if (gpu == nullptr) return refuse(host, CKPT_ERROR_OUT_OF_MEMORY, "cuda:%u: the host refused %zu bytes", index, sizeof(Gpu));
  const Scope scope(*gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu->bind());  // its context is made now: what is wrong with it shows here
  int major = 0, minor = 0;
  CKPT_CUDA(gpu->report(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu->index_), "cudaDeviceGetAttribute"));
  CKPT_CUDA(gpu->report(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu->index_), "cudaDeviceGetAttribute"));
  if (major < kLeastMajor)
    return gpu->fail(CKPT_ERROR_UNSUPPORTED, "the device has compute capability %d.%d, expected at least %d.0", major, minor, kLeastMajor);
  gpu->sm_ = 10 * major + minor;
  if (gpu->driver_.load()) {
    int mapped = 0;
    CUdevice device = 0;
    const Driver &driver = gpu->driver_;
    CKPT_CUDA(gpu->report(static_cast<cudaError_t>(driver.device_get(&device, gpu->index_)), "cuDeviceGet"));
    CKPT_CUDA(gpu->report(static_cast<cudaError_t>(driver.device_get_attribute(&mapped, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device)),
                          "cuDeviceGetAttribute"));
    if (mapped != 0) {
      const CUmemAllocationProp properties = mapped_memory(gpu->index_);
      CKPT_CUDA(gpu->report(static_cast<cudaError_t>(driver.granularity(&gpu->granularity_, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)),
                            "cuMemGetAllocationGranularity"));
    }
  }
  *out = gpu.release();
  return CKPT_OK;
}

Gpu::~Gpu() {
  const Scope scope(*this);
  const OutsideCapture outside;
  if (hash_scratch_ != nullptr && cudaFree(hash_scratch_) != cudaSuccess) (void)cudaGetLastError();
}

ckpt_status Gpu::fail(ckpt_status status, const char *format, ...) const noexcept {
  char text[768];
  const int label = std::snprintf(text, sizeof text, "%s: ", label_);
  va_list arguments;
  va_start(arguments, format);
  write(text + label, sizeof text - static_cast<size_t>(label), format, arguments);
  va_end(arguments);
  return host_->fail(status, text);
}

ckpt_status Gpu::usable() const noexcept {
  if (!lost_.load(std::memory_order_acquire)) return CKPT_OK;
  return fail(CKPT_ERROR_DEVICE, "the device was lost by an earlier error and refuses work until the process is started anew: %s", lost_text_);
}

ckpt_status Gpu::bind() noexcept { return report(cudaSetDevice(index_), "cudaSetDevice(%d)", index_); }

ckpt_status Gpu::remember(cudaError_t error, const char *call) noexcept {
  const std::lock_guard<std::mutex> lock(lost_mutex_);
  if (!lost_.load(std::memory_order_relaxed)) {
    (void)std::snprintf(lost_text_, sizeof lost_text_, "%s (%d): %s, found by %s", cudaGetErrorName(error), static_cast<int>(error),
                        cudaGetErrorString(error), call);
    lost_.store(true, std::memory_order_release);
  }
  return fail(CKPT_ERROR_DEVICE, "%s: work that was enqueued before failed, and the device is lost: %s (%d): %s", call, cudaGetErrorName(error),
              static_cast<int>(error), cudaGetErrorString(error));
}

ckpt_status Gpu::report(cudaError_t error, const char *format, ...) noexcept {
  if (error == cudaSuccess) return CKPT_OK;
  (void)cudaGetLastError();  // else the next launch of this thread would report it again
  char call[256];
  va_list arguments;
  va_start(arguments, format);
  write(call, sizeof call, format, arguments);
  va_end(arguments);
  if (loses_the_device(error)) return remember(error, call);
  const char *name = cudaGetErrorName(error), *what = cudaGetErrorString(error);
  if (of_capture(error)) return fail(CKPT_ERROR_CAPTURE, "%s: %s (%d): %s", call, name, static_cast<int>(error), what);
  size_t available = 0, total = 0;
  if (error == cudaErrorMemoryAllocation && cudaMemGetInfo(&available, &total) == cudaSuccess)
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: %s (%d): %s; free %zu, total %zu bytes", call, name, static_cast<int>(error), what, available, total);
  if (error == cudaErrorMemoryAllocation) return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: %s (%d): %s", call, name, static_cast<int>(error), what);
  return fail(CKPT_ERROR_DEVICE, "%s: %s (%d): %s", call, name, static_cast<int>(error), what);
}

ckpt_status Gpu::report_memory(cudaError_t error, const char *call, size_t wanted) noexcept {
  if (error != cudaErrorMemoryAllocation) return report(error, "%s(%zu bytes)", call, wanted);
  (void)cudaGetLastError();
  size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the device refused %zu bytes, and does not say what is free", call, wanted);
  }
  return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the device refused %zu bytes; free %zu, total %zu", call, wanted, available, total);
}

ckpt_status Gpu::check_stream(cudaStream_t stream, const char *function) const noexcept {
  if (stream != nullptr && stream != cudaStreamLegacy) return CKPT_OK;
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: stream is the legacy default stream, which waits for all others; expected a stream of its own "
              "(ckpt_device_stream_create, or cudaStreamCreateWithFlags with cudaStreamNonBlocking)", function);
}

ckpt_status Gpu::check_not_captured(cudaStream_t stream, const char *function) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CKPT_CUDA(report(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing"));
  if (status == cudaStreamCaptureStatusNone) return CKPT_OK;
  return fail(CKPT_ERROR_CAPTURE, "%s cannot be part of a graph, and the stream is being captured", function);
}

Scope::Scope(Gpu &gpu) noexcept : outer_(std::exchange(t_gpu, &gpu)), status_(gpu.usable()) {
  if (status_ != CKPT_OK) return;
  int device = -1;
  status_ = gpu.report(cudaGetDevice(&device), "cudaGetDevice");
  if (status_ != CKPT_OK || device == gpu.index()) return;
  status_ = gpu.bind();
  if (status_ == CKPT_OK) before_ = device;
}

Scope::~Scope() {
  t_gpu = outer_;
  if (before_ >= 0 && cudaSetDevice(before_) != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace ckpt::cuda
