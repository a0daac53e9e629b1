// Planning time by strategy and length, through the C ABI: chains of equal blocks (8 slots each, as a transformer block has
// them: many ties) and of random ones. AUTO plans for `percent` of what store_all takes; `overhead` is the recomputation in
// forward passes, so that a faster search that finds less is seen. Budget: AUTO on 1000 segments below 0.5 s.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "ckpt/plan.h"

namespace {

constexpr uint32_t kSlots = 8;

void must(ckpt_status status) {
  if (status != CKPT_OK) std::abort();
}

struct Chain {
  ckpt_chain *chain = nullptr;
  std::vector<ckpt_slot> slots;
  std::vector<ckpt_output> outputs;
  std::vector<ckpt_chain_segment> segments;
  ckpt_chain_desc desc{};

  Chain(uint32_t n, bool equal) : slots(size_t{n} * kSlots), outputs(n), segments(n) {
    static const char *const names[kSlots] = {"norm1", "qkv", "attention", "residual", "norm2", "pre", "act", "mask"};
    static const size_t bytes[kSlots] = {4, 12, 4, 4, 4, 16, 16, 1};
    static const double seconds[kSlots] = {1, 24, 10, 8, 1, 32, 3, 0.5};
    uint64_t state = 1;
    const auto random = [&] { return 1 + (state = state * 6364136223846793005u + 1442695040888963407u) / (uint64_t{1} << 59); };  // 1 .. 32
    for (uint32_t i = 0; i < n; ++i) {
      ckpt_chain_segment &s = segments[i];
      s.name = "block";
      for (uint32_t k = 0; k < kSlots; ++k) {
        ckpt_slot &slot = slots[size_t{i} * kSlots + k];
        slot.name = names[k];
        slot.bytes = (equal ? bytes[k] : random()) * 4096;
        slot.cost_seconds = equal ? seconds[k] : static_cast<double>(random());
        s.forward_seconds += slot.cost_seconds;
      }
      outputs[i].name = "out";
      outputs[i].bytes = (equal ? 4 : random()) * 4096;
      s.forward_seconds += equal ? 32 : static_cast<double>(random());
      s.backward_seconds = 2 * s.forward_seconds;
      s.slots = &slots[size_t{i} * kSlots];
      s.slot_count = kSlots;
      s.outputs = &outputs[i];
      s.output_count = 1;
    }
    desc.struct_size = sizeof desc;
    desc.segment_size = sizeof(ckpt_chain_segment);
    desc.slot_size = sizeof(ckpt_slot);
    desc.output_size = sizeof(ckpt_output);
    desc.segments = segments.data();
    desc.segment_count = n;
    must(ckpt_chain_create(&desc, &chain));
  }
  Chain(const Chain &) = delete;
  Chain &operator=(const Chain &) = delete;
  ~Chain() { ckpt_chain_destroy(chain); }
};

ckpt_plan_summary plan(const ckpt_chain *chain, uint32_t strategy, size_t budget) {
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  d.strategy = strategy;
  d.budget_bytes = budget;
  ckpt_plan *made = nullptr;
  must(ckpt_plan_create(chain, &d, &made));
  ckpt_plan_summary s{};
  s.struct_size = sizeof s;
  must(ckpt_plan_get_summary(made, &s));
  ckpt_plan_destroy(made);
  return s;
}

void fixed(benchmark::State &state, uint32_t strategy) {
  const Chain c(static_cast<uint32_t>(state.range(0)), true);
  for (auto _ : state) benchmark::DoNotOptimize(plan(c.chain, strategy, 0));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void automatic(benchmark::State &state, bool equal) {
  const Chain c(static_cast<uint32_t>(state.range(0)), equal);
  const size_t all = plan(c.chain, CKPT_STRATEGY_STORE_ALL, 0).arena_bytes;
  ckpt_plan_summary s{};
  for (auto _ : state) s = plan(c.chain, CKPT_STRATEGY_AUTO, all / 100 * static_cast<size_t>(state.range(1)));
  state.counters["overhead"] = s.recompute_seconds / s.forward_seconds;
  state.counters["fill"] = static_cast<double>(s.arena_bytes) / static_cast<double>(all / 100 * static_cast<size_t>(state.range(1)));
}

void create(benchmark::State &state) {
  const Chain c(static_cast<uint32_t>(state.range(0)), true);
  for (auto _ : state) {
    ckpt_chain *chain = nullptr;
    must(ckpt_chain_create(&c.desc, &chain));
    ckpt_chain_destroy(chain);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(create)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fixed, store_all, CKPT_STRATEGY_STORE_ALL)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fixed, sqrt, CKPT_STRATEGY_SQRT)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fixed, full, CKPT_STRATEGY_FULL)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(automatic, equal, true)->ArgsProduct({{12, 96, 1000, 100000}, {60, 30, 10}})->ArgNames({"n", "percent"})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(automatic, random, false)->ArgsProduct({{12, 96, 1000}, {60, 30, 10}})->ArgNames({"n", "percent"})->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
