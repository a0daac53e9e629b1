// Philox fills, one thread, beside plain memset and memcpy of the same bytes in the same run: bytes of output a second.
// The fills' time a call is what matters for tiles (64 .. 4096 elements); bandwidth for what does not fit in the cache.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "ckpt/rng.h"

namespace {

constexpr int64_t kTile = 64, kPage = 4096, kLarge = int64_t{1} << 24;

template <class Element, class Fill>
void run(benchmark::State &state, const Fill &fill) {
  const size_t count = static_cast<size_t>(state.range(0));
  std::vector<Element> out(count);
  ckpt_philox philox;
  if (ckpt_philox_pack(42, 7, 3, 1, &philox) != CKPT_OK) return state.SkipWithError(ckpt_last_error());
  uint64_t first = 0;
  for (auto _ : state) {
    if (fill(&philox, first, count, out.data()) != CKPT_OK) return state.SkipWithError(ckpt_last_error());
    benchmark::ClobberMemory();
    first += count;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(count * sizeof(Element)));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(count));
}

void memset_plain(benchmark::State &state) {
  run<uint32_t>(state, [](const ckpt_philox *, uint64_t, size_t count, uint32_t *out) {
    std::memset(out, 1, count * sizeof *out);
    return ckpt_status{CKPT_OK};
  });
}

void memcpy_plain(benchmark::State &state) {
  const std::vector<uint32_t> from(static_cast<size_t>(state.range(0)), 1u);
  run<uint32_t>(state, [&](const ckpt_philox *, uint64_t, size_t count, uint32_t *out) {
    std::memcpy(out, from.data(), count * sizeof *out);
    return ckpt_status{CKPT_OK};
  });
}

void philox_u32(benchmark::State &state) { run<uint32_t>(state, ckpt_philox_u32); }
void philox_uniform(benchmark::State &state) { run<float>(state, ckpt_philox_uniform); }

void philox_normal(benchmark::State &state) {
  run<float>(state, [](const ckpt_philox *philox, uint64_t first, size_t count, float *out) {
    return ckpt_philox_normal(philox, first, count, 0.0f, 1.0f, out);
  });
}

void philox_bernoulli(benchmark::State &state) {
  run<uint8_t>(state, [](const ckpt_philox *philox, uint64_t first, size_t count, uint8_t *out) {
    return ckpt_philox_bernoulli(philox, first, count, 0.9, out);
  });
}

BENCHMARK(memset_plain)->Arg(kTile)->Arg(kPage)->Arg(kLarge);
BENCHMARK(memcpy_plain)->Arg(kTile)->Arg(kPage)->Arg(kLarge);
BENCHMARK(philox_u32)->Arg(kTile)->Arg(kPage)->Arg(kLarge);
BENCHMARK(philox_uniform)->Arg(kTile)->Arg(kPage)->Arg(kLarge);
BENCHMARK(philox_normal)->Arg(kTile)->Arg(kPage)->Arg(kLarge);
BENCHMARK(philox_bernoulli)->Arg(kTile)->Arg(kPage)->Arg(kLarge);

}  // namespace

BENCHMARK_MAIN();
