// The least seconds of any program within a budget of live load, and the least peak of any program: shortest paths over all
// states of the machine. For small graphs: up to 14 items and inputs.
#pragma once

#include <bit>
#include <limits>
#include <queue>

#include "plan_reference.h"

namespace plan_test {

class Brute {
 public:
  static constexpr uint32_t kMaxBits = 14;

  static bool can(const Graph &graph) { return graph.item_bytes.size() + graph.inputs.size() <= kMaxBits; }

  Brute(const Graph &graph, const std::vector<Root> &roots) : graph_(graph), ref_(graph, roots) {
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const Shape &s = *graph.nodes[i].shape;
      at_.push_back(static_cast<uint32_t>(bytes_.size()));
      for (uint32_t k = 0; k < s.item_count(); ++k) {
        const bool caller = s.item(k).caller_memory && k >= s.slot_count();
        bytes_.push_back(caller ? 0 : graph.rule.footprint(graph.bytes_of(i, k)));
        stays_.push_back(caller || ref_.is_keep({i, k}));
        again_.push_back(ref_.is_again({i, k}) ? i : kNone);
      }
    }
    items_ = static_cast<uint32_t>(bytes_.size());
    for (uint32_t v : graph.inputs) {
      bytes_.push_back(graph.values[v].caller ? 0 : graph.rule.footprint(graph.values[v].bytes));
      stays_.push_back(graph.values[v].caller);
      again_.push_back(kNone);
    }
    load_.resize(size_t{1} << bytes_.size());
    for (size_t live = 1; live < load_.size(); ++live) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(live));
      load_[live] = load_[live & (live - 1)] + bytes_[bit];
    }
    find_gradients();
    find_forwards();
  }

  // Nothing: no program stays within the budget.
  std::optional<double> least_seconds(size_t budget) const {
    return search([&](double so_far, double seconds, size_t load) { return load > budget ? -1 : so_far + seconds; });
  }
  size_t least_peak() const {
    const auto peak = search([](double so_far, double, size_t load) { return std::max(so_far, static_cast<double>(load)); });
    EXPECT_TRUE(peak.has_value());
    return static_cast<size_t>(peak.value_or(0));
  }

 private:
  struct Forward {
    uint32_t want, over = 0;         // bits of this node; bits of all, that outputs take over
    size_t bytes = 0;                // beyond what is live
    double seconds = 0;
    bool first_only = false;         // makes what may be made once only
  };

  uint32_t count(uint32_t node) const { return graph_.nodes[node].shape->item_count(); }
  uint32_t local(uint32_t live, uint32_t node) const { return (live >> at_[node]) & ((1u << count(node)) - 1); }
  uint32_t bit_of(uint32_t value) const {
    const Value &v = graph_.values[value];
    return v.producer == kNone ? items_ + v.item : at_[v.producer] + v.item;
  }
  uint32_t start() const { return ((1u << graph_.inputs.size()) - 1) << items_; }

  // By the naive machine, which keeps everything meanwhile: gradients do not depend on what else is live.
  void find_gradients() {
    const uint32_t n = graph_.node_count();
    Reference all = ref_.fork();
    const auto grads = [&] {
      size_t sum = 0;
      for (const auto &[v, bytes] : all.grads()) sum += bytes;
      return sum;
    };
    grad_load_.resize(n + 1);
    grad_more_.resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      const Shape &s = *graph_.nodes[i].shape;
      EXPECT_EQ(all.act({ActionKind::forward, i, s.all(), {}}), std::nullopt);
      Bits again;
      for (uint32_t k = 0; k < s.slot_count(); ++k)
        if (ref_.is_again({i, k})) again.set(k);
      EXPECT_EQ(all.act({ActionKind::drop, i, again, {}}), std::nullopt);
    }
    for (uint32_t i = n; i-- > 0;) {
      const Shape &s = *graph_.nodes[i].shape;
      grad_load_[i + 1] = grads();
      std::map<uint32_t, size_t> fresh;
      if (all.runs(i)) {
        const size_t scratch = s.backward_scratch();
        grad_more_[i] = all.fresh_gradients(i, &fresh) + (scratch == 0 ? 0 : graph_.rule.footprint(scratch));
        if (s.replayable()) {
          EXPECT_EQ(all.act({ActionKind::forward, i, s.slots(), {}}), std::nullopt);
        }
      }
      EXPECT_EQ(all.act({ActionKind::backward, i, {}, {}}), std::nullopt);
    }
    grad_load_[0] = grads();
  }

  // Per node and live items of it: all forwards that are worth a step.
  void find_forwards() {
    forwards_.resize(graph_.node_count());
    for (uint32_t i = 0; i < graph_.node_count(); ++i) {
      const Shape &s = *graph_.nodes[i].shape;
      forwards_[i].resize(size_t{1} << count(i));
      for (uint32_t live = 0; live < forwards_[i].size(); ++live)
        for (uint32_t want = 0; want < forwards_[i].size(); ++want) {
          if (want & live) continue;  // asks for what is there
          std::set<uint32_t> names;
          for (uint32_t k = 0; k < count(i); ++k)
            if (want >> k & 1) names.insert(k);
          const Made m = ref_.made(i, names, [&](uint32_t k) { return (live >> k & 1) != 0; });
          Forward f;
          f.want = want;
          f.seconds = ref_.seconds_of(i, m);
          f.bytes = m.items.empty() || s.forward_scratch() == 0 ? 0 : graph_.rule.footprint(s.forward_scratch());
          for (uint32_t k : m.items) {
            if (!(live >> k & 1)) f.bytes += bytes_[at_[i] + k];
            if (ref_.is_keep({i, k}) || !s.replayable()) f.first_only = true;
          }
          with_places(i, f, s.slot_count(), &forwards_[i][live]);
        }
    }
  }
  // With outputs over inputs, in every way.
  void with_places(uint32_t i, const Forward &f, uint32_t k, std::vector<Forward> *list) {
    const Shape &s = *graph_.nodes[i].shape;
    if (k == s.item_count()) {
      list->push_back(f);
      return;
    }
    with_places(i, f, k + 1, list);
    if (!(f.want >> k & 1) || s.item(k).in_place_input == 0) return;
    const uint32_t v = graph_.inputs_of(i)[s.item(k).in_place_input - 1], bit = bit_of(v);
    uint32_t uses = 0;
    for (uint32_t u : graph_.inputs_of(i)) uses += u == v;
    if (uses != 1 || stays_[bit] || (f.over >> bit & 1) || bytes_[bit] != bytes_[at_[i] + k]) return;
    Forward placed = f;
    placed.over |= 1u << bit;
    placed.bytes -= bytes_[at_[i] + k];
    with_places(i, placed, k + 1, list);
  }

  // Per state: which first runs and backwards are over, then what is live.
  uint32_t state_of(uint32_t phase, uint32_t live) const { return phase << bytes_.size() | live; }
  uint32_t inputs_of(uint32_t node, bool backward) const {
    const Shape &s = *graph_.nodes[node].shape;
    uint32_t bits = 0;
    for (uint32_t k = 0; k < s.input_count(); ++k)
      if (!backward || !(s.input_flags(k) & CKPT_INPUT_BACKWARD_IGNORES)) bits |= 1u << bit_of(graph_.inputs_of(node)[k]);
    return bits;
  }
  // Slots marked RECOMPUTE of other nodes.
  uint32_t again_but(uint32_t node) const {
    uint32_t bits = 0;
    for (uint32_t k = 0; k < items_; ++k)
      if (again_[k] != kNone && again_[k] != node) bits |= 1u << k;
    return bits;
  }
  struct NodeBits {
    uint32_t inputs = 0, backward_inputs = 0, again_elsewhere = 0, read = 0, all = 0, outputs = 0, keep = 0;
  };
  std::vector<NodeBits> node_bits() const {
    std::vector<NodeBits> all;
    for (uint32_t i = 0; i < graph_.node_count(); ++i) {
      NodeBits b;
      b.inputs = inputs_of(i, false);
      b.backward_inputs = inputs_of(i, true);
      b.again_elsewhere = again_but(i);
      for (uint32_t k = 0; k < count(i); ++k) {
        b.all |= 1u << (at_[i] + k);
        if (ref_.is_read({i, k})) b.read |= 1u << (at_[i] + k);
        if (k >= graph_.nodes[i].shape->slot_count()) b.outputs |= 1u << k;
        if (ref_.is_keep({i, k})) b.keep |= 1u << k;
      }
      all.push_back(b);
    }
    return all;
  }

  // `cost`: so far, seconds of the step, load during it; negative: not allowed. Costs never fall along a way.
  template <class Cost>
  std::optional<double> search(Cost &&cost) const {
    const uint32_t n = graph_.node_count(), last_phase = 2 * n;
    const std::vector<NodeBits> nodes = node_bits();
    uint32_t read_at_end = 0;
    for (uint32_t v = 0; v < graph_.value_count(); ++v)
      if (graph_.values[v].read_at_end) read_at_end |= 1u << bit_of(v);
    std::vector<double> best(size_t{last_phase + 1} << bytes_.size(), std::numeric_limits<double>::infinity());
    using Entry = std::pair<double, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto reach = [&](double so_far, double seconds, size_t load, uint32_t phase, uint32_t live) {
      const double c = cost(so_far, seconds, load);
      const uint32_t state = state_of(phase, live);
      if (c < 0 || c >= best[state]) return;
      best[state] = c;
      queue.push({c, state});
    };
    reach(0, 0, load_[start()] + grad_load_[n], 0, start());
    while (!queue.empty()) {
      const auto [c, state] = queue.top();
      queue.pop();
      if (c > best[state]) continue;
      const uint32_t phase = state >> bytes_.size(), live = state & ((1u << bytes_.size()) - 1);
      if (phase == last_phase) return c;
      const uint32_t first = std::min(phase, n), done = phase <= n ? n : last_phase - phase;
      const size_t load = load_[live] + grad_load_[done];
      for (uint32_t rest = live; rest != 0; rest &= rest - 1)
        if (const auto bit = static_cast<uint32_t>(std::countr_zero(rest)); !stays_[bit]) reach(c, 0, load, phase, live & ~(1u << bit));
      for (uint32_t i = 0; i < std::min(first + 1, done); ++i) {
        const NodeBits &b = nodes[i];
        if ((b.inputs & ~live) || (b.again_elsewhere & live)) continue;
        for (const Forward &f : forwards_[i][local(live, i)]) {
          if (i == first && ((b.outputs | b.keep) & ~f.want)) continue;
          if (i != first && f.first_only) continue;
          const uint32_t after = (live & ~f.over) | f.want << at_[i];
          if (i == first && first + 1 == n && (read_at_end & ~after)) continue;
          reach(c, f.seconds, load + f.bytes, i == first ? phase + 1 : phase, after);
        }
      }
      if (first < n) continue;
      const NodeBits &b = nodes[done - 1];
      const bool runs = ref_.runs(done - 1);
      if ((b.again_elsewhere & live) || (runs && ((b.read | b.backward_inputs) & ~live))) continue;
      reach(c, runs ? graph_.nodes[done - 1].backward_seconds : 0, load + grad_more_[done - 1], phase + 1, live & ~b.all);
    }
    return std::nullopt;
  }

  const Graph &graph_;
  Reference ref_;
  std::vector<uint32_t> at_;      // per node: bit of item 0
  std::vector<size_t> bytes_;     // per bit
  std::vector<uint8_t> stays_;    // per bit: may not be given back
  std::vector<uint32_t> again_;   // per bit: its node, if it is a RECOMPUTE slot
  uint32_t items_ = 0;
  std::vector<size_t> load_;      // per set of live bits
  std::vector<size_t> grad_load_; // per number of backwards that are left
  std::vector<size_t> grad_more_; // per node: during its backward
  std::vector<std::vector<std::vector<Forward>>> forwards_;  // per node and live items of it
};

}  // namespace plan_test
