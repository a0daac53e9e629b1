// Numbers for the tests of the layers and of the plugin's kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ckpt/rng.h"
#include "reference.h"

namespace test {

using Floats = std::vector<float>;

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

// The factors of a dropout mask, from the fill that the text names: an oracle of its own.
inline reference::Values mask(const ckpt_philox &philox, size_t count, float probability) {
  std::vector<uint8_t> bits(count);
  const double keep = 1.0 - static_cast<double>(probability);
  EXPECT_EQ(ckpt_philox_bernoulli(&philox, 0, count, keep, bits.data()), CKPT_OK);
  reference::Values out(count);
  for (size_t k = 0; k < count; ++k) out[k] = bits[k] ? 1.0 / keep : 0.0;
  return out;
}

inline reference::Values plus(reference::Values a, const Floats &b) {
  for (size_t k = 0; k < a.size(); ++k) a[k] += static_cast<double>(b[k]);
  return a;
}

}  // namespace test
