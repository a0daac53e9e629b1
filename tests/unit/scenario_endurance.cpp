// Scenarios of what happens over time and at the edges: thousands of steps with failures among them, skip connections of
// mixed sizes, inputs that change under the tape, extremes of counts and sizes.
#include <gtest/gtest.h>

#include <cstdio>

#include "../support/ops_net.h"

namespace {

using namespace ops;

Net chain(uint32_t blocks, size_t count = 48) {
  Net net;
  uint32_t x = net.input(count, true);
  for (uint32_t b = 0; b < blocks; ++b) {
    x = net.then<Mlp>(x, "mlp" + std::to_string(b), count, b + 1);
    if (b % 3 == 1) x = net.then<Dropout>(x, "dropout" + std::to_string(b), count, b % 2 == 0);
  }
  net.root(net.then<Loss>(x, "loss", count, true));
  return net;
}

size_t resident_bytes() {
  size_t pages = 0, resident = 0;
  FILE *f = std::fopen("/proc/self/statm", "r");
  if (f == nullptr) return 0;
  if (std::fscanf(f, "%zu %zu", &pages, &resident) != 2) resident = 0;
  std::fclose(f);
  return resident * 4096;
}

// 10. 2000 steps, forward-only ones, abandoned segments and an error in every 7th among them.
TEST(Scenario10, SteadyState) {
  Net net = chain(6);
  Options o;
  o.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  Session s(o);
  size_t after_warm_up = 0;
  for (int t = 0; t < 2000; ++t) {
    net.zero_grads();
    if (t % 5 == 2) {  // forward only
      ASSERT_EQ(ckpt_tape_begin(s.tape, 0, CKPT_TAPE_NO_BACKWARD), CKPT_OK);
      ASSERT_EQ(s.forward(net), CKPT_OK);
      ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
    } else if (t % 11 == 3) {  // abandoned in the middle
      ASSERT_EQ(s.forward(net, 3), CKPT_OK);
      ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
    } else {
      if (t % 7 == 0) s.log.fail_in = t % 19;
      ckpt_status status = s.forward(net);
      if (!status) status = s.backward(net);
      const bool failed = t % 7 == 0 && s.log.fail_in < 0;
      ASSERT_EQ(status, failed ? 77 : CKPT_OK) << t << ": " << ckpt_last_error();
      s.log.fail_in = -1;
    }
    const ckpt_arena_stats a = s.arena_stats();
    ASSERT_EQ(a.in_use_bytes, 0u) << t;
    ASSERT_EQ(a.block_count, 0u) << t;
    s.uses().clear();
    s.log.backward_order.clear();
    if (t == 100) after_warm_up = resident_bytes();
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers keep what was freed
  EXPECT_LE(resident_bytes(), after_warm_up + (size_t{2} << 20)) << "resident memory grew";
#else
  (void)after_warm_up;
#endif
}

// 11. A callback that fails in the first run, in a recompute, in a backward: its code comes back, the step stays, the next
// step is right.
TEST(Scenario11, CallbackFailure) {
  Net net = chain(5);
  Options o;
  o.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  for (int64_t k = 0;; ++k) {
    SCOPED_TRACE(k);
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    s.log.fail_in = k;
    const Step bad = s.step(net, 1);
    if (bad.status == CKPT_OK) {
      EXPECT_GE(k, 15) << "first runs, recomputes and backwards were all failed once";
      break;
    }
    EXPECT_EQ(bad.status, 77);
    EXPECT_NE(bad.text.find("asked to fail"), std::string::npos) << bad.text;
    EXPECT_EQ(bad.stats.step, 0u);
    const Step good = s.step(net, 1);
    ASSERT_EQ(good.status, CKPT_OK) << good.text;
    EXPECT_EQ(difference(good.result, plain(net, o.seed, 0)), "");
  }
}

// 12. A U-Net: skip connections across many segments, sizes from 1 KiB to 64 MiB. An accepted plan cannot fail to allocate.
TEST(Scenario12, UNet) {
  ckpt_device *device = nullptr;
  ASSERT_EQ(ckpt_device_open("cpu", &device), CKPT_OK);
  const size_t sizes[] = {size_t{64} << 20, size_t{4} << 20, size_t{256} << 10, size_t{16} << 10, size_t{1} << 10};
  constexpr uint32_t kDepth = 5;
  // Callbacks touch the first word only: the sizes are what is tested.
  struct Touch {
    static ckpt_status forward(void *, ckpt_frame *f) {
      uint64_t sum = ckpt_frame_index(f) + 1;
      for (uint32_t k = 0; ckpt_frame_bytes(f, CKPT_FRAME_INPUT, k) != 0; ++k) sum = 3 * sum + *static_cast<const uint64_t *>(ckpt_frame_input(f, k));
      if (ckpt_frame_needs(f, 0)) *static_cast<uint64_t *>(ckpt_frame_slot(f, 0)) = sum;
      if (ckpt_frame_needs_output(f, 0)) *static_cast<uint64_t *>(ckpt_frame_output(f, 0)) = sum + 1;
      return CKPT_OK;
    }
    static ckpt_status backward(void *user, ckpt_frame *f) {
      uint64_t sum = *static_cast<const uint64_t *>(ckpt_frame_slot(f, 0));
      const auto *g = static_cast<const uint64_t *>(ckpt_frame_output_grad(f, 0));
      sum += *g;
      for (uint32_t k = 0; ckpt_frame_bytes(f, CKPT_FRAME_INPUT, k) != 0; ++k) {
        int add = 0;
        auto *d = static_cast<uint64_t *>(ckpt_frame_input_grad(f, k, &add));
        if (d != nullptr) *d = (add ? *d : 0) + *g + k;
      }
      *static_cast<uint64_t *>(user) = *static_cast<uint64_t *>(user) * 31 + sum;
      return CKPT_OK;
    }
  };
  const auto run = [&](uint32_t strategy, size_t budget, bool dry, uint64_t *sum, ckpt_tape_stats *stats) -> ckpt_status {
    ckpt_arena *arena = nullptr;
    ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
    a.capacity_bytes = budget;
    EXPECT_EQ(ckpt_arena_create(device, &a, &arena), CKPT_OK);
    ckpt_tape *tape = nullptr;
    ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
    t.arena = arena;
    t.strategy = strategy;
    EXPECT_EQ(ckpt_tape_create(&t, &tape), CKPT_OK);
    std::vector<ckpt_segment *> segments;
    ckpt_status status = CKPT_OK;
    for (int pass = dry ? 0 : 1; pass < 2 && !status; ++pass) {
      *sum = 0;
      EXPECT_EQ(ckpt_tape_begin(tape, 1, pass == 0 ? uint32_t{CKPT_TAPE_DRY} : 0u), CKPT_OK);
      const uint64_t seed = 7;
      ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
      in.data = &seed;
      in.bytes = sizeof seed;
      ckpt_buffer x = 0;
      EXPECT_EQ(ckpt_tape_input(tape, &in, &x), CKPT_OK);
      std::vector<ckpt_buffer> skips;
      const auto node = [&](const std::vector<ckpt_buffer> &inputs, size_t bytes) {
        ckpt_slot slot{};
        slot.name = "saved";
        slot.bytes = bytes / 2 + 8;
        ckpt_output out{};
        out.name = "y";
        out.bytes = bytes;
        ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
        d.name = "conv";
        d.forward = Touch::forward;
        d.backward = Touch::backward;
        d.slots = &slot;
        d.outputs = &out;
        d.slot_count = d.output_count = 1;
        d.input_count = static_cast<uint32_t>(inputs.size());
        ckpt_segment *s = nullptr;
        EXPECT_EQ(ckpt_segment_create(&d, &s), CKPT_OK) << ckpt_last_error();
        segments.push_back(s);
        ckpt_call call = CKPT_CALL_INIT;
        call.inputs = inputs.data();
        call.input_count = d.input_count;
        call.user = sum;
        if (!status) status = ckpt_segment_run(tape, s, &call, &x);
      };
      for (uint32_t k = 0; k < kDepth; ++k) {
        node({x}, sizes[k]);
        skips.push_back(x);
      }
      for (uint32_t k = kDepth; k-- > 0;) node({x, skips[k]}, sizes[k]);
      const uint64_t one = 1;
      std::vector<uint64_t> grad(sizes[0] / 8, one);
      const void *grads[] = {grad.data()};
      if (!status) status = ckpt_backward(tape, &x, grads, 1, 0);
    }
    stats->struct_size = sizeof *stats;
    EXPECT_EQ(ckpt_tape_get_stats(tape, stats), CKPT_OK);
    EXPECT_LE(stats->arena_measured_bytes, stats->budget_bytes);
    for (ckpt_segment *s : segments) ckpt_segment_destroy(s);
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(arena);
    return status;
  };
  uint64_t expected = 0, sum = 0;
  ckpt_tape_stats stats{};
  ASSERT_EQ(run(CKPT_STRATEGY_STORE_ALL, size_t{1} << 30, true, &expected, &stats), CKPT_OK) << ckpt_last_error();
  const size_t ample = stats.arena_measured_bytes;
  EXPECT_EQ(run(CKPT_STRATEGY_AUTO, 4096, true, &sum, &stats), CKPT_ERROR_BUDGET);
  const size_t minimum = stats.minimum_budget_bytes;
  ASSERT_GT(minimum, 4096u);
  for (int k = 0; k <= 6; ++k) {
    const size_t budget = minimum + (ample - minimum) * static_cast<size_t>(k) / 6;
    SCOPED_TRACE(budget);
    ASSERT_EQ(run(CKPT_STRATEGY_AUTO, budget, true, &sum, &stats), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(stats.arena_predicted_bytes, stats.arena_measured_bytes);
    // Unknown: within the budget, or refused in words; never a wrong sum.
    const ckpt_status unknown = run(CKPT_STRATEGY_AUTO, budget, false, &sum, &stats);
    if (unknown == CKPT_OK) { EXPECT_EQ(sum, expected); }
    else EXPECT_EQ(unknown, CKPT_ERROR_BUDGET) << ckpt_last_error();
  }
  ckpt_device_close(device);
}

// 13. An input that changes between forward and backward: an error that names segment and tensor.
TEST(Scenario13, MutatedInput) {
  Net net = chain(4);
  Options o;
  o.checks = CKPT_CHECK_INPUTS;
  Session s(o);
  net.zero_grads();
  ASSERT_EQ(s.forward(net), CKPT_OK);
  net.inputs[0].data[5] += 1;
  EXPECT_EQ(s.backward(net), CKPT_ERROR_CHECK);
  const std::string text = ckpt_last_error();
  EXPECT_NE(text.find("mlp0"), std::string::npos) << text;
  EXPECT_NE(text.find("input 0"), std::string::npos) << text;
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

// 16. Extremes: one segment, zero bytes, zero cost, sizes beyond 4 GiB in the arithmetic, steps up to 2^36.
TEST(Scenario16, Extremes) {
  Net one;
  one.root(one.then<Loss>(one.input(16, true), "loss", size_t{16}, true));
  Session s({});
  const Step step = s.step(one, 1);
  ASSERT_EQ(step.status, CKPT_OK) << step.text;
  EXPECT_EQ(difference(step.result, plain(one, 42, 0)), "");

  const ckpt_buffer none = 0;
  EXPECT_EQ(ckpt_backward(s.tape, &none, nullptr, 1, 0), CKPT_ERROR_STATE) << "no segments";
  EXPECT_EQ(ckpt_tape_set_step(s.tape, (uint64_t{1} << 33) + 5), CKPT_OK);
  const Step late = s.step(one, 1);
  ASSERT_EQ(late.status, CKPT_OK) << late.text;
  EXPECT_EQ(late.stats.step, (uint64_t{1} << 33) + 6);
  EXPECT_EQ(ckpt_tape_set_step(s.tape, uint64_t{1} << 36), CKPT_ERROR_OVERFLOW);

  // 12 segments of 6 GiB of slots each, recorded dry: predictions beyond 32 bits.
  Net big;
  uint32_t x = big.input(4, false);
  for (int k = 0; k < 12; ++k) {
    Custom *c = big.make<Custom>("big" + std::to_string(k));
    c->spec.slots = {{.name = "huge", .bytes = size_t{6} << 30}, {.name = "empty", .bytes = 0}};
    c->spec.outputs = {{.name = "y", .bytes = size_t{5} << 30}};
    c->spec.input_flags = {0};
    x = big.add(c, {x});
  }
  big.root(x, {1.0f});
  Options o;
  o.strategy = CKPT_STRATEGY_STORE_ALL;
  Session dry(o);
  const Step refused = dry.step(big, 1, CKPT_TAPE_DRY);
  EXPECT_EQ(refused.status, CKPT_ERROR_BUDGET);
  // All slots, the boundaries that backwards read, and what the last forward makes.
  EXPECT_GE(refused.stats.minimum_budget_bytes, 12 * (size_t{6} << 30) + 11 * (size_t{5} << 30));
  EXPECT_LE(refused.stats.minimum_budget_bytes, 12 * (size_t{6} << 30) + 14 * (size_t{5} << 30));
}

// 17. An llm.c-shaped model, 12 layers, 768 channels, 1024 tokens, recorded dry: for every set of slots that are kept, the
// predicted load is the sum that one can write down.
TEST(Scenario17, GptShapes) {
  constexpr size_t kTokens = 1024, kChannels = 768, kLayers = 12, kBytes = kTokens * kChannels * sizeof(float);
  const struct { const char *name; size_t bytes; } slots[] = {{"ln1", kBytes}, {"qkv", 3 * kBytes}, {"atty", kBytes}, {"res2", kBytes}, {"ln2", kBytes}, {"fch", 4 * kBytes}, {"fch_gelu", 4 * kBytes}};
  constexpr uint32_t kCount = 7;
  Net net;
  uint32_t x = net.input(kTokens * kChannels, false);
  for (size_t l = 0; l < kLayers; ++l) {
    Custom *block = net.make<Custom>("block" + std::to_string(l));
    for (const auto &slot : slots) block->spec.slots.push_back({.name = slot.name, .bytes = slot.bytes});
    block->spec.outputs = {{.name = "residual", .bytes = kBytes}};
    block->spec.input_flags = {0};
    x = net.add(block, {x});
  }
  net.root(x, std::vector<float>(kTokens * kChannels, 1.0f));
  for (uint32_t set = 0; set < 1u << kCount; ++set) {
    Options o;
    o.strategy = CKPT_STRATEGY_SELECTIVE;
    o.capacity = size_t{2} << 30;
    size_t kept = 0, all = 0;
    for (uint32_t k = 0; k < kCount; ++k) {
      (set >> k & 1 ? o.keep : o.recompute).push_back(slots[k].name);
      kept += set >> k & 1 ? slots[k].bytes : 0;
      all += slots[k].bytes;
    }
    Session s(o);
    const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
    ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
    // At the last block's backward: what the earlier blocks keep, their outputs (the first input is the caller's), all slots
    // of the last block, and the gradient of its input; in its forward its output instead of the gradient: the same size.
    EXPECT_EQ(dry.stats.peak_predicted_bytes, (kLayers - 1) * (kept + kBytes) + all + kBytes) << set;
  }
}

}  // namespace
