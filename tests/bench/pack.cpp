// Packing through the C ABI: height over the live load, beside a plain best fit by size. The published instances are not part
// of this tree: CKPT_TEST_DATA names their folder, and without it they are left out.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ckpt/pack.h"
#include "../support/pack_csv.h"

namespace {

using Buffers = std::vector<ckpt_pack_buffer>;

// Largest first, each into the smallest gap that holds it.
size_t best_fit_by_size(const Buffers &buffers) {
  std::vector<size_t> order(buffers.size()), offsets(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  size_t height = 0;
  std::vector<size_t> placed, near;
  for (const size_t k : order) {
    near.clear();
    for (const size_t p : placed)
      if (buffers[p].lower < buffers[k].upper && buffers[k].lower < buffers[p].upper) near.push_back(p);
    std::sort(near.begin(), near.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    size_t top = 0, at = SIZE_MAX, gap = SIZE_MAX;
    for (const size_t p : near) {
      if (offsets[p] > top && offsets[p] - top >= buffers[k].bytes && offsets[p] - top < gap) gap = offsets[p] - top, at = top;
      top = std::max(top, offsets[p] + buffers[p].bytes);
    }
    offsets[k] = at == SIZE_MAX ? top : at;
    height = std::max(height, offsets[k] + buffers[k].bytes);
    placed.push_back(k);
  }
  return height;
}

void pack(benchmark::State &state, const Buffers &buffers, size_t capacity) {
  ckpt_pack_desc desc = CKPT_PACK_DESC_INIT;
  desc.buffers = buffers.data();
  desc.buffer_count = buffers.size();
  desc.capacity_bytes = capacity;
  std::vector<size_t> offsets(buffers.size());
  ckpt_pack_result result{};
  result.struct_size = sizeof result;
  for (auto _ : state) {
    const ckpt_status status = ckpt_pack(&desc, offsets.data(), &result);
    if (status != CKPT_OK && status != CKPT_ERROR_BUDGET) return state.SkipWithError(ckpt_last_error());
  }
  const auto bound = static_cast<double>(result.lower_bound_bytes);
  state.counters["buffers"] = static_cast<double>(buffers.size());
  state.counters["bound"] = bound;
  state.counters["height"] = static_cast<double>(result.height_bytes);
  state.counters["ratio"] = static_cast<double>(result.height_bytes) / bound;
  state.counters["by_size"] = static_cast<double>(best_fit_by_size(buffers)) / bound;
  state.counters["proved"] = result.proved;
  state.counters["work"] = static_cast<double>(result.work);
}

void published() {
  const char *given = std::getenv("CKPT_TEST_DATA");
  if (given == nullptr) return;
  const std::filesystem::path folder(given);
  for (const char *set : {"minimalloc", "training_traces"}) {
    std::vector<std::filesystem::path> files;
    std::error_code missing;
    for (const auto &entry : std::filesystem::directory_iterator(folder / set, missing))
      if (entry.path().extension() == ".csv") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path &file : files) {
      // "A.1048576": the capacity that is known to be reachable.
      const std::string stem = file.stem().string();
      const size_t dot = stem.find('.'), capacity = dot == std::string::npos ? 0 : std::strtoull(stem.c_str() + dot + 1, nullptr, 10);
      benchmark::RegisterBenchmark((std::string(set) + "/" + stem).c_str(), [buffers = ckpt::testing::read_buffers<ckpt_pack_buffer>(file), capacity](benchmark::State &s) { pack(s, buffers, capacity); })
          ->Unit(benchmark::kMillisecond)->Iterations(1);
    }
  }
}

// Lifetimes of a training step: `count` kept buffers that are nested, each with a temporary in the forward pass and another in
// the backward pass.
Buffers step(size_t count) {
  std::mt19937 random(1);
  Buffers buffers;
  for (size_t k = 0; k < count / 3; ++k) {
    const uint64_t there = 2 * k, back = 2 * count - 2 * k;
    buffers.push_back({there, back, 256 * (1 + random() % 1000)});
    buffers.push_back({there, there + 1 + random() % 4, 256 * (1 + random() % 2000)});
    buffers.push_back({back - 1 - random() % 4, back, 256 * (1 + random() % 2000)});
  }
  return buffers;
}

Buffers random_buffers(size_t count, uint32_t life) {
  std::mt19937 random(1);
  Buffers buffers;
  for (size_t k = 0; k < count; ++k) {
    const uint64_t begin = random() % count;
    buffers.push_back({begin, begin + 1 + random() % life, 64 * (1 + size_t{random() % 1000})});
  }
  return buffers;
}

void made() {
  for (const size_t count : {size_t{768}, size_t{3072}, size_t{20000}})
    benchmark::RegisterBenchmark(("step/" + std::to_string(count)).c_str(), [count](benchmark::State &s) { pack(s, step(count), 0); })->Unit(benchmark::kMillisecond);
  for (const uint32_t life : {100u, 20000u})
    benchmark::RegisterBenchmark(("random/20000/life:" + std::to_string(life)).c_str(), [life](benchmark::State &s) { pack(s, random_buffers(20000, life), 0); })
        ->Unit(benchmark::kMillisecond)->Iterations(1);
}

}  // namespace

int main(int argc, char **argv) {
  published();
  made();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
