/* A step of segments that do nothing, in C: what a binding's host cost is measured beside. */
#include <ckpt/ckpt.h>

static ckpt_status forward(void *user, ckpt_frame *f) {
  (void)user;
  const float *x = ckpt_frame_input(f, 0);
  float *slot = ckpt_frame_slot(f, 0), *out = ckpt_frame_output(f, 0);
  if (ckpt_frame_needs(f, 0)) *slot = *x;
  if (ckpt_frame_needs_output(f, 0)) *out = *x;
  return CKPT_OK;
}

static ckpt_status backward(void *user, ckpt_frame *f) {
  (void)user;
  const float *slot = ckpt_frame_slot(f, 0), *out_grad = ckpt_frame_output_grad(f, 0);
  int accumulate = 0;
  float *grad = ckpt_frame_input_grad(f, 0, &accumulate);
  if (grad != NULL) *grad = *out_grad + *slot;
  return CKPT_OK;
}

static ckpt_segment *segment(void) {
  static ckpt_segment *made = NULL;
  if (made == NULL) {
    const ckpt_slot slot = {.name = "slot", .bytes = 4};
    const ckpt_output output = {.name = "out", .bytes = 4};
    ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
    desc.name = "nothing";
    desc.forward = forward;
    desc.backward = backward;
    desc.slots = &slot;
    desc.slot_count = 1;
    desc.outputs = &output;
    desc.output_count = 1;
    desc.input_count = 1;
    if (ckpt_segment_create(&desc, &made) != CKPT_OK) return NULL;
  }
  return made;
}

/* One whole step: begin, `count` segments in a row, backward. */
__attribute__((visibility("default"))) ckpt_status ckpt_nothing_step(ckpt_tape *tape, uint64_t key, uint32_t count, const float *x,
                                                                    float *grad);

ckpt_status ckpt_nothing_step(ckpt_tape *tape, uint64_t key, uint32_t count, const float *x, float *grad) {
  const float one = 1.0f;
  const void *grads[1] = {&one};
  ckpt_input_desc input = CKPT_INPUT_DESC_INIT;
  ckpt_buffer y = 0;
  input.data = x;
  input.bytes = sizeof *x;
  input.grad = grad;
  ckpt_status status = ckpt_tape_begin(tape, key, 0);
  if (status == CKPT_OK) status = ckpt_tape_input(tape, &input, &y);
  for (uint32_t k = 0; k < count && status == CKPT_OK; ++k) {
    const ckpt_buffer in = y;
    ckpt_call call = CKPT_CALL_INIT;
    call.inputs = &in;
    call.input_count = 1;
    status = ckpt_segment_run(tape, segment(), &call, &y);
  }
  return status == CKPT_OK ? ckpt_backward(tape, &y, grads, 1, 0) : status;
}
