// Following a known recording's plan, and leaving it. A recording is *unknown* (it builds its own graph and keeps what it
// can), or it *follows* a known one: then the known graph is its graph, but for a copy where its own sizes are smaller.
#include "base/assert.h"
#include "plan/simulate.h"
#include "tape/tape.h"

namespace ckpt::tape {

using plan::Graph;
using plan::kNone;
using plan::Node;
using plan::Shape;
using plan::Value;

namespace {

// Do the first nodes and values of `mine` fit where `theirs` has them?
Match match_prefix(const Graph &mine, const Graph &theirs, uint32_t nodes, uint32_t values) {
  if (!same_prefix(mine, theirs, nodes, values)) return Match::no;
  bool smaller = false;
  for (uint32_t i = 0; i < nodes; ++i) {
    const Shape &a = *mine.nodes[i].shape, &b = *theirs.nodes[i].shape;
    if (a.forward_scratch() > b.forward_scratch() || a.backward_scratch() > b.backward_scratch()) return Match::no;
    smaller |= a.forward_scratch() != b.forward_scratch() || a.backward_scratch() != b.backward_scratch();
    for (uint32_t k = 0; k < a.item_count(); ++k) {
      if (mine.bytes_of(i, k) > theirs.bytes_of(i, k)) return Match::no;
      smaller |= mine.bytes_of(i, k) < theirs.bytes_of(i, k);
    }
  }
  for (uint32_t v = 0; v < values; ++v) {
    const Value &a = mine.values[v], &b = theirs.values[v];
    if (a.bytes > b.bytes || a.grad_bytes > b.grad_bytes) return Match::no;
    smaller |= a.bytes < b.bytes || a.grad_bytes < b.grad_bytes;
  }
  return smaller ? Match::smaller : Match::exact;
}

// The sizes of the first nodes and values of `from`, into `to`.
void copy_sizes(const Graph &from, uint32_t nodes, uint32_t values, Graph *to) {
  for (uint32_t i = 0; i < nodes; ++i) {
    to->nodes[i].shape = from.nodes[i].shape;
    for (uint32_t k = 0; k < from.nodes[i].shape->item_count(); ++k) to->item_bytes[to->nodes[i].first_item + k] = from.bytes_of(i, k);
  }
  for (uint32_t v = 0; v < values; ++v) {
    to->values[v].bytes = from.values[v].bytes;
    to->values[v].grad_bytes = from.values[v].grad_bytes;
  }
}

bool same_actions(const plan::Program &a, const plan::Program &b, size_t count) {
  return count <= a.actions.size() && count <= b.actions.size() && std::equal(a.actions.begin(), a.actions.begin() + static_cast<ptrdiff_t>(count), b.actions.begin());
}

}  // namespace

Graph &Recording::own() {
  if (own_graph_ == nullptr) {
    own_graph_ = std::make_unique<Graph>(*graph_);
    own_graph_->rule = tape_->arena->size_rule();
    graph_ = own_graph_.get();
    machine_.rebind(graph_);
  }
  return *own_graph_;
}

// Takes `known` as this recording's plan from here on; what has been recorded so far fits it.
Status Recording::expect(KnownPtr known) {
  const KnownPtr before = std::exchange(known_, std::move(known));  // its graph may be this recording's until now
  departed_ = false;
  if (!empty() && match_prefix(*graph_, *known_->graph, next_node_, next_value_) == Match::smaller) {
    auto sized = std::make_unique<Graph>(*known_->graph);
    copy_sizes(*graph_, next_node_, next_value_, sized.get());
    sized->shapes.insert(sized->shapes.end(), graph_->shapes.begin(), graph_->shapes.end());  // some are the other plan's
    machine_.rebind(sized.get());
    own_graph_ = std::move(sized);
    graph_ = own_graph_.get();
  } else {
    machine_.rebind(known_->graph.get());
    graph_ = known_->graph.get();
    own_graph_.reset();
  }
  gradients_ = &known_->gradients;
  const bool may_measure = !captured() && (timed_ || !tape_->asynchronous());
  sampled_ = may_measure && next_node_ == 0 && known_->drift != nullptr && known_->drift->due();
  measuring_ = may_measure && (known_->measured_steps < 2 || sampled_);
  tape_->cache.touch(known_.get());
  if (next_node_ == 0) ++tape_->plan_hit_count;
  return predict();
}

// What this step will need, others' blocks in the arena included. A plan that no longer fits beside them is made anew.
Status Recording::predict() {
  plan::Simulation sim = known_->plan.prediction;
  settle();  // the places are another plan's
  if (next_node_ > 0) {
    predicted_recompute_ = sim.recompute_seconds;
    minimum_budget_ = known_->plan.minimum_budget;
    return predict_rest(*known_->graph);
  }
  const bool alone = tape_->arena->placer().empty() && known_->plan.offsets.empty();
  if (!alone && !open_region(&sim)) CKPT_TRY(predict_beside(&sim));
  predicted_peak_ = sim.peak;
  predicted_height_ = sim.height;
  predicted_recompute_ = sim.recompute_seconds;
  minimum_budget_ = known_->plan.minimum_budget;
  return CKPT_OK;
}

// Makes the plan's places this recording's, above what others hold. False: the plan has none, or they do not fit there.
bool Recording::open_region(plan::Simulation *sim) {
  const std::vector<size_t> &offsets = known_->plan.offsets;
  if (offsets.empty()) return false;
  arena::Arena &arena = *tape_->arena;
  const arena::Placer &placer = arena.placer();
  arena.settle();  // a recording that is still in flight has places of its own
  ArenaBackend &backend = machine_.backend();
  backend.region = arena.open_region(sim->height);
  if (backend.region == 0) return false;
  backend.offsets = offsets;
  sim->peak += placer.in_use();
  sim->held += placer.in_use();
  sim->height += placer.low_frontier() + placer.high_frontier();
  return true;
}

// The step leaves its plan, or is no longer alone: from here on it places as it goes.
void Recording::settle() {
  ArenaBackend &backend = machine_.backend();
  if (!backend.placed()) return;
  tape_->arena->settle();
  backend.close();
}

// In the middle of a recording: what it holds itself is there already, so only the rest of the program is simulated.
Status Recording::predict_rest(const plan::Graph &graph) {
  const std::span<const plan::Action> actions = known_->plan.program.actions;
  const ArenaBackend &backend = machine_.backend();
  const bool placed = backend.placed();
  plan::PaperMachine paper = machine_.with_backend(plan::Paper{graph.rule, tape_->paper(placed), placed ? backend.offsets : std::span<const size_t>()});
  paper.rebind(&graph);
  plan::Simulation rest;
  CKPT_TRY(plan::simulate(paper, known_->gradients, actions.subspan(next_action_), &rest));
  predicted_peak_ = std::max(backend.peak, rest.peak);
  predicted_height_ = std::max(backend.height(), rest.height);
  return CKPT_OK;
}

// At the begin of a recording, beside what others hold.
Status Recording::predict_beside(plan::Simulation *sim) {
  const arena::Placer start = tape_->paper();
  CKPT_TRY(plan::simulate_step(*known_->graph, known_->gradients, known_->plan.program, start, sim));
  if (sim->height <= tape_->budget) return CKPT_OK;
  if (captured())
    return fail(CKPT_ERROR_CAPTURE, "ckpt_tape_begin: beside what else is in the arena the prepared plan needs %zu bytes, the budget is %zu, and no other is made while the stream is captured", sim->height, tape_->budget);
  auto other = std::make_shared<Known>(*known_);
  other->plan = {};
  plan::PlanRequest request = tape_->request;
  request.budget = tape_->budget;
  request.in_flight = request.in_flight > tape_->flying ? request.in_flight - tape_->flying : 1;  // those that fly are in `start`
  CKPT_TRY(plan::make_plan(*other->graph, other->gradients, request, start, &other->plan));
  *sim = other->plan.prediction;
  known_ = std::move(other);
  graph_ = own_graph_ != nullptr ? own_graph_.get() : known_->graph.get();
  machine_.rebind(graph_);
  gradients_ = &known_->gradients;
  return CKPT_OK;
}

// At the first segment of a recording without a key: the longest known one that begins like this.
template <class Event>
Status Recording::choose(const Event &event) {
  std::vector<KnownPtr> candidates;
  for (const KnownPtr &k : tape_->cache.all())
    if (match_prefix(*graph_, *k->graph, 0, next_value_) != Match::no && match(*k->graph, 0, next_value_, event) != Match::no) candidates.push_back(k);
  std::stable_sort(candidates.begin(), candidates.end(), [](const KnownPtr &a, const KnownPtr &b) { return a->graph->node_count() > b->graph->node_count(); });
  KnownPtr refused;
  bool ran = false;
  for (const KnownPtr &candidate : candidates) {
    Result<KnownPtr> known = tape_->planned(candidate);
    if (!known.ok()) return known.status();
    if (!(*known)->refused) return expect(*known);
    if (refused == nullptr) refused = *known;
    ran |= (*known)->ran;
  }
  // A recording that has run unplanned may do so again; one that was only recorded dry is refused before anything runs.
  if (refused != nullptr && !ran) {
    tape_->minimum_budget = refused->plan.minimum_budget;
    return fail(refused->refused, "%s", refused->refusal.c_str());
  }
  return CKPT_OK;
}

// The longest other known recording that goes on like this one, and whose plan has done the same so far.
template <class Event>
Result<KnownPtr> Recording::other_match(const Event &event) const {
  KnownPtr best;
  const std::vector<KnownPtr> all = tape_->cache.all();  // planning changes the cache
  for (const KnownPtr &k : all) {
    if (k == known_ || (best != nullptr && k->graph->node_count() <= best->graph->node_count())) continue;
    if (match_prefix(*graph_, *k->graph, next_node_, next_value_) == Match::no) continue;
    if (match(*k->graph, next_node_, next_value_, event) == Match::no) continue;
    Result<KnownPtr> planned = tape_->planned(k);
    if (!planned.ok()) return planned;
    if (!(*planned)->refused && same_actions((*planned)->plan.program, known_->plan.program, next_action_)) best = *planned;
  }
  return best;
}

template <class Event>
Status Recording::place(const Event &event, Match *out) {
  *out = Match::no;
  while (followed()) {
    *out = match(*known_->graph, next_node_, next_value_, event);
    if (*out != Match::no) return CKPT_OK;
    if (captured()) return leave("an input or a segment is not the one that was prepared, or is larger");
    Result<KnownPtr> other = other_match(event);
    if (!other.ok()) return other.status();
    if (*other == nullptr) depart();
    else CKPT_TRY(expect(std::move(*other)));
  }
  return CKPT_OK;
}

Status Recording::place_input(const InputEvent &event) {
  Match m = Match::no;
  CKPT_TRY(place(event, &m));
  if (m == Match::exact) return CKPT_OK;
  if (m == Match::smaller) {
    Value &v = own().values[next_value_];
    v.bytes = event.bytes;
    v.grad_bytes = event.grad_bytes;
    return CKPT_OK;
  }
  own().add_input(event.bytes, event.grad_bytes, true, event.grad);
  machine_.grow();
  return CKPT_OK;
}

Status Recording::place_node(const NodeEvent &event) {
  const bool may_follow = !dry() && !no_backward();
  if (may_follow && known_ == nullptr && next_node_ == 0) CKPT_TRY(choose(event));
  Match m = Match::no;
  CKPT_TRY(place(event, &m));
  if (m == Match::exact) return CKPT_OK;
  Graph &g = own();
  const Shape &s = *event.shape;
  if (m == Match::no) {
    if (g.value_count() + s.output_count() > 0xFFFFFFEu || g.node_count() >= 0xFFFFFFEu) return fail(CKPT_ERROR_OVERFLOW, "a recording holds at most 2^28 boundaries and segments");
    g.add_node(event.shape, event.inputs, event.slot_bytes, event.output_bytes);
    machine_.grow();
    measuring_ = !dry() && !no_backward() && (timed_ || !tape_->asynchronous());
    return CKPT_OK;
  }
  Node &n = g.nodes[next_node_];
  // Smaller blocks fit where the plan has larger ones; scratch that is not asked for at all would take the next one's place.
  if ((n.shape->forward_scratch() == 0) != (s.forward_scratch() == 0) || (n.shape->backward_scratch() == 0) != (s.backward_scratch() == 0)) settle();
  n.shape = event.shape;
  for (uint32_t k = 0; k < s.item_count(); ++k) {
    g.item_bytes[n.first_item + k] = event.bytes(k);
    if (k < s.slot_count()) continue;
    Value &v = g.values[g.value_of(next_node_, k)];
    v.bytes = event.bytes(k);
    v.grad_bytes = event.grad_bytes(k);
  }
  return CKPT_OK;
}

Status Recording::leave(const char *why) {
  if (captured()) return fail(CKPT_ERROR_CAPTURE, "the step leaves its prepared plan at segment number %u while the stream is captured: %s", next_node_, why);
  depart();
  return CKPT_OK;
}

// The recording goes on by itself. What has been recorded stays; what the plan had dropped is made again if someone asks.
void Recording::depart() {
  settle();
  departed_ = true;
  const uint32_t nodes = next_node_ + placed_;
  const uint32_t values = placed_ ? next_value_ + graph_->nodes[next_node_].shape->output_count() : next_value_;
  auto cut = std::make_unique<Graph>(prefix(*graph_, nodes, values));
  machine_.rebind(cut.get());
  own_graph_ = std::move(cut);
  graph_ = own_graph_.get();
  gradients_ = nullptr;
  measuring_ = timed_ || !tape_->asynchronous();
  predicted_peak_ = predicted_height_ = 0;
  predicted_recompute_ = 0;
  for (uint32_t i = 0; i < next_node_; ++i) note_droppable(i);
}

Status Recording::follow_to_first() {
  while (followed()) {
    const std::vector<plan::Action> &actions = known_->plan.program.actions;
    CKPT_VERIFY(next_action_ < actions.size());
    const plan::Action &action = actions[next_action_];
    if (action.kind == plan::ActionKind::forward && action.index == next_node_) {
      ++next_action_;
      return CKPT_OK;
    }
    CKPT_VERIFY(action.kind != plan::ActionKind::backward);
    const Status status = execute(action);
    if (status == CKPT_ERROR_BUDGET && machine_.shortage().any) CKPT_TRY(leave("something else is in the way"));
    else if (status) return status;
    else ++next_action_;
  }
  return CKPT_OK;
}

Status Recording::follow_trailing() {
  const std::vector<plan::Action> &actions = known_->plan.program.actions;
  while (next_action_ < actions.size()) {
    const plan::Action &action = actions[next_action_];
    if (action.kind != plan::ActionKind::free && action.kind != plan::ActionKind::drop) break;
    // What the user reads after the forward pass goes when backward begins.
    if (action.kind == plan::ActionKind::free && graph_->values[action.index].read_at_end) break;
    CKPT_TRY(execute(action));
    ++next_action_;
  }
  return CKPT_OK;
}

}  // namespace ckpt::tape
