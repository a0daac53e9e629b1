// Programs as the C ABI has them.
#pragma once

#include <span>

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan {

// An output placed over an input's block is, in C, a forward with a free of that input right behind it.
std::vector<ckpt_action> program_to_c(const Graph &graph, std::span<const Action> actions);

// The way back: such a free becomes the output's placing over the input wherever the machine allows that. INVALID_PLAN:
// what cannot be an action of this graph at all; the machine's rules are for the verifier to check.
Result<Program> program_from_c(const char *function, const Graph &graph, std::span<const ckpt_action> actions);

// Of actions and graph: equal on every machine.
uint64_t program_hash(uint64_t graph_hash, std::span<const ckpt_action> actions);

}  // namespace ckpt::plan
