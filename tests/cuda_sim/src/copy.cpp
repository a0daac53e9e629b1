// Copies and fills.
#include "state.h"

namespace cudasim {
namespace {

bool is_known(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

cudaError_t run_copy(void *to, const void *from, size_t bytes) {
  if (where_is(to, bytes) == Where::bad || where_is(from, bytes) == Where::bad) {
    set_report("copy: its memory was freed before it ran");
    return cudaErrorIllegalAddress;
  }
  note_access(from, bytes, false);
  note_access(to, bytes, true);
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

// Pageable memory: a source is read at the call; a destination is written before the call returns.
cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s, bool asynchronous) {
  if (!is_known(kind)) return cudaErrorInvalidMemcpyDirection;
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  const Where there = where_is(to, bytes), here = where_is(from, bytes);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (there == Where::bad || here == Where::bad || (to_device && there == Where::outside) || (from_device && here == Where::outside))
    return cudaErrorInvalidValue;
  const bool pageable = there == Where::outside || here == Where::outside;
  if (pageable && is_capturing(s)) {
    cudaError_t error = cudaErrorStreamCaptureUnsupported;
    refuse_in_captures(&error);
    return error;
  }
  const unsigned delay = asynchronous ? issue(CUDASIM_COPY) : 0;
  {
    std::lock_guard<std::mutex> hold(stats_lock());
    ++stats().copies;
    stats().copied_bytes += bytes;
  }
  std::shared_ptr<std::string> staged;
  if (asynchronous && here == Where::outside) {
    note_access(from, bytes, false);
    staged = std::make_shared<std::string>(static_cast<const char *>(from), bytes);
    from = staged->data();
  }
  const cudaError_t error = enqueue(s, {[=, staged = std::move(staged)] {
                                      sleep_for(delay);
                                      return run_copy(to, from, bytes);
                                    }});
  if (error != cudaSuccess) return error;
  return !asynchronous || there == Where::outside ? wait_stream(s) : cudaSuccess;
}

cudaError_t fill(void *data, int value, size_t bytes, cudaStream_t s) {
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  if (where_is(data, bytes) != Where::inside) return cudaErrorInvalidValue;
  return enqueue(s, {[=] {
                   if (where_is(data, bytes) != Where::inside) {
                     set_report("memset: its memory was freed before it ran");
                     return cudaErrorIllegalAddress;
                   }
                   note_access(data, bytes, true);
                   std::memset(data, value, bytes);
                   return cudaSuccess;
                 }});
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

extern "C" {

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  CUDASIM_ENTER();
  return keep(copy(to, from, bytes, kind, s, true));
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  CUDASIM_ENTER(kUnsafe);
  return keep(copy(to, from, bytes, kind, nullptr, false));
}
cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t s) {
  CUDASIM_ENTER();
  return keep(fill(data, value, bytes, s));
}
cudaError_t cudaMemset(void *data, int value, size_t bytes) {
  CUDASIM_ENTER(kUnsafe);
  return keep(fill(data, value, bytes, nullptr));
}
// Symbols are ordinary variables here.
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind) {
  CUDASIM_ENTER(kUnsafe);
  if (const cudaError_t error = wait_stream(nullptr); error != cudaSuccess) return keep(error);
  std::memcpy(static_cast<char *>(const_cast<void *>(symbol)) + offset, from, bytes);
  return cudaSuccess;
}

}  // extern "C"
