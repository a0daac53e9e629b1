// Captures and graphs. A graph keeps one lane for each stream that took part, and records and waits between lanes; a replay runs the
// lanes at the same time, so a dependency that the capture does not have is missing in every replay.
#include "streams.h"

namespace cudasim {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

// Under the lock of streams.
void leave(const CaptureP &c) {
  for (const auto &s : streams().running)
    if (s->capture == c) s->capture = nullptr;
  std::erase(streams().captures, c);
  c->over = true;
}

bool joined(const Capture &c) {
  for (size_t k = 0; k < c.seen.size(); ++k)
    if (c.seen[0][k] < c.seen[k][k]) return false;
  return true;
}

struct Replay {
  std::shared_ptr<const Graph> graph;
  std::vector<RecordP> records;
  void run(size_t lane) const {
    for (const Step &step : graph->lanes[lane]) {
      if (step.wait >= 0) {
        wait_for(records[static_cast<size_t>(step.wait)]);
        continue;
      }
      if (sticky() == cudaSuccess)
        if (const cudaError_t error = step.op.run(); error != cudaSuccess) set_sticky(error, "");
      if (step.record >= 0) finish(records[static_cast<size_t>(step.record)], 0);
    }
  }
};

cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  if (out == nullptr || flags != 0) return cudaErrorInvalidValue;
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (!streams().graphs.contains(graph)) return cudaErrorInvalidValue;
  }
  const auto lanes = std::make_shared<Lanes>();
  for (size_t k = 1; k < graph->graph->lanes.size(); ++k) lanes->streams.push_back(make_stream(false, false));
  auto *exec = new CUgraphExec_st{graph->graph, lanes};
  std::lock_guard<std::mutex> hold(streams().lock);
  streams().execs.insert(exec);
  ++live().graph_execs;
  *out = exec;
  return cudaSuccess;
}

}  // namespace

Lanes::~Lanes() {
  for (const auto &s : streams) {
    std::lock_guard<std::mutex> hold(s->lock);
    s->stop = true;
    s->work.notify_all();
  }
}

void refuse_in_captures(cudaError_t *error) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return;
  std::lock_guard<std::mutex> hold(streams().lock);
  for (const CaptureP &c : streams().captures) {
    const bool own = c->thread == std::this_thread::get_id();
    if (c->mode == cudaStreamCaptureModeRelaxed) continue;
    if (!own && (c->mode != cudaStreamCaptureModeGlobal || thread_mode != cudaStreamCaptureModeGlobal)) continue;
    c->broken = true;
    *error = cudaErrorStreamCaptureUnsupported;
  }
}

}  // namespace cudasim

using namespace cudasim;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  CUDASIM_ENTER();
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  CUDASIM_ENTER();
  if (is_legacy(s)) return keep(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  std::lock_guard<std::mutex> hold(streams().lock);
  if (s->capture != nullptr) return keep(cudaErrorIllegalState);
  auto c = std::make_shared<Capture>();
  c->graph.lanes.resize(1);
  c->seen.assign(1, Clock(1));
  c->mode = mode;
  c->origin = s;
  c->thread = std::this_thread::get_id();
  c->id = ++streams().captures_begun;
  s->capture = c;
  s->lane = 0;
  streams().captures.push_back(c);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
  CUDASIM_GIVE_BACK(0);  // the capture is over whatever it returns
  if (out == nullptr) return keep(cudaErrorInvalidValue);
  *out = nullptr;
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  std::lock_guard<std::mutex> hold(streams().lock);
  const CaptureP c = is_legacy(s) ? nullptr : s->capture;
  if (c == nullptr) return keep(cudaErrorIllegalState);
  if (c->origin != s) {
    c->broken = true;
    return keep(cudaErrorStreamCaptureUnmatched);
  }
  if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id()) return keep(cudaErrorStreamCaptureWrongThread);
  leave(c);
  if (entered != cudaSuccess) return keep(entered);
  if (c->broken) return keep(cudaErrorStreamCaptureInvalidated);
  if (!joined(*c)) return keep(cudaErrorStreamCaptureUnjoined);
  *out = new CUgraph_st{std::make_shared<const Graph>(std::move(c->graph))};
  streams().graphs.insert(*out);
  ++live().graphs;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *out) {
  CUDASIM_ENTER();
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  std::lock_guard<std::mutex> hold(streams().lock);
  const Capture *c = is_legacy(s) ? nullptr : s->capture.get();
  *out = c == nullptr ? cudaStreamCaptureStatusNone : c->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

// The graph under construction is not shown.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count) {
  CUDASIM_ENTER();
  if (status == nullptr) return keep(cudaErrorInvalidValue);
  if (graph != nullptr || nodes != nullptr || edges != nullptr || count != nullptr) return keep(cudaErrorNotSupported);
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  std::lock_guard<std::mutex> hold(streams().lock);
  const Capture *c = is_legacy(s) ? nullptr : s->capture.get();
  *status = c == nullptr ? cudaStreamCaptureStatusNone : c->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  if (id != nullptr && c != nullptr) *id = c->id;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  CUDASIM_ENTER();
  return keep(instantiate(out, graph, flags));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  CUDASIM_ENTER();
  return keep(instantiate(out, graph, flags));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s) {
  CUDASIM_ENTER();
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  std::lock_guard<std::mutex> hold(streams().lock);
  return keep(streams().execs.contains(exec) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  CUDASIM_ENTER();
  if (const cudaError_t error = check_stream(s); error != cudaSuccess) return keep(error);
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (!streams().execs.contains(exec)) return keep(cudaErrorInvalidValue);
    if (!is_legacy(s) && s->capture != nullptr) {  // a graph within a graph
      s->capture->broken = true;
      return keep(cudaErrorNotSupported);
    }
  }
  {
    std::lock_guard<std::mutex> hold(stats_lock());
    ++stats().graph_launches;
  }
  return keep(enqueue(s, {[graph = exec->graph, lanes = exec->lanes] {
                            const auto replay = std::make_shared<Replay>();
                            replay->graph = graph;
                            for (int k = 0; k < graph->records; ++k) replay->records.push_back(std::make_shared<Record>());
                            for (size_t k = 0; k < lanes->streams.size(); ++k)
                              lanes->streams[k]->push({[replay, k] {
                                                replay->run(k + 1);
                                                return cudaSuccess;
                                              },
                                              true});
                            replay->run(0);
                            return cudaSuccess;
                          }}));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CUDASIM_GIVE_BACK(0);
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (streams().graphs.erase(graph) == 0) return keep(cudaErrorInvalidValue);
    --live().graphs;
  }
  delete graph;
  return keep(entered);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  CUDASIM_GIVE_BACK(0);
  {
    std::lock_guard<std::mutex> hold(streams().lock);
    if (streams().execs.erase(exec) == 0) return keep(cudaErrorInvalidValue);
    --live().graph_execs;
  }
  delete exec;
  return keep(entered);
}

}  // extern "C"
