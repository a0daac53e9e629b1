// ckpt_arena_alloc + ckpt_arena_free through the C ABI. Each iteration is one alloc and one free (of lifo: 64 of each, and
// ns_per_pair is in nanoseconds whatever unit is printed); malloc and free of the same sizes stand beside it. Budget: 60 ns
// a pair for last-in-first-out, which is what a tape does. Random frees cost more: exact best fit among hundreds of holes
// is a chain of branches that no predictor knows.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ckpt/arena.h"

namespace {

struct Fixture {
  ckpt_device *device = nullptr;
  ckpt_arena *arena = nullptr;
  explicit Fixture(uint32_t flags = 0) {
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.flags = flags;
    desc.capacity_bytes = size_t{8} << 30;
    if (ckpt_device_open("cpu", &device) || ckpt_arena_create(device, &desc, &arena)) std::abort();
  }
  ~Fixture() {
    ckpt_arena_destroy(arena);
    ckpt_device_close(device);
  }
};

uint32_t end(bool high) { return high ? uint32_t{CKPT_ARENA_HIGH} : 0; }

struct Lcg {
  uint64_t state = 1;
  uint64_t next() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; }
};

void pair(benchmark::State &state) {
  Fixture f;
  for (auto _ : state) {
    void *p = ckpt_arena_alloc(f.arena, 4096, 0);
    benchmark::DoNotOptimize(p);
    ckpt_arena_free(f.arena, p);
  }
}
BENCHMARK(pair);

// A stack of 64 blocks, up and down; from one end, or from both in turn.
void lifo(benchmark::State &state) {
  Fixture f;
  void *block[64];
  const bool both = state.range(0) != 0;
  for (auto _ : state) {
    for (uint32_t k = 0; k < 64; ++k) block[k] = ckpt_arena_alloc(f.arena, 4096 + 256 * k, end(both && k % 2));
    for (uint32_t k = 64; k-- > 0;) ckpt_arena_free(f.arena, block[k]);
  }
  state.counters["ns_per_pair"] =
      benchmark::Counter(64e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(lifo)->ArgName("both_ends")->Arg(0)->Arg(1);

// `live` blocks of random sizes up to 1 MiB; each iteration frees one at random and allocates another.
template <class Alloc, class Free>
void churn(benchmark::State &state, Alloc &&alloc, Free &&free) {
  Lcg random;
  const auto live = static_cast<size_t>(state.range(0));
  std::vector<void *> block(live);
  std::vector<uint32_t> order(4096);
  std::vector<size_t> size(4096);
  for (size_t k = 0; k < order.size(); ++k) {
    order[k] = static_cast<uint32_t>(random.next() % live);
    size[k] = 1 + random.next() % (size_t{1} << 20);
  }
  for (size_t k = 0; k < live; ++k) block[k] = alloc(size[k % size.size()], k);
  size_t turn = 0;
  for (auto _ : state) {
    void *&slot = block[order[turn % order.size()]];
    free(slot);
    slot = alloc(size[(turn + turn / order.size()) % size.size()], turn);
    benchmark::DoNotOptimize(slot);
    ++turn;
  }
  for (void *p : block) free(p);
}

void random_sizes(benchmark::State &state) {
  Fixture f;
  churn(state, [&](size_t bytes, size_t) { return ckpt_arena_alloc(f.arena, bytes, 0); },
        [&](void *p) { ckpt_arena_free(f.arena, p); });
}
BENCHMARK(random_sizes)->ArgName("live")->Arg(100)->Arg(1000)->Arg(4000);

void random_sizes_both_ends(benchmark::State &state) {
  Fixture f;
  churn(state, [&](size_t bytes, size_t turn) { return ckpt_arena_alloc(f.arena, bytes, end(turn % 2 != 0)); },
        [&](void *p) { ckpt_arena_free(f.arena, p); });
}
BENCHMARK(random_sizes_both_ends)->ArgName("live")->Arg(1000);

void random_sizes_malloc(benchmark::State &state) {
  churn(state, [](size_t bytes, size_t) { return std::malloc(bytes); }, [](void *p) { std::free(p); });
}
BENCHMARK(random_sizes_malloc)->ArgName("live")->Arg(1000);

// All holes of one size: ties are broken by address, which must not cost a walk over them.
void equal_holes(benchmark::State &state) {
  Fixture f;
  const auto count = static_cast<size_t>(state.range(0));
  std::vector<void *> block(2 * count);
  for (auto &p : block) p = ckpt_arena_alloc(f.arena, 4096, 0);
  for (size_t k = 0; k < block.size(); k += 2) ckpt_arena_free(f.arena, block[k]);
  for (auto _ : state) {
    void *p = ckpt_arena_alloc(f.arena, 4096, 0);
    benchmark::DoNotOptimize(p);
    ckpt_arena_free(f.arena, p);
  }
  for (size_t k = 1; k < block.size(); k += 2) ckpt_arena_free(f.arena, block[k]);
}
BENCHMARK(equal_holes)->Arg(1000)->Arg(100000);

}  // namespace

BENCHMARK_MAIN();
