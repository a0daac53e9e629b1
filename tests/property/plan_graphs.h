// Random graphs for the planner's tests: chains and what is not one (skips, several inputs and outputs, values that nobody or
// somebody far away reads, twice the same input), every flag, groups, sizes of zero, the caller's memory, whole segments,
// segments that cannot be run again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/graph.h"

namespace ckpt::plan::testing {

using Draw = std::function<uint32_t(uint32_t low, uint32_t high)>;  // both included

struct Kinds {
  bool groups = true, skips = true, odd = true;  // odd: whole segments, no replay, no gradients, read at the end
  bool marks = true;                             // KEEP, RECOMPUTE, CONSUMED
  uint32_t nodes_low = 1, nodes_high = 8, slots_high = 4;
};

class GraphMaker {
 public:
  GraphMaker(Draw draw, Kinds kinds) : draw_(std::move(draw)), kinds_(kinds) {}

  Graph make() {
    Graph g;
    g.rule.alignment_bytes = one_in(3) ? 1 : 256;
    if (one_in(6)) g.rule.guard_bytes = g.rule.alignment_bytes;
    g.root_grads_in_arena = one_in(2);
    const uint32_t inputs = kinds_.skips ? draw_(1, 2) : 1;
    for (uint32_t k = 0; k < inputs; ++k) g.add_input(size(), 0, one_in(2), static_cast<uint8_t>(draw_(0, 2)));
    const uint32_t n = draw_(kinds_.nodes_low, kinds_.nodes_high);
    for (uint32_t i = 0; i < n; ++i) add_node(&g, i);
    if (kinds_.odd)
      for (Value &v : g.values)
        if (v.producer != kNone && one_in(6)) v.read_at_end = true;
    return g;
  }

 private:
  bool one_in(uint32_t n) { return draw_(0, n - 1) == 0; }
  size_t size() { return one_in(6) ? 0 : draw_(1, 20) * 100; }
  double seconds() { return one_in(5) ? 0 : draw_(1, 8) * 0.25; }

  void add_node(Graph *g, uint32_t number) {
    const uint32_t slot_count = draw_(0, kinds_.slots_high), output_count = kinds_.skips && one_in(4) ? 2 : 1;
    const bool replayable = !(kinds_.odd && one_in(10));
    std::vector<uint32_t> inputs;
    const uint32_t latest = g->value_count() - 1;
    inputs.push_back(latest);
    if (kinds_.skips)
      while (inputs.size() < 4 && one_in(3)) inputs.push_back(draw_(0, latest));
    if (kinds_.skips && one_in(12)) inputs.clear();
    std::vector<uint32_t> flags;
    for (uint32_t v : inputs) {
      uint32_t f = one_in(3) ? uint32_t{CKPT_INPUT_BACKWARD_IGNORES} : 0;
      if (kinds_.odd && one_in(8)) f |= CKPT_INPUT_NO_GRAD;
      if (v == latest && one_in(5)) f |= CKPT_INPUT_GRAD_OVER_OUTPUT_0;
      flags.push_back(f);
    }
    std::vector<Item> slots(slot_count), outputs(output_count);
    const bool grouped = kinds_.groups && one_in(3);
    for (uint32_t k = 0; k < slot_count; ++k) {
      Item &s = slots[k];
      s.name = "s" + std::to_string(k);
      s.bytes = size();
      s.cost_seconds = seconds();
      for (uint32_t r = 0; r < k; ++r)
        if (one_in(2)) s.reads.set(r);
      if (grouped && one_in(2)) s.group = 1;
      if (s.group != 0 && one_in(4)) s.flags |= CKPT_SLOT_ALONE;
      if (kinds_.marks) mark(&s, replayable);
    }
    for (uint32_t k = 0; k < output_count; ++k) {
      Item &o = outputs[k];
      o.name = "o" + std::to_string(k);
      o.bytes = size();
      o.cost_seconds = seconds();
      o.caller_memory = one_in(8);
      for (uint32_t r = 0; r < slot_count; ++r)
        if (one_in(2)) o.reads.set(r);
      if (grouped && one_in(3)) o.group = 1;
      if (one_in(4)) o.flags |= CKPT_OUTPUT_BACKWARD_READS;
      if (kinds_.odd && one_in(8)) o.flags |= CKPT_OUTPUT_NO_GRAD;
      if (kinds_.marks && one_in(8)) o.flags |= CKPT_OUTPUT_KEEP;
      if (!o.caller_memory && !inputs.empty() && one_in(3)) {
        o.in_place_input = draw_(1, static_cast<uint32_t>(inputs.size()));
        o.bytes = g->values[inputs[o.in_place_input - 1]].bytes;
      }
    }
    fix_groups(&slots, &outputs);
    for (uint32_t k = 0; k < slot_count; ++k)  // TRANSIENT only where somebody reads it
      if (one_in(4) && read(slots, outputs, k)) slots[k].flags |= CKPT_SLOT_TRANSIENT;
    Result<Shape> shape = Shape::create("n" + std::to_string(number), slots, outputs, flags, one_in(2) ? size() : 0, one_in(2) ? size() : 0, replayable, kinds_.odd && one_in(8));
    if (!shape.ok()) {  // a TRANSIENT slot that only other such slots read, or a group that waits for itself
      for (Item &s : slots) s.group = 0, s.flags &= ~static_cast<uint32_t>(CKPT_SLOT_ALONE);
      for (Item &o : outputs) o.group = 0;
      for (Item &s : slots) s.flags &= ~static_cast<uint32_t>(CKPT_SLOT_TRANSIENT);
      shape = Shape::create("n" + std::to_string(number), slots, outputs, flags, 0, 0, replayable, false);
    }
    g->shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t node = g->add_node(g->shapes.back().get(), inputs, nullptr, nullptr);
    g->nodes[node].backward_seconds = seconds();
  }

  void mark(Item *s, bool replayable) {
    if (one_in(8)) s->flags |= CKPT_SLOT_KEEP;
    else if (replayable && one_in(6)) s->flags |= CKPT_SLOT_RECOMPUTE;
    if (one_in(6)) s->flags |= CKPT_SLOT_CONSUMED;
  }

  // One kernel's results are kept, or not, together.
  static void fix_groups(std::vector<Item> *slots, std::vector<Item> *outputs) {
    bool keep = false;
    for (const auto *items : {slots, outputs})
      for (const Item &i : *items) keep |= i.group != 0 && (i.flags & CKPT_SLOT_KEEP);
    for (auto *items : {slots, outputs})
      for (Item &i : *items) {
        if (i.group == 0) continue;
        i.flags &= ~static_cast<uint32_t>(CKPT_SLOT_KEEP);
        if (!keep) continue;
        if (items == slots) i.flags &= ~static_cast<uint32_t>(CKPT_SLOT_RECOMPUTE);
        i.flags |= CKPT_SLOT_KEEP;
      }
  }

  static bool read(const std::vector<Item> &slots, const std::vector<Item> &outputs, uint32_t k) {
    for (const auto *items : {&slots, &outputs})
      for (const Item &i : *items)
        if (i.reads.has(k)) return true;
    return false;
  }

  Draw draw_;
  Kinds kinds_;
};

inline bool marked_again(const Graph &g) {
  for (const Node &n : g.nodes)
    if (!n.shape->again().empty()) return true;
  return false;
}

}  // namespace ckpt::plan::testing
