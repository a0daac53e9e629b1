// Dropout, sums, normal values and conversions against double precision, in the three element types, at odd sizes and alignments.
#include <tuple>

#include "plugin.h"

using namespace test;

namespace {

constexpr size_t kCounts[] = {1, 7, 8, 63, 1000, 4099};
const ckpt_philox kPhilox = {42, (uint64_t{3} << 36) + 5, (uint64_t{2} << 48) + 4, nullptr};

TEST(Elements, AddEqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const size_t count : kCounts)
      for (const size_t shift : {0, 1}) {
        const Floats a = rounded(type, values(count, 1)), b = rounded(type, values(count, 2));
        const Array x(type, a), y(type, b, shift), out(type, count);
        OK(ops->add(ops, x.data(), y.data(), count, out.data()));
        expect_near(out.read(), plus(of(a), b), 0.0, type, "a + b");
        OK(ops->add(ops, x.data(), y.data(), count, x.data()));
        EXPECT_EQ(x.bytes(), out.bytes()) << "out == a";
      }
  }
}

TEST(Elements, DropoutEqualsReferenceBitByBitInItsMask) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const size_t count : kCounts)
      for (const uint64_t offset : {0, 1, 2, 3})
        for (const float p : {0.0f, 0.1f, 0.75f}) {
          const ckpt_philox philox = {kPhilox.seed, kPhilox.subsequence, kPhilox.offset + offset, nullptr};
          const Floats in = rounded(type, values(count, 1)), more = rounded(type, values(count, 2));
          const Values factors = mask(philox, count, p);
          Values masked(count);
          for (size_t k = 0; k < count; ++k) masked[k] = static_cast<double>(in[k]) * factors[k];
          const Array x(type, in), residual(type, more), out(type, count), shifted(type, in, 1), out_shifted(type, count, 1);
          OK(ops->dropout_forward(ops, x.data(), nullptr, p, &philox, count, out.data()));
          const Floats got = out.read();
          expect_near(got, masked, 2e-7, type, "dropout");
          for (size_t k = 0; k < count; ++k) ASSERT_EQ(got[k] == 0.0f, factors[k] == 0.0) << k;
          OK(ops->dropout_forward(ops, shifted.data(), nullptr, p, &philox, count, out_shifted.data()));
          EXPECT_EQ(out_shifted.bytes(), out.bytes()) << "another alignment gave other bits";
          OK(ops->dropout_forward(ops, x.data(), residual.data(), p, &philox, count, out.data()));
          expect_near(out.read(), plus(masked, more), 2e-7, type, "dropout and residual");
          OK(ops->dropout_backward(ops, x.data(), p, &philox, count, out.data(), 0));
          expect_near(out.read(), masked, 2e-7, type, "backward");
          OK(ops->dropout_backward(ops, x.data(), p, &philox, count, residual.data(), 1));
          expect_near(residual.read(), plus(masked, more), 2e-7, type, "backward, accumulated");
        }
  }
}

// A word that equals the threshold is dropped, the one below it is kept: probabilities made for words that are there.
TEST(Elements, DropoutComparesIntegersExactly) {
  constexpr size_t kCount = 4099;
  const ckpt_philox philox = {42, 7, 1, nullptr};
  std::vector<uint32_t> words(kCount);
  OK(ckpt_philox_u32(&philox, 0, kCount, words.data()));
  size_t tried = 0;
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    const Array in(type, Floats(kCount, 1.0f)), out(type, kCount);
    for (size_t k = 0; k < kCount; ++k)
      for (const uint32_t above : {0u, 1u}) {
        const uint32_t threshold = words[k] + above;  // 1 - threshold 2^-32 is a float32 at or above a half where these hold
        if (threshold % 256 != 0 || threshold == 0 || threshold > 0x80000000u) continue;
        const float p = static_cast<float>(1.0 - threshold * 0x1p-32);
        OK(ops->dropout_forward(ops, in.data(), nullptr, p, &philox, kCount, out.data()));
        EXPECT_EQ(out.read()[k] != 0.0f, above == 1) << k << ", probability " << p;
        ++tried;
      }
  }
  EXPECT_GE(tried, 30u);
}

TEST(Elements, DropoutReadsTheStepWordOnTheDevice) {
  constexpr size_t kCount = 1001;
  const Device &d = Device::get();
  const Ops ops(ops::kFloat32);
  const Memory word(8);
  const ckpt_philox philox = {42, 7, 0, static_cast<const uint64_t *>(word.data())};
  const Array in(ops::kFloat32, Floats(kCount, 1.0f)), out(ops::kFloat32, kCount);
  for (const uint64_t step : {uint64_t{0}, uint64_t{9}}) {
    OK(d.table().write_word(d.self(), d.stream(), static_cast<uint64_t *>(word.data()), step));
    OK(ops->dropout_forward(ops, in.data(), nullptr, 0.5f, &philox, kCount, out.data()));
    expect_near(out.read(), mask({42, 7 + step, 0, nullptr}, kCount, 0.5f), 1e-7, ops::kFloat32, "step");
  }
}

TEST(Elements, NormalValuesAreTheCpus) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const uint64_t offset : {0, 1, 3})
      for (const size_t count : {1, 2, 5, 1003}) {
        const ckpt_philox philox = {1, 2, offset, nullptr};
        Floats expected(count);
        OK(ckpt_philox_normal(&philox, 0, count, 0.5f, 0.02f, expected.data()));
        const Array out(type, count, 1);
        OK(ops->normal(ops, &philox, 0.5f, 0.02f, count, out.data()));
        EXPECT_EQ(out.read(), rounded(type, expected)) << type_name(type) << " " << offset << " " << count;
      }
  }
}

TEST(Elements, ConversionsRoundToNearestEven) {
  Floats in = values(1027, 1, 100.0f);
  const float inf = std::numeric_limits<float>::infinity();
  const Floats special = {0.0f, -0.0f, inf, -inf, 1.00390625f, 1.01171875f, 65520.0f, 65519.0f, 6e-8f, 2.9e-8f, 1e-45f, 3.4e38f, -3.4e38f};
  in.insert(in.end(), special.begin(), special.end());
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const size_t shift : {0, 1}) {
      const Array from(ops::kFloat32, in, shift), to(type, in.size()), back(ops::kFloat32, in.size());
      OK(ops->from_float(ops, from.floats(), in.size(), to.data()));
      const Floats got = to.read(), expected = rounded(type, in);
      for (size_t k = 0; k < in.size(); ++k) ASSERT_EQ(got[k], expected[k]) << type_name(type) << " of " << in[k];
      OK(ops->to_float(ops, to.data(), in.size(), back.floats()));
      EXPECT_EQ(back.read(), got);
    }
  }
}

TEST(Elements, SameBitsInEveryOrder) {
  constexpr size_t kCount = 3001;
  for (const uint32_t type : kTypes)
    expect_repeatable([&] {
      const Ops ops(type);
      const Array in(type, values(kCount, 1)), residual(type, values(kCount, 2)), out(type, kCount);
      EXPECT_EQ(ops->dropout_forward(ops, in.data(), residual.data(), 0.3f, &kPhilox, kCount, out.data()), CKPT_OK);
      return out.bytes();
    });
}

TEST(Ops, RefuseAnUnknownType) {
  const Device &d = Device::get();
  void *self = &self;
  EXPECT_EQ(d.ops().create(d.self(), d.stream(), 3, &self), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(self, nullptr);
  EXPECT_NE(last_text().find("dtype is 3"), std::string::npos) << last_text();
}

}  // namespace
