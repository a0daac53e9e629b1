#include "plan/simulate.h"

#include <vector>

namespace ckpt::plan {
namespace {

// Many machines over one placer.
struct SharedPaper {
  arena::SizeRule rule;
  arena::Placer *placer;

  BlockId allocate(size_t bytes, Side side) { return placer->allocate(rule.footprint(bytes), side); }
  void free(BlockId block) noexcept { placer->free(block); }
};

template <class B>
Status perform(Machine<B> &machine, const GradientMap &gradients, const Action &a, Simulation *out) {
  switch (a.kind) {
    case ActionKind::forward: {
      typename Machine<B>::Run run;
      CKPT_TRY(machine.begin_forward(a.index, a.want, a.in_place, &run));
      const double seconds = machine.graph().seconds(a.index, run.made);
      (run.first ? out->forward_seconds : out->recompute_seconds) += seconds;
      if (!run.first && !run.made.todo.empty()) ++out->recompute_count;
      machine.end_forward(run);
      return CKPT_OK;
    }
    case ActionKind::backward: {
      typename Machine<B>::BackwardRun run;
      CKPT_TRY(machine.begin_backward(a.index, a.want, gradients, &run));
      if (run.runs) out->backward_seconds += machine.graph().nodes[a.index].backward_seconds;
      machine.end_backward(run);
      return CKPT_OK;
    }
    case ActionKind::free: return machine.free_value(a.index);
    case ActionKind::drop: return machine.drop(a.index, a.want);
  }
  return fail(CKPT_ERROR_INVALID_PLAN, "an action of unknown kind %u", static_cast<unsigned>(a.kind));
}

// What the user reads after the forward pass is held until backward begins.
bool gives_back_early(const Graph &graph, const Action &a) {
  return a.kind == ActionKind::drop || (a.kind == ActionKind::free && a.index < graph.value_count() && !graph.values[a.index].read_at_end);
}

}  // namespace

size_t forward_action_count(const Graph &graph, std::span<const Action> actions) {
  size_t count = 0;
  for (uint32_t nodes_run = 0; count < actions.size() && nodes_run < graph.node_count(); ++count)
    if (actions[count].kind == ActionKind::forward && actions[count].index == nodes_run) ++nodes_run;
  while (count < actions.size() && gives_back_early(graph, actions[count])) ++count;
  return count;
}

Status simulate(PaperMachine &machine, const GradientMap &gradients, std::span<const Action> actions, Simulation *out) {
  const Graph &graph = machine.graph();
  *out = Simulation{};
  const arena::Placer &placer = machine.backend().placer;
  const size_t forward = machine.state().nodes_run == graph.node_count() ? 0 : forward_action_count(graph, actions);
  for (size_t t = 0; t < forward; ++t) CKPT_TRY(perform(machine, gradients, actions[t], out));
  out->held = placer.in_use();
  for (size_t t = forward; t < actions.size(); ++t) CKPT_TRY(perform(machine, gradients, actions[t], out));
  out->peak = placer.peak_in_use();
  out->height = placer.height();
  return CKPT_OK;
}

Status simulate_step(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start, Simulation *out) {
  PaperMachine machine(&graph, Paper{graph.rule, start});
  CKPT_TRY(machine.start(gradients));
  return simulate(machine, gradients, program.actions, out);
}

Status simulate_in_flight(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start,
                          uint32_t in_flight, Simulation *out) {
  CKPT_TRY(simulate_step(graph, gradients, program, start, out));
  if (in_flight <= 1) return CKPT_OK;
  arena::Placer placer = start;
  const std::span<const Action> actions = program.actions;
  const size_t forward = forward_action_count(graph, actions);
  // So that every place in the pipeline is taken by every recording once, and once more.
  const uint64_t count = uint64_t{3} * in_flight;
  std::vector<Machine<SharedPaper>> machines;
  for (uint32_t k = 0; k < in_flight; ++k) machines.emplace_back(&graph, SharedPaper{graph.rule, &placer});
  Simulation ignored;
  const auto backward = [&](uint64_t recording) {
    Machine<SharedPaper> &m = machines[recording % in_flight];
    for (const Action &a : actions.subspan(forward)) CKPT_TRY(perform(m, gradients, a, &ignored));
    m.release_all();
    m = Machine<SharedPaper>(&graph, SharedPaper{graph.rule, &placer});
    return Status{CKPT_OK};
  };
  for (uint64_t r = 0; r < count; ++r) {
    Machine<SharedPaper> &m = machines[r % in_flight];
    CKPT_TRY(m.start(gradients));
    for (const Action &a : actions.first(forward)) CKPT_TRY(perform(m, gradients, a, &ignored));
    if (r + 1 >= in_flight) CKPT_TRY(backward(r + 1 - in_flight));
  }
  for (uint64_t r = count + 1 - in_flight; r < count; ++r) CKPT_TRY(backward(r));
  out->height = placer.height();
  return CKPT_OK;
}

Status simulate_unlimited(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start,
                          uint32_t in_flight, Simulation *out) {
  arena::Placer unlimited = start;
  unlimited.set_capacity(arena::kUnbounded);
  unlimited.set_limit(arena::kUnbounded);
  const Status status = simulate_in_flight(graph, gradients, program, unlimited, in_flight, out);
  if (status == CKPT_ERROR_BUDGET) return fail(CKPT_ERROR_OVERFLOW, "plan: %u recordings in flight take more than %zu bytes", in_flight, arena::kUnbounded);
  return status;
}

}  // namespace ckpt::plan
