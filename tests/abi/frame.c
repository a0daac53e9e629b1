/* Every frame function through the shared library, from C99: in a first run, a recompute, a backward, a dry recording,
 * after the frame is over, and on NULL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"

enum { BYTES = 64 };

static ckpt_device *g_device;
static ckpt_arena *g_arena;

struct seen {
  int firsts, recomputes, backwards, asked;
  ckpt_philox draw[3]; /* first run, recompute, backward of segment 1 */
  uint64_t step;
};

static void common(struct seen *seen, ckpt_frame *f, int back) {
  assert_ptr_equal(ckpt_frame_user(f), seen);
  assert_null(ckpt_frame_stream(f));
  assert_int_equal(ckpt_frame_is_dry(f), 0);
  assert_int_equal(ckpt_frame_is_backward(f), back);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 0), BYTES);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_OUTPUT, 0), BYTES);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_INPUT, 0), BYTES);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_OUTPUT_GRAD, 0), BYTES);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_INPUT_GRAD, 0), BYTES);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_SCRATCH, 0), back ? 48 : 32);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 7), 0);
  assert_non_null(ckpt_frame_scratch(f));
  assert_int_equal((uintptr_t)ckpt_frame_scratch(f) % 256, 0);
  seen->step = ckpt_frame_step(f);
}

static ckpt_status forward(void *user, ckpt_frame *f) {
  struct seen *seen = user;
  const int again = ckpt_frame_is_recompute(f);
  common(seen, f, 0);
  if (again) ++seen->recomputes;
  else ++seen->firsts;
  if (ckpt_frame_index(f) == 1) ckpt_frame_random(f, 5, &seen->draw[again]);
  assert_null(ckpt_frame_output_grad(f, 0));
  assert_null(ckpt_frame_input_grad(f, 0, NULL));
  assert_non_null(ckpt_frame_input(f, 0));
  if (ckpt_frame_needs(f, 0)) memset(ckpt_frame_slot(f, 0), 1, BYTES);
  if (ckpt_frame_needs_output(f, 0)) memset(ckpt_frame_output(f, 0), 2, BYTES);
  memset(ckpt_frame_scratch(f), 3, 32);
  return CKPT_OK;
}

static ckpt_status backward(void *user, ckpt_frame *f) {
  struct seen *seen = user;
  int accumulate = 9;
  common(seen, f, 1);
  ++seen->backwards;
  if (ckpt_frame_index(f) == 1) ckpt_frame_random(f, 5, &seen->draw[2]);
  assert_int_equal(ckpt_frame_needs(f, 0), 0);
  assert_int_equal(ckpt_frame_needs_output(f, 0), 0);
  assert_int_equal(ckpt_frame_is_recompute(f), 0);
  assert_non_null(ckpt_frame_slot(f, 0));
  assert_null(ckpt_frame_output(f, 0)); /* not BACKWARD_READS */
  assert_null(ckpt_frame_input(f, 0));  /* BACKWARD_IGNORES */
  assert_non_null(ckpt_frame_output_grad(f, 0));
  assert_non_null(ckpt_frame_input_grad(f, 0, &accumulate));
  assert_int_equal(accumulate, 0);
  memset(ckpt_frame_input_grad(f, 0, NULL), 0, BYTES);
  return CKPT_OK;
}

static ckpt_segment *segment(ckpt_segment_fn fwd, ckpt_segment_fn bwd) {
  static const uint32_t ignores[1] = {CKPT_INPUT_BACKWARD_IGNORES};
  ckpt_slot slot;
  ckpt_output output;
  ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
  ckpt_segment *s = NULL;
  memset(&slot, 0, sizeof slot);
  memset(&output, 0, sizeof output);
  slot.name = "slot";
  output.name = "out";
  slot.bytes = output.bytes = BYTES;
  d.name = "frame";
  d.forward = fwd;
  d.backward = bwd;
  d.slots = &slot;
  d.outputs = &output;
  d.input_flags = ignores;
  d.slot_count = d.output_count = d.input_count = 1;
  d.forward_scratch_bytes = 32;
  d.backward_scratch_bytes = 48;
  assert_int_equal(ckpt_segment_create(&d, &s), CKPT_OK);
  return s;
}

static char g_data[BYTES], g_grad[BYTES], g_root[BYTES];

static ckpt_buffer input(ckpt_tape *tape) {
  ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
  ckpt_buffer x = 0;
  in.data = g_data;
  in.bytes = BYTES;
  in.grad = g_grad;
  assert_int_equal(ckpt_tape_input(tape, &in, &x), CKPT_OK);
  return x;
}

static ckpt_status run(ckpt_tape *tape, ckpt_segment *s, void *user, ckpt_buffer *x) {
  ckpt_call c = CKPT_CALL_INIT;
  c.input_count = 1;
  c.inputs = x;
  c.user = user;
  return ckpt_segment_run(tape, s, &c, x);
}

static ckpt_tape *tape_of(uint32_t strategy) {
  ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
  ckpt_tape *tape = NULL;
  t.arena = g_arena;
  t.strategy = strategy;
  t.seed = 11;
  assert_int_equal(ckpt_tape_create(&t, &tape), CKPT_OK);
  return tape;
}

static void what_a_frame_says_in_each_kind_of_execution(void **state) {
  ckpt_tape *tape = tape_of(CKPT_STRATEGY_EVERY_SEGMENT);
  ckpt_segment *s = segment(forward, backward);
  struct seen seen;
  ckpt_philox want;
  const void *grads[1];
  int time;
  (void)state;
  grads[0] = g_root;
  memset(&seen, 0, sizeof seen);
  assert_int_equal(ckpt_tape_set_step(tape, 41), CKPT_OK);
  for (time = 0; time < 2; ++time) {
    ckpt_buffer x = input(tape);
    int k;
    for (k = 0; k < 3; ++k) assert_int_equal(run(tape, s, &seen, &x), CKPT_OK);
    assert_int_equal(ckpt_backward(tape, &x, grads, 1, 0), CKPT_OK);
    assert_int_equal(seen.step, 41 + time);
    assert_int_equal(seen.firsts, 3 * (time + 1));
    assert_int_equal(seen.backwards, 3 * (time + 1));
    assert_true(seen.recomputes >= time + 1);
    assert_int_equal(ckpt_philox_pack(11, (uint64_t)(41 + time), 1, 5, &want), CKPT_OK);
    for (k = 0; k < 3; ++k) assert_memory_equal(&seen.draw[k], &want, sizeof want);
  }
  ckpt_tape_destroy(tape);
  ckpt_segment_destroy(s);
}

static void a_dry_frame_wants_nothing(void **state) {
  ckpt_tape *tape = tape_of(CKPT_STRATEGY_AUTO);
  ckpt_segment *s = segment(forward, backward);
  ckpt_call c = CKPT_CALL_INIT;
  ckpt_frame *f = NULL;
  ckpt_buffer x, y = 0;
  int accumulate = 7;
  (void)state;
  assert_int_equal(ckpt_tape_begin(tape, 3, CKPT_TAPE_DRY), CKPT_OK);
  x = input(tape);
  c.input_count = 1;
  c.inputs = &x;
  assert_int_equal(ckpt_segment_begin(tape, s, &c, &f), CKPT_OK);
  assert_int_equal(ckpt_frame_is_dry(f), 1);
  assert_int_equal(ckpt_frame_is_recompute(f), 0);
  assert_int_equal(ckpt_frame_is_backward(f), 0);
  assert_int_equal(ckpt_frame_needs(f, 0), 0);
  assert_int_equal(ckpt_frame_needs_output(f, 0), 0);
  assert_null(ckpt_frame_slot(f, 0));
  assert_null(ckpt_frame_output(f, 0));
  assert_null(ckpt_frame_input(f, 0));
  assert_null(ckpt_frame_scratch(f));
  assert_null(ckpt_frame_input_grad(f, 0, &accumulate));
  assert_int_equal(accumulate, 0);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 0), BYTES);
  assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_INPUT, 0), BYTES);
  assert_int_equal(ckpt_segment_end(f, CKPT_OK, &y), CKPT_OK);
  assert_true(y != 0);
  ckpt_tape_destroy(tape);
  ckpt_segment_destroy(s);
}

static void null_and_ended_frames_give_nothing(void **state) {
  ckpt_frame *frames[2] = {NULL, NULL};
  ckpt_tape *tape = tape_of(CKPT_STRATEGY_AUTO);
  ckpt_segment *s = segment(forward, backward);
  ckpt_call c = CKPT_CALL_INIT;
  ckpt_buffer x = input(tape), y = 0;
  int k;
  (void)state;
  c.input_count = 1;
  c.inputs = &x;
  assert_int_equal(ckpt_segment_begin(tape, s, &c, &frames[1]), CKPT_OK);
  ckpt_frame_slot(frames[1], 0);
  ckpt_frame_output(frames[1], 0);
  assert_int_equal(ckpt_segment_end(frames[1], CKPT_OK, &y), CKPT_OK);
  for (k = 0; k < 2; ++k) {
    ckpt_frame *f = frames[k];
    ckpt_philox p;
    int accumulate = 7;
    memset(&p, 0xEE, sizeof p);
    assert_int_equal(ckpt_frame_needs(f, 0), 0);
    assert_int_equal(ckpt_frame_needs_output(f, 0), 0);
    assert_null(ckpt_frame_slot(f, 0));
    assert_null(ckpt_frame_output(f, 0));
    assert_null(ckpt_frame_input(f, 0));
    assert_null(ckpt_frame_output_grad(f, 0));
    assert_null(ckpt_frame_input_grad(f, 0, &accumulate));
    assert_int_equal(accumulate, 0);
    assert_null(ckpt_frame_scratch(f));
    assert_null(ckpt_frame_user(f));
    assert_null(ckpt_frame_stream(f));
    assert_int_equal(ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 0), 0);
    assert_int_equal(ckpt_frame_index(f), 0);
    assert_int_equal(ckpt_frame_step(f), 0);
    assert_int_equal(ckpt_frame_is_recompute(f) | ckpt_frame_is_backward(f) | ckpt_frame_is_dry(f), 0);
    ckpt_frame_random(f, 0, &p);
    assert_int_equal(p.seed, 0);
    ckpt_frame_random(f, 0, NULL);
  }
  ckpt_tape_destroy(tape);
  ckpt_segment_destroy(s);
}

static ckpt_status fails(void *user, ckpt_frame *f) { return ckpt_frame_fail(f, *(int *)user, "cublas 13"); }
static ckpt_status fails_without_text(void *user, ckpt_frame *f) {
  (void)f;
  return *(int *)user;
}

static void a_callbacks_status_comes_back_unchanged(void **state) {
  static const int codes[] = {7, 1000000, CKPT_ERROR_DEVICE, CKPT_ERROR_BUDGET};
  size_t k;
  int text;
  (void)state;
  for (k = 0; k < sizeof codes / sizeof codes[0]; ++k)
    for (text = 0; text < 2; ++text) {
      ckpt_tape *tape = tape_of(CKPT_STRATEGY_AUTO);
      ckpt_segment *s = segment(text ? fails : fails_without_text, backward);
      int code = codes[k];
      ckpt_buffer x = input(tape);
      assert_int_equal(run(tape, s, &code, &x), code);
      assert_int_equal(x, 0);
      assert_int_equal(ckpt_last_status(), code);
      assert_non_null(strstr(ckpt_last_error(), "'frame'"));
      if (text) assert_non_null(strstr(ckpt_last_error(), "cublas 13"));
      ckpt_tape_destroy(tape);
      ckpt_segment_destroy(s);
    }
}

static int open_arena(void **state) {
  ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
  (void)state;
  a.capacity_bytes = 1 << 20;
  return ckpt_device_open("cpu", &g_device) || ckpt_arena_create(g_device, &a, &g_arena);
}
static int close_arena(void **state) {
  (void)state;
  ckpt_arena_destroy(g_arena);
  ckpt_device_close(g_device);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_frame_says_in_each_kind_of_execution),
      cmocka_unit_test(a_dry_frame_wants_nothing),
      cmocka_unit_test(null_and_ended_frames_give_nothing),
      cmocka_unit_test(a_callbacks_status_comes_back_unchanged),
  };
  return cmocka_run_group_tests(tests, open_arena, close_arena);
}
