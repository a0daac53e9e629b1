// Both attentions against the double-precision reference, and against each other.
#include "common.h"

using namespace test;
using reference::Values;

namespace {

const reference::Attention kShapes[] = {{1, 1, 1, 1}, {2, 3, 1, 4}, {1, 17, 3, 9}, {2, 65, 2, 16}, {1, 130, 2, 34}, {1, 257, 1, 8}, {3, 64, 2, 64}};

struct Inputs {
  Floats qkv, out_grad;
  Values mask;
  ckpt_philox random = philox();
  float probability;
  Inputs(const reference::Attention &s, float p, float scale = 1.5f)
      : qkv(values(s.batch * s.sequence * 3 * s.channels, 1, scale)), out_grad(values(s.batch * s.sequence * s.channels, 2)), probability(p) {
    if (p > 0.0f) mask = test::mask(random, s.batch * s.heads * s.sequence * s.sequence, p);
  }
};

struct Results {
  Floats weights, lse, out, qkv_grad;
};

void plain(ckpt_ops *ops, const reference::Attention &s, const Inputs &in, Results *r) {
  r->weights.assign(s.batch * s.heads * s.sequence * s.sequence, NAN);
  r->out.assign(in.out_grad.size(), NAN);
  r->qkv_grad.assign(in.qkv.size(), NAN);
  OK(ckpt_ops_attention_forward(ops, in.qkv.data(), s.batch, s.sequence, s.heads, s.channels, in.probability, &in.random,
                                r->weights.data(), r->out.data()));
  OK(ckpt_ops_attention_backward(ops, in.qkv.data(), r->weights.data(), in.out_grad.data(), s.batch, s.sequence, s.heads, s.channels,
                                 in.probability, &in.random, r->qkv_grad.data()));
}

void tiled(ckpt_ops *ops, const reference::Attention &s, const Inputs &in, Results *r) {
  r->lse.assign(s.batch * s.heads * s.sequence, NAN);
  r->out.assign(in.out_grad.size(), NAN);
  r->qkv_grad.assign(in.qkv.size(), NAN);
  OK(ckpt_ops_attention_tiled_forward(ops, in.qkv.data(), s.batch, s.sequence, s.heads, s.channels, in.probability, &in.random,
                                      r->lse.data(), r->out.data()));
  OK(ckpt_ops_attention_tiled_backward(ops, in.qkv.data(), r->out.data(), r->lse.data(), in.out_grad.data(), s.batch, s.sequence,
                                       s.heads, s.channels, in.probability, &in.random, r->qkv_grad.data()));
}

std::string name(const reference::Attention &s, float p) {
  return (testing::Message() << s.batch << " x " << s.sequence << ", " << s.heads << " heads of " << s.size() << ", p " << p).GetString();
}

TEST(Attention, BothEqualReference) {
  const Ops ops;
  for (const reference::Attention &s : kShapes)
    for (const float p : {0.0f, 0.25f}) {
      SCOPED_TRACE(name(s, p));
      const Inputs in(s, p);
      const Values qkv = reference::of(in.qkv);
      const Values out = s.out(qkv, in.mask), grad = s.backward(qkv, in.mask, reference::of(in.out_grad));
      Results a, b;
      plain(ops, s, in, &a);
      tiled(ops, s, in, &b);
      expect_near(a.weights, s.weights(qkv), 1e-6, "weights");
      expect_near(a.out, out, 2e-6, "plain out");
      expect_near(a.qkv_grad, grad, 4e-6, "plain qkv_grad");
      expect_near(b.out, out, 2e-6, "tiled out");
      expect_near(b.qkv_grad, grad, 4e-6, "tiled qkv_grad");
    }
}

TEST(Attention, BothEqualDifferences) {
  const Ops ops;
  for (const reference::Attention &s : {reference::Attention{1, 5, 2, 6}, reference::Attention{2, 3, 1, 5}})
    for (const float p : {0.0f, 0.4f}) {
      SCOPED_TRACE(name(s, p));
      const Inputs in(s, p);
      const Values expected =
          reference::differences([&](const Values &v) { return s.out(v, in.mask); }, reference::of(in.qkv), reference::of(in.out_grad));
      Results a, b;
      plain(ops, s, in, &a);
      tiled(ops, s, in, &b);
      expect_near(a.qkv_grad, expected, 3e-6, "plain");
      expect_near(b.qkv_grad, expected, 3e-6, "tiled");
    }
}

// What a later position holds cannot reach an earlier one, not even by a bit.
TEST(Attention, TheFutureIsInvisible) {
  const Ops ops;
  const reference::Attention s{1, 150, 2, 16};
  const Inputs in(s, 0.0f);
  Inputs changed = in;
  constexpr size_t kFirst = 77;
  for (size_t k = kFirst * 3 * s.channels; k < changed.qkv.size(); ++k) changed.qkv[k] = 9.0f - changed.qkv[k];
  for (const auto run : {plain, tiled}) {
    Results a, b;
    run(ops, s, in, &a);
    run(ops, s, changed, &b);
    EXPECT_EQ(std::memcmp(a.out.data(), b.out.data(), kFirst * s.channels * sizeof(float)), 0);
    EXPECT_FALSE(same_bits(a.out, b.out));
  }
}

// Scores far apart: without the running maximum the exponentials would overflow.
TEST(Attention, LargeScores) {
  const Ops ops;
  const reference::Attention s{1, 140, 1, 8};
  const Inputs in(s, 0.0f, 15.0f);
  const Values qkv = reference::of(in.qkv);
  Results a, b;
  plain(ops, s, in, &a);
  tiled(ops, s, in, &b);
  expect_near(a.out, s.out(qkv, {}), 3e-5, "plain");
  expect_near(b.out, s.out(qkv, {}), 3e-5, "tiled");
}

TEST(Attention, LseIsTheLogarithmOfTheSum) {
  const Ops ops;
  const reference::Attention s{2, 67, 2, 8};
  const Inputs in(s, 0.0f);
  Results r;
  tiled(ops, s, in, &r);
  for (size_t b = 0; b < s.batch; ++b)
    for (size_t h = 0; h < s.heads; ++h)
      for (size_t t = 0; t < s.sequence; ++t) {
        double sum = 0.0;
        for (size_t j = 0; j <= t; ++j) {
          double dot = 0.0;
          for (size_t i = 0; i < s.size(); ++i)
            dot += static_cast<double>(in.qkv[s.at(b, t, 0, h, i)]) * static_cast<double>(in.qkv[s.at(b, j, 1, h, i)]);
          sum += std::exp(dot / std::sqrt(static_cast<double>(s.size())));
        }
        ASSERT_NEAR(static_cast<double>(r.lse[(b * s.heads + h) * s.sequence + t]), std::log(sum), 3e-6);
      }
}

}  // namespace
