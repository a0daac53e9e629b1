#include "ckpt/plan.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "abi/struct_size.h"
#include "plan/chain.h"
#include "plan/exchange.h"
#include "plan/explain.h"
#include "plan/handles.h"
#include "plan/layout.h"
#include "plan/verify.h"

namespace {

using ckpt::fail;
using ckpt::guarded;
namespace plan = ckpt::plan;

// Sizes in the first release.
constexpr size_t kChainDescFirst = 56, kChainSegmentFirst = 88, kSlotFirst = 48, kOutputFirst = 64;
constexpr size_t kPlanDescFirst = 48, kSummaryFirst = 88, kActionFirst = 72;
static_assert(sizeof(ckpt_chain_desc) == kChainDescFirst && sizeof(ckpt_chain_segment) == kChainSegmentFirst);
static_assert(sizeof(ckpt_slot) == kSlotFirst && sizeof(ckpt_output) == kOutputFirst);
static_assert(sizeof(ckpt_plan_desc) == kPlanDescFirst + 16 && sizeof(ckpt_plan_summary) == kSummaryFirst + 56 && sizeof(ckpt_action) == kActionFirst);
constexpr size_t kPlacementFirst = 40, kCurvePointFirst = 56, kExplanationFirst = 48;
static_assert(sizeof(ckpt_placement) == kPlacementFirst && sizeof(ckpt_curve_point) == kCurvePointFirst && sizeof(ckpt_explanation) == kExplanationFirst);

ckpt_status null_argument(const char *function, const char *argument, const char *expected) {
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected %s", function, argument, expected);
}

ckpt_status check_array(const char *fn, const char *segment, const char *what, const void *array, uint32_t count) {
  if (count > ckpt::Bits::kCapacity)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': %s_count is %u, expected at most %u slots and outputs together", fn, segment, what, count, ckpt::Bits::kCapacity);
  if (array == nullptr && count != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': %ss is NULL and %s_count is %u, expected an array", fn, segment, what, what, count);
  return CKPT_OK;
}

ckpt_status read_segment(const char *fn, const ckpt_chain_desc &d, uint32_t index, plan::ChainSegment *to) {
  char what[64];
  std::snprintf(what, sizeof what, "desc.segments[%u]", index);
  CKPT_TRY(ckpt::abi::read_element(fn, what, d.segments, d.segment_size, kChainSegmentFirst, index, &to->desc));
  const ckpt_chain_segment &s = to->desc;
  const char *name = s.name != nullptr ? s.name : "";
  CKPT_TRY(check_array(fn, name, "slot", s.slots, s.slot_count));
  CKPT_TRY(check_array(fn, name, "output", s.outputs, s.output_count));
  to->slots.resize(s.slot_count);
  to->outputs.resize(s.output_count);
  for (uint32_t k = 0; k < s.slot_count; ++k) {
    std::snprintf(what, sizeof what, "desc.segments[%u].slots[%u]", index, k);
    CKPT_TRY(ckpt::abi::read_element(fn, what, s.slots, d.slot_size, kSlotFirst, k, &to->slots[k]));
  }
  for (uint32_t k = 0; k < s.output_count; ++k) {
    std::snprintf(what, sizeof what, "desc.segments[%u].outputs[%u]", index, k);
    CKPT_TRY(ckpt::abi::read_element(fn, what, s.outputs, d.output_size, kOutputFirst, k, &to->outputs[k]));
  }
  return CKPT_OK;
}

ckpt_status read_patterns(const char *fn, const char *field, const char *const *patterns, uint32_t count, std::vector<std::string> *to) {
  if (patterns == nullptr && count != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.%ss is NULL and desc.%s_count is %u, expected an array", fn, field, field, count);
  for (uint32_t k = 0; k < count; ++k) {
    if (patterns[k] == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.%ss[%u] is NULL, expected a pattern", fn, field, k);
    to->emplace_back(patterns[k]);
  }
  return CKPT_OK;
}

ckpt_status read_request(const char *fn, const ckpt_plan_desc *desc, plan::PlanRequest *to) {
  ckpt_plan_desc d;
  CKPT_TRY(ckpt::abi::read_struct(fn, "desc", desc, kPlanDescFirst, &d));
  to->strategy = d.strategy;
  to->k = d.k;
  to->in_flight = d.in_flight_count != 0 ? d.in_flight_count : 1;
  to->budget = d.budget_bytes;
  to->plan_class = d.plan_class;
  to->work_limit = d.work_limit;
  if (d.reserved != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.reserved is %u, expected 0", fn, d.reserved);
  CKPT_TRY(read_patterns(fn, "keep_pattern", d.keep_patterns, d.keep_pattern_count, &to->keep_patterns));
  CKPT_TRY(read_patterns(fn, "recompute_pattern", d.recompute_patterns, d.recompute_pattern_count, &to->recompute_patterns));
  return plan::check_request(fn, *to);
}

ckpt_status read_program(const char *fn, const ckpt_chain &chain, const ckpt_action *actions, uint32_t action_count, uint32_t action_size, plan::Program *to) {
  std::vector<ckpt_action> known(action_count);
  for (uint32_t k = 0; k < action_count; ++k) {
    char what[32];
    std::snprintf(what, sizeof what, "actions[%u]", k);
    CKPT_TRY(ckpt::abi::read_element(fn, what, actions, action_size, kActionFirst, k, &known[k]));
  }
  ckpt::Result<plan::Program> program = plan::program_from_c(fn, *chain.graph, known);
  if (!program.ok()) return program.status();
  *to = std::move(*program);
  return CKPT_OK;
}

ckpt_status make(const ckpt_chain &chain, const plan::PlanRequest &request, plan::Planned *out) {
  const plan::GradientMap gradients = plan::derive_gradients(*chain.graph, chain.roots);
  return plan::make_plan(*chain.graph, gradients, request, ckpt::arena::Placer(), out);
}

}  // namespace

extern "C" {

ckpt_status ckpt_strategy_parse(const char *text, uint32_t *out_strategy, uint32_t *out_k) {
  if (out_strategy == nullptr) return null_argument(__func__, "out_strategy", "an address");
  if (out_k == nullptr) return null_argument(__func__, "out_k", "an address");
  *out_strategy = 0;
  *out_k = 0;
  if (text == nullptr) return null_argument(__func__, "text", "a strategy's name");
  return plan::parse_strategy(__func__, text, out_strategy, out_k);
}

const char *ckpt_strategy_name(uint32_t strategy) { return plan::strategy_name(strategy); }

ckpt_status ckpt_class_parse(const char *text, uint32_t *out_class) {
  if (out_class == nullptr) return null_argument(__func__, "out_class", "an address");
  *out_class = 0;
  if (text == nullptr) return null_argument(__func__, "text", "a class's name");
  return plan::parse_class(__func__, text, out_class);
}

const char *ckpt_class_name(uint32_t plan_class) { return plan::class_name(plan_class); }

ckpt_status ckpt_chain_create(const ckpt_chain_desc *desc, ckpt_chain **out_chain) {
  if (out_chain == nullptr) return null_argument(__func__, "out_chain", "an address");
  *out_chain = nullptr;
  ckpt_chain_desc d;
  CKPT_TRY(ckpt::abi::read_struct(__func__, "desc", desc, kChainDescFirst, &d));
  if (d.segments == nullptr && d.segment_count != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.segments is NULL and desc.segment_count is %u, expected an array", __func__, d.segment_count);
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    std::vector<plan::ChainSegment> segments(d.segment_count);
    for (uint32_t k = 0; k < d.segment_count; ++k) CKPT_TRY(read_segment(fn, d, k, &segments[k]));
    ckpt::Result<plan::Graph> graph = plan::make_chain(fn, d, segments);
    if (!graph.ok()) return graph.status();
    auto shared = std::make_shared<const plan::Graph>(std::move(*graph));
    std::vector<plan::Root> roots = plan::default_roots(*shared);
    *out_chain = new ckpt_chain(std::move(shared), std::move(roots));
    return CKPT_OK;
  });
}

void ckpt_chain_destroy(ckpt_chain *chain) { delete chain; }

uint64_t ckpt_chain_hash(const ckpt_chain *chain) { return chain != nullptr ? chain->graph->hash() : 0; }

uint32_t ckpt_chain_segment_count(const ckpt_chain *chain) { return chain != nullptr ? chain->graph->node_count() : 0; }

ckpt_status ckpt_plan_create(const ckpt_chain *chain, const ckpt_plan_desc *desc, ckpt_plan **out_plan) {
  if (out_plan == nullptr) return null_argument(__func__, "out_plan", "an address");
  *out_plan = nullptr;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    plan::PlanRequest request;
    CKPT_TRY(read_request(fn, desc, &request));
    const auto begin = std::chrono::steady_clock::now();
    plan::Planned planned;
    CKPT_TRY(make(*chain, request, &planned));
    auto plan = std::make_unique<ckpt_plan>(std::move(planned), chain->graph, chain->roots, request.budget);
    plan->plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    *out_plan = plan.release();
    return CKPT_OK;
  });
}

void ckpt_plan_destroy(ckpt_plan *plan) { delete plan; }

ckpt_status ckpt_plan_minimum_budget(const ckpt_chain *chain, const ckpt_plan_desc *desc, size_t *out_bytes) {
  if (out_bytes == nullptr) return null_argument(__func__, "out_bytes", "an address");
  *out_bytes = 0;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    plan::PlanRequest request;
    CKPT_TRY(read_request(fn, desc, &request));
    const plan::GradientMap gradients = plan::derive_gradients(*chain->graph, chain->roots);
    size_t bytes = 0;
    CKPT_TRY(plan::find_minimum_budget(*chain->graph, gradients, request, ckpt::arena::Placer(), &bytes));
    *out_bytes = bytes;
    return CKPT_OK;
  });
}

ckpt_status ckpt_plan_get_summary(const ckpt_plan *plan, ckpt_plan_summary *out_summary) {
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  CKPT_TRY(ckpt::abi::check_out_struct(__func__, "out_summary", out_summary, kSummaryFirst));
  return guarded(__func__, [&]() -> ckpt_status {
    const plan::Planned &p = plan->planned;
    ckpt_plan_summary s{};
    s.strategy = p.strategy;
    s.k = p.k;
    s.action_count = static_cast<uint32_t>(plan->actions.size());
    s.hash = plan->hash();
    s.budget_bytes = plan->budget_bytes;
    s.peak_bytes = p.prediction.peak;
    s.arena_bytes = p.prediction.height;
    s.held_bytes = p.prediction.held;
    s.forward_seconds = p.prediction.forward_seconds;
    s.backward_seconds = p.prediction.backward_seconds;
    s.recompute_seconds = p.prediction.recompute_seconds;
    s.recompute_count = p.prediction.recompute_count;
    s.minimum_budget_bytes = p.minimum_budget;
    s.class_gap_seconds = p.class_gap_seconds;
    s.universal_gap_seconds = p.universal_gap_seconds;
    s.plan_seconds = plan->plan_seconds;
    s.work = p.work;
    s.status = p.status;
    s.plan_class = p.plan_class;
    s.placement_count = static_cast<uint32_t>(p.offsets.size());
    ckpt::abi::write_struct(s, out_summary);
    return CKPT_OK;
  });
}

ckpt_status ckpt_plan_get_actions(const ckpt_plan *plan, uint32_t first, uint32_t count, uint32_t action_size, ckpt_action *out_actions) {
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  if (out_actions == nullptr && count != 0) return null_argument(__func__, "out_actions", "an array");
  if (action_size < kActionFirst)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: action_size is %u, expected at least %zu (sizeof(ckpt_action))", __func__, action_size, kActionFirst);
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    const std::vector<ckpt_action> &actions = plan->actions;
    if (first > actions.size() || count > actions.size() - first)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: first is %u and count is %u, expected a range of the plan's %zu actions", fn, first, count, actions.size());
    for (uint32_t k = 0; k < count; ++k)
      std::memcpy(reinterpret_cast<char *>(out_actions) + size_t{k} * action_size, &actions[first + k], std::min<size_t>(action_size, sizeof(ckpt_action)));
    return CKPT_OK;
  });
}

ckpt_status ckpt_plan_from_actions(const ckpt_chain *chain, const ckpt_action *actions, uint32_t action_count, uint32_t action_size, uint32_t in_flight_count,
                                   size_t budget_bytes, ckpt_plan **out_plan) {
  if (out_plan == nullptr) return null_argument(__func__, "out_plan", "an address");
  *out_plan = nullptr;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  if (actions == nullptr && action_count != 0) return null_argument(__func__, "actions", "an array");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    plan::Program program;
    CKPT_TRY(read_program(fn, *chain, actions, action_count, action_size, &program));
    plan::PlanRequest request;
    request.in_flight = in_flight_count != 0 ? in_flight_count : 1;
    request.budget = budget_bytes;
    CKPT_TRY(plan::check_request(fn, request));
    CKPT_TRY(plan::verify(*chain->graph, chain->roots, program.actions, nullptr));
    plan::Planned planned;
    const plan::GradientMap gradients = plan::derive_gradients(*chain->graph, chain->roots);
    CKPT_TRY(plan::predict(*chain->graph, gradients, request, ckpt::arena::Placer(), std::move(program), &planned));
    *out_plan = new ckpt_plan(std::move(planned), chain->graph, chain->roots, budget_bytes);
    return CKPT_OK;
  });
}

uint64_t ckpt_plan_hash(const ckpt_plan *plan) { return plan != nullptr ? plan->hash() : 0; }

ckpt_status ckpt_plan_get_placements(const ckpt_plan *plan, uint32_t first, uint32_t count, uint32_t placement_size, ckpt_placement *out_placements) {
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  if (out_placements == nullptr && count != 0) return null_argument(__func__, "out_placements", "an array");
  if (placement_size < kPlacementFirst)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: placement_size is %u, expected at least %zu (sizeof(ckpt_placement))", __func__, placement_size, kPlacementFirst);
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    const std::vector<size_t> &offsets = plan->planned.offsets;
    if (first > offsets.size() || count > offsets.size() - first)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: first is %u and count is %u, expected a range of the plan's %zu placements", fn, first, count, offsets.size());
    if (count == 0) return CKPT_OK;
    std::vector<plan::Block> blocks;
    CKPT_TRY(plan::list_blocks(*plan->graph, plan::derive_gradients(*plan->graph, plan->roots), plan->planned.program, &blocks));
    for (uint32_t k = 0; k < count; ++k) {
      const plan::Block &b = blocks[first + k];
      const ckpt_placement p{b.what, b.index, b.item, b.is_recompute, b.first_action, b.end_action, b.bytes, offsets[first + k]};
      std::memcpy(reinterpret_cast<char *>(out_placements) + size_t{k} * placement_size, &p, std::min<size_t>(placement_size, sizeof p));
    }
    return CKPT_OK;
  });
}

ckpt_status ckpt_plan_curve(const ckpt_chain *chain, const ckpt_plan_desc *desc, uint32_t capacity, uint32_t point_size, ckpt_curve_point *out_points, uint32_t *out_count) {
  if (out_count == nullptr) return null_argument(__func__, "out_count", "an address");
  *out_count = 0;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  if (out_points == nullptr) return null_argument(__func__, "out_points", "an array");
  if (capacity == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: capacity is 0, expected at least 1 point", __func__);
  if (point_size < kCurvePointFirst)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: point_size is %u, expected at least %zu (sizeof(ckpt_curve_point))", __func__, point_size, kCurvePointFirst);
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    plan::PlanRequest request;
    CKPT_TRY(read_request(fn, desc, &request));
    std::vector<plan::CurvePoint> points;
    const plan::GradientMap gradients = plan::derive_gradients(*chain->graph, chain->roots);
    CKPT_TRY(plan::find_curve(*chain->graph, gradients, request, capacity, &points));
    for (size_t k = 0; k < points.size(); ++k) {
      const plan::CurvePoint &from = points[k];
      const ckpt_curve_point p{from.prediction.height, from.prediction.peak, from.prediction.seconds(), from.prediction.recompute_seconds,
                               from.class_gap_seconds, from.universal_gap_seconds, from.status, 0};
      std::memcpy(reinterpret_cast<char *>(out_points) + k * point_size, &p, std::min<size_t>(point_size, sizeof p));
    }
    *out_count = static_cast<uint32_t>(points.size());
    return CKPT_OK;
  });
}

ckpt_status ckpt_plan_explain(const ckpt_chain *chain, const ckpt_plan *plan, uint32_t first, uint32_t count, uint32_t explanation_size, ckpt_explanation *out_explanations,
                              uint32_t *out_count) {
  if (out_count != nullptr) *out_count = 0;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  if (out_explanations == nullptr && count != 0) return null_argument(__func__, "out_explanations", "an array");
  if (explanation_size < kExplanationFirst)
    return fail(CKPT_ERROR_STRUCT_SIZE, "%s: explanation_size is %u, expected at least %zu (sizeof(ckpt_explanation))", __func__, explanation_size, kExplanationFirst);
  if (chain->graph->hash() != plan->graph_hash) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: plan was made for another chain than the one given", __func__);
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    const plan::GradientMap gradients = plan::derive_gradients(*chain->graph, chain->roots);
    const plan::Explainer explainer(*chain->graph, gradients, plan->planned.program, plan->budget_bytes);
    if (first > explainer.size() || count > explainer.size() - first)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: first is %u and count is %u, expected a range of %u items", fn, first, count, explainer.size());
    for (uint32_t k = 0; k < count; ++k) {
      ckpt_explanation e;
      CKPT_TRY(explainer.explain(first + k, &e));
      std::memcpy(reinterpret_cast<char *>(out_explanations) + size_t{k} * explanation_size, &e, std::min<size_t>(explanation_size, sizeof e));
    }
    if (out_count != nullptr) *out_count = explainer.size();
    return CKPT_OK;
  });
}

ckpt_status ckpt_program_verify(const ckpt_chain *chain, const ckpt_action *actions, uint32_t action_count, uint32_t action_size, size_t *out_peak_bytes,
                                double *out_seconds, double *out_recompute_seconds) {
  if (out_peak_bytes != nullptr) *out_peak_bytes = 0;
  if (out_seconds != nullptr) *out_seconds = 0;
  if (out_recompute_seconds != nullptr) *out_recompute_seconds = 0;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  if (actions == nullptr && action_count != 0) return null_argument(__func__, "actions", "an array");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    plan::Program program;
    CKPT_TRY(read_program(fn, *chain, actions, action_count, action_size, &program));
    plan::Verified verified;
    CKPT_TRY(plan::verify(*chain->graph, chain->roots, program.actions, &verified));
    if (out_peak_bytes != nullptr) *out_peak_bytes = verified.peak;
    if (out_seconds != nullptr) *out_seconds = verified.seconds;
    if (out_recompute_seconds != nullptr) *out_recompute_seconds = verified.recompute_seconds;
    return CKPT_OK;
  });
}

}  // extern "C"
