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
  if (!followed() || gradients_ != &known_->gradients) return true;
  if (tape_->asynchronous() ? !known_->ran : measuring_ && !sampled_) return true;
  for (uint32_t v = 0; v < next_value_; ++v)
    if ((value_flags_[v] & kValueRead) && !graph_->values[v].read_at_end && graph_->values[v].producer != kNone) return true;
  return false;
}

Status Recording::plan_rest(bool retain) {
  // By measured costs, but where ranks must agree: there by bytes, which are equal on all of them.
  if (!tape_->replan || tape_->asynchronous()) Learner::guess_costs(&own());
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

// A step that no longer has the places that its plan chose for it (or has smaller blocks in them) is predicted anew. Where the
// rest of the program does not fit any more as placing goes, another one is written for what is there.
Status Recording::still_fits(bool *out) {
  *out = true;
  const bool placed = machine_.backend().placed();
  if (own_graph_ == nullptr && (placed || known_->plan.offsets.empty())) return CKPT_OK;
  machine_.backend().measure();  // the user's blocks are there, whether or not the rest takes any
  CKPT_TRY(predict_rest(*graph_));
  *out = predicted_height_ <= tape_->budget;
  return CKPT_OK;
}

Status Recording::run_actions(std::span<const plan::Action> actions, const char *doing) {
  for (; next_action_ < actions.size(); ++next_action_) {
    const Status status = execute(actions[next_action_]);
    if (status == CKPT_ERROR_BUDGET && machine_.shortage().any) return short_of(doing, std::min(actions[next_action_].index, next_node_ - 1));
    if (status) return status;
  }
  return CKPT_OK;
}

Status Recording::backward(std::span<const ckpt_buffer> outputs, const void *const *grads, bool retain) {
  if (next_node_ == 0) return fail(CKPT_ERROR_STATE, "ckpt_backward: nothing is recorded: no segment has run since the recording began");
  if (no_backward()) return fail(CKPT_ERROR_STATE, "ckpt_backward: the recording was begun with NO_BACKWARD");
  if (tape_->asynchronous() && !dry()) {
    uint32_t captured = 0;
    CKPT_TRY(tape_->stream_captured(&captured));
    if (captured != capture_)
      return fail(CKPT_ERROR_CAPTURE, captured == 0   ? "ckpt_backward: the stream was captured when the recording began, and is not any more: capture whole steps"
                                      : capture_ == 0 ? "ckpt_backward: the stream is being captured, but was not when the recording began: capture whole steps"
                                                      : "ckpt_backward: the capture is not the one that the recording began in, or was invalidated since: capture whole steps");
    if (captured != 0 && retain) return fail(CKPT_ERROR_CAPTURE, "ckpt_backward: CKPT_BACKWARD_RETAIN while the stream is captured");
  }
  // An own graph that a smaller recording shares with its plan may reach further than the recording did.
  if (graph_->node_count() > next_node_) {
    if (dry() || !followed()) return fail(CKPT_ERROR_INTERNAL, "ckpt_backward: the graph has %u segments, %u were recorded", graph_->node_count(), next_node_);
    CKPT_TRY(leave("the recording ended before its plan"));
  }
  CKPT_TRY(resolve_roots(outputs, grads));
  if (dry()) return dry_backward();
  finish_forward();
  for (uint8_t &flags : value_flags_) flags &= static_cast<uint8_t>(~kValueHeld);
  bool planned = on_plan(retain);
  if (planned) CKPT_TRY(still_fits(&planned));
  if (planned) {
    CKPT_TRY(run_actions(known_->plan.program.actions, "the planned backward at"));
  } else if (captured()) {
    return leave("its roots, what was read, or the blocks beside it are not those that were prepared");
  } else {
    settle();
    if (followed() && !spent_) departed_ = true;
    CKPT_TRY(plan_rest(retain));
    next_action_ = 0;
    CKPT_TRY(run_actions(rest_.program.actions, "the backward at"));
  }
  CKPT_TRY(zero_missing_gradients());
  if (tape_->checks != 0) CKPT_TRY(tape_->arena->device().synchronize(tape_->arena->stream()));
  spent_ = true;
  if (retain) machine_.rewind_backward();
  return CKPT_OK;
}

}  // namespace ckpt::tape
