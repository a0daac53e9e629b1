// Several forwards of one segment, with drops between them, in place of one: the same slots in less memory.
//
// A forward that makes several kernels' items may as well be one forward for each, in order: nothing is made twice, and each
// time no more is live. So the moves are single kernels and drops of single slots (where any forward costs everything: any set
// of slots). Ways are the Pareto-optimal paths between sets of live slots, by bytes and seconds.
#pragma once

#include <vector>

#include "plan/exact/chain.h"

namespace ckpt::plan::exact {

struct Call {
  Bits items;         // asked for, or dropped
  bool drop = false;
};

struct Way {
  Bytes peak = 0;     // of all that the segment has, makes and needs as scratch
  double seconds = 0;
  std::vector<Call> calls;
};

class CallGraph {
 public:
  // Segments of more slots than this are left to single forwards.
  static constexpr uint32_t kMostSlots = 8;
  static bool can(const Chain &chain, uint32_t i);
  static uint64_t states(const Chain &chain, uint32_t i) { return uint64_t{2} << chain.graph->nodes[i].shape->slot_count(); }

  CallGraph(const Chain &chain, uint32_t i, double tick);

  // Ways to make the output and be left with exactly some slots: first from nothing, where the first forward makes all outputs
  // and what is made once; or from `start`, which stays live. By set of slots: see index().
  std::vector<std::vector<Way>> runs(bool first, const Bits &start) const;
  // Ways from some slots (and the output, with k) to what `want` names and KEEP holds, by set of slots.
  std::vector<std::vector<Way>> fills(bool k, const Bits &want) const;
  static uint32_t index(const Bits &slots) { return static_cast<uint32_t>(slots.word(0)); }

 private:
  struct Edge {
    uint32_t from, to;
    Bytes peak;
    int64_t cost;   // in small parts of a tick, so that sums in any order are equal
    double seconds;
    Bits items;
    bool drop;
  };
  struct Label {
    Bytes peak;
    int64_t cost;
    double seconds;
    uint32_t state, edge, before;
  };
  struct Paths {
    std::vector<Label> labels;
    std::vector<std::vector<uint32_t>> of;  // by state: labels of ascending cost and less and less bytes
  };
  uint32_t state(const Bits &slots, bool output) const { return index(slots) | (output ? 1u << slots_ : 0); }
  Bits slots_of(uint32_t s) const { Bits b; b.set_word(0, s & ((1u << slots_) - 1)); return b; }
  bool output_of(uint32_t s) const { return s >> slots_ & 1; }
  Bytes bytes_of(const Bits &slots, bool output) const;
  void add_forwards(uint32_t from);
  void add_forward(uint32_t from, const Bits &items, bool keeps_all);
  Label called(const Bits &items, const Bits &live) const;
  Paths search(const std::vector<Label> &begin, bool backwards, const Bits &fixed) const;
  Way way(const Paths &paths, uint32_t label, bool backwards, bool first) const;

  const Chain &chain_;
  const Graph &graph_;
  const Link &link_;
  const Shape &shape_;
  const uint32_t i_, slots_;
  const double part_;
  std::vector<Edge> edges_;
  std::vector<std::vector<uint32_t>> out_, in_;  // edges, by state
};

}  // namespace ckpt::plan::exact
