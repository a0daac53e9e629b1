// The machine that programs run on: which items, boundaries and gradients are live, and what each action allocates and
// gives back, in which order. One text for the simulator (Backend = a placer on paper) and for the tape's executor
// (Backend = an arena), so that a predicted peak and height are the measured ones by construction.
//
// State. An item of a node is live or not; a boundary is live while its producer's output item is; inputs of the graph in
// the caller's memory are always live, others until freed. Actions:
//
//   forward i, want   Inputs of i are live; nodes run for the first time in order 0, 1, 2, ... with all outputs wanted.
//                     Computes what closure(want, live) says. During: everything live, everything it computes, forward
//                     scratch (if it computes anything). After: `want` is live too; what else it computed is gone.
//                     in_place: an output may take over the block of the input it names; that boundary is gone afterwards.
//   backward i        In the order n-1 .. 0, after every node's first run. Slots that backward reads, outputs and inputs
//                     that it reads are live. During: everything live, gradients of its inputs, backward scratch.
//                     After: slots and outputs of i, and their gradients, are gone, but for what `want` retains.
//                     A node that no gradient reaches only gives back.
//   free v            A boundary is gone; not the caller's memory.
//   drop i, slots     Those slots are gone.
//
// A boundary that a slot holds (Shape::saved_holds_input) is not freed while that slot is live.
// A KEEP item is made once and lives until its backward. A RECOMPUTE slot is not live across another node's action.
// All of it is placed from the low end, what outlives the action first, so that the rest comes and goes at the frontier (on
// random chains this is within 0.6 % of the live load on average; gradients or temporaries at the high end cost 3 to 36 %).
// Only the roots' gradients, which are there from the start, lie at the high end.
#pragma once

#include <utility>
#include <vector>

#include "arena/placer.h"
#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan {

using arena::BlockId;
using arena::kNoBlock;
using arena::Side;

// Live state without memory: what a generator starts from.
struct LiveState {
  std::vector<Bits> live;          // per node: items
  std::vector<uint8_t> input_live; // per graph input
  uint32_t nodes_run = 0;          // first runs so far
  uint32_t done = kNone;           // backwards done down to here; kNone: not begun

  static LiveState start(const Graph &graph) {
    LiveState s;
    s.live.resize(graph.node_count());
    s.input_live.assign(graph.inputs.size(), 1);
    return s;
  }
  bool value_live(const Graph &graph, uint32_t v) const {
    const Value &value = graph.values[v];
    return value.producer == kNone ? input_live[value.item] != 0 : live[value.producer].has(value.item);
  }
};

// Backend: BlockId allocate(size_t bytes, Side); void free(BlockId); and, where an allocation may fail for another reason
// than want of room, Status refusal(): of the one that has just failed.
template <class Backend>
class Machine {
 public:
  struct Run {  // one forward between its begin and its end
    uint32_t node = 0;
    Bits want;      // live afterwards (beside what was)
    Closure made;   // computed
    Bits fresh;     // of those: blocks taken by this run
    Bits in_place;  // outputs over an input's block
    BlockId scratch = kNoBlock;
    bool first = false;
  };
  struct BackwardRun {
    uint32_t node = 0;
    Bits stay;
    BlockId scratch = kNoBlock;
    bool runs = false;
  };
  // Why an allocation failed: what a caller needs for its text.
  struct Shortage {
    size_t bytes = 0;
    uint32_t node = kNone;
    uint32_t item = kNone;  // kNone: scratch or a gradient
    bool any = false;       // the latest action's begin has failed for want of room
  };

  Machine(const Graph *graph, Backend backend) : graph_(graph), backend_(std::move(backend)) { grow(); }

  // The graph has grown at its end (a recording that nobody knew), or has lost what has not run yet.
  void grow() {
    state_.live.resize(graph_->node_count());
    state_.input_live.resize(graph_->inputs.size(), 1);
    block_.resize(graph_->item_bytes.size(), kNoBlock);
    input_block_.resize(graph_->inputs.size(), kNoBlock);
    grad_block_.resize(graph_->value_count(), kNoBlock);
  }
  // The same recording described by another graph object, equal in what exists so far.
  void rebind(const Graph *graph) {
    graph_ = graph;
    grow();
  }
  // Memory of graph inputs that count, and of root gradients that count. Once, before anything runs.
  Status start(const GradientMap &gradients);

  Status begin_forward(uint32_t node, const Bits &want, const Bits &in_place, Run *run);
  void end_forward(const Run &run);
  void abandon_forward(const Run &run);  // gives back what begin took; nothing became live

  // `gradients` belongs to this backward pass.
  Status begin_backward(uint32_t node, const Bits &stay, const GradientMap &gradients, BackwardRun *run);
  void end_backward(const BackwardRun &run);
  void abandon_backward(const BackwardRun &run);

  // `force`: also what is marked KEEP (a pass without backward).
  Status free_value(uint32_t value, bool force = false);
  Status drop(uint32_t node, const Bits &slots);
  void release_all();  // everything back to the backend
  // Another backward pass over a retained recording: only gradients and progress start anew.
  void rewind_backward();

  // The same state over another backend that knows the same block numbers (a copy of the placer): to look ahead on paper.
  template <class Other>
  Machine<Other> with_backend(Other backend) const {
    Machine<Other> m(graph_, std::move(backend));
    m.adopt(state_, block_, input_block_, grad_block_, again_node_);
    return m;
  }
  void adopt(const LiveState &state, const std::vector<BlockId> &items, const std::vector<BlockId> &inputs,
             const std::vector<BlockId> &grads, uint32_t again_node) {
    state_ = state;
    block_ = items;
    input_block_ = inputs;
    grad_block_ = grads;
    again_node_ = again_node;
  }

  const LiveState &state() const { return state_; }
  const Graph &graph() const { return *graph_; }
  Backend &backend() { return backend_; }
  const Backend &backend() const { return backend_; }
  const Shortage &shortage() const { return shortage_; }
  // The node, but for one, whose slots marked RECOMPUTE are live, and those: they go before another node acts.
  std::pair<uint32_t, Bits> again_slots(uint32_t but) const {
    if (again_node_ == kNone || again_node_ == but) return {kNone, Bits{}};
    return {again_node_, state_.live[again_node_] & graph_->nodes[again_node_].shape->again()};
  }
  uint32_t done() const { return state_.done == kNone ? graph_->node_count() : state_.done; }
  bool value_live(uint32_t v) const { return state_.value_live(*graph_, v); }
  // A node whose live slot 0 holds this value; kNone.
  uint32_t holder_of(uint32_t v) const {
    for (auto [at, end] = graph_->holders.equal_range(v); at != end; ++at)
      if (state_.live[at->second].has(0)) return at->second;
    return kNone;
  }
  BlockId item_block(uint32_t node, uint32_t item) const { return block_[graph_->nodes[node].first_item + item]; }
  BlockId value_block(uint32_t v) const {
    const Value &value = graph_->values[v];
    return value.producer == kNone ? input_block_[value.item] : item_block(value.producer, value.item);
  }
  BlockId grad_block(uint32_t v) const { return grad_block_[v]; }

 private:
  BlockId &block(uint32_t node, uint32_t item) { return block_[graph_->nodes[node].first_item + item]; }
  bool take(size_t bytes, Side side, uint32_t node, uint32_t item, BlockId *out) {
    *out = backend_.allocate(bytes, side);
    if (*out != kNoBlock) return true;
    shortage_ = {bytes, node, item, true};
    return false;
  }
  Status refusal() {
    if constexpr (requires { backend_.refusal(); }) {
      const Status status = backend_.refusal();
      shortage_.any = status == CKPT_ERROR_BUDGET;
      return status;
    }
    return CKPT_ERROR_BUDGET;
  }
  void give(BlockId &b) {
    if (b != kNoBlock) backend_.free(b);
    b = kNoBlock;
  }
  Status check_forward(uint32_t node, const Bits &want, bool first) const;
  Status check_backward(uint32_t node, const GradientMap &gradients) const;
  Status check_again_slots(uint32_t node) const;
  Status check_in_place(const Run &run) const;
  bool take_items(Run *run, const Bits &items, Side side);
  bool take_gradients(uint32_t node, const GradientMap &gradients);
  void set_value_dead(uint32_t v);

  const Graph *graph_;
  Backend backend_;
  LiveState state_;
  std::vector<BlockId> block_;        // per Graph::item_bytes
  std::vector<BlockId> input_block_;  // per graph input
  std::vector<BlockId> grad_block_;   // per value
  Shortage shortage_;
  uint32_t again_node_ = kNone;       // the node whose RECOMPUTE slots are live, if any
};

template <class B>
Status Machine<B>::start(const GradientMap &gradients) {
  for (uint32_t k = 0; k < graph_->inputs.size(); ++k) {
    const Value &v = graph_->values[graph_->inputs[k]];
    if (!v.caller && !take(v.bytes, Side::low, kNone, kNone, &input_block_[k])) return refusal();
  }
  if (!graph_->root_grads_in_arena) return CKPT_OK;
  for (const Root &r : gradients.roots)
    if (r.has_grad && !take(graph_->values[r.value].grad_bytes, Side::high, kNone, kNone, &grad_block_[r.value])) return refusal();
  return CKPT_OK;
}

template <class B>
Status Machine<B>::check_again_slots(uint32_t node) const {
  if (again_node_ == kNone || again_node_ == node) return CKPT_OK;
  if ((state_.live[again_node_] & graph_->nodes[again_node_].shape->again()).empty()) return CKPT_OK;
  return fail(CKPT_ERROR_INVALID_PLAN, "an action on segment %u while slots of segment %u that are marked RECOMPUTE are live", node, again_node_);
}

template <class B>
Status Machine<B>::check_forward(uint32_t node, const Bits &want, bool first) const {
  if (node >= graph_->node_count()) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u: there are %u segments", node, graph_->node_count());
  const Shape &s = *graph_->nodes[node].shape;
  if (node > state_.nodes_run) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u before the first run of segment %u", node, state_.nodes_run);
  if (node >= done()) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u after its backward", node);
  if (!s.all().contains(want)) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u: wants a slot or output that segment '%s' does not have", node, s.name().c_str());
  if (first && !want.contains(s.outputs())) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u: the first run of segment '%s' without all its outputs", node, s.name().c_str());
  if (!first && !s.replayable() && !state_.live[node].contains(want)) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u: segment '%s' has no forward to run again", node, s.name().c_str());
  for (uint32_t v : graph_->inputs_of(node))
    if (!value_live(v)) return fail(CKPT_ERROR_INVALID_PLAN, "forward %u: boundary %u is not live", node, v);
  return check_again_slots(node);
}

template <class B>
Status Machine<B>::check_in_place(const Run &run) const {
  const Shape &s = *graph_->nodes[run.node].shape;
  Status bad = CKPT_OK;
  run.in_place.each([&](uint32_t k) {
    const uint32_t input = s.item(k).in_place_input;
    const auto inputs = graph_->inputs_of(run.node);
    const uint32_t v = input == 0 ? kNone : inputs[input - 1];
    bool fits = v != kNone && !graph_->values[v].caller && graph_->rule.footprint(graph_->values[v].bytes) == graph_->item_footprint(run.node, k);
    fits = fits && !graph_->holders.contains(v);
    if (fits && graph_->values[v].producer != kNone) fits = !graph_->nodes[graph_->values[v].producer].shape->keep().has(graph_->values[v].item);
    // Neither another output nor another input of this node may be in the same block.
    run.in_place.each([&](uint32_t j) { fits = fits && (j >= k || (s.item(j).in_place_input != 0 && inputs[s.item(j).in_place_input - 1] != v)); });
    for (uint32_t j = 0; j < inputs.size(); ++j) fits = fits && (j == input - 1 || inputs[j] != v);
    if (!fits && !bad) bad = fail(CKPT_ERROR_INVALID_PLAN, "forward %u: output '%s' cannot be placed over an input", run.node, s.item(k).name.c_str());
  });
  return bad;
}

template <class B>
bool Machine<B>::take_items(Run *run, const Bits &items, Side side) {
  const Shape &s = *graph_->nodes[run->node].shape;
  bool fits = true;
  (items - s.caller() - run->in_place).each([&](uint32_t k) {
    if (!fits) return;
    fits = take(graph_->bytes_of(run->node, k), side, run->node, k, &block(run->node, k));
    if (fits) run->fresh.set(k);
  });
  return fits;
}

template <class B>
Status Machine<B>::begin_forward(uint32_t node, const Bits &want, const Bits &in_place, Run *run) {
  const bool first = node == state_.nodes_run;
  shortage_.any = false;
  CKPT_TRY(check_forward(node, want, first));
  const Shape &s = *graph_->nodes[node].shape;
  const Bits live = state_.live[node];
  *run = Run{};
  run->node = node;
  run->first = first;
  run->want = want;
  run->made = s.closure(want, live);
  if (!first && !(run->made.todo & s.keep()).empty())
    return fail(CKPT_ERROR_INVALID_PLAN, "forward %u: segment '%s' would make again what is marked KEEP", node, s.name().c_str());
  run->in_place = in_place & want & (run->made.todo - live);
  CKPT_TRY(check_in_place(*run));
  const Bits missing = run->made.todo - live;
  const bool fits = take_items(run, missing & want & s.slots(), Side::low) && take_items(run, missing & want & s.outputs(), Side::low) &&
                    take_items(run, missing - want, Side::low) &&
                    (run->made.todo.empty() || s.forward_scratch() == 0 || take(s.forward_scratch(), Side::low, node, kNone, &run->scratch));
  if (fits) {
    run->in_place.each([&](uint32_t k) { block(node, k) = value_block(graph_->inputs_of(node)[s.item(k).in_place_input - 1]); });
    return CKPT_OK;
  }
  run->in_place = Bits{};
  const Status status = refusal();
  abandon_forward(*run);
  return status;
}

template <class B>
void Machine<B>::end_forward(const Run &run) {
  const Shape &s = *graph_->nodes[run.node].shape;
  BlockId scratch = run.scratch;
  give(scratch);
  (run.fresh - run.want).each_down([&](uint32_t k) { give(block(run.node, k)); });
  run.in_place.each([&](uint32_t k) {
    const uint32_t v = graph_->inputs_of(run.node)[s.item(k).in_place_input - 1];
    const Value &value = graph_->values[v];
    (value.producer == kNone ? input_block_[value.item] : block(value.producer, value.item)) = kNoBlock;
    set_value_dead(v);
  });
  state_.live[run.node] |= run.want;
  if (!(run.want & s.again()).empty()) again_node_ = run.node;
  if (run.first) ++state_.nodes_run;
}

template <class B>
void Machine<B>::abandon_forward(const Run &run) {
  BlockId scratch = run.scratch;
  give(scratch);
  run.in_place.each([&](uint32_t k) { block(run.node, k) = kNoBlock; });
  run.fresh.each_down([&](uint32_t k) { give(block(run.node, k)); });
}

template <class B>
Status Machine<B>::check_backward(uint32_t node, const GradientMap &gradients) const {
  if (state_.nodes_run < graph_->node_count()) return fail(CKPT_ERROR_INVALID_PLAN, "backward %u before the first run of segment %u", node, state_.nodes_run);
  if (done() == 0 || node != done() - 1) return fail(CKPT_ERROR_INVALID_PLAN, "backward %u out of order: expected backward %u", node, done() - 1);
  CKPT_TRY(check_again_slots(node));
  if (!gradients.runs[node]) return CKPT_OK;
  const Shape &s = *graph_->nodes[node].shape;
  Status bad = CKPT_OK;
  ((s.needed() | s.backward_outputs()) - state_.live[node]).each([&](uint32_t k) {
    if (!bad) bad = fail(CKPT_ERROR_INVALID_PLAN, "backward %u: '%s' of segment '%s' is not live", node, s.item(k).name.c_str(), s.name().c_str());
  });
  for (uint32_t k = 0; k < s.input_count() && !bad; ++k)
    if (s.backward_reads_input(k) && !value_live(graph_->inputs_of(node)[k]))
      bad = fail(CKPT_ERROR_INVALID_PLAN, "backward %u: boundary %u is not live", node, graph_->inputs_of(node)[k]);
  return bad;
}

template <class B>
bool Machine<B>::take_gradients(uint32_t node, const GradientMap &gradients) {
  const Node &n = graph_->nodes[node];
  for (uint32_t k = 0; k < n.shape->input_count(); ++k) {
    const uint32_t v = graph_->node_inputs[n.first_input + k];
    const GradMode mode = gradients.mode[n.first_input + k];
    if (mode == GradMode::none || mode == GradMode::over || graph_->values[v].grad != CKPT_GRAD_ARENA || grad_block_[v] != kNoBlock) continue;
    if (!take(graph_->values[v].grad_bytes, Side::low, node, kNone, &grad_block_[v])) return false;
  }
  for (uint32_t k = 0; k < n.shape->input_count(); ++k) {
    if (gradients.mode[n.first_input + k] != GradMode::over) continue;
    // Both names hold the block until the backward is over.
    grad_block_[graph_->node_inputs[n.first_input + k]] = grad_block_[n.first_value];
  }
  return true;
}

template <class B>
Status Machine<B>::begin_backward(uint32_t node, const Bits &stay, const GradientMap &gradients, BackwardRun *run) {
  shortage_.any = false;
  CKPT_TRY(check_backward(node, gradients));
  *run = BackwardRun{};
  run->node = node;
  run->stay = stay;
  run->runs = gradients.runs[node] != 0;
  if (!run->runs) return CKPT_OK;
  const Shape &s = *graph_->nodes[node].shape;
  // A failure leaves the gradients that were taken to release_all: a backward that cannot go on ends the recording.
  if (!take_gradients(node, gradients)) return refusal();
  if (s.backward_scratch() != 0 && !take(s.backward_scratch(), Side::low, node, kNone, &run->scratch)) return refusal();
  return CKPT_OK;
}

template <class B>
void Machine<B>::end_backward(const BackwardRun &run) {
  const Node &n = graph_->nodes[run.node];
  const Shape &s = *n.shape;
  BlockId scratch = run.scratch;
  give(scratch);
  for (uint32_t k = 0; k < s.output_count(); ++k) {
    BlockId &g = grad_block_[n.first_value + k];
    bool passed_on = false;
    for (uint32_t v : graph_->inputs_of(run.node)) passed_on |= g != kNoBlock && grad_block_[v] == g;
    if (passed_on) g = kNoBlock;
    give(g);
  }
  (state_.live[run.node] - run.stay).each_down([&](uint32_t k) { give(block(run.node, k)); });
  state_.live[run.node] &= run.stay;
  state_.done = run.node;
}

template <class B>
void Machine<B>::abandon_backward(const BackwardRun &run) {
  BlockId scratch = run.scratch;
  give(scratch);
}

template <class B>
void Machine<B>::set_value_dead(uint32_t v) {
  const Value &value = graph_->values[v];
  if (value.producer == kNone) state_.input_live[value.item] = 0;
  else state_.live[value.producer].clear(value.item);
}

template <class B>
Status Machine<B>::free_value(uint32_t v, bool force) {
  if (v >= graph_->value_count()) return fail(CKPT_ERROR_INVALID_PLAN, "free %u: there are %u boundaries", v, graph_->value_count());
  const Value &value = graph_->values[v];
  if (!value_live(v) || value.caller) return fail(CKPT_ERROR_INVALID_PLAN, "free %u: %s", v, value.caller ? "the caller's memory" : "not live");
  if (!force && value.producer != kNone && graph_->nodes[value.producer].shape->keep().has(value.item))
    return fail(CKPT_ERROR_INVALID_PLAN, "free %u: marked KEEP", v);
  if (const uint32_t node = holder_of(v); node != kNone && !force)
    return fail(CKPT_ERROR_INVALID_PLAN, "free %u: slot '%s' of segment %u is live and holds it", v, graph_->nodes[node].shape->item(0).name.c_str(), node);
  give(value.producer == kNone ? input_block_[value.item] : block(value.producer, value.item));
  set_value_dead(v);
  return CKPT_OK;
}

template <class B>
Status Machine<B>::drop(uint32_t node, const Bits &slots) {
  if (node >= graph_->node_count()) return fail(CKPT_ERROR_INVALID_PLAN, "drop %u: there are %u segments", node, graph_->node_count());
  const Shape &s = *graph_->nodes[node].shape;
  if (!s.slots().contains(slots) || !state_.live[node].contains(slots)) return fail(CKPT_ERROR_INVALID_PLAN, "drop %u: a slot of segment '%s' that is not live", node, s.name().c_str());
  if (!(slots & s.keep()).empty()) return fail(CKPT_ERROR_INVALID_PLAN, "drop %u: a slot of segment '%s' that is marked KEEP", node, s.name().c_str());
  slots.each_down([&](uint32_t k) { give(block(node, k)); });
  state_.live[node] -= slots;
  return CKPT_OK;
}

template <class B>
void Machine<B>::release_all() {
  // Not by the graph's numbers: it may have grown without us, where the host had no memory.
  for (size_t v = grad_block_.size(); v-- > 0;) {
    // A block that two gradients name (GradMode::over, mid-backward) goes back once.
    if (grad_block_[v] == kNoBlock) continue;
    const BlockId b = grad_block_[v];
    for (BlockId &other : grad_block_)
      if (other == b) other = kNoBlock;
    backend_.free(b);
  }
  for (size_t k = block_.size(); k-- > 0;) give(block_[k]);
  for (size_t k = input_block_.size(); k-- > 0;) give(input_block_[k]);
  for (Bits &b : state_.live) b = Bits{};
  state_.nodes_run = 0;
  state_.done = kNone;
  again_node_ = kNone;
}

template <class B>
void Machine<B>::rewind_backward() {
  for (uint32_t v = graph_->value_count(); v-- > 0;) give(grad_block_[v]);
  state_.done = kNone;
}

}  // namespace ckpt::plan
