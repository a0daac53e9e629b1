// Scenario 17, run for real: a GPT-shaped model scaled down, 12 layers with the seven slots of llm.c's blocks, under every set
// of slots that are kept and every strategy: predicted bytes equal measured bytes, gradients equal the plain executor's.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

constexpr size_t kTokens = 4, kChannels = 6, kLayers = 12, kCount = kTokens * kChannels;
constexpr uint32_t kSlots = 7;
const struct {
  const char *name;
  size_t factor;
} kSlot[kSlots] = {{"ln1", 1}, {"qkv", 3}, {"atty", 1}, {"res2", 1}, {"ln2", 1}, {"fch", 4}, {"fch_gelu", 4}};

// Each slot is computed from the one before it, widened or narrowed; backward reads them all.
Net gpt() {
  Net net;
  uint32_t x = net.input(kCount, true);
  for (size_t l = 0; l < kLayers; ++l) {
    auto *block = net.make<Custom>("block" + std::to_string(l));
    for (uint32_t k = 0; k < kSlots; ++k) {
      SlotSpec slot{.name = kSlot[k].name, .bytes = floats(kCount * kSlot[k].factor), .reads_all = false};
      if (k > 0) slot.reads = {k - 1};
      block->spec.slots.push_back(slot);
    }
    block->spec.outputs = {{.name = "residual", .bytes = floats(kCount), .reads_all = false, .reads = {3, 6}}};
    block->spec.input_flags = {0};
    block->set_weight(1, static_cast<uint32_t>(l));
    block->run_forward = [block](View &f) {
      const float *from = f.fin(0);
      for (uint32_t k = 0; k < kSlots; ++k) {
        float *slot = f.fslot(k);
        if (f.needs(k)) {
          must(slot, kSlot[k].name);
          for (size_t i = 0; i < kCount * kSlot[k].factor; ++i) slot[i] = 0.5f * must(from, "source")[i % kCount] + block->weight[0];
        }
        from = slot;
      }
      float *y = f.fout(0);
      if (f.needs_output(0))
        for (size_t i = 0; i < kCount; ++i) y[i] = must(f.fslot(3), "res2")[i] + must(f.fslot(6), "fch_gelu")[i + kCount];
    };
    block->run_backward = [block](View &f) {
      const float *x_in = must(f.fin(0), "x"), *g = must(f.fgrad(0), "gradient");
      bool add = false;
      float *dx = static_cast<float *>(f.input_grad(0, &add));
      for (size_t i = 0; i < kCount; ++i) {
        float sum = x_in[i];
        for (uint32_t k = 0; k < kSlots; ++k) sum += must(f.fslot(k), kSlot[k].name)[i];
        block->weight_grad[0] += g[i] * sum;
        if (dx != nullptr) put(dx, i, 0.0625f * g[i] * (1.0f + 0.0f * sum), add);
      }
    };
    x = net.add(block, {x});
  }
  net.root(net.then<Loss>(x, "loss", kCount, true));
  return net;
}

void check(Net &net, const Options &o) {
  const Result expected = plain(net, o.seed, 0);
  Session s(o);
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
  const Step got = s.step(net, 1);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, expected), "");
  EXPECT_EQ(dry.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  EXPECT_EQ(dry.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
}

TEST(Scenario17, EverySetOfKeptSlotsMeasuresWhatWasPredicted) {
  Net net = gpt();
  for (uint32_t set = 0; set < 1u << kSlots; ++set) {
    SCOPED_TRACE(set);
    Options o;
    o.strategy = CKPT_STRATEGY_SELECTIVE;
    for (uint32_t k = 0; k < kSlots; ++k) (set >> k & 1 ? o.keep : o.recompute).push_back(kSlot[k].name);
    check(net, o);
  }
}

TEST(Scenario17, EveryStrategyMeasuresWhatWasPredicted) {
  Net net = gpt();
  const std::pair<uint32_t, uint32_t> ways[] = {{CKPT_STRATEGY_STORE_ALL, 0}, {CKPT_STRATEGY_EVERY_SEGMENT, 0}, {CKPT_STRATEGY_SQRT, 0}, {CKPT_STRATEGY_UNIFORM, 4}, {CKPT_STRATEGY_BLOCK, 6}, {CKPT_STRATEGY_FULL, 0}, {CKPT_STRATEGY_AUTO, 0}};
  for (const auto &[strategy, k] : ways) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Options o;
    o.strategy = strategy;
    o.k = k;
    check(net, o);
  }
}

}  // namespace
