#include "plan/exact/least.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace ckpt::plan::exact {
namespace {

constexpr uint32_t kMostBits = 14, kMostItems = 8;  // of all, and of a segment
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// A state: how many first runs and then backwards are over (the phase), and what is live: a bit an item, then a bit an input.
class AllStates {
 public:
  AllStates(const Graph &graph, const GradientMap &gradients) : graph_(graph), gradients_(gradients), n_(graph.node_count()), items_(static_cast<uint32_t>(graph.item_bytes.size())) {
    bits_ = items_ + static_cast<uint32_t>(graph.inputs.size());
    find_bytes();
    find_gradients();
    for (uint32_t i = 0; i < n_; ++i) describe(i);
    for (uint32_t v = 0; v < graph.value_count(); ++v)
      if (graph.values[v].read_at_end) read_at_end_ |= bit_of(v);
  }

  Program run() {
    const uint64_t least = search([](uint64_t so_far, size_t load, bool) { return std::max<uint64_t>(so_far, load); });
    if (least == kNever) return {};
    // Of the programs that take no more, one that runs the fewest forwards.
    if (search([&](uint64_t so_far, size_t load, bool forward) { return load > least ? kNever : so_far + forward; }) == kNever) return {};
    return program();
  }

 private:
  struct Forward {
    uint32_t want = 0;  // local
    size_t bytes = 0;   // beyond what is live
    bool once = false;  // makes what is made in the first run only
  };
  struct NodeBits {
    uint32_t inputs = 0, read = 0, all = 0, again = 0;  // of all; read: by its backward, from anywhere
    uint32_t first = 0;                                 // local: what a first run must leave
    std::vector<std::vector<Forward>> forwards;         // per local live items
  };

  uint32_t bit_of(uint32_t value) const {
    const Value &v = graph_.values[value];
    return uint32_t{1} << (v.producer == kNone ? items_ + v.item : graph_.nodes[v.producer].first_item + v.item);
  }
  static uint32_t low_bits(const Bits &items) { return static_cast<uint32_t>(items.word(0)); }
  uint32_t local(uint32_t live, uint32_t node) const { return (live & nodes_[node].all) >> graph_.nodes[node].first_item; }
  uint32_t start() const { return ((uint32_t{1} << graph_.inputs.size()) - 1) << items_; }

  void find_bytes() {
    std::vector<size_t> bytes(bits_);
    for (uint32_t i = 0; i < n_; ++i) {
      const Shape &s = *graph_.nodes[i].shape;
      for (uint32_t k = 0; k < s.item_count(); ++k) {
        const uint32_t at = graph_.nodes[i].first_item + k;
        bytes[at] = s.caller().has(k) ? 0 : graph_.item_footprint(i, k);
        if (s.caller().has(k) || s.keep().has(k)) stays_ |= uint32_t{1} << at;
      }
    }
    for (uint32_t k = 0; k < graph_.inputs.size(); ++k) {
      const Value &v = graph_.values[graph_.inputs[k]];
      bytes[items_ + k] = v.caller ? 0 : graph_.rule.footprint(v.bytes);
      if (v.caller) stays_ |= uint32_t{1} << (items_ + k);
    }
    load_.resize(size_t{1} << bits_);
    for (size_t live = 1; live < load_.size(); ++live) load_[live] = load_[live & (live - 1)] + bytes[static_cast<uint32_t>(std::countr_zero(live))];
  }

  // Gradients do not depend on what else is live. A block that is passed on (GradMode::over) belongs to the later name.
  void find_gradients() {
    std::vector<size_t> held(graph_.value_count());
    size_t sum = 0;
    const auto take = [&](uint32_t v, size_t bytes) { sum += held[v] = graph_.rule.footprint(bytes); };
    if (graph_.root_grads_in_arena)
      for (const Root &r : gradients_.roots)
        if (r.has_grad) take(r.value, graph_.values[r.value].grad_bytes);
    grad_load_.assign(n_ + 1, 0);
    grad_more_.assign(n_, 0);
    grad_load_[n_] = sum;
    for (uint32_t i = n_; i-- > 0;) {
      const Node &node = graph_.nodes[i];
      const size_t before = sum;
      for (uint32_t k = 0; k < node.shape->input_count() && gradients_.runs[i]; ++k) {
        const uint32_t v = graph_.node_inputs[node.first_input + k];
        const GradMode mode = gradients_.mode[node.first_input + k];
        if (mode == GradMode::over) held[v] = std::exchange(held[node.first_value], 0);
        else if (mode != GradMode::none && graph_.values[v].grad == CKPT_GRAD_ARENA && held[v] == 0) take(v, graph_.values[v].grad_bytes);
      }
      if (gradients_.runs[i]) grad_more_[i] = sum - before + (node.shape->backward_scratch() == 0 ? 0 : graph_.rule.footprint(node.shape->backward_scratch()));
      for (uint32_t k = 0; k < node.shape->output_count(); ++k) sum -= std::exchange(held[node.first_value + k], 0);
      grad_load_[i] = sum;
    }
  }

  void describe(uint32_t i) {
    const Shape &s = *graph_.nodes[i].shape;
    const uint32_t at = graph_.nodes[i].first_item;
    NodeBits b;
    b.all = low_bits(s.all()) << at;
    b.again = low_bits(s.again()) << at;
    b.first = low_bits(s.outputs() | s.keep());
    b.read = gradients_.runs[i] ? low_bits(s.needed() | s.backward_outputs()) << at : 0;
    const auto inputs = graph_.inputs_of(i);
    for (uint32_t k = 0; k < inputs.size(); ++k) {
      b.inputs |= bit_of(inputs[k]);
      if (gradients_.runs[i] && s.backward_reads_input(k)) b.read |= bit_of(inputs[k]);
    }
    const uint32_t count = uint32_t{1} << s.item_count();
    b.forwards.resize(count);
    for (uint32_t live = 0; live < count; ++live)
      for (uint32_t want = 0; want < count; ++want)
        if ((want & live) == 0) b.forwards[live].push_back(forward(i, want, live));
    nodes_.push_back(std::move(b));
  }

  Forward forward(uint32_t i, uint32_t want, uint32_t live) const {
    const Shape &s = *graph_.nodes[i].shape;
    Bits wanted, there;
    wanted.set_word(0, want);
    there.set_word(0, live);
    const Bits made = s.closure(wanted, there).todo;
    Forward f;
    f.want = want;
    f.bytes = load_[low_bits(made - there) << graph_.nodes[i].first_item];
    if (!made.empty() && s.forward_scratch() != 0) f.bytes += graph_.rule.footprint(s.forward_scratch());
    f.once = want == 0 || !s.replayable() || !(made & s.keep()).empty();
    return f;
  }

  // `cost` of a way with one more action: of its cost so far, the load during the action, whether it is a forward. Never less than
  // before; kNever: not that way. The cost of the cheapest program.
  template <class Cost>
  uint64_t search(Cost &&cost) {
    using Entry = std::pair<uint64_t, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    best_.assign(size_t{2 * n_ + 1} << bits_, kNever);
    from_.assign(best_.size(), 0);
    uint32_t state = start();
    const auto reach = [&](size_t load, bool forward, uint32_t phase, uint32_t live) {
      const uint32_t to = phase << bits_ | live;
      const uint64_t c = cost(best_[state], load, forward);
      if (c >= best_[to]) return;
      best_[to] = c;
      from_[to] = state;
      queue.push({c, to});
    };
    best_[state] = cost(0, load_[state] + grad_load_[n_], false);
    if (best_[state] == kNever) return kNever;
    queue.push({best_[state], state});
    while (!queue.empty()) {
      const auto [c, at] = queue.top();
      queue.pop();
      if (c > best_[at]) continue;
      state = at;
      if (at >> bits_ == 2 * n_) {
        last_ = at;
        return c;
      }
      expand(at >> bits_, at & ((uint32_t{1} << bits_) - 1), reach);
    }
    return kNever;
  }

  template <class Reach>
  void expand(uint32_t phase, uint32_t live, Reach &&reach) const {
    const uint32_t first = std::min(phase, n_), done = phase <= n_ ? n_ : 2 * n_ - phase;
    const size_t load = load_[live] + grad_load_[done];
    for (uint32_t rest = live & ~stays_; rest != 0; rest &= rest - 1) reach(load, false, phase, live & ~(rest & -rest));
    uint32_t again = 0;
    for (const NodeBits &b : nodes_) again |= b.again & live;
    for (uint32_t i = 0; i < std::min(first + 1, done); ++i) {
      const NodeBits &b = nodes_[i];
      if ((b.inputs & ~live) != 0 || (again & ~b.again) != 0) continue;
      const bool once = i == first;
      for (const Forward &f : b.forwards[local(live, i)]) {
        if (once ? (b.first & ~f.want) != 0 : f.once) continue;
        const uint32_t after = live | f.want << graph_.nodes[i].first_item;
        if (once && first + 1 == n_ && (read_at_end_ & ~after) != 0) continue;
        reach(load + f.bytes, true, once ? phase + 1 : phase, after);
      }
    }
    if (phase < n_) return;
    const NodeBits &b = nodes_[done - 1];
    if ((b.read & ~live) == 0 && (again & ~b.again) == 0) reach(load + grad_more_[done - 1], false, phase + 1, live & ~b.all);
  }

  // The way that the latest search found, by what changes from state to state.
  Program program() const {
    Program out;
    for (uint32_t to = last_; to != start(); to = from_[to]) out.actions.push_back(action(from_[to], to));
    std::reverse(out.actions.begin(), out.actions.end());
    return out;
  }

  Action action(uint32_t from, uint32_t to) const {
    const uint32_t phase = from >> bits_, before = from & ((uint32_t{1} << bits_) - 1), after = to & ((uint32_t{1} << bits_) - 1);
    const uint32_t changed = static_cast<uint32_t>(std::countr_zero(before ^ after));
    Action a;
    if (to >> bits_ != phase && phase >= n_) {
      a.kind = ActionKind::backward;
      a.index = 2 * n_ - 1 - phase;
    } else if (to >> bits_ != phase || (after & ~before) != 0) {
      a.index = to >> bits_ != phase ? phase : node_of(changed);
      a.want.set_word(0, local(after & ~before, a.index));
    } else if (changed >= items_) {
      a.kind = ActionKind::free;
      a.index = graph_.inputs[changed - items_];
    } else {
      const uint32_t node = node_of(changed), item = changed - graph_.nodes[node].first_item;
      const bool slot = item < graph_.nodes[node].shape->slot_count();
      a.kind = slot ? ActionKind::drop : ActionKind::free;
      a.index = slot ? node : graph_.value_of(node, item);
      if (slot) a.want.set(item);
    }
    return a;
  }
  uint32_t node_of(uint32_t item) const {
    uint32_t node = 0;
    while (node + 1 < n_ && graph_.nodes[node + 1].first_item <= item) ++node;
    return node;
  }

  const Graph &graph_;
  const GradientMap &gradients_;
  const uint32_t n_, items_;
  uint32_t bits_ = 0, stays_ = 0, read_at_end_ = 0, last_ = 0;
  std::vector<size_t> load_;       // per set of live bits
  std::vector<size_t> grad_load_;  // per number of backwards that are left
  std::vector<size_t> grad_more_;  // per node: during its backward
  std::vector<NodeBits> nodes_;
  std::vector<uint64_t> best_;     // per state
  std::vector<uint32_t> from_;
};

}  // namespace

Program least_of_all(const Graph &graph, const GradientMap &gradients) {
  if (graph.item_bytes.size() + graph.inputs.size() > kMostBits || !graph.holders.empty()) return {};
  for (const Node &n : graph.nodes)
    if (n.shape->item_count() > kMostItems) return {};
  return AllStates(graph, gradients).run();
}

}  // namespace ckpt::plan::exact
