// Frame functions: the hot part of the ABI. They cannot fail; what is wrong with a call fails the frame.
#include "abi/struct_size.h"
#include "rng/philox.h"
#include "tape/recording.h"
#include "tape/tape.h"

namespace {

using ckpt::Bits;
using ckpt::fail;

using Mode = ckpt_frame::Mode;

// The first failure of a frame stays.
void fail_frame(ckpt_frame *f, const char *function, const char *what, uint32_t k, uint32_t count) {
  const ckpt_status status = fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s' (number %u) has no %s %u, expected below %u", function,
                                  f->shape->name().c_str(), f->node, what, k, count);
  if (f->failed == CKPT_OK) f->failed = status;
}

// NULL, or a frame whose segment is over: there is nothing that could be failed.
bool gone(const ckpt_frame *f) { return f == nullptr || f->mode == Mode::closed; }

int needs(ckpt_frame *f, uint32_t item) {
  if (f->measuring) f->recording->stamp(f, item);
  return f->todo.has(item);
}

void *item_pointer(ckpt_frame *f, uint32_t item) {
  f->asked.set(item);
  return f->reachable.has(item) ? f->recording->item_data(f->node, item) : nullptr;
}

}  // namespace

extern "C" {

int ckpt_frame_needs(ckpt_frame *f, uint32_t slot) {
  if (gone(f)) return 0;
  if (slot < f->shape->slot_count()) return needs(f, slot);
  fail_frame(f, __func__, "slot", slot, f->shape->slot_count());
  return 0;
}

int ckpt_frame_needs_output(ckpt_frame *f, uint32_t output) {
  if (gone(f)) return 0;
  if (output >= f->shape->output_count()) {
    fail_frame(f, __func__, "output", output, f->shape->output_count());
    return 0;
  }
  const uint32_t item = f->shape->slot_count() + output;
  if (f->shape->caller().has(item)) f->asked.set(item);  // the caller knows its own memory
  return needs(f, item);
}

void *ckpt_frame_slot(ckpt_frame *f, uint32_t slot) {
  if (gone(f)) return nullptr;
  if (slot < f->shape->slot_count()) return item_pointer(f, slot);
  fail_frame(f, __func__, "slot", slot, f->shape->slot_count());
  return nullptr;
}

void *ckpt_frame_output(ckpt_frame *f, uint32_t output) {
  if (gone(f)) return nullptr;
  if (output < f->shape->output_count()) return item_pointer(f, f->shape->slot_count() + output);
  fail_frame(f, __func__, "output", output, f->shape->output_count());
  return nullptr;
}

const void *ckpt_frame_input(ckpt_frame *f, uint32_t input) {
  if (gone(f) || f->mode == Mode::dry) return nullptr;
  if (input >= f->shape->input_count()) {
    fail_frame(f, __func__, "input", input, f->shape->input_count());
    return nullptr;
  }
  if (f->mode == Mode::backward && !f->shape->backward_reads_input(input)) return nullptr;
  return f->recording->value_data(f->recording->input_value(*f, input));
}

const void *ckpt_frame_output_grad(ckpt_frame *f, uint32_t output) {
  if (gone(f) || f->mode != Mode::backward) return nullptr;
  if (output < f->shape->output_count()) return f->recording->output_grad(f->node, output);
  fail_frame(f, __func__, "output", output, f->shape->output_count());
  return nullptr;
}

void *ckpt_frame_input_grad(ckpt_frame *f, uint32_t input, int *out_accumulate) {
  if (out_accumulate != nullptr) *out_accumulate = 0;
  if (gone(f) || f->mode != Mode::backward) return nullptr;
  if (input < f->shape->input_count()) return f->recording->input_grad(f, input, out_accumulate);
  fail_frame(f, __func__, "input", input, f->shape->input_count());
  return nullptr;
}

void *ckpt_frame_scratch(ckpt_frame *f) { return gone(f) ? nullptr : f->scratch; }

size_t ckpt_frame_bytes(const ckpt_frame *f, uint32_t what, uint32_t k) {
  if (gone(f)) return 0;
  const ckpt::plan::Shape &s = *f->shape;
  const ckpt::plan::Graph &g = f->recording->graph();
  switch (what) {
    case CKPT_FRAME_SLOT: return k < s.slot_count() ? g.bytes_of(f->node, k) : 0;
    case CKPT_FRAME_OUTPUT: return k < s.output_count() ? g.bytes_of(f->node, s.slot_count() + k) : 0;
    case CKPT_FRAME_INPUT: return k < s.input_count() ? g.values[f->recording->input_value(*f, k)].bytes : 0;
    case CKPT_FRAME_OUTPUT_GRAD: return k < s.output_count() ? g.values[g.nodes[f->node].first_value + k].grad_bytes : 0;
    case CKPT_FRAME_INPUT_GRAD: return k < s.input_count() ? g.values[f->recording->input_value(*f, k)].grad_bytes : 0;
    case CKPT_FRAME_SCRATCH: return k != 0 || f->scratch == nullptr ? 0 : f->mode == Mode::backward ? s.backward_scratch() : s.forward_scratch();
    default: return 0;
  }
}

void ckpt_frame_random(ckpt_frame *f, uint32_t site, ckpt_philox *out_philox) {
  if (out_philox == nullptr) return;
  *out_philox = ckpt_philox{};
  if (gone(f)) return;
  // In a graph the step comes from the device, at each launch.
  const bool captured = f->recording->captured();
  const ckpt_tape &tape = f->recording->tape();
  const ckpt_status status = ckpt_philox_pack(tape.seed, captured ? 0 : f->recording->step(), f->node, site, out_philox);
  if (status && f->failed == CKPT_OK) f->failed = status;
  else if (!status && captured) out_philox->step_word = tape.step_word;
}

int ckpt_frame_is_recompute(const ckpt_frame *f) { return !gone(f) && f->mode == Mode::replay; }
int ckpt_frame_is_backward(const ckpt_frame *f) { return !gone(f) && f->mode == Mode::backward; }
int ckpt_frame_is_dry(const ckpt_frame *f) { return !gone(f) && f->mode == Mode::dry; }
uint64_t ckpt_frame_index(const ckpt_frame *f) { return gone(f) ? 0 : f->node; }
uint64_t ckpt_frame_step(const ckpt_frame *f) { return gone(f) ? 0 : f->recording->step(); }
void *ckpt_frame_stream(const ckpt_frame *f) { return gone(f) ? nullptr : f->recording->tape().arena->stream(); }
void *ckpt_frame_user(const ckpt_frame *f) { return gone(f) ? nullptr : f->call->user; }

ckpt_status ckpt_frame_fail(ckpt_frame *f, ckpt_status status, const char *text) {
  if (status == CKPT_OK) status = CKPT_ERROR_INVALID_ARGUMENT;
  if (gone(f)) return ckpt::fail_text(status, text);
  const ckpt_status told = fail(status, "segment '%s' (number %u): %s", f->shape->name().c_str(), f->node, text != nullptr ? text : "failed");
  if (f->failed == CKPT_OK) f->failed = told;
  return told;
}

}  // extern "C"
