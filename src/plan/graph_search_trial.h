// One candidate on paper: what a search of graphs compares programs by.
#pragma once

#include <algorithm>
#include <cmath>

#include "plan/simulate.h"

namespace ckpt::plan {

class Trial {
 public:
  static constexpr double kTicks = 1e11;  // in a whole step: coarse enough that sums in another order are equal

  Trial(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, const arena::Placer &start)
      : graph_(graph), gradients_(gradients), in_flight_(in_flight), start_(start), packed_(in_flight == 1 && start.in_use() == 0) {
    const double seconds = graph.forward_seconds() + graph.backward_seconds();
    ticks_per_second_ = seconds > 0 ? kTicks / seconds : 0;
  }

  const Graph &graph() const { return graph_; }
  const GradientMap &gradients() const { return gradients_; }
  uint32_t in_flight() const { return in_flight_; }
  const arena::Placer &start() const { return start_; }

  Status simulate(const Program &program, Simulation *out) const { return simulate_unlimited(graph_, gradients_, program, start_, in_flight_, out); }
  // What the budget bounds: the height; a step that is placed beforehand is as high as its load, but for what packing misses.
  size_t height(const Simulation &s) const { return packed_ ? s.peak : s.height; }
  int64_t ticks(const Simulation &s) const { return std::llround(s.seconds() * ticks_per_second_); }

 private:
  const Graph &graph_;
  const GradientMap &gradients_;
  const uint32_t in_flight_;
  arena::Placer start_;
  const bool packed_;
  double ticks_per_second_ = 0;
};

}  // namespace ckpt::plan
