// The least bytes that any program of the class needs, whatever its time.
#pragma once

#include <memory>

#include "plan/exact/trace.h"

namespace ckpt::plan::exact {

// Exact: the recurrences of Intervals with bytes alone, over the options that matter then. A stretch never needs less than the
// stretch without its first segment, which ends most searches for a split at once; repeated blocks are looked at once. Where the
// tables would not fit some 200 MB (thousands of segments that all differ), simple_minimum's.
class SmallPrograms {
 public:
  explicit SmallPrograms(const Model &model);  // borrowed
  SmallPrograms(SmallPrograms &&) noexcept;
  SmallPrograms &operator=(SmallPrograms &&) noexcept;
  ~SmallPrograms();

  Bytes least() const;
  // A program of at most `room` bytes, from these tables alone: good where little more than the least is there. Empty where the
  // tables do not fit, or nothing does, or it would take more steps than `most`.
  std::vector<Step> write(Bytes room, size_t most) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Bytes minimum_load(const Model &model);
bool has_small_programs(const Model &model);  // whether the tables fit

// What running everything again from the last wall for each segment takes: never less than minimum_load, and quick.
Bytes simple_minimum(const Model &model);

}  // namespace ckpt::plan::exact
