// Virtual memory: the driver's functions and their rules.
#include <cuda.h>

#include "common.h"

namespace {

constexpr size_t kUnit = size_t{2} << 20;

__global__ void write_at(char *p, long long i, char v) { p[i] = v; }

struct Driver {
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) access;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuGetErrorName) name;
};

template <class F>
void find(const char *name, F *out) {
  void *p = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess) << name;
  *out = reinterpret_cast<F>(p);
}

class SimVirtual : public Sim {
 protected:
  void SetUp() override {
    Sim::SetUp();
    find("cuMemAddressReserve", &cu_.reserve);
    find("cuMemAddressFree", &cu_.free);
    find("cuMemCreate", &cu_.create);
    find("cuMemRelease", &cu_.release);
    find("cuMemMap", &cu_.map);
    find("cuMemUnmap", &cu_.unmap);
    find("cuMemSetAccess", &cu_.access);
    find("cuMemGetAllocationGranularity", &cu_.granularity);
    find("cuGetErrorName", &cu_.name);
    where_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    where_.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    desc_.location = where_.location;
    desc_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  CUmemGenericAllocationHandle make(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cu_.create(&handle, bytes, &where_, 0), CUDA_SUCCESS);
    return handle;
  }
  Driver cu_{};
  CUmemAllocationProp where_{};
  CUmemAccessDesc desc_{};
};
#define DRIVER(call) ASSERT_EQ((call), CUDA_SUCCESS) << #call

TEST_F(SimVirtual, grows_at_a_fixed_address) {
  size_t unit = 0;
  DRIVER(cu_.granularity(&unit, &where_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ASSERT_EQ(unit, kUnit);
  CUdeviceptr p = 0;
  DRIVER(cu_.reserve(&p, 8 * kUnit, 4 * kUnit, 0, 0));
  EXPECT_EQ(p % (4 * kUnit), 0u);
  char *data = reinterpret_cast<char *>(p);
  for (size_t k = 0; k < 3; ++k) {
    const CUmemGenericAllocationHandle handle = make(kUnit);
    DRIVER(cu_.map(p + k * kUnit, kUnit, 0, handle, 0));
    DRIVER(cu_.release(handle));  // the mapping keeps it
    DRIVER(cu_.access(p + k * kUnit, kUnit, &desc_, 1));
    CUDA(launch(write_at, 1, 1, 0, stream(), data, static_cast<long long>((k + 1) * kUnit - 1), static_cast<char>(k + 1)));
    CUDA(cudaStreamSynchronize(stream()));
    EXPECT_EQ(live().device_bytes, (k + 1) * kUnit);
  }
  // Contents stay, and a copy may go over several mappings.
  Pinned<char> host(3 * kUnit);
  CUDA(cudaMemcpyAsync(host, data, 3 * kUnit, cudaMemcpyDeviceToHost, stream()));
  CUDA(cudaStreamSynchronize(stream()));
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(host[(k + 1) * kUnit - 1], static_cast<char>(k + 1));
  EXPECT_EQ(host[0], '\xff');  // not zeros
  EXPECT_EQ(cudaMemcpyAsync(host, data, 3 * kUnit + 1, cudaMemcpyDeviceToHost, stream()), cudaErrorInvalidValue);
  cudaGetLastError();
  DRIVER(cu_.unmap(p, 3 * kUnit));
  EXPECT_EQ(live().handles, 0u);
  EXPECT_EQ(live().device_bytes, 0u);
  DRIVER(cu_.free(p, 8 * kUnit));
}

TEST_F(SimVirtual, a_handle_keeps_its_contents) {
  CUdeviceptr p = 0, q = 0;
  DRIVER(cu_.reserve(&p, kUnit, 0, 0, 0));
  DRIVER(cu_.reserve(&q, kUnit, 0, 0, 0));
  const CUmemGenericAllocationHandle handle = make(kUnit);
  DRIVER(cu_.map(p, kUnit, 0, handle, 0));
  DRIVER(cu_.access(p, kUnit, &desc_, 1));
  CUDA(launch(write_at, 1, 1, 0, stream(), reinterpret_cast<char *>(p), 9, 'x'));
  CUDA(cudaStreamSynchronize(stream()));
  DRIVER(cu_.unmap(p, kUnit));
  DRIVER(cu_.map(q, kUnit, 0, handle, 0));
  DRIVER(cu_.access(q, kUnit, &desc_, 1));
  char got = 0;
  CUDA(cudaMemcpy(&got, reinterpret_cast<char *>(q) + 9, 1, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got, 'x');
  DRIVER(cu_.unmap(q, kUnit));
  EXPECT_EQ(live().handles, 1u);
  DRIVER(cu_.release(handle));
  DRIVER(cu_.free(p, kUnit));
  DRIVER(cu_.free(q, kUnit));
}

TEST_F(SimVirtual, rules) {
  constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr p = 0, q = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cu_.reserve(&p, kUnit + 1, 0, 0, 0), kInvalid);
  EXPECT_EQ(cu_.reserve(&p, 0, 0, 0, 0), kInvalid);
  EXPECT_EQ(cu_.reserve(&p, kUnit, 3, 0, 0), kInvalid);
  EXPECT_EQ(cu_.create(&handle, kUnit - 1, &where_, 0), kInvalid);
  CUmemAllocationProp other = where_;
  other.location.id = 5;
  EXPECT_EQ(cu_.create(&handle, kUnit, &other, 0), CUDA_ERROR_INVALID_DEVICE);
  DRIVER(cu_.reserve(&p, 6 * kUnit, 0, 0, 0));
  const CUmemGenericAllocationHandle two = make(2 * kUnit), one = make(kUnit);
  EXPECT_EQ(cu_.map(p, 2 * kUnit, kUnit, two, 0), kInvalid);           // an offset
  EXPECT_EQ(cu_.map(p, kUnit, 0, two, 0), kInvalid);                   // part of a handle
  EXPECT_EQ(cu_.map(p + 1, 2 * kUnit, 0, two, 0), kInvalid);           // between units
  EXPECT_EQ(cu_.map(p + 5 * kUnit, 2 * kUnit, 0, two, 0), kInvalid);   // beyond the end
  EXPECT_EQ(cu_.map(p, 2 * kUnit, 0, two + 100, 0), kInvalid);         // no handle
  DRIVER(cu_.map(p, 2 * kUnit, 0, two, 0));
  EXPECT_EQ(cu_.map(p + kUnit, kUnit, 0, one, 0), kInvalid);           // taken
  EXPECT_EQ(cu_.access(p, 3 * kUnit, &desc_, 1), kInvalid);            // a hole
  EXPECT_EQ(cu_.access(p, kUnit, &desc_, 1), kInvalid);                // part of a mapping
  EXPECT_EQ(cu_.unmap(p, kUnit), kInvalid);
  EXPECT_EQ(cu_.unmap(p + 3 * kUnit, kUnit), kInvalid);
  EXPECT_EQ(cu_.free(p, 6 * kUnit), kInvalid);                         // still mapped
  DRIVER(cu_.map(p + 2 * kUnit, kUnit, 0, one, 0));
  DRIVER(cu_.access(p, 3 * kUnit, &desc_, 1));                         // two whole mappings
  DRIVER(cu_.unmap(p, 3 * kUnit));
  EXPECT_EQ(cu_.free(p, kUnit), kInvalid);
  EXPECT_EQ(cu_.free(p + kUnit, kUnit), kInvalid);
  DRIVER(cu_.free(p, 6 * kUnit));
  EXPECT_EQ(cu_.free(p, 6 * kUnit), kInvalid);
  EXPECT_EQ(cu_.map(p, kUnit, 0, one, 0), kInvalid);                   // a reservation that is gone
  DRIVER(cu_.release(one));
  EXPECT_EQ(cu_.release(one), kInvalid);
  DRIVER(cu_.release(two));
  cudasim_set_memory(3 * kUnit);
  DRIVER(cu_.reserve(&q, 100 * kUnit, 0, 0, 0));                       // addresses are free
  EXPECT_EQ(cu_.create(&handle, 4 * kUnit, &where_, 0), CUDA_ERROR_OUT_OF_MEMORY);
  DRIVER(cu_.free(q, 100 * kUnit));
  const char *name = nullptr;
  DRIVER(cu_.name(CUDA_ERROR_OUT_OF_MEMORY, &name));
  EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_F(SimVirtual, memory_without_access_faults) {
  CUdeviceptr p = 0;
  DRIVER(cu_.reserve(&p, 2 * kUnit, 0, 0, 0));
  const CUmemGenericAllocationHandle handle = make(kUnit);
  DRIVER(cu_.map(p, kUnit, 0, handle, 0));
  DRIVER(cu_.release(handle));
  char *data = reinterpret_cast<char *>(p);
  Device<char> argument(1);
  const auto expect = [&](long long offset, const char *text) {
    EXPECT_EQ(launch(write_at, 1, 1, 0, stream(), argument, data - argument + offset, 'x'), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaErrorIllegalAddress);
    EXPECT_NE(std::string(cudasim_report()).find(text), std::string::npos) << cudasim_report();
    cudasim_reset();
  };
  expect(5, "mapped without access");
  expect(static_cast<long long>(kUnit) + 5, "not mapped");
  expect(2 * static_cast<long long>(kUnit) + 5, "in no allocation");
  DRIVER(cu_.access(p, kUnit, &desc_, 1));
  CUDA(launch(write_at, 1, 1, 0, stream(), argument, data - argument + 5, 'x'));
  CUDA(cudaStreamSynchronize(stream()));
  DRIVER(cu_.unmap(p, kUnit));
  expect(5, "not mapped");
  DRIVER(cu_.free(p, 2 * kUnit));
  expect(5, "freed reservation");
}

TEST_F(SimVirtual, failures_and_captures) {
  CUdeviceptr p = 0;
  cudasim_fail_call(1, cudaErrorMemoryAllocation, "cuMemAddressReserve");
  EXPECT_EQ(cu_.reserve(&p, kUnit, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  DRIVER(cu_.reserve(&p, kUnit, 0, 0, 0));
  // What gives back does it although it fails.
  cudasim_fail_call(1, cudaErrorUnknown, "cuMemAddressFree");
  EXPECT_EQ(cu_.free(p, kUnit), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(live().reservations, 0u);
  CUDA(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cu_.reserve(&p, kUnit, 0, 0, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream(), &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(SimVirtual, can_be_missing) {
  cudasim_set_virtual_memory(0);
  void *f = &f;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
  CUDA(cudaGetDriverEntryPointByVersion("cuMemMap", &f, 12000, cudaEnableDefault, &status));
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(f, nullptr);
}

}  // namespace
