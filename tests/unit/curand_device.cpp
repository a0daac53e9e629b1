// Our numbers against the functions that kernels call, compiled for the host: curand_init's layout, word by word.
#include <gtest/gtest.h>

#if defined(CKPT_HAS_CURAND)

#include <curand_kernel.h>

#include <cmath>

#include "ckpt/rng.h"

namespace {

constexpr int kDraws = 41;
constexpr uint64_t kSeeds[] = {0, 42, 0xFEDCBA9876543210};
constexpr uint64_t kSubsequences[] = {0, 7, (uint64_t{3} << 36) + 1000000, ~uint64_t{0}};
constexpr uint64_t kOffsets[] = {0, 1, 2, 3, 12, (uint64_t{1} << 34) - 6, uint64_t{5} << 48};

template <class F>
void each_start(const F &f) {
  for (const uint64_t seed : kSeeds)
    for (const uint64_t subsequence : kSubsequences)
      for (const uint64_t offset : kOffsets) {
        curandStatePhilox4_32_10_t state;
        curand_init(seed, subsequence, offset, &state);
        const ckpt_philox philox = {seed, subsequence, offset, nullptr};
        f(&state, philox);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(CurandDevice, WordsAreTheSame) {
  each_start([](curandStatePhilox4_32_10_t *state, const ckpt_philox &philox) {
    uint32_t ours[kDraws];
    ASSERT_EQ(ckpt_philox_u32(&philox, 0, kDraws, ours), CKPT_OK);
    for (int i = 0; i < kDraws; ++i) ASSERT_EQ(curand(state), ours[i]) << philox.offset << " + " << i;
  });
}

TEST(CurandDevice, UniformsAreTheSame) {
  each_start([](curandStatePhilox4_32_10_t *state, const ckpt_philox &philox) {
    float ours[kDraws];
    ASSERT_EQ(ckpt_philox_uniform(&philox, 0, kDraws, ours), CKPT_OK);
    for (int i = 0; i < kDraws; ++i) ASSERT_EQ(curand_uniform(state), ours[i]) << philox.offset << " + " << i;
  });
}

// A generator that starts at an odd word pairs (1, 2), (3, 4); ours pairs by the word's own parity, so that a piece equals
// the whole. Even starts agree; 6.8 is the largest radius there is (see curand.cpp for the bound).
TEST(CurandDevice, NormalsOfEvenStartsAgree) {
  each_start([](curandStatePhilox4_32_10_t *state, const ckpt_philox &philox) {
    if (philox.offset % 2 != 0) return;
    float ours[kDraws];
    ASSERT_EQ(ckpt_philox_normal(&philox, 0, kDraws, 0.0f, 1.0f, ours), CKPT_OK);
    for (int i = 0; i < kDraws; ++i) {
      const auto theirs = static_cast<double>(curand_normal(state));
      const double tolerance = 6.8 * 0x1p-21 + 7 * 0x1p-23 * std::fabs(theirs);
      ASSERT_NEAR(theirs, static_cast<double>(ours[i]), tolerance) << philox.offset << " + " << i;
    }
  });
}

}  // namespace

#else

TEST(CurandDevice, DeviceFunctions) { GTEST_SKIP() << "left out: no CUDA toolkit (curand_kernel.h) was found"; }

#endif
