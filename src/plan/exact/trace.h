// From a point of a frontier back to the steps that make it: the split is looked for again.
#pragma once

#include "plan/exact/intervals.h"
#include "plan/exact/top.h"

namespace ckpt::plan::exact {

inline constexpr uint32_t kNoStart = UINT32_MAX;  // of a first run

struct Part {  // a stretch to go backward over
  uint32_t s, start, side, t, option;
  bool stays;  // boundary s survives it
  bool gone;   // it has gone already (s == t)
  Point point;
};

class Tracer {
 public:
  Tracer(const Intervals &intervals, std::vector<Step> *steps) : in_(&intervals), model_(intervals.model()), steps_(steps) {}

  // For jump, run and free alone.
  Tracer(const Model &model, std::vector<Step> *steps) : in_(nullptr), model_(model), steps_(steps) {}

  void jump(uint32_t s, uint32_t j, uint32_t from, uint32_t to);  // runs s .. j - 1, gives back what they read behind s
  void run(uint32_t i, uint32_t from, uint32_t option);
  void free(uint32_t boundary) { steps_->push_back({Step::Kind::free, 0, boundary, 0, 0}); }
  void part(const Part &part);

 private:
  bool expand(const Part &part, std::vector<Part> *todo);
  bool find_right(const Part &part, uint32_t next, bool next_stays, Bytes outside, Ticks cost, Point *point) const;
  bool try_start(const Part &part, std::vector<Part> *todo);
  bool try_behind(const Part &part, uint32_t to, std::vector<Part> *todo);

  const Intervals *in_;
  const Model &model_;
  std::vector<Step> *steps_;
};

}  // namespace ckpt::plan::exact
