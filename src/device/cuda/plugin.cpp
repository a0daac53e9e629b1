// The plugin's one exported object: the table of functions of a CUDA device.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"
#include "device/cuda/ranges.h"
#if __has_include("ops/cuda/table.h")
#include "ops/cuda/table.h"
#define CKPT_CUDA_HAS_OPS 1
#endif

namespace ckpt::cuda {
namespace {

Gpu &gpu_of(void *self) { return *static_cast<Gpu *>(self); }
cudaStream_t stream_of(void *stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void *event) { return static_cast<cudaEvent_t>(event); }

// Nothing is thrown across the table: what may ask the host for memory runs in here.
template <class Body>
ckpt_status without_exceptions(Gpu &gpu, Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return gpu.fail(CKPT_ERROR_OUT_OF_MEMORY, "the host refused memory for the device's tables");
  } catch (...) {
    return gpu.fail(CKPT_ERROR_INTERNAL, "an unexpected exception");
  }
}

// Of what gives things back: there is nobody to tell.
void forgive(cudaError_t error) noexcept {
  if (error != cudaSuccess) (void)cudaGetLastError();
}

// ---- the device ----

ckpt_status open(const device::Host *host, uint32_t index, void **out_self) {
  *out_self = nullptr;
  Gpu *gpu = nullptr;
  CKPT_CUDA(Gpu::open(host, index, &gpu));
  *out_self = gpu;
  return CKPT_OK;
}

void close(void *self) { delete static_cast<Gpu *>(self); }

ckpt_status info(void *self, ckpt_device_info *out) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  const OutsideCapture outside;
  cudaDeviceProp properties;
  CKPT_CUDA(gpu.report(cudaGetDeviceProperties(&properties, gpu.index()), "cudaGetDeviceProperties"));
  CKPT_CUDA(gpu.report(cudaMemGetInfo(&out->available_bytes, &out->total_bytes), "cudaMemGetInfo"));
  out->kind = CKPT_DEVICE_KIND_CUDA;
  out->index = static_cast<uint32_t>(gpu.index());
  out->thread_count = 0;
  (void)std::snprintf(out->name, sizeof out->name, "%.*s", static_cast<int>(sizeof out->name - 1), properties.name);
  return CKPT_OK;
}

// ---- memory ----

ckpt_status reserve(void *self, size_t bytes, size_t alignment, uint32_t flags, void **out) {
  Gpu &gpu = gpu_of(self);
  *out = nullptr;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  return without_exceptions(gpu, [&] { return gpu.reserve(bytes, alignment, flags, out); });
}

void release(void *self, void *data, size_t) {
  const Scope scope(gpu_of(self));
  gpu_of(self).release(data);
}

ckpt_status commit(void *self, void *data, size_t bytes) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  return without_exceptions(gpu, [&] { return gpu.commit(data, bytes); });
}

ckpt_status host_reserve(void *self, size_t bytes, void **out) {
  Gpu &gpu = gpu_of(self);
  *out = nullptr;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  const OutsideCapture outside;
  const cudaError_t error = cudaHostAlloc(out, bytes, cudaHostAllocPortable);
  if (error == cudaSuccess) return CKPT_OK;
  *out = nullptr;
  if (error != cudaErrorMemoryAllocation) return gpu.report(error, "cudaHostAlloc(%zu bytes)", bytes);
  forgive(error);
  return gpu.fail(CKPT_ERROR_OUT_OF_MEMORY, "cudaHostAlloc: the host refused %zu bytes of pinned memory", bytes);
}

void host_release(void *self, void *data, size_t) {
  const Scope scope(gpu_of(self));
  const OutsideCapture outside;
  forgive(cudaFreeHost(data));
}

// ---- work ----

// In a graph a copy names the memory for good; pageable host memory is copied through the driver's own, at the call.
ckpt_status check_host_memory(Gpu &gpu, cudaStream_t stream, const void *host) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CKPT_CUDA(gpu.report(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing"));
  if (status == cudaStreamCaptureStatusNone) return CKPT_OK;
  const OutsideCapture outside;
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, host);
  if (error != cudaSuccess) forgive(error);
  if (error == cudaSuccess && attributes.type == cudaMemoryTypeHost) return CKPT_OK;
  return gpu.fail(CKPT_ERROR_CAPTURE, "a copy from or to %p cannot be part of a graph: that is no pinned host memory (ckpt_device_host_alloc), and the stream is being captured", host);
}

ckpt_status copy(void *self, void *stream, void *to, const void *from, size_t bytes, device::Copy kind) {
  constexpr cudaMemcpyKind kKinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
  constexpr const char *kNames[] = {"host to device", "device to host", "device to device"};
  Gpu &gpu = gpu_of(self);
  const auto k = static_cast<uint32_t>(kind);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "copy"));
  if (kind != device::Copy::device_to_device)
    CKPT_CUDA(check_host_memory(gpu, stream_of(stream), kind == device::Copy::host_to_device ? from : to));
  return gpu.report(cudaMemcpyAsync(to, from, bytes, kKinds[k], stream_of(stream)), "cudaMemcpyAsync(%s, %zu bytes)", kNames[k], bytes);
}

ckpt_status fill(void *self, void *stream, void *data, uint8_t value, size_t bytes) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "fill"));
  return gpu.report(cudaMemsetAsync(data, value, bytes, stream_of(stream)), "cudaMemsetAsync(%zu bytes)", bytes);
}

// Hashes are for finding faults: the result is waited for, so that one piece of scratch memory serves all streams.
ckpt_status hash(void *self, void *stream, const void *data, size_t bytes, uint64_t *out) {
  constexpr size_t kResult = 256;  // the result's place, and the alignment of what follows
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "hash"));
  CKPT_CUDA(gpu.check_not_captured(stream_of(stream), "a hash"));
  const OutsideCapture outside;
  const std::lock_guard<std::mutex> lock(gpu.hash_mutex);
  const size_t workspace = hash_workspace(bytes);
  void *scratch = nullptr;
  CKPT_CUDA(gpu.hash_scratch(kResult + workspace, &scratch));
  CKPT_CUDA(gpu.report(hash_launch(stream_of(stream), data, bytes, static_cast<uint64_t *>(scratch), static_cast<char *>(scratch) + kResult, workspace),
                       "the hash kernel(%zu bytes)", bytes));
  CKPT_CUDA(gpu.report(cudaMemcpyAsync(out, scratch, sizeof *out, cudaMemcpyDeviceToHost, stream_of(stream)), "cudaMemcpyAsync(device to host, 8 bytes)"));
  return gpu.report(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
}

ckpt_status philox(void *self, void *stream, device::Fill fill_kind, const ckpt_philox *snapshot, uint64_t first, size_t count, double a, double b,
                   void *out) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "philox"));
  return gpu.report(philox_launch(stream_of(stream), fill_kind, *snapshot, first, count, a, b, out), "the Philox kernel(%zu elements)", count);
}

ckpt_status write_word(void *self, void *stream, uint64_t *word, uint64_t value) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "write_word"));
  return gpu.report(word_launch(stream_of(stream), word, value), "the kernel that writes a word");
}

ckpt_status synchronize(void *self, void *stream) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "synchronize"));
  CKPT_CUDA(gpu.check_not_captured(stream_of(stream), "a wait for the stream"));
  const OutsideCapture outside;
  return gpu.report(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
}

// ---- streams and events ----

ckpt_status stream_create(void *self, void **out_stream) {
  Gpu &gpu = gpu_of(self);
  *out_stream = nullptr;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  const OutsideCapture outside;
  cudaStream_t stream = nullptr;
  CKPT_CUDA(gpu.report(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  *out_stream = stream;
  return CKPT_OK;
}

void stream_destroy(void *self, void *stream) {
  const Scope scope(gpu_of(self));
  const OutsideCapture outside;
  if (stream != nullptr) forgive(cudaStreamDestroy(stream_of(stream)));
}

ckpt_status event_create(void *self, void **out_event) {
  Gpu &gpu = gpu_of(self);
  *out_event = nullptr;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  const OutsideCapture outside;
  cudaEvent_t event = nullptr;
  CKPT_CUDA(gpu.report(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags"));
  *out_event = event;
  return CKPT_OK;
}

void event_destroy(void *self, void *event) {
  const Scope scope(gpu_of(self));
  const OutsideCapture outside;
  if (event != nullptr) forgive(cudaEventDestroy(event_of(event)));
}

ckpt_status event_record(void *self, void *event, void *stream) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "event_record"));
  return gpu.report(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
}

ckpt_status event_wait(void *self, void *stream, void *event) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "event_wait"));
  return gpu.report(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "cudaStreamWaitEvent");
}

ckpt_status event_done(void *self, void *event, uint32_t *out_done) {
  Gpu &gpu = gpu_of(self);
  *out_done = 0;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  const OutsideCapture outside;
  const cudaError_t error = cudaEventQuery(event_of(event));
  if (error == cudaErrorNotReady) {
    forgive(error);
    return CKPT_OK;
  }
  CKPT_CUDA(gpu.report(error, "cudaEventQuery"));
  *out_done = 1;
  return CKPT_OK;
}

ckpt_status event_elapsed(void *self, void *from, void *to, double *out_seconds) {
  Gpu &gpu = gpu_of(self);
  *out_seconds = 0;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  const OutsideCapture outside;
  float milliseconds = 0;
  CKPT_CUDA(gpu.report(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)), "cudaEventElapsedTime"));
  *out_seconds = 1e-3 * static_cast<double>(milliseconds);
  return CKPT_OK;
}

// ---- graphs ----

ckpt_status capturing(void *self, void *stream, uint32_t *out_capturing) {
  Gpu &gpu = gpu_of(self);
  *out_capturing = 0;
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "capturing"));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CKPT_CUDA(gpu.report(cudaStreamIsCapturing(stream_of(stream), &status), "cudaStreamIsCapturing"));
  if (status == cudaStreamCaptureStatusNone) return CKPT_OK;
  unsigned long long id = 0;  // of the process; an invalidated capture goes on until it is ended, and may have none
  CKPT_CUDA(gpu.report(cudaStreamGetCaptureInfo(stream_of(stream), &status, &id), "cudaStreamGetCaptureInfo"));
  *out_capturing = std::max(static_cast<uint32_t>(id), uint32_t{1});
  return CKPT_OK;
}

// Thread-local: what other threads do meanwhile neither comes into the graph nor invalidates it.
ckpt_status capture_begin(void *self, void *stream) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "capture_begin"));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CKPT_CUDA(gpu.report(cudaStreamIsCapturing(stream_of(stream), &status), "cudaStreamIsCapturing"));
  if (status != cudaStreamCaptureStatusNone) return gpu.fail(CKPT_ERROR_STATE, "capture_begin: the stream is being captured already");
  return gpu.report(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

// Ends a capture of which something has failed before or while it was ended, so that the stream can be used.
void abandon_capture(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t asked = cudaStreamIsCapturing(stream, &status);
  forgive(asked);
  if (asked == cudaSuccess && status == cudaStreamCaptureStatusNone) return;
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  forgive(ended);
  if (ended == cudaSuccess && graph != nullptr) forgive(cudaGraphDestroy(graph));
}

ckpt_status end_capture(Gpu &gpu, cudaStream_t stream, cudaGraph_t *graph) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CKPT_CUDA(gpu.report(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing"));
  if (status == cudaStreamCaptureStatusNone) return gpu.fail(CKPT_ERROR_STATE, "capture_end: the stream is not being captured");
  return gpu.report(cudaStreamEndCapture(stream, graph), "cudaStreamEndCapture");
}

ckpt_status capture_end(void *self, void *stream, void **out_graph) {
  Gpu &gpu = gpu_of(self);
  *out_graph = nullptr;
  const Scope scope(gpu);
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "capture_end"));
  cudaGraph_t graph = nullptr;
  const ckpt_status ended = scope.status() != CKPT_OK ? scope.status() : end_capture(gpu, stream_of(stream), &graph);
  if (ended != CKPT_OK) {
    abandon_capture(stream_of(stream));
    return ended;
  }
  cudaGraphExec_t ready = nullptr;
  const ckpt_status made = gpu.report(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  forgive(cudaGraphDestroy(graph));
  CKPT_CUDA(made);
  *out_graph = ready;
  return CKPT_OK;
}

ckpt_status graph_launch(void *self, void *graph, void *stream) {
  Gpu &gpu = gpu_of(self);
  const Scope scope(gpu);
  CKPT_CUDA(scope.status());
  CKPT_CUDA(gpu.check_stream(stream_of(stream), "graph_launch"));
  CKPT_CUDA(gpu.check_not_captured(stream_of(stream), "the launch of a graph"));
  return gpu.report(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)), "cudaGraphLaunch");
}

void graph_destroy(void *self, void *graph) {
  const Scope scope(gpu_of(self));
  const OutsideCapture outside;
  if (graph != nullptr) forgive(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}

const void *interface(const char *name) {
#ifdef CKPT_CUDA_HAS_OPS
  if (std::strcmp(name, "ops") == 0) return ops::cuda::table();
#endif
  return std::strcmp(name, "ranges") == 0 ? ranges() : nullptr;
}

}  // namespace
}  // namespace ckpt::cuda

extern "C" __attribute__((visibility("default"))) const ckpt::device::Plugin ckpt_device_plugin = {
    ckpt::device::kPluginVersion,
    CKPT_DEVICE_KIND_CUDA,
    {ckpt::cuda::open, ckpt::cuda::close, ckpt::cuda::info, ckpt::cuda::reserve, ckpt::cuda::release, ckpt::cuda::commit,
     ckpt::cuda::host_reserve, ckpt::cuda::host_release, ckpt::cuda::copy, ckpt::cuda::fill, ckpt::cuda::hash, ckpt::cuda::philox,
     ckpt::cuda::write_word, ckpt::cuda::synchronize, ckpt::cuda::stream_create, ckpt::cuda::stream_destroy, ckpt::cuda::event_create,
     ckpt::cuda::event_destroy, ckpt::cuda::event_record, ckpt::cuda::event_wait, ckpt::cuda::event_done, ckpt::cuda::event_elapsed,
     ckpt::cuda::capturing, ckpt::cuda::capture_begin, ckpt::cuda::capture_end, ckpt::cuda::graph_launch, ckpt::cuda::graph_destroy, 1, 0},
    ckpt::cuda::interface};
