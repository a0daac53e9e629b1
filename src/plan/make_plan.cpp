#include "plan/make_plan.h"

#include <algorithm>

#include "plan/fastest.h"
#include "plan/layout.h"

namespace ckpt::plan {
namespace {

constexpr uint32_t kShort = 200;  // segments: the curve of more begins near the smallest budget, see plan.h
constexpr uint64_t kMaxActions = uint64_t{1} << 31;

Status make_fixed(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out) {
  const char *name = strategy_name(request.strategy);
  if (request.strategy == CKPT_STRATEGY_FULL) {  // each run gives back what it read
    const uint64_t actions = 2 * runs_from_inputs(graph) + 2 * uint64_t{graph.node_count()};
    if (actions > kMaxActions)
      return fail(CKPT_ERROR_OVERFLOW, "strategy %s with %u segments may take %llu actions, expected at most 2^31", name, graph.node_count(), static_cast<unsigned long long>(actions));
  }
  Result<Policy> policy = fixed_policy(graph, request);
  if (!policy.ok()) return policy.status();
  Result<Program> program = write_step(graph, gradients, *policy);
  if (!program.ok()) return program.status();
  const Status status = predict(graph, gradients, request, start, std::move(*program), out);
  out->strategy = request.strategy;
  out->k = request.k;
  out->universal_gap_seconds = std::max(0.0, out->prediction.seconds() - graph.forward_seconds() - graph.backward_seconds());
  out->class_gap_seconds = out->universal_gap_seconds;
  out->status = out->prediction.recompute_count == 0 ? CKPT_PLAN_OPTIMAL : CKPT_PLAN_GAP;
  if (status == CKPT_ERROR_BUDGET)
    return fail(CKPT_ERROR_BUDGET, "strategy %s wants %zu bytes, the budget is %zu; the smallest budget that works is %zu", name, out->minimum_budget, request.budget, out->minimum_budget);
  return status;
}

Status check(const Graph &graph, const PlanRequest &request) {
  CKPT_TRY(check_request("plan", request));
  if (graph.node_count() == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "plan: there is no segment, expected at least 1");
  return CKPT_OK;
}

bool has_patterns(const PlanRequest &request) { return !request.keep_patterns.empty() || !request.recompute_patterns.empty(); }

}  // namespace

Status make_plan(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out) {
  *out = Planned{};
  CKPT_TRY(check(graph, request));
  if (request.strategy != CKPT_STRATEGY_AUTO) return make_fixed(graph, gradients, request, start, out);
  if (!has_patterns(request)) return find_fastest(graph, gradients, request, start, out);
  const Result<Graph> constrained = constrain(graph, request);
  if (!constrained.ok()) return constrained.status();
  return find_fastest(*constrained, gradients, request, start, out);
}

Status predict(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Program program, Planned *out) {
  CKPT_TRY(simulate_unlimited(graph, gradients, program, start, request.in_flight, &out->prediction));
  out->offsets.clear();
  out->in_flight = request.in_flight;
  if (request.in_flight == 1 && start.in_use() == 0) {
    std::vector<Block> blocks;
    CKPT_TRY(list_blocks(graph, gradients, program, &blocks));
    Layout layout;
    CKPT_TRY(make_layout(blocks, &layout));
    out->offsets = std::move(layout.offsets);
    out->prediction.height = layout.height;
  }
  out->program = std::move(program);
  out->minimum_budget = out->prediction.height;
  if (request.budget == 0 || out->prediction.height <= request.budget) return CKPT_OK;
  return fail(CKPT_ERROR_BUDGET, "the program wants %zu bytes, the budget is %zu", out->prediction.height, request.budget);
}

Status find_curve(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, uint32_t capacity, std::vector<CurvePoint> *out) {
  CKPT_TRY(check(graph, request));
  out->clear();
  PlanRequest free = request;
  free.budget = 0;
  if (request.strategy != CKPT_STRATEGY_AUTO) {
    Planned planned;
    CKPT_TRY(make_fixed(graph, gradients, free, arena::Placer(), &planned));
    out->push_back({planned.prediction, planned.status, planned.class_gap_seconds, planned.universal_gap_seconds});
    return CKPT_OK;
  }
  if (has_patterns(request)) {
    const Result<Graph> constrained = constrain(graph, request);
    if (!constrained.ok()) return constrained.status();
    CKPT_TRY(find_fastest_curve(*constrained, gradients, free, capacity, out));
  } else {
    CKPT_TRY(find_fastest_curve(graph, gradients, free, capacity, out));
  }
  // From the smallest budget upwards, and each faster than the one before.
  size_t minimum = 0;
  CKPT_TRY(find_minimum_budget(graph, gradients, free, arena::Placer(), &minimum));
  if (graph.node_count() <= kShort) {
    free.budget = minimum;
    Planned least;
    CKPT_TRY(make_plan(graph, gradients, free, arena::Placer(), &least));
    out->push_back({least.prediction, least.status, least.class_gap_seconds, least.universal_gap_seconds});
  }
  for (CurvePoint &p : *out) p.prediction.height = std::max(p.prediction.height, minimum);  // what is lower by chance is not had for less
  std::sort(out->begin(), out->end(), [](const CurvePoint &a, const CurvePoint &b) {
    return a.prediction.height != b.prediction.height ? a.prediction.height < b.prediction.height : a.prediction.seconds() < b.prediction.seconds();
  });
  size_t kept = 0;
  for (const CurvePoint &p : *out)
    if (kept == 0 || p.prediction.seconds() < (*out)[kept - 1].prediction.seconds()) (*out)[kept++] = p;
  out->resize(kept);
  if (kept <= capacity) return CKPT_OK;
  for (uint32_t k = 0; k < capacity; ++k) (*out)[k] = (*out)[capacity == 1 ? 0 : k * (kept - 1) / (capacity - 1)];  // the ends are among them
  out->resize(capacity);
  return CKPT_OK;
}

Status find_minimum_budget(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, size_t *out) {
  PlanRequest least = request;
  least.budget = 1;
  Planned planned;
  const Status status = make_plan(graph, gradients, least, start, &planned);
  *out = planned.minimum_budget;
  return status == CKPT_ERROR_BUDGET ? Status{CKPT_OK} : status;
}

}  // namespace ckpt::plan
