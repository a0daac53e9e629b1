// Cross-entropy: losses, gradients, ignored rows, targets out of range, chunks of rows, orders of threads.
#include "plugin.h"

using namespace test;

namespace {

struct Shape {
  size_t rows, vocabulary;
};
// Odd vocabularies: rows begin anywhere in a vector; some are shorter than one.
constexpr Shape kShapes[] = {{1, 1}, {5, 3}, {7, 9}, {3, 17}, {33, 257}, {4, 2048}, {3, 5003}};
constexpr int32_t kIgnored = -1;

struct Case {
  Shape shape;
  Floats logits;
  std::vector<int32_t> targets;
  Values lse, gradient;
  double loss = 0.0;
  size_t counted = 0;

  Case(uint32_t type, const Shape &s, bool ignore, double grad = 1.0)
      : shape(s), logits(rounded(type, values(s.rows * s.vocabulary, 1, 8.0f))), targets(indices(s.rows, 2, s.vocabulary)), gradient(logits.size()) {
    for (size_t r = 1; ignore && r < s.rows; r += 3) targets[r] = kIgnored;
    for (const int32_t target : targets) counted += target != kIgnored;
    const Values x = of(logits);
    loss = reference::cross_entropy(x, targets, s.vocabulary, kIgnored);
    for (size_t r = 0; r < s.rows; ++r) {
      double sum = 0.0;
      for (size_t v = 0; v < s.vocabulary; ++v) sum += std::exp(x[r * s.vocabulary + v]);
      lse.push_back(std::log(sum));
      if (targets[r] == kIgnored) continue;
      for (size_t v = 0; v < s.vocabulary; ++v)
        gradient[r * s.vocabulary + v] = grad / static_cast<double>(counted) * (std::exp(x[r * s.vocabulary + v]) / sum - (static_cast<size_t>(targets[r]) == v ? 1.0 : 0.0));
    }
  }
};

TEST(Loss, EqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes)
      for (const bool ignore : {false, true}) {
        SCOPED_TRACE(testing::Message() << s.rows << " x " << s.vocabulary << (ignore ? ", some ignored" : ""));
        const Case c(type, s, ignore, 2.5);
        const Indices targets(c.targets);
        const Array logits(type, c.logits), lse(ops::kFloat32, s.rows), loss(ops::kFloat32, 1), grad(type, c.logits.size());
        OK(ops->loss_begin(ops, targets.data(), s.rows, s.vocabulary, kIgnored));
        OK(ops->loss_add(ops, logits.data(), targets.data(), s.rows, s.vocabulary, kIgnored, lse.floats()));
        OK(ops->loss_end(ops, loss.floats()));
        // 16-bit elements go through the hardware's exponential.
        const double tolerance = type == ops::kFloat32 ? 5e-7 : 2e-6;
        expect_near(lse.read(), c.lse, tolerance, ops::kFloat32, "lse");
        expect_near(loss.read(), {c.loss}, tolerance, ops::kFloat32, "loss");
        OK(ops->loss_scale(ops, targets.data(), s.rows, s.vocabulary, kIgnored, nullptr, 2.5f));
        OK(ops->loss_gradient(ops, logits.data(), targets.data(), lse.floats(), s.rows, s.vocabulary, kIgnored, grad.data()));
        expect_near(grad.read(), c.gradient, 2e-6, type, "gradient");
        const auto bits = grad.bytes();
        // In place, from another alignment, with the loss' gradient in device memory.
        const Array shifted(type, c.logits, 1), factor(ops::kFloat32, Floats{2.5f}), lse_shifted(ops::kFloat32, s.rows);
        OK(ops->loss_add(ops, shifted.data(), targets.data(), s.rows, s.vocabulary, kIgnored, lse_shifted.floats()));
        EXPECT_EQ(lse_shifted.bytes(), lse.bytes());
        OK(ops->loss_scale(ops, targets.data(), s.rows, s.vocabulary, kIgnored, factor.floats(), NAN));
        OK(ops->loss_gradient(ops, shifted.data(), targets.data(), lse.floats(), s.rows, s.vocabulary, kIgnored, shifted.data()));
        EXPECT_EQ(shifted.bytes(), bits);
        OK(ops->check(ops));
      }
  }
}

TEST(Loss, ChunksOfRowsAreOneLoss) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    const Shape s = {37, 100};
    const Case c(type, s, true);
    const Indices targets(c.targets);
    const Array logits(type, c.logits), lse(ops::kFloat32, s.rows), loss(ops::kFloat32, 1);
    for (int round = 0; round < 2; ++round) {  // begin forgets what was before
      OK(ops->loss_begin(ops, targets.data(), s.rows, s.vocabulary, kIgnored));
      for (size_t first = 0; first < s.rows; first += 10) {
        const size_t rows = std::min<size_t>(10, s.rows - first);
        OK(ops->loss_add(ops, static_cast<char *>(logits.data()) + first * s.vocabulary * type_bytes(type), targets.data() + first, rows, s.vocabulary, kIgnored,
                         lse.floats() + first));
      }
      OK(ops->loss_end(ops, loss.floats()));
      expect_near(loss.read(), {c.loss}, 2e-6, ops::kFloat32, "loss");
    }
    expect_near(lse.read(), c.lse, 2e-6, ops::kFloat32, "lse");
  }
}

TEST(Loss, OfNoRowsIsZero) {
  const Ops ops(ops::kFloat32);
  const Indices targets({5, 5, 5});
  const Array logits(ops::kFloat32, values(30, 1)), lse(ops::kFloat32, 3), loss(ops::kFloat32, 1), grad(ops::kFloat32, 30);
  OK(ops->loss_begin(ops, targets.data(), 3, 10, 5));
  OK(ops->loss_add(ops, logits.data(), targets.data(), 3, 10, 5, lse.floats()));
  OK(ops->loss_end(ops, loss.floats()));
  EXPECT_EQ(loss.read(), Floats{0.0f});
  OK(ops->loss_scale(ops, targets.data(), 3, 10, 5, nullptr, 1.0f));
  OK(ops->loss_gradient(ops, logits.data(), targets.data(), lse.floats(), 3, 10, 5, grad.data()));
  EXPECT_EQ(grad.read(), Floats(30));
}

TEST(Loss, LargeLogitsDoNotOverflow) {
  const Ops ops(ops::kFloat32);
  const Indices targets({0, 1});
  const Array logits(ops::kFloat32, Floats{3e4f, 0.0f, -3e4f, -3e38f, -3e38f, -3e38f}), lse(ops::kFloat32, 2), loss(ops::kFloat32, 1);
  OK(ops->loss_begin(ops, targets.data(), 2, 3, kIgnored));
  OK(ops->loss_add(ops, logits.data(), targets.data(), 2, 3, kIgnored, lse.floats()));
  OK(ops->loss_end(ops, loss.floats()));
  EXPECT_EQ(lse.read(), (Floats{3e4f, -3e38f}));  // log 3 is nothing beside 3e38
  EXPECT_EQ(loss.read(), Floats{0.0f});
}

TEST(Loss, NamesTheFirstTargetOutOfRange) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    const Indices targets({1, -100, 7, 2, -3});
    const Array logits(type, values(35, 1)), lse(ops::kFloat32, 5), loss(ops::kFloat32, 1), grad(type, 35);
    OK(ops->loss_begin(ops, targets.data(), 5, 7, -100));
    OK(ops->loss_add(ops, logits.data(), targets.data(), 5, 7, -100, lse.floats()));
    OK(ops->loss_end(ops, loss.floats()));
    EXPECT_TRUE(std::isnan(loss.read()[0]));
    const Floats sums = lse.read();
    for (size_t r = 0; r < 5; ++r) EXPECT_EQ(std::isnan(sums[r]), r == 2 || r == 4) << r;
    OK(ops->loss_scale(ops, targets.data(), 5, 7, -100, nullptr, 1.0f));
    OK(ops->loss_gradient(ops, logits.data(), targets.data(), lse.floats(), 5, 7, -100, grad.data()));
    const Floats got = grad.read();
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(std::isnan(got[k]), k / 7 == 2 || k / 7 == 4) << k;
    EXPECT_EQ(ops->check(ops), CKPT_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(last_text().find("targets[2] is 7, expected 0 <= targets < 7"), std::string::npos) << last_text();
    OK(ops->check(ops));
  }
}

TEST(Loss, SameBitsInEveryOrder) {
  for (const uint32_t type : kTypes) {
    const Case c(type, {40, 1003}, true);
    expect_repeatable([&] {
      const Ops ops(type);
      const Indices targets(c.targets);
      const Array logits(type, c.logits), lse(ops::kFloat32, 40), loss(ops::kFloat32, 1), grad(type, c.logits.size());
      EXPECT_EQ(ops->loss_begin(ops, targets.data(), 40, 1003, kIgnored), CKPT_OK);
      EXPECT_EQ(ops->loss_add(ops, logits.data(), targets.data(), 40, 1003, kIgnored, lse.floats()), CKPT_OK);
      EXPECT_EQ(ops->loss_end(ops, loss.floats()), CKPT_OK);
      EXPECT_EQ(ops->loss_scale(ops, targets.data(), 40, 1003, kIgnored, loss.floats(), 0.0f), CKPT_OK);
      EXPECT_EQ(ops->loss_gradient(ops, logits.data(), targets.data(), lse.floats(), 40, 1003, kIgnored, grad.data()), CKPT_OK);
      auto bytes = lse.bytes();
      append(&bytes, loss.bytes());
      append(&bytes, grad.bytes());
      return bytes;
    });
  }
}

}  // namespace
