// Our numbers against NVIDIA's own: the host generator of cuRAND's host API, which needs neither a GPU nor a driver.
// Element p of it stands in block p / 4, lane p mod 4; its blocks go round 65536 subsequences.
#include <gtest/gtest.h>

#if defined(CKPT_HAS_CURAND)

#include <curand.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rng/normal.h"
#include "rng/philox.h"

namespace ckpt::rng {
namespace {

constexpr uint64_t kSubsequences = 65536;
constexpr size_t kCount = 300004;  // past the first round of subsequences
constexpr uint64_t kSeeds[] = {0, 42, 0x0123456789ABCDEF};
constexpr uint64_t kOffsets[] = {0, 1, 3, 4, 262143, uint64_t{1} << 33};

class Generator {
 public:
  Generator(uint64_t seed, uint64_t offset) {
    EXPECT_EQ(curandCreateGeneratorHost(&handle_, CURAND_RNG_PSEUDO_PHILOX4_32_10), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetPseudoRandomGeneratorSeed(handle_, seed), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetGeneratorOffset(handle_, offset), CURAND_STATUS_SUCCESS);
  }
  ~Generator() { curandDestroyGenerator(handle_); }
  Generator(const Generator &) = delete;
  Generator &operator=(const Generator &) = delete;
  curandGenerator_t get() const { return handle_; }

 private:
  curandGenerator_t handle_ = nullptr;
};

uint32_t our_word(uint64_t seed, uint64_t p) {
  const uint64_t block = p / 4;
  return word_at(seed, block % kSubsequences, block / kSubsequences * 4 + p % 4);
}

TEST(Curand, WordsAreTheSame) {
  for (const uint64_t seed : kSeeds)
    for (const uint64_t offset : kOffsets) {
      std::vector<uint32_t> theirs(kCount);
      ASSERT_EQ(curandGenerate(Generator(seed, offset).get(), theirs.data(), kCount), CURAND_STATUS_SUCCESS);
      for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(theirs[i], our_word(seed, offset + i)) << seed << " " << offset << " " << i;
    }
}

TEST(Curand, UniformsAreTheSame) {
  for (const uint64_t seed : kSeeds) {
    std::vector<float> theirs(kCount);
    ASSERT_EQ(curandGenerateUniform(Generator(seed, 0).get(), theirs.data(), kCount), CURAND_STATUS_SUCCESS);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(theirs[i], uniform_of(our_word(seed, i))) << seed << " " << i;
  }
}

// Their host code rounds y 2pi 2^-32 before it adds pi 2^-32, ours does not: the angle, below 8, differs by at most one
// unit of 2^-21. The rest is both sides' own error (normal.h: 3.5 units; theirs no more).
TEST(Curand, NormalsAgreeWithinTheRoundingOfTheAngle) {
  for (const uint64_t seed : kSeeds) {
    std::vector<float> theirs(kCount);
    ASSERT_EQ(curandGenerateNormal(Generator(seed, 0).get(), theirs.data(), kCount, 0.0f, 1.0f), CURAND_STATUS_SUCCESS);
    size_t equal = 0;
    for (size_t i = 0; i < kCount; i += 2) {
      const uint32_t x = our_word(seed, i), y = our_word(seed, i + 1);
      float ours[2];
      box_muller<OneLane>(x, y, ours, ours + 1);
      const double radius = std::sqrt(-2 * std::log(static_cast<double>(uniform_of(x))));
      for (size_t k = 0; k < 2; ++k) {
        const auto mine = static_cast<double>(ours[k]), other = static_cast<double>(theirs[i + k]);
        ASSERT_LE(std::fabs(mine - other), radius * 0x1p-21 + 7 * 0x1p-23 * std::fabs(other)) << seed << " " << i + k;
        equal += mine == other;
      }
    }
    EXPECT_GT(equal, kCount / 3);  // most are equal to the bit or next to it: no shifted or swapped pairs
  }
}

}  // namespace
}  // namespace ckpt::rng

#else

TEST(Curand, HostGenerator) { GTEST_SKIP() << "left out: no CUDA toolkit (curand.h and libcurand) was found"; }

#endif
