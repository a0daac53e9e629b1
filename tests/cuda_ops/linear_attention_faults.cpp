// Each CUDA and cuBLASLt call of a context's life with products and attention failed once: a status and a text, nothing left behind, and
// the next context gives the bits of an undisturbed one.
#include "../cuda_sim/include/cudasim_control.h"
#include "plugin.h"

using namespace test;

namespace {

template <class F>
F *control(const char *name) {
  const char *path = std::getenv("CKPT_TEST_PLUGIN");
  void *const library = dlopen(path != nullptr ? path : CKPT_CUDA_SIM_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<F *>(dlsym(library, name));
}

struct Arrays {
  static constexpr size_t kRows = 40, kChannels = 64, kHeads = 1;  // a head whose kernels ask for more shared memory
  static constexpr uint32_t kType = ops::kBfloat16;
  Array in{kType, rounded(kType, values(kRows * kChannels, 1)), 1}, weight{kType, rounded(kType, values(3 * kChannels * kChannels, 2))},
      bias{kType, rounded(kType, values(3 * kChannels, 3))}, qkv{kType, kRows * 3 * kChannels}, qkv_grad{kType, kRows * 3 * kChannels},
      att{kType, kRows * kChannels}, weights{kType, kHeads * kRows * kRows}, out{kType, kRows * kChannels}, in_grad{kType, kRows * kChannels};
  Array lse{ops::kFloat32, kHeads * kRows}, weight_grad{ops::kFloat32, 3 * kChannels * kChannels}, bias_grad{ops::kFloat32, 3 * kChannels};
};

ckpt_status step(const ops::DeviceOps &o, void *self, const Arrays &a) {
  const ckpt_philox philox = {42, 5, 3, nullptr};
  constexpr size_t kRows = Arrays::kRows, kChannels = Arrays::kChannels, kHeads = Arrays::kHeads;
  ckpt_status status = o.linear_forward(self, a.in.data(), a.weight.data(), a.bias.data(), kRows, kChannels, 3 * kChannels, a.qkv.data());
  if (status == CKPT_OK)
    status = o.attention_tiled_forward(self, a.qkv.data(), 1, kRows, kHeads, kChannels, 0.1f, &philox, a.lse.floats(), a.att.data());
  if (status == CKPT_OK) status = o.attention_forward(self, a.qkv.data(), 1, kRows, kHeads, kChannels, 0.1f, &philox, a.weights.data(), a.att.data());
  if (status == CKPT_OK)
    status = o.linear_residual_forward(self, a.att.data(), a.weight.data(), a.bias.data(), a.in.data(), 0.1f, &philox, kRows, kChannels, kChannels,
                                       a.out.data());
  if (status == CKPT_OK)
    status = o.attention_backward(self, a.qkv.data(), a.weights.data(), a.out.data(), 1, kRows, kHeads, kChannels, 0.1f, &philox, a.qkv_grad.data());
  if (status == CKPT_OK)
    status = o.attention_tiled_backward(self, a.qkv.data(), a.att.data(), a.lse.floats(), a.out.data(), 1, kRows, kHeads, kChannels, 0.1f, &philox,
                                        a.qkv_grad.data());
  if (status == CKPT_OK)
    status = o.linear_backward(self, a.in.data(), a.weight.data(), a.qkv_grad.data(), kRows, kChannels, 3 * kChannels, a.in_grad.data(), 0,
                               a.weight_grad.floats(), a.bias_grad.floats());
  return status;
}

// Every array is written by a step, or cleared before it.
ckpt_status life(const Arrays &a) {
  const Device &d = Device::get();
  a.weight_grad.write(Floats(a.weight_grad.size()));
  a.bias_grad.write(Floats(a.bias_grad.size()));
  void *self = nullptr;
  if (const ckpt_status status = d.ops().create(d.self(), d.stream(), Arrays::kType, &self)) {
    EXPECT_EQ(self, nullptr);
    return status;
  }
  const ckpt_status status = step(d.ops(), self, a);
  EXPECT_EQ(d.table().synchronize(d.self(), d.stream()), CKPT_OK) << last_text();
  d.ops().destroy(self);
  return status;
}

std::vector<unsigned char> results(const Arrays &a) {
  std::vector<unsigned char> bytes;
  for (const Array *array : {&a.qkv, &a.lse, &a.weights, &a.out, &a.qkv_grad, &a.in_grad, &a.weight_grad, &a.bias_grad}) append(&bytes, array->bytes());
  return bytes;
}

TEST(LinearAttentionFaults, EachCallFailedOnce) {
  const Arrays a;  // opens the device, which loads the plugin
  auto *const fail_call = control<void(uint64_t, int, const char *)>("cudasim_fail_call");
  auto *const failed_call = control<const char *()>("cudasim_failed_call");
  auto *const get_live = control<void(cudasim_live *)>("cudasim_get_live");
  if (fail_call == nullptr || failed_call == nullptr || get_live == nullptr) GTEST_SKIP() << "failures can be asked of the double alone";
  OK(life(a));
  const auto expected = results(a);
  cudasim_live before = {}, after = {};
  get_live(&before);

  // What a context's life calls, by name: failing any one of these at its first, second ... call until there is no such call.
  constexpr int kUnknown = 999, kOutOfMemory = 2;  // cudaErrorUnknown, cudaErrorMemoryAllocation
  size_t failures = 0;
  for (const char *const name : {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
                                 "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
                                 "cublasLtMatmul", "cudaMalloc", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaFuncSetAttribute", "cudaLaunchKernelExC"})
    for (const int error : {kUnknown, kOutOfMemory}) {
      size_t times = 0;
      for (uint64_t k = 1; k < 1000; ++k) {
        a.weight_grad.write(Floats(a.weight_grad.size()));
        a.bias_grad.write(Floats(a.bias_grad.size()));
        last_text().clear();
        void *self = nullptr;
        const Device &d = Device::get();
        fail_call(k, error, name);
        ckpt_status status = d.ops().create(d.self(), d.stream(), Arrays::kType, &self);
        const bool created = status == CKPT_OK;
        if (created) status = step(d.ops(), self, a);
        const bool reached = *failed_call() != '\0';
        fail_call(0, 0, nullptr);
        EXPECT_EQ(d.table().synchronize(d.self(), d.stream()), CKPT_OK) << last_text();
        if (created) d.ops().destroy(self);
        if (!reached) {
          EXPECT_EQ(status, CKPT_OK) << last_text();
          break;
        }
        ++times;
        // Work space that does not come in the size asked for first is asked for in the size needed.
        if (status == CKPT_OK && std::string(name) == "cudaMalloc" && error == kOutOfMemory) continue;
        EXPECT_NE(status, CKPT_OK) << name << " failed at its call " << k;
        EXPECT_FALSE(last_text().empty()) << name << ", call " << k;
        get_live(&after);
        EXPECT_EQ(after.blas_objects, before.blas_objects) << name << ", call " << k;
        EXPECT_EQ(after.allocations, before.allocations) << name << ", call " << k;
      }
      EXPECT_GT(times, 0u) << name << " was never called";
      failures += times;
    }
  OK(life(a));
  EXPECT_EQ(results(a), expected);
  EXPECT_GT(failures, 50u);
}

}  // namespace
