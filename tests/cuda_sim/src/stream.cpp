// Streams: operating-system threads with a queue each. A destroyed stream finishes its queue, as on the device.
#include <algorithm>

#include "state.h"
#include "streams.h"

namespace cudasim {
// Never destroyed: threads of streams may outlive main.
Streams &streams() {
  static Streams *s = new Streams;
  return *s;
}
std::mutex &streams_lock() { return streams().lock; }

std::shared_ptr<CUstream_st> make_stream(bool blocking, bool counted) {
  auto s = std::make_shared<CUstream_st>();
  s->blocking = blocking;
  s->counted = counted;
  std::thread([s] { s->loop(); }).detach();
  std::lock_guard<std::mutex> hold(streams().lock);
  streams().running.push_back(s);
  if (counted) ++live().streams;
  return s;
}

bool is_legacy(cudaStream_t s) { return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread; }

namespace {
CUstream_st *real(cudaStream_t s) {
  if (!is_legacy(s)) return s;
  static std::once_flag once;
  std::call_once(once, [] { streams().legacy = make_stream(false, false).get(); });  // runs for ever
  return streams().legacy;
}

// The legacy stream waits for all blocking streams, and they for it.
void push(cudaStream_t stream, Op op) {
  CUstream_st *s = real(stream), *const first = streams().legacy;
  std::vector<std::pair<std::shared_ptr<CUstream_st>, unsigned long>> before;
  if (s == first || s->blocking) {
    std::lock_guard<std::mutex> hold(streams().lock);
    for (const auto &other : streams().running)
      if (other.get() != s && (s == first ? other->blocking && other->counted : other.get() == first)) {
        std::lock_guard<std::mutex> inner(other->lock);
        if (other->done < other->issued) before.emplace_back(other, other->issued);
      }
  }
  if (before.empty()) return s->push(std::move(op));
  s->push({[before = std::move(before), run = std::move(op.run)] {
             for (const auto &[other, ticket] : before) other->wait(ticket);
             return run();
           },
           op.always});
}
}  // namespace

cudaError_t check_stream(cudaStream_t s) {
  if (is_legacy(s)) return cudaSuccess;
  std::lock_guard<std::mutex> hold(streams().lock);
  for (const auto &known : streams().running)
    if (known.get() == s && known->counted && !known->stop) return cudaSuccess;
  return cudaErrorInvalidResourceHandle;
}

cudaError_t check_current(cudaStream_t s) {
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return error;
  return is_legacy(s) || s->device == current_device() ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

bool is_capturing(cudaStream_t s) {
  if (is_legacy(s)) return false;
  std::lock_guard<std::mutex> hold(streams().lock);
  return s->capture != nullptr;
}

cudaError_t enqueue(cudaStream_t s, Op op) {
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return error;
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (is_legacy(s)) {
      bool broken = false;
      for (const auto &c : streams().captures)
        if (c->mode != cudaStreamCaptureModeRelaxed) c->broken = broken = true;
      if (broken) return cudaErrorStreamCaptureImplicit;
    } else if (s->capture != nullptr) {
      Capture &c = *s->capture;
      if (c.broken) return cudaErrorStreamCaptureInvalidated;
      c.graph.lanes[s->lane].push_back({std::move(op)});
      ++c.seen[s->lane][s->lane];
      return cudaSuccess;
    }
  }
  push(s, std::move(op));
  return cudaSuccess;
}

cudaError_t wait_stream(cudaStream_t s) {
  if (is_legacy(s)) push(s, {[] { return cudaSuccess; }, true});
  CUstream_st *stream = real(s);
  unsigned long ticket;
  {
    std::lock_guard<std::mutex> hold(stream->lock);
    ticket = stream->issued;
  }
  stream->wait(ticket);
  return sticky();
}

void drain(bool edges) {
  std::vector<std::shared_ptr<CUstream_st>> all;
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    all = streams().running;
  }
  for (const auto &s : all) {
    std::unique_lock<std::mutex> hold(s->lock);
    s->idle.wait(hold, [&, ticket = s->issued] { return s->done >= ticket; });
    hold.unlock();
    if (edges) edge_acquire(&s->edge);
  }
}

cudaError_t wait_all() {
  drain(true);
  return sticky();
}

}  // namespace cudasim

using namespace cudasim;

void CUstream_st::push(Op op) {
  auto token = std::make_unique<char>();
  edge_release(token.get());
  std::lock_guard<std::mutex> hold(lock);
  queue.emplace_back(std::move(token), std::move(op));
  ++issued;
  work.notify_all();
}

void CUstream_st::wait(unsigned long ticket) {
  {
    std::unique_lock<std::mutex> hold(lock);
    idle.wait(hold, [&] { return done >= ticket; });
  }
  edge_acquire(&edge);
}

bool CUstream_st::ready() {
  {
    std::lock_guard<std::mutex> hold(lock);
    if (done < issued) return false;
  }
  edge_acquire(&edge);
  return true;
}

void CUstream_st::loop() {
  Quiet quiet;
  for (;;) {
    std::pair<std::unique_ptr<char>, Op> next;
    {
      std::unique_lock<std::mutex> hold(lock);
      work.wait(hold, [&] { return stop || !queue.empty(); });
      if (queue.empty()) break;
      next = std::move(queue.front());
      queue.pop_front();
    }
    edge_acquire(next.first.get());
    // A broken context runs nothing more.
    if (next.second.always || sticky() == cudaSuccess)
      if (const cudaError_t error = next.second.run(); error != cudaSuccess) set_sticky(error, "");
    next.second.run = nullptr;
    edge_release(&edge);
    std::lock_guard<std::mutex> hold(lock);
    ++done;
    idle.notify_all();
  }
  leave_thread();
  std::lock_guard<std::mutex> hold(streams().lock);
  std::erase_if(streams().running, [this](const auto &s) { return s.get() == this; });
}

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  CUDASIM_ENTER();
  if (out == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return keep(cudaErrorInvalidValue);
  *out = make_stream((flags & cudaStreamNonBlocking) == 0, true).get();
  (*out)->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  CUDASIM_ENTER();
  if (out == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return keep(cudaErrorInvalidValue);
  *out = make_stream((flags & cudaStreamNonBlocking) == 0, true).get();
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *out) {
  CUDASIM_ENTER();
  *out = make_stream(true, true).get();
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *out) {
  CUDASIM_ENTER();
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  *out = is_legacy(s) ? 0 : s->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *out) {
  CUDASIM_ENTER();
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  *out = is_legacy(s) || s->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  CUDASIM_GIVE_BACK(0);
  if (is_legacy(s) || check_stream(s) != cudaSuccess) return keep(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<CUstream_st> stays = s->shared_from_this();
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (s->capture != nullptr) s->capture->broken = true;
    --live().streams;
    std::lock_guard<std::mutex> inner(s->lock);
    s->stop = true;
    s->work.notify_all();
  }
  return keep(entered);
}

// Refused where the stream is captured, which ends the capture.
static cudaError_t refused(cudaStream_t s) {
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return error;
  std::lock_guard<std::mutex> hold(streams().lock);
  if (is_legacy(s) || s->capture == nullptr) return cudaSuccess;
  s->capture->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  CUDASIM_ENTER(kUnsafe);
  if (const cudaError_t error = refused(s); error != cudaSuccess) return keep(error);
  return keep(wait_stream(s));
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  CUDASIM_ENTER(kUnsafe);
  if (const cudaError_t error = refused(s); error != cudaSuccess) return keep(error);
  const bool ready = real(s)->ready();
  return keep(sticky() != cudaSuccess ? sticky() : ready ? cudaSuccess : cudaErrorNotReady);
}
// Of the device as a whole: refused while any of its streams is captured, whatever the modes are, and ends those captures.
cudaError_t cudaDeviceSynchronize() {
  CUDASIM_ENTER(kUnsafe);
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    for (const auto &c : streams().captures) c->broken = true;
    if (!streams().captures.empty()) return keep(cudaErrorStreamCaptureUnsupported);
  }
  return keep(wait_all());
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void *argument) {
  CUDASIM_ENTER();
  return keep(enqueue(s, {[=] {
                            Loud loud;
                            function(argument);
                            return cudaSuccess;
                          }}));
}

}  // extern "C"
