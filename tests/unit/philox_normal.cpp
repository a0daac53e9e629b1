// The normal transform against double precision. Bounds are those that normal.h states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rng/normal.h"
#include "rng/philox.h"

namespace ckpt::rng {
namespace {

constexpr double kPi = 3.14159265358979323846;

double units_in_last_place(float got, double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 24);
}

// The angle as normal.h defines it, in float32, by another route: the product is exact in double.
float angle(uint32_t y) {
  const double two_pi = static_cast<double>(6.2831855f);
  return static_cast<float>(static_cast<double>(static_cast<float>(y)) * two_pi * 0x1p-32 + two_pi * 0x1p-33);
}

// Dense where the functions are delicate (around `centre`), a stride elsewhere.
template <class F>
void sample(std::initializer_list<uint64_t> centres, const F &f) {
  for (uint64_t x = 0; x < uint64_t{1} << 32; x += 4099) f(static_cast<uint32_t>(x));
  for (const uint64_t centre : centres)
    for (uint64_t x = centre - 40000; x != centre + 40000; ++x) f(static_cast<uint32_t>(x));
}

TEST(PhiloxNormal, LogarithmIsWithinOneUnit) {
  double worst = 0;
  sample({0, 0x80000000u, 0xB504F334u}, [&](uint32_t x) {
    const float u = uniform_of(x);
    if (u == 1.0f)
      EXPECT_EQ(natural_log<OneLane>(u), 0.0f);
    else
      worst = std::max(worst, units_in_last_place(natural_log<OneLane>(u), std::log(static_cast<double>(u))));
  });
  EXPECT_LE(worst, 1.0);
  EXPECT_GT(worst, 0.5);  // else the measurement measures nothing
}

TEST(PhiloxNormal, SineAndCosineAreWithinTheirBound) {
  double worst = 0;
  sample({0, 0x20000000u, 0x40000000u, 0x80000000u, 0xC0000000u}, [&](uint32_t y) {
    const float v = angle(y);
    float sine, cosine;
    sine_cosine<OneLane>(v, &sine, &cosine);
    worst = std::max({worst, units_in_last_place(sine, std::sin(static_cast<double>(v))),
                      units_in_last_place(cosine, std::cos(static_cast<double>(v)))});
  });
  EXPECT_LE(worst, 1.6);
  EXPECT_GT(worst, 0.5);
}

TEST(PhiloxNormal, PairIsWithinItsBounds) {
  double worst = 0, worst_exact = 0;
  for (uint64_t i = 0; i < 500000; ++i) {
    const Block block = block_at(7, 1, i);
    const uint32_t x = block.word[0], y = block.word[1];
    float sine, cosine;
    box_muller<OneLane>(x, y, &sine, &cosine);
    const double radius = std::sqrt(-2 * std::log(static_cast<double>(uniform_of(x))));
    const double v = static_cast<double>(angle(y)), exact = 2 * kPi * (y + 0.5) * 0x1p-32;
    worst = std::max({worst, units_in_last_place(sine, radius * std::sin(v)),
                      units_in_last_place(cosine, radius * std::cos(v))});
    worst_exact = std::max({worst_exact, std::fabs(static_cast<double>(sine) - radius * std::sin(exact)),
                            std::fabs(static_cast<double>(cosine) - radius * std::cos(exact))});
  }
  EXPECT_LE(worst, 3.5);
  EXPECT_LE(worst_exact, 2.5e-6);
}

TEST(PhiloxNormal, ExtremesAreFinite) {
  for (const uint32_t x : {0u, 1u, 0xFFFFFF7Fu, 0xFFFFFFFFu})
    for (const uint32_t y : {0u, 0x3FFFFFFFu, 0x40000000u, 0x7FFFFFFFu, 0x80000000u, 0xC0000000u, 0xFFFFFFFFu}) {
      float sine, cosine;
      box_muller<OneLane>(x, y, &sine, &cosine);
      EXPECT_TRUE(std::isfinite(sine) && std::isfinite(cosine)) << x << " " << y;
      EXPECT_LE(std::hypot(static_cast<double>(sine), static_cast<double>(cosine)), std::sqrt(66 * std::log(2.0)) * 1.000001);
      if (uniform_of(x) == 1.0f) {
        EXPECT_EQ(std::fabs(sine) + std::fabs(cosine), 0.0f);
      }
    }
}

}  // namespace
}  // namespace ckpt::rng
