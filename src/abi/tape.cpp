#include "ckpt/tape.h"

#include <algorithm>
#include <cstdio>

#include "abi/handle.h"
#include "abi/struct_size.h"
#include "plan/handles.h"
#include "plan/verify.h"
#include "tape/tape.h"

namespace {

using ckpt::abi::object;
using ckpt::abi::read_struct;
using ckpt::fail;
using ckpt::guarded;
using ckpt::Ref;
using ckpt::tape::Recording;

constexpr size_t kSegmentDescFirst = 120, kCallFirst = 64, kTapeDescFirst = 72, kInputDescFirst = 40, kStatsFirst = 176;
static_assert(sizeof(ckpt_segment_desc) >= kSegmentDescFirst && sizeof(ckpt_call) >= kCallFirst && sizeof(ckpt_tape_desc) >= kTapeDescFirst &&
              sizeof(ckpt_input_desc) >= kInputDescFirst && sizeof(ckpt_tape_stats) >= kStatsFirst);
constexpr size_t kSlotFirst = 48, kOutputFirst = 64;
static_assert(sizeof(ckpt_slot) >= kSlotFirst && sizeof(ckpt_output) >= kOutputFirst);

ckpt_status null_argument(const char *function, const char *name, const char *expected) {
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected %s", function, name, expected);
}

// One call on a tape: keeps it alive, enters its arena and bounds it by the tape's budget.
class Entered {
 public:
  Entered(ckpt_tape *tape, const char *function) : tape_(Ref<ckpt_tape>::share(tape)), arena_(tape->arena), status_(arena_->enter(function)) {
    if (status_) return;
    if (tape->closed) {
      arena_->leave();
      status_ = fail(CKPT_ERROR_STALE, "%s: the tape was destroyed", function);
      return;
    }
    arena_->set_limit(tape->budget);
  }
  Entered(const Entered &) = delete;
  Entered &operator=(const Entered &) = delete;
  ~Entered() {
    if (status_) return;
    arena_->set_limit(ckpt::arena::kUnbounded);
    tape_->frame_is_open.store(tape_->frame_open());
    if (tape_->closed.load() && !tape_->frame_open()) tape_->finish_close();
    arena_->leave();
  }
  ckpt_status status() const { return status_; }

 private:
  Ref<ckpt_tape> tape_;
  Ref<ckpt::arena::Arena> arena_;
  ckpt_status status_;
};

ckpt_status no_open_frame(const ckpt_tape *tape, const char *function) {
  if (!tape->frame_open()) return CKPT_OK;
  return fail(CKPT_ERROR_STATE, "%s: segment '%s' (number %u) has begun and not ended", function, tape->frame.shape->name().c_str(), tape->frame.node);
}

// What a good step teaches. If that fails (for want of memory) the tape knows no more than before, and the step is good
// all the same.
void learn(ckpt_tape *tape, Recording &recording) noexcept {
  try {
    tape->teach(&recording);
  } catch (...) {
  }
}

// The step's end, good or bad.
void end_step(ckpt_tape *tape) {
  tape->note(*tape->current);
  tape->end_recording();
}

void end_flight(ckpt_recording *recording) {
  --recording->tape->flying;
  recording->tape->recycle(std::move(recording->recording));
}

// After an error of memory or of a callback the recording is gone; so is one that only a refused call has started.
void end_if_lost(ckpt_tape *tape) {
  if (tape->current == nullptr) return;
  if (tape->current->lost()) end_step(tape);
  else if (!tape->begun && tape->current->empty()) tape->end_recording();
}

ckpt_status read_items(const ckpt_segment_desc &d, std::vector<ckpt::plan::Item> *slots, std::vector<ckpt::plan::Item> *outputs, std::vector<void *> *memory) {
  for (uint32_t k = 0; k < d.slot_count; ++k) {
    ckpt_slot s;
    CKPT_TRY(ckpt::abi::read_element("ckpt_segment_create", "desc.slots", d.slots, d.slot_size, kSlotFirst, k, &s));
    slots->emplace_back();
    CKPT_TRY(ckpt::plan::read_slot("ckpt_segment_create", d.name, s, k, &slots->back()));
  }
  for (uint32_t k = 0; k < d.output_count; ++k) {
    ckpt_output o;
    CKPT_TRY(ckpt::abi::read_element("ckpt_segment_create", "desc.outputs", d.outputs, d.output_size, kOutputFirst, k, &o));
    outputs->emplace_back();
    CKPT_TRY(ckpt::plan::read_output("ckpt_segment_create", d.name, o, k, d.slot_count, &outputs->back()));
    memory->push_back(o.memory);
  }
  return CKPT_OK;
}

ckpt_status check_segment_desc(const ckpt_segment_desc &d) {
  const char *fn = "ckpt_segment_create";
  if (d.name == nullptr || d.name[0] == '\0') return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.name is %s, expected a name", fn, d.name == nullptr ? "NULL" : "empty");
  if (d.flags != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': desc.flags is 0x%x, expected 0", fn, d.name, d.flags);
  if (d.reserved != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': desc.reserved is %u, expected 0", fn, d.name, d.reserved);
  if (d.slot_count > ckpt::Bits::kCapacity || d.output_count > ckpt::Bits::kCapacity)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s' has %u slots and %u outputs, expected at most %u together", fn, d.name, d.slot_count, d.output_count, ckpt::Bits::kCapacity);
  if (d.input_count > 65536) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s' has %u inputs, expected at most 65536", fn, d.name, d.input_count);
  if (d.slot_count > 0 && d.slots == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': desc.slots is NULL, expected %u slots", fn, d.name, d.slot_count);
  if (d.output_count > 0 && d.outputs == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': desc.outputs is NULL, expected %u outputs", fn, d.name, d.output_count);
  const bool save = d.save_state != nullptr, restore = d.restore_state != nullptr, bytes = d.state_bytes > 0;
  if (save != restore || save != bytes)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': save_state, restore_state and state_bytes (%zu) must be given together", fn, d.name, d.state_bytes);
  constexpr size_t kMax = ckpt::arena::SizeRule::kMaxBytes;
  if (d.forward_scratch_bytes > kMax || d.backward_scratch_bytes > kMax || d.state_bytes > kMax)
    return fail(CKPT_ERROR_OVERFLOW, "%s: segment '%s': scratch or state of more than 2^60 bytes", fn, d.name);
  return CKPT_OK;
}

}  // namespace

extern "C" {

ckpt_status ckpt_segment_create(const ckpt_segment_desc *desc, ckpt_segment **out_segment) {
  if (out_segment == nullptr) return null_argument(__func__, "out_segment", "an address");
  *out_segment = nullptr;
  ckpt_segment_desc d;
  CKPT_TRY(read_struct(__func__, "desc", desc, kSegmentDescFirst, &d));
  return guarded(__func__, [&]() -> ckpt_status {
    CKPT_TRY(check_segment_desc(d));
    auto segment = std::make_unique<ckpt_segment>();
    std::vector<ckpt::plan::Item> slots, outputs;
    CKPT_TRY(read_items(d, &slots, &outputs, &segment->output_memory));
    std::vector<uint32_t> input_flags(d.input_count, 0);
    if (d.input_flags != nullptr) input_flags.assign(d.input_flags, d.input_flags + d.input_count);
    auto shape = ckpt::plan::Shape::create(d.name, std::move(slots), std::move(outputs), std::move(input_flags), d.forward_scratch_bytes,
                                           d.backward_scratch_bytes, d.forward != nullptr, false);
    if (!shape.ok()) return shape.status();
    segment->shape = std::make_shared<const ckpt::plan::Shape>(std::move(*shape));
    segment->forward = d.forward;
    segment->backward = d.backward;
    segment->save_state = d.save_state;
    segment->restore_state = d.restore_state;
    segment->state_bytes = d.state_bytes;
    *out_segment = segment.release();
    return CKPT_OK;
  });
}

void ckpt_segment_destroy(ckpt_segment *segment) {
  if (segment != nullptr) segment->drop();
}

ckpt_status ckpt_tape_create(const ckpt_tape_desc *desc, ckpt_tape **out_tape) {
  if (out_tape == nullptr) return null_argument(__func__, "out_tape", "an address");
  *out_tape = nullptr;
  ckpt_tape_desc d;
  CKPT_TRY(read_struct(__func__, "desc", desc, kTapeDescFirst, &d));
  return guarded(__func__, [&]() -> ckpt_status {
    auto tape = ckpt_tape::create(d, d.arena != nullptr ? Ref<ckpt::arena::Arena>::share(object(d.arena)) : Ref<ckpt::arena::Arena>());
    if (!tape.ok()) return tape.status();
    *out_tape = tape->leave();
    return CKPT_OK;
  });
}

void ckpt_tape_destroy(ckpt_tape *tape) {
  if (tape != nullptr) tape->close();
}

ckpt_status ckpt_tape_set_step(ckpt_tape *tape, uint64_t step) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  if (tape->current != nullptr) return fail(CKPT_ERROR_STATE, "%s: a recording is in progress; run its backward or reset it first", __func__);
  if (step >= uint64_t{1} << 36) return fail(CKPT_ERROR_OVERFLOW, "%s: step is %llu, expected below 2^36", __func__, static_cast<unsigned long long>(step));
  tape->step = step;
  return CKPT_OK;
}

ckpt_status ckpt_tape_get_step(const ckpt_tape *tape, uint64_t *out_step) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  if (out_step == nullptr) return null_argument(__func__, "out_step", "an address");
  *out_step = tape->step;
  return CKPT_OK;
}

ckpt_status ckpt_tape_begin(ckpt_tape *tape, uint64_t key, uint32_t flags) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  if (flags & ~uint32_t{CKPT_TAPE_DRY | CKPT_TAPE_NO_BACKWARD}) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: flags are 0x%x, expected CKPT_TAPE_DRY and CKPT_TAPE_NO_BACKWARD only", __func__, flags);
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (tape->current != nullptr) return fail(CKPT_ERROR_STATE, "%s: a recording is in progress; run its backward or reset it first", __func__);
  return guarded(__func__, [&] { return tape->begin(key, flags); });
}

ckpt_status ckpt_tape_input(ckpt_tape *tape, const ckpt_input_desc *desc, ckpt_buffer *out_buffer) {
  if (out_buffer == nullptr) return null_argument(__func__, "out_buffer", "an address");
  *out_buffer = 0;
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  ckpt_input_desc d;
  CKPT_TRY(read_struct(__func__, "desc", desc, kInputDescFirst, &d));
  if (d.flags & ~uint32_t{CKPT_TAPE_INPUT_ACCUMULATE}) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.flags are 0x%x, expected CKPT_TAPE_INPUT_ACCUMULATE or 0", __func__, d.flags);
  if (d.bytes > ckpt::arena::SizeRule::kMaxBytes || d.grad_bytes > ckpt::arena::SizeRule::kMaxBytes) return fail(CKPT_ERROR_OVERFLOW, "%s: desc.bytes is %zu, expected at most 2^60", __func__, d.bytes);
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (d.data == nullptr && d.bytes != 0 && !(tape->current != nullptr && tape->current->dry()))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.data is NULL, expected %zu bytes", __func__, d.bytes);
  const ckpt_status status = guarded(__func__, [&]() -> ckpt_status {
    Recording *r = nullptr;
    CKPT_TRY(tape->recording(&r));
    return r->add_input(d, out_buffer);
  });
  if (status) end_if_lost(tape);
  return status;
}

}  // extern "C"

namespace {

// Validates, then begins. After `begun` a failure ends the recording.
ckpt_status begin_segment(const char *function, ckpt_tape *tape, const ckpt_segment *segment, const ckpt_call &call, bool *begun) {
  if (segment == nullptr) return null_argument(function, "segment", "a segment");
  if (call.reserved != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: call.reserved is %u, expected 0", function, call.reserved);
  if (call.watch_count > 0 && call.watch == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: call.watch is NULL, expected %u entries", function, call.watch_count);
  Recording *r = nullptr;
  CKPT_TRY(tape->recording(&r));
  CKPT_TRY(r->prepare_segment(*segment, call));
  *begun = true;
  return r->begin_segment(const_cast<ckpt_segment *>(segment), call, &tape->frame);
}

// The call's user, when the call comes to nothing. One that cannot be read has none.
void release_call(const ckpt_call *call) {
  ckpt_call c;
  if (call == nullptr) return;
  char text[1024];  // the caller's failure is the one to tell
  const ckpt_status told = ckpt::last_status();
  std::snprintf(text, sizeof text, "%s", ckpt::last_error());
  if (read_struct("call", "call", call, kCallFirst, &c) == CKPT_OK && c.release != nullptr) c.release(c.user);
  (void)ckpt::fail_text(told, text);
}

ckpt_status begin_or_release(const char *function, ckpt_tape *tape, const ckpt_segment *segment, const ckpt_call *call) {
  ckpt_call c;
  CKPT_TRY(read_struct(function, "call", call, kCallFirst, &c));
  bool begun = false;
  ckpt_status status = no_open_frame(tape, function);
  if (!status) status = guarded(function, [&] { return begin_segment(function, tape, segment, c, &begun); });
  if (!status) return status;
  if (begun) {
    tape->frame.mode = ckpt_frame::Mode::closed;
    end_step(tape);
  } else {
    end_if_lost(tape);
    release_call(call);
  }
  return status;
}

// `body` on a tape that is entered. It releases the call by itself.
template <class F>
ckpt_status with_call(const char *function, ckpt_tape *tape, const ckpt_call *call, F &&body) {
  ckpt_status status = tape == nullptr ? null_argument(function, "tape", "a tape") : CKPT_OK;
  if (!status) {
    Entered entered(tape, function);
    status = entered.status();
    if (!status) return body();
  }
  release_call(call);
  return status;
}

ckpt_status end_segment(const char *function, ckpt_tape *tape, ckpt_status status, ckpt_buffer *out_outputs) {
  const uint32_t count = tape->frame.shape->output_count();
  ckpt_frame *frame = &tape->frame;
  const ckpt_status result = guarded(function, [&]() -> ckpt_status {
    if (!status && count > 0 && out_outputs == nullptr) {
      (void)tape->current->end_segment(frame, CKPT_ERROR_INVALID_ARGUMENT, nullptr);
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: out_outputs is NULL, expected room for the %u outputs of segment '%s'", function, count, frame->shape->name().c_str());
    }
    return tape->current->end_segment(frame, status, out_outputs);
  });
  frame->mode = ckpt_frame::Mode::closed;
  if (result) {
    if (out_outputs != nullptr) std::fill_n(out_outputs, count, ckpt_buffer{0});
    end_step(tape);
  }
  return result;
}

ckpt_status backward(const char *function, Recording &r, const ckpt_buffer *outputs, const void *const *grads, uint32_t count, uint32_t flags) {
  if (flags & ~uint32_t{CKPT_BACKWARD_RETAIN}) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: flags are 0x%x, expected CKPT_BACKWARD_RETAIN or 0", function, flags);
  if (outputs == nullptr && count > 0) return null_argument(function, "outputs", "buffers");
  return r.backward({outputs, count}, grads, (flags & CKPT_BACKWARD_RETAIN) != 0);
}

}  // namespace

extern "C" {

ckpt_status ckpt_segment_begin(ckpt_tape *tape, const ckpt_segment *segment, const ckpt_call *call, ckpt_frame **out_frame) {
  if (out_frame == nullptr) {
    const ckpt_status status = null_argument(__func__, "out_frame", "an address");
    release_call(call);
    return status;
  }
  *out_frame = nullptr;
  return with_call(__func__, tape, call, [&, function = __func__]() -> ckpt_status {
    CKPT_TRY(begin_or_release(function, tape, segment, call));
    tape->frame_is_open.store(true);
    *out_frame = &tape->frame;
    tape->retain();  // until the frame has ended
    return CKPT_OK;
  });
}

ckpt_status ckpt_segment_end(ckpt_frame *frame, ckpt_status status, ckpt_buffer *out_outputs) {
  if (frame == nullptr) return null_argument(__func__, "frame", "the frame of ckpt_segment_begin");
  if (frame->mode == ckpt_frame::Mode::closed || frame->recording == nullptr) return fail(CKPT_ERROR_STATE, "%s: no segment has begun, or it has ended", __func__);
  ckpt_tape *tape = &frame->recording->tape();
  if (frame != &tape->frame) return fail(CKPT_ERROR_STATE, "%s: the frame of a callback ends with its callback", __func__);
  ckpt_status result;
  bool closed = false;
  {
    Entered entered(tape, __func__);
    if (entered.status() == CKPT_ERROR_STALE) closed = true;
    else CKPT_TRY(entered.status());
    result = closed ? fail(CKPT_ERROR_STALE, "%s: the tape was destroyed", __func__) : end_segment(__func__, tape, status, out_outputs);
  }
  if (closed) {
    tape->frame.mode = ckpt_frame::Mode::closed;
    tape->frame_is_open.store(false);
    tape->finish_close();
  }
  tape->drop();
  return result;
}

ckpt_status ckpt_segment_run(ckpt_tape *tape, const ckpt_segment *segment, const ckpt_call *call, ckpt_buffer *out_outputs) {
  return with_call(__func__, tape, call, [&, function = __func__]() -> ckpt_status {
    if (segment != nullptr && segment->forward == nullptr && !(tape->current != nullptr && tape->current->dry())) {
      const ckpt_status status = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s' has no forward; write its code between ckpt_segment_begin and ckpt_segment_end", function,
                                      segment->shape->name().c_str());
      release_call(call);
      return status;
    }
    CKPT_TRY(begin_or_release(function, tape, segment, call));
    const ckpt_status status = guarded(function, [&] { return tape->current->run_first(&tape->frame); });
    return end_segment(function, tape, status, out_outputs);
  });
}

ckpt_status ckpt_tape_release(ckpt_tape *tape, ckpt_buffer buffer) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (tape->current == nullptr) return fail(CKPT_ERROR_STALE, "%s: nothing is recorded (a backward without RETAIN, a failed step and a reset end a recording)", __func__);
  return tape->current->release_value(buffer);
}

ckpt_status ckpt_tape_read(ckpt_tape *tape, ckpt_buffer buffer, const void **out_data) {
  if (out_data == nullptr) return null_argument(__func__, "out_data", "an address");
  *out_data = nullptr;
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (tape->current == nullptr) return fail(CKPT_ERROR_STALE, "%s: nothing is recorded (a backward without RETAIN, a failed step and a reset end a recording)", __func__);
  const ckpt_status status = guarded(__func__, [&] { return tape->current->read(buffer, out_data); });
  if (status) end_if_lost(tape);
  return status;
}

ckpt_status ckpt_tape_reset(ckpt_tape *tape) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (tape->current != nullptr) end_step(tape);
  return CKPT_OK;
}

ckpt_status ckpt_backward(ckpt_tape *tape, const ckpt_buffer *outputs, const void *const *output_grads, uint32_t output_count, uint32_t flags) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (tape->current == nullptr) return fail(CKPT_ERROR_STATE, "%s: nothing is recorded (a backward without RETAIN, a failed step and a reset end a recording)", __func__);
  const bool first = !tape->current->spent();
  const ckpt_status status = guarded(__func__, [&, function = __func__] { return backward(function, *tape->current, outputs, output_grads, output_count, flags); });
  if (!status && tape->current->captured()) {
    tape->replayable = true;  // the graph's steps are those of ckpt_tape_replay
    tape->captured_in = tape->current->capture();
  } else if (!status && !tape->current->dry() && first) {
    ++tape->step;
    learn(tape, *tape->current);
  }
  if (!status && (flags & CKPT_BACKWARD_RETAIN)) tape->note(*tape->current);
  else end_step(tape);
  return status;
}

ckpt_status ckpt_tape_detach(ckpt_tape *tape, ckpt_recording **out_recording) {
  if (out_recording == nullptr) return null_argument(__func__, "out_recording", "an address");
  *out_recording = nullptr;
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  if (tape->current == nullptr || tape->current->node_count() == 0) return fail(CKPT_ERROR_STATE, "%s: nothing is recorded (a backward without RETAIN, a failed step and a reset end a recording)", __func__);
  if (tape->current->dry() || tape->current->no_backward()) return fail(CKPT_ERROR_STATE, "%s: a recording that is dry or without backward cannot be detached", __func__);
  if (tape->current->captured()) return fail(CKPT_ERROR_CAPTURE, "%s: the recording goes into a graph: its backward runs before the capture ends", __func__);
  return guarded(__func__, [&]() -> ckpt_status {
    auto handle = std::make_unique<ckpt_recording>();
    handle->tape = Ref<ckpt_tape>::share(tape);
    tape->current->finish_forward();
    if (!tape->current->spent()) ++tape->step;
    handle->recording = std::move(tape->current);
    ++tape->flying;
    *out_recording = handle.release();
    return CKPT_OK;
  });
}

ckpt_status ckpt_recording_backward(ckpt_recording *recording, const ckpt_buffer *outputs, const void *const *output_grads, uint32_t output_count, uint32_t flags) {
  if (recording == nullptr) return null_argument(__func__, "recording", "a recording");
  ckpt_tape *tape = recording->tape.get();
  ckpt::arena::Lock lock(*tape->arena, __func__);
  CKPT_TRY(lock.status());
  if (recording->recording == nullptr) return fail(CKPT_ERROR_STATE, "%s: the recording's backward has run", __func__);
  Recording &r = *recording->recording;
  tape->arena->set_limit(tape->budget);
  const bool first = !r.spent();
  const ckpt_status status = guarded(__func__, [&, function = __func__] { return backward(function, r, outputs, output_grads, output_count, flags); });
  if (!status && first) learn(tape, r);
  tape->note(r);
  if (status || !(flags & CKPT_BACKWARD_RETAIN)) end_flight(recording);
  tape->arena->set_limit(ckpt::arena::kUnbounded);
  return status;
}

ckpt_status ckpt_recording_read(ckpt_recording *recording, ckpt_buffer buffer, const void **out_data) {
  if (out_data == nullptr) return null_argument(__func__, "out_data", "an address");
  *out_data = nullptr;
  if (recording == nullptr) return null_argument(__func__, "recording", "a recording");
  ckpt::arena::Lock lock(*recording->tape->arena, __func__);
  CKPT_TRY(lock.status());
  if (recording->recording == nullptr) return fail(CKPT_ERROR_STALE, "%s: the recording's backward has run", __func__);
  const ckpt_status status = guarded(__func__, [&] { return recording->recording->read(buffer, out_data); });
  if (status && recording->recording->lost()) end_flight(recording);
  return status;
}

void ckpt_recording_destroy(ckpt_recording *recording) {
  if (recording != nullptr) recording->close();
}

ckpt_status ckpt_tape_chain(ckpt_tape *tape, uint64_t key, ckpt_chain **out_chain) {
  if (out_chain == nullptr) return null_argument(__func__, "out_chain", "an address");
  *out_chain = nullptr;
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  return guarded(__func__, [&, function = __func__]() -> ckpt_status {
    const ckpt::tape::KnownPtr known = tape->cache.find(key);
    if (known == nullptr) return fail(CKPT_ERROR_NOT_FOUND, "%s: no recording is known by key %llu", function, static_cast<unsigned long long>(key));
    *out_chain = new ckpt_chain(known->graph, known->gradients.roots);
    return CKPT_OK;
  });
}

ckpt_status ckpt_tape_plan(ckpt_tape *tape, uint64_t key, ckpt_plan **out_plan) {
  if (out_plan == nullptr) return null_argument(__func__, "out_plan", "an address");
  *out_plan = nullptr;
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  return guarded(__func__, [&, function = __func__]() -> ckpt_status {
    auto known = tape->known_plan(function, key);
    if (!known.ok()) return known.status();
    *out_plan = new ckpt_plan((*known)->plan, (*known)->graph, (*known)->gradients.roots, tape->budget);
    return CKPT_OK;
  });
}

ckpt_status ckpt_tape_adopt(ckpt_tape *tape, uint64_t key, const ckpt_plan *plan) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  if (tape->current != nullptr) return fail(CKPT_ERROR_STATE, "%s: a recording is in progress; plans change between steps", __func__);
  return guarded(__func__, [&] { return tape->adopt(key, *plan); });
}

ckpt_status ckpt_tape_prepare(ckpt_tape *tape, uint64_t key) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  if (tape->current != nullptr) return fail(CKPT_ERROR_STATE, "%s: a recording is in progress", __func__);
  return guarded(__func__, [&, function = __func__] { return tape->prepare(function, key); });
}

ckpt_status ckpt_tape_replay(ckpt_tape *tape) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  CKPT_TRY(no_open_frame(tape, __func__));
  return tape->replay(__func__);
}

ckpt_status ckpt_tape_get_stats(const ckpt_tape *tape, ckpt_tape_stats *out_stats) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  CKPT_TRY(ckpt::abi::check_out_struct(__func__, "out_stats", out_stats, kStatsFirst));
  ckpt_tape_stats stats = tape->stats();
  ckpt::abi::write_struct(stats, out_stats);
  return CKPT_OK;
}

ckpt_status ckpt_tape_set_trace(ckpt_tape *tape, ckpt_trace_fn trace, void *user) {
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  Entered entered(tape, __func__);
  CKPT_TRY(entered.status());
  tape->trace = trace;
  tape->trace_user = user;
  return CKPT_OK;
}

}  // extern "C"
