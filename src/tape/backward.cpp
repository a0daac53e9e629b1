// Backward passes: from the rest of the plan, or from a program written for the state at hand.
#include <algorithm>

#include "plan/simulate.h"
#include "tape/learn.h"
#include "tape/tape.h"

namespace ckpt::tape {

using plan::kNone;
using plan::Root;

void Recording::finish_forward() {
  if (finished_) return;
  finished_ = true;
  counters_.held = tape_->arena->placer().in_use();
}

Status Recording::resolve_roots(std::span<const ckpt_buffer> outputs, const void *const *grads) {
  if (outputs.empty()) return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_backward: output_count is 0, expected at least one output");
  std::vector<Root> roots;
  root_grads_.clear();
  for (size_t k = 0; k < outputs.size(); ++k) {
    char what[32];
    std::snprintf(what, sizeof what, "outputs[%zu]", k);
    uint32_t v = 0;
    CKPT_TRY(check_value(outputs[k], "ckpt_backward", what, &v));
    const plan::Value &value = graph_->values[v];
    if (value.producer == kNone) return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_backward: outputs[%zu] is an input of the recording, expected a segment's output", k);
    if (value.grad == CKPT_GRAD_NONE)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_backward: outputs[%zu] is output '%s' of segment '%s', which is marked NO_GRAD", k,
                  graph_->nodes[value.producer].shape->item(value.item).name.c_str(), graph_->nodes[value.producer].shape->name().c_str());
    if (std::any_of(roots.begin(), roots.end(), [&](const Root &r) { return r.value == v; }))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_backward: outputs[%zu] was named before", k);
    const void *grad = grads != nullptr ? grads[k] : nullptr;
    roots.push_back({v, grad != nullptr});
    root_grads_.push_back(grad);
  }
  const bool known_roots = followed() && next_node_ == known_->graph->node_count() &&
                           std::equal(roots.begin(), roots.end(), known_->gradients.roots.begin(), known_->gradients.roots.end(),
                                      [](const Root &a, const Root &b) { return a.value == b.value && a.has_grad == b.has_grad; });
  if (known_roots) {
    gradients_ = &known_->gradients;
  } else {
    own_gradients_ = plan::derive_gradients(*graph_, roots);
    gradients_ = &own_gradients_;
  }
  return CKPT_OK;
}

// Is what is left of the plan's program the backward that is asked for?
bool Recording::on_plan(bool retain) const {
  return followed() && !disturbed_ && !retain && !spent_ && gradients_ == &known_->gradients && next_node_ == known_->graph->node_count();
}

bool Recording::teaches() const {
  if (!followed() || measuring_ || gradients_ != &known_->gradients) return true;
  for (uint32_t v = 0; v < next_value_; ++v)
    if ((value_flags_[v] & kValueRead) && !graph_->values[v].read_at_end && graph_->values[v].producer != kNone) return true;
  return false;
}

Status Recording::plan_rest(bool retain) {
  // By measured costs, but where ranks must agree: there by bytes, which are equal on all of them.
  if (!tape_->replan) Learner::guess_costs(&own());
  else if (own_graph_ != nullptr && measuring_) Learner::take_costs(*this, nullptr, own_graph_.get());
  plan::PaperMachine paper = machine_.with_backend(plan::Paper{graph_->rule, tape_->paper()});
  rest_ = {};
  const Status status = plan::plan_backward(paper, *gradients_, retain, tape_->budget, &rest_);
  if (status == CKPT_ERROR_BUDGET) minimum_budget_ = rest_.minimum_budget;
  return status;
}

// The plan for a recording of which no more than its structure is known, or its refusal.
Status Recording::dry_backward() {
  finish_forward();
  Result<KnownPtr> known = tape_->planned(tape_->learn(*this));
  if (!known.ok()) return known.status();
  minimum_budget_ = (*known)->plan.minimum_budget;
  if ((*known)->refused) return fail((*known)->refused, "%s", (*known)->refusal.c_str());
  predicted_peak_ = (*known)->plan.prediction.peak;
  predicted_height_ = (*known)->plan.prediction.height;
  predicted_recompute_ = (*known)->plan.prediction.recompute_seconds;
  return CKPT_OK;
}

Status Recording::backward(std::span<const ckpt_buffer> outputs, const void *const *grads, bool retain) {
  if (next_node_ == 0) return fail(CKPT_ERROR_STATE, "ckpt_backward: nothing is recorded: no segment has run since the recording began");
  if (no_backward()) return fail(CKPT_ERROR_STATE, "ckpt_backward: the recording was begun with NO_BACKWARD");
  // An own graph that a smaller recording shares with its plan may reach further than the recording did.
  if (graph_->node_count() > next_node_) {
    if (dry() || !followed()) return fail(CKPT_ERROR_INTERNAL, "ckpt_backward: the graph has %u segments, %u were recorded", graph_->node_count(), next_node_);
    depart();
  }
  CKPT_TRY(resolve_roots(outputs, grads));
  if (dry()) return dry_backward();
  finish_forward();
  for (uint8_t &flags : value_flags_) flags &= static_cast<uint8_t>(~kValueHeld);
  if (on_plan(retain)) {
    if (own_graph_ != nullptr) {  // the same program with smaller sizes
      plan::Simulation sim;
      if (!plan::simulate_step(*graph_, *gradients_, known_->plan.program, arena::Placer(), &sim)) {
        predicted_peak_ = sim.peak;
        predicted_height_ = sim.height;
      }
    }
    const std::vector<plan::Action> &actions = known_->plan.program.actions;
    for (; next_action_ < actions.size(); ++next_action_) {
      const Status status = execute(actions[next_action_]);
      if (status == CKPT_ERROR_BUDGET && machine_.shortage().any) return short_of("the planned backward at", std::min(actions[next_action_].index, next_node_ - 1));
      if (status) return status;
    }
  } else {
    if (followed() && !spent_) departed_ = true;
    CKPT_TRY(plan_rest(retain));
    for (const plan::Action &action : rest_.program.actions) {
      const Status status = execute(action);
      if (status == CKPT_ERROR_BUDGET && machine_.shortage().any) return short_of("the backward at", std::min(action.index, next_node_ - 1));
      if (status) return status;
    }
  }
  CKPT_TRY(zero_missing_gradients());
  if (tape_->checks != 0) CKPT_TRY(tape_->arena->device().synchronize(tape_->arena->stream()));
  spent_ = true;
  if (retain) machine_.rewind_backward();
  return CKPT_OK;
}

}  // namespace ckpt::tape
