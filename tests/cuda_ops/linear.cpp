// Products with weights against double precision, in the three element types: odd shapes, unaligned arrays, absent arguments, capture.
#include <tuple>

#include "plugin.h"

using namespace test;

namespace {

struct Shape {
  size_t rows, inputs, outputs;
};
constexpr Shape kShapes[] = {{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {64, 48, 80}, {70, 64, 96}, {1, 40, 3}};
const ckpt_philox kPhilox = {42, (uint64_t{3} << 36) + 5, (uint64_t{2} << 48) + 1, nullptr};
constexpr double kTolerance = 2e-6;  // float32 sums, beside the rounding of the result

struct Problem {
  Shape s;
  Floats in, weight, bias, residual, out_grad;
  Problem(uint32_t type, const Shape &shape)
      : s(shape), in(rounded(type, values(s.rows * s.inputs, 1))), weight(rounded(type, values(s.outputs * s.inputs, 2))),
        bias(rounded(type, values(s.outputs, 3))), residual(rounded(type, values(s.rows * s.outputs, 4))),
        out_grad(rounded(type, values(s.rows * s.outputs, 5))) {}
  Values out(bool with_bias) const {
    return reference::linear(of(in), of(weight), with_bias ? of(bias) : Values{}, s.rows, s.inputs, s.outputs);
  }
};

std::string name(uint32_t type, const Shape &s) {
  return (testing::Message() << type_name(type) << " " << s.rows << " x " << s.inputs << " x " << s.outputs).GetString();
}

TEST(Linear, ForwardEqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      const Problem x(type, s);
      const Array in(type, x.in), weight(type, x.weight), bias(type, x.bias), out(type, s.rows * s.outputs);
      OK(ops->linear_forward(ops, in.data(), weight.data(), bias.data(), s.rows, s.inputs, s.outputs, out.data()));
      expect_near(out.read(), x.out(true), kTolerance, type, name(type, s) + " with bias");
      OK(ops->linear_forward(ops, in.data(), weight.data(), nullptr, s.rows, s.inputs, s.outputs, out.data()));
      expect_near(out.read(), x.out(false), kTolerance, type, name(type, s));
    }
  }
}

// Arrays that miss 16-byte boundaries give the same bits, and nothing around them is written.
TEST(Linear, AddressesChangeNoBit) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      const Problem x(type, s);
      std::vector<std::vector<unsigned char>> results;
      for (const size_t shift : {0, 1, 3}) {
        const Array in(type, x.in, shift), weight(type, x.weight, shift), bias(type, x.bias, shift), out(type, s.rows * s.outputs, shift),
            out_grad(type, x.out_grad, shift), in_grad(type, x.in, shift), weight_grad(ops::kFloat32, values(x.weight.size(), 6), shift),
            bias_grad(ops::kFloat32, values(s.outputs, 7), shift);
        OK(ops->linear_forward(ops, in.data(), weight.data(), bias.data(), s.rows, s.inputs, s.outputs, out.data()));
        OK(ops->linear_backward(ops, in.data(), weight.data(), out_grad.data(), s.rows, s.inputs, s.outputs, in_grad.data(), 1, weight_grad.floats(),
                                bias_grad.floats()));
        results.push_back(out.bytes());
        for (const Array *array : {&in_grad, &weight_grad, &bias_grad}) append(&results.back(), array->bytes());
      }
      EXPECT_EQ(results[0], results[1]) << name(type, s);
      EXPECT_EQ(results[0], results[2]) << name(type, s);
    }
  }
}

TEST(Linear, ResidualEqualsReferenceWithTheDropoutsOwnMask) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes)
      for (const float p : {0.0f, 0.3f})
        for (const bool with_bias : {false, true}) {
          const Problem x(type, s);
          const size_t count = s.rows * s.outputs;
          const Values factors = p > 0.0f ? mask(kPhilox, count, p) : Values(count, 1.0);
          Values expected = x.out(with_bias);
          for (size_t k = 0; k < count; ++k) {
            expected[k] = expected[k] * factors[k] + static_cast<double>(x.residual[k]);
          }
          // The product is rounded to the type before the rest.
          const double tolerance = kTolerance + (type == ops::kFloat32 ? 0.0 : 1.5 * type_epsilon(type));
          const Array in(type, x.in), weight(type, x.weight), bias(type, x.bias), residual(type, x.residual), out(type, count);
          const void *const used = with_bias ? bias.data() : nullptr;
          OK(ops->linear_residual_forward(ops, in.data(), weight.data(), used, residual.data(), p, &kPhilox, s.rows, s.inputs, s.outputs, out.data()));
          const Floats got = out.read();
          expect_near(got, expected, tolerance, type, name(type, s) + " residual");
          for (size_t k = 0; k < count; ++k)
            if (factors[k] == 0.0) {
              ASSERT_EQ(got[k], x.residual[k]) << "a dropped element is the residual's";
            }
          OK(ops->linear_residual_forward(ops, in.data(), weight.data(), used, residual.data(), p, &kPhilox, s.rows, s.inputs, s.outputs,
                                          residual.data()));
          EXPECT_EQ(residual.bytes(), out.bytes()) << "residual == out";
        }
  }
}

TEST(Linear, BackwardEqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      SCOPED_TRACE(name(type, s));
      const Problem x(type, s);
      const reference::LinearGradients expected = reference::linear_backward(of(x.in), of(x.weight), of(x.out_grad), s.rows, s.inputs, s.outputs);
      const Floats weight_before = values(x.weight.size(), 6), bias_before = values(s.outputs, 7), in_before = rounded(type, values(x.in.size(), 8));
      const Array in(type, x.in), weight(type, x.weight), out_grad(type, x.out_grad), in_grad(type, in_before), weight_grad(ops::kFloat32, weight_before),
          bias_grad(ops::kFloat32, bias_before);
      OK(ops->linear_backward(ops, in.data(), weight.data(), out_grad.data(), s.rows, s.inputs, s.outputs, in_grad.data(), 1, weight_grad.floats(),
                              bias_grad.floats()));
      expect_near(in_grad.read(), plus(expected.in, in_before), kTolerance, type, "in_grad, accumulated");
      expect_near(weight_grad.read(), plus(expected.weight, weight_before), kTolerance, ops::kFloat32, "weight_grad");
      expect_near(bias_grad.read(), plus(expected.bias, bias_before), kTolerance, ops::kFloat32, "bias_grad");

      // Each alone, without what it does not read.
      OK(ops->linear_backward(ops, nullptr, weight.data(), out_grad.data(), s.rows, s.inputs, s.outputs, in_grad.data(), 0, nullptr, nullptr));
      expect_near(in_grad.read(), expected.in, kTolerance, type, "in_grad");
      const auto weight_bytes = weight_grad.bytes(), bias_bytes = bias_grad.bytes();
      weight_grad.write(weight_before);
      OK(ops->linear_backward(ops, in.data(), nullptr, out_grad.data(), s.rows, s.inputs, s.outputs, nullptr, 0, weight_grad.floats(), nullptr));
      EXPECT_EQ(weight_grad.bytes(), weight_bytes);
      bias_grad.write(bias_before);
      OK(ops->linear_backward(ops, nullptr, nullptr, out_grad.data(), s.rows, s.inputs, s.outputs, nullptr, 0, nullptr, bias_grad.floats()));
      EXPECT_EQ(bias_grad.bytes(), bias_bytes);
    }
  }
}

// float32 products are float32: TF32 would be wrong by 2^-11.
TEST(Linear, Float32IsNotTf32) {
  const Ops ops(ops::kFloat32);
  const Floats in(64, 1.0f + 0x1p-13f), weight(64, 1.0f);
  const Array x(ops::kFloat32, in), w(ops::kFloat32, weight), out(ops::kFloat32, 1);
  OK(ops->linear_forward(ops, x.data(), w.data(), nullptr, 1, 64, 1, out.data()));
  EXPECT_EQ(out.read()[0], 64.0f + 0x1p-7f);
}

TEST(Linear, AShapeIsSeenBeforeItIsCaptured) {
  const Device &d = Device::get();
  const Shape s = {6, 8, 16};
  const Problem x(ops::kBfloat16, s);
  const Array in(ops::kBfloat16, x.in), weight(ops::kBfloat16, x.weight), bias(ops::kBfloat16, x.bias), residual(ops::kBfloat16, x.residual),
      out_grad(ops::kBfloat16, x.out_grad), out(ops::kBfloat16, x.residual.size()), in_grad(ops::kBfloat16, x.in.size()),
      weight_grad(ops::kFloat32, x.weight.size()), bias_grad(ops::kFloat32, s.outputs);
  const Ops ops(ops::kBfloat16);
  const auto step = [&]() -> ckpt_status {
    if (const ckpt_status status = ops->linear_forward(ops, in.data(), weight.data(), bias.data(), s.rows, s.inputs, s.outputs, out.data())) return status;
    if (const ckpt_status status = ops->linear_residual_forward(ops, in.data(), weight.data(), bias.data(), out.data(), 0.25f, &kPhilox, s.rows, s.inputs,
                                                                s.outputs, out.data()))
      return status;
    return ops->linear_backward(ops, in.data(), weight.data(), out_grad.data(), s.rows, s.inputs, s.outputs, in_grad.data(), 0, weight_grad.floats(),
                                bias_grad.floats());
  };
  const auto capture = [&](void **graph) {
    EXPECT_EQ(d.table().capture_begin(d.self(), d.stream()), CKPT_OK) << last_text();
    const ckpt_status status = step();
    EXPECT_EQ(d.table().capture_end(d.self(), d.stream(), graph), CKPT_OK) << last_text();
    return status;
  };
  void *graph = nullptr;
  EXPECT_EQ(capture(&graph), CKPT_ERROR_CAPTURE);
  EXPECT_NE(last_text().find("an algorithm is chosen for each new shape"), std::string::npos) << last_text();
  if (graph != nullptr) d.table().graph_destroy(d.self(), graph);

  const Floats zeros(x.weight.size()), none(s.outputs);
  const auto clear = [&] {
    weight_grad.write(zeros);
    bias_grad.write(none);
  };
  const auto all = [&] {
    std::vector<unsigned char> bytes = out.bytes();
    for (const Array *array : {&in_grad, &weight_grad, &bias_grad}) append(&bytes, array->bytes());
    return bytes;
  };
  clear();
  OK(step());
  const auto eager = all();
  OK(capture(&graph));
  for (int replay = 0; replay < 2; ++replay) {
    clear();
    out.write(Floats(x.residual.size(), 5.0f));
    OK(d.table().graph_launch(d.self(), graph, d.stream()));
    EXPECT_EQ(all(), eager);
  }
  d.table().graph_destroy(d.self(), graph);
}

TEST(Linear, DescribesItself) {
  const Ops ops(ops::kFloat32);
  char isa[16] = {}, blas[64] = {};
  ops->describe(ops, isa, blas);
  EXPECT_EQ(std::string(isa).rfind("sm_", 0), 0u) << isa;
  int major = 0, minor = 0, patch = 0;
  EXPECT_EQ(std::sscanf(blas, "cublasLt %d.%d.%d", &major, &minor, &patch), 3) << blas;
  EXPECT_GE(major, 12);
}

}  // namespace
