#include "plan/fastest.h"

#include <algorithm>
#include <memory>

#include "plan/best_chain.h"
#include "plan/graph_search.h"

namespace ckpt::plan {
namespace {

// The classes do not know outputs that are placed over inputs, nor what several recordings hold together, and the planner of very
// long chains does not know the smallest programs: then both searches are asked, and the better answer is taken.
bool in_class(const Graph &graph, const PlanRequest &request) { return request.in_flight == 1 && !graph.any_in_place(); }

// What keeps a boundary at half of what is left, and so on, has a dozen of them in a chain as long as the planner takes.
bool is_ample(size_t budget, size_t in_use, exact::Planner *planner) {
  return budget == 0 || (budget - std::min(budget, in_use)) / 16 >= planner->enough();
}

}  // namespace

Status find_fastest(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out) {
  const std::unique_ptr<exact::Planner> planner = exact::Planner::create(graph, gradients, request.plan_class);
  if (planner == nullptr) return search_graph(graph, gradients, request.in_flight, request.budget, request.work_limit, start, out);
  const bool knows_small = planner->knows_small(), small_or_ample = knows_small || is_ample(request.budget, start.in_use(), planner.get());
  const Status status = BestChain(planner.get(), graph, gradients, request, start).run(request.budget, out);
  if ((small_or_ample && in_class(graph, request)) || (status != CKPT_OK && status != CKPT_ERROR_BUDGET)) return status;
  Planned other;
  const Status second = search_graph(graph, gradients, request.in_flight, request.budget, request.work_limit, start, &other);
  if (second != CKPT_OK && second != CKPT_ERROR_BUDGET) return second;
  // 0 where it was not looked for.
  const size_t minimum = knows_small ? std::min(out->minimum_budget, other.minimum_budget) : other.minimum_budget;
  if (second == CKPT_ERROR_BUDGET && (status == CKPT_ERROR_BUDGET || !knows_small)) {
    out->minimum_budget = minimum;
    return fail(CKPT_ERROR_BUDGET, "no program within a budget of %zu bytes was found; the smallest budget that works is %zu", request.budget, minimum);
  }
  if (second == CKPT_OK && (status != CKPT_OK || other.prediction.seconds() < out->prediction.seconds())) *out = std::move(other);
  out->minimum_budget = minimum;
  return CKPT_OK;
}

Status find_fastest_curve(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, uint32_t capacity, std::vector<CurvePoint> *out) {
  const arena::Placer empty;
  const std::unique_ptr<exact::Planner> planner = exact::Planner::create(graph, gradients, request.plan_class);
  if (planner != nullptr) CKPT_TRY(BestChain(planner.get(), graph, gradients, request, empty).curve(capacity, out));
  if (planner != nullptr && in_class(graph, request)) return CKPT_OK;
  return search_graph_curve(graph, gradients, request.in_flight, request.work_limit, capacity, out);
}

}  // namespace ckpt::plan
