#include "plan/make_plan.h"

#include "plan/fastest.h"

namespace ckpt::plan {
namespace {

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
  arena::Placer unbounded = start;
  unbounded.set_capacity(arena::kUnbounded);
  unbounded.set_limit(arena::kUnbounded);
  CKPT_TRY(simulate_in_flight(graph, gradients, *program, unbounded, request.in_flight, &out->prediction));
  out->program = std::move(*program);
  out->strategy = request.strategy;
  out->k = request.k;
  out->minimum_budget = out->prediction.height;
  if (request.budget != 0 && out->minimum_budget > request.budget)
    return fail(CKPT_ERROR_BUDGET, "strategy %s wants %zu bytes, the budget is %zu; the smallest budget that works is %zu", name, out->minimum_budget, request.budget, out->minimum_budget);
  return CKPT_OK;
}

}  // namespace

Status make_plan(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out) {
  *out = Planned{};
  CKPT_TRY(check_request("plan", request));
  if (graph.node_count() == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "plan: there is no segment, expected at least 1");
  if (request.strategy != CKPT_STRATEGY_AUTO) return make_fixed(graph, gradients, request, start, out);
  return find_fastest(graph, gradients, request.in_flight, request.budget, start, out);
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
