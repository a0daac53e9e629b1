// What the tests of the layers share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ckpt/ops.h"
#include "reference.h"

namespace test {

using Floats = std::vector<float>;

class Ops {
 public:
  explicit Ops(uint32_t threads = 2, uint32_t isa = CKPT_ISA_BEST) {
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.thread_count = threads;
    desc.isa = isa;
    EXPECT_EQ(ckpt_ops_create(&desc, &ops_), CKPT_OK) << ckpt_ops_last_error();
  }
  ~Ops() { ckpt_ops_destroy(ops_); }
  Ops(const Ops &) = delete;
  Ops &operator=(const Ops &) = delete;
  operator ckpt_ops *() const { return ops_; }

 private:
  ckpt_ops *ops_ = nullptr;
};

// Values in (-scale, scale) from a linear congruence of its own.
inline Floats values(size_t count, uint64_t seed, float scale = 1.0f) {
  Floats out(count);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (float &value : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = (static_cast<float>(state >> 40) / 8388608.0f - 1.0f) * scale;
  }
  return out;
}

inline std::vector<int32_t> indices(size_t count, uint64_t seed, size_t bound) {
  std::vector<int32_t> out(count);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int32_t &value : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<int32_t>((state >> 33) % bound);
  }
  return out;
}

inline ckpt_philox philox(uint64_t seed = 42, uint64_t segment = 3) {
  ckpt_philox out = {};
  EXPECT_EQ(ckpt_philox_pack(seed, 5, segment, 1, &out), CKPT_OK);
  return out;
}

// The factors of a dropout mask, from the fill that the text names: an oracle of its own.
inline reference::Values mask(const ckpt_philox &philox, size_t count, float probability) {
  std::vector<uint8_t> bits(count);
  const double keep = 1.0 - static_cast<double>(probability);
  EXPECT_EQ(ckpt_philox_bernoulli(&philox, 0, count, keep, bits.data()), CKPT_OK);
  reference::Values out(count);
  for (size_t k = 0; k < count; ++k) out[k] = bits[k] ? 1.0 / keep : 0.0;
  return out;
}

// |got - expected| <= tolerance * (1 + the largest expected), each element.
inline void expect_near(const Floats &got, const reference::Values &expected, double tolerance, const std::string &what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double largest = 0.0;
  for (const double e : expected) largest = std::max(largest, std::fabs(e));
  for (size_t k = 0; k < got.size(); ++k)
    ASSERT_LE(std::fabs(static_cast<double>(got[k]) - expected[k]), tolerance * (1.0 + largest))
        << what << "[" << k << "]: " << got[k] << ", expected " << expected[k];
}

inline bool same_bits(const Floats &a, const Floats &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline reference::Values plus(reference::Values a, const Floats &b) {
  for (size_t k = 0; k < a.size(); ++k) a[k] += static_cast<double>(b[k]);
  return a;
}

}  // namespace test

#define OK(expression) ASSERT_EQ((expression), CKPT_OK) << ckpt_ops_last_error()
