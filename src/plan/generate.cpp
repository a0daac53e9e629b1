#include "plan/generate.h"

#include <algorithm>
#include <bit>

#include "plan/tighten.h"

namespace ckpt::plan {
namespace {

constexpr size_t kMaxActions = size_t{1} << 31;

// What running a stretch again keeps: `again`, or a policy's own choice for each value and node.
struct Keeping {
  Again again = Again::boundaries;
  const Policy *own = nullptr;

  static Keeping of(const Policy &policy) { return {policy.again, policy.again_value.empty() ? nullptr : &policy}; }
  bool halves() const { return own == nullptr && again == Again::halves; }
  bool any_passes() const { return own != nullptr || again == Again::nothing || again == Again::halves; }
  bool passes(uint32_t v) const { return own != nullptr ? !own->again_value[v] : any_passes(); }  // on its way through a stretch
  bool goes_after_backward(uint32_t v) const { return own != nullptr ? !own->again_value[v] : again == Again::nothing; }
  Bits slots(uint32_t node, const Shape &s) const {
    const Bits all = (s.needed() - s.again()) | s.backward_outputs();
    if (own != nullptr) return own->again_slots[node] & (all | s.slots()) & (s.all() - s.again());
    return again == Again::everything ? all : Bits{};
  }
};

// Writes actions and follows what they do to the live state.
class Writer {
 public:
  Writer(const Graph &graph, const LiveState &state) : graph_(graph), state_(state), mark_(graph.value_count(), 0) {
    for (uint32_t i = 0; i < state_.nodes_run; ++i)
      if (!(state_.live[i] & graph_.nodes[i].shape->again()).empty()) again_node_ = i;
  }

  Program &program() { return program_; }
  const LiveState &state() const { return state_; }
  bool full() const { return program_.actions.size() >= kMaxActions; }

  // Slots marked RECOMPUTE do not live across another node's action: whoever needs them makes them again.
  void leave_again_slots(uint32_t but = kNone) {
    if (again_node_ == kNone || again_node_ == but) return;
    const uint32_t node = again_node_;
    again_node_ = kNone;
    if (const Bits live = state_.live[node] & graph_.nodes[node].shape->again(); !live.empty()) drop(node, live);
  }

  void forward(uint32_t node, const Bits &want) {
    leave_again_slots(node);
    if (!(want & graph_.nodes[node].shape->again()).empty()) again_node_ = node;
    program_.actions.push_back({ActionKind::forward, node, want, {}});
    state_.live[node] |= want;
    state_.nodes_run = std::max(state_.nodes_run, node + 1);
  }

  void free_value(uint32_t v) {
    program_.actions.push_back({ActionKind::free, v, {}, {}});
    state_.live[graph_.values[v].producer].clear(graph_.values[v].item);
  }

  void drop(uint32_t node, const Bits &slots) {
    program_.actions.push_back({ActionKind::drop, node, slots, {}});
    state_.live[node] -= slots;
  }

  void backward(uint32_t node, const Bits &stay) {
    leave_again_slots(node);
    program_.actions.push_back({ActionKind::backward, node, stay, {}});
    state_.live[node] &= stay;
  }

  // May this boundary be dropped and made again?
  bool can_drop(uint32_t v) const {
    const Value &value = graph_.values[v];
    if (value.caller || value.producer == kNone) return false;
    for (auto [at, end] = graph_.holders.equal_range(v); at != end; ++at)
      if (state_.live[at->second].has(0)) return false;
    return !graph_.nodes[value.producer].shape->keep().has(value.item);
  }

  // Makes the missing ones of `targets`, and what they need, in the order of the nodes, each node once. What passes is gone
  // afterwards; Again::halves: but for a few. Appends the targets that were made to *made.
  Status make(std::span<const uint32_t> targets, const Keeping &keeping, std::vector<uint32_t> *made);

 private:
  Status collect(std::span<const uint32_t> targets);
  void find_dying(std::span<const uint32_t> targets, bool halves);

  const Graph &graph_;
  LiveState state_;
  uint32_t again_node_ = kNone;     // the one whose RECOMPUTE slots may be live
  Program program_;
  std::vector<uint32_t> mark_;      // per value: the epoch in which it was collected
  uint32_t epoch_ = 0;
  std::vector<uint32_t> nodes_, stack_;
  std::vector<std::vector<uint32_t>> dying_;  // per position: values whose last reader that run is
};

// The missing ancestors of the targets: nodes_ in ascending order.
Status Writer::collect(std::span<const uint32_t> targets) {
  ++epoch_;
  nodes_.clear();
  stack_.assign(targets.begin(), targets.end());
  while (!stack_.empty()) {
    const uint32_t v = stack_.back();
    stack_.pop_back();
    if (mark_[v] == epoch_ || state_.value_live(graph_, v)) continue;
    const Value &value = graph_.values[v];
    if (value.producer == kNone) return fail(CKPT_ERROR_INVALID_PLAN, "boundary %u is an input that was freed: it cannot be made again", v);
    const Node &n = graph_.nodes[value.producer];
    if (!n.shape->replayable())
      return fail(CKPT_ERROR_INVALID_PLAN, "boundary %u is gone, and segment '%s' (number %u) has no forward to run again", v, n.shape->name().c_str(), value.producer);
    mark_[v] = epoch_;
    nodes_.push_back(value.producer);
    for (uint32_t u : graph_.inputs_of(value.producer)) stack_.push_back(u);
  }
  if (std::is_sorted(nodes_.rbegin(), nodes_.rend())) std::reverse(nodes_.begin(), nodes_.end());
  else std::sort(nodes_.begin(), nodes_.end());
  nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
  return CKPT_OK;
}

// After which run is each value that is made here of no more use to this stretch?
void Writer::find_dying(std::span<const uint32_t> targets, bool halves) {
  const auto count = static_cast<uint32_t>(nodes_.size());
  dying_.resize(std::max<size_t>(dying_.size(), count));
  for (uint32_t at = 0; at < count; ++at) dying_[at].clear();
  for (uint32_t at = count; at-- > 0;)
    for (uint32_t u : graph_.inputs_of(nodes_[at])) {
      if (mark_[u] != epoch_ || std::find(targets.begin(), targets.end(), u) != targets.end()) continue;
      mark_[u] = 0;  // its last reader: earlier ones do not count
      dying_[at].push_back(u);
    }
  for (uint32_t at = 0; at < count; ++at) {
    for (uint32_t u : dying_[at]) mark_[u] = epoch_;
    if (!halves) continue;
    // What crosses a cut 1, 2, 4, ... runs before the last stays.
    std::erase_if(dying_[at], [&](uint32_t u) {
      const auto made_at = static_cast<uint32_t>(std::lower_bound(nodes_.begin(), nodes_.end(), graph_.values[u].producer) - nodes_.begin());
      return std::bit_floor(count - 1 - made_at) > count - 1 - at;
    });
  }
}

Status Writer::make(std::span<const uint32_t> targets, const Keeping &keeping, std::vector<uint32_t> *made) {
  CKPT_TRY(collect(targets));
  if (nodes_.empty()) return CKPT_OK;
  for (uint32_t v : targets)
    if (mark_[v] == epoch_ && std::find(made->begin(), made->end(), v) == made->end()) made->push_back(v);
  if (program_.actions.size() + 2 * nodes_.size() > kMaxActions) return fail(CKPT_ERROR_OVERFLOW, "a program of more than 2^31 actions");
  const bool passing = keeping.any_passes();
  if (passing) find_dying(targets, keeping.halves());
  for (uint32_t at = 0; at < nodes_.size(); ++at) {
    const uint32_t node = nodes_[at];
    const Shape &s = *graph_.nodes[node].shape;
    Bits want;
    for (uint32_t k = 0; k < s.output_count(); ++k)
      if (mark_[graph_.nodes[node].first_value + k] == epoch_) want.set(s.slot_count() + k);
    forward(node, want | keeping.slots(node, s));
    if (keeping.own != nullptr)
      if (const Bits once = state_.live[node] & keeping.own->once_slots[node] & (s.slots() - s.keep()); !once.empty()) drop(node, once);
    if (!passing) continue;
    for (uint32_t u : dying_[at])
      if (keeping.passes(u) && can_drop(u)) free_value(u);
  }
  return CKPT_OK;
}

// Position after which no node reads the value in the forward pass; kNone: none reads it.
std::vector<uint32_t> last_readers(const Graph &graph) {
  std::vector<uint32_t> last(graph.value_count(), kNone);
  for (uint32_t i = 0; i < graph.node_count(); ++i)
    for (uint32_t v : graph.inputs_of(i)) last[v] = i;
  return last;
}

// Values that pass: from their producer, and from each reader, to the next one.
class Passing {
 public:
  Passing(const Graph &graph, const Policy &policy) : graph_(graph), policy_(policy), readers_(policy.pass_value.empty() ? 0 : graph.value_count()) {
    if (readers_.empty()) return;
    for (uint32_t i = 0; i < graph.node_count(); ++i)
      for (uint32_t v : graph.inputs_of(i))
        if (policy.pass_value[v] && (readers_[v].empty() || readers_[v].back() != i)) readers_[v].push_back(i);
  }
  // Before node i: what it reads is made again.
  Status bring(uint32_t i, Writer *w) {
    if (readers_.empty()) return CKPT_OK;
    made_.clear();
    return w->make(graph_.inputs_of(i), {Again::nothing, nullptr}, &made_);
  }
  // After node i: what nobody reads in the next node goes.
  void give_back(uint32_t i, Writer *w) {
    if (readers_.empty()) return;
    const Node &n = graph_.nodes[i];
    for (uint32_t k = 0; k < n.shape->output_count(); ++k) give(n.first_value + k, i, w);
    for (uint32_t v : graph_.inputs_of(i)) give(v, i, w);
    if (i == 0) return;
    for (uint32_t v : graph_.inputs_of(i - 1)) give(v, i, w);
    const Node &before = graph_.nodes[i - 1];
    for (uint32_t k = 0; k < before.shape->output_count(); ++k) give(before.first_value + k, i, w);
  }

 private:
  void give(uint32_t v, uint32_t i, Writer *w) {
    if (!policy_.pass_value[v] || graph_.values[v].read_at_end || !w->can_drop(v) || !w->state().value_live(graph_, v)) return;
    const auto next = std::upper_bound(readers_[v].begin(), readers_[v].end(), i);
    if (next != readers_[v].end() && *next > i + 1) w->free_value(v);
  }

  const Graph &graph_;
  const Policy &policy_;
  std::vector<std::vector<uint32_t>> readers_;  // per value that passes
  std::vector<uint32_t> made_;
};

Status write_forward(const Graph &graph, const Policy &policy, Writer *w) {
  const std::vector<uint32_t> last = last_readers(graph);
  Passing passing(graph, policy);
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    const Bits keep = (policy.keep_slots[i] - s.again()) | (s.keep() & s.slots());
    CKPT_TRY(passing.bring(i, w));
    w->forward(i, keep | s.outputs());
    passing.give_back(i, w);
    for (uint32_t k = 0; !policy.again_value.empty() && k < s.output_count(); ++k) {
      const uint32_t v = graph.nodes[i].first_value + k;
      if (last[v] == kNone && !policy.keep_value[v] && !graph.values[v].read_at_end && w->can_drop(v)) w->free_value(v);
    }
    for (uint32_t v : graph.inputs_of(i))
      if (last[v] == i && !policy.keep_value[v] && !graph.values[v].read_at_end && w->can_drop(v) && w->state().value_live(graph, v)) w->free_value(v);
    if (w->full()) return fail(CKPT_ERROR_OVERFLOW, "a program of more than 2^31 actions");
  }
  return CKPT_OK;
}

Status write_backwards(const Graph &graph, const GradientMap &gradients, const Keeping &keeping, std::span<const Bits> retain, Writer *w) {
  std::vector<uint32_t> targets, made;
  for (uint32_t i = graph.node_count(); i-- > 0;) {
    made.clear();
    targets.clear();
    const Shape &s = *graph.nodes[i].shape;
    if (gradients.runs[i]) {
      const auto inputs = graph.inputs_of(i);
      for (uint32_t k = 0; k < s.input_count(); ++k)  // others run first: slots of this one that are marked RECOMPUTE go
        if (s.backward_reads_input(k) && !w->state().value_live(graph, inputs[k])) w->leave_again_slots();
      const Bits missing = (s.needed() | s.backward_outputs()) - w->state().live[i];
      for (uint32_t k = 0; k < s.input_count(); ++k)
        if (!missing.empty() || s.backward_reads_input(k)) targets.push_back(inputs[k]);
      if (!missing.empty() && !s.replayable())
        return fail(CKPT_ERROR_INVALID_PLAN, "segment '%s' (number %u) has no forward to run again, and what its backward reads is gone", s.name().c_str(), i);
      CKPT_TRY(w->make(targets, keeping, &made));
      if (!missing.empty()) w->forward(i, missing);
    }
    w->backward(i, retain.empty() ? Bits{} : retain[i]);
    for (uint32_t v : keeping.own != nullptr ? targets : made)
      if (keeping.goes_after_backward(v) && w->can_drop(v) && w->state().value_live(graph, v)) w->free_value(v);
    if (w->full()) return fail(CKPT_ERROR_OVERFLOW, "a program of more than 2^31 actions");
  }
  return CKPT_OK;
}

}  // namespace

Result<Program> write_step(const Graph &graph, const GradientMap &gradients, const Policy &policy) {
  const LiveState start = LiveState::start(graph);
  Writer w(graph, start);
  if (const Status bad = write_forward(graph, policy, &w); bad) return Result<Program>::failed(bad);
  if (const Status bad = write_backwards(graph, gradients, Keeping::of(policy), {}, &w); bad) return Result<Program>::failed(bad);
  tighten(graph, gradients, start, {}, &w.program());
  return std::move(w.program());
}

Result<Program> write_backward(const Graph &graph, const GradientMap &gradients, const LiveState &state, Again again, std::span<const Bits> retain) {
  Writer w(graph, state);
  if (const Status bad = write_backwards(graph, gradients, {again, nullptr}, retain, &w); bad) return Result<Program>::failed(bad);
  tighten(graph, gradients, state, retain, &w.program());
  return std::move(w.program());
}

Result<Program> write_make(const Graph &graph, const LiveState &state, uint32_t value) {
  Writer w(graph, state);
  std::vector<uint32_t> made;
  const uint32_t targets[] = {value};
  if (const Status bad = w.make(targets, {Again::nothing, nullptr}, &made); bad) return Result<Program>::failed(bad);
  return std::move(w.program());
}

uint64_t runs_from_inputs(const Graph &graph) {
  std::vector<uint64_t> before(graph.node_count(), 0);  // runs before a node, at most
  uint64_t sum = 0;
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    for (uint32_t v : graph.inputs_of(i))
      if (const uint32_t p = graph.values[v].producer; p != kNone) before[i] = std::min<uint64_t>(i, before[i] + before[p] + 1);
    sum += before[i];
  }
  return sum;
}

}  // namespace ckpt::plan
