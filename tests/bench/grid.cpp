// The exact planner beside a planner with a grid of 500 memory slots, on the same chains and budgets in one run: the overhead of
// each, as a part of a forward pass, and the processor time that each takes. Through the C ABI, placement included.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "ckpt/plan.h"
#include "grid_planner.h"

namespace {

using ckpt_bench::GridPlanner;
using ckpt_bench::StageChain;

constexpr uint32_t kSlots = 500;

enum Kind : int64_t { kRandom, kResnet, kGpt };
constexpr const char *kKinds[] = {"random", "resnet", "gpt"};

// Exact on every machine: no library distribution.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : bits_(seed) {}
  double between(double low, double high) { return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 bits_;
};

size_t rounded(double bytes) { return static_cast<size_t>(bytes) / 512 * 512; }

StageChain make_chain(Kind kind, uint32_t n) {
  Numbers number(n);
  StageChain c;
  for (uint32_t i = 0; i <= n; ++i) {
    if (kind == kRandom) c.boundary.push_back(rounded(1e6 * std::exp2(number.between(0, 6))));
    if (kind == kResnet) c.boundary.push_back(size_t{64'000'000} >> std::min(3u, 4 * i / (n + 1)));
    if (kind == kGpt) c.boundary.push_back(8 << 20);
  }
  for (uint32_t i = 0; i < n; ++i) {
    const auto out = static_cast<double>(c.boundary[i + 1]);
    if (kind == kRandom) {
      c.saved.push_back(c.boundary[i + 1] + rounded(out * number.between(0.5, 12)));
      c.forward_scratch.push_back(rounded(out * number.between(0, 0.5)));
      c.backward_scratch.push_back(rounded(static_cast<double>(c.saved[i]) * number.between(0, 0.3)));
      c.seconds.push_back(std::round(number.between(200, 5000)) * 1e-3);
    } else if (kind == kResnet) {
      c.saved.push_back(c.boundary[i + 1] * (i % 3 == 0 ? 7 : 6));
      c.forward_scratch.push_back(0);
      c.backward_scratch.push_back(c.boundary[i] / 2);
      c.seconds.push_back(std::round((i % 3 == 0 ? 1400 : 1000) * number.between(0.97, 1.03)) * 1e-3);
    } else {
      c.saved.push_back(c.boundary[i + 1] * (i % 2 == 0 ? 6 : 9));
      c.forward_scratch.push_back(0);
      c.backward_scratch.push_back(8 << 20);
      c.seconds.push_back(i % 2 == 0 ? 1.0 : 1.5);
    }
  }
  return c;
}

void check(ckpt_status status) {
  if (status == CKPT_OK) return;
  std::fprintf(stderr, "%s: %s\n", ckpt_status_name(status), ckpt_last_error());
  std::exit(1);
}

// The same chain for the library: segments that run as a whole.
ckpt_chain *library_chain(const StageChain &c) {
  const uint32_t n = c.size();
  std::vector<ckpt_slot> slots(n);
  std::vector<ckpt_output> outputs(n);
  std::vector<ckpt_chain_segment> segments(n);
  static const uint32_t kNone = 0;
  for (uint32_t i = 0; i < n; ++i) {
    slots[i] = {};
    slots[i].name = "saved";
    slots[i].bytes = c.saved[i] - c.boundary[i + 1];
    outputs[i] = {};
    outputs[i].name = "out";
    outputs[i].bytes = c.boundary[i + 1];
    outputs[i].reads = &kNone;
    outputs[i].flags = CKPT_OUTPUT_BACKWARD_READS;
    segments[i] = {};
    segments[i].name = "stage";
    segments[i].forward_seconds = c.seconds[i];
    segments[i].backward_seconds = 2 * c.seconds[i];
    segments[i].slots = &slots[i];
    segments[i].slot_count = 1;
    segments[i].outputs = &outputs[i];
    segments[i].output_count = 1;
    segments[i].flags = CKPT_CHAIN_SEGMENT_WHOLE;
    segments[i].forward_scratch_bytes = c.forward_scratch[i];
    segments[i].backward_scratch_bytes = c.backward_scratch[i];
  }
  const ckpt_chain_input input{c.boundary[0], 0, CKPT_MEMORY_CALLER, CKPT_GRAD_ARENA};
  ckpt_chain_desc desc{};
  desc.struct_size = sizeof desc;
  desc.segment_size = sizeof(ckpt_chain_segment);
  desc.slot_size = sizeof(ckpt_slot);
  desc.output_size = sizeof(ckpt_output);
  desc.inputs = &input;
  desc.input_count = 1;
  desc.segments = segments.data();
  desc.segment_count = n;
  desc.output_grad = CKPT_GRAD_ARENA;
  ckpt_chain *chain = nullptr;
  check(ckpt_chain_create(&desc, &chain));
  return chain;
}

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Result {
  double overhead = -1, gap = 0, seconds = 0;  // overhead, gap: in forward passes; -1: refused
};

Result run_grid(const StageChain &c, size_t budget) {
  Result r;
  const double begin = processor_seconds();
  const GridPlanner planner(c, budget, kSlots);
  r.seconds = processor_seconds() - begin;
  if (const auto overhead = planner.overhead()) r.overhead = *overhead / c.forward_seconds();
  return r;
}

Result run_exact(const ckpt_chain *chain, const StageChain &c, size_t budget, uint32_t plan_class) {
  Result r;
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  desc.budget_bytes = budget;
  desc.plan_class = plan_class;
  ckpt_plan *plan = nullptr;
  const double begin = processor_seconds();
  const ckpt_status status = ckpt_plan_create(chain, &desc, &plan);
  r.seconds = processor_seconds() - begin;
  if (status == CKPT_ERROR_BUDGET) return r;
  check(status);
  ckpt_plan_summary summary{};
  summary.struct_size = sizeof summary;
  check(ckpt_plan_get_summary(plan, &summary));
  ckpt_plan_destroy(plan);
  r.overhead = (summary.forward_seconds + summary.recompute_seconds) / c.forward_seconds() - 1;
  r.gap = summary.class_gap_seconds / c.forward_seconds();
  return r;
}

void compare(benchmark::State &state) {
  const auto kind = static_cast<Kind>(state.range(0));
  const StageChain c = make_chain(kind, static_cast<uint32_t>(state.range(1)));
  ckpt_chain *chain = library_chain(c);
  const size_t budget = c.store_all_bytes() / 100 * static_cast<size_t>(state.range(2));
  Result grid, rotor, best;
  for (auto _ : state) {
    grid = run_grid(c, budget);
    rotor = run_exact(chain, c, budget, CKPT_CLASS_ROTOR);
    best = run_exact(chain, c, budget, CKPT_CLASS_DEFAULT);
  }
  ckpt_chain_destroy(chain);
  state.SetLabel(kKinds[kind]);
  const auto show = [&](const std::string &name, const Result &r) {
    state.counters[name + "_overhead"] = r.overhead;
    state.counters[name + "_cpu_s"] = r.seconds;
  };
  show("1_grid", grid);
  show("2_rotor", rotor);
  show("3_default", best);
  state.counters["2_rotor_gap"] = rotor.gap;
  state.counters["3_default_gap"] = best.gap;
}

BENCHMARK(compare)
    ->ArgNames({"kind", "n", "percent"})
    ->ArgsProduct({{kRandom, kResnet, kGpt}, {50, 101}, {60, 30, 15}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
