// Chains of a rank's layers, and what a policy holds, takes and costs on it.
#pragma once

#include "estimate/pieces.h"
#include "plan/make_plan.h"

namespace ckpt::estimate {

// What a chain's costs are.
enum class Cost : uint8_t { seconds, flops };  // FLOPs in units of kFlopUnit

inline constexpr double kFlopUnit = 1e9;

struct Span {
  uint64_t first_layer = 0, layers = 0;
  bool embedding = false, head = false;
};
// A chunk of a rank; embedding and head where the model has them.
Span span_of(const Request &request, uint64_t rank, uint64_t chunk);

Result<plan::Graph> make_graph(const char *function, const Request &request, const Pieces &pieces, const Span &span, Cost cost, size_t alignment_bytes);

// Fills all of *out but struct_size. BUDGET has its text, and out->minimum_budget_bytes is set.
Status estimate_rank(const char *function, const Request &request, uint32_t policy, uint64_t rank, size_t budget_bytes, ckpt_estimate *out);

}  // namespace ckpt::estimate
