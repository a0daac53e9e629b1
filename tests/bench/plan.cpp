// Planning time through the C ABI: chains of segments with 8 slots each, of 4 kinds that alternate.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ckpt/plan.h"

namespace {

void check(ckpt_status status) {
  if (status == CKPT_OK) return;
  std::fprintf(stderr, "%s: %s\n", ckpt_status_name(status), ckpt_last_error());
  std::exit(1);
}

struct Chain {
  explicit Chain(uint32_t segment_count) {
    constexpr uint32_t kSlots = 8, kKinds = 4;
    static const char *const kNames[kSlots] = {"norm", "qkv", "att", "lse", "mid", "norm2", "up", "act"};
    std::vector<ckpt_slot> slots(kSlots * kKinds);
    std::vector<uint32_t> reads(kSlots);
    for (uint32_t k = 0; k < kSlots; ++k) reads[k] = k - (k > 0);
    for (uint32_t kind = 0; kind < kKinds; ++kind)
      for (uint32_t k = 0; k < kSlots; ++k) {
        ckpt_slot &s = slots[kind * kSlots + k];
        s = {};
        s.name = kNames[k];
        s.bytes = (1 + (k * 5 + kind) % 7) << 16;
        s.reads = &reads[k];
        s.read_count = k > 0;
        s.cost_seconds = 1e-4 * (1 + (k * 3 + kind) % 5);
      }
    ckpt_output output{};
    output.name = "out";
    output.bytes = 1 << 18;
    std::vector<ckpt_chain_segment> segments(segment_count);
    for (uint32_t i = 0; i < segment_count; ++i) {
      ckpt_chain_segment &s = segments[i];
      s = {};
      s.name = "block";
      s.forward_seconds = 4e-3;
      s.backward_seconds = 8e-3;
      s.slots = &slots[i % kKinds * kSlots];
      s.slot_count = kSlots;
      s.outputs = &output;
      s.output_count = 1;
      s.backward_scratch_bytes = 1 << 17;
    }
    ckpt_chain_desc desc{};
    desc.struct_size = sizeof desc;
    desc.segment_size = sizeof(ckpt_chain_segment);
    desc.slot_size = sizeof(ckpt_slot);
    desc.output_size = sizeof(ckpt_output);
    desc.segments = segments.data();
    desc.segment_count = segment_count;
    check(ckpt_chain_create(&desc, &chain));
  }
  Chain(const Chain &) = delete;
  Chain &operator=(const Chain &) = delete;
  ~Chain() { ckpt_chain_destroy(chain); }
  ckpt_chain *chain = nullptr;
};

ckpt_plan_summary plan(const Chain &c, uint32_t strategy, size_t budget, ckpt_plan **keep = nullptr) {
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  desc.strategy = strategy;
  desc.budget_bytes = budget;
  ckpt_plan *p = nullptr;
  check(ckpt_plan_create(c.chain, &desc, &p));
  ckpt_plan_summary s{};
  s.struct_size = sizeof s;
  check(ckpt_plan_get_summary(p, &s));
  if (keep != nullptr) *keep = p;
  else ckpt_plan_destroy(p);
  return s;
}

void Strategy(benchmark::State &state, uint32_t strategy) {
  const Chain c(static_cast<uint32_t>(state.range(0)));
  ckpt_plan_summary s{};
  for (auto _ : state) s = plan(c, strategy, 0);
  state.counters["actions"] = s.action_count;
  state.counters["per_action"] = benchmark::Counter(static_cast<double>(state.iterations()) * s.action_count, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(Strategy, store_all, CKPT_STRATEGY_STORE_ALL)->Arg(24)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Strategy, every_segment, CKPT_STRATEGY_EVERY_SEGMENT)->Arg(24)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Strategy, sqrt, CKPT_STRATEGY_SQRT)->Arg(24)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Strategy, full, CKPT_STRATEGY_FULL)->Arg(24)->Arg(300)->Unit(benchmark::kMillisecond);

// With a part of store_all's memory, in percent.
void Auto(benchmark::State &state) {
  const Chain c(static_cast<uint32_t>(state.range(0)));
  const size_t budget = plan(c, CKPT_STRATEGY_STORE_ALL, 0).arena_bytes / 100 * static_cast<size_t>(state.range(1));
  ckpt_plan_summary s{};
  for (auto _ : state) s = plan(c, CKPT_STRATEGY_AUTO, budget);
  state.counters["recomputed"] = s.recompute_seconds / s.forward_seconds;
  state.counters["budget_used"] = static_cast<double>(s.arena_bytes) / static_cast<double>(budget);
}
BENCHMARK(Auto)->ArgNames({"n", "percent"})->ArgsProduct({{24, 1000}, {90, 50, 20}})->Unit(benchmark::kMillisecond);
BENCHMARK(Auto)->ArgNames({"n", "percent"})->Args({100000, 50})->Unit(benchmark::kMillisecond)->Iterations(1);

void Verify(benchmark::State &state) {
  const Chain c(static_cast<uint32_t>(state.range(0)));
  ckpt_plan *p = nullptr;
  const ckpt_plan_summary s = plan(c, CKPT_STRATEGY_SQRT, 0, &p);
  std::vector<ckpt_action> actions(s.action_count);
  check(ckpt_plan_get_actions(p, 0, s.action_count, sizeof(ckpt_action), actions.data()));
  for (auto _ : state) check(ckpt_program_verify(c.chain, actions.data(), s.action_count, sizeof(ckpt_action), nullptr, nullptr, nullptr));
  ckpt_plan_destroy(p);
  state.counters["per_action"] = benchmark::Counter(static_cast<double>(state.iterations()) * s.action_count, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(Verify)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
