// Captures: what is recorded and replayed, how streams join, and everything that is refused.
#include <thread>

#include "common.h"
#include "races.h"

namespace {

constexpr size_t kCount = 64;  // few, so that a race is reported few times

__global__ void add(float *x, float by, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += gridDim.x * size_t{blockDim.x}) x[i] += by;
}

class SimCapture : public Sim {
 protected:
  void SetUp() override {
    Sim::SetUp();
    for (cudaStream_t *s : {&s_, &t_}) ASSERT_EQ(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), cudaSuccess);
    for (cudaEvent_t *e : {&e_, &f_}) ASSERT_EQ(cudaEventCreateWithFlags(e, cudaEventDisableTiming), cudaSuccess);
    x_ = std::make_unique<Device<float>>(std::vector<float>(kCount, 1));
    y_ = std::make_unique<Device<float>>(std::vector<float>(kCount, 1));
  }
  void TearDown() override {
    x_ = nullptr;
    y_ = nullptr;
    for (const cudaEvent_t e : {e_, f_}) cudaEventDestroy(e);
    for (const cudaStream_t s : {s_, t_}) cudaStreamDestroy(s);
    Sim::TearDown();
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) { ASSERT_EQ(cudaStreamBeginCapture(s_, mode), cudaSuccess); }
  void kernel(cudaStream_t s, float by = 1) { EXPECT_EQ(launch(add, 4, 64, 0, s, *x_, by, kCount), cudaSuccess); }
  // Ends the capture and replays it.
  void replay(int times) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(s_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int k = 0; k < times; ++k) EXPECT_EQ(cudaGraphLaunch(exec, s_), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);  // while it runs
    EXPECT_EQ(cudaStreamSynchronize(s_), cudaSuccess) << cudasim_report();
  }
  // A call inside a capture: its error, and that of the capture's end.
  template <class F>
  void refused(cudaError_t wanted, F call, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal,
               cudaError_t end = cudaErrorStreamCaptureInvalidated) {
    begin(mode);
    kernel(s_);
    EXPECT_EQ(cudaEventRecord(e_, s_), cudaSuccess);
    EXPECT_EQ(call(), wanted);
    cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(1);
    EXPECT_EQ(cudaStreamEndCapture(s_, &graph), end);
    if (end == cudaSuccess)
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    else
      EXPECT_EQ(graph, nullptr);
    cudaGetLastError();
  }

  cudaStream_t s_ = nullptr, t_ = nullptr;
  cudaEvent_t e_ = nullptr, f_ = nullptr;
  std::unique_ptr<Device<float>> x_, y_;
};

TEST_F(SimCapture, is_replayed_and_not_run) {
  begin();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA(cudaStreamIsCapturing(s_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  unsigned long long id = 0;
  CUDA(cudaStreamGetCaptureInfo(s_, &status, &id, nullptr, nullptr, nullptr, nullptr));
  EXPECT_GT(id, 0u);
  kernel(s_);
  CUDA(cudaMemcpyAsync(*y_, *x_, kCount * 4, cudaMemcpyDeviceToDevice, s_));
  CUDA(cudaMemsetAsync(*x_, 0, 4, s_));
  replay(3);
  CUDA(cudaStreamIsCapturing(s_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  EXPECT_EQ(x_->get()[1], 4);
  EXPECT_EQ(y_->get()[0], 1);
  EXPECT_EQ(y_->get()[1], 4);
}

// Two streams; what the fork or the join orders stays ordered in the replay.
TEST_F(SimCapture, forks_and_joins) {
  const auto body = [&](bool fork_late) {
    begin();
    if (fork_late) CUDA(cudaEventRecord(e_, s_));
    cudasim_delay(CUDASIM_KERNEL, 1, 20);
    kernel(s_);
    if (!fork_late) CUDA(cudaEventRecord(e_, s_));
    CUDA(cudaStreamWaitEvent(t_, e_, 0));
    CUDA(cudaMemcpyAsync(*y_, *x_, kCount * 4, cudaMemcpyDeviceToDevice, t_));
    CUDA(cudaEventRecord(f_, t_));
    CUDA(cudaStreamWaitEvent(s_, f_, 0));
    replay(1);
  };
  EXPECT_EQ(races([&] { body(false); }), 0);
  EXPECT_EQ(y_->get()[5], 2);
  // Forked before the kernel: the copy does not wait for it.
  const int reports = races([&] { body(true); });
  EXPECT_EQ(y_->get()[5], 2);
  EXPECT_EQ(x_->get()[5], 3);
  EXPECT_EQ(reports > 0, kFindsRaces);
}

TEST_F(SimCapture, unjoined_work) {
  begin();
  kernel(s_);
  CUDA(cudaEventRecord(e_, s_));
  CUDA(cudaStreamWaitEvent(t_, e_, 0));
  kernel(t_);
  CUDA(cudaEventRecord(f_, t_));
  kernel(t_);
  CUDA(cudaStreamWaitEvent(s_, f_, 0));  // the second kernel is not joined
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(s_, &graph), cudaErrorStreamCaptureUnjoined);
  kernel(t_);  // not captured any more
  CUDA(cudaStreamSynchronize(t_));
  // A stream that forked and did nothing needs no join.
  begin();
  CUDA(cudaEventRecord(e_, s_));
  CUDA(cudaStreamWaitEvent(t_, e_, 0));
  kernel(s_);
  replay(1);
}

TEST_F(SimCapture, what_is_refused_ends_the_capture) {
  void *p = nullptr;
  CUDA(cudaEventRecord(f_, t_));  // outside
  CUDA(cudaStreamSynchronize(t_));
  std::vector<float> host(4);
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&p, 4); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaMallocHost(&p, 4); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaFree(nullptr); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(s_); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(t_); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamQuery(s_); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaMemcpy(host.data(), *x_, 16, cudaMemcpyDeviceToHost); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaMemcpyAsync(host.data(), *x_, 16, cudaMemcpyDeviceToHost, s_); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaEventQuery(f_); });
  refused(cudaErrorStreamCaptureUnsupported, [&] { return cudaEventSynchronize(f_); });
  refused(cudaErrorCapturedEvent, [&] { return cudaEventQuery(e_); });
  refused(cudaErrorCapturedEvent, [&] { return cudaEventSynchronize(e_); });
  refused(cudaErrorStreamCaptureIsolation, [&] { return cudaStreamWaitEvent(s_, f_, 0); });
  refused(cudaErrorStreamCaptureImplicit, [&] { return launch(add, 1, 32, 0, nullptr, *x_, 1.0f, 1); });
  refused(cudaErrorStreamCaptureImplicit, [&] { return cudaMemsetAsync(*x_, 0, 4, nullptr); });
  // The device as a whole is not asked, whatever the thread's mode and whoever captures.
  refused(cudaErrorStreamCaptureUnsupported, [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] {
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
      error = cudaDeviceSynchronize();
    }).join();
    return error;
  });
  // Once it is broken, nothing more goes in.
  begin();
  EXPECT_EQ(cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(launch(add, 1, 32, 0, s_, *x_, 1.0f, 1), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventRecord(e_, s_), cudaErrorStreamCaptureInvalidated);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA(cudaStreamIsCapturing(s_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(s_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SimCapture, what_is_allowed) {
  void *p = nullptr;
  refused(cudaSuccess, [&] { return cudaMalloc(&p, 4); }, cudaStreamCaptureModeRelaxed, cudaSuccess);
  CUDA(cudaFree(p));
  refused(cudaSuccess, [&] { return launch(add, 1, 32, 0, t_, *x_, 1.0f, 1); }, cudaStreamCaptureModeThreadLocal, cudaSuccess);
  CUDA(cudaStreamSynchronize(t_));
  refused(cudaSuccess, [&] { return cudaStreamWaitEvent(t_, e_, 0); }, cudaStreamCaptureModeThreadLocal, cudaSuccess);
  // In a thread that says so.
  refused(cudaSuccess, [&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    const cudaError_t error = cudaEventQuery(f_);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
    return error;
  }, cudaStreamCaptureModeGlobal, cudaSuccess);
}

TEST_F(SimCapture, other_threads) {
  const auto elsewhere = [&](auto call) {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = call(); }).join();
    return error;
  };
  void *p = nullptr;
  const auto allocate = [&] { return elsewhere([&] { return cudaMalloc(&p, 4); }); };
  refused(cudaErrorStreamCaptureUnsupported, allocate, cudaStreamCaptureModeGlobal);
  refused(cudaSuccess, allocate, cudaStreamCaptureModeThreadLocal, cudaSuccess);
  CUDA(cudaFree(p));
  refused(cudaErrorStreamCaptureWrongThread, [&] {
    cudaGraph_t graph = nullptr;
    return elsewhere([&] { return cudaStreamEndCapture(s_, &graph); });
  }, cudaStreamCaptureModeThreadLocal, cudaSuccess);
}

TEST_F(SimCapture, begins_and_ends_in_order) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(s_, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(s_, cudaStreamCaptureModeThreadLocal), cudaErrorIllegalState);
  CUDA(cudaEventRecord(e_, s_));
  CUDA(cudaStreamWaitEvent(t_, e_, 0));
  EXPECT_EQ(cudaStreamEndCapture(t_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(s_, &graph), cudaErrorStreamCaptureInvalidated);
  // An event of a capture that is over is of no use until it is recorded again.
  EXPECT_EQ(cudaStreamWaitEvent(t_, e_, 0), cudaErrorCapturedEvent);
  CUDA(cudaEventRecord(e_, s_));
  CUDA(cudaStreamWaitEvent(t_, e_, 0));
  // Two captures do not merge.
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(t_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  CUDA(cudaEventRecord(e_, s_));
  EXPECT_EQ(cudaStreamWaitEvent(t_, e_, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(cudaStreamEndCapture(t_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(s_, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

// A failed end ends the capture all the same; failed launches and instantiations leave nothing.
TEST_F(SimCapture, failed_calls) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  begin();
  kernel(s_);
  cudasim_fail_call(1, cudaErrorMemoryAllocation, "cudaStreamEndCapture");
  EXPECT_EQ(cudaStreamEndCapture(s_, &graph), cudaErrorMemoryAllocation);
  EXPECT_EQ(graph, nullptr);
  begin();
  kernel(s_);
  CUDA(cudaStreamEndCapture(s_, &graph));
  cudasim_fail_call(1, cudaErrorMemoryAllocation, "cudaGraphInstantiate");
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorMemoryAllocation);
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
  CUDA(cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaGraphLaunch(exec, s_), cudaErrorInvalidValue);
  cudaGetLastError();
}

// A replay whose memory is gone, and one that breaks the context, hang nobody.
TEST_F(SimCapture, a_replay_that_fails) {
  float *p = nullptr;
  CUDA(cudaMalloc(&p, kCount * 4));
  begin();
  CUDA(cudaEventRecord(e_, s_));
  CUDA(cudaStreamWaitEvent(t_, e_, 0));
  CUDA(launch(add, 1, 32, 0, t_, p, 1.0f, kCount));
  CUDA(cudaEventRecord(f_, t_));
  CUDA(cudaStreamWaitEvent(s_, f_, 0));
  kernel(s_);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaStreamEndCapture(s_, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaFree(p));
  CUDA(cudaGraphLaunch(exec, s_));
  EXPECT_EQ(cudaStreamSynchronize(s_), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaErrorIllegalAddress);
  cudasim_reset();
}

}  // namespace
