// Streams, events, copies: order where there is an edge, none where there is not.
#include "common.h"
#include "races.h"

namespace {

constexpr size_t kCount = 64;  // few, so that a race is reported few times

__global__ void twice(const float *x, float *y, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += gridDim.x * size_t{blockDim.x}) y[i] = 2 * x[i];
}

__global__ void nothing() {}

class SimStreams : public Sim {
 protected:
  void SetUp() override {
    Sim::SetUp();
    ASSERT_EQ(cudaStreamCreateWithFlags(&a_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&b_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&e_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    cudaEventDestroy(e_);
    cudaStreamDestroy(a_);
    cudaStreamDestroy(b_);
    Sim::TearDown();
  }
  // Copy on one stream, kernel on the other; the number of wrong values.
  int pipeline(bool with_event, bool delayed) {
    Pinned<float> in(kCount), out(kCount);
    Device<float> x(kCount), y(kCount);
    for (size_t i = 0; i < kCount; ++i) in[i] = static_cast<float>(i);
    if (delayed) cudasim_delay(CUDASIM_COPY, 1, 30);
    EXPECT_EQ(cudaMemcpyAsync(x, in, kCount * 4, cudaMemcpyHostToDevice, a_), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(e_, a_), cudaSuccess);
    if (with_event) {
      EXPECT_EQ(cudaStreamWaitEvent(b_, e_, 0), cudaSuccess);
    }
    EXPECT_EQ(launch(twice, 8, 64, 0, b_, x, y, kCount), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(out, y, kCount * 4, cudaMemcpyDeviceToHost, b_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(b_), cudaSuccess);
    int wrong = 0;
    for (size_t i = 0; i < kCount; ++i) wrong += !(out[i] == 2 * static_cast<float>(i));
    EXPECT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
    return wrong;
  }
  cudaStream_t a_ = nullptr, b_ = nullptr;
  cudaEvent_t e_ = nullptr;
};

TEST_F(SimStreams, an_event_orders_two_streams) {
  for (const bool delayed : {false, true}) EXPECT_EQ(races([&] { EXPECT_EQ(pipeline(true, delayed), 0); }), 0);
}

TEST_F(SimStreams, a_missing_event_shows) {
  EXPECT_NE(pipeline(false, true), 0);
  if (!kFindsRaces) return;
  for (const bool delayed : {false, true}) EXPECT_GT(races([&] { pipeline(false, delayed); }), 0) << delayed;
}

#ifdef __SANITIZE_THREAD__
__global__ void reverse(int *x, int with_barrier) {
  __shared__ int s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (with_barrier != 0) __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void warp_reverse(int *x, int with_barrier) {
  __shared__ int s[32];
  s[threadIdx.x] = x[threadIdx.x];
  if (with_barrier != 0) __syncwarp();
  x[threadIdx.x] = s[31 - threadIdx.x];
}

// Threads of a block, where ThreadSanitizer is told of them.
TEST_F(SimStreams, a_missing_barrier_is_a_race) {
  Device<int> x(std::vector<int>(64, 1));
  cudasim_set_thread_races(1);
  const auto run = [&](auto kernel, unsigned threads, int with_barrier) {
    return races([&] {
      EXPECT_EQ(launch(kernel, 2, threads, 0, a_, x, with_barrier), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
    });
  };
  EXPECT_EQ(run(reverse, 64, 1), 0);
  EXPECT_EQ(run(warp_reverse, 32, 1), 0);
  EXPECT_GT(run(reverse, 64, 0), 0);
  EXPECT_GT(run(warp_reverse, 32, 0), 0);
}

// Reading a result without having waited for it; and reusing a pinned source too early.
TEST_F(SimStreams, the_host_must_wait) {
  Pinned<float> host(kCount);
  Device<float> x(std::vector<float>(kCount, 1));
  const auto copy = [&](cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost ? cudaMemcpyAsync(host, x, kCount * 4, kind, a_) : cudaMemcpyAsync(x, host, kCount * 4, kind, a_);
  };
  for (const cudaMemcpyKind kind : {cudaMemcpyDeviceToHost, cudaMemcpyHostToDevice}) {
    EXPECT_EQ(races([&] {
                copy(kind);
                cudaStreamSynchronize(a_);
                host[5] = 1;
              }),
              0);
    EXPECT_EQ(races([&] {
                copy(kind);
                cudaEventRecord(e_, a_);
                cudaEventSynchronize(e_);
                host[5] = 1;
              }),
              0);
    EXPECT_GT(races([&] {
                copy(kind);
                host[5] = 1;
                cudaStreamSynchronize(a_);
              }),
              0);
  }
}
#endif

TEST_F(SimStreams, queries_and_times) {
  cudaEvent_t from, to;
  CUDA(cudaEventCreate(&from));
  CUDA(cudaEventCreate(&to));
  EXPECT_EQ(cudaEventQuery(from), cudaSuccess);  // never recorded
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, from, to), cudaErrorInvalidResourceHandle);
  Pinned<float> h(kCount);
  Device<float> d(kCount);
  CUDA(cudaEventRecord(from, a_));
  cudasim_delay(CUDASIM_COPY, 1, 50);
  CUDA(cudaMemcpyAsync(d, h, kCount * 4, cudaMemcpyHostToDevice, a_));
  CUDA(cudaEventRecord(to, a_));
  EXPECT_EQ(cudaEventQuery(to), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(a_), cudaErrorNotReady);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, from, to), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);  // not ready is no error
  CUDA(cudaEventSynchronize(to));
  EXPECT_EQ(cudaEventQuery(to), cudaSuccess);
  CUDA(cudaStreamSynchronize(a_));
  EXPECT_EQ(cudaStreamQuery(a_), cudaSuccess);
  CUDA(cudaEventElapsedTime(&milliseconds, from, to));
  EXPECT_GE(milliseconds, 50);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, from, e_), cudaErrorInvalidResourceHandle);  // without timing
  cudaGetLastError();
  CUDA(cudaEventDestroy(from));
  CUDA(cudaEventDestroy(to));
  EXPECT_EQ(cudaEventQuery(from), cudaErrorInvalidResourceHandle);
}

// A wait is for the record of that moment, not for a later one.
TEST_F(SimStreams, a_wait_takes_the_latest_record) {
  Pinned<float> h(kCount);
  Device<float> d(kCount);
  CUDA(cudaEventRecord(e_, a_));
  CUDA(cudaStreamWaitEvent(b_, e_, 0));
  cudasim_delay(CUDASIM_COPY, 1, 100);
  CUDA(cudaMemcpyAsync(d, h, kCount * 4, cudaMemcpyHostToDevice, a_));
  CUDA(cudaEventRecord(e_, a_));
  CUDA(cudaStreamSynchronize(b_));
  EXPECT_EQ(cudaStreamQuery(a_), cudaErrorNotReady);
  CUDA(cudaStreamSynchronize(a_));
}

TEST_F(SimStreams, a_delayed_event_holds_its_waiters) {
  cudasim_delay(CUDASIM_EVENT, 1, 50);
  CUDA(cudaEventRecord(e_, a_));
  CUDA(cudaStreamWaitEvent(b_, e_, 0));
  EXPECT_EQ(cudaStreamQuery(b_), cudaErrorNotReady);
  CUDA(cudaStreamSynchronize(b_));
  EXPECT_EQ(cudaEventQuery(e_), cudaSuccess);
  EXPECT_GE(cudasim_issued(CUDASIM_EVENT), 1u);
}

TEST_F(SimStreams, a_delayed_kernel) {
  Device<float> x(std::vector<float>(kCount, 1)), y(kCount);
  cudasim_delay(CUDASIM_KERNEL, 2, 50);
  CUDA(launch(twice, 8, 64, 0, a_, x, y, kCount));
  CUDA(cudaStreamSynchronize(a_));
  CUDA(launch(twice, 8, 64, 0, a_, x, y, kCount));
  EXPECT_EQ(cudaStreamQuery(a_), cudaErrorNotReady);
  CUDA(cudaStreamSynchronize(a_));
}

TEST_F(SimStreams, the_legacy_stream_waits_for_blocking_ones_alone) {
  cudaStream_t blocking;
  CUDA(cudaStreamCreate(&blocking));
  Device<float> x(std::vector<float>(kCount, 1)), y(kCount);
  std::vector<float> got(kCount);
  cudasim_delay(CUDASIM_KERNEL, 1, 50);
  CUDA(launch(twice, 8, 64, 0, blocking, x, y, kCount));
  CUDA(cudaMemcpy(got.data(), y, kCount * 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got[kCount - 1], 2);
  cudasim_delay(CUDASIM_KERNEL, 1, 50);
  CUDA(launch(twice, 8, 64, 0, a_, y, x, kCount));
  CUDA(cudaMemcpy(got.data(), y, kCount * 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaStreamQuery(a_), cudaErrorNotReady);
  CUDA(cudaStreamSynchronize(a_));
  CUDA(cudaStreamDestroy(blocking));
}

// A destroyed stream ends its work; nothing of it can be used again.
TEST_F(SimStreams, a_destroyed_stream_finishes) {
  cudaStream_t s;
  CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  Device<float> x(std::vector<float>(kCount, 1)), y(kCount);
  cudasim_delay(CUDASIM_KERNEL, 1, 30);
  CUDA(launch(twice, 8, 64, 0, s, x, y, kCount));
  CUDA(cudaEventRecord(e_, s));
  CUDA(cudaStreamDestroy(s));
  EXPECT_EQ(cudaEventQuery(e_), cudaErrorNotReady);
  EXPECT_EQ(launch(twice, 8, 64, 0, s, x, y, kCount), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
  CUDA(cudaEventSynchronize(e_));
  EXPECT_EQ(y.get()[7], 2);
}

TEST_F(SimStreams, host_functions_run_in_order) {
  Pinned<int> h(1);
  h[0] = 1;
  CUDA(cudaLaunchHostFunc(a_, [](void *p) { *static_cast<int *>(p) += 41; }, h.begin()));
  CUDA(cudaStreamSynchronize(a_));
  EXPECT_EQ(h[0], 42);
}

// Of pageable memory: a source may be reused at once, a destination is there on return.
TEST_F(SimStreams, pageable_memory) {
  std::vector<float> host(kCount, 3);
  Device<float> d(kCount);
  cudasim_delay(CUDASIM_COPY, 1, 20);
  CUDA(cudaMemcpyAsync(d, host.data(), kCount * 4, cudaMemcpyHostToDevice, a_));
  std::fill(host.begin(), host.end(), 4.0f);
  CUDA(cudaMemcpyAsync(host.data(), d, kCount * 4, cudaMemcpyDeviceToHost, a_));
  EXPECT_EQ(host[kCount - 1], 3);
}

// Kernels go to streams of the thread's device; an event is recorded on streams of its own, and times are taken between events of one.
// Copies, waits and queries take all.
TEST_F(SimStreams, streams_and_events_are_of_a_device) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr, mine = nullptr;
  CUDA(cudaEventCreate(&mine));
  CUDA(cudaEventRecord(mine, a_));
  CUDA(cudaSetDevice(1));
  CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CUDA(cudaEventCreate(&event));
  CUDA(launch(nothing, 1, 1, 0, other));
  EXPECT_EQ(launch(nothing, 1, 1, 0, a_), cudaErrorInvalidResourceHandle);
  CUDA(cudaEventRecord(event, other));
  CUDA(cudaSetDevice(0));
  EXPECT_EQ(launch(nothing, 1, 1, 0, other), cudaErrorInvalidResourceHandle);
  CUDA(cudaEventRecord(event, other));
  EXPECT_EQ(cudaEventRecord(event, a_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(mine, other), cudaErrorInvalidResourceHandle);
  CUDA(cudaStreamWaitEvent(a_, event, 0));
  Device<float> x(16);
  CUDA(cudaMemsetAsync(x, 0, 64, other));
  CUDA(cudaStreamSynchronize(other));
  CUDA(cudaStreamSynchronize(a_));
  CUDA(cudaEventQuery(event));
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, mine, event), cudaErrorInvalidResourceHandle);
  CUDA(cudaEventElapsedTime(&milliseconds, event, event));
  CUDA(cudaEventDestroy(event));
  CUDA(cudaEventDestroy(mine));
  CUDA(cudaStreamDestroy(other));
}

}  // namespace
