// The exact chain planner by itself: time to plan and proof, overhead and gaps, by kind of chain and share of store-all memory.
//   bench_exact [SEGMENTS [SEEDS [WORK_LIMIT]]]     stage model, class sigma; then chains of transformer blocks of 8 slots
// Times are CPU seconds of one thread. Overheads and gaps are in forward passes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "plan/exact/exact.h"
#include "plan/exact/minimum.h"
#include "plan/exact/solver.h"

namespace {

using namespace ckpt::plan::exact;

double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Random {
  std::mt19937_64 engine;
  double between(double low, double high) { return low + (high - low) * (static_cast<double>(engine() >> 11) * 0x1p-53); }
};

struct Drawn {
  Stage stage;
  double tick = 1;
};

// Sizes and seconds as papers and frameworks have them: log-uniform sizes, stages that shrink, identical blocks, wide
// spreads with scratch, small integers, equal steps.
Drawn draw(const std::string &kind, uint32_t n, uint64_t seed) {
  Random r{std::mt19937_64(seed)};
  std::vector<double> seconds(n);
  Stage s;
  s.a.resize(n + 1);
  s.A.resize(n);
  s.scratch_forward.assign(n, 0);
  s.scratch_backward.assign(n, 0);
  const auto sized = [](double bytes) { return static_cast<Bytes>(bytes) & ~Bytes{511}; };
  for (uint32_t i = 0; i <= n; ++i) {
    if (kind == "rand") s.a[i] = sized(std::exp(r.between(std::log(1e6), std::log(64e6))));
    else if (kind == "resnet") s.a[i] = Bytes{64000000} >> std::min<uint32_t>(3, 4 * i / (n + 1));
    else if (kind == "gpt") s.a[i] = Bytes{1} << 23;
    else if (kind == "wild") s.a[i] = static_cast<Bytes>(std::exp(r.between(0, std::log(100.0)))) + 1;
    else if (kind == "thin") s.a[i] = static_cast<Bytes>(r.between(1, 20));
    else s.a[i] = 1;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const auto out = static_cast<double>(s.a[i + 1]);
    if (kind == "rand") {
      s.A[i] = s.a[i + 1] + sized(out * r.between(0.5, 12));
      seconds[i] = r.between(0.2, 5);
      s.scratch_forward[i] = sized(out * r.between(0, 0.5));
      s.scratch_backward[i] = sized(static_cast<double>(s.A[i]) * r.between(0, 0.3));
    } else if (kind == "resnet") {
      s.A[i] = s.a[i + 1] * (i % 3 == 0 ? 7 : 6);
      seconds[i] = (i % 3 == 0 ? 1.4 : 1.0) * r.between(0.97, 1.03);
      s.scratch_backward[i] = s.a[i] / 2;
    } else if (kind == "gpt") {
      s.A[i] = s.a[i + 1] * (i % 2 == 0 ? 6 : 9);
      seconds[i] = i % 2 == 0 ? 1.0 : 1.5;
      s.scratch_backward[i] = s.a[i];
    } else if (kind == "wild") {
      s.A[i] = s.a[i + 1] + static_cast<Bytes>(std::exp(r.between(-1, std::log(200.0))));
      seconds[i] = std::exp(r.between(std::log(0.1), std::log(10.0)));
      if (r.between(0, 1) >= 0.5) s.scratch_forward[i] = static_cast<Bytes>(std::exp(r.between(0, std::log(50.0))));
      if (r.between(0, 1) >= 0.5) s.scratch_backward[i] = static_cast<Bytes>(std::exp(r.between(0, std::log(50.0))));
    } else if (kind == "thin") {
      s.A[i] = s.a[i + 1] + static_cast<Bytes>(r.between(0, 3));
      seconds[i] = std::floor(r.between(1, 6));
    } else {
      s.A[i] = 1;
      seconds[i] = 1;
    }
  }
  s.d = s.a;
  s.a[0] = 0;
  Drawn drawn;
  double sum = 0;
  for (double u : seconds) sum += u;
  const bool exact = kind == "gpt" || kind == "thin" || kind == "homog";
  drawn.tick = exact ? 0.5 : sum / n / 16384;
  for (double u : seconds) s.u.push_back(static_cast<Ticks>(std::floor(u / drawn.tick + 1e-6)));
  drawn.stage = std::move(s);
  return drawn;
}

Bytes store_all(const Stage &s) {
  const size_t n = s.A.size();
  Bytes held = 0, peak = 0;
  for (size_t i = 0; i < n; ++i) {
    peak = std::max(peak, held + s.A[i] + s.scratch_forward[i] + s.d[n]);
    held += s.A[i];
  }
  for (size_t i = n; i-- > 0;) {
    peak = std::max(peak, held + s.d[i + 1] + s.d[i] + s.scratch_backward[i]);
    held -= s.A[i];
  }
  return peak;
}

void stage_table(uint32_t n, uint32_t seeds, uint64_t limit) {
  std::printf("stage model, class sigma, %u segments, %u seeds: mean overhead in forward passes, largest class gap, mean and largest CPU seconds, proved\n", n, seeds);
  for (const char *kind : {"rand", "resnet", "gpt", "wild", "thin", "homog"})
    for (double share : {0.90, 0.60, 0.30, 0.15, 0.08, 0.05, 0.03}) {
      double overhead = 0, gap = 0, seconds = 0, most = 0;
      uint32_t solved = 0, proved = 0;
      const uint32_t count = std::string(kind) == "gpt" || std::string(kind) == "homog" ? 1 : seeds;
      for (uint32_t seed = 1; seed <= count; ++seed) {
        const Drawn d = draw(kind, n, seed);
        double forward = 0;
        for (Ticks u : d.stage.u) forward += static_cast<double>(u);
        const double start = now();
        const Model model = stage_model(d.stage, true);
        const auto room = static_cast<Bytes>(static_cast<double>(store_all(d.stage)) * share);
        if (room < minimum_load(model)) continue;
        Work work;
        if (limit != 0) work.limit = limit;
        const Solution s = Solver(model).solve(room, kNever, &work);
        const double spent = now() - start;
        if (s.cost == kNever) continue;
        ++solved;
        proved += s.proved;
        overhead += static_cast<double>(s.cost) / forward;
        gap = std::max(gap, static_cast<double>(s.cost - s.bound) / forward);
        seconds += spent;
        most = std::max(most, spent);
      }
      if (solved == 0) std::printf("%-7s %.2f  no program\n", kind, share);
      else std::printf("%-7s %.2f  %8.4f  %8.5f  %7.3f %7.3f  %u/%u\n", kind, share, overhead / solved, gap, seconds / solved, most, proved, count);
      std::fflush(stdout);
    }
}

// A transformer block as one segment: what its backward reads, and what the output is made from.
ckpt::plan::Graph blocks(uint32_t n, bool equal) {
  using namespace ckpt::plan;
  Graph g;
  g.add_input(size_t{1} << 23, 0, true, CKPT_GRAD_NONE);
  Random r{std::mt19937_64(7)};
  for (uint32_t i = 0; i < n; ++i) {
    static constexpr const char *kNames[] = {"norm", "qkv", "attention", "statistics", "middle", "norm2", "up", "act"};
    static constexpr double kBytes[] = {1, 3, 1, 0.1, 1, 1, 4, 4}, kCost[] = {0.04, 0.9, 1.1, 0, 0.31, 0.04, 1.2, 0.06};
    std::vector<Item> slots(8), outputs(1);
    for (uint32_t k = 0; k < 8; ++k) {
      slots[k].name = kNames[k];
      slots[k].bytes = static_cast<size_t>(kBytes[k] * (1 << 23));
      slots[k].cost_seconds = 1e-3 * kCost[k] * (equal ? 1 : r.between(0.97, 1.03));
    }
    slots[1].reads.set(0);
    slots[2].reads.set(1);
    slots[3].reads.set(1);
    slots[2].group = slots[3].group = 1;
    slots[4].reads.set(2);
    slots[5].reads.set(4);
    slots[6].reads.set(5);
    slots[7].reads.set(6);
    outputs[0].name = "out";
    outputs[0].bytes = size_t{1} << 23;
    outputs[0].cost_seconds = 1.2e-3;
    outputs[0].reads.set(4);
    outputs[0].reads.set(7);
    auto shape = Shape::create("block" + std::to_string(equal ? 0 : i), slots, outputs, {0}, 0, size_t{1} << 22, true, false);
    if (!shape.ok()) std::abort();
    if (i == 0 || !equal) g.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t latest[] = {g.value_count() - 1};
    g.nodes[g.add_node(g.shapes.back().get(), latest, nullptr, nullptr)].backward_seconds = 0.01;
  }
  return g;
}

// A drawn chain as segments that run as a whole; backward reads input and output, so that what is saved comes with the output.
ckpt::plan::Graph whole(const Drawn &d) {
  using namespace ckpt::plan;
  Graph g;
  g.root_grads_in_arena = true;
  g.rule.alignment_bytes = 1;
  g.add_input(1, static_cast<size_t>(d.stage.d[0]), true, CKPT_GRAD_ARENA);
  for (uint32_t i = 0; i < d.stage.A.size(); ++i) {
    std::vector<Item> slots(1), outputs(1);
    slots[0].name = "saved";
    slots[0].bytes = static_cast<size_t>(d.stage.A[i] - d.stage.a[i + 1]);
    outputs[0].name = "out";
    outputs[0].bytes = static_cast<size_t>(d.stage.a[i + 1]);
    outputs[0].cost_seconds = static_cast<double>(d.stage.u[i]);
    outputs[0].flags = CKPT_OUTPUT_BACKWARD_READS;
    auto shape = Shape::create("s" + std::to_string(i), slots, outputs, {0}, static_cast<size_t>(d.stage.scratch_forward[i]), static_cast<size_t>(d.stage.scratch_backward[i]), true, true);
    if (!shape.ok()) std::abort();
    g.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t latest[] = {g.value_count() - 1};
    g.nodes[g.add_node(g.shapes.back().get(), latest, nullptr, nullptr)].backward_seconds = 2 * static_cast<double>(d.stage.u[i]);
  }
  return g;
}

void graph_table(const char *what, const ckpt::plan::Graph &g, uint64_t limit) {
  using namespace ckpt::plan;
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const double forward = g.forward_seconds();
  std::printf("%u %s: overhead, class gap and universal gap in forward passes; CPU seconds\n", g.node_count(), what);
  for (const auto &[name, plan_class] : {std::pair{"sigma", CKPT_CLASS_SIGMA}, std::pair{"sigma+s+w", CKPT_CLASS_SIGMA_S_W}}) {
    const double before = now();
    auto planner = Planner::create(g, gradients, static_cast<uint32_t>(plan_class));
    const double created = now();
    Answer all;
    if (planner->solve(size_t{1} << 50, limit, &all) != ckpt::Status{CKPT_OK}) std::abort();
    std::printf("%s: created in %.3f s, all stored: %.1f MB in %.3f s\n", name, created - before, static_cast<double>(all.load) / 1e6, now() - created);
    for (double share : {0.90, 0.60, 0.30, 0.15, 0.08, 0.05, 0.03}) {
      Answer a;
      const double start = now();
      const ckpt::Status status = planner->solve(static_cast<size_t>(static_cast<double>(all.load) * share), limit, &a);
      if (status != CKPT_OK) std::printf("  %.2f  no program\n", share);
      else
        std::printf("  %.2f  %8.4f  %8.5f  %8.5f  %7.3f  %s, %.1fM work\n", share, a.overhead_seconds / forward, (a.overhead_seconds - a.class_bound_seconds) / forward,
                    (a.overhead_seconds - a.universal_bound_seconds) / forward, now() - start, a.status == CKPT_PLAN_OPTIMAL ? "proved" : "gap", static_cast<double>(a.work) / 1e6);
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  const uint32_t n = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 200;
  const uint32_t seeds = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 2;
  const uint64_t limit = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 30'000'000;
  if (n == 0 || seeds == 0) {
    std::fprintf(stderr, "bench_exact: SEGMENTS and SEEDS, expected 1 or more\n");
    return 2;
  }
  stage_table(n, seeds, limit);
  graph_table("equal transformer blocks of 8 slots", blocks(96, true), limit);
  graph_table("unequal transformer blocks of 8 slots", blocks(96, false), limit);
  for (const char *kind : {"rand", "resnet", "gpt", "wild"}) graph_table((std::string("whole segments of kind ") + kind).c_str(), whole(draw(kind, n, 1)), limit);
}
