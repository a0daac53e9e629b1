// A planner as the literature has it (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019, class rotor): the budget is cut
// into a number of slots, each size is rounded up to slots, and a table over (interval, slots) is filled. What the planner of
// this library is compared with; it has no other use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace ckpt_bench {

// Stage i reads boundary i and makes boundary i + 1; what it saves holds its output. Boundary 0 is the caller's.
struct StageChain {
  std::vector<size_t> boundary;  // n + 1; gradients are as large
  std::vector<size_t> saved;     // with the output
  std::vector<size_t> forward_scratch, backward_scratch;
  std::vector<double> seconds;   // of a forward

  uint32_t size() const { return static_cast<uint32_t>(seconds.size()); }
  double forward_seconds() const {
    double sum = 0;
    for (double s : seconds) sum += s;
    return sum;
  }
  // Live load of a step that makes nothing twice.
  size_t store_all_bytes() const {
    const uint32_t n = size();
    size_t live = 0, peak = 0;
    for (uint32_t i = 0; i < n; ++i) {
      peak = std::max(peak, live + saved[i] + forward_scratch[i] + boundary[n]);
      live += saved[i];
    }
    for (uint32_t i = n; i-- > 0;) {
      peak = std::max(peak, live + boundary[i + 1] + boundary[i] + backward_scratch[i]);
      live -= saved[i];
    }
    return peak;
  }
};

class GridPlanner {
 public:
  GridPlanner(const StageChain &chain, size_t budget, uint32_t slots) : c_(chain), budget_(budget), slots_(slots) {
    const uint32_t n = c_.size();
    row_ = slots + 1;
    table_.assign(size_t{n} * n * row_, kNever);
    total_.assign(n + 1, 0);
    for (uint32_t i = 0; i < n; ++i) total_[i + 1] = total_[i] + static_cast<float>(c_.seconds[i]);
    for (uint32_t length = 1; length <= n; ++length)
      for (uint32_t s = 0; s + length <= n; ++s) fill(s, s + length - 1);
  }
  // Forward seconds beyond one forward of each stage; nothing: it does not fit, as far as the grid sees.
  std::optional<double> overhead() const {
    const float cost = at(0, c_.size() - 1)[slots_];
    if (cost >= kNever) return std::nullopt;
    return cost;
  }

 private:
  static constexpr float kNever = 1e30f;

  float *at(uint32_t s, uint32_t t) { return table_.data() + (size_t{s} * c_.size() + t) * row_; }
  const float *at(uint32_t s, uint32_t t) const { return table_.data() + (size_t{s} * c_.size() + t) * row_; }
  uint32_t in_slots(size_t bytes) const {
    const double exact = static_cast<double>(bytes) * slots_ / static_cast<double>(budget_);
    const double up = std::min(static_cast<double>(slots_) + 1, exact);
    return static_cast<uint32_t>(up) + (static_cast<double>(static_cast<uint32_t>(up)) < up);
  }

  // out[m] = min(out[m], right[m - shift] + left[m] + cost) for m >= from: vectorised, as fast planners have it.
  __attribute__((optimize("O3"))) static void join(float *__restrict out, const float *__restrict right, const float *__restrict left, float cost, uint32_t count) {
    for (uint32_t m = 0; m < count; ++m) {
      const float candidate = right[m] + left[m] + cost;
      out[m] = candidate < out[m] ? candidate : out[m];
    }
  }
  void fill(uint32_t s, uint32_t t) {
    float *out = at(s, t);
    const uint32_t gradient = in_slots(c_.boundary[t + 1]), saved = in_slots(c_.saved[s]);
    const uint32_t all = std::max(gradient + saved + in_slots(c_.forward_scratch[s]), in_slots(c_.boundary[s + 1]) + saved + in_slots(c_.boundary[s]) + in_slots(c_.backward_scratch[s]));
    if (s == t) {
      for (uint32_t m = all; m < row_; ++m) out[m] = 0;
      return;
    }
    const float *rest = at(s + 1, t);
    for (uint32_t m = std::max(all, saved); m < row_; ++m) out[m] = rest[m - saved];
    uint32_t run = 0;
    for (uint32_t j = s + 1; j <= t; ++j) {
      const uint32_t stored = in_slots(c_.boundary[j]);
      run = std::max(run, (j - 1 > s ? in_slots(c_.boundary[j - 1]) : 0) + stored + in_slots(c_.forward_scratch[j - 1]));
      const uint32_t from = std::max(gradient + run, stored);
      if (from >= row_) return;
      join(out + from, at(j, t) + from - stored, at(s, j - 1) + from, total_[j] - total_[s], row_ - from);
    }
  }

  const StageChain &c_;
  size_t budget_;
  uint32_t slots_;
  uint32_t row_ = 0;
  std::vector<float> table_, total_;
};

}  // namespace ckpt_bench
