// What the double finds on the device, sticky errors, failed calls.
#include "common.h"

namespace {

__global__ void write_at(float *p, long long i, float v) {
  if (threadIdx.x == 0) p[i] = v;
}
__global__ void read_at(const float *p, long long i, float *out) {
  if (threadIdx.x == 0) *out = p[i];
}
__global__ void half_a_barrier(int *x) {
  if (threadIdx.x < 16)
    x[threadIdx.x] = __shfl_xor_sync(~0u, x[threadIdx.x], 1);
  else
    __syncthreads();
}
__global__ void outside_its_mask(int *x) { x[threadIdx.x] = __shfl_sync(0xffff, 1, 0); }
__global__ void traps() {
  if (blockIdx.x == 2 && threadIdx.y == 1) __trap();
}
#ifndef __SANITIZE_THREAD__  // it keeps stacks of its own
__device__ int deep(int n, volatile int *p) {
  volatile int frame[500];
  frame[0] = n;
  return n == 0 ? p[0] : deep(n - 1, p) + frame[0];
}
__global__ void overflows(int *p) { p[0] = deep(1 << 20, p); }
#endif
__global__ void beyond_dynamic_shared(float *out) {
  CKPT_DYNAMIC_SHARED(float, s);
  out[0] = s[8 + static_cast<int>(out[0])];
}

class SimFaults : public Sim {
 protected:
  // The error that the next calls give, until the double is reset, and the report.
  void expect_sticky(cudaError_t wanted, const std::string &text) {
    EXPECT_EQ(cudaStreamSynchronize(stream()), wanted);
    void *p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, 4), wanted);
    EXPECT_EQ(cudaGetLastError(), wanted);
    EXPECT_EQ(cudaGetLastError(), wanted);
    EXPECT_EQ(cudaPeekAtLastError(), wanted);
    EXPECT_EQ(cudasim_sticky(), wanted);
    EXPECT_NE(std::string(cudasim_report()).find(text), std::string::npos) << cudasim_report();
    cudasim_reset();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
};

TEST_F(SimFaults, an_overrun_is_named) {
  Device<float> p(25);
  CUDA(launch(write_at, 1, 32, 0, stream(), p, 64, 1.0f));
  expect_sticky(cudaErrorIllegalAddress, "beyond device allocation #");
  CUDA(launch(write_at, dim3(1, 2), 32, 0, stream(), p, -1200, 1.0f));
  expect_sticky(cudaErrorIllegalAddress, "offset -4800 [block (0,0,0) thread (0,0,0)]");
  CUDA(launch(write_at, 1, 32, 0, stream(), p, 0, 1.0f));  // kernels run again
  CUDA(cudaStreamSynchronize(stream()));
}

// On the allocation's own pages an overrun is found when it is freed.
TEST_F(SimFaults, a_short_overrun_is_found_by_the_free) {
  for (const long long at : {25, 63, -1, -900}) {
    float *p = nullptr;
    CUDA(cudaMalloc(&p, 100));
    CUDA(launch(write_at, 1, 32, 0, stream(), p, at, 1.0f));
    CUDA(cudaStreamSynchronize(stream()));
    cudaFree(p);
    expect_sticky(cudaErrorIllegalAddress, "of 100 bytes, at offset " + std::to_string(4 * at));
  }
}

TEST_F(SimFaults, use_after_free) {
  float *p = nullptr;
  Device<float> out(1);
  CUDA(cudaMalloc(&p, 100));
  CUDA(cudaFree(p));
  CUDA(launch(write_at, 1, 32, 0, stream(), p, 0, 1.0f));
  expect_sticky(cudaErrorIllegalAddress, "kernel argument points to host memory or to memory that is freed");
  CUDA(launch(read_at, 1, 32, 0, stream(), out, p - out, out));
  expect_sticky(cudaErrorIllegalAddress, "use after free of device allocation #");
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
  float host = 0;
  EXPECT_EQ(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
}

TEST_F(SimFaults, host_memory_on_the_device) {
  float host[4] = {};
  CUDA(launch(write_at, 1, 32, 0, stream(), host, 0, 1.0f));
  expect_sticky(cudaErrorIllegalAddress, "kernel argument points to host memory");
  Pinned<float> pinned(4);
  CUDA(launch(write_at, 1, 32, 0, stream(), pinned, 0, 7.0f));
  CUDA(cudaStreamSynchronize(stream()));
  EXPECT_EQ(pinned[0], 7);
}

TEST_F(SimFaults, copies_are_checked) {
  Device<float> d(25);
  std::vector<float> h(26);
  EXPECT_EQ(cudaMemcpy(h.data(), d, 104, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(d, h.data(), 104, cudaMemcpyHostToDevice, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(h.data(), h.data(), 4, cudaMemcpyDeviceToDevice, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(d, 0, 101, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(h.data(), 0, 4, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(static_cast<float *>(d) + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(d), cudaErrorInvalidValue);
  cudaPointerAttributes attributes{};
  CUDA(cudaPointerGetAttributes(&attributes, d));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  CUDA(cudaPointerGetAttributes(&attributes, h.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(SimFaults, collectives_that_never_complete) {
  Device<int> x(std::vector<int>(64));
  CUDA(launch(half_a_barrier, 1, 32, 0, stream(), x));
  expect_sticky(cudaErrorLaunchTimeout, "deadlock: 16 thread(s) at __syncthreads");
  CUDA(launch(outside_its_mask, 1, 32, 0, stream(), x));
  expect_sticky(cudaErrorLaunchFailure, "a lane outside its mask");
}

TEST_F(SimFaults, traps_and_stacks) {
  CUDA(launch(traps, 4, dim3(2, 2), 0, stream()));
  expect_sticky(cudaErrorLaunchFailure, "__trap [block (2,0,0) thread (0,1,0)]");
#ifndef __SANITIZE_THREAD__
  Device<int> p(1);
  CUDA(launch(overflows, 1, 1, 0, stream(), p));
  expect_sticky(cudaErrorIllegalAddress, "stack overflowed");
#endif
  Device<float> out(std::vector<float>{0});
  CUDA(launch(beyond_dynamic_shared, 1, 1, 32, stream(), out));
  expect_sticky(cudaErrorIllegalAddress, "in no allocation");
}

TEST_F(SimFaults, a_broken_context_runs_nothing_more_and_hangs_nobody) {
  Device<float> p(std::vector<float>(64, 1));
  cudaEvent_t e;
  CUDA(cudaEventCreate(&e));
  cudaStream_t other;
  CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudasim_delay(CUDASIM_KERNEL, 1, 20);
  CUDA(launch(write_at, 1, 32, 0, stream(), p, 64, 1.0f));
  CUDA(launch(write_at, 1, 32, 0, stream(), p, 3, 5.0f));
  CUDA(cudaEventRecord(e, stream()));
  CUDA(cudaStreamWaitEvent(other, e, 0));
  EXPECT_EQ(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaEventSynchronize(e), cudaErrorIllegalAddress);
  // What is given back is given back all the same.
  EXPECT_EQ(cudaEventDestroy(e), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamDestroy(other), cudaErrorIllegalAddress);
  cudasim_reset();
  EXPECT_EQ(p.get()[3], 1);
}

TEST_F(SimFaults, memory_is_counted) {
  cudasim_set_memory(1 << 20);
  size_t left = 0, total = 0;
  CUDA(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(total, size_t{1} << 20);
  const size_t before = left;
  void *p = nullptr, *q = &p;
  CUDA(cudaMalloc(&p, before - 1000));
  EXPECT_EQ(cudaMalloc(&q, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(q, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  CUDA(cudaMalloc(&q, 1000));
  CUDA(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(live().peak_bytes, size_t{1} << 20);
  CUDA(cudaFree(p));
  CUDA(cudaFree(q));
}

TEST_F(SimFaults, machines_without_a_device) {
  int count = -1, version = -1;
  cudasim_set_device_count(0);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  cudasim_set_device_count(3);
  CUDA(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 3);
  CUDA(cudaSetDevice(2));
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
  CUDA(cudaSetDevice(0));
  for (const int driver : {0, 11040}) {
    cudasim_set_driver_version(driver);
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    CUDA(cudaDriverGetVersion(&version));
    EXPECT_EQ(version, driver);
    void *p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, 1), cudaErrorInsufficientDriver);
    CUDA(cudaRuntimeGetVersion(&version));
    EXPECT_EQ(version, CUDART_VERSION);
  }
  cudasim_reset();
  cudaDeviceProp properties{};
  CUDA(cudaGetDeviceProperties(&properties, 1));
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
  int value = 0;
  CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT_EQ(value, 227 << 10);
}

// A small job that must give back everything whichever call fails.
cudaError_t job(float *out) {
  constexpr size_t kBytes = 4096;
  float *d = nullptr, *h = nullptr;
  cudaStream_t s = nullptr;
  cudaEvent_t e = nullptr;
  const auto run = [&]() -> cudaError_t {
    cudaError_t error;
    if ((error = cudaMalloc(&d, kBytes)) != cudaSuccess) return error;
    if ((error = cudaMallocHost(&h, kBytes)) != cudaSuccess) return error;
    if ((error = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)) != cudaSuccess) return error;
    if ((error = cudaEventCreateWithFlags(&e, cudaEventDisableTiming)) != cudaSuccess) return error;
    h[1] = 1;
    if ((error = cudaMemcpyAsync(d, h, kBytes, cudaMemcpyHostToDevice, s)) != cudaSuccess) return error;
    if ((error = launch(write_at, 1, 32, 0, s, d, 0, 41.0f)) != cudaSuccess) return error;
    if ((error = cudaMemcpyAsync(h, d, kBytes, cudaMemcpyDeviceToHost, s)) != cudaSuccess) return error;
    if ((error = cudaEventRecord(e, s)) != cudaSuccess) return error;
    if ((error = cudaEventSynchronize(e)) != cudaSuccess) return error;
    *out = h[0] + h[1];
    return cudaSuccess;
  };
  cudaError_t error = run();
  const auto note = [&](cudaError_t late) {
    if (error == cudaSuccess) error = late;
  };
  if (s != nullptr) note(cudaStreamDestroy(s));
  if (e != nullptr) note(cudaEventDestroy(e));
  note(cudaFree(d));
  note(cudaFreeHost(h));
  return error;
}

TEST_F(SimFaults, every_call_fails_once) {
  float out = 0;
  const uint64_t before = cudasim_calls();
  CUDA(job(&out));
  EXPECT_EQ(out, 42);
  const uint64_t calls = cudasim_calls() - before;
  EXPECT_EQ(calls, 13u);
  for (uint64_t k = 1; k <= calls; ++k) {
    cudasim_fail_call(k, cudaErrorMemoryAllocation, nullptr);
    EXPECT_EQ(job(&out), cudaErrorMemoryAllocation) << k;
    EXPECT_STRNE(cudasim_failed_call(), "");
    const cudasim_live now = live();
    EXPECT_EQ(now.allocations + now.pinned + now.streams + now.events, 0u) << cudasim_failed_call();
    CUDA(job(&out));  // the next one works
    EXPECT_EQ(out, 42);
  }
  cudasim_fail_call(2, cudaErrorUnknown, "cudaMemcpyAsync");
  const uint64_t copies = cudasim_calls_of("cudaMemcpyAsync");
  EXPECT_EQ(job(&out), cudaErrorUnknown);
  EXPECT_EQ(cudasim_calls_of("cudaMemcpyAsync") - copies, 2u);
  EXPECT_STREQ(cudasim_failed_call(), "cudaMemcpyAsync");
}

}  // namespace
