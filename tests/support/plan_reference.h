// The machine written naively, on sets of names, after its description alone: the oracle for the machine and the verifier.
// Everything is summed afresh after each action.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "plan_random.h"
#include "plan/program.h"

namespace plan_test {

using Name = std::pair<uint32_t, uint32_t>;  // node and item

struct Made {
  std::set<uint32_t> items, alone;
};

// The rules that a pass without backward, or one half of a step, may break: only a whole step is held to them.
inline bool whole_step_rule(const std::string &rule) {
  return rule == "keep in first run" || rule == "read at end" || rule == "consumed retained" || rule == "backward mask" || rule == "unfinished";
}

class Reference {
 public:
  Reference(const Graph &graph, std::vector<Root> roots) : graph_(graph), roots_(std::move(roots)), done_(graph.node_count()) {
    for (uint32_t v : graph_.inputs) inputs_.insert(v);
    for (const Root &r : roots_)
      if (r.has_grad && graph_.root_grads_in_arena) grads_[r.value] = graph_.rule.footprint(graph_.values[r.value].grad_bytes);
    peak_ = load();
  }

  // The broken rule, or nothing.
  std::optional<std::string> act(const Action &a) {
    switch (a.kind) {
      case ActionKind::forward: return forward(a);
      case ActionKind::backward: return backward(a);
      case ActionKind::free: return free_value(a.index);
      case ActionKind::drop: return drop(a);
    }
    return "kind";
  }
  std::optional<std::string> finish() const {
    if (first_ < graph_.node_count() || done_ != 0) return "unfinished";
    return std::nullopt;
  }

  size_t load() const {
    size_t sum = 0;
    for (const Name &n : items_)
      if (!caller(n)) sum += graph_.rule.footprint(graph_.bytes_of(n.first, n.second));
    for (uint32_t v : inputs_)
      if (!graph_.values[v].caller) sum += graph_.rule.footprint(graph_.values[v].bytes);
    for (const auto &[value, bytes] : grads_) sum += bytes;
    return sum;
  }
  size_t peak() const { return peak_; }
  double seconds() const { return first_seconds_ + again_seconds_ + backward_seconds_; }
  double again_seconds() const { return again_seconds_; }
  uint32_t first() const { return first_; }
  uint32_t done() const { return done_; }
  bool live(uint32_t node, uint32_t item) const { return items_.count({node, item}) != 0; }
  bool value_live(uint32_t v) const {
    const Value &value = graph_.values[v];
    return value.producer == kNone ? inputs_.count(v) != 0 : live(value.producer, value.item);
  }
  const Graph &graph() const { return graph_; }
  Reference fork() const { return *this; }
  const std::set<Name> &items() const { return items_; }
  const std::map<uint32_t, size_t> &grads() const { return grads_; }

  bool is_keep(const Name &n) const {
    const Shape &s = *graph_.nodes[n.first].shape;
    const uint32_t flags = s.item(n.second).flags;
    if (n.second >= s.slot_count()) return (flags & CKPT_OUTPUT_KEEP) || !s.replayable();
    return (flags & CKPT_SLOT_KEEP) || (!s.replayable() && !(flags & CKPT_SLOT_TRANSIENT));
  }
  bool is_again(const Name &n) const { return n.second < slots(n.first) && (item(n).flags & CKPT_SLOT_RECOMPUTE); }
  bool is_read(const Name &n) const {  // by its own backward
    return n.second < slots(n.first) ? !(item(n).flags & CKPT_SLOT_TRANSIENT) : (item(n).flags & CKPT_OUTPUT_BACKWARD_READS) != 0;
  }
  // Does a gradient reach this node?
  bool runs(uint32_t node) const {
    if (const auto known = runs_.find(node); known != runs_.end()) return known->second;
    bool any = false;
    for (uint32_t k = slots(node); k < count(node); ++k) any = any || reached(graph_.value_of(node, k));
    return runs_[node] = any;
  }

  // What a forward computes, and for how long.
  Made made(uint32_t node, const std::set<uint32_t> &want) const {
    return made(node, want, [&](uint32_t k) { return live(node, k); });
  }
  double seconds_of(uint32_t i, const Made &m) const {
    const Shape &s = *graph_.nodes[i].shape;
    double spent = 0;
    for (uint32_t k = 0; k < count(i); ++k) {
      const bool own = k < slots(i) && (s.item(k).flags & CKPT_SLOT_ALONE);
      if (own ? m.alone.count(k) != 0 : m.items.count(k) != 0 || (s.whole() && !m.items.empty())) spent += graph_.seconds_of(i, k);
    }
    return spent;
  }
  // Restarts with one more kernel as long as some member that must be made cannot be made by itself.
  template <class IsLive>
  Made made(uint32_t node, const std::set<uint32_t> &want, IsLive &&is_live) const {
    const Shape &s = *graph_.nodes[node].shape;
    std::set<uint32_t> kernels;
    for (;;) {
      Made m;
      std::vector<uint32_t> stack;
      const auto need = [&](uint32_t k) {
        if (!is_live(k) && m.items.insert(k).second) stack.push_back(k);
      };
      for (uint32_t k : want) need(k);
      for (uint32_t g : kernels)
        for (uint32_t k = 0; k < count(node); ++k)
          if (s.item(k).group == g) {
            if (m.items.insert(k).second) stack.push_back(k);
          }
      uint32_t another = 0;
      while (!stack.empty()) {
        const uint32_t k = stack.back(), g = s.item(k).group;
        stack.pop_back();
        if (g != 0 && !kernels.count(g)) {
          bool can = k < slots(node) && (s.item(k).flags & CKPT_SLOT_ALONE);
          for (uint32_t r = 0; r < slots(node); ++r) can = can && (!s.item(k).reads.has(r) || is_live(r));
          if (!can) another = g;
          m.alone.insert(k);
          continue;
        }
        for (uint32_t r = 0; r < slots(node); ++r)
          if (s.item(k).reads.has(r) && (g == 0 || s.item(r).group != g)) need(r);
      }
      if (another == 0) return m;
      kernels.insert(another);
    }
  }

 private:
  uint32_t slots(uint32_t node) const { return graph_.nodes[node].shape->slot_count(); }
  uint32_t count(uint32_t node) const { return graph_.nodes[node].shape->item_count(); }
  const Item &item(const Name &n) const { return graph_.nodes[n.first].shape->item(n.second); }
  bool caller(const Name &n) const { return n.second >= slots(n.first) && item(n).caller_memory; }
  uint32_t input(uint32_t node, uint32_t k) const { return graph_.inputs_of(node)[k]; }
  size_t scratch(size_t bytes) const { return bytes == 0 ? 0 : graph_.rule.footprint(bytes); }
  const Root *root(uint32_t v) const {
    for (const Root &r : roots_)
      if (r.value == v) return &r;
    return nullptr;
  }
  bool contributes(uint32_t node, uint32_t k) const {
    return !(graph_.nodes[node].shape->input_flags(k) & CKPT_INPUT_NO_GRAD) && graph_.values[input(node, k)].grad != CKPT_GRAD_NONE;
  }
  bool reached(uint32_t v) const {
    if (root(v) != nullptr) return true;
    for (uint32_t i = 0; i < graph_.node_count(); ++i)
      for (uint32_t k = 0; k < graph_.nodes[i].shape->input_count(); ++k)
        if (input(i, k) == v && contributes(i, k) && runs(i)) return true;
    return false;
  }
  bool again_elsewhere(uint32_t node) const {
    for (const Name &n : items_)
      if (n.first != node && is_again(n)) return true;
    return false;
  }

  std::optional<std::string> forward(const Action &a) {
    const uint32_t i = a.index;
    if (i >= graph_.node_count()) return "index";
    const Shape &s = *graph_.nodes[i].shape;
    const bool first = i == first_;
    if (i > first_) return "order";
    if (i >= done_) return "forward after backward";
    std::set<uint32_t> want;
    for (uint32_t k = 0; k < Bits::kCapacity; ++k)
      if (a.want.has(k)) want.insert(k);
    if (!want.empty() && *want.rbegin() >= count(i)) return "mask";
    for (uint32_t k = slots(i); k < count(i); ++k)
      if (first && !want.count(k)) return "first run without output";
    for (uint32_t k = 0; k < s.input_count(); ++k)
      if (!value_live(input(i, k))) return "input not live";
    if (again_elsewhere(i)) return "recompute slot lives on";
    for (uint32_t k = 0; k < count(i); ++k)
      if (first && is_keep({i, k}) && !want.count(k)) return "keep in first run";
    const Made m = made(i, want);
    for (uint32_t k : m.items) {
      if (first) break;
      if (!s.replayable()) return "not replayable";
      if (is_keep({i, k})) return "keep made twice";
    }
    std::set<uint32_t> over, under;  // outputs, and the boundaries they take
    for (uint32_t k : m.items) {
      if (!want.count(k) || live(i, k) || !a.in_place.has(k)) continue;
      if (k < slots(i) || s.item(k).in_place_input == 0) return "in place";
      const uint32_t v = input(i, s.item(k).in_place_input - 1);
      const Value &value = graph_.values[v];
      uint32_t uses = 0;
      for (uint32_t j = 0; j < s.input_count(); ++j) uses += input(i, j) == v;
      if (value.caller || (value.producer != kNone && is_keep({value.producer, value.item})) || uses != 1) return "in place";
      if (graph_.rule.footprint(value.bytes) != graph_.rule.footprint(graph_.bytes_of(i, k))) return "in place";
      if (!under.insert(v).second) return "in place";
      over.insert(k);
    }
    size_t during = load() + (m.items.empty() ? 0 : scratch(s.forward_scratch()));
    for (uint32_t k : m.items)
      if (!live(i, k) && !caller({i, k}) && !over.count(k)) during += graph_.rule.footprint(graph_.bytes_of(i, k));
    peak_ = std::max(peak_, during);
    const double spent = seconds_of(i, m);
    (first ? first_seconds_ : again_seconds_) += spent;
    for (uint32_t v : under) {
      if (graph_.values[v].producer == kNone) inputs_.erase(v);
      else items_.erase({graph_.values[v].producer, graph_.values[v].item});
    }
    for (uint32_t k : want) items_.insert({i, k});
    if (!first) return std::nullopt;
    if (++first_ == graph_.node_count())
      for (uint32_t v = 0; v < graph_.value_count(); ++v)
        if (graph_.values[v].read_at_end && !value_live(v)) return "read at end";
    return std::nullopt;
  }

  std::optional<std::string> backward(const Action &a) {
    const uint32_t i = a.index;
    if (i >= graph_.node_count()) return "index";
    if (first_ < graph_.node_count() || done_ == 0 || i != done_ - 1) return "order";
    if (again_elsewhere(i)) return "recompute slot lives on";
    const Shape &s = *graph_.nodes[i].shape;
    const bool run = runs(i);
    for (uint32_t k = 0; k < Bits::kCapacity; ++k) {
      if (!a.want.has(k)) continue;
      if (k >= count(i)) return "backward mask";
      if (run && k < slots(i) && (s.item(k).flags & CKPT_SLOT_CONSUMED)) return "consumed retained";
    }
    if (run) {
      for (uint32_t k = 0; k < count(i); ++k)
        if (is_read({i, k}) && !live(i, k)) return "not live";
      for (uint32_t k = 0; k < s.input_count(); ++k)
        if (!(s.input_flags(k) & CKPT_INPUT_BACKWARD_IGNORES) && !value_live(input(i, k))) return "input not live";
      gradients(i);
      backward_seconds_ += graph_.nodes[i].backward_seconds;
    }
    for (uint32_t k = 0; k < count(i); ++k)
      if (!a.want.has(k)) items_.erase({i, k});
    done_ = i;
    return std::nullopt;
  }

  void gradients(uint32_t i) {
    std::map<uint32_t, size_t> fresh;
    const size_t more = fresh_gradients(i, &fresh) + scratch(graph_.nodes[i].shape->backward_scratch());
    peak_ = std::max(peak_, load() + more);
    for (const auto &[v, bytes] : fresh) grads_[v] = bytes;
    for (uint32_t k = 0; k < graph_.nodes[i].shape->output_count(); ++k) grads_.erase(graph_.nodes[i].first_value + k);
  }

 public:
  // The gradients that begin in a backward, now the next; returns the bytes that they take beyond output 0's gradient's.
  size_t fresh_gradients(uint32_t i, std::map<uint32_t, size_t> *out) const {
    const Shape &s = *graph_.nodes[i].shape;
    std::map<uint32_t, size_t> &fresh = *out;
    std::optional<uint32_t> over;  // the value whose gradient takes output 0's place
    const uint32_t from = graph_.nodes[i].first_value;
    for (uint32_t k = 0; k < s.input_count(); ++k) {
      const uint32_t v = input(i, k);
      if (!contributes(i, k) || graph_.values[v].grad != CKPT_GRAD_ARENA || grads_.count(v) || fresh.count(v)) continue;
      fresh[v] = graph_.rule.footprint(graph_.values[v].grad_bytes);
      uint32_t uses = 0;
      for (uint32_t j = 0; j < s.input_count(); ++j) uses += input(i, j) == v;
      const bool from_user = root(v) != nullptr && root(v)->has_grad;
      const bool may = (s.input_flags(k) & CKPT_INPUT_GRAD_OVER_OUTPUT_0) && uses == 1 && !from_user;
      if (may && !over && s.output_count() > 0 && grads_.count(from) && grads_.at(from) == fresh[v]) over = v;
    }
    size_t more = 0;
    for (const auto &[v, bytes] : fresh)
      if (v != over) more += bytes;
    return more;
  }

 private:
  std::optional<std::string> free_value(uint32_t v) {
    if (v >= graph_.value_count()) return "index";
    const Value &value = graph_.values[v];
    if (value.caller) return "caller memory";
    if (!value_live(v)) return "not live";
    if (value.producer == kNone) inputs_.erase(v);
    else if (is_keep({value.producer, value.item})) return "keep given back";
    else items_.erase({value.producer, value.item});
    return std::nullopt;
  }
  std::optional<std::string> drop(const Action &a) {
    if (a.index >= graph_.node_count()) return "index";
    for (uint32_t k = 0; k < Bits::kCapacity; ++k) {
      if (!a.want.has(k)) continue;
      if (k >= slots(a.index)) return "mask";
      if (!live(a.index, k)) return "not live";
      if (is_keep({a.index, k})) return "keep given back";
    }
    for (uint32_t k = 0; k < slots(a.index); ++k)
      if (a.want.has(k)) items_.erase({a.index, k});
    return std::nullopt;
  }

  const Graph &graph_;  // must outlive this
  std::vector<Root> roots_;
  mutable std::map<uint32_t, bool> runs_;
  std::set<Name> items_;
  std::set<uint32_t> inputs_;
  std::map<uint32_t, size_t> grads_;
  uint32_t first_ = 0, done_ = 0;
  size_t peak_ = 0;
  double first_seconds_ = 0, again_seconds_ = 0, backward_seconds_ = 0;
};

}  // namespace plan_test
