// The tables of the recurrences for a chain of the machine, for one family of sticky slots.
#pragma once

#include <memory>

#include "plan/exact/calls.h"

namespace ckpt::plan::exact {

using Calls = std::vector<Call>;  // none: one forward, as the recurrences have it

// What an option or a start stands for.
struct Choice {
  struct Several {  // forwards of the segment, with drops
    Calls first;
    std::vector<Calls> again;               // by start
    std::vector<Calls> leaf, leaf_inside;   // by point
  };
  Bits slots;
  bool k = false;
  Bits fill;          // what the forward before its backward asks for; empty where there is none
  bool fills = false;
  std::shared_ptr<const Several> several = nullptr;  // NULL: nowhere
};

struct Tables {
  Model model;
  std::vector<std::vector<Choice>> options, starts;  // by segment; Option::choice and Start::choice count in these
  double base_seconds = 0;  // forward seconds at overhead 0
};

// What a segment may keep. Exact up to 16 free slots; beyond, the nested sets of two greedy orders (drop what saves the most
// bytes per second, take what saves the most seconds per byte) and each of them with one slot more or less.
std::vector<Bits> slot_sets(const Graph &graph, uint32_t node, const Bits &sticky, const Bits &barred);

// At most `limit` families of sticky slots: KEEP alone, then also every slot whose seconds per byte reach a threshold.
std::vector<std::vector<Bits>> sticky_families(const Chain &chain, uint32_t limit);

struct TableOptions {
  bool slots_at_jumps = true;  // sigma
  bool starts = false;         // w: up to two more starts per segment
  bool fills = false;          // d: late release
  bool calls = false;          // m: several forwards of a segment
};
double choose_tick(const Graph &graph, bool *exact);
Tables make_tables(const Chain &chain, const std::vector<Bits> &sticky, const TableOptions &options, double tick);

}  // namespace ckpt::plan::exact
