// A graph seen as a chain: node i reads what node i - 1 makes for it, all of that is one boundary, and nothing else passes
// between nodes but what lies in the caller's memory.
#pragma once

#include <optional>
#include <vector>

#include "plan/exact/model.h"
#include "plan/graph.h"

namespace ckpt::plan::exact {

struct Link {  // one node
  Bits first_outputs;  // its first run makes all outputs
  Bits outputs;        // a later run hands these on
  Bits given;          // in the caller's memory: always there after the first run
  bool wall = false;   // its output stays until its backward, marked or in the caller's memory
  bool runs = false;   // it goes backward
  bool reads_input = false, reads_output = false;  // its backward; reads_output: of what counts
  bool rerun = true;   // it can run again
  bool holds_input = false;  // its slot 0 holds its input
};

struct Chain {
  const Graph *graph = nullptr;
  std::vector<Link> links;
  std::vector<std::vector<uint32_t>> boundary;  // n + 1: the values that count
  std::vector<Bytes> x, g, g_new;               // n + 1; g_new[i]: what backward i takes for the gradient of boundary i

  uint32_t size() const { return static_cast<uint32_t>(links.size()); }
};

std::optional<Chain> as_chain(const Graph &graph, const GradientMap &gradients);

}  // namespace ckpt::plan::exact
