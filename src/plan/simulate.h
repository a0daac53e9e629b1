// Running a program on paper: the machine over a copy of a placer.
#pragma once

#include <span>

#include "plan/machine.h"

namespace ckpt::plan {

struct Paper {
  arena::SizeRule rule;
  arena::Placer placer;
  std::span<const size_t> offsets = {};  // what is left of a plan's places, in the region that is open in `placer`

  BlockId allocate(size_t bytes, Side side) {
    if (offsets.empty()) return placer.allocate(rule.footprint(bytes), side);
    const size_t offset = offsets.front();
    offsets = offsets.subspan(1);
    return placer.allocate_at(offset, rule.footprint(bytes));
  }
  void free(BlockId block) noexcept { placer.free(block); }
};
using PaperMachine = Machine<Paper>;

struct Simulation {
  size_t peak = 0;    // live load, what lived in the placer before included
  size_t height = 0;  // address range, likewise
  size_t held = 0;    // live when the last first run is over (and what is freed right after it)
  double forward_seconds = 0;    // first runs
  double recompute_seconds = 0;  // forward work beyond
  double backward_seconds = 0;
  uint64_t recompute_count = 0;  // forwards beyond the first of their node that computed something

  double seconds() const { return forward_seconds + recompute_seconds + backward_seconds; }
};

// From the machine's present state. Peaks count from there too (Placer::reset_peaks before, if wished). Errors:
// INVALID_PLAN with its text; BUDGET without one, where the placer's limit is reached.
Status simulate(PaperMachine &machine, const GradientMap &gradients, std::span<const Action> actions, Simulation *out);

// A whole step from the beginning, beside what lives in `start`. `start`'s peaks should have been reset.
Status simulate_step(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start, Simulation *out);

// The same with several recordings of it in flight, as a pipeline has them (one forward, one backward: in_flight - 1 forward
// passes, then a forward and the oldest one's backward in turn, then the backwards that are left). The height is that of all
// of them, everything else that of one.
Status simulate_in_flight(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start,
                          uint32_t in_flight, Simulation *out);

// The same in an arena without limit. OVERFLOW, with its text: more than addresses can say.
Status simulate_unlimited(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start,
                          uint32_t in_flight, Simulation *out);

// How many actions belong to the forward pass: up to the last first run and what is given back right after it.
size_t forward_action_count(const Graph &graph, std::span<const Action> actions);

}  // namespace ckpt::plan
