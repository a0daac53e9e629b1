// A graph from its description in C.
#pragma once

#include "plan/graph.h"

namespace ckpt::plan {

// The parts of a ckpt_chain_desc as this library knows them: structs of other sizes are read before.
struct ChainSegment {
  ckpt_chain_segment desc;
  std::vector<ckpt_slot> slots;
  std::vector<ckpt_output> outputs;
  // What a recording may have and the C struct cannot say.
  bool replayable = true;
  uint32_t input_count = UINT32_MAX;  // so many of the chain's inputs, or all, are named before this segment
};

// INVALID_ARGUMENT names segment, slot, field, value and expectation; OVERFLOW: sizes beyond what is counted with.
Result<Graph> make_chain(const char *function, const ckpt_chain_desc &desc, const std::vector<ChainSegment> &segments);

}  // namespace ckpt::plan
