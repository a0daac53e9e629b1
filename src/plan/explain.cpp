#include "plan/explain.h"

#include <algorithm>
#include <cmath>

#include "plan/generate.h"
#include "plan/tighten.h"

namespace ckpt::plan {
namespace {

class Repairer {
 public:
  Repairer(const Graph &graph, const GradientMap &gradients) : graph_(graph), gradients_(gradients), state_(LiveState::start(graph)) {}

  Result<Program> run(const Program &program) {
    for (const Action &a : program.actions)
      if (const Status bad = perform(a); bad) return Result<Program>::failed(bad);
    return std::move(out_);
  }

 private:
  Status perform(const Action &a);
  Status make_inputs(uint32_t node, bool all);
  void apply(const Action &a);
  void drop_again_slots(uint32_t but);
  bool held(uint32_t value) const {  // a live slot holds it: it stays (tighten gives it back in time)
    for (auto [at, end] = graph_.holders.equal_range(value); at != end; ++at)
      if (state_.live[at->second].has(0)) return true;
    return false;
  }

  const Graph &graph_;
  const GradientMap &gradients_;
  LiveState state_;
  uint32_t again_node_ = kNone;  // the one whose RECOMPUTE slots may be live
  Program out_;
};

void Repairer::apply(const Action &a) {
  out_.actions.push_back(a);
  switch (a.kind) {
    case ActionKind::forward:
      if (a.index == state_.nodes_run) ++state_.nodes_run;
      state_.live[a.index] |= a.want;
      if (!(a.want & graph_.nodes[a.index].shape->again()).empty()) again_node_ = a.index;
      return;
    case ActionKind::backward:
      state_.live[a.index] &= a.want;
      state_.done = a.index;
      return;
    case ActionKind::free: {
      const Value &v = graph_.values[a.index];
      if (v.producer == kNone) state_.input_live[v.item] = 0;
      else state_.live[v.producer].clear(v.item);
      return;
    }
    case ActionKind::drop: state_.live[a.index] -= a.want; return;
  }
}

// Slots marked RECOMPUTE do not live across another node's action; the backward that reads them makes them again.
void Repairer::drop_again_slots(uint32_t but) {
  if (again_node_ == kNone || again_node_ == but) return;
  const Bits live = state_.live[again_node_] & graph_.nodes[again_node_].shape->again();
  const uint32_t node = again_node_;
  again_node_ = kNone;
  if (!live.empty()) apply({ActionKind::drop, node, live, {}});
}

Status Repairer::make_inputs(uint32_t node, bool all) {
  const Shape &s = *graph_.nodes[node].shape;
  const auto inputs = graph_.inputs_of(node);
  for (uint32_t k = 0; k < s.input_count(); ++k) {
    if ((!all && !s.backward_reads_input(k)) || state_.value_live(graph_, inputs[k])) continue;
    drop_again_slots(kNone);
    Result<Program> made = write_make(graph_, state_, inputs[k]);
    if (!made.ok()) return made.status();
    for (const Action &a : made->actions) apply(a);
  }
  return CKPT_OK;
}

Status Repairer::perform(const Action &a) {
  switch (a.kind) {
    case ActionKind::forward: {
      CKPT_TRY(make_inputs(a.index, true));
      drop_again_slots(a.index);
      Action plain = a;
      plain.in_place = Bits{};  // tighten finds it again
      apply(plain);
      return CKPT_OK;
    }
    case ActionKind::backward: {
      const Shape &s = *graph_.nodes[a.index].shape;
      if (gradients_.runs[a.index]) {
        const auto missing = [&] { return (s.needed() | s.backward_outputs()) - state_.live[a.index]; };
        CKPT_TRY(make_inputs(a.index, !missing().empty()));
        if (!missing().empty()) {  // which making inputs may have added to
          CKPT_TRY(make_inputs(a.index, true));
          drop_again_slots(a.index);
          apply({ActionKind::forward, a.index, missing(), {}});
        }
      }
      drop_again_slots(a.index);
      apply(a);
      return CKPT_OK;
    }
    case ActionKind::free:
      if (state_.value_live(graph_, a.index) && !held(a.index)) apply(a);
      return CKPT_OK;
    case ActionKind::drop:
      if (const Bits live = a.want & state_.live[a.index]; !live.empty()) apply({ActionKind::drop, a.index, live, {}});
      return CKPT_OK;
  }
  return CKPT_OK;
}

}  // namespace

Result<Program> repair(const Graph &graph, const GradientMap &gradients, const Program &program) { return Repairer(graph, gradients).run(program); }

Explainer::Explainer(const Graph &graph, const GradientMap &gradients, const Program &program, size_t budget)
    : graph_(graph), gradients_(gradients), program_(program), budget_(budget), fates_(graph.item_bytes.size()) {
  for (uint32_t i = 0; i < graph.node_count(); ++i) node_of_.insert(node_of_.end(), graph.nodes[i].shape->item_count(), i);
  status_ = simulate_step(graph, gradients, program, arena::Placer(), &now_);
  follow();
}

void Explainer::follow() {
  std::vector<Bits> live(graph_.node_count());
  for (const Action &a : program_.actions) {
    if (a.kind == ActionKind::free) {
      const Value &v = graph_.values[a.index];
      if (v.producer != kNone) live[v.producer].clear(v.item);
      continue;
    }
    const uint32_t first = graph_.nodes[a.index].first_item;
    if (a.kind == ActionKind::forward) {
      const Shape &s = *graph_.nodes[a.index].shape;
      const Closure c = s.closure(a.want, live[a.index]);
      ((s.whole() && !c.todo.empty() ? s.all() : c.todo) - live[a.index]).each([&](uint32_t k) {
        Fate &f = fates_[first + k];
        if (f.made++ == 0) f.stays = a.want.has(k);
      });
      live[a.index] |= a.want;
    } else if (a.kind == ActionKind::backward) {
      live[a.index] &= a.want;
    } else {
      live[a.index] -= a.want;
    }
  }
}

Program Explainer::opposite(uint32_t node, uint32_t item, bool kept) const {
  Program out;
  const bool slot = item < graph_.nodes[node].shape->slot_count();
  const uint32_t value = slot ? kNone : graph_.value_of(node, item);
  uint32_t last_reader = node;  // in the forward pass
  for (uint32_t i = node + 1; !slot && i < graph_.node_count(); ++i)
    for (uint32_t v : graph_.inputs_of(i))
      if (v == value) last_reader = i;
  uint32_t nodes_run = 0;
  for (const Action &a : program_.actions) {
    Action b = a;
    const bool first_run = a.kind == ActionKind::forward && a.index == nodes_run;
    if (first_run) ++nodes_run;
    if (slot && a.index == node) {
      if (a.kind == ActionKind::forward && kept) b.want.clear(item);
      if (first_run && !kept) b.want.set(item);
      if (a.kind == ActionKind::drop) b.want.clear(item);
      if (a.kind == ActionKind::drop && b.want.empty()) continue;
    }
    if (!slot && !kept && a.kind == ActionKind::free && a.index == value) continue;
    out.actions.push_back(b);
    if (!slot && kept && first_run && a.index == last_reader) out.actions.push_back({ActionKind::free, value, {}, {}});
  }
  return out;
}

Status Explainer::judge(uint32_t node, uint32_t item, bool kept, ckpt_explanation *out) const {
  Result<Program> other = repair(graph_, gradients_, opposite(node, item, kept));
  if (!other.ok()) {  // what it is made from cannot be made again
    out->because = CKPT_BECAUSE_MARKED;
    return CKPT_OK;
  }
  tighten(graph_, gradients_, LiveState::start(graph_), {}, &*other);
  Simulation s;
  CKPT_TRY(simulate_step(graph_, gradients_, *other, arena::Placer(), &s));
  const double change = s.seconds() - now_.seconds();
  const bool same = std::abs(change) <= 1e-12 * now_.seconds();
  out->seconds_change = same ? 0 : change;
  out->peak_change = static_cast<int64_t>(s.peak) - static_cast<int64_t>(now_.peak);
  if (kept) out->because = out->peak_change >= 0 ? CKPT_BECAUSE_ALREADY : CKPT_BECAUSE_FASTER;
  else if (budget_ != 0 && s.peak > budget_) out->because = CKPT_BECAUSE_BUDGET;
  else out->because = out->seconds_change < 0 ? CKPT_BECAUSE_SEARCH : CKPT_BECAUSE_NO_GAIN;
  return CKPT_OK;
}

Status Explainer::explain(uint32_t k, ckpt_explanation *out) const {
  CKPT_TRY(status_);
  *out = ckpt_explanation{};
  if (k >= fates_.size()) {
    out->what = CKPT_PLACED_INPUT;
    out->index = graph_.inputs[k - fates_.size()];
    out->kept = 1;
    out->bytes = graph_.values[out->index].caller ? 0 : graph_.rule.footprint(graph_.values[out->index].bytes);
    return CKPT_OK;
  }
  const uint32_t node = node_of_[k], item = k - graph_.nodes[node].first_item;
  const Shape &s = *graph_.nodes[node].shape;
  const bool slot = item < s.slot_count();
  out->what = slot ? CKPT_PLACED_SLOT : CKPT_PLACED_OUTPUT;
  out->index = node;
  out->item = slot ? item : item - s.slot_count();
  const bool caller = s.caller().has(item);
  out->bytes = caller ? 0 : graph_.item_footprint(node, item);
  const Fate &f = fates_[k];
  out->kept = f.made == 1 && f.stays;
  if (caller || s.keep().has(item) || s.again().has(item) || !s.replayable()) return CKPT_OK;
  if (f.made <= 1 && !f.stays) {
    out->because = CKPT_BECAUSE_UNUSED;
    return CKPT_OK;
  }
  return judge(node, item, out->kept != 0, out);
}

}  // namespace ckpt::plan
