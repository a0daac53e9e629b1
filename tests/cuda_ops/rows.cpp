// Layer normalisation and GELU against double precision, in the three element types: rows that a warp holds, that a block holds, and
// longer ones; odd sizes, accumulation, arrays that may be the same, alignments, orders of threads.
#include <tuple>

#include "plugin.h"

using namespace test;

namespace {

struct Shape {
  size_t rows, channels;
};
// One warp a row: up to 512, 768, 1024 channels; one block: 2048, 3072, forward 4096; longer rows; odd ones among all.
constexpr Shape kShapes[] = {{1, 1}, {3, 7}, {5, 64}, {33, 257}, {19, 768}, {6, 1000}, {5, 1024}, {3, 1025}, {18, 2048}, {2, 3001}, {2, 4095}, {2, 4104}, {3, 5001}};

Values normalised(const Values &in, const Shape &s, double epsilon, Values *means, Values *rstds) {
  Values h(in.size());
  for (size_t r = 0; r < s.rows; ++r) {
    const double *x = &in[r * s.channels];
    double mean = 0.0, variance = 0.0;
    for (size_t c = 0; c < s.channels; ++c) mean += x[c] / static_cast<double>(s.channels);
    for (size_t c = 0; c < s.channels; ++c) variance += (x[c] - mean) * (x[c] - mean) / static_cast<double>(s.channels);
    const double rstd = 1.0 / std::sqrt(variance + epsilon);
    for (size_t c = 0; c < s.channels; ++c) h[r * s.channels + c] = (x[c] - mean) * rstd;
    means->push_back(mean);
    rstds->push_back(rstd);
  }
  return h;
}

struct Norm {
  Shape shape;
  Floats in, weight, bias, out_grad, more;
  Values means, rstds, h, out, in_grad, weight_grad, bias_grad;
  static constexpr float kEpsilon = 1e-5f;

  Norm(uint32_t type, const Shape &s)
      : shape(s), in(rounded(type, values(s.rows * s.channels, 1, 2.0f))), weight(rounded(type, values(s.channels, 2))),
        bias(rounded(type, values(s.channels, 3))), out_grad(rounded(type, values(s.rows * s.channels, 4))),
        more(rounded(type, values(s.rows * s.channels, 5))) {
    for (float &x : in) x += 0.5f;
    in = rounded(type, in);
    h = normalised(of(in), s, static_cast<double>(kEpsilon), &means, &rstds);
    out = reference::layernorm(of(in), of(weight), of(bias), s.rows, s.channels, static_cast<double>(kEpsilon));
    in_grad.resize(h.size());
    weight_grad.resize(s.channels);
    bias_grad.resize(s.channels);
    for (size_t r = 0; r < s.rows; ++r) {
      double mean_g = 0.0, mean_gh = 0.0;
      const auto at = [&](size_t c) { return r * s.channels + c; };
      const auto g = [&](size_t c) { return static_cast<double>(out_grad[at(c)]) * static_cast<double>(weight[c]); };
      for (size_t c = 0; c < s.channels; ++c) {
        mean_g += g(c) / static_cast<double>(s.channels);
        mean_gh += g(c) * h[at(c)] / static_cast<double>(s.channels);
        weight_grad[c] += static_cast<double>(out_grad[at(c)]) * h[at(c)];
        bias_grad[c] += static_cast<double>(out_grad[at(c)]);
      }
      for (size_t c = 0; c < s.channels; ++c) in_grad[at(c)] = rstds[r] * (g(c) - mean_g - h[at(c)] * mean_gh);
    }
  }
};

std::string name(const Shape &s) { return std::to_string(s.rows) + " x " + std::to_string(s.channels); }
Floats floats(const Values &values) { return Floats(values.begin(), values.end()); }

TEST(Layernorm, ForwardEqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      SCOPED_TRACE(name(s));
      const Norm n(type, s);
      const Array in(type, n.in), weight(type, n.weight), bias(type, n.bias), out(type, n.in.size()), mean(ops::kFloat32, s.rows), rstd(ops::kFloat32, s.rows);
      OK(ops->layernorm_forward(ops, in.data(), weight.data(), bias.data(), s.rows, s.channels, Norm::kEpsilon, out.data(), mean.floats(), rstd.floats()));
      expect_near(out.read(), n.out, 1e-6, type, "out");
      expect_near(mean.read(), n.means, 1e-6, ops::kFloat32, "mean");
      // The variance of one channel is 0 but for the mean's rounding.
      if (s.channels > 1) expect_near(rstd.read(), n.rstds, 2e-6, ops::kFloat32, "rstd");
      // The same bits from and to arrays that begin elsewhere, and in place.
      const Array shifted(type, n.in, 1), out_shifted(type, n.in.size(), 3);
      OK(ops->layernorm_forward(ops, shifted.data(), weight.data(), bias.data(), s.rows, s.channels, Norm::kEpsilon, out_shifted.data(), mean.floats(), rstd.floats()));
      EXPECT_EQ(out_shifted.bytes(), out.bytes());
      OK(ops->layernorm_forward(ops, in.data(), weight.data(), bias.data(), s.rows, s.channels, Norm::kEpsilon, in.data(), mean.floats(), rstd.floats()));
      EXPECT_EQ(in.bytes(), out.bytes());
    }
  }
}


TEST(Layernorm, BackwardEqualsReferenceAndAddsToParameters) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      if (s.channels == 1) continue;  // rstd is 1 / sqrt(epsilon): noise
      SCOPED_TRACE(name(s));
      const Norm n(type, s);
      const Floats before = rounded(type, values(n.in.size(), 6)), weights_before = values(s.channels, 7), biases_before = values(s.channels, 8);
      const Array in(type, n.in), weight(type, n.weight), out_grad(type, n.out_grad), more(type, n.more);
      const Array mean(ops::kFloat32, floats(n.means)), rstd(ops::kFloat32, floats(n.rstds));
      const auto run = [&](const Array &grad, const void *residual, const Array &in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad) {
        EXPECT_EQ(ops->layernorm_backward(ops, in.data(), mean.floats(), rstd.floats(), weight.data(), grad.data(), residual, s.rows, s.channels,
                                          in_grad.data(), accumulate, weight_grad, bias_grad), CKPT_OK) << last_text();
      };
      const Array in_grad(type, before), weight_grad(ops::kFloat32, weights_before), bias_grad(ops::kFloat32, biases_before);
      run(out_grad, nullptr, in_grad, 0, weight_grad.floats(), bias_grad.floats());
      expect_near(in_grad.read(), n.in_grad, 3e-6, type, "in_grad");
      expect_near(weight_grad.read(), plus(n.weight_grad, weights_before), 3e-6, ops::kFloat32, "weight_grad");
      expect_near(bias_grad.read(), plus(n.bias_grad, biases_before), 3e-6, ops::kFloat32, "bias_grad");
      const auto in_bits = in_grad.bytes(), weight_bits = weight_grad.bytes();
      // in_grad may be out_grad, and has the bits of a call that wanted other gradients; so may the residual's.
      weight_grad.write(weights_before);
      const Array same(type, n.out_grad);
      run(same, nullptr, same, 0, weight_grad.floats(), nullptr);
      EXPECT_EQ(same.bytes(), in_bits);
      EXPECT_EQ(weight_grad.bytes(), weight_bits);
      run(out_grad, more.data(), more, 0, nullptr, nullptr);
      expect_near(more.read(), plus(n.in_grad, n.more), 3e-6, type, "in_grad and residual");
      in_grad.write(before);
      run(out_grad, nullptr, in_grad, 1, nullptr, bias_grad.floats());
      expect_near(in_grad.read(), plus(n.in_grad, before), 3e-6, type, "in_grad, accumulated");
      const Array shifted(type, n.out_grad, 1), in_grad_shifted(type, n.in.size(), 5), weight_shifted(ops::kFloat32, weights_before, 1);
      run(shifted, nullptr, in_grad_shifted, 0, weight_shifted.floats(), nullptr);
      EXPECT_EQ(in_grad_shifted.bytes(), in_bits) << "another alignment";
      EXPECT_EQ(weight_shifted.bytes(), weight_bits) << "another alignment";
    }
  }
}

// Enough rows for several blocks and partial sums of each kind.
TEST(Layernorm, SumsOverManyRows) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : {Shape{1031, 40}, Shape{70, 1100}, Shape{75, 4100}}) {
      SCOPED_TRACE(name(s));
      const Norm n(type, s);
      const Array in(type, n.in), weight(type, n.weight), out_grad(type, n.out_grad), in_grad(type, n.in.size());
      const Array mean(ops::kFloat32, floats(n.means)), rstd(ops::kFloat32, floats(n.rstds));
      const Array weight_grad(ops::kFloat32, Floats(s.channels)), bias_grad(ops::kFloat32, Floats(s.channels));
      OK(ops->layernorm_backward(ops, in.data(), mean.floats(), rstd.floats(), weight.data(), out_grad.data(), nullptr, s.rows, s.channels,
                                 in_grad.data(), 0, weight_grad.floats(), bias_grad.floats()));
      expect_near(weight_grad.read(), n.weight_grad, 2e-6, ops::kFloat32, "weight_grad");
      expect_near(bias_grad.read(), n.bias_grad, 2e-6, ops::kFloat32, "bias_grad");
      expect_near(in_grad.read(), n.in_grad, 3e-6, type, "in_grad");
    }
  }
}

TEST(Layernorm, SameBitsInEveryOrder) {
  for (const uint32_t type : kTypes)
    for (const Shape &s : {Shape{70, 100}, Shape{35, 1100}, Shape{40, 4100}}) {
      const Norm n(type, s);
      expect_repeatable([&] {
        const Ops ops(type);
        const Array in(type, n.in), weight(type, n.weight), bias(type, n.bias), out_grad(type, n.out_grad), out(type, n.in.size()), in_grad(type, n.in.size());
        const Array mean(ops::kFloat32, s.rows), rstd(ops::kFloat32, s.rows), weight_grad(ops::kFloat32, Floats(s.channels)), bias_grad(ops::kFloat32, Floats(s.channels));
        EXPECT_EQ(ops->layernorm_forward(ops, in.data(), weight.data(), bias.data(), s.rows, s.channels, 1e-5f, out.data(), mean.floats(), rstd.floats()), CKPT_OK);
        EXPECT_EQ(ops->layernorm_backward(ops, in.data(), mean.floats(), rstd.floats(), weight.data(), out_grad.data(), nullptr, s.rows, s.channels,
                                          in_grad.data(), 0, weight_grad.floats(), bias_grad.floats()), CKPT_OK);
        auto bytes = out.bytes();
        for (const Array *array : {&mean, &rstd, &in_grad, &weight_grad, &bias_grad}) append(&bytes, array->bytes());
        return bytes;
      });
    }
}

constexpr Shape kGeluShapes[] = {{1, 1}, {1, 17}, {3, 7}, {40, 24}, {33, 257}, {130, 70}, {9, 2048}};

TEST(Gelu, ForwardEqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kGeluShapes) {
      SCOPED_TRACE(name(s));
      const Floats in = rounded(type, values(s.rows * s.channels, 1, 6.0f)), add = rounded(type, values(s.channels, 2));
      Values plain, biased;
      for (size_t k = 0; k < in.size(); ++k) {
        plain.push_back(reference::gelu(static_cast<double>(in[k])));
        biased.push_back(reference::gelu(static_cast<double>(in[k]) + static_cast<double>(add[k % s.channels])));
      }
      const Array x(type, in), bias(type, add), out(type, in.size()), shifted(type, in, 1);
      OK(ops->gelu_forward(ops, x.data(), nullptr, s.rows, s.channels, out.data()));
      expect_near(out.read(), plain, 1e-6, type, "gelu");
      OK(ops->gelu_forward(ops, x.data(), bias.data(), s.rows, s.channels, out.data()));
      expect_near(out.read(), biased, 1e-6, type, "gelu with bias");
      OK(ops->gelu_forward(ops, shifted.data(), bias.data(), s.rows, s.channels, shifted.data()));
      EXPECT_EQ(shifted.bytes(), out.bytes()) << "in place, another alignment";
    }
  }
}

TEST(Gelu, BackwardEqualsReferenceAndAddsToTheBias) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kGeluShapes) {
      SCOPED_TRACE(name(s));
      const size_t count = s.rows * s.channels;
      const Floats in = rounded(type, values(count, 1, 4.0f)), add = rounded(type, values(s.channels, 2)), grad = rounded(type, values(count, 3));
      const Floats before = rounded(type, values(count, 4)), sums_before = values(s.channels, 5);
      Values plain(count), biased(count), sums(s.channels), plain_sums(s.channels);
      for (size_t k = 0; k < count; ++k) {
        plain[k] = reference::gelu_slope(static_cast<double>(in[k])) * static_cast<double>(grad[k]);
        biased[k] = reference::gelu_slope(static_cast<double>(in[k]) + static_cast<double>(add[k % s.channels])) * static_cast<double>(grad[k]);
        sums[k % s.channels] += biased[k];
        plain_sums[k % s.channels] += plain[k];
      }
      const Array x(type, in), bias(type, add), out_grad(type, grad), in_grad(type, before), bias_grad(ops::kFloat32, sums_before);
      OK(ops->gelu_backward(ops, x.data(), bias.data(), out_grad.data(), s.rows, s.channels, in_grad.data(), 0, bias_grad.floats()));
      expect_near(in_grad.read(), biased, 2e-6, type, "in_grad");
      expect_near(bias_grad.read(), plus(sums, sums_before), 3e-6, ops::kFloat32, "bias_grad");
      const auto bits = in_grad.bytes();
      const Array shifted(type, grad, 1);  // in_grad may be out_grad
      OK(ops->gelu_backward(ops, x.data(), bias.data(), shifted.data(), s.rows, s.channels, shifted.data(), 0, nullptr));
      EXPECT_EQ(shifted.bytes(), bits);
      in_grad.write(before);
      OK(ops->gelu_backward(ops, x.data(), nullptr, out_grad.data(), s.rows, s.channels, in_grad.data(), 1, nullptr));
      expect_near(in_grad.read(), plus(plain, before), 2e-6, type, "in_grad without bias, accumulated");
      OK(ops->gelu_backward(ops, x.data(), nullptr, out_grad.data(), s.rows, s.channels, in_grad.data(), 0, nullptr));
      const auto flat = in_grad.bytes();
      bias_grad.write(Floats(s.channels));
      OK(ops->gelu_backward(ops, x.data(), nullptr, out_grad.data(), s.rows, s.channels, in_grad.data(), 0, bias_grad.floats()));
      EXPECT_EQ(in_grad.bytes(), flat) << "the bias' gradient changed in_grad";
      expect_near(bias_grad.read(), plain_sums, 3e-6, ops::kFloat32, "bias_grad without bias");
    }
  }
}

TEST(Gelu, EndsOfTheRange) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    Floats in = {-60000.0f, -1000.0f, -20.0f, -0.0f, 0.0f, 20.0f, 1000.0f, 60000.0f, NAN};
    if (type == ops::kFloat16) {
      in.insert(in.end(), {-INFINITY, INFINITY});
    } else {  // powers of these are no float32 any more
      for (const float x : {1e10f, 1e12f, 1e14f, 1e18f, 1e20f, 1e37f, INFINITY}) in.insert(in.end(), {-x, x});
    }
    const Array x(type, in), ones(type, Floats(in.size(), 1.0f)), out(type, in.size());
    OK(ops->gelu_forward(ops, x.data(), nullptr, 1, in.size(), out.data()));
    Floats got = out.read();
    for (size_t k = 0; k < 5; ++k) EXPECT_NEAR(got[k], 0.0f, 1e-30f) << in[k];
    for (size_t k = 5; k < 8; ++k) EXPECT_EQ(got[k], rounded(type, in[k]));
    EXPECT_TRUE(std::isnan(got[8]));
    for (size_t k = 9; k < in.size(); ++k)
      if (in[k] < 0) EXPECT_NEAR(got[k], 0.0f, 1e-30f) << in[k];
      else EXPECT_EQ(got[k], rounded(type, in[k])) << in[k];
    OK(ops->gelu_backward(ops, x.data(), nullptr, ones.data(), 1, in.size(), out.data(), 0, nullptr));
    got = out.read();
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(got[k], 0.0f, 1e-20f) << in[k];
    for (size_t k = 3; k < 5; ++k) EXPECT_EQ(got[k], 0.5f);
    for (size_t k = 5; k < 8; ++k) EXPECT_EQ(got[k], 1.0f);
    EXPECT_TRUE(std::isnan(got[8]));
    for (size_t k = 9; k < in.size(); ++k) EXPECT_NEAR(got[k], in[k] < 0 ? 0.0f : 1.0f, 1e-30f) << type_name(type) << " " << in[k];
  }
}

TEST(Gelu, SameBitsInEveryOrder) {
  for (const uint32_t type : kTypes)
    expect_repeatable([&] {
      const Ops ops(type);
      constexpr size_t kRows = 70, kColumns = 300;
      const Array in(type, values(kRows * kColumns, 1)), bias(type, values(kColumns, 2)), grad(type, values(kRows * kColumns, 3));
      const Array in_grad(type, kRows * kColumns), bias_grad(ops::kFloat32, Floats(kColumns));
      EXPECT_EQ(ops->gelu_backward(ops, in.data(), bias.data(), grad.data(), kRows, kColumns, in_grad.data(), 0, bias_grad.floats()), CKPT_OK);
      auto bytes = in_grad.bytes();
      append(&bytes, bias_grad.bytes());
      return bytes;
    });
}

}  // namespace
