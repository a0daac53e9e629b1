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
#include "values.h"

namespace test {

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

inline ckpt_philox philox(uint64_t seed = 42, uint64_t segment = 3) {
  ckpt_philox out = {};
  EXPECT_EQ(ckpt_philox_pack(seed, 5, segment, 1, &out), CKPT_OK);
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
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace test

#define OK(expression) ASSERT_EQ((expression), CKPT_OK) << ckpt_ops_last_error()
