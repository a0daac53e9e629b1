// Random graphs from a list of numbers ("genes"), so that a property test can shrink them: every flag, sparse and full reads,
// groups, zero sizes, skips, values read twice, several outputs, caller memory, segments that cannot run again.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/graph.h"
#include "support/slow.h"

namespace plan_test {

using namespace ckpt;
using namespace ckpt::plan;

// Numbers from the genes, then zeros: what zero chooses is the simplest case.
class Genes {
 public:
  explicit Genes(std::vector<uint32_t> genes) : genes_(std::move(genes)) {}
  // A stream without end.
  static Genes endless(uint64_t seed) {
    Genes g({});
    g.state_ = seed * 2 + 1;
    return g;
  }
  uint32_t below(uint32_t limit) { return limit == 0 ? 0 : next() % limit; }
  bool one_in(uint32_t n) { return next() % n == n - 1; }
  bool empty() const { return state_ == 0 && at_ >= genes_.size(); }

 private:
  uint32_t next() {
    if (state_ != 0) {  // splitmix64
      uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
      return static_cast<uint32_t>((z ^ (z >> 31)) >> 16);
    }
    return at_ < genes_.size() ? genes_[at_++] : 0;
  }
  std::vector<uint32_t> genes_;
  size_t at_ = 0;
  uint64_t state_ = 0;
};

struct RandomGraphLimits {
  uint32_t nodes = 5, slots = 4, outputs = 2, inputs = 3;
  bool not_replayable = true;
  bool in_place = true;
  bool read_at_end = true;
  bool rare_roots = true;  // roots that are not the default ones
  bool plain = false;      // a chain without flags, groups and the like
};

struct RandomGraph {
  Graph graph;
  std::vector<Root> roots;
};

class GraphMaker {
 public:
  GraphMaker(Genes *genes, const RandomGraphLimits &limits) : g_(*genes), limits_(limits) {}

  RandomGraph make() {
    Graph &graph = r_.graph;
    graph.rule.alignment_bytes = std::vector<size_t>{1, 64, 256}[g_.below(3)];
    if (g_.one_in(4)) graph.rule.guard_bytes = graph.rule.alignment_bytes;
    graph.root_grads_in_arena = g_.one_in(3);
    for (uint32_t k = 0, count = limits_.plain ? 1 : 1 + g_.below(2); k < count; ++k) {
      const size_t bytes = size(), grad_bytes = g_.one_in(5) ? size() : 0;
      const bool caller = g_.one_in(2);
      graph.add_input(bytes, grad_bytes, caller, static_cast<uint8_t>(g_.below(3)));
    }
    for (uint32_t k = 0, count = 1 + g_.below(limits_.nodes); k < count; ++k) node();
    if (limits_.read_at_end)
      for (Value &v : graph.values) v.read_at_end = v.producer != kNone && g_.one_in(12);
    roots();
    return std::move(r_);
  }

 private:
  size_t size() {
    static constexpr size_t kSizes[] = {16, 0, 1, 40, 64, 100, 256, 300};
    return kSizes[g_.below(8)];
  }
  double seconds() { return g_.below(16) / 8.0; }  // exact sums in any order

  Bits reads(uint32_t earlier) {
    Bits b;
    const uint32_t how = g_.below(3);
    for (uint32_t k = 0; k < earlier; ++k)
      if (how == 0 || (how == 1 && g_.one_in(2))) b.set(k);
    return b;
  }
  std::shared_ptr<const Shape> shape() {
    const uint32_t slot_count = g_.below(limits_.slots + 1), output_count = 1 + (g_.one_in(4) ? g_.below(limits_.outputs) : 0);
    uint32_t input_count = 1;
    if (g_.one_in(3)) input_count = g_.below(limits_.inputs + 1);
    const bool replayable = !(limits_.not_replayable && g_.one_in(10));
    const bool whole = g_.one_in(8);
    const bool groups = g_.one_in(3);
    std::vector<Item> slots(slot_count), outputs(output_count);
    std::vector<uint32_t> input_flags(input_count);
    for (uint32_t k = 0; k < slot_count; ++k) {
      Item &s = slots[k];
      s.name = "s" + std::to_string(k);
      s.bytes = size();
      s.cost_seconds = seconds();
      s.reads = reads(k);
      static constexpr uint32_t kFlags[] = {0, 0, 0, CKPT_SLOT_TRANSIENT, CKPT_SLOT_TRANSIENT, CKPT_SLOT_KEEP, CKPT_SLOT_RECOMPUTE, CKPT_SLOT_CONSUMED, CKPT_SLOT_TRANSIENT | CKPT_SLOT_KEEP};
      s.flags = kFlags[g_.below(9)];
      if (!replayable) s.flags &= ~static_cast<uint32_t>(CKPT_SLOT_RECOMPUTE);
      if (groups) s.group = g_.below(3);
      if (s.group != 0 && g_.one_in(2)) s.flags |= CKPT_SLOT_ALONE;
    }
    for (uint32_t k = 0; k < output_count; ++k) {
      Item &o = outputs[k];
      o.name = "o" + std::to_string(k);
      o.bytes = size();
      o.grad_bytes = g_.one_in(6) ? size() : 0;
      o.cost_seconds = seconds();
      o.reads = reads(slot_count);
      static constexpr uint32_t kFlags[] = {0, 0, 0, 0, CKPT_OUTPUT_BACKWARD_READS, CKPT_OUTPUT_BACKWARD_READS, CKPT_OUTPUT_NO_GRAD, CKPT_OUTPUT_KEEP};
      o.flags = kFlags[g_.below(8)];
      o.caller_memory = g_.one_in(8);
      if (groups) o.group = g_.below(3);
      if (limits_.in_place && !o.caller_memory && input_count != 0 && g_.one_in(3)) o.in_place_input = 1 + g_.below(input_count);
    }
    for (uint32_t &f : input_flags) {
      static constexpr uint32_t kFlags[] = {0, 0, 0, CKPT_INPUT_BACKWARD_IGNORES, CKPT_INPUT_NO_GRAD, CKPT_INPUT_GRAD_OVER_OUTPUT_0, CKPT_INPUT_GRAD_OVER_OUTPUT_0 | CKPT_INPUT_BACKWARD_IGNORES};
      f = kFlags[g_.below(7)];
    }
    const size_t forward_scratch = g_.one_in(3) ? size() : 0, backward_scratch = g_.one_in(3) ? size() : 0;
    make_consistent(&slots, &outputs);
    const std::string name = "n" + std::to_string(r_.graph.nodes.size());
    Result<Shape> made = Shape::create(name, slots, outputs, input_flags, forward_scratch, backward_scratch, replayable, whole);
    if (!made.ok() && groups) {  // a group that waits for itself: each by itself then
      EXPECT_NE(std::string(last_error()).find("computed from the group itself"), std::string::npos) << last_error();
      for (Item &s : slots) s.group = 0, s.flags &= ~static_cast<uint32_t>(CKPT_SLOT_ALONE);
      for (Item &o : outputs) o.group = 0;
      made = Shape::create(name, slots, outputs, input_flags, forward_scratch, backward_scratch, replayable, whole);
    }
    EXPECT_TRUE(made.ok()) << last_error();
    return std::make_shared<const Shape>(std::move(*made));
  }
  // One kernel makes all members: all are KEEP or none. A slot that nobody would read is read by the first output.
  static void make_consistent(std::vector<Item> *slots, std::vector<Item> *outputs) {
    for (uint32_t group = 1; group < 3; ++group) {
      bool keep = false;
      for (const Item &s : *slots) keep |= s.group == group && (s.flags & CKPT_SLOT_KEEP);
      for (const Item &o : *outputs) keep |= o.group == group && (o.flags & CKPT_OUTPUT_KEEP);
      if (!keep) continue;
      for (Item &s : *slots)
        if (s.group == group) s.flags = (s.flags | CKPT_SLOT_KEEP) & ~static_cast<uint32_t>(CKPT_SLOT_RECOMPUTE);
      for (Item &o : *outputs)
        if (o.group == group) o.flags |= CKPT_OUTPUT_KEEP;
    }
    for (uint32_t k = 0; k < slots->size(); ++k)
      if ((*slots)[k].flags & CKPT_SLOT_TRANSIENT) (*outputs)[0].reads.set(k);
  }

  void plain_node() {
    Graph &graph = r_.graph;
    const uint32_t slot_count = g_.below(limits_.slots + 1);
    std::vector<Item> slots(slot_count), outputs(1);
    for (uint32_t k = 0; k < slot_count; ++k) {
      slots[k].name = "s" + std::to_string(k);
      slots[k].bytes = size();
      slots[k].cost_seconds = seconds();
      slots[k].reads = reads(k);
      if (g_.one_in(4)) slots[k].flags = CKPT_SLOT_TRANSIENT;
    }
    outputs[0].name = "o0";
    outputs[0].bytes = size();
    outputs[0].cost_seconds = seconds();
    outputs[0].reads = reads(slot_count);
    make_consistent(&slots, &outputs);
    Result<Shape> made = Shape::create("n" + std::to_string(graph.node_count()), slots, outputs, {0}, 0, 0, true, false);
    EXPECT_TRUE(made.ok()) << last_error();
    graph.shapes.push_back(std::make_shared<const Shape>(std::move(*made)));
    const uint32_t inputs[] = {graph.value_count() - 1};
    const uint32_t n = graph.add_node(graph.shapes.back().get(), inputs, nullptr, nullptr);
    graph.nodes[n].backward_seconds = seconds();
  }

  void node() {
    if (limits_.plain) return plain_node();
    Graph &graph = r_.graph;
    std::shared_ptr<const Shape> s;
    std::vector<size_t> slot_bytes, output_bytes;
    if (!graph.shapes.empty() && g_.one_in(4)) {  // another use of a shape, of other sizes
      s = graph.shapes[g_.below(static_cast<uint32_t>(graph.shapes.size()))];
      for (uint32_t k = 0; k < s->slot_count(); ++k) slot_bytes.push_back(size());
      for (uint32_t k = 0; k < s->output_count(); ++k) output_bytes.push_back(size());
    } else {
      s = shape();
      graph.shapes.push_back(s);
    }
    std::vector<uint32_t> inputs;
    for (uint32_t k = 0; k < s->input_count(); ++k)
      inputs.push_back(k == 0 && !g_.one_in(5) ? graph.value_count() - 1 : g_.below(graph.value_count()));
    const uint32_t n = graph.add_node(s.get(), inputs, slot_bytes.empty() ? nullptr : slot_bytes.data(), output_bytes.empty() ? nullptr : output_bytes.data());
    graph.nodes[n].backward_seconds = seconds();
  }

  void roots() {
    r_.roots = default_roots(r_.graph);
    if (!limits_.rare_roots || !g_.one_in(3)) return;
    r_.roots.clear();
    for (uint32_t v = 0; v < r_.graph.value_count(); ++v)
      if (r_.graph.values[v].producer != kNone && r_.graph.values[v].grad != CKPT_GRAD_NONE && g_.one_in(2)) r_.roots.push_back({v, !g_.one_in(3)});
  }

  Genes &g_;
  RandomGraphLimits limits_;
  RandomGraph r_;
};

inline RandomGraph random_graph(Genes *genes, const RandomGraphLimits &limits = {}) { return GraphMaker(genes, limits).make(); }

}  // namespace plan_test
