#include "plan/simulate.h"

namespace ckpt::plan {

Status simulate(PaperMachine &machine, const GradientMap &gradients, std::span<const Action> actions, Simulation *out) {
  const Graph &graph = machine.graph();
  *out = Simulation{};
  bool forward_over = machine.state().nodes_run == graph.node_count();
  for (const Action &a : actions) {
    switch (a.kind) {
      case ActionKind::forward: {
        PaperMachine::Run run;
        CKPT_TRY(machine.begin_forward(a.index, a.want, a.in_place, &run));
        const double seconds = graph.seconds(a.index, run.made);
        (run.first ? out->forward_seconds : out->recompute_seconds) += seconds;
        if (!run.first && !run.made.todo.empty()) ++out->recompute_count;
        machine.end_forward(run);
        break;
      }
      case ActionKind::backward: {
        PaperMachine::BackwardRun run;
        CKPT_TRY(machine.begin_backward(a.index, a.want, gradients, &run));
        if (run.runs) out->backward_seconds += graph.nodes[a.index].backward_seconds;
        machine.end_backward(run);
        break;
      }
      case ActionKind::free: CKPT_TRY(machine.free_value(a.index)); break;
      case ActionKind::drop: CKPT_TRY(machine.drop(a.index, a.want)); break;
    }
    // What the user reads after the forward pass is held until backward begins.
    const bool gives = a.kind == ActionKind::drop || (a.kind == ActionKind::free && !graph.values[a.index].read_at_end);
    if (machine.state().nodes_run == graph.node_count() && (!forward_over || gives) && machine.state().done == kNone) {
      // The first backward, or a run again, ends the forward pass.
      if (!forward_over || out->recompute_count == 0) out->held = machine.backend().placer.in_use();
      forward_over = true;
    }
  }
  out->peak = machine.backend().placer.peak_in_use();
  out->height = machine.backend().placer.height();
  return CKPT_OK;
}

Status simulate_step(const Graph &graph, const GradientMap &gradients, const Program &program, const arena::Placer &start, Simulation *out) {
  PaperMachine machine(&graph, Paper{graph.rule, start});
  CKPT_TRY(machine.start(gradients));
  return simulate(machine, gradients, program.actions, out);
}

}  // namespace ckpt::plan
