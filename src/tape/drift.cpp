#include "tape/drift.h"

#include <algorithm>
#include <cmath>

namespace ckpt::tape {

Drift::Drift(const plan::Graph &graph) : item_count_(graph.item_seconds.size()), base_(graph.item_seconds) {
  for (const plan::Node &n : graph.nodes) base_.push_back(n.backward_seconds);
  latest_.fill(base_);
}

bool Drift::due() {
  if (++steps_ < wait_) return false;
  steps_ = 0;
  return true;
}

std::vector<double> Drift::now() const {
  std::vector<double> costs(base_.size());
  for (size_t k = 0; k < costs.size(); ++k) {
    const double a = latest_[0][k], b = latest_[1][k], c = latest_[2][k];
    costs[k] = std::max(std::min(a, b), std::min(std::max(a, b), c));
  }
  return costs;
}

bool Drift::take(const std::vector<double> &item_seconds, const std::vector<double> &backward_seconds) {
  std::vector<double> &sample = latest_[next_];
  sample = latest_[(next_ + 2) % 3];  // what was not measured costs what it cost before
  next_ = (next_ + 1) % 3;
  for (size_t k = 0; k < base_.size(); ++k) {
    const bool item = k < item_count_;
    const size_t at = item ? k : k - item_count_;
    const std::vector<double> &from = item ? item_seconds : backward_seconds;
    if (at < from.size() && from[at] >= 0) sample[k] = from[at];
  }
  std::vector<double> costs = now();
  double before = 0, after = 0, moved = 0;
  for (size_t k = 0; k < item_count_; ++k) {
    before += base_[k];
    after += costs[k];
  }
  if (!(before > 0) || !(after > 0)) return false;
  for (size_t k = 0; k < item_count_; ++k) moved += std::abs(costs[k] / after - base_[k] / before) / 2;
  if (moved <= kShift) return false;
  base_ = std::move(costs);
  return true;
}

void Drift::write_costs(plan::Graph *graph) const {
  std::copy_n(base_.begin(), item_count_, graph->item_seconds.begin());
  for (uint32_t i = 0; i < graph->node_count(); ++i) graph->nodes[i].backward_seconds = base_[item_count_ + i];
}

void Drift::planned(bool taken) { wait_ = taken ? kFirstWait : std::min(2 * wait_, kLongestWait); }

}  // namespace ckpt::tape
