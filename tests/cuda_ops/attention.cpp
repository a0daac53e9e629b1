// Both attentions against the double-precision reference, against each other, and against the CPU's dropout masks, in the three element types.
#include "plugin.h"

using namespace test;

namespace {

// Every kernel there is: heads of 16 to 256 channels with and without padding; one tile and several; tiles cut off by the end.
const reference::Attention kShapes[] = {{1, 1, 1, 16}, {2, 3, 1, 8},   {1, 17, 3, 48},  {2, 65, 2, 48},  {1, 70, 2, 128}, {1, 33, 1, 9},
                                        {1, 66, 2, 160}, {1, 70, 1, 128}, {1, 50, 1, 200}, {1, 130, 1, 16}, {1, 35, 1, 256}};
const ckpt_philox kPhilox = {42, (uint64_t{3} << 36) + 5, (uint64_t{1} << 48) + 2, nullptr};

std::string name(uint32_t type, const reference::Attention &s, float p) {
  return (testing::Message() << type_name(type) << " " << s.batch << " x " << s.sequence << ", " << s.heads << " heads of " << s.size() << ", p " << p)
      .GetString();
}

// Beyond the rounding of the result: 16-bit types round weights and scores' gradients before their products.
double tolerance(uint32_t type) { return type == ops::kFloat32 ? 3e-6 : 2 * type_epsilon(type); }

struct Problem {
  reference::Attention s;
  float p;
  ckpt_philox philox = kPhilox;
  Floats qkv, out_grad;
  Values mask;
  Problem(uint32_t type, const reference::Attention &shape, float probability, float scale = 1.5f)
      : s(shape), p(probability), qkv(rounded(type, values(s.batch * s.sequence * 3 * s.channels, 1, scale))),
        out_grad(rounded(type, values(s.batch * s.sequence * s.channels, 2))) {
    if (p > 0.0f) mask = test::mask(philox, weight_count(), p);
  }
  size_t rows() const { return s.batch * s.heads * s.sequence; }
  size_t weight_count() const { return rows() * s.sequence; }
};

struct Result {
  Floats kept, out, qkv_grad;  // kept: lse or weights
  std::vector<unsigned char> bytes;
};

// `shift`: elements by which all arrays miss 16-byte boundaries.
void tiled(const Ops &ops, const Problem &x, size_t shift, Result *r) {
  const Array qkv(ops.type(), x.qkv, shift), out_grad(ops.type(), x.out_grad, shift), out(ops.type(), x.out_grad.size(), shift),
      qkv_grad(ops.type(), x.qkv.size(), shift), lse(ops::kFloat32, x.rows());
  OK(ops->attention_tiled_forward(ops, qkv.data(), x.s.batch, x.s.sequence, x.s.heads, x.s.channels, x.p, &x.philox, lse.floats(), out.data()));
  OK(ops->attention_tiled_backward(ops, qkv.data(), out.data(), lse.floats(), out_grad.data(), x.s.batch, x.s.sequence, x.s.heads, x.s.channels, x.p,
                                   &x.philox, qkv_grad.data()));
  *r = {lse.read(), out.read(), qkv_grad.read(), lse.bytes()};
  append(&r->bytes, out.bytes());
  append(&r->bytes, qkv_grad.bytes());
}

void plain(const Ops &ops, const Problem &x, size_t shift, Result *r) {
  const Array qkv(ops.type(), x.qkv, shift), out_grad(ops.type(), x.out_grad, shift), out(ops.type(), x.out_grad.size(), shift),
      qkv_grad(ops.type(), x.qkv.size(), shift), weights(ops.type(), x.weight_count(), shift);
  OK(ops->attention_forward(ops, qkv.data(), x.s.batch, x.s.sequence, x.s.heads, x.s.channels, x.p, &x.philox, weights.data(), out.data()));
  OK(ops->attention_backward(ops, qkv.data(), weights.data(), out_grad.data(), x.s.batch, x.s.sequence, x.s.heads, x.s.channels, x.p, &x.philox,
                             qkv_grad.data()));
  *r = {weights.read(), out.read(), qkv_grad.read(), weights.bytes()};
  append(&r->bytes, out.bytes());
  append(&r->bytes, qkv_grad.bytes());
}

TEST(Attention, BothEqualReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const reference::Attention &s : kShapes)
      for (const float p : {0.0f, 0.2f}) {
        SCOPED_TRACE(name(type, s, p));
        const Problem x(type, s, p);
        const Values qkv = of(x.qkv), out = s.out(qkv, x.mask), grad = s.backward(qkv, x.mask, of(x.out_grad));
        Result a, b;
        ASSERT_NO_FATAL_FAILURE(tiled(ops, x, 0, &a));
        ASSERT_NO_FATAL_FAILURE(expect_near(a.out, out, tolerance(type), type, "tiled out"));
        ASSERT_NO_FATAL_FAILURE(expect_near(a.qkv_grad, grad, 2 * tolerance(type), type, "tiled qkv_grad"));
        ASSERT_NO_FATAL_FAILURE(plain(ops, x, 0, &b));
        ASSERT_NO_FATAL_FAILURE(expect_near(b.kept, s.weights(qkv), tolerance(type), type, "weights"));
        ASSERT_NO_FATAL_FAILURE(expect_near(b.out, out, tolerance(type), type, "plain out"));
        ASSERT_NO_FATAL_FAILURE(expect_near(b.qkv_grad, grad, 2 * tolerance(type), type, "plain qkv_grad"));
      }
  }
}

TEST(Attention, SameBitsInEveryOrderAndAtEveryAlignment) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const reference::Attention &s : {reference::Attention{1, 67, 2, 48}, reference::Attention{1, 66, 1, 128}, reference::Attention{1, 35, 1, 160}})
      for (const auto run : {tiled, plain}) {
        SCOPED_TRACE(name(type, s, 0.2f));
        const Problem x(type, s, 0.2f);
        Result straight, shifted;
        ASSERT_NO_FATAL_FAILURE(run(ops, x, 0, &straight));
        ASSERT_NO_FATAL_FAILURE(run(ops, x, 1, &shifted));
        EXPECT_EQ(straight.bytes, shifted.bytes) << "another alignment gave other bits";
        expect_repeatable([&] {
          Result r;
          run(ops, x, 0, &r);
          return r.bytes;
        });
      }
  }
}

TEST(Attention, LseIsTheLogarithmOfTheSum) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    const Problem x(type, {2, 67, 2, 16}, 0.3f);
    Result r;
    ASSERT_NO_FATAL_FAILURE(tiled(ops, x, 0, &r));
    Values expected(x.rows());
    for (size_t row = 0; row < x.rows(); ++row) {
      const size_t b = row / x.s.sequence / x.s.heads, h = row / x.s.sequence % x.s.heads, t = row % x.s.sequence;
      double sum = 0.0;
      for (size_t k = 0; k <= t; ++k) {
        double dot = 0.0;
        for (size_t i = 0; i < x.s.size(); ++i)
          dot += static_cast<double>(x.qkv[x.s.at(b, t, 0, h, i)]) * static_cast<double>(x.qkv[x.s.at(b, k, 1, h, i)]);
        sum += std::exp(dot / std::sqrt(static_cast<double>(x.s.size())));
      }
      expected[row] = std::log(sum);
    }
    expect_near(r.kept, expected, 1e-6, ops::kFloat32, "lse");
  }
}

// Scores of zero and values that are rows of the unit matrix show the mask itself: out[i][j] is 1 / (i + 1), scaled, or nothing; in
// backward, with rows of the unit matrix as the output's gradients, so does the values' gradient. Offsets and sequences of every remainder modulo 4.
TEST(Attention, MasksAreTheCpusBitByBit) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const size_t size : {size_t{64}, size_t{100}, size_t{200}})
      for (const size_t sequence : {size_t{61}, size_t{62}, size_t{63}, size_t{64}})
        for (const auto run : {tiled, plain}) {
          Problem x(type, {1, sequence, 2, 2 * size}, 0.4f);
          x.philox.offset += sequence;
          x.mask = test::mask(x.philox, x.weight_count(), x.p);
          std::fill(x.qkv.begin(), x.qkv.end(), 0.0f);
          std::fill(x.out_grad.begin(), x.out_grad.end(), 0.0f);
          for (size_t h = 0; h < 2; ++h)
            for (size_t t = 0; t < sequence; ++t) x.qkv[x.s.at(0, t, 2, h, t)] = x.out_grad[x.s.out_at(0, t, h, t)] = 1.0f;
          Result r;
          ASSERT_NO_FATAL_FAILURE(run(ops, x, 0, &r));
          for (size_t h = 0; h < 2; ++h)
            for (size_t i = 0; i < sequence; ++i)
              for (size_t j = 0; j < sequence; ++j) {
                const bool kept = j <= i && x.mask[x.s.weight_at(0, h, i, j)] != 0.0;
                ASSERT_EQ(r.out[x.s.out_at(0, i, h, j)] != 0.0f, kept) << name(type, x.s, x.p) << ": " << i << ", " << j;
                ASSERT_EQ(r.qkv_grad[x.s.at(0, j, 2, h, i)] != 0.0f, kept) << name(type, x.s, x.p) << ", backward: " << i << ", " << j;
              }
        }
  }
}

TEST(Attention, TheStepWordIsReadOnTheDevice) {
  const Device &d = Device::get();
  const Ops ops(ops::kBfloat16);
  const Memory word(8);
  const uint64_t step = 9;
  OK(d.table().write_word(d.self(), d.stream(), static_cast<uint64_t *>(word.data()), step));
  Problem x(ops::kBfloat16, {1, 40, 1, 32}, 0.5f), y = x;
  x.philox.subsequence += step;
  y.philox.step_word = static_cast<const uint64_t *>(word.data());
  for (const auto run : {tiled, plain}) {
    Result a, b;
    ASSERT_NO_FATAL_FAILURE(run(ops, x, 0, &a));
    ASSERT_NO_FATAL_FAILURE(run(ops, y, 0, &b));
    EXPECT_EQ(a.bytes, b.bytes);
  }
}

// What a later position holds cannot reach an earlier one, not even by a bit.
TEST(Attention, TheFutureIsInvisible) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    const Problem x(type, {1, 100, 1, 16}, 0.0f);
    Problem changed = x;
    constexpr size_t kFirst = 77;
    for (size_t k = kFirst * 3 * x.s.channels; k < x.qkv.size(); ++k) changed.qkv[k] = 9.0f - changed.qkv[k];
    for (const auto run : {tiled, plain}) {
      Result a, b;
      ASSERT_NO_FATAL_FAILURE(run(ops, x, 0, &a));
      ASSERT_NO_FATAL_FAILURE(run(ops, changed, 0, &b));
      EXPECT_EQ(std::memcmp(a.out.data(), b.out.data(), kFirst * x.s.channels * sizeof(float)), 0);
      EXPECT_NE(a.out, b.out);
    }
  }
}

// Scores far apart: without the running maximum the exponentials would overflow.
TEST(Attention, LargeScores) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    const Problem x(type, {1, 140, 1, 8}, 0.0f, 15.0f);
    const Values qkv = of(x.qkv), out = x.s.out(qkv, {});
    Result a, b;
    ASSERT_NO_FATAL_FAILURE(tiled(ops, x, 0, &a));
    ASSERT_NO_FATAL_FAILURE(plain(ops, x, 0, &b));
    expect_near(a.out, out, 10 * tolerance(type), type, "tiled");
    expect_near(b.out, out, 10 * tolerance(type), type, "plain");
  }
}

TEST(Attention, HeadsOfMoreThan256ChannelsAreRefused) {
  const Ops ops(ops::kBfloat16);
  const Array any(ops::kBfloat16, 3 * 257), lse(ops::kFloat32, 1);
  void *const p = any.data();
  EXPECT_EQ(ops->attention_tiled_forward(ops, p, 1, 1, 1, 257, 0.0f, nullptr, lse.floats(), p), CKPT_ERROR_UNSUPPORTED);
  EXPECT_NE(last_text().find("ckpt_ops_attention_tiled_forward: heads of 257 channels (257 / 1), expected at most 256"), std::string::npos) << last_text();
  EXPECT_EQ(ops->attention_backward(ops, p, p, p, 1, 1, 1, 257, 0.0f, nullptr, p), CKPT_ERROR_UNSUPPORTED);
  EXPECT_NE(last_text().find("ckpt_ops_attention_backward: heads of 257 channels"), std::string::npos) << last_text();
}

}  // namespace
