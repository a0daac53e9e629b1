// The fixed strategies as policies, and their names.
#pragma once

#include <string>
#include <vector>

#include "plan/generate.h"

namespace ckpt::plan {

struct PlanRequest {
  uint32_t strategy = CKPT_STRATEGY_AUTO;
  uint32_t k = 0;
  uint32_t in_flight = 1;
  std::vector<std::string> keep_patterns, recompute_patterns;
  size_t budget = 0;          // 0: none
  uint32_t plan_class = CKPT_CLASS_DEFAULT;
  uint64_t work_limit = 0;    // 0: the default
};

// "store_all"; "unknown" for what is no strategy.
const char *strategy_name(uint32_t strategy) noexcept;
// "sigma"; DEFAULT gives the name of what it stands for, others "unknown".
const char *class_name(uint32_t plan_class) noexcept;
Status parse_class(const char *function, const char *text, uint32_t *plan_class);
// "auto", "uniform:4": see ckpt_strategy_parse.
Status parse_strategy(const char *function, const char *text, uint32_t *strategy, uint32_t *k);

// Checks strategy, k, in_flight and that patterns come with SELECTIVE only; names the field after `function`.
Status check_request(const char *function, const PlanRequest &request);

// The slots of this shape that SELECTIVE keeps (patterns matched against its names; nothing is reported here).
Bits selected_slots(const Shape &shape, const PlanRequest &request);

// The same graph with the slots marked that the request's patterns name: for AUTO. Errors: as fixed_policy.
Result<Graph> constrain(const Graph &graph, const PlanRequest &request);

// Any strategy but AUTO. NOT_FOUND: a pattern that matches no slot of the graph; CONFLICT: a slot that both lists match, or
// one whose flags say otherwise.
Result<Policy> fixed_policy(const Graph &graph, const PlanRequest &request);

// The building blocks of policies.
// Slots that a node keeps so that nothing but what is marked RECOMPUTE is made again.
Bits slots_for_all(const Shape &shape);
// Groups of k nodes: 1 for each value that the nodes of a later group read.
std::vector<uint8_t> values_across_groups(const Graph &graph, uint32_t k);
uint32_t sqrt_group(uint32_t node_count);  // the square root, rounded up

}  // namespace ckpt::plan
