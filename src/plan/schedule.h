// Schedules for loops of equal steps: Revolve (Griewank & Walther, Algorithm 799, ACM TOMS 26 (2000) 19-45).
//
// beta(s, r) = C(s + r, s) is the longest loop that s snapshots reverse with no step advanced over more than r times. The
// iterator holds the stack of live snapshots and, for each, the binomial that tells where to go next; neighbouring
// binomials follow by one multiplication and one division.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ckpt/schedule.h"

namespace ckpt::plan {

// t(n, s); saturates at UINT64_MAX. 0 for n <= 1; n > 1 needs s >= 1.
uint64_t revolve_extra_forwards(uint64_t step_count, uint64_t snapshot_count) noexcept;

class Revolve {
 public:
  static constexpr uint64_t kMaxSteps = uint64_t{1} << 62;

  static Result<Revolve> create(uint64_t step_count, uint32_t snapshot_count);

  // Throws std::bad_alloc when the stack cannot grow; the same call can then be made again.
  ckpt_schedule_action next();

 private:
  __extension__ using Wide = unsigned __int128;

  struct Snapshot {
    uint64_t step;
    uint64_t repeats;  // r: the least with beta(s, r) >= steps from here to fine_, where s counts this snapshot and the free
    Wide reach;        // beta(s, r)
  };

  Revolve(uint64_t step_count, uint64_t snapshot_count) noexcept;
  uint64_t advance_from_top(uint64_t steps) noexcept;
  Snapshot child_of_top() const noexcept;

  uint64_t fine_;       // steps fine_ .. have been reversed
  uint64_t snapshots_;  // at most this many are live
  uint64_t state_ = 0;
  bool state_known_ = true;  // false after an adjoint
  bool store_ = false;       // the state is to be stored before anything else
  std::vector<Snapshot> live_;
};

}  // namespace ckpt::plan
