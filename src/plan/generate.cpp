#include "plan/generate.h"

#include <algorithm>
#include <bit>

#include "plan/tighten.h"

namespace ckpt::plan {
namespace {

constexpr size_t kMaxActions = size_t{1} << 31;

// Writes actions and follows what they do to the live state.
class Writer {
 public:
  Writer(const Graph &graph, const LiveState &state) : graph_(graph), state_(state), mark_(graph.value_count(), 0) {}

  Program &program() { return program_; }
  const LiveState &state() const { return state_; }
  bool full() const { return program_.actions.size() >= kMaxActions; }

  void forward(uint32_t node, const Bits &want) {
    program_.actions.push_back({ActionKind::forward, node, want, {}});
    state_.live[node] |= want;
    state_.nodes_run = std::max(state_.nodes_run, node + 1);
  }

  void free_value(uint32_t v) {
    program_.actions.push_back({ActionKind::free, v, {}, {}});
    state_.live[graph_.values[v].producer].clear(graph_.values[v].item);
  }

  void backward(uint32_t node, const Bits &stay) {
    program_.actions.push_back({ActionKind::backward, node, stay, {}});
    state_.live[node] &= stay;
  }

  // May this boundary be dropped and made again?
  bool can_drop(uint32_t v) const {
    const Value &value = graph_.values[v];
    if (value.caller || value.producer == kNone) return false;
    return !graph_.nodes[value.producer].shape->keep().has(value.item);
  }

  // Makes the missing ones of `targets`, and what they need, in the order of the nodes, each node once. Again::nothing:
  // what was made on the way is gone afterwards; Again::halves: but for a few. Appends the targets that were made to *made.
  Status make(std::span<const uint32_t> targets, Again again, std::vector<uint32_t> *made);

 private:
  Status collect(std::span<const uint32_t> targets);
  void find_dying(std::span<const uint32_t> targets, Again again);

  const Graph &graph_;
  LiveState state_;
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
void Writer::find_dying(std::span<const uint32_t> targets, Again again) {
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
    if (again != Again::halves) continue;
    // What crosses a cut 1, 2, 4, ... runs before the last stays.
    std::erase_if(dying_[at], [&](uint32_t u) {
      const auto made_at = static_cast<uint32_t>(std::lower_bound(nodes_.begin(), nodes_.end(), graph_.values[u].producer) - nodes_.begin());
      return std::bit_floor(count - 1 - made_at) > count - 1 - at;
    });
  }
}

Status Writer::make(std::span<const uint32_t> targets, Again again, std::vector<uint32_t> *made) {
  CKPT_TRY(collect(targets));
  if (nodes_.empty()) return CKPT_OK;
  for (uint32_t v : targets)
    if (mark_[v] == epoch_ && std::find(made->begin(), made->end(), v) == made->end()) made->push_back(v);
  if (program_.actions.size() + 2 * nodes_.size() > kMaxActions) return fail(CKPT_ERROR_OVERFLOW, "a program of more than 2^31 actions");
  const bool passing = again == Again::nothing || again == Again::halves;
  if (passing) find_dying(targets, again);
  for (uint32_t at = 0; at < nodes_.size(); ++at) {
    const uint32_t node = nodes_[at];
    const Shape &s = *graph_.nodes[node].shape;
    Bits want;
    for (uint32_t k = 0; k < s.output_count(); ++k)
      if (mark_[graph_.nodes[node].first_value + k] == epoch_) want.set(s.slot_count() + k);
    if (again == Again::everything) want |= (s.needed() - s.again()) | s.backward_outputs();
    forward(node, want);
    if (!passing) continue;
    for (uint32_t u : dying_[at])
      if (can_drop(u)) free_value(u);
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

Status write_forward(const Graph &graph, const Policy &policy, Writer *w) {
  const std::vector<uint32_t> last = last_readers(graph);
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    const Bits keep = (policy.keep_slots[i] - s.again()) | (s.keep() & s.slots());
    w->forward(i, keep | s.outputs());
    for (uint32_t v : graph.inputs_of(i))
      if (last[v] == i && !policy.keep_value[v] && !graph.values[v].read_at_end && w->can_drop(v) && w->state().value_live(graph, v)) w->free_value(v);
    if (w->full()) return fail(CKPT_ERROR_OVERFLOW, "a program of more than 2^31 actions");
  }
  return CKPT_OK;
}

Status write_backwards(const Graph &graph, const GradientMap &gradients, Again again, std::span<const Bits> retain, Writer *w) {
  std::vector<uint32_t> targets, made;
  for (uint32_t i = graph.node_count(); i-- > 0;) {
    made.clear();
    const Shape &s = *graph.nodes[i].shape;
    if (gradients.runs[i]) {
      const Bits missing = (s.needed() | s.backward_outputs()) - w->state().live[i];
      const auto inputs = graph.inputs_of(i);
      targets.clear();
      for (uint32_t k = 0; k < s.input_count(); ++k)
        if (!missing.empty() || s.backward_reads_input(k)) targets.push_back(inputs[k]);
      if (!missing.empty() && !s.replayable())
        return fail(CKPT_ERROR_INVALID_PLAN, "segment '%s' (number %u) has no forward to run again, and what its backward reads is gone", s.name().c_str(), i);
      CKPT_TRY(w->make(targets, again, &made));
      if (!missing.empty()) w->forward(i, missing);
    }
    w->backward(i, retain.empty() ? Bits{} : retain[i]);
    if (again == Again::nothing)
      for (uint32_t v : made)
        if (w->can_drop(v) && w->state().value_live(graph, v)) w->free_value(v);
    if (w->full()) return fail(CKPT_ERROR_OVERFLOW, "a program of more than 2^31 actions");
  }
  return CKPT_OK;
}

}  // namespace

Result<Program> write_step(const Graph &graph, const GradientMap &gradients, const Policy &policy) {
  const LiveState start = LiveState::start(graph);
  Writer w(graph, start);
  if (const Status bad = write_forward(graph, policy, &w); bad) return Result<Program>::failed(bad);
  if (const Status bad = write_backwards(graph, gradients, policy.again, {}, &w); bad) return Result<Program>::failed(bad);
  tighten(graph, gradients, start, {}, &w.program());
  return std::move(w.program());
}

Result<Program> write_backward(const Graph &graph, const GradientMap &gradients, const LiveState &state, Again again, std::span<const Bits> retain) {
  Writer w(graph, state);
  if (const Status bad = write_backwards(graph, gradients, again, retain, &w); bad) return Result<Program>::failed(bad);
  tighten(graph, gradients, state, retain, &w.program());
  return std::move(w.program());
}

Result<Program> write_make(const Graph &graph, const LiveState &state, uint32_t value) {
  Writer w(graph, state);
  std::vector<uint32_t> made;
  const uint32_t targets[] = {value};
  if (const Status bad = w.make(targets, Again::nothing, &made); bad) return Result<Program>::failed(bad);
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
