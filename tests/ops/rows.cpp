// Linear, layernorm, GELU, embedding and cross-entropy against the double-precision reference: values, gradients by hand and by
// central differences, odd sizes, accumulation, arrays that may be the same.
#include <cfloat>

#include "common.h"

using namespace test;
using reference::Values;

namespace {

struct LinearShape {
  size_t rows, inputs, outputs;
};
constexpr LinearShape kLinearShapes[] = {{1, 1, 1}, {1, 17, 3}, {3, 1, 65}, {17, 65, 3}, {130, 33, 70}, {131, 64, 515}, {300, 520, 130}};

TEST(Linear, ForwardEqualsReference) {
  const Ops ops;
  for (const auto &[rows, inputs, outputs] : kLinearShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " -> " << outputs);
    const Floats in = values(rows * inputs, 1), weight = values(outputs * inputs, 2), bias = values(outputs, 3);
    Floats out(rows * outputs, NAN);
    OK(ckpt_ops_linear_forward(ops, in.data(), weight.data(), bias.data(), rows, inputs, outputs, out.data()));
    expect_near(out, reference::linear(reference::of(in), reference::of(weight), reference::of(bias), rows, inputs, outputs), 2e-6, "out");
    OK(ckpt_ops_linear_forward(ops, in.data(), weight.data(), nullptr, rows, inputs, outputs, out.data()));
    expect_near(out, reference::linear(reference::of(in), reference::of(weight), {}, rows, inputs, outputs), 2e-6, "out without bias");
  }
}

TEST(Linear, BackwardEqualsReferenceAndAddsToParameters) {
  const Ops ops;
  for (const auto &[rows, inputs, outputs] : kLinearShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " -> " << outputs);
    const Floats in = values(rows * inputs, 1), weight = values(outputs * inputs, 2), out_grad = values(rows * outputs, 4);
    const Floats before_in = values(rows * inputs, 5), before_weight = values(outputs * inputs, 6), before_bias = values(outputs, 7);
    const auto expected = reference::linear_backward(reference::of(in), reference::of(weight), reference::of(out_grad), rows, inputs, outputs);
    for (const bool accumulate : {false, true}) {
      Floats in_grad = before_in, weight_grad = before_weight, bias_grad = before_bias;
      OK(ckpt_ops_linear_backward(ops, in.data(), weight.data(), out_grad.data(), rows, inputs, outputs, in_grad.data(), accumulate,
                                  weight_grad.data(), bias_grad.data()));
      expect_near(in_grad, accumulate ? plus(expected.in, before_in) : expected.in, 2e-6, "in_grad");
      expect_near(weight_grad, plus(expected.weight, before_weight), 2e-6, "weight_grad");
      expect_near(bias_grad, plus(expected.bias, before_bias), 2e-6, "bias_grad");
    }
  }
}

TEST(Linear, BackwardEqualsDifferences) {
  const Ops ops;
  constexpr size_t kRows = 3, kInputs = 5, kOutputs = 4;
  const Floats in = values(kRows * kInputs, 1), weight = values(kOutputs * kInputs, 2), out_grad = values(kRows * kOutputs, 3);
  Floats in_grad(in.size()), weight_grad(weight.size()), bias_grad(kOutputs);
  OK(ckpt_ops_linear_backward(ops, in.data(), weight.data(), out_grad.data(), kRows, kInputs, kOutputs, in_grad.data(), 0,
                              weight_grad.data(), bias_grad.data()));
  const Values x = reference::of(in), w = reference::of(weight), g = reference::of(out_grad), none(kOutputs, 0.0);
  const auto f = [&](const Values &a, const Values &b, const Values &c) { return reference::linear(a, b, c, kRows, kInputs, kOutputs); };
  expect_near(in_grad, reference::differences([&](const Values &v) { return f(v, w, none); }, x, g), 1e-6, "in_grad");
  expect_near(weight_grad, reference::differences([&](const Values &v) { return f(x, v, none); }, w, g), 1e-6, "weight_grad");
  expect_near(bias_grad, reference::differences([&](const Values &v) { return f(x, w, v); }, none, g), 1e-6, "bias_grad");
}

TEST(Linear, EachGradientAloneHasTheSameBits) {
  const Ops ops;
  constexpr size_t kRows = 200, kInputs = 70, kOutputs = 150;
  const Floats in = values(kRows * kInputs, 1), weight = values(kOutputs * kInputs, 2), out_grad = values(kRows * kOutputs, 3);
  Floats in_grad(in.size()), weight_grad(weight.size()), bias_grad(kOutputs);
  OK(ckpt_ops_linear_backward(ops, in.data(), weight.data(), out_grad.data(), kRows, kInputs, kOutputs, in_grad.data(), 0,
                              weight_grad.data(), bias_grad.data()));
  Floats in_alone(in.size()), weight_alone(weight.size()), bias_alone(kOutputs);
  OK(ckpt_ops_linear_backward(ops, nullptr, weight.data(), out_grad.data(), kRows, kInputs, kOutputs, in_alone.data(), 0, nullptr, nullptr));
  OK(ckpt_ops_linear_backward(ops, in.data(), nullptr, out_grad.data(), kRows, kInputs, kOutputs, nullptr, 0, weight_alone.data(), nullptr));
  OK(ckpt_ops_linear_backward(ops, nullptr, nullptr, out_grad.data(), kRows, kInputs, kOutputs, nullptr, 0, nullptr, bias_alone.data()));
  EXPECT_TRUE(same_bits(in_grad, in_alone));
  EXPECT_TRUE(same_bits(weight_grad, weight_alone));
  EXPECT_TRUE(same_bits(bias_grad, bias_alone));
}

TEST(Linear, ResidualAndDropoutAreFusedExactly) {
  const Ops ops;
  const ckpt_philox p = philox();
  for (const auto &[rows, inputs, outputs] : kLinearShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " -> " << outputs);
    const Floats in = values(rows * inputs, 1), weight = values(outputs * inputs, 2), bias = values(outputs, 3);
    const Floats residual = values(rows * outputs, 4);
    for (const float probability : {0.0f, 0.3f}) {
      Floats plain(rows * outputs), fused(rows * outputs, NAN), in_place = residual;
      OK(ckpt_ops_linear_forward(ops, in.data(), weight.data(), bias.data(), rows, inputs, outputs, plain.data()));
      OK(ckpt_ops_dropout_forward(ops, plain.data(), residual.data(), probability, &p, plain.size(), plain.data()));
      OK(ckpt_ops_linear_residual_forward(ops, in.data(), weight.data(), bias.data(), residual.data(), probability, &p, rows, inputs,
                                          outputs, fused.data()));
      expect_near(fused, reference::of(plain), 3e-6, "fused");
      OK(ckpt_ops_linear_residual_forward(ops, in.data(), weight.data(), bias.data(), in_place.data(), probability, &p, rows, inputs,
                                          outputs, in_place.data()));
      EXPECT_TRUE(same_bits(fused, in_place));
    }
  }
}

struct RowShape {
  size_t rows, columns;
};
constexpr RowShape kRowShapes[] = {{1, 2}, {3, 17}, {1, 65}, {65, 3}, {17, 16}, {500, 131}, {9, 5000}};

TEST(Layernorm, ForwardEqualsReference) {
  const Ops ops;
  for (const auto &[rows, channels] : kRowShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << channels);
    Floats in = values(rows * channels, 1, 3.0f);
    const Floats weight = values(channels, 2), bias = values(channels, 3);
    Floats out(in.size(), NAN), mean(rows, NAN), rstd(rows, NAN);
    OK(ckpt_ops_layernorm_forward(ops, in.data(), weight.data(), bias.data(), rows, channels, 1e-5f, out.data(), mean.data(), rstd.data()));
    expect_near(out, reference::layernorm(reference::of(in), reference::of(weight), reference::of(bias), rows, channels, 1e-5), 3e-6, "out");
    OK(ckpt_ops_layernorm_forward(ops, in.data(), weight.data(), bias.data(), rows, channels, 1e-5f, in.data(), mean.data(), rstd.data()));
    EXPECT_TRUE(same_bits(in, out)) << "in place";
  }
}

TEST(Layernorm, ChannelsOfOneGiveTheBias) {
  const Ops ops;
  const Floats in = values(5, 1), weight = {2.0f}, bias = {0.25f};
  Floats out(5), mean(5), rstd(5);
  OK(ckpt_ops_layernorm_forward(ops, in.data(), weight.data(), bias.data(), 5, 1, 1e-5f, out.data(), mean.data(), rstd.data()));
  EXPECT_EQ(out, Floats(5, 0.25f));
  EXPECT_EQ(mean, in);
}

// Rows far from zero: two passes keep the variance, which a sum of squares would lose.
TEST(Layernorm, VarianceSurvivesALargeMean) {
  const Ops ops;
  constexpr size_t kChannels = 200;
  Floats in = values(kChannels, 1);
  for (float &x : in) x = std::round(x * 64.0f) / 64.0f + 4096.0f;
  const Floats weight(kChannels, 1.0f), bias(kChannels, 0.0f);
  Floats out(kChannels), mean(1), rstd(1);
  OK(ckpt_ops_layernorm_forward(ops, in.data(), weight.data(), bias.data(), 1, kChannels, 1e-5f, out.data(), mean.data(), rstd.data()));
  expect_near(out, reference::layernorm(reference::of(in), reference::of(weight), reference::of(bias), 1, kChannels, 1e-5), 1e-3, "out");
}

struct Norm {
  Floats in, weight, bias, mean, rstd, out_grad;
  size_t rows, channels;
  Norm(ckpt_ops *ops, size_t r, size_t c)
      : in(values(r * c, 1, 2.0f)), weight(values(c, 2)), bias(values(c, 3)), mean(r), rstd(r), out_grad(values(r * c, 4)), rows(r), channels(c) {
    Floats out(r * c);
    EXPECT_EQ(ckpt_ops_layernorm_forward(ops, in.data(), weight.data(), bias.data(), r, c, 1e-5f, out.data(), mean.data(), rstd.data()), CKPT_OK);
  }
  ckpt_status backward(ckpt_ops *ops, const float *grad, const float *residual, float *in_grad, bool accumulate, float *weight_grad,
                       float *bias_grad) const {
    return ckpt_ops_layernorm_backward(ops, in.data(), mean.data(), rstd.data(), weight.data(), grad, residual, rows, channels, in_grad,
                                       accumulate, weight_grad, bias_grad);
  }
};

TEST(Layernorm, BackwardEqualsDifferences) {
  const Ops ops;
  for (const RowShape &shape : {RowShape{3, 17}, RowShape{2, 33}, RowShape{5, 3}}) {
    const Norm n(ops, shape.rows, shape.columns);
    Floats in_grad(n.in.size()), weight_grad(n.channels), bias_grad(n.channels);
    OK(n.backward(ops, n.out_grad.data(), nullptr, in_grad.data(), false, weight_grad.data(), bias_grad.data()));
    const Values x = reference::of(n.in), w = reference::of(n.weight), b = reference::of(n.bias), g = reference::of(n.out_grad);
    const auto f = [&](const Values &a, const Values &v, const Values &c) { return reference::layernorm(a, v, c, n.rows, n.channels, 1e-5); };
    expect_near(in_grad, reference::differences([&](const Values &v) { return f(v, w, b); }, x, g), 5e-6, "in_grad");
    expect_near(weight_grad, reference::differences([&](const Values &v) { return f(x, v, b); }, w, g), 5e-6, "weight_grad");
    expect_near(bias_grad, reference::differences([&](const Values &v) { return f(x, w, v); }, b, g), 5e-6, "bias_grad");
  }
}

// The same by the formula, on shapes of several chunks, with the residual's gradient, accumulation and arrays that are the same.
TEST(Layernorm, BackwardEqualsFormula) {
  const Ops ops;
  for (const auto &[rows, channels] : kRowShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << channels);
    const Norm n(ops, rows, channels);
    const Floats residual = values(rows * channels, 5), before = values(rows * channels, 6), before_weight = values(channels, 7);
    Values expected(n.in.size()), weight_expected = reference::of(before_weight), bias_expected = reference::of(before_weight);
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = r * channels;
      const double count = static_cast<double>(channels);
      double mean = 0.0, variance = 0.0, sum_g = 0.0, sum_gh = 0.0;
      for (size_t c = 0; c < channels; ++c) mean += static_cast<double>(n.in[at + c]) / count;
      for (size_t c = 0; c < channels; ++c) variance += std::pow(static_cast<double>(n.in[at + c]) - mean, 2) / count;
      const double s = 1.0 / std::sqrt(variance + 1e-5);
      for (size_t c = 0; c < channels; ++c) {
        const double h = (static_cast<double>(n.in[at + c]) - mean) * s, d = static_cast<double>(n.out_grad[at + c]);
        sum_g += d * static_cast<double>(n.weight[c]);
        sum_gh += d * static_cast<double>(n.weight[c]) * h;
        weight_expected[c] += d * h;
        bias_expected[c] += d;
      }
      for (size_t c = 0; c < channels; ++c) {
        const double h = (static_cast<double>(n.in[at + c]) - mean) * s;
        expected[at + c] = s * (static_cast<double>(n.out_grad[at + c]) * static_cast<double>(n.weight[c]) - sum_g / count - h * sum_gh / count);
      }
    }
    Floats in_grad(n.in.size(), NAN), weight_grad = before_weight, bias_grad = before_weight;
    OK(n.backward(ops, n.out_grad.data(), nullptr, in_grad.data(), false, weight_grad.data(), bias_grad.data()));
    expect_near(in_grad, expected, 5e-6, "in_grad");
    expect_near(weight_grad, weight_expected, 5e-6, "weight_grad");
    expect_near(bias_grad, bias_expected, 5e-6, "bias_grad");

    const Values with_residual = plus(expected, residual);
    Floats over_grad = n.out_grad, over_residual = residual, added = before;
    OK(n.backward(ops, over_grad.data(), residual.data(), over_grad.data(), false, nullptr, nullptr));
    OK(n.backward(ops, n.out_grad.data(), over_residual.data(), over_residual.data(), false, nullptr, nullptr));
    OK(n.backward(ops, n.out_grad.data(), residual.data(), added.data(), true, nullptr, nullptr));
    expect_near(over_grad, with_residual, 5e-6, "over out_grad");
    EXPECT_TRUE(same_bits(over_grad, over_residual));
    expect_near(added, plus(with_residual, before), 5e-6, "accumulated");
  }
}

TEST(Gelu, ForwardAndSlopeAreAccurateEverywhere) {
  const Ops ops;
  Floats in;
  for (int k = -40000; k <= 40000; ++k) in.push_back(static_cast<float>(k) / 2000.0f);
  for (const float x : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-45f, -1e-45f}) in.push_back(x);
  // Powers of these are no float32 any more.
  for (const float x : {1e3f, 1e10f, 1e12f, 1e14f, 1e18f, 1e20f, 1e37f, FLT_MAX, INFINITY}) in.insert(in.end(), {x, -x});
  Floats out(in.size(), NAN), slope(in.size(), NAN);
  const Floats ones(in.size(), 1.0f);
  OK(ckpt_ops_gelu_forward(ops, in.data(), nullptr, 1, in.size(), out.data()));
  OK(ckpt_ops_gelu_backward(ops, in.data(), nullptr, ones.data(), 1, in.size(), slope.data(), 0, nullptr));
  for (size_t k = 0; k < in.size(); ++k) {
    const double x = static_cast<double>(in[k]);
    if (std::fabs(x) < 20.0) {
      ASSERT_NEAR(static_cast<double>(out[k]), reference::gelu(x), 4e-7 * (1.0 + std::fabs(x))) << x;
      ASSERT_NEAR(static_cast<double>(slope[k]), reference::gelu_slope(x), 2e-6) << x;
    } else if (x > 0.0) {
      ASSERT_EQ(out[k], in[k]);
      ASSERT_EQ(slope[k], 1.0f) << x;
    } else {
      ASSERT_NEAR(out[k], 0.0f, 1e-30f) << x;
      ASSERT_NEAR(slope[k], 0.0f, 1e-30f) << x;
    }
  }
}

TEST(Gelu, NotANumberStaysNotANumber) {
  const Ops ops;
  Floats x(37, 1.0f), grad(37, 1.0f);
  x[5] = x[36] = NAN;
  Floats out(37), in_grad(37);
  OK(ckpt_ops_gelu_forward(ops, x.data(), nullptr, 1, 37, out.data()));
  OK(ckpt_ops_gelu_backward(ops, x.data(), nullptr, grad.data(), 1, 37, in_grad.data(), 0, nullptr));
  for (size_t k = 0; k < x.size(); ++k) {
    EXPECT_EQ(std::isnan(out[k]), k == 5 || k == 36) << k;
    EXPECT_EQ(std::isnan(in_grad[k]), k == 5 || k == 36) << k;
  }
}

TEST(Gelu, BiasAndItsGradientAreFused) {
  const Ops ops;
  for (const auto &[rows, columns] : kRowShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const Floats in = values(rows * columns, 1, 3.0f), bias = values(columns, 2), out_grad = values(rows * columns, 3);
    const Floats before = values(columns, 4), before_in = values(in.size(), 5);
    Values expected(in.size()), in_expected(in.size()), bias_expected = reference::of(before);
    for (size_t k = 0; k < in.size(); ++k) {
      const double x = static_cast<double>(in[k]) + static_cast<double>(bias[k % columns]);
      expected[k] = reference::gelu(x);
      in_expected[k] = reference::gelu_slope(x) * static_cast<double>(out_grad[k]);
      bias_expected[k % columns] += in_expected[k];
    }
    Floats out(in.size(), NAN), in_grad = out_grad, bias_grad = before, added = before_in, over_in = in;
    OK(ckpt_ops_gelu_forward(ops, in.data(), bias.data(), rows, columns, out.data()));
    expect_near(out, expected, 1e-6, "out");
    OK(ckpt_ops_gelu_backward(ops, in.data(), bias.data(), in_grad.data(), rows, columns, in_grad.data(), 0, bias_grad.data()));
    expect_near(in_grad, in_expected, 2e-6, "in_grad over out_grad");
    expect_near(bias_grad, bias_expected, 3e-6, "bias_grad");
    OK(ckpt_ops_gelu_backward(ops, over_in.data(), bias.data(), out_grad.data(), rows, columns, over_in.data(), 0, nullptr));
    EXPECT_TRUE(same_bits(over_in, in_grad)) << "over in";
    OK(ckpt_ops_gelu_backward(ops, in.data(), bias.data(), out_grad.data(), rows, columns, added.data(), 1, nullptr));
    expect_near(added, plus(in_expected, before_in), 2e-6, "accumulated");
  }
}

TEST(Embedding, ForwardAndBackwardEqualReference) {
  const Ops ops;
  constexpr size_t kBatch = 3, kSequence = 17, kVocabulary = 11;
  for (const size_t channels : {1u, 3u, 65u, 260u}) {
    SCOPED_TRACE(channels);
    const std::vector<int32_t> tokens = indices(kBatch * kSequence, 1, kVocabulary);
    const Floats table = values(kVocabulary * channels, 2), positions = values(kSequence * channels, 3);
    const Floats out_grad = values(kBatch * kSequence * channels, 4);
    Values expected(out_grad.size()), token_expected(table.size(), 0.5), position_expected(positions.size(), 0.25);
    for (size_t k = 0; k < out_grad.size(); ++k) {
      const size_t row = k / channels, c = k % channels, token = static_cast<size_t>(tokens[row]);
      expected[k] = static_cast<double>(table[token * channels + c]) + static_cast<double>(positions[row % kSequence * channels + c]);
      token_expected[token * channels + c] += static_cast<double>(out_grad[k]);
      position_expected[row % kSequence * channels + c] += static_cast<double>(out_grad[k]);
    }
    Floats out(out_grad.size(), NAN), token_grad(table.size(), 0.5f), position_grad(positions.size(), 0.25f);
    OK(ckpt_ops_embedding_forward(ops, tokens.data(), table.data(), positions.data(), kBatch, kSequence, channels, kVocabulary, out.data()));
    expect_near(out, expected, 1e-7, "out");
    OK(ckpt_ops_embedding_backward(ops, tokens.data(), out_grad.data(), kBatch, kSequence, channels, kVocabulary, token_grad.data(),
                                   position_grad.data()));
    expect_near(token_grad, token_expected, 1e-6, "token_grad");
    expect_near(position_grad, position_expected, 1e-6, "position_grad");
  }
}

TEST(CrossEntropy, LossAndGradientEqualReference) {
  const Ops ops;
  constexpr int32_t kIgnored = -1;
  for (const auto &[rows, vocabulary] : kRowShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << vocabulary);
    Floats logits = values(rows * vocabulary, 1, 8.0f);
    std::vector<int32_t> targets = indices(rows, 2, vocabulary);
    for (size_t r = 2; r < rows; r += 5) targets[r] = kIgnored;
    Floats lse(rows, NAN);
    float loss = NAN;
    OK(ckpt_ops_cross_entropy_forward(ops, logits.data(), targets.data(), rows, vocabulary, kIgnored, lse.data(), &loss));
    const Values x = reference::of(logits);
    const double expected = reference::cross_entropy(x, targets, vocabulary, kIgnored);
    EXPECT_NEAR(static_cast<double>(loss), expected, 2e-6 * (1.0 + expected));
    Floats grad(logits.size(), NAN);
    OK(ckpt_ops_cross_entropy_backward(ops, logits.data(), targets.data(), lse.data(), rows, vocabulary, kIgnored, 3.0f, grad.data()));
    size_t counted = 0;
    for (const int32_t target : targets) counted += target != kIgnored;
    Values by_hand(logits.size());
    for (size_t r = 0; r < rows; ++r) {
      if (targets[r] == kIgnored) continue;
      double all = 0.0;
      for (size_t v = 0; v < vocabulary; ++v) all += std::exp(x[r * vocabulary + v]);
      for (size_t v = 0; v < vocabulary; ++v)
        by_hand[r * vocabulary + v] =
            3.0 / static_cast<double>(counted) * (std::exp(x[r * vocabulary + v]) / all - (static_cast<size_t>(targets[r]) == v ? 1.0 : 0.0));
    }
    expect_near(grad, by_hand, 2e-6, "grad");
    if (logits.size() < 200) {
      const auto f = [&](const Values &v) { return Values{reference::cross_entropy(v, targets, vocabulary, kIgnored)}; };
      expect_near(grad, reference::differences(f, x, {3.0}), 2e-6, "grad by differences");
    }
    OK(ckpt_ops_cross_entropy_backward(ops, logits.data(), targets.data(), lse.data(), rows, vocabulary, kIgnored, 3.0f, logits.data()));
    EXPECT_TRUE(same_bits(logits, grad)) << "in place";
  }
}

// The gradient with lse 0 and one row is exp(logit) itself, but at the target: the exponential that softmax, GELU and this loss share.
TEST(Exponential, IsWithinOneAndAHalfUnits) {
  const Ops ops;
  constexpr size_t kCount = 400001;
  Floats logits(kCount);
  for (size_t k = 0; k < kCount; ++k) logits[k] = -87.0f + 175.0f * static_cast<float>(k) / static_cast<float>(kCount - 1);
  const int32_t target = kCount - 1;
  const float lse = 0.0f;
  Floats grad(kCount);
  OK(ckpt_ops_cross_entropy_backward(ops, logits.data(), &target, &lse, 1, kCount, -1, 1.0f, grad.data()));
  double worst = 0.0;
  for (size_t k = 0; k + 1 < kCount; ++k) {
    const double expected = std::exp(static_cast<double>(logits[k]));
    const double unit = std::ldexp(1.0, std::ilogb(expected) - 23);
    worst = std::max(worst, std::fabs(static_cast<double>(grad[k]) - expected) / unit);
  }
  EXPECT_LE(worst, 1.5);
  EXPECT_GT(worst, 0.4);  // some rounding there must be
}

TEST(Exponential, IsClampedAndKeepsNan) {
  const Ops ops(1);
  const Floats logits = {-1000.0f, -INFINITY, 1000.0f, INFINITY, NAN, 0.0f, 0.0f};
  const int32_t target = 6;
  const float lse = 0.0f;
  Floats grad(logits.size());
  OK(ckpt_ops_cross_entropy_backward(ops, logits.data(), &target, &lse, 1, logits.size(), -1, 1.0f, grad.data()));
  EXPECT_LT(grad[0], 2e-38f);
  EXPECT_LT(grad[1], 2e-38f);
  EXPECT_GT(grad[2], 1e38f);
  EXPECT_GT(grad[3], 1e38f);
  EXPECT_TRUE(std::isnan(grad[4]));
  EXPECT_EQ(grad[5], 1.0f);
}

TEST(CrossEntropy, AllIgnoredIsZero) {
  const Ops ops;
  const Floats logits = values(30, 1);
  const std::vector<int32_t> targets(3, 7);
  Floats lse(3), grad(30, NAN);
  float loss = NAN;
  OK(ckpt_ops_cross_entropy_forward(ops, logits.data(), targets.data(), 3, 10, 7, lse.data(), &loss));
  EXPECT_EQ(loss, 0.0f);
  OK(ckpt_ops_cross_entropy_backward(ops, logits.data(), targets.data(), lse.data(), 3, 10, 7, 1.0f, grad.data()));
  EXPECT_EQ(grad, Floats(30, 0.0f));
}

TEST(CrossEntropy, HugeLogitsDoNotOverflow) {
  const Ops ops;
  const Floats logits = {1e4f, -1e4f, 3e38f, 0.0f, -3e38f, 1e4f};
  const std::vector<int32_t> targets = {0, 2};
  Floats lse(2), grad(6);
  float loss = NAN;
  OK(ckpt_ops_cross_entropy_forward(ops, logits.data(), targets.data(), 2, 3, -1, lse.data(), &loss));
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(lse[1], 1e4f);
  OK(ckpt_ops_cross_entropy_backward(ops, logits.data(), targets.data(), lse.data(), 2, 3, -1, 1.0f, grad.data()));
  for (const float g : grad) EXPECT_TRUE(std::isfinite(g));
}

}  // namespace
