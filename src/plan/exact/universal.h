// A bound that holds for every program of the machine. When segment t first goes backward, each earlier segment either has
// what its backward reads, which takes bytes, or makes some of it again afterwards, which takes time: with a price for a byte
// the best choice is each segment's own. The bound is the best over t and over prices.
#pragma once

#include "plan/exact/chain.h"

namespace ckpt::plan::exact {

class UniversalBound {
 public:
  explicit UniversalBound(const Chain &chain);
  // Forward seconds of any program within `load` bytes beyond base_seconds(); infinite where a segment alone needs more.
  double seconds(Bytes load) const;
  // No program has less forward seconds.
  double base_seconds() const { return base_seconds_; }

 private:
  struct Choice {
    double bytes, seconds;
    bool output;  // the boundary behind is live
  };
  struct Segment {
    std::vector<Choice> choices;
    bool output_needed = false;  // after some backward behind it
    double base = 0;
  };
  double least(uint32_t i, double price, bool with_output) const;
  double at(uint32_t t, double price, double room) const;
  void add_choices(const Chain &chain, uint32_t i, Segment *out) const;

  std::vector<uint32_t> kind_;      // per segment, into segments_
  std::vector<Segment> segments_;   // different ones
  std::vector<Bytes> base_;         // what backward i takes by itself
  double base_seconds_ = 0;
  std::vector<double> prices_;
  std::vector<std::vector<double>> sums_;  // per price: prefix sums of least()
  std::vector<uint8_t> forced_;     // segment i's output is live when i + 1 goes backward
};

}  // namespace ckpt::plan::exact
