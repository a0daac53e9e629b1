// What the C handles of plans are. Immutable; shared between threads.
#pragma once

#include <memory>
#include <vector>

#include "ckpt/plan.h"
#include "plan/exchange.h"
#include "plan/make_plan.h"

struct ckpt_chain {
  ckpt_chain(std::shared_ptr<const ckpt::plan::Graph> g, std::vector<ckpt::plan::Root> r) : graph(std::move(g)), roots(std::move(r)) {}
  std::shared_ptr<const ckpt::plan::Graph> graph;
  std::vector<ckpt::plan::Root> roots;
};

struct ckpt_plan {
  ckpt_plan(ckpt::plan::Planned p, std::shared_ptr<const ckpt::plan::Graph> g, std::vector<ckpt::plan::Root> r, size_t budget)
      : planned(std::move(p)), graph(std::move(g)), roots(std::move(r)), graph_hash(graph->hash()), budget_bytes(budget), actions(ckpt::plan::program_to_c(*graph, planned.program.actions)) {}
  uint64_t hash() const { return ckpt::plan::program_hash(graph_hash, actions); }

  ckpt::plan::Planned planned;
  std::shared_ptr<const ckpt::plan::Graph> graph;  // that it was made for
  std::vector<ckpt::plan::Root> roots;
  double plan_seconds = 0;
  uint64_t graph_hash;
  size_t budget_bytes;
  std::vector<ckpt_action> actions;  // as C has them
};

namespace ckpt::plan {

// Shared by ckpt_segment_create and ckpt_chain_create: one slot or output as the ABI has it. `segment` names it in errors.
Status read_slot(const char *function, const char *segment, const ckpt_slot &from, uint32_t index, Item *to);
Status read_output(const char *function, const char *segment, const ckpt_output &from, uint32_t index, uint32_t slot_count, Item *to);

}  // namespace ckpt::plan
