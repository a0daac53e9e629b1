// Runs as Chrome's trace events: what happened when, and the bytes that lived.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/handles.h"

namespace ckpt::json {

// One change of memory, as ckpt_trace_fn tells it.
struct TraceEvent {
  uint64_t nanoseconds;
  size_t bytes;
  uint32_t index;
  uint16_t what;  // CKPT_ACTION_*
  uint16_t is_recompute;
};
static_assert(sizeof(TraceEvent) == 24);

std::string write_trace(const std::vector<TraceEvent> &events, size_t lost, const plan::Graph *names);

// A plan's step at its predicted times.
Status write_plan_trace(const ckpt_plan &plan, std::string *out);

}  // namespace ckpt::json
