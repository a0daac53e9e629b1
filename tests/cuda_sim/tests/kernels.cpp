// Kernels on the double: thread indices, barriers, collectives, shared memory of both kinds, orders, workers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "common.h"

namespace {

__global__ void saxpy(float a, const float *__restrict__ x, float *__restrict__ y, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += gridDim.x * size_t{blockDim.x}) y[i] = a * x[i] + y[i];
}

template <int kBlock>
__device__ float block_sum(float v) {
  __shared__ float part[kBlock / 32];
  for (int o = 16; o != 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kBlock / 32; ++i) sum += part[i];
  __syncthreads();
  return sum;
}

template <int kBlock>
__global__ void __launch_bounds__(kBlock) row_sums(const float *x, float *out, int columns) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += kBlock) sum += x[blockIdx.x * static_cast<unsigned>(columns) + static_cast<unsigned>(i)];
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void indices(unsigned *out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = thread * 1000 + block;
}

// The barrier between writing and reading can be left out.
template <class T>
__global__ void reverse(T *x, int with_barrier) {
  __shared__ T s[256];
  s[threadIdx.x] = x[threadIdx.x];
  if (with_barrier != 0) __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void reverse_dynamic(int *x, int with_barrier) {
  CKPT_DYNAMIC_SHARED(int, s);
  s[threadIdx.x] = x[threadIdx.x];
  if (with_barrier != 0) __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
// What is in shared memory before anything is written there.
template <int kWords>
__global__ void leftovers(unsigned *out) {
  __shared__ unsigned s[kWords];
  CKPT_DYNAMIC_SHARED(unsigned, d);
  out[(blockIdx.x * 64 + threadIdx.x) * 2] = s[threadIdx.x];
  out[(blockIdx.x * 64 + threadIdx.x) * 2 + 1] = d[threadIdx.x];
  s[threadIdx.x] = d[threadIdx.x] = 1;
}

__global__ void compact(const int *x, int *out, int *count, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), lane = static_cast<int>(threadIdx.x & 31);
  const bool taken = i < n && (x[i] & 1) != 0;
  const unsigned mask = __ballot_sync(~0u, taken);
  int base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(mask));
  base = __shfl_sync(~0u, base, 0);
  if (taken) out[base + __popc(mask & ((1u << lane) - 1))] = x[i];
}

__global__ void collectives(int *out) {
  const int t = static_cast<int>(threadIdx.x);
  int *o = out + t * 12;
  o[0] = __shfl_up_sync(~0u, t, 1);
  o[1] = __shfl_down_sync(~0u, t, 3, 8);
  o[2] = __shfl_xor_sync(~0u, t, 5, 16);
  o[3] = __shfl_sync(~0u, t, 9, 8);
  o[4] = __any_sync(~0u, t == 40);
  o[5] = __all_sync(~0u, t < 32);
  o[6] = static_cast<int>(__match_any_sync(~0u, t % 4));
  o[7] = __reduce_add_sync(~0u, t);
  o[8] = __syncthreads_count(t % 3 == 0);
  o[9] = __syncthreads_or(t == 63);
  o[10] = __syncthreads_and(t < 63);
  // A collective of half a warp, in a branch.
  o[11] = t % 32 < 16 ? __shfl_xor_sync(0x0000ffffu, t, 1) : -1;
}

__global__ void returns_early(int *out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();
  out[threadIdx.x] = __syncthreads_count(1);
}

class SimKernels : public Sim {};

TEST_F(SimKernels, grid_stride) {
  const size_t n = 10007;
  std::vector<float> x(n), y(n, 1);
  std::iota(x.begin(), x.end(), 0.0f);
  Device<float> dx(x), dy(y);
  CUDA(launch(saxpy, 7, 128, 0, stream(), 2, dx, dy, n));
  const std::vector<float> got = dy.get();
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], 2 * x[i] + 1) << i;
}

TEST_F(SimKernels, three_dimensions) {
  Device<unsigned> out(24 * 60);
  CUDA(launch(indices, dim3(2, 3, 4), dim3(5, 4, 3), 0, stream(), out));
  const std::vector<unsigned> got = out.get();
  for (unsigned b = 0; b < 24; ++b)
    for (unsigned t = 0; t < 60; ++t) ASSERT_EQ(got[b * 60 + t], t * 1000 + b);
}

TEST_F(SimKernels, static_shared_memory_in_templates) {
  const unsigned rows = 9, columns = 300;
  std::vector<float> x(rows * columns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17);
  std::vector<float> sums(rows);
  for (size_t i = 0; i < x.size(); ++i) sums[i / columns] += x[i];
  Device<float> dx(x), out(rows);
  for (const int order : {CUDASIM_FORWARD, CUDASIM_REVERSE, CUDASIM_RANDOM}) {
    cudasim_set_order(order, 3);
    CUDA(launch(row_sums<64>, rows, 64, 0, stream(), dx, out, int{columns}));
    EXPECT_EQ(out.get(), sums);
    CUDA(launch(row_sums<256>, rows, 256, 0, stream(), dx, out, int{columns}));
    EXPECT_EQ(out.get(), sums);
  }
}

// In every order, and with static and dynamic memory, a missing barrier gives wrong results, and never passes on what is left of
// the launch before.
TEST_F(SimKernels, a_missing_barrier_shows) {
  std::vector<int> x(256), wanted(256);
  for (int i = 0; i < 256; ++i) x[static_cast<size_t>(i)] = i, wanted[static_cast<size_t>(255 - i)] = i;
  Device<int> d(256);
  for (const int order : {CUDASIM_FORWARD, CUDASIM_REVERSE, CUDASIM_RANDOM})
    for (const auto kernel : {reverse<int>, reverse_dynamic}) {
      cudasim_set_order(order, 7);
      d.set(x);
      CUDA(launch(kernel, 1, 256, 1024, stream(), d, 1));
      EXPECT_EQ(d.get(), wanted) << order;
      d.set(x);
      CUDA(launch(kernel, 1, 256, 1024, stream(), d, 0));
      EXPECT_NE(d.get(), wanted) << order;
    }
}

TEST_F(SimKernels, shared_memory_begins_as_nan) {
  Device<unsigned> out(6 * 128);
  for (int k = 0; k < 2; ++k) {
    CUDA(launch(leftovers<64>, 6, 64, 256, stream(), out));
    for (const unsigned v : out.get()) ASSERT_EQ(v, ~0u);
  }
}

TEST_F(SimKernels, ballots_and_atomics) {
  const int n = 5000;
  std::vector<int> x, odd;
  for (int i = 0; i < n; ++i) {
    x.push_back(static_cast<int>(static_cast<unsigned>(i) * 2654435761u >> 7));
    if ((x.back() & 1) != 0) odd.push_back(x.back());
  }
  std::sort(odd.begin(), odd.end());
  for (const unsigned workers : {1u, 3u}) {
    cudasim_set_workers(workers);
    Device<int> dx(x), out(static_cast<size_t>(n)), count(std::vector<int>{0});
    CUDA(launch(compact, (n + 255) / 256, 256, 0, stream(), dx, out, count, n));
    std::vector<int> got = out.get();
    got.resize(static_cast<size_t>(count.get()[0]));
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, odd);
  }
}

TEST_F(SimKernels, collectives) {
  Device<int> out(64 * 12);
  CUDA(launch(collectives, 1, 64, 0, stream(), out));
  const std::vector<int> got = out.get();
  for (int t = 0; t < 64; ++t) {
    const int *o = &got[static_cast<size_t>(t) * 12], lane = t % 32;
    EXPECT_EQ(o[0], lane == 0 ? t : t - 1);
    EXPECT_EQ(o[1], lane % 8 + 3 < 8 ? t + 3 : t);
    EXPECT_EQ(o[2], t ^ 5);
    EXPECT_EQ(o[3], t / 8 * 8 + 1);
    EXPECT_EQ(o[4], t >= 32);
    EXPECT_EQ(o[5], t < 32);
    EXPECT_EQ(o[6], 0x11111111 << (t % 4));
    EXPECT_EQ(o[7], t < 32 ? 496 : 496 + 1024);
    EXPECT_EQ(o[8], 22);
    EXPECT_EQ(o[9], 1);
    EXPECT_EQ(o[10], 0);
    EXPECT_EQ(o[11], lane < 16 ? t ^ 1 : -1);
  }
}

TEST_F(SimKernels, barriers_count_the_threads_that_are_left) {
  Device<int> out(std::vector<int>(100, -1));
  CUDA(launch(returns_early, 1, 100, 0, stream(), out, 37));
  const std::vector<int> got = out.get();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], i < 37 ? 37 : -1);
}

TEST_F(SimKernels, refused_launches_are_not_sticky) {
  Device<float> d(4);
  EXPECT_EQ(launch(saxpy, 1, 1025, 0, stream(), 1, d, d, 4), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(saxpy, 0, 32, 0, stream(), 1, d, d, 4), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(saxpy, dim3(1, 65536), 32, 0, stream(), 1, d, d, 4), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(saxpy, 1, 32, 49 << 10, stream(), 1, d, d, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(saxpy, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10), cudaErrorInvalidValue);
  CUDA(cudaFuncSetAttribute(saxpy, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  CUDA(launch(saxpy, 1, 32, 49 << 10, stream(), 1, d, d, 4));
  EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void *>(&live), dim3(1), dim3(1), nullptr, 0, stream()), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(SimKernels, attributes_and_occupancy) {
  cudaFuncAttributes attributes{};
  CUDA(cudaFuncGetAttributes(&attributes, reverse_dynamic));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  int blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse_dynamic, 256, 0));
  EXPECT_EQ(blocks, 8);
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse_dynamic, 256, 49 << 10));
  EXPECT_EQ(blocks, 0);
}

}  // namespace
