// Every instruction set gives the bits of the scalar text, for every start, count and alignment; and what comes out has
// the properties that a stream of random numbers must have.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "rng/fill.h"
#include "rng/normal.h"
#include "rng/philox.h"

namespace ckpt::rng {
namespace {

constexpr uint32_t kThreshold = 0xE6666666u;

struct Case {
  Isa isa;
  const char *name;
};

class Fill : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    wide_ = fills(GetParam().isa);
    if (wide_ == nullptr) GTEST_SKIP() << GetParam().name << " is not on this machine or in this build";
  }
  const Fills *wide_ = nullptr;
};

// The four fills into `out` + shift elements, everything else untouched, compared with the scalar ones bit by bit.
template <class T, class F>
void expect_same(const F &run, const Fills &wide, size_t count, size_t shift, const char *what) {
  constexpr unsigned char kGuard = 0xA5;
  std::vector<T> want(count), got(count + shift + 16);
  std::memset(static_cast<void *>(got.data()), kGuard, got.size() * sizeof(T));
  run(kScalarFills, want.data());
  run(wide, got.data() + shift);
  ASSERT_EQ(count == 0 ? 0 : std::memcmp(want.data(), got.data() + shift, count * sizeof(T)), 0)
      << what << " count " << count << " shift " << shift;
  T guard;
  std::memset(static_cast<void *>(&guard), kGuard, sizeof guard);
  for (size_t i = 0; i < got.size(); ++i) {
    const bool outside = i < shift || i >= shift + count;
    ASSERT_TRUE(!outside || std::memcmp(&got[i], &guard, sizeof guard) == 0) << what << " wrote outside, at " << i;
  }
}

void expect_all_same(const Fills &wide, const Stream &s, size_t n, size_t shift) {
  expect_same<uint32_t>([&](const Fills &f, uint32_t *out) { f.u32(s, n, out); }, wide, n, shift, "u32");
  expect_same<float>([&](const Fills &f, float *out) { f.uniform(s, n, out); }, wide, n, shift, "uniform");
  expect_same<float>([&](const Fills &f, float *out) { f.normal(s, n, 0.25f, 3.0f, out); }, wide, n, shift, "normal");
  expect_same<uint8_t>([&](const Fills &f, uint8_t *out) { f.below(s, n, kThreshold, out); }, wide, n, shift, "below");
}

TEST_P(Fill, EveryStartCountAndAlignmentGivesTheScalarBits) {
  for (uint64_t start = 0; start < 8; ++start)
    for (size_t count = 0; count < 300; count = count < 140 ? count + 1 : count + 13)
      for (size_t shift = 0; shift < 2; ++shift) {
        expect_all_same(*wide_, {0x0123456789ABCDEF, 0xFEDCBA9876543210, start + 8 * count}, count, shift * (1 + count % 5));
        if (HasFatalFailure()) return;
      }
}

TEST_P(Fill, CountersCarryIntoTheirHighWords) {
  const uint64_t starts[] = {(uint64_t{1} << 34) - 130, (uint64_t{1} << 34) - 1, (uint64_t{1} << 63) - 7, 0 - uint64_t{517}};
  for (const uint64_t start : starts) expect_all_same(*wide_, {42, ~uint64_t{0}, start}, 517, 0);
}

TEST_P(Fill, AMillionOfEachAgree) { expect_all_same(*wide_, {7, 3, 1}, 1000003, 1); }

TEST_P(Fill, ThresholdsAtTheEdgesAgree) {
  const Stream s{1, 2, 0};
  const uint32_t word = word_at(1, 2, 100);
  for (const uint32_t threshold : {1u, 0x7FFFFFFFu, 0x80000000u, 0x80000001u, 0xFFFFFFFFu, word, word + 1})
    expect_same<uint8_t>([&](const Fills &f, uint8_t *out) { f.below(s, 1000, threshold, out); }, *wide_, 1000, 0, "below");
}

INSTANTIATE_TEST_SUITE_P(Isa, Fill,
                         testing::Values(Case{Isa::SCALAR, "scalar"}, Case{Isa::AVX2, "avx2"}, Case{Isa::AVX512, "avx512"}),
                         [](const auto &instance) { return std::string(instance.param.name); });

TEST(PhiloxFill, ScalarFillsAreTheDefinitionElementByElement) {
  const Stream s{99, (uint64_t{5} << 36) + 17, 6};
  std::vector<uint32_t> words(101);
  std::vector<float> uniforms(101), normals(101);
  std::vector<uint8_t> bytes(101);
  kScalarFills.u32(s, 101, words.data());
  kScalarFills.uniform(s, 101, uniforms.data());
  kScalarFills.normal(s, 101, 0.0f, 1.0f, normals.data());
  kScalarFills.below(s, 101, kThreshold, bytes.data());
  for (size_t e = 0; e < 101; ++e) {
    const uint64_t w = s.word + e;
    EXPECT_EQ(words[e], word_at(s.seed, s.subsequence, w));
    EXPECT_EQ(static_cast<double>(uniforms[e]),
              static_cast<double>(static_cast<float>(static_cast<double>(static_cast<float>(words[e])) * 0x1p-32 + 0x1p-33)));
    EXPECT_EQ(bytes[e], words[e] < kThreshold ? 1 : 0);
    float pair[2];
    const uint64_t even = w & ~uint64_t{1};
    box_muller<OneLane>(word_at(s.seed, s.subsequence, even), word_at(s.seed, s.subsequence, even + 1), pair, pair + 1);
    EXPECT_EQ(std::bit_cast<uint32_t>(normals[e]), std::bit_cast<uint32_t>(pair[w % 2]));
  }
}

TEST(PhiloxFill, UniformIsOneForThe128LargestWordsAndNeverZero) {
  EXPECT_EQ(uniform_of(0), 0x1p-33f);
  EXPECT_EQ(uniform_of(0xFFFFFFFFu), 1.0f);
  EXPECT_EQ(uniform_of(0xFFFFFF80u), 1.0f);
  EXPECT_LT(uniform_of(0xFFFFFF7Fu), 1.0f);
}

TEST(PhiloxFill, EndsOfTheThresholdNeedNoWord) {
  std::vector<uint8_t> bytes(100, 7);
  bernoulli(best_fills(), {1, 2, 3}, bytes.size(), 0, bytes.data());
  EXPECT_EQ(bytes, std::vector<uint8_t>(100, 0));
  bernoulli(best_fills(), {1, 2, 3}, bytes.size(), uint64_t{1} << 32, bytes.data());
  EXPECT_EQ(bytes, std::vector<uint8_t>(100, 1));
}

// Fixed streams, so these either hold or not; bounds are 5 standard deviations.
TEST(PhiloxFill, MomentsOfAMillionDraws) {
  constexpr size_t kCount = 1 << 20;
  constexpr double n = kCount;
  std::vector<float> values(kCount);
  std::vector<uint8_t> bytes(kCount);
  const Stream s{2026, 1, 0};
  best_fills().uniform(s, kCount, values.data());
  double sum = 0, lag = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const auto x = static_cast<double>(values[i]);
    sum += x;
    if (i > 0) lag += (x - 0.5) * (static_cast<double>(values[i - 1]) - 0.5);
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(lag / n, 0.0, 5 * (1.0 / 12) / std::sqrt(n));
  best_fills().normal(s, kCount, 2.0f, 3.0f, values.data());
  double first = 0, second = 0, third = 0, fourth = 0;
  for (const float value : values) {
    const double z = (static_cast<double>(value) - 2) / 3;
    first += z, second += z * z, third += z * z * z, fourth += z * z * z * z;
  }
  EXPECT_NEAR(first / n, 0, 5 * std::sqrt(1 / n));
  EXPECT_NEAR(second / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(third / n, 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  bernoulli(best_fills(), s, kCount, 0xE6666666u, bytes.data());
  double passed = 0;
  for (const uint8_t byte : bytes) passed += byte;
  EXPECT_NEAR(passed / n, 0.9, 5 * std::sqrt(0.09 / n));
}

}  // namespace
}  // namespace ckpt::rng
