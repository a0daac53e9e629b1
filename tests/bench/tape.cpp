// Host time of the tape itself: forward and backward together, per segment, with callbacks that do nothing but ask for every
// pointer (8 slots, one input, one output, one input gradient). Budget: 1 microsecond a segment for store_all without
// checks. Each iteration is a whole step; ns_per_segment is in nanoseconds whatever unit is printed. `bare` is the same
// chain of callbacks called directly, so that what the callbacks themselves cost can be subtracted.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "ckpt/ckpt.h"

namespace {

constexpr uint32_t kSlots = 8;

ckpt_status forward(void *, ckpt_frame *f) {
  const void *x = ckpt_frame_input(f, 0);
  benchmark::DoNotOptimize(x);
  for (uint32_t k = 0; k < kSlots; ++k) {
    const int needs = ckpt_frame_needs(f, k);
    void *p = ckpt_frame_slot(f, k);
    benchmark::DoNotOptimize(needs);
    benchmark::DoNotOptimize(p);
  }
  const int needs = ckpt_frame_needs_output(f, 0);
  void *y = ckpt_frame_output(f, 0);
  benchmark::DoNotOptimize(needs);
  benchmark::DoNotOptimize(y);
  return CKPT_OK;
}

ckpt_status backward(void *, ckpt_frame *f) {
  const void *x = ckpt_frame_input(f, 0), *g = ckpt_frame_output_grad(f, 0);
  benchmark::DoNotOptimize(x);
  benchmark::DoNotOptimize(g);
  for (uint32_t k = 0; k < kSlots; ++k) {
    void *p = ckpt_frame_slot(f, k);
    benchmark::DoNotOptimize(p);
  }
  int accumulate = 0;
  void *dx = ckpt_frame_input_grad(f, 0, &accumulate);
  benchmark::DoNotOptimize(dx);
  return CKPT_OK;
}

struct Fixture {
  ckpt_device *device = nullptr;
  ckpt_arena *arena = nullptr;
  ckpt_tape *tape = nullptr;
  ckpt_segment *segment = nullptr;
  float data[64] = {}, grad[64] = {}, root_grad[64] = {};

  static void must(ckpt_status status) {
    if (status == CKPT_OK) return;
    std::abort();
  }
  explicit Fixture(uint32_t strategy, uint32_t in_flight = 1) {
    must(ckpt_device_open("cpu", &device));
    ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
    a.capacity_bytes = size_t{1} << 30;
    must(ckpt_arena_create(device, &a, &arena));
    ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
    t.arena = arena;
    t.strategy = strategy;
    t.in_flight_count = in_flight;
    must(ckpt_tape_create(&t, &tape));
    ckpt_slot slots[kSlots] = {};
    std::vector<std::string> names;
    for (uint32_t k = 0; k < kSlots; ++k) names.push_back("slot" + std::to_string(k));
    for (uint32_t k = 0; k < kSlots; ++k) {
      slots[k].name = names[k].c_str();
      slots[k].bytes = sizeof data;
    }
    ckpt_output output{};
    output.name = "y";
    output.bytes = sizeof data;
    ckpt_segment_desc s = CKPT_SEGMENT_DESC_INIT;
    s.name = "layer";
    s.forward = forward;
    s.backward = backward;
    s.slots = slots;
    s.slot_count = kSlots;
    s.outputs = &output;
    s.output_count = 1;
    s.input_count = 1;
    must(ckpt_segment_create(&s, &segment));
  }
  ~Fixture() {
    ckpt_tape_destroy(tape);
    ckpt_segment_destroy(segment);
    ckpt_arena_destroy(arena);
    ckpt_device_close(device);
  }

  void record(int64_t count, ckpt_buffer *last) {
    ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
    in.data = data;
    in.bytes = sizeof data;
    in.grad = grad;
    ckpt_buffer x = 0;
    must(ckpt_tape_input(tape, &in, &x));
    ckpt_call call = CKPT_CALL_INIT;
    call.input_count = 1;
    call.inputs = &x;
    for (int64_t k = 0; k < count; ++k) must(ckpt_segment_run(tape, segment, &call, &x));
    *last = x;
  }
  void step(int64_t count, uint64_t key) {
    if (key != 0) must(ckpt_tape_begin(tape, key, 0));
    ckpt_buffer last = 0;
    record(count, &last);
    const void *grads[] = {root_grad};
    must(ckpt_backward(tape, &last, grads, 1, 0));
  }
};

void report(benchmark::State &state, int64_t count) {
  state.counters["ns_per_segment"] =
      benchmark::Counter(1e-9 * static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Planned steps, found by key, or (key 0) by the longest prefix.
void planned(benchmark::State &state, uint32_t strategy, uint64_t key) {
  Fixture f(strategy);
  for (int warm = 0; warm < 4; ++warm) f.step(state.range(0), key);
  for (auto _ : state) f.step(state.range(0), key);
  report(state, state.range(0));
}
BENCHMARK_CAPTURE(planned, store_all, CKPT_STRATEGY_STORE_ALL, 7)->ArgName("n")->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(planned, store_all_by_prefix, CKPT_STRATEGY_STORE_ALL, 0)->ArgName("n")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(planned, every_segment, CKPT_STRATEGY_EVERY_SEGMENT, 7)->ArgName("n")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

// The same program, placed as it goes: with several recordings announced a plan has no places. online:planned at the same n is
// what choosing places beforehand saves.
void online(benchmark::State &state, uint32_t strategy) {
  Fixture f(strategy, 2);
  for (int warm = 0; warm < 4; ++warm) f.step(state.range(0), 7);
  for (auto _ : state) f.step(state.range(0), 7);
  report(state, state.range(0));
}
BENCHMARK_CAPTURE(online, store_all, CKPT_STRATEGY_STORE_ALL)->ArgName("n")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(online, every_segment, CKPT_STRATEGY_EVERY_SEGMENT)->ArgName("n")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

// Forward only.
void forward_only(benchmark::State &state) {
  Fixture f(CKPT_STRATEGY_STORE_ALL);
  ckpt_buffer last = 0;
  for (auto _ : state) {
    Fixture::must(ckpt_tape_begin(f.tape, 0, CKPT_TAPE_NO_BACKWARD));
    f.record(state.range(0), &last);
    Fixture::must(ckpt_tape_reset(f.tape));
  }
  report(state, state.range(0));
}
BENCHMARK(forward_only)->ArgName("n")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

// The first step of a tape: unknown, measured, its backward planned on the spot; then the plan.
void first_step(benchmark::State &state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto f = std::make_unique<Fixture>(CKPT_STRATEGY_STORE_ALL);
    state.ResumeTiming();
    f->step(state.range(0), 7);
    state.PauseTiming();
    f.reset();
    state.ResumeTiming();
  }
  report(state, state.range(0));
}
BENCHMARK(first_step)->ArgName("n")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

// The callbacks alone, without a frame: what of the times above is theirs.
void bare(benchmark::State &state) {
  for (auto _ : state)
    for (int64_t k = 0; k < state.range(0); ++k) {
      benchmark::DoNotOptimize(forward(nullptr, nullptr));
      benchmark::DoNotOptimize(backward(nullptr, nullptr));
    }
  report(state, state.range(0));
}
BENCHMARK(bare)->ArgName("n")->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
