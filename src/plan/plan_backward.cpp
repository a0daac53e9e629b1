#include "plan/make_plan.h"

namespace ckpt::plan {
namespace {

constexpr uint32_t kDropNothing = 0, kDropSlots = 1, kDropValues = 2;  // before the pass; values too

// What is live now and stays live in a retained pass.
Status retained(const PaperMachine &machine, const GradientMap &gradients, std::vector<Bits> *retain) {
  const Graph &graph = machine.graph();
  retain->resize(graph.node_count());
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    const Bits spent = gradients.runs[i] ? s.consumed() : Bits{};
    Status bad = CKPT_OK;
    (spent & s.keep()).each([&](uint32_t k) {
      if (bad) return;
      bad = fail(CKPT_ERROR_CONFLICT, "slot '%s' of segment '%s' (number %u) is CONSUMED by its backward and %s: the recording cannot be retained", s.item(k).name.c_str(),
                 s.name().c_str(), i, s.replayable() ? "marked KEEP" : "its segment has no forward to run again");
    });
    if (bad) return bad;
    (*retain)[i] = machine.state().live[i] - spent;
  }
  return CKPT_OK;
}

// Slots that can be made again and, if asked, boundaries too, whose inputs can be had.
std::vector<Action> drops(const PaperMachine &machine, uint32_t what) {
  std::vector<Action> actions;
  if (what == kDropNothing) return actions;
  const Graph &graph = machine.graph();
  const LiveState &state = machine.state();
  std::vector<uint8_t> can_have(graph.value_count(), 0);
  for (uint32_t v : graph.inputs) can_have[v] = state.value_live(graph, v);
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    bool runs = s.replayable();
    for (uint32_t v : graph.inputs_of(i)) runs = runs && can_have[v];
    for (uint32_t k = s.slot_count(); k < s.item_count(); ++k) {
      const uint32_t v = graph.value_of(i, k);
      const bool live = state.value_live(graph, v);
      can_have[v] = live || (runs && !s.keep().has(k));
    }
    if (!runs) continue;
    if (const Bits slots = (state.live[i] & s.slots()) - s.keep(); !slots.empty()) actions.push_back({ActionKind::drop, i, slots, {}});
    if (what != kDropValues) continue;
    ((state.live[i] & s.outputs()) - s.keep() - s.caller()).each([&](uint32_t k) { actions.push_back({ActionKind::free, graph.value_of(i, k), {}, {}}); });
  }
  return actions;
}

}  // namespace

Status plan_backward(const PaperMachine &machine, const GradientMap &gradients, bool retain, size_t budget, Planned *out) {
  *out = Planned{};
  const Graph &graph = machine.graph();
  budget = round_down(budget, graph.rule.alignment_bytes);
  Simulation best, smallest;
  bool found = false, any = false;
  Status last = CKPT_OK;
  for (uint32_t what = kDropNothing; what <= kDropValues; ++what) {
    PaperMachine dropped = machine;
    dropped.backend().placer.set_limit(arena::kUnbounded);
    dropped.backend().placer.set_capacity(arena::kUnbounded);
    dropped.backend().placer.reset_peaks();
    const std::vector<Action> before = drops(machine, what);
    if (what != kDropNothing && before.empty()) continue;
    Simulation unused;
    CKPT_TRY(simulate(dropped, gradients, before, &unused));
    std::vector<Bits> stay;
    if (retain) CKPT_TRY(retained(dropped, gradients, &stay));
    for (const Again again : {Again::everything, Again::boundaries, Again::nothing}) {
      Result<Program> written = write_backward(graph, gradients, dropped.state(), again, stay);
      if (!written.ok()) {
        last = written.status();
        continue;
      }
      PaperMachine paper = dropped;
      Simulation s;
      if (last = simulate(paper, gradients, written->actions, &s); last) return last;
      if (!any || s.height < smallest.height) smallest = s;
      any = true;
      const bool better = !found || s.recompute_seconds < best.recompute_seconds || (s.recompute_seconds == best.recompute_seconds && s.height < best.height);
      if (s.height > budget || !better) continue;
      best = s;
      found = true;
      out->program.actions = before;
      out->program.actions.insert(out->program.actions.end(), written->actions.begin(), written->actions.end());
    }
  }
  if (!any) return last;
  out->minimum_budget = smallest.height;
  out->prediction = found ? best : smallest;
  if (found) return CKPT_OK;
  return fail(CKPT_ERROR_BUDGET, "the backward pass needs %zu bytes of arena (peak %zu), the budget is %zu; the smallest budget that works is %zu", smallest.height, smallest.peak, budget,
              smallest.height);
}

}  // namespace ckpt::plan
