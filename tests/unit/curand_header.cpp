// ckpt/curand.h against NVIDIA's own: states of the device API (whose functions compile for the host too) and generators of the host
// API, taken over and handed back at places in and across blocks, subsequences and rounds of subsequences.
#include <gtest/gtest.h>

#if defined(CKPT_HAS_CURAND)

#include <curand.h>

#include <vector>

#include "ckpt/curand.h"

namespace {

constexpr uint64_t kSeeds[] = {0, 42, 0x0123456789ABCDEF};
constexpr uint64_t kSubsequences[] = {0, 7, (uint64_t{3} << 36) + 1000000, ~uint64_t{0}};
constexpr uint64_t kOffsets[] = {0, 1, 2, 3, 12, (uint64_t{1} << 34) - 6, uint64_t{5} << 48, ~uint64_t{0} - 9};
constexpr uint32_t kDraws = 9;

template <class F>
void each_start(const F &f) {
  for (const uint64_t seed : kSeeds)
    for (const uint64_t subsequence : kSubsequences)
      for (const uint64_t offset : kOffsets) {
        curandStatePhilox4_32_10_t state;
        curand_init(seed, subsequence, offset, &state);
        f(state, ckpt_philox{seed, subsequence, offset, nullptr});
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(CurandHeader, AFreshStateIsTheSnapshotItWasMadeFrom) {
  each_start([](const curandStatePhilox4_32_10_t &state, const ckpt_philox &philox) {
    const ckpt_philox taken = ckpt_philox_from_curand(&state);
    EXPECT_EQ(taken.seed, philox.seed);
    EXPECT_EQ(taken.subsequence, philox.subsequence);
    EXPECT_EQ(taken.offset, philox.offset);
    EXPECT_EQ(taken.step_word, nullptr);
  });
}

TEST(CurandHeader, AUsedStateGoesOnAsASnapshot) {
  each_start([](curandStatePhilox4_32_10_t state, const ckpt_philox &philox) {
    for (uint32_t drawn = 0; drawn < kDraws; ++drawn) {
      const ckpt_philox taken = ckpt_philox_from_curand(&state);
      uint32_t next = 0;
      ASSERT_EQ(ckpt_philox_u32(&taken, 0, 1, &next), CKPT_OK);
      ASSERT_EQ(next, curand(&state)) << philox.offset << " + " << drawn;
    }
  });
}

TEST(CurandHeader, ASnapshotGoesOnAsAState) {
  each_start([](curandStatePhilox4_32_10_t theirs, const ckpt_philox &philox) {
    if (philox.offset > ~uint64_t{0} - 2 * kDraws) return;
    for (int k = 0; k < 5; ++k) (void)curand(&theirs);
    curandStatePhilox4_32_10_t ours;
    ckpt_philox_to_curand(&philox, 5, &ours);
    for (uint32_t k = 0; k < kDraws; ++k) ASSERT_EQ(curand(&ours), curand(&theirs)) << philox.offset << " + " << k;
    const uint64_t step = 11;
    const ckpt_philox stepped = {philox.seed, philox.subsequence - step, philox.offset, &step};
    ckpt_philox_to_curand(&stepped, 0, &ours);
    const ckpt_philox back = ckpt_philox_from_curand(&ours);
    EXPECT_EQ(back.subsequence, philox.subsequence);
  });
}

TEST(CurandHeader, GeneratorsGoOnBothWays) {
  curandStatePhilox4_32_10_t state, back;
  curand_init(42, 7, 1, &state);
  for (int k = 0; k < 6; ++k) (void)curand(&state);
  ckpt_rng *rng = nullptr;
  ASSERT_EQ(ckpt_rng_from_curand(&state, &rng), CKPT_OK);
  ckpt_philox at = {};
  ASSERT_EQ(ckpt_rng_snapshot(rng, &at), CKPT_OK);
  EXPECT_EQ(at.offset, 7u);
  ASSERT_EQ(ckpt_rng_advance(rng, 3, 0), CKPT_OK);
  ASSERT_EQ(ckpt_rng_to_curand(rng, &back), CKPT_OK);
  for (int k = 0; k < 3; ++k) (void)curand(&state);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(curand(&back), curand(&state));
  EXPECT_EQ(ckpt_rng_to_curand(nullptr, &back), CKPT_ERROR_INVALID_ARGUMENT);
  ckpt_rng_destroy(rng);
}

class HostGenerator {
 public:
  HostGenerator(uint64_t seed, uint64_t offset) {
    EXPECT_EQ(curandCreateGeneratorHost(&handle_, CURAND_RNG_PSEUDO_PHILOX4_32_10), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetPseudoRandomGeneratorSeed(handle_, seed), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetGeneratorOffset(handle_, offset), CURAND_STATUS_SUCCESS);
  }
  ~HostGenerator() { curandDestroyGenerator(handle_); }
  HostGenerator(const HostGenerator &) = delete;
  HostGenerator &operator=(const HostGenerator &) = delete;
  std::vector<uint32_t> words(size_t count) {
    std::vector<uint32_t> out(count);
    EXPECT_EQ(curandGenerate(handle_, out.data(), count), CURAND_STATUS_SUCCESS);
    return out;
  }
  std::vector<float> uniforms(size_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(curandGenerateUniform(handle_, out.data(), count), CURAND_STATUS_SUCCESS);
    return out;
  }

 private:
  curandGenerator_t handle_ = nullptr;
};

constexpr uint64_t kHostOffsets[] = {0, 1, 3, 262141, (uint64_t{1} << 33) + 2};

TEST(CurandHeader, HostGeneratorsHaveTheSameWords) {
  constexpr size_t kCount = 270001;  // past the first round of subsequences, which is 262,144 elements
  for (const uint64_t seed : kSeeds)
    for (const uint64_t offset : kHostOffsets) {
      const ckpt_curand_host snapshot = {seed, offset};
      std::vector<uint32_t> ours(kCount);
      ckpt_curand_host_u32(snapshot, 0, kCount, ours.data());
      ASSERT_EQ(HostGenerator(seed, offset).words(kCount), ours) << seed << " " << offset;
      // A piece equals its part of the whole.
      std::vector<uint32_t> piece(11);
      ckpt_curand_host_u32(snapshot, 262139, piece.size(), piece.data());
      EXPECT_EQ(piece, std::vector<uint32_t>(ours.begin() + 262139, ours.begin() + 262150));
    }
}

TEST(CurandHeader, HostGeneratorsHaveTheSameUniforms) {
  for (const uint64_t seed : kSeeds)
    for (const uint64_t offset : kHostOffsets) {
      std::vector<float> ours(1003);
      ckpt_curand_host_uniform({seed, offset}, 0, ours.size(), ours.data());
      ASSERT_EQ(HostGenerator(seed, offset).uniforms(ours.size()), ours) << seed << " " << offset;
    }
}

// The position of a generator that has been used: its offset plus what was made.
TEST(CurandHeader, AUsedHostGeneratorGoesOnAsASnapshot) {
  for (const uint64_t offset : kHostOffsets) {
    HostGenerator theirs(42, offset);
    uint64_t position = offset;
    for (const size_t count : {5, 1, 8, 3, 262144, 2}) {
      std::vector<uint32_t> ours(count);
      ckpt_curand_host_u32({42, position}, 0, count, ours.data());
      ASSERT_EQ(theirs.words(count), ours) << position << " " << count;
      position += count;
    }
  }
}

TEST(CurandHeader, AnElementsSnapshotIsItsWord) {
  std::vector<uint32_t> theirs = HostGenerator(42, 262140).words(9);
  for (uint64_t k = 0; k < theirs.size(); ++k) {
    const ckpt_philox philox = ckpt_philox_from_curand_host({42, 262140}, k);
    uint32_t word = 0;
    ASSERT_EQ(ckpt_philox_u32(&philox, 0, 1, &word), CKPT_OK);
    EXPECT_EQ(word, theirs[k]) << k;
  }
}

}  // namespace

#else

TEST(CurandHeader, LeftOut) { GTEST_SKIP() << "left out: no CUDA toolkit (curand_kernel.h and libcurand) was found"; }

#endif
