// Events: points in a stream's time. What waits for an event waits for its latest record at the time of the call.
#include "streams.h"

namespace cudasim {

void finish(const RecordP &record, unsigned delay) {
  sleep_for(delay);
  edge_release(record.get());
  std::lock_guard<std::mutex> hold(record->lock);
  record->time = std::chrono::steady_clock::now();
  record->done = true;
  record->done_at.notify_all();
}

void wait_for(const RecordP &record) {
  {
    std::unique_lock<std::mutex> hold(record->lock);
    record->done_at.wait(hold, [&] { return record->done; });
  }
  edge_acquire(record.get());
}

bool known(cudaEvent_t event) {
  std::lock_guard<std::mutex> hold(streams().lock);
  return streams().events.contains(event);
}

namespace {

bool is_done(const RecordP &record) {
  std::lock_guard<std::mutex> hold(record->lock);
  return record->done;
}

// The record that a query or a wait of the host may look at: nullptr where there is none yet. A captured one is refused, which ends
// its capture.
cudaError_t outside_of_capture(cudaEvent_t event, RecordP *out) {
  if (!known(event)) return cudaErrorInvalidResourceHandle;
  std::lock_guard<std::mutex> hold(streams().lock);
  if (event->capture != nullptr) {
    event->capture->broken = true;
    return cudaErrorCapturedEvent;
  }
  *out = event->record;
  return cudaSuccess;
}

cudaError_t create(cudaEvent_t *out, unsigned flags) {
  if (out == nullptr) return cudaErrorInvalidValue;
  *out = new CUevent_st;
  (*out)->timing = (flags & cudaEventDisableTiming) == 0;
  std::lock_guard<std::mutex> hold(streams().lock);
  streams().events.insert(*out);
  ++live().events;
  return cudaSuccess;
}

cudaError_t record_captured(cudaEvent_t event, cudaStream_t s, unsigned delay) {
  Capture &c = *s->capture;
  if (c.broken) return cudaErrorStreamCaptureInvalidated;
  event->record = nullptr;
  event->capture = s->capture;
  event->number = c.graph.records++;
  event->clock = c.seen[s->lane];
  Step step;
  step.record = event->number;
  step.op.run = [delay] {
    sleep_for(delay);
    return cudaSuccess;
  };
  c.graph.lanes[s->lane].push_back(std::move(step));
  return cudaSuccess;
}

cudaError_t wait_captured(cudaStream_t s, cudaEvent_t event) {
  const CaptureP c = event->capture;
  if (c->over || is_legacy(s)) return cudaErrorCapturedEvent;
  if (c->broken) return cudaErrorStreamCaptureInvalidated;
  if (s->capture == nullptr) {  // the stream joins the capture
    s->capture = c;
    s->lane = c->graph.lanes.size();
    c->graph.lanes.emplace_back();
    c->seen.emplace_back();
    for (Clock &clock : c->seen) clock.resize(c->graph.lanes.size());
  } else if (s->capture != c) {
    s->capture->broken = c->broken = true;
    return cudaErrorStreamCaptureMerge;
  }
  Clock &mine = c->seen[s->lane];
  for (size_t k = 0; k < event->clock.size(); ++k) mine[k] = std::max(mine[k], event->clock[k]);
  Step step;
  step.wait = event->number;
  c->graph.lanes[s->lane].push_back(std::move(step));
  return cudaSuccess;
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  CUDASIM_ENTER();
  return keep(create(out, flags));
}
cudaError_t cudaEventCreate(cudaEvent_t *out) {
  CUDASIM_ENTER();
  return keep(create(out, cudaEventDefault));
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CUDASIM_GIVE_BACK(0);
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (streams().events.erase(event) == 0) return keep(cudaErrorInvalidResourceHandle);
    --live().events;
  }
  delete event;
  return keep(entered);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
  CUDASIM_ENTER();
  if (!known(event)) return keep(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  if (event->device != (is_legacy(s) ? current_device() : s->device)) return keep(cudaErrorInvalidResourceHandle);
  const unsigned delay = issue(CUDASIM_EVENT);
  if (!is_legacy(s)) {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (s->capture != nullptr) return keep(record_captured(event, s, delay));
  }
  const auto record = std::make_shared<Record>();
  const cudaError_t error = enqueue(s, {[record, delay] {
                                          finish(record, delay);
                                          return cudaSuccess;
                                        },
                                        true});
  if (error == cudaSuccess) {
    std::lock_guard<std::mutex> hold(streams().lock);
    event->record = record;
    event->capture = nullptr;
  }
  return keep(error);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t s, unsigned flags) {
  if (flags != cudaEventRecordDefault) return keep(cudaErrorNotSupported);
  return cudaEventRecord(event, s);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags) {
  CUDASIM_ENTER();
  if (flags != cudaEventWaitDefault) return keep(cudaErrorNotSupported);
  if (!known(event)) return keep(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  RecordP record;
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (event->capture != nullptr) return keep(wait_captured(s, event));
    record = event->record;
    if (record == nullptr) return cudaSuccess;  // never recorded
    if (!is_legacy(s) && s->capture != nullptr) {
      s->capture->broken = true;
      return keep(cudaErrorStreamCaptureIsolation);
    }
  }
  return keep(enqueue(s, {[record] {
                            wait_for(record);
                            return cudaSuccess;
                          },
                          true}));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  CUDASIM_ENTER();
  RecordP record;
  if (const cudaError_t error = outside_of_capture(event, &record); error != cudaSuccess) return keep(error);
  cudaError_t error = cudaSuccess;
  refuse_in_captures(&error);
  if (error != cudaSuccess) return keep(error);
  if (record == nullptr) return cudaSuccess;
  if (!is_done(record)) return cudaErrorNotReady;
  edge_acquire(record.get());
  return keep(sticky());
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CUDASIM_ENTER();
  RecordP record;
  if (const cudaError_t error = outside_of_capture(event, &record); error != cudaSuccess) return keep(error);
  cudaError_t error = cudaSuccess;
  refuse_in_captures(&error);
  if (error != cudaSuccess) return keep(error);
  if (record != nullptr) wait_for(record);
  return keep(sticky());
}

cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t from, cudaEvent_t to) {
  CUDASIM_ENTER();
  RecordP first, second;
  if (const cudaError_t error = outside_of_capture(from, &first); error != cudaSuccess) return keep(error);
  if (const cudaError_t error = outside_of_capture(to, &second); error != cudaSuccess) return keep(error);
  if (first == nullptr || second == nullptr || !from->timing || !to->timing || from->device != to->device) return keep(cudaErrorInvalidResourceHandle);
  if (!is_done(first) || !is_done(second)) return cudaErrorNotReady;
  *out = std::chrono::duration<float, std::milli>(second->time - first->time).count();
  return keep(sticky());
}

}  // extern "C"
