// Every CUDA call of the operations fails once: a status with a text, nothing leaks, and the next step works.
#include "../cuda_sim/include/cudasim_control.h"
#include "step.h"

using namespace test;

namespace {

TEST(Faults, EachCallOnce) {
  const Device &d = Device::get();
  auto *const fail_call = d.control<void(uint64_t, int, const char *)>("cudasim_fail_call");
  auto *const failed_call = d.control<const char *()>("cudasim_failed_call");
  auto *const get_live = d.control<void(cudasim_live *)>("cudasim_get_live");
  if (fail_call == nullptr) GTEST_SKIP() << "left out: only the double fails on demand";
  const Step first(ops::kBfloat16);
  {
    const Ops ops(ops::kBfloat16);
    OK(first.run(ops));
  }
  const auto expected = first.bytes();
  for (const int error : {2, 1}) {  // cudaErrorMemoryAllocation, cudaErrorInvalidValue
    uint64_t k = 1;
    for (bool passed = false; !passed; ++k) {
      ASSERT_LT(k, 1000u);
      const Step step(ops::kBfloat16);
      d.synchronize();
      cudasim_live before = {}, after = {};
      get_live(&before);
      fail_call(k, error, nullptr);
      void *self = nullptr;
      ckpt_status status = d.ops().create(d.self(), d.stream(), ops::kBfloat16, &self);
      EXPECT_EQ(self == nullptr, status != CKPT_OK);
      std::string text = last_text();
      if (self != nullptr) {
        // Borrowed by the step as an Ops would be.
        status = step.run(Ops(ops::kBfloat16, self));
        text = last_text();
        if (status == CKPT_OK) status = d.ops().check(self);
        if (status != CKPT_OK) text = last_text();
        d.ops().destroy(self);
      }
      const std::string call = failed_call();
      fail_call(0, 0, nullptr);
      passed = call.empty();
      if (passed) {
        EXPECT_EQ(status, CKPT_OK) << text;
      } else if (status != CKPT_OK) {  // a failed free, or an attribute that nothing depends on, fails nobody
        EXPECT_EQ(status, error == 2 ? CKPT_ERROR_OUT_OF_MEMORY : CKPT_ERROR_DEVICE) << call << ": " << text;
        EXPECT_NE(text.find("cuda:0"), std::string::npos) << call << ": " << text;
      }
      d.synchronize();
      get_live(&after);
      EXPECT_EQ(after.allocations, before.allocations) << "call " << k << ", " << call;
      EXPECT_EQ(after.blas_objects, before.blas_objects) << "call " << k << ", " << call;
      const Ops again(ops::kBfloat16);
      const Step next(ops::kBfloat16);
      OK(next.run(again));
      EXPECT_EQ(next.bytes(), expected) << "after a failure of call " << k << ", " << call;
    }
    EXPECT_GT(k, 20u);
  }
}

}  // namespace
