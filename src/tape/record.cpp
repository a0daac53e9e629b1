// Recording: inputs, segments, boundaries that the user reads.
#include <algorithm>
#include <cstring>

#include "plan/generate.h"
#include "tape/handle.h"
#include "tape/range.h"
#include "tape/tape.h"

namespace ckpt::tape {

using plan::BlockId;
using plan::Graph;
using plan::kNoBlock;
using plan::kNone;
using plan::Shape;
using plan::Value;

BlockId ArenaBackend::allocate(size_t bytes, plan::Side side) {
  BlockId block = kNoBlock;
  if (placed() && !offsets.empty()) {
    block = arena->allocate_at(offsets.front(), bytes);
    offsets = offsets.subspan(1);
  } else {
    block = arena->allocate(bytes, side);
  }
  if (block != kNoBlock) measure();
  else refused_bytes = bytes;
  return block;
}

void ArenaBackend::free(BlockId block) {
  const Status status = arena->free("ckpt", block);
  if (status && guard_status == CKPT_OK) guard_status = status;
}

void ArenaBackend::close() noexcept {
  if (placed()) arena->settle();  // nothing lives there: it asks the host for nothing
  region = 0;
  offsets = {};
}

void ArenaBackend::measure() {
  const arena::Placer &placer = arena->placer();
  peak = std::max(peak, placer.in_use());
  low = std::max(low, placer.low_frontier());
  high = std::max(high, placer.high_frontier());
}

namespace {
const Graph kEmptyGraph;
}

Recording::Recording(ckpt_tape *tape) : tape_(tape), graph_(&kEmptyGraph), machine_(&kEmptyGraph, ArenaBackend{tape->arena.get()}) {}

Status Recording::begin(uint64_t key, uint32_t flags, uint64_t step, uint32_t generation, KnownPtr expected, uint32_t capture) {
  capture_ = capture;
  timed_ = !captured() && tape_->may_time();
  key_ = key;
  flags_ = flags;
  step_ = step;
  generation_ = generation;
  machine_.backend() = ArenaBackend{tape_->arena.get()};
  machine_.backend().measure();
  if (expected != nullptr) return expect(std::move(expected));
  own();
  return CKPT_OK;
}

void Recording::clear() noexcept {
  if (run_open_) machine_.abandon_forward(run_);
  machine_.release_all();
  machine_.backend().close();
  for (const Call &c : calls_) {
    if (c.release != nullptr) c.release(c.user);
    c.segment->drop();
  }
  calls_.clear();
  inputs_.clear();
  value_flags_.clear();
  watches_.clear();
  states_.clear();
  first_hashes_.clear();
  item_seconds_.clear();
  node_backward_seconds_.clear();
  if (!timeline_.empty()) timeline_.clear(&tape_->events);
  droppable_ = {};
  thin_cursor_.clear();
  protected_.clear();
  root_grads_.clear();
  known_.reset();
  gradients_ = nullptr;
  graph_ = &kEmptyGraph;
  machine_.rebind(&kEmptyGraph);
  own_graph_.reset();
  departed_ = disturbed_ = finished_ = spent_ = measuring_ = sampled_ = placed_ = run_open_ = lost_ = timed_ = false;
  capture_ = 0;
  next_action_ = 0;
  next_node_ = next_value_ = 0;
  counters_ = {};
  predicted_peak_ = predicted_height_ = minimum_budget_ = 0;
  predicted_recompute_ = 0;
}

Status Recording::add_input(const ckpt_input_desc &desc, ckpt_buffer *out) {
  if (finished_) return fail(CKPT_ERROR_STATE, "ckpt_tape_input: the recording's forward pass is over; reset it first");
  const uint8_t grad = desc.grad != nullptr ? CKPT_GRAD_CALLER : CKPT_GRAD_NONE;
  InputEvent event{desc.bytes, desc.grad_bytes != 0 ? desc.grad_bytes : desc.bytes, grad};
  lost_ = true;
  CKPT_TRY(place_input(event));
  InputData data{desc.data, desc.grad, (desc.flags & CKPT_TAPE_INPUT_ACCUMULATE) != 0, 0};
  if ((tape_->checks & CKPT_CHECK_INPUTS) && !dry()) CKPT_TRY(hash_memory(desc.data, desc.bytes, &data.hash));
  inputs_.push_back(data);
  value_flags_.push_back(0);
  *out = buffer_of(next_value_);
  ++next_value_;
  lost_ = false;
  return CKPT_OK;
}

bool Recording::names_value(ckpt_buffer buffer, uint32_t *out) const {
  const HandleParts parts = unpack_handle(buffer);
  *out = parts.index;
  return buffer != 0 && parts.tape == (tape_->id & kHandleTapeMask) && parts.generation == (generation_ & kHandleGenerationMask) && parts.index < next_value_;
}

Status Recording::check_value(ckpt_buffer buffer, const char *function, const char *what, uint32_t *out) const {
  const HandleParts parts = unpack_handle(buffer);
  if (buffer == 0) return fail(CKPT_ERROR_STALE, "%s: %s is 0, expected a boundary of this recording", function, what);
  if (parts.tape != (tape_->id & kHandleTapeMask)) return fail(CKPT_ERROR_STALE, "%s: %s is a boundary of another tape", function, what);
  if (parts.generation != (generation_ & kHandleGenerationMask))
    return fail(CKPT_ERROR_STALE, "%s: %s is a boundary of another recording (number %u, this one is %u)", function, what, parts.generation, generation_ & kHandleGenerationMask);
  if (parts.index >= next_value_) return fail(CKPT_ERROR_STALE, "%s: %s names boundary %u, but there are %u", function, what, parts.index, next_value_);
  *out = parts.index;
  return CKPT_OK;
}

ckpt_buffer Recording::buffer_of(uint32_t value) const { return pack_handle(tape_->id, generation_, value); }

Status Recording::prepare_segment(const ckpt_segment &segment, const ckpt_call &call) {
  if (finished_) return fail(CKPT_ERROR_STATE, "ckpt_segment_begin: the recording's forward pass is over; run its backward or reset it first");
  const Shape &shape = *segment.shape;
  const char *name = shape.name().c_str();
  if (call.input_count != shape.input_count())
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': call.input_count is %u, expected %u", name, call.input_count, shape.input_count());
  if (call.inputs == nullptr && call.input_count > 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': call.inputs is NULL, expected %u buffers", name, call.input_count);
  call_inputs_.resize(call.input_count);
  for (uint32_t k = 0; k < call.input_count; ++k) {
    if (!names_value(call.inputs[k], &call_inputs_[k])) {  // the text is made where there is something to tell
      const std::string what = "call.inputs[" + std::to_string(k) + "] of segment '" + name + "'";
      return check_value(call.inputs[k], "ckpt_segment_begin", what.c_str(), &call_inputs_[k]);
    }
    if (value_flags_[call_inputs_[k]] & kValueReleased)
      return fail(CKPT_ERROR_STALE, "ckpt_segment_begin: call.inputs[%u] of segment '%s' was released", k, name);
  }
  const NodeEvent sizes{&shape, {}, call.slot_bytes, call.output_bytes};
  for (uint32_t k = 0; k < shape.item_count(); ++k)
    if (sizes.bytes(k) > arena::SizeRule::kMaxBytes)
      return fail(CKPT_ERROR_OVERFLOW, "segment '%s': '%s' has %zu bytes, expected at most 2^60", name, shape.item(k).name.c_str(), sizes.bytes(k));
  if (calls_.size() == calls_.capacity()) calls_.reserve(2 * calls_.size() + 8);  // begin_segment takes the call for certain
  return CKPT_OK;
}

Status Recording::begin_segment(ckpt_segment *segment, const ckpt_call &call, ckpt_frame *frame) {
  calls_.push_back({segment, call.user, call.release, static_cast<uint32_t>(watches_.size()), call.watch_count, states_.size()});
  segment->retain();
  return begin_node(call, frame);
}

Status Recording::begin_node(const ckpt_call &call, ckpt_frame *frame) {
  const ckpt_segment &segment = *calls_.back().segment;
  placed_ = false;
  if (captured() && segment.state_bytes != 0)
    return fail(CKPT_ERROR_CAPTURE, "segment '%s' has host state (save_state), which a captured graph does not move", segment.shape->name().c_str());
  CKPT_TRY(place_node({segment.shape.get(), call_inputs_, call.slot_bytes, call.output_bytes}));
  placed_ = true;
  value_flags_.resize(next_value_ + segment.shape->output_count(), 0);
  const bool check_inputs_now = (tape_->checks & CKPT_CHECK_INPUTS) && !dry();
  for (uint32_t k = 0; k < call.watch_count; ++k) {
    watches_.push_back({call.watch[k], 0});
    if (check_inputs_now) CKPT_TRY(hash_memory(call.watch[k].data, call.watch[k].bytes, &watches_.back().hash));
  }
  if (!dry()) {
    if (check_inputs_now) CKPT_TRY(check_inputs(next_node_, "first run"));
    protected_.clear();
    Bits want = unknown_want(next_node_), in_place;
    if (followed()) {
      CKPT_TRY(follow_to_first());
      // Leaving the plan on the way (a boundary that it has dropped, say) makes this an unknown recording.
      if (followed()) {
        const plan::Action &action = known_->plan.program.actions[next_action_ - 1];
        want = action.want;
        in_place = action.in_place;
      }
    }
    if (!followed()) CKPT_TRY(check_lower_bound(next_node_));
    CKPT_TRY(bring_inputs());
    CKPT_TRY(take_first(want, in_place));
    CKPT_TRY(save_state(next_node_));
  }
  open_first(frame);
  return CKPT_OK;
}

// What an unknown recording keeps of a node: what the strategy says where it can be said without knowing the rest.
Bits Recording::unknown_want(uint32_t node) const {
  const Shape &s = *graph_->nodes[node].shape;
  if (no_backward()) return s.outputs();
  Bits keep = s.needed();
  const plan::PlanRequest &r = tape_->request;
  switch (r.strategy) {
    case CKPT_STRATEGY_EVERY_SEGMENT:
    case CKPT_STRATEGY_SQRT:
    case CKPT_STRATEGY_UNIFORM:
    case CKPT_STRATEGY_FULL: keep = Bits{}; break;
    case CKPT_STRATEGY_BLOCK: keep = node < r.k ? Bits{} : keep; break;
    case CKPT_STRATEGY_SELECTIVE: keep = plan::selected_slots(s, r) & keep; break;
    default: break;
  }
  return ((keep - s.again()) | s.keep() | s.outputs()) & (s.needed() | s.keep() | s.outputs());
}

Status Recording::bring_inputs() {
  for (uint32_t v : call_inputs_) protected_.push_back(v);
  for (uint32_t v : call_inputs_) {
    if (machine_.value_live(v)) continue;
    if (no_backward()) return fail(CKPT_ERROR_STALE, "ckpt_segment_begin: boundary %u is gone: a recording without backward drops it with its last reader", v);
    if (followed()) CKPT_TRY(leave("a segment reads a boundary that the plan has dropped"));
    CKPT_TRY(make_value(v));
  }
  return CKPT_OK;
}

// Makes a dropped boundary again. When memory runs short on the way, something else goes and the rest is planned anew; what
// was made for this segment is protected, so this ends.
Status Recording::make_value(uint32_t value) {
  while (!machine_.value_live(value)) {
    Result<plan::Program> program = plan::write_make(*graph_, machine_.state(), value);
    if (!program.ok()) return program.status();
    bool again = false;
    for (const plan::Action &action : program->actions) {
      const Status status = execute(action);
      if (status == CKPT_ERROR_BUDGET && machine_.shortage().any) {
        if (!thin()) return placed_ ? short_of("making a boundary again for", next_node_) : short_of("making a boundary again of", graph_->values[value].producer);
        again = true;
        break;
      }
      if (status) return status;
      if (action.kind == plan::ActionKind::forward)
        (action.want & graph_->nodes[action.index].shape->outputs()).each([&](uint32_t k) { protected_.push_back(graph_->value_of(action.index, k)); });
    }
    if (!again && !machine_.value_live(value)) return fail(CKPT_ERROR_INTERNAL, "boundary %u could not be made again", value);
  }
  return CKPT_OK;
}

Status Recording::take_first(const Bits &want, const Bits &in_place) {
  Bits over = in_place;
  in_place.each([&](uint32_t k) {  // not over something that the user still reads
    const uint32_t v = call_inputs_[graph_->nodes[next_node_].shape->item(k).in_place_input - 1];
    if (value_flags_[v] & kValueHeld) over.clear(k);
  });
  if (!(over == in_place)) {
    settle();
    disturbed_ = true;
  }
  // The recording goes on behind what its plan took for the last segment.
  if (const auto [node, slots] = machine_.again_slots(next_node_); !slots.empty()) CKPT_TRY(execute({plan::ActionKind::drop, node, slots, {}}));
  for (;;) {
    const Status status = machine_.begin_forward(next_node_, want, over, &run_);
    run_open_ = status == CKPT_OK;
    if (!status) trace(CKPT_ACTION_FORWARD, next_node_, false);
    if (status != CKPT_ERROR_BUDGET) return status;
    if (followed()) CKPT_TRY(leave("something else is in the way of the plan"));
    if (!thin()) return short_of("the first run of", next_node_);
  }
}

// No program at all could do with less: everything that a first run computes is there at once, and everything that a
// backward reads.
Status Recording::check_lower_bound(uint32_t node) const {
  const Shape &s = *graph_->nodes[node].shape;
  const arena::SizeRule &rule = graph_->rule;
  size_t forward = s.forward_scratch() != 0 ? rule.footprint(s.forward_scratch()) : 0;
  size_t backward = s.backward_scratch() != 0 ? rule.footprint(s.backward_scratch()) : 0;
  for (uint32_t k = 0; k < s.item_count(); ++k) {
    if (s.caller().has(k)) continue;
    const size_t bytes = graph_->item_footprint(node, k);
    const bool may_overlay = k >= s.slot_count() && s.item(k).in_place_input != 0;
    forward += may_overlay ? 0 : bytes;
    if ((s.needed() | s.backward_outputs()).has(k)) backward += bytes;
  }
  for (uint32_t k = 0; k < call_inputs_.size(); ++k) {
    const uint32_t v = call_inputs_[k];
    if (graph_->values[v].caller || std::find(call_inputs_.begin(), call_inputs_.begin() + k, v) != call_inputs_.begin() + k) continue;
    forward += rule.footprint(graph_->values[v].bytes);
    if (s.backward_reads_input(k)) backward += rule.footprint(graph_->values[v].bytes);
  }
  const size_t bound = no_backward() ? forward : std::max(forward, backward);
  if (bound <= tape_->budget) return CKPT_OK;
  return fail(CKPT_ERROR_BUDGET, "segment '%s' (number %u) wants %zu bytes at once %s, the budget is %zu; no budget below %zu can work",
              s.name().c_str(), node, bound, forward >= bound ? "in its forward" : "in its backward", tape_->budget, bound);
}

Status Recording::short_of(const char *doing, uint32_t node) const {
  const LiveMachine::Shortage &s = machine_.shortage();
  const Shape &shape = *graph_->nodes[node].shape;
  const char *what = "scratch or a gradient";
  if (s.node != kNone && s.item != kNone) what = graph_->nodes[s.node].shape->item(s.item).name.c_str();
  const arena::Placer &placer = tape_->arena->placer();
  size_t bound = placer.in_use() + graph_->rule.footprint(s.bytes);
  return fail(CKPT_ERROR_BUDGET, "%s segment '%s' (number %u) wants %zu bytes for '%s' of segment '%s', %zu of the budget's %zu are in use and nothing more can be dropped; at least %zu are needed",
              doing, shape.name().c_str(), node, graph_->rule.footprint(s.bytes), what,
              s.node == kNone ? shape.name().c_str() : graph_->nodes[s.node].shape->name().c_str(), placer.in_use(), tape_->budget, bound);
}

void Recording::open_first(ckpt_frame *frame) {
  if (dry()) {
    *frame = ckpt_frame{};
    frame->recording = this;
    frame->shape = graph_->nodes[next_node_].shape;
    frame->call = &calls_.back();
    frame->node = next_node_;
    frame->mode = ckpt_frame::Mode::dry;
    return;
  }
  open_forward(frame, next_node_, ckpt_frame::Mode::first, run_.made.todo, run_.scratch);
}

Status Recording::run_first(ckpt_frame *frame) {
  if (dry()) return CKPT_OK;
  const Range range(tape_->arena->device(), frame->shape->name(), "");
  return calls_[frame->node].segment->forward(calls_[frame->node].user, frame);
}

Status Recording::end_segment(ckpt_frame *frame, Status status, ckpt_buffer *outputs) {
  const uint32_t node = frame->node;
  const Shape &s = *graph_->nodes[node].shape;
  if (!dry()) {
    status = verdict(frame, status, "forward");
    if (!status) status = check_forward_filled(frame);
    if (!status && (tape_->checks & CKPT_CHECK_DETERMINISM)) status = hash_first_run(*frame);
    if (!status && (tape_->checks & CKPT_CHECK_RECOMPUTE)) status = check_reads(*frame);
    run_open_ = false;
    if (status) {
      machine_.abandon_forward(run_);
      return status;
    }
    machine_.end_forward(run_);
    ++counters_.forward;
    CKPT_TRY(guards(node));
  } else if (status) {
    return verdict(frame, status, "forward");
  }
  next_node_ = node + 1;
  placed_ = false;
  const uint32_t first_value = graph_->nodes[node].first_value;
  next_value_ = first_value + s.output_count();
  if (outputs != nullptr)
    for (uint32_t k = 0; k < s.output_count(); ++k) outputs[k] = buffer_of(first_value + k);
  if (dry()) return CKPT_OK;
  trace(CKPT_ACTION_FREE, first_value, false);
  if (followed()) return follow_trailing();
  note_droppable(node);
  return CKPT_OK;
}

Status Recording::release_value(ckpt_buffer buffer) {
  uint32_t v = 0;
  CKPT_TRY(check_value(buffer, "ckpt_tape_release", "buffer", &v));
  value_flags_[v] = static_cast<uint8_t>((value_flags_[v] & ~kValueHeld) | kValueReleased);
  if (dry() || !no_backward() || graph_->values[v].caller || !machine_.value_live(v)) return CKPT_OK;
  CKPT_TRY(machine_.free_value(v, true));
  trace(CKPT_ACTION_FREE, v, false);
  return CKPT_OK;
}

Status Recording::read(ckpt_buffer buffer, const void **out) {
  uint32_t v = 0;
  CKPT_TRY(check_value(buffer, "ckpt_tape_read", "buffer", &v));
  value_flags_[v] |= kValueRead;
  if (dry()) return fail(CKPT_ERROR_STATE, "ckpt_tape_read: a dry recording has no data");
  if (value_flags_[v] & kValueReleased) return fail(CKPT_ERROR_STALE, "ckpt_tape_read: boundary %u was released", v);
  if (spent_) return fail(CKPT_ERROR_STATE, "ckpt_tape_read: the recording's backward has run");
  if (!machine_.value_live(v)) {
    if (no_backward()) return fail(CKPT_ERROR_STALE, "ckpt_tape_read: boundary %u is gone", v);
    if (captured()) return fail(CKPT_ERROR_CAPTURE, "ckpt_tape_read: boundary %u was dropped, and is not made again while the stream is captured: read it in the steps before ckpt_tape_prepare", v);
    lost_ = true;
    settle();
    disturbed_ = true;
    protected_.clear();
    CKPT_TRY(make_value(v));
    lost_ = false;
  }
  value_flags_[v] |= kValueHeld;
  *out = value_data(v);
  return CKPT_OK;
}

const void *Recording::value_data(uint32_t value) const {
  const Value &v = graph_->values[value];
  if (v.producer == kNone) return inputs_[v.item].data;
  return item_data(v.producer, v.item);
}

void *Recording::item_data(uint32_t node, uint32_t item) const {
  const Shape &s = *graph_->nodes[node].shape;
  if (s.caller().has(item)) return calls_[node].segment->output_memory[item - s.slot_count()];
  const BlockId block = machine_.item_block(node, item);
  return block == kNoBlock ? nullptr : tape_->arena->pointer(block);
}

}  // namespace ckpt::tape
