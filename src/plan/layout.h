// What lives where during a step: every block of memory that a program takes, in the order in which the machine takes them,
// when it lives, and its place in the arena. A planned step takes these places as they stand (arena/placer.h).
#pragma once

#include <vector>

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan {

// One block. An output that is placed over an input, or a gradient over a gradient, goes on living in the same block.
struct Block {
  uint32_t what = 0;          // CKPT_PLACED_*
  uint32_t index = 0;         // node, or value
  uint32_t item = 0;          // of slots and outputs: which slot, which output
  bool is_recompute = false;
  uint32_t first_action = 0;  // live from its begin
  uint32_t end_action = 0;    // to the begin of this one
  size_t bytes = 0;           // footprint
};

// Of a whole step, from Machine::start to the last backward. INVALID_PLAN: the program breaks a rule of the machine.
Status list_blocks(const Graph &graph, const GradientMap &gradients, const Program &program, std::vector<Block> *out);

struct Layout {
  std::vector<size_t> offsets;  // per block
  size_t height = 0;
  size_t lower_bound = 0;       // the largest live load
};
// The lowest layout that is found (arena/pack.h).
Status make_layout(const std::vector<Block> &blocks, Layout *out);

}  // namespace ckpt::plan
