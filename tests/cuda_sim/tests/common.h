// What the double's tests share.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../include/cudasim_control.h"
#include "device/cuda/launch.h"

using ckpt::cuda::launch;

// Ends the test where a call fails.
#define CUDA(call)                                                                                              \
  do {                                                                                                          \
    const cudaError_t error_ = (call);                                                                          \
    ASSERT_EQ(error_, cudaSuccess) << #call << ": " << cudaGetErrorName(error_) << " " << cudasim_report();     \
  } while (0)

inline cudasim_live live() {
  cudasim_live now{};
  cudasim_get_live(&now);
  return now;
}

// Each test begins with the first settings, and ends with nothing left.
class Sim : public testing::Test {
 protected:
  void SetUp() override {
    cudasim_reset();
    before_ = live();
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudasim_reset();
    const cudasim_live now = live();
    EXPECT_EQ(now.allocations, before_.allocations);
    EXPECT_EQ(now.pinned, before_.pinned);
    EXPECT_EQ(now.streams, before_.streams);
    EXPECT_EQ(now.events, before_.events);
    EXPECT_EQ(now.graphs, before_.graphs);
    EXPECT_EQ(now.graph_execs, before_.graph_execs);
    EXPECT_EQ(now.reservations, before_.reservations);
    EXPECT_EQ(now.handles, before_.handles);
    EXPECT_EQ(now.mappings, before_.mappings);
    EXPECT_EQ(now.device_bytes, before_.device_bytes);
  }
  cudaStream_t stream() {
    if (stream_ == nullptr) {
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    }
    return stream_;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudasim_live before_{};
};

// Device memory of n elements, freed at the end of the scope.
template <class T>
class Device {
 public:
  explicit Device(size_t n) : count_(n) { EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data_), n * sizeof(T)), cudaSuccess); }
  explicit Device(const std::vector<T> &values) : Device(values.size()) { set(values); }
  ~Device() { cudaFree(data_); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  void set(const std::vector<T> &values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<T> get() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudasim_report();
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  operator T *() const { return data_; }

 private:
  T *data_ = nullptr;
  size_t count_;
};

// Pinned memory.
template <class T>
class Pinned {
 public:
  explicit Pinned(size_t n) : count_(n) { EXPECT_EQ(cudaMallocHost(reinterpret_cast<void **>(&data_), n * sizeof(T)), cudaSuccess); }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;
  T *begin() const { return data_; }
  T *end() const { return data_ + count_; }
  operator T *() const { return data_; }

 private:
  T *data_ = nullptr;
  size_t count_;
};
