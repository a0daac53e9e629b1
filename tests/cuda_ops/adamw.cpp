// AdamW with and without master weights, the norm, clipping whose factor stays on the device.
#include "plugin.h"

using namespace test;

namespace {

// The update in double precision, by the paper's formulas: t is the number of this step.
struct Reference {
  double rate = 1e-2, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-6, decay = 0.1;
  Values parameters, first, second;

  explicit Reference(const Floats &start) : parameters(start.begin(), start.end()), first(start.size()), second(start.size()) {}
  void step(const Floats &grads, double factor, int t) {
    for (size_t k = 0; k < parameters.size(); ++k) {
      const double g = static_cast<double>(grads[k]) * factor;
      first[k] = beta1 * first[k] + (1 - beta1) * g;
      second[k] = beta2 * second[k] + (1 - beta2) * g * g;
      const double m = first[k] / (1 - std::pow(beta1, t)), v = second[k] / (1 - std::pow(beta2, t));
      parameters[k] -= rate * decay * parameters[k] + rate * m / (std::sqrt(v) + epsilon);
    }
  }
  // As ckpt_ops_adamw makes it from its desc.
  ops::DeviceAdamw device_step(int t, float grad_scale, bool clip) const {
    ops::DeviceAdamw out = {};
    out.beta1 = static_cast<float>(beta1);
    out.beta2 = static_cast<float>(beta2);
    out.epsilon = static_cast<float>(epsilon);
    out.decay = static_cast<float>(1 - rate * decay);
    out.grad_scale = grad_scale;
    out.step_size = static_cast<float>(rate / (1 - std::pow(beta1, t)));
    out.second_moment_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
    out.clip = clip;
    return out;
  }
};

double length(const Floats &values) {
  double sum = 0.0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

TEST(Adamw, StepsEqualReference) {
  for (const uint32_t type : kTypes)
    for (const bool master : {false, true})
      for (const size_t count : {1, 7, 64, 1003})
        for (const size_t shift : {0, 1}) {
          const Ops ops(type);
          const uint32_t stored = master ? type : ops::kFloat32;
          const Floats start = values(count, 1);
          Reference reference(start);
          const Array parameters(stored, start, shift), weights(ops::kFloat32, start), first(ops::kFloat32, Floats(count)), second(ops::kFloat32, Floats(count));
          for (int t = 1; t <= 3; ++t) {
            const Floats grads = values(count, static_cast<uint64_t>(10 + t), 4.0f);
            const Array g(ops::kFloat32, grads);
            const auto step = reference.device_step(t, 0.5f, false);
            OK(ops->adamw(ops, &step, count, g.floats(), parameters.data(), master ? weights.floats() : nullptr, first.floats(), second.floats()));
            reference.step(grads, 0.5, t);
          }
          expect_near(parameters.read(), reference.parameters, 1e-6, stored, "parameters");
          expect_near(first.read(), reference.first, 1e-6, ops::kFloat32, "first moment");
          expect_near(second.read(), reference.second, 1e-6, ops::kFloat32, "second moment");
          if (master) {
            expect_near(weights.read(), reference.parameters, 1e-6, ops::kFloat32, "master weights");
            EXPECT_EQ(parameters.read(), rounded(type, weights.read()));
          }
        }
}

TEST(Norm, EqualsReference) {
  const Ops ops(ops::kBfloat16);  // values are float32 whatever the type
  for (const size_t count : {1, 3, 4, 1000, 4097, 70001}) {
    const Floats x = values(count, 1, 3.0f);
    double got = 0.0, shifted = 0.0;
    const Array a(ops::kFloat32, x), b(ops::kFloat32, x, 1);
    OK(ops->norm(ops, a.floats(), count, &got));
    EXPECT_NEAR(got, length(x), 1e-12 * length(x));
    OK(ops->norm(ops, b.floats(), count, &shifted));
    EXPECT_EQ(got, shifted) << "another alignment";
  }
}

TEST(Clip, LeavesItsFactorOnTheDevice) {
  const Ops ops(ops::kFloat32);
  constexpr size_t kCount = 5001;
  const Floats start = values(kCount, 1), grads = values(kCount, 2);
  const double norm = length(grads);
  struct Case {
    float grad_scale, max_norm;
    double factor;
  };
  for (const auto &[grad_scale, max_norm, factor] : {Case{1.0f, 0.0f, 1.0}, Case{1.0f, 1e6f, 1.0}, Case{1.0f, 2.0f, 2.0 / norm}, Case{-0.5f, 3.0f, 3.0 / (0.5 * norm)}}) {
    Reference reference(start);
    const Array parameters(ops::kFloat32, start), first(ops::kFloat32, Floats(kCount)), second(ops::kFloat32, Floats(kCount)), g(ops::kFloat32, grads);
    double got = -1.0, between = 0.0;
    OK(ops->clip(ops, g.floats(), kCount, grad_scale, max_norm, &got));
    EXPECT_NEAR(got, std::fabs(static_cast<double>(grad_scale)) * norm, 1e-10 * norm);
    OK(ops->clip(ops, g.floats(), kCount, grad_scale, max_norm, nullptr));
    OK(ops->norm(ops, parameters.floats(), kCount, &between));  // a norm in between is no clip
    const auto step = reference.device_step(1, grad_scale, true);
    OK(ops->adamw(ops, &step, kCount, g.floats(), parameters.data(), nullptr, first.floats(), second.floats()));
    reference.step(grads, static_cast<double>(grad_scale) * factor, 1);
    expect_near(first.read(), reference.first, 1e-7, ops::kFloat32, "first moment");
    expect_near(parameters.read(), reference.parameters, 1e-6, ops::kFloat32, "parameters");
  }
}

TEST(Adamw, SameBitsInEveryOrder) {
  expect_repeatable([] {
    const Ops ops(ops::kBfloat16);
    constexpr size_t kCount = 40001;
    const Reference reference(Floats{});
    const Array parameters(ops::kBfloat16, kCount), weights(ops::kFloat32, values(kCount, 1)), first(ops::kFloat32, Floats(kCount)), second(ops::kFloat32, Floats(kCount));
    const Array g(ops::kFloat32, values(kCount, 2));
    EXPECT_EQ(ops->clip(ops, g.floats(), kCount, 1.0f, 1.0f, nullptr), CKPT_OK);
    const auto step = reference.device_step(1, 1.0f, true);
    EXPECT_EQ(ops->adamw(ops, &step, kCount, g.floats(), parameters.data(), weights.floats(), first.floats(), second.floats()), CKPT_OK);
    auto bytes = weights.bytes();
    append(&bytes, parameters.bytes());
    return bytes;
  });
}

}  // namespace
