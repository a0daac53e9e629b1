// Plans as JSON. The format is described in include/ckpt/json.h.
#pragma once

#include <optional>

#include "json/value.h"
#include "ckpt/schedule.h"
#include "plan/handles.h"

namespace ckpt::json {

struct PlanFile {
  std::vector<ckpt_action> actions;
  std::optional<uint64_t> hash, chain_hash;
  std::optional<size_t> peak_bytes, held_bytes, arena_bytes;
  size_t budget_bytes = 0;
  uint32_t in_flight_count = 1;
};

// Fields, names and numbers; the machine's rules are for the verifier. INVALID_ARGUMENT, INVALID_PLAN: one line.
Status read_plan(std::string_view text, const char *source, const plan::Graph &graph, PlanFile *out);

// Equal plans give equal texts.
std::string write_plan(const ckpt_plan &plan);

// In the vocabulary of checkpoint_schedules. UNSUPPORTED: a graph that is no chain.
Status write_schedule(const char *function, const ckpt_plan &plan, std::string *out);
std::string write_schedule(const std::vector<ckpt_schedule_action> &actions, uint64_t step_count);

}  // namespace ckpt::json
