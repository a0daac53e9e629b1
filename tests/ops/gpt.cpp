// The whole model: loss and gradients against the reference, the same bits under every strategy and number of threads, accumulation,
// evaluation, update.
#include "model.h"
#include "tapes.h"

using namespace test;
using reference::Values;

namespace {

class Gpt {
 public:
  ckpt_gpt_desc desc = CKPT_GPT_DESC_INIT;
  Floats parameters, gradients;

  explicit Gpt(ckpt_ops *ops, uint32_t attention = CKPT_ATTENTION_PLAIN, float dropout = 0.0f, uint32_t untied = 0, size_t chunk_rows = 0) {
    desc.attention = attention;
    desc.layers = 2;
    desc.heads = 2;
    desc.channels = 8;
    desc.sequence = 6;
    desc.batch = 2;
    desc.vocabulary = 13;
    desc.dropout_probability = dropout;
    desc.untied = untied;
    desc.head_chunk_rows = chunk_rows;
    EXPECT_EQ(ckpt_gpt_create(ops, &desc, &gpt_), CKPT_OK) << ckpt_ops_last_error();
    parameters.assign(ckpt_gpt_parameter_count(gpt_), NAN);
    gradients.assign(parameters.size(), 0.0f);
    EXPECT_EQ(ckpt_gpt_bind(gpt_, parameters.data(), gradients.data()), CKPT_OK);
    EXPECT_EQ(ckpt_gpt_init(gpt_, 3), CKPT_OK);
  }
  ~Gpt() { ckpt_gpt_destroy(gpt_); }
  Gpt(const Gpt &) = delete;
  Gpt &operator=(const Gpt &) = delete;
  operator ckpt_gpt *() const { return gpt_; }

  std::vector<int32_t> tokens(uint64_t seed) const { return indices(desc.batch * desc.sequence, seed, desc.vocabulary); }
  float step(ckpt_tape *tape, uint64_t seed, const float *loss_grad = nullptr, uint32_t flags = 0) {
    const std::vector<int32_t> in = tokens(seed), targets = tokens(seed + 1000);
    ckpt_buffer loss = 0;
    EXPECT_EQ(ckpt_gpt_record(gpt_, tape, in.data(), targets.data(), flags, &loss), CKPT_OK) << ckpt_ops_last_error();
    const void *grads[] = {loss_grad};
    EXPECT_EQ(ckpt_backward(tape, &loss, loss_grad == nullptr ? nullptr : grads, 1, 0), CKPT_OK) << ckpt_last_error();
    return *ckpt_gpt_loss(gpt_);
  }

 private:
  ckpt_gpt *gpt_ = nullptr;
};

struct Case {
  uint32_t attention;
  float dropout;
  uint32_t untied;
  size_t chunk_rows;
};
class GptCases : public testing::TestWithParam<Case> {};

TEST_P(GptCases, LossAndGradientsEqualReference) {
  const Ops ops;
  const auto [attention, dropout, untied, chunk_rows] = GetParam();
  Gpt gpt(ops, attention, dropout, untied, chunk_rows);
  const Floats start = values(gpt.parameters.size(), 5, 0.4f);
  std::copy(start.begin(), start.end(), gpt.parameters.begin());  // in place: the model has the address
  const auto &d = gpt.desc;
  const size_t elements = d.batch * d.sequence * d.channels;
  reference::Gpt model{d.layers, d.heads, d.channels, d.sequence, d.batch, d.vocabulary, untied == 0, drawn_mask(0, 0, elements, dropout), {}};
  for (uint64_t k = 1; k <= d.layers; ++k)
    model.blocks.push_back({d.batch, d.sequence, d.channels, d.heads, 4 * d.channels,
                            drawn_mask(k, 0, d.batch * d.heads * d.sequence * d.sequence, dropout), drawn_mask(k, 1, elements, dropout),
                            drawn_mask(k, 2, elements, dropout)});
  const Tape tape;
  const float loss = gpt.step(tape, 1);
  const std::vector<int32_t> tokens = gpt.tokens(1), targets = gpt.tokens(1001);
  const auto f = [&](const Values &p) { return Values{model.loss(p, tokens, targets)}; };
  const Values p = reference::of(gpt.parameters);
  EXPECT_NEAR(static_cast<double>(loss), f(p)[0], 3e-6);
  expect_near(gpt.gradients, reference::differences(f, p, {1.0}), 3e-6, "gradients");
}

INSTANTIATE_TEST_SUITE_P(All, GptCases,
                         testing::Values(Case{CKPT_ATTENTION_PLAIN, 0.0f, 0, 0}, Case{CKPT_ATTENTION_TILED, 0.0f, 1, 0},
                                         Case{CKPT_ATTENTION_PLAIN, 0.2f, 1, 5}, Case{CKPT_ATTENTION_TILED, 0.2f, 0, 5}));

// Five steps with updates; all parameters, losses.
Floats train(ckpt_ops *ops, uint32_t strategy, uint32_t k, uint32_t attention, uint32_t checks = 0) {
  Gpt gpt(ops, attention, 0.1f);
  const Tape tape(strategy, k, checks);
  Floats m(gpt.parameters.size()), v(gpt.parameters.size()), losses;
  ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
  update.learning_rate = 0.01f;
  update.weight_decay = 0.1f;
  update.max_norm = 1.0f;
  for (uint64_t step = 1; step <= 5; ++step) {
    std::fill(gpt.gradients.begin(), gpt.gradients.end(), 0.0f);
    losses.push_back(gpt.step(tape, step));
    update.step = step;
    EXPECT_EQ(ckpt_gpt_update(gpt, &update, m.data(), v.data(), nullptr), CKPT_OK) << ckpt_ops_last_error();
  }
  Floats all = gpt.parameters;
  all.insert(all.end(), losses.begin(), losses.end());
  return all;
}

TEST(GptBits, EveryStrategyTrainsTheSame) {
  const Ops ops;
  for (const uint32_t attention : {CKPT_ATTENTION_PLAIN, CKPT_ATTENTION_TILED}) {
    const Floats expected = train(ops, CKPT_STRATEGY_STORE_ALL, 0, attention);
    for (const float x : expected) ASSERT_TRUE(std::isfinite(x));
    const struct {
      uint32_t strategy, k;
    } others[] = {{CKPT_STRATEGY_EVERY_SEGMENT, 0}, {CKPT_STRATEGY_SQRT, 0}, {CKPT_STRATEGY_UNIFORM, 2},
                  {CKPT_STRATEGY_BLOCK, 2}, {CKPT_STRATEGY_FULL, 0}, {CKPT_STRATEGY_AUTO, 0}};
    for (const auto &[strategy, k] : others)
      EXPECT_TRUE(same_bits(train(ops, strategy, k, attention), expected)) << ckpt_strategy_name(strategy) << ", attention " << attention;
  }
}

TEST(GptBits, DoNotDependOnThreads) {
  const Ops one(1), three(3);
  EXPECT_TRUE(same_bits(train(one, CKPT_STRATEGY_STORE_ALL, 0, CKPT_ATTENTION_PLAIN), train(three, CKPT_STRATEGY_EVERY_SEGMENT, 0, CKPT_ATTENTION_PLAIN)));
}

// The tape's checks find no wrong `reads`, no draw that differs, no input that changed.
TEST(GptBits, PassTheTapesChecks) {
  const Ops ops;
  for (const uint32_t attention : {CKPT_ATTENTION_PLAIN, CKPT_ATTENTION_TILED})
    for (const uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT})
      EXPECT_TRUE(same_bits(train(ops, strategy, 0, attention, CKPT_CHECK_DETERMINISM | CKPT_CHECK_RECOMPUTE | CKPT_CHECK_INPUTS),
                            train(ops, CKPT_STRATEGY_STORE_ALL, 0, attention)));
}

// Two micro-batches with a loss gradient of 1/2 each equal their mean.
TEST(GptAccumulation, LossGradientIsTheShare) {
  const Ops ops;
  Gpt gpt(ops);
  const Tape tape;
  const float half = 0.5f;
  gpt.step(tape, 1, &half);
  gpt.step(tape, 2, &half);
  const Floats both = gpt.gradients;
  Values expected(both.size());
  for (const uint64_t seed : {1u, 2u}) {
    std::fill(gpt.gradients.begin(), gpt.gradients.end(), 0.0f);
    gpt.step(tape, seed);
    for (size_t k = 0; k < both.size(); ++k) expected[k] += 0.5 * static_cast<double>(gpt.gradients[k]);
  }
  expect_near(both, expected, 1e-7, "gradients");
}

TEST(GptEvaluate, DrawsNothing) {
  const Ops ops;
  Gpt with(ops, CKPT_ATTENTION_PLAIN, 0.3f), without(ops, CKPT_ATTENTION_PLAIN, 0.0f);
  const Tape tape;
  EXPECT_EQ(with.step(tape, 1, nullptr, CKPT_LAYER_EVALUATE), without.step(tape, 1));
  EXPECT_TRUE(same_bits(with.gradients, without.gradients));
  EXPECT_NE(with.step(tape, 1), without.step(tape, 1));
}

TEST(GptUpdate, ClipsToTheNormAndDecaysMatricesAlone) {
  const Ops ops;
  Gpt gpt(ops);
  const Floats start = values(gpt.gradients.size(), 4);
  std::copy(start.begin(), start.end(), gpt.gradients.begin());
  double squares = 0.0;
  for (const float g : gpt.gradients) squares += static_cast<double>(g) * static_cast<double>(g);
  const Floats before = gpt.parameters;
  Floats m(before.size()), v(before.size());
  ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
  desc.learning_rate = 0.5f;
  desc.weight_decay = 0.25f;
  desc.max_norm = 1.0f;
  desc.grad_scale = 0.25f;
  desc.step = 1;
  double norm = 0.0;
  OK(ckpt_gpt_update(gpt, &desc, m.data(), v.data(), &norm));
  EXPECT_NEAR(norm, 0.25 * std::sqrt(squares), 1e-5);
  for (uint32_t k = 0; k < ckpt_gpt_tensor_count(gpt); ++k) {
    ckpt_tensor_info info = {};
    info.struct_size = sizeof info;
    OK(ckpt_gpt_get_tensor(gpt, k, &info));
    for (size_t i = info.offset; i < info.offset + info.count; ++i) {
      const double grad = static_cast<double>(gpt.gradients[i]) / std::sqrt(squares);
      // The first step of Adam: both moments, corrected, give grad / |grad|.
      const double expected = static_cast<double>(before[i]) * (1.0 - (info.decays ? 0.125 : 0.0)) - 0.5 * grad / (std::fabs(grad) + 1e-8);
      ASSERT_NEAR(static_cast<double>(gpt.parameters[i]), expected, 1e-4) << info.name << "[" << i - info.offset << "]";
    }
  }
}

TEST(GptTensors, CoverTheParametersInOrder) {
  const Ops ops;
  Gpt gpt(ops, CKPT_ATTENTION_PLAIN, 0.0f, 1);
  size_t covered = 0;
  ckpt_tensor_info info = {};
  info.struct_size = sizeof info;
  std::vector<std::string> names;
  for (uint32_t k = 0; k < ckpt_gpt_tensor_count(gpt); ++k) {
    OK(ckpt_gpt_get_tensor(gpt, k, &info));
    ASSERT_EQ(info.offset, covered);
    covered += info.count;
    names.push_back(info.name);
  }
  EXPECT_EQ(covered, gpt.parameters.size());
  ASSERT_EQ(names.size(), 2u + 2 * 12 + 3);
  EXPECT_EQ(names[0], "embedding.token_table");
  EXPECT_EQ(names[2 + 12 + 2], "block1.qkv.weight");
  EXPECT_EQ(names.back(), "head.weight");
}

TEST(GptLifetime, ModelMayGoBeforeItsRecording) {
  const Ops ops;
  const Tape tape;
  Floats parameters, gradients;
  std::vector<int32_t> tokens, targets;
  ckpt_buffer loss = 0;
  {
    Gpt gpt(ops);
    parameters = gpt.parameters;
    gradients = gpt.gradients;
    tokens = gpt.tokens(1);
    targets = gpt.tokens(2);
    OK(ckpt_gpt_bind(gpt, parameters.data(), gradients.data()));
    OK(ckpt_gpt_record(gpt, tape, tokens.data(), targets.data(), 0, &loss));
  }
  ASSERT_EQ(ckpt_backward(tape, &loss, nullptr, 1, 0), CKPT_OK) << ckpt_last_error();
  float largest = 0.0f;
  for (const float g : gradients) largest = std::max(largest, std::fabs(g));
  EXPECT_GT(largest, 0.0f);
}

TEST(GptDry, PlansWithoutRunning) {
  const Ops ops;
  Gpt gpt(ops);
  const Tape tape;
  ckpt_buffer loss = 0;
  ASSERT_EQ(ckpt_tape_begin(tape, 9, CKPT_TAPE_DRY), CKPT_OK) << ckpt_last_error();
  OK(ckpt_gpt_record(gpt, tape, nullptr, nullptr, 0, &loss));
  ASSERT_EQ(ckpt_backward(tape, &loss, nullptr, 1, 0), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(gpt.gradients, Floats(gpt.gradients.size(), 0.0f));
  ckpt_plan *plan = nullptr;
  ASSERT_EQ(ckpt_tape_plan(tape, 9, &plan), CKPT_OK) << ckpt_last_error();
  ckpt_plan_destroy(plan);
}

}  // namespace
