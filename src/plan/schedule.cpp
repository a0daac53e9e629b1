#include "plan/schedule.h"

#include <algorithm>
#include <cinttypes>

#include "base/assert.h"

namespace ckpt::plan {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kWideMax = ~Wide{0};

// value * factor / divisor where that is a whole number; saturates. Divides first, so nothing overflows that fits.
Wide scaled(Wide value, Wide factor, Wide divisor) noexcept {
  const Wide whole = value / divisor, rest = value % divisor;
  if (factor != 0 && whole > kWideMax / factor) return kWideMax;
  const Wide high = whole * factor, low = rest * factor / divisor;  // rest < divisor and factor: both below 2^65 here
  return high > kWideMax - low ? kWideMax : high + low;
}

// beta(s, r) = C(s + r, min(s, r)), or `enough` or more if it is at least that. Each factor at least doubles the product,
// so this ends after 128 rounds at the latest.
Wide beta(uint64_t s, uint64_t r, Wide enough) noexcept {
  const uint64_t chosen = std::min(s, r);
  const Wide other = std::max(s, r);
  Wide value = 1;
  for (uint64_t i = 1; i <= chosen && value < enough; ++i) value = scaled(value, other + i, i);
  return value;
}

// The least r with beta(s, r) >= n; s >= 1, n >= 1.
uint64_t repeats_for(uint64_t n, uint64_t s) noexcept {
  uint64_t low = 0, high = n - 1;  // beta(s, n - 1) >= beta(1, n - 1) = n
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (beta(s, middle, n) >= n)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

uint64_t revolve_extra_forwards(uint64_t step_count, uint64_t snapshot_count) noexcept {
  if (step_count <= 1) return 0;
  CKPT_ASSERT(snapshot_count >= 1);
  const uint64_t s = std::min(snapshot_count, step_count - 1);
  const uint64_t r = repeats_for(step_count, s);
  // C(s + r, r - 1) = beta(s, r - 1) (s + r) / (s + 1), and beta(s, r - 1) < n: it fits, and so does r n.
  const Wide total = Wide{r} * step_count - scaled(beta(s, r - 1, kWideMax), Wide{s} + r, Wide{s} + 1);
  return total > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(total);
}

Result<Revolve> Revolve::create(uint64_t step_count, uint32_t snapshot_count) {
  if (step_count > kMaxSteps)
    return Result<Revolve>::failed(fail(CKPT_ERROR_OVERFLOW, "revolve: step_count is %" PRIu64 ", expected at most 2^62",
                                        step_count));
  if (step_count > 1 && snapshot_count == 0)
    return Result<Revolve>::failed(
        fail(CKPT_ERROR_INVALID_ARGUMENT,
             "revolve: snapshot_count is 0, expected at least 1 (the input's) for %" PRIu64 " steps", step_count));
  return Revolve(step_count, snapshot_count);
}

Revolve::Revolve(uint64_t step_count, uint64_t snapshot_count) noexcept
    : fine_(step_count),
      snapshots_(std::min(snapshot_count, step_count > 1 ? step_count - 1 : 1)),  // more are of no use
      store_(step_count > 1) {}

// The entry for the state, which is about to be stored above the top (or at the bottom).
Revolve::Snapshot Revolve::child_of_top() const noexcept {
  const uint64_t steps = fine_ - state_;
  if (live_.empty()) {
    const uint64_t r = repeats_for(steps, snapshots_);
    return {state_, r, beta(snapshots_, r, kWideMax)};
  }
  // One snapshot less than the top has, and no more repeats: beta(s - 1, r) = beta(s, r) s / (s + r).
  const Snapshot &top = live_.back();
  const uint64_t s = snapshots_ - (live_.size() - 1);
  Snapshot child = {state_, top.repeats, scaled(top.reach, s, Wide{s} + top.repeats)};
  CKPT_ASSERT(child.reach >= steps);
  return child;
}

// How far to run from the top's step, with `steps` left to reverse from there: the choice that is optimal in advances and,
// among those, in stores (Griewank & Walther, Theorem 3.2). b(s, r) is beta.
uint64_t Revolve::advance_from_top(uint64_t steps) noexcept {
  Snapshot &top = live_.back();
  const uint64_t s = snapshots_ - (live_.size() - 1);
  if (s == 1) return steps - 1;
  uint64_t &r = top.repeats;
  for (;;) {  // b(s, r - 1) = b(s, r) r / (s + r)
    const Wide less = scaled(top.reach, r, Wide{s} + r);
    if (less < steps) break;
    top.reach = less;
    --r;
  }
  const Wide b1 = scaled(top.reach, r, Wide{s} + r);       // b(s, r - 1)
  const Wide b2 = scaled(b1, s, Wide{s} + r - 1);          // b(s - 1, r - 1)
  const Wide b3 = scaled(b2, s - 1, Wide{s} + r - 2);      // b(s - 2, r - 1)
  const Wide b4 = scaled(b1, r - 1, Wide{s} + r - 1);      // b(s, r - 2)
  const Wide b5 = scaled(b3, s - 2, r);                    // b(s - 3, r)
  const Wide choice = steps <= b1 + b3 ? b4 : steps + b5 >= top.reach ? b1 : steps - b2 - b3;
  return std::max<uint64_t>(static_cast<uint64_t>(choice), 1);
}

ckpt_schedule_action Revolve::next() {
  const auto top_index = [&] { return static_cast<uint32_t>(live_.size() - 1); };
  if (fine_ == 0) return {CKPT_SCHEDULE_DONE, 0, 0, 0};
  if (store_) {
    live_.push_back(child_of_top());
    store_ = false;
    return {CKPT_SCHEDULE_STORE, top_index(), state_, state_};
  }
  if (!state_known_) {
    state_ = live_.back().step;
    state_known_ = true;
    return {CKPT_SCHEDULE_RESTORE, top_index(), state_, state_};
  }
  const uint64_t steps = fine_ - state_;
  if (steps == 1) {
    fine_ = state_;
    state_known_ = false;
    if (!live_.empty() && live_.back().step == fine_) live_.pop_back();
    return {CKPT_SCHEDULE_BACKWARD, 0, fine_, fine_ + 1};
  }
  const uint64_t from = state_;
  state_ += advance_from_top(steps);
  store_ = fine_ - state_ > 1;  // a last step needs no snapshot: its adjoint follows at once
  return {CKPT_SCHEDULE_ADVANCE, 0, from, state_};
}

}  // namespace ckpt::plan
