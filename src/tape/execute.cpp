// Running actions: callbacks, what they must have done, and the memory around them.
#include <cstring>

#include "tape/range.h"
#include "tape/tape.h"

namespace ckpt::tape {

using plan::Action;
using plan::ActionKind;
using plan::BlockId;
using plan::GradMode;
using plan::kNoBlock;
using plan::kNone;
using plan::Node;
using plan::Shape;
using plan::Value;

namespace {

// Gives back what a run has taken, if it comes to nothing: by a status, or by an exception on the way.
template <class Run, void (LiveMachine::*abandon)(const Run &)>
struct Abandon {
  LiveMachine *machine;
  const Run *run;
  bool armed = true;
  ~Abandon() {
    if (armed) (machine->*abandon)(*run);
  }
};
using AbandonForward = Abandon<LiveMachine::Run, &LiveMachine::abandon_forward>;
using AbandonBackward = Abandon<LiveMachine::BackwardRun, &LiveMachine::abandon_backward>;

}  // namespace

double Recording::now() const { return tape_->clock(tape_->clock_user); }

void Recording::trace(uint32_t what, uint32_t index, bool recompute) const {
  if (tape_->trace != nullptr) tape_->trace(tape_->trace_user, what, index, tape_->arena->placer().in_use(), recompute);
}

Status Recording::execute(const Action &action) {
  switch (action.kind) {
    case ActionKind::forward: return replay(action);
    case ActionKind::backward: return run_backward(action);
    case ActionKind::free: return free_value(action.index);
    case ActionKind::drop: CKPT_TRY(machine_.drop(action.index, action.want)); break;
  }
  trace(static_cast<uint32_t>(action.kind), action.index, false);
  return CKPT_OK;
}

// What the user holds stays until he lets go of it or backward begins.
Status Recording::free_value(uint32_t value) {
  if (value < value_flags_.size() && (value_flags_[value] & kValueHeld) && !finished_) {
    settle();
    disturbed_ = true;
    return CKPT_OK;
  }
  CKPT_TRY(machine_.free_value(value));
  trace(CKPT_ACTION_FREE, value, false);
  return CKPT_OK;
}

// Blocks are checked when they are freed: what overwrote a guard ran in this segment, or since its last one.
Status Recording::guards(uint32_t node) const {
  const Status status = machine_.backend().guard_status;
  if (!status) return CKPT_OK;
  return fail(status, "after segment '%s' (number %u): %s", graph_->nodes[node].shape->name().c_str(), node, last_error());
}

void Recording::open_forward(ckpt_frame *frame, uint32_t node, ckpt_frame::Mode mode, const Bits &todo, BlockId scratch) {
  const Shape &s = *graph_->nodes[node].shape;
  *frame = ckpt_frame{};
  frame->recording = this;
  frame->shape = &s;
  frame->call = &calls_[node];
  frame->node = node;
  frame->mode = mode;
  frame->todo = todo;
  frame->wanted = todo;
  frame->reachable = todo | machine_.state().live[node];
  frame->scratch = scratch == kNoBlock ? nullptr : tape_->arena->pointer(scratch);
  frame->measuring = measuring_ && mode == ckpt_frame::Mode::first;
  if (!frame->measuring) return;
  if (timed_) {
    frame->failed = mark(&frame->started_point);
    frame->stamp_point = frame->started_point;
    return;
  }
  item_seconds_.resize(graph_->item_bytes.size(), -1);
  frame->started = frame->stamp = now();
}

// A point of the stream's time.
Status Recording::mark(uint32_t *point) {
  void *event = nullptr;
  *point = 0;
  if (timeline_.points.size() == timeline_.points.capacity()) timeline_.points.reserve(2 * timeline_.points.size() + 64);
  CKPT_TRY(tape_->events.take(&event));
  *point = static_cast<uint32_t>(timeline_.points.size());
  timeline_.points.push_back(event);
  return tape_->arena->device().event_record(event, tape_->arena->stream());
}

void Recording::stamp(ckpt_frame *frame, uint32_t item) {
  if (timed_) return stamp_event(frame, item);
  const double t = now();
  if (frame->timed_item != kNone) {
    double &seconds = item_seconds_[graph_->nodes[frame->node].first_item + frame->timed_item];
    seconds = (seconds < 0 ? 0 : seconds) + (t - frame->stamp);
  }
  frame->stamp = t;
  frame->timed_item = item != kNone && frame->todo.has(item) ? item : kNone;
}

void Recording::stamp_event(ckpt_frame *frame, uint32_t item) {
  if (frame->failed) return;
  frame->failed = guarded("ckpt_frame_needs", [&]() -> Status {  // called from the user's own code
    uint32_t point = 0;
    CKPT_TRY(mark(&point));
    if (frame->timed_item != kNone)
      timeline_.spans.push_back({frame->stamp_point, point, graph_->nodes[frame->node].first_item + frame->timed_item, Timeline::What::item});
    frame->stamp_point = point;
    return CKPT_OK;
  });
  frame->timed_item = item != kNone && frame->todo.has(item) ? item : kNone;
}

// The status of a callback, or what its frame's functions found.
Status Recording::verdict(ckpt_frame *frame, Status status, const char *what) {
  if (frame->measuring) {
    stamp(frame, kNone);
    if (timed_) {
      timeline_.first_runs.push_back({frame->started_point, frame->stamp_point, frame->node, frame->todo});
    } else {
      const double total = frame->stamp - frame->started;
      counters_.forward_seconds += total;
      share_first_run(graph_->nodes[frame->node], frame->todo, total, &item_seconds_);
    }
  }
  if (status) {
    const bool told = frame->failed == status;
    if (!told) return fail(status, "the %s of segment '%s' (number %u) returned %d", what, frame->shape->name().c_str(), frame->node, status);
    return status;
  }
  return frame->failed;
}

Status Recording::check_forward_filled(ckpt_frame *frame) {
  const Shape &s = *frame->shape;
  Status bad = CKPT_OK;
  (frame->wanted - frame->asked).each([&](uint32_t k) {
    if (bad || graph_->bytes_of(frame->node, k) == 0) return;
    bad = fail(CKPT_ERROR_NOT_FILLED, "segment '%s' (number %u): its forward never asked for %s '%s', which was wanted%s", s.name().c_str(), frame->node,
               k < s.slot_count() ? "slot" : "output", s.item(k).name.c_str(), frame->mode == ckpt_frame::Mode::replay ? " in a recompute" : "");
  });
  return bad;
}

Status Recording::save_state(uint32_t node) {
  const Call &call = calls_[node];
  const ckpt_segment &segment = *call.segment;
  if (segment.state_bytes == 0) return CKPT_OK;
  states_.resize(call.state + segment.state_bytes);
  if (const Status status = segment.save_state(call.user, states_.data() + call.state); status)
    return fail(status, "save_state of segment '%s' (number %u) returned %d", segment.shape->name().c_str(), node, status);
  return CKPT_OK;
}

// The forward callback with the host state of the first run around it.
Status Recording::with_state(uint32_t node, ckpt_frame *frame) {
  const Call &call = calls_[node];
  const ckpt_segment &segment = *call.segment;
  if (segment.state_bytes == 0) return segment.forward(call.user, frame);
  std::vector<std::byte> present(segment.state_bytes);
  const char *name = segment.shape->name().c_str();
  if (const Status status = segment.save_state(call.user, present.data()); status) return fail(status, "save_state of segment '%s' (number %u) returned %d", name, node, status);
  Status status = segment.restore_state(call.user, states_.data() + call.state);
  if (status) status = fail(status, "restore_state of segment '%s' (number %u) returned %d", name, node, status);
  else status = segment.forward(call.user, frame);
  const std::string text = status ? last_error() : "";
  if (const Status back = segment.restore_state(call.user, present.data()); back && !status)
    return fail(back, "restore_state of segment '%s' (number %u) returned %d", name, node, back);
  return status ? fail_text(status, text.c_str()) : CKPT_OK;
}

Status Recording::replay(const Action &action) {
  const uint32_t node = action.index;
  LiveMachine::Run run;
  CKPT_TRY(machine_.begin_forward(node, action.want, action.in_place, &run));
  AbandonForward abandon{&machine_, &run};
  trace(CKPT_ACTION_FORWARD, node, true);
  Status status = CKPT_OK;
  if (!run.made.todo.empty()) {
    if (tape_->checks & CKPT_CHECK_INPUTS) status = check_inputs(node, "recompute");
    ckpt_frame frame;
    open_forward(&frame, node, ckpt_frame::Mode::replay, run.made.todo, run.scratch);
    const double start = timed_ ? 0 : now();
    uint32_t from = 0, to = 0;
    if (!status && timed_) status = mark(&from);
    if (!status) {
      const Range range(tape_->arena->device(), frame.shape->name(), " (recompute)");
      status = with_state(node, &frame);
      status = verdict(&frame, status, "forward (recompute)");
    }
    if (!status && timed_) {
      status = mark(&to);
      timeline_.spans.push_back({from, to, node, Timeline::What::recompute});
    } else if (!timed_) {
      counters_.recompute_seconds += now() - start;
    }
    if (!status) status = check_forward_filled(&frame);
    if (!status && (tape_->checks & CKPT_CHECK_DETERMINISM)) status = compare_recomputed(frame);
    if (!status) ++counters_.recompute;
  }
  CKPT_TRY(status);
  abandon.armed = false;
  machine_.end_forward(run);
  trace(CKPT_ACTION_FREE, node, true);
  return guards(node);
}

// A root's gradient is the caller's and stays as it is: its first contributor adds to a copy.
Status Recording::seed_gradients(uint32_t node) {
  const Node &n = graph_->nodes[node];
  for (uint32_t k = 0; k < n.shape->input_count(); ++k) {
    const uint32_t v = graph_->node_inputs[n.first_input + k];
    if (gradients_->mode[n.first_input + k] != GradMode::accumulate || graph_->values[v].producer == kNone) continue;
    for (size_t r = 0; r < gradients_->roots.size(); ++r) {
      if (gradients_->roots[r].value != v || root_grads_[r] == nullptr) continue;
      const BlockId block = machine_.grad_block(v);
      CKPT_TRY(tape_->arena->device().copy(tape_->arena->stream(), tape_->arena->pointer(block), root_grads_[r], graph_->values[v].grad_bytes, device::Copy::device_to_device));
      root_grads_[r] = nullptr;  // from here on the gradient is in the arena
    }
  }
  // A value that stands twice among the inputs: who writes first is the callback's choice, so it adds to zeros both times.
  grad_double_.assign(n.shape->input_count(), 0);
  for (uint32_t k = 0; k < n.shape->input_count(); ++k) {
    const uint32_t v = graph_->node_inputs[n.first_input + k];
    const GradMode mode = gradients_->mode[n.first_input + k];
    if (mode == GradMode::none) continue;
    bool twice = false;
    for (uint32_t j = 0; j < n.shape->input_count(); ++j)
      twice |= j != k && graph_->node_inputs[n.first_input + j] == v && gradients_->mode[n.first_input + j] != GradMode::none;
    if (!twice) continue;
    grad_double_[k] = 1;
    const Value &value = graph_->values[v];
    const bool caller = value.grad == CKPT_GRAD_CALLER;
    if (mode != GradMode::first || (caller && inputs_[value.item].accumulate)) continue;
    void *data = caller ? inputs_[value.item].grad : tape_->arena->pointer(machine_.grad_block(v));
    CKPT_TRY(tape_->arena->device().fill(tape_->arena->stream(), data, 0, value.grad_bytes));
  }
  return CKPT_OK;
}

const void *Recording::output_grad(uint32_t node, uint32_t output) const {
  const uint32_t v = graph_->nodes[node].first_value + output;
  if (const BlockId block = machine_.grad_block(v); block != kNoBlock) return tape_->arena->pointer(block);
  for (size_t r = 0; r < gradients_->roots.size(); ++r)
    if (gradients_->roots[r].value == v) return root_grads_[r];
  return nullptr;
}

void *Recording::input_grad(ckpt_frame *frame, uint32_t input, int *out_accumulate) {
  const Node &n = graph_->nodes[frame->node];
  const uint32_t v = graph_->node_inputs[n.first_input + input];
  const GradMode mode = gradients_->mode[n.first_input + input];
  grad_asked_[input] = 1;
  if (mode == GradMode::none) return nullptr;
  const Value &value = graph_->values[v];
  bool accumulate = mode == GradMode::accumulate || grad_double_[input] != 0;
  if (value.grad == CKPT_GRAD_CALLER) {
    accumulate |= inputs_[value.item].accumulate;
    if (out_accumulate != nullptr) *out_accumulate = accumulate;
    return inputs_[value.item].grad;
  }
  if (out_accumulate != nullptr) *out_accumulate = accumulate;
  return tape_->arena->pointer(machine_.grad_block(v));
}

Status Recording::check_grads_filled(ckpt_frame *frame) {
  const Node &n = graph_->nodes[frame->node];
  for (uint32_t k = 0; k < n.shape->input_count(); ++k) {
    if (gradients_->mode[n.first_input + k] == GradMode::none || grad_asked_[k]) continue;
    if (graph_->values[graph_->node_inputs[n.first_input + k]].grad_bytes == 0) continue;
    return fail(CKPT_ERROR_NOT_FILLED, "segment '%s' (number %u): its backward never asked for the gradient of input %u, which was wanted", n.shape->name().c_str(), frame->node, k);
  }
  return CKPT_OK;
}

Status Recording::run_backward_callback(uint32_t node, ckpt_frame *frame) {
  const ckpt_segment &segment = *calls_[node].segment;
  void *user = calls_[node].user;
  const Range range(tape_->arena->device(), frame->shape->name(), " (backward)");
  if (!measuring_) return verdict(frame, segment.backward(user, frame), "backward");
  if (timed_) {
    uint32_t from = 0, to = 0;
    CKPT_TRY(mark(&from));
    CKPT_TRY(verdict(frame, segment.backward(user, frame), "backward"));
    timeline_.spans.push_back({from, 0, node, Timeline::What::backward});
    const Status status = mark(&to);
    timeline_.spans.back().to = to;
    return status;
  }
  const double start = now();
  const Status status = verdict(frame, segment.backward(user, frame), "backward");
  node_backward_seconds_.resize(graph_->node_count(), -1);
  node_backward_seconds_[node] = now() - start;
  counters_.backward_seconds += node_backward_seconds_[node];
  return status;
}

Status Recording::run_backward(const Action &action) {
  const uint32_t node = action.index;
  LiveMachine::BackwardRun run;
  CKPT_TRY(machine_.begin_backward(node, action.want, *gradients_, &run));
  AbandonBackward abandon{&machine_, &run};
  if (run.runs) {
    trace(CKPT_ACTION_BACKWARD, node, false);
    Status status = seed_gradients(node);
    if (!status && (tape_->checks & CKPT_CHECK_INPUTS)) status = check_inputs(node, "backward");
    const ckpt_segment &segment = *calls_[node].segment;
    const Shape &s = *graph_->nodes[node].shape;
    if (!status && segment.backward == nullptr)
      status = fail(CKPT_ERROR_STATE, "segment '%s' (number %u) has no backward, but a gradient reaches it", s.name().c_str(), node);
    if (!status) {
      ckpt_frame frame;
      frame.recording = this;
      frame.shape = &s;
      frame.call = &calls_[node];
      frame.node = node;
      frame.mode = ckpt_frame::Mode::backward;
      frame.reachable = s.needed() | s.backward_outputs();
      frame.scratch = run.scratch == kNoBlock ? nullptr : tape_->arena->pointer(run.scratch);
      grad_asked_.assign(s.input_count(), 0);
      status = run_backward_callback(node, &frame);
      if (!status) status = check_grads_filled(&frame);
    }
    CKPT_TRY(status);
    ++counters_.backward;
  } else {
    ++counters_.skipped;
  }
  abandon.armed = false;
  machine_.end_backward(run);
  trace(CKPT_ACTION_FREE, node, false);
  return guards(node);
}

// An input whose gradient is wanted but to which nothing contributes has a gradient of zero.
Status Recording::zero_missing_gradients() {
  for (uint32_t k = 0; k < graph_->inputs.size(); ++k) {
    const uint32_t v = graph_->inputs[k];
    if (inputs_[k].grad == nullptr || inputs_[k].accumulate || gradients_->value_has_grad[v]) continue;
    CKPT_TRY(tape_->arena->device().fill(tape_->arena->stream(), inputs_[k].grad, 0, graph_->values[v].grad_bytes));
  }
  return CKPT_OK;
}

}  // namespace ckpt::tape
