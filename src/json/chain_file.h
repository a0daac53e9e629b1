// Chains as JSON. The format is described in include/ckpt/json.h.
#pragma once

#include "json/value.h"
#include "plan/graph.h"

namespace ckpt::json {

struct ReadChain {
  plan::Graph graph;
  std::vector<plan::Root> roots;
};

// alignment 0: the file's own, else 256. INVALID_ARGUMENT, CONFLICT, OVERFLOW: one line with `source`, field, value, expectation.
Status read_chain(std::string_view text, const char *source, size_t alignment, ReadChain *out);

// INVALID_ARGUMENT: a name that is not UTF-8.
Status write_chain(const char *function, const plan::Graph &graph, const std::vector<plan::Root> &roots, std::string *out);

// The name of a segment's only output, where the file gives it none: "output", made longer where a slot is called that.
template <class Names>
std::string default_output_name(const Names &slot_names) {
  std::string name = "output";
  for (bool taken = true; taken;) {
    taken = false;
    for (const auto &slot : slot_names) taken |= name == slot;
    if (taken) name += '_';
  }
  return name;
}

}  // namespace ckpt::json
