#include "json/plan_file.h"
#include "json/writer.h"
#include "plan/strategy.h"

namespace ckpt::json {
namespace {

void slots(Writer *w, const plan::Shape &shape, const uint64_t *mask) {
  w->list();
  for (uint32_t k = 0; k < shape.slot_count(); ++k)
    if (mask[k / 64] >> (k % 64) & 1) w->text(shape.item(k).name);
  w->end();
}

void outputs(Writer *w, const plan::Shape &shape, const uint64_t *mask) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < shape.output_count(); ++k) count += static_cast<uint32_t>(mask[k / 64] >> (k % 64) & 1);
  if (count == 0 || count == shape.output_count()) {
    w->flag(count != 0);
    return;
  }
  w->list();
  for (uint32_t k = 0; k < shape.output_count(); ++k)
    if (mask[k / 64] >> (k % 64) & 1) w->number(k);
  w->end();
}

void write_action(Writer *w, const plan::Graph &graph, const ckpt_action &a) {
  constexpr const char *kNames[] = {"forward", "backward", "free", "drop"};
  w->list().text(kNames[a.kind]).number(a.index);
  if (a.kind == CKPT_ACTION_FORWARD || a.kind == CKPT_ACTION_DROP) slots(w, *graph.nodes[a.index].shape, a.slots);
  if (a.kind == CKPT_ACTION_FORWARD) outputs(w, *graph.nodes[a.index].shape, a.outputs);
  w->end();
}

}  // namespace

std::string write_plan(const ckpt_plan &plan) {
  const plan::Planned &p = plan.planned;
  Writer w;
  w.object(true);
  w.key("format").text("ckpt-plan").key("version").number(1);
  w.key("status").text(p.status == CKPT_PLAN_OPTIMAL ? "OPTIMAL" : "GAP");
  w.key("class").text(p.plan_class != 0 ? plan::class_name(p.plan_class) : "none");
  w.key("strategy").text(plan::strategy_name(p.strategy));
  w.key("in_flight_count").number(p.in_flight);
  w.key("alignment_bytes").number(plan.graph->rule.alignment_bytes);
  w.key("budget_bytes").number(plan.budget_bytes);
  w.key("minimum_budget_bytes").number(p.minimum_budget);
  w.key("peak_bytes").number(p.prediction.peak);
  w.key("arena_bytes").number(p.prediction.height);
  w.key("held_bytes").number(p.prediction.held);
  w.key("forward_seconds").real(p.prediction.forward_seconds);
  w.key("backward_seconds").real(p.prediction.backward_seconds);
  w.key("recompute_seconds").real(p.prediction.recompute_seconds);
  w.key("class_gap_seconds").real(p.class_gap_seconds);
  w.key("universal_gap_seconds").real(p.universal_gap_seconds);
  w.key("chain_hash").hash(plan.graph_hash);
  w.key("hash").hash(plan.hash());
  w.key("actions").list(true);
  for (const ckpt_action &a : plan.actions) write_action(&w, *plan.graph, a);
  w.end().end();
  return w.finish();
}

}  // namespace ckpt::json
