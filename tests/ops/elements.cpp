// Dropout, add, norm, AdamW, normal values.
#include "common.h"

using namespace test;

namespace {

constexpr size_t kCounts[] = {1, 3, 17, 65, 1024, 1025, 40000, 100003};

TEST(Dropout, MaskIsThatOfTheFill) {
  const Ops ops;
  const ckpt_philox p = philox();
  for (const size_t count : kCounts) {
    for (const float probability : {0.0f, 0.1f, 0.5f, 0.999f}) {
      SCOPED_TRACE(testing::Message() << count << " elements, p " << probability);
      const Floats in = values(count, 1), residual = values(count, 2), out_grad = values(count, 3);
      const reference::Values factors = test::mask(p, count, probability);
      reference::Values expected(count), with_residual(count), grad_expected(count);
      for (size_t k = 0; k < count; ++k) {
        expected[k] = static_cast<double>(in[k]) * factors[k];
        with_residual[k] = expected[k] + static_cast<double>(residual[k]);
        grad_expected[k] = static_cast<double>(out_grad[k]) * factors[k];
      }
      Floats out(count, NAN), in_place = in, grad(count, NAN), added = residual, over_grad = out_grad;
      OK(ckpt_ops_dropout_forward(ops, in.data(), nullptr, probability, &p, count, out.data()));
      expect_near(out, expected, 1e-7, "out");
      OK(ckpt_ops_dropout_forward(ops, in_place.data(), nullptr, probability, &p, count, in_place.data()));
      EXPECT_TRUE(same_bits(out, in_place));
      OK(ckpt_ops_dropout_forward(ops, in.data(), residual.data(), probability, &p, count, out.data()));
      expect_near(out, with_residual, 2e-7, "with residual");
      OK(ckpt_ops_dropout_backward(ops, out_grad.data(), probability, &p, count, grad.data(), 0));
      expect_near(grad, grad_expected, 1e-7, "grad");
      OK(ckpt_ops_dropout_backward(ops, over_grad.data(), probability, &p, count, over_grad.data(), 0));
      EXPECT_TRUE(same_bits(grad, over_grad));
      OK(ckpt_ops_dropout_backward(ops, out_grad.data(), probability, &p, count, added.data(), 1));
      expect_near(added, plus(grad_expected, residual), 2e-7, "accumulated");
    }
  }
}

TEST(Dropout, WithoutProbabilityNeedsNoSnapshot) {
  const Ops ops;
  const Floats in = values(100, 1);
  Floats out(100);
  OK(ckpt_ops_dropout_forward(ops, in.data(), nullptr, 0.0f, nullptr, 100, out.data()));
  EXPECT_TRUE(same_bits(in, out));
}

TEST(Dropout, KeepsTheShareItSays) {
  const Ops ops;
  constexpr size_t kCount = 1 << 20;
  const Floats ones(kCount, 1.0f);
  Floats out(kCount);
  const ckpt_philox p = philox();
  OK(ckpt_ops_dropout_forward(ops, ones.data(), nullptr, 0.2f, &p, kCount, out.data()));
  double kept = 0.0;
  for (const float x : out) kept += x != 0.0f;
  EXPECT_NEAR(kept / kCount, 0.8, 0.002);  // five standard deviations: 0.00195
}

TEST(Add, EqualsSum) {
  const Ops ops;
  for (const size_t count : kCounts) {
    Floats a = values(count, 1);
    const Floats b = values(count, 2);
    Floats out(count, NAN), expected(count);
    for (size_t k = 0; k < count; ++k) expected[k] = a[k] + b[k];
    OK(ckpt_ops_add(ops, a.data(), b.data(), count, out.data()));
    EXPECT_EQ(out, expected);
    OK(ckpt_ops_add(ops, a.data(), b.data(), count, a.data()));
    EXPECT_EQ(a, expected);
  }
}

TEST(Norm, EqualsReference) {
  const Ops ops;
  for (const size_t count : kCounts) {
    const Floats x = values(count, 1);
    double sum = 0.0, norm = 0.0;
    for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
    OK(ckpt_ops_norm(ops, x.data(), count, &norm));
    EXPECT_NEAR(norm, std::sqrt(sum), 1e-12 * (1.0 + std::sqrt(sum)));
  }
}

TEST(Adamw, EqualsReferenceOverSteps) {
  const Ops ops;
  constexpr size_t kCount = 70001;
  ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
  desc.learning_rate = 0.01f;
  desc.beta2 = 0.95f;
  desc.weight_decay = 0.1f;
  desc.grad_scale = 0.5f;
  Floats parameters = values(kCount, 1), m(kCount), v(kCount);
  reference::Values p = reference::of(parameters), first(kCount), second(kCount);
  for (uint64_t step = 1; step <= 5; ++step) {
    const Floats grads = values(kCount, 10 + step);
    desc.step = step;
    OK(ckpt_ops_adamw(ops, &desc, kCount, grads.data(), parameters.data(), m.data(), v.data()));
    const double t = static_cast<double>(step);
    for (size_t k = 0; k < kCount; ++k) {
      const double g = 0.5 * static_cast<double>(grads[k]);
      first[k] = 0.9 * first[k] + 0.1 * g;
      second[k] = 0.95 * second[k] + 0.05 * g * g;
      p[k] -= 0.01 * 0.1 * p[k];
      p[k] -= 0.01 * (first[k] / (1.0 - std::pow(0.9, t))) / (std::sqrt(second[k] / (1.0 - std::pow(0.95, t))) + 1e-8);
    }
  }
  expect_near(parameters, p, 1e-6, "parameters");
  expect_near(m, first, 1e-6, "first moment");
  expect_near(v, second, 1e-6, "second moment");
}

TEST(Normal, IsThatOfTheFill) {
  const Ops ops;
  const ckpt_philox p = philox();
  for (const size_t count : kCounts) {
    Floats out(count, NAN), expected(count);
    ASSERT_EQ(ckpt_philox_normal(&p, 0, count, 1.0f, 0.5f, expected.data()), CKPT_OK);
    OK(ckpt_ops_normal(ops, &p, 1.0f, 0.5f, count, out.data()));
    EXPECT_TRUE(same_bits(out, expected)) << count;
  }
}

}  // namespace
