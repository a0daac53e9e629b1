/* Tapes through the shared library alone, from C99: the header's own example, refusals, stats, in one small MLP. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"

enum { COUNT = 32, LAYERS = 6, PRE = 0, ACT = 1 };

static ckpt_device *g_device;

struct layer {
  float w1, w2, g1, g2;
  int forwards, recomputes, backwards, released;
};

static ckpt_status mlp_forward(void *user, ckpt_frame *f) {
  struct layer *l = user;
  const float *x = ckpt_frame_input(f, 0);
  float *pre = ckpt_frame_slot(f, PRE), *act = ckpt_frame_slot(f, ACT), *out = ckpt_frame_output(f, 0);
  int k;
  if (ckpt_frame_is_recompute(f)) ++l->recomputes;
  else ++l->forwards;
  if (ckpt_frame_needs(f, PRE))
    for (k = 0; k < COUNT; ++k) pre[k] = l->w1 * x[k];
  if (ckpt_frame_needs(f, ACT))
    for (k = 0; k < COUNT; ++k) act[k] = pre[k] * pre[k];
  if (ckpt_frame_needs_output(f, 0))
    for (k = 0; k < COUNT; ++k) out[k] = l->w2 * act[k];
  return CKPT_OK;
}

static ckpt_status mlp_backward(void *user, ckpt_frame *f) {
  struct layer *l = user;
  const float *x = ckpt_frame_input(f, 0), *g = ckpt_frame_output_grad(f, 0);
  const float *pre = ckpt_frame_slot(f, PRE), *act = ckpt_frame_slot(f, ACT);
  int accumulate = 0, k;
  float *dx = ckpt_frame_input_grad(f, 0, &accumulate);
  ++l->backwards;
  for (k = 0; k < COUNT; ++k) {
    const float dpre = g[k] * l->w2 * 2 * pre[k];
    l->g2 += g[k] * act[k];
    l->g1 += dpre * x[k];
    if (dx != NULL) dx[k] = (accumulate ? dx[k] : 0) + dpre * l->w1;
  }
  return CKPT_OK;
}

static void release(void *user) { ++((struct layer *)user)->released; }

static int open_device(void **state) {
  (void)state;
  return ckpt_device_open("cpu", &g_device);
}
static int close_device(void **state) {
  (void)state;
  ckpt_device_close(g_device);
  return 0;
}

static ckpt_segment *mlp_segment(void) {
  static const uint32_t none[1] = {0}, pre[1] = {PRE}, act[1] = {ACT};
  ckpt_slot slots[2];
  ckpt_output output;
  ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
  ckpt_segment *segment = NULL;
  memset(slots, 0, sizeof slots);
  memset(&output, 0, sizeof output);
  slots[PRE].name = "pre";
  slots[PRE].reads = none;
  slots[ACT].name = "act";
  slots[ACT].reads = pre;
  slots[ACT].read_count = 1;
  slots[PRE].bytes = slots[ACT].bytes = output.bytes = COUNT * sizeof(float);
  output.name = "y";
  output.reads = act;
  output.read_count = 1;
  d.name = "mlp";
  d.forward = mlp_forward;
  d.backward = mlp_backward;
  d.slots = slots;
  d.slot_count = 2;
  d.outputs = &output;
  d.output_count = d.input_count = 1;
  assert_int_equal(ckpt_segment_create(&d, &segment), CKPT_OK);
  return segment;
}

struct run {
  ckpt_arena *arena;
  ckpt_tape *tape;
  ckpt_segment *segment;
  struct layer layers[LAYERS];
  float x[COUNT], dx[COUNT], dy[COUNT];
  ckpt_buffer last;
};

static void open_run(struct run *r, uint32_t strategy, size_t budget) {
  ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
  ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
  int k;
  memset(r, 0, sizeof *r);
  a.capacity_bytes = 1 << 20;
  assert_int_equal(ckpt_arena_create(g_device, &a, &r->arena), CKPT_OK);
  t.arena = r->arena;
  t.strategy = strategy;
  t.budget_bytes = budget;
  assert_int_equal(ckpt_tape_create(&t, &r->tape), CKPT_OK);
  r->segment = mlp_segment();
  for (k = 0; k < COUNT; ++k) r->x[k] = 0.5f + 0.01f * (float)k, r->dy[k] = 1;
  for (k = 0; k < LAYERS; ++k) r->layers[k].w1 = 1.0f + 0.1f * (float)k, r->layers[k].w2 = 0.9f;
}

static void close_run(struct run *r) {
  ckpt_tape_destroy(r->tape);
  ckpt_segment_destroy(r->segment);
  ckpt_arena_destroy(r->arena);
}

static ckpt_status forward(struct run *r, uint64_t key, uint32_t flags) {
  ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
  ckpt_status status = ckpt_tape_begin(r->tape, key, flags);
  int k;
  if (status) return status;
  in.data = r->x;
  in.bytes = sizeof r->x;
  in.grad = r->dx;
  status = ckpt_tape_input(r->tape, &in, &r->last);
  for (k = 0; k < LAYERS && !status; ++k) {
    ckpt_call call = CKPT_CALL_INIT;
    call.input_count = 1;
    call.inputs = &r->last;
    call.user = &r->layers[k];
    call.release = release;
    status = ckpt_segment_run(r->tape, r->segment, &call, &r->last);
  }
  return status;
}

static ckpt_status step(struct run *r, uint64_t key, uint32_t flags) {
  const void *grads[1];
  ckpt_status status = forward(r, key, flags);
  if (status) return status;
  grads[0] = r->dy;
  return ckpt_backward(r->tape, &r->last, grads, 1, 0);
}

static ckpt_tape_stats stats_of(const struct run *r) {
  ckpt_tape_stats stats;
  memset(&stats, 0xEE, sizeof stats);
  stats.struct_size = sizeof stats;
  assert_int_equal(ckpt_tape_get_stats(r->tape, &stats), CKPT_OK);
  return stats;
}

/* The gradient by finite differences of the chain in double. */
static double chain_of(const struct run *r, double x) {
  int k;
  for (k = 0; k < LAYERS; ++k) {
    const double pre = (double)r->layers[k].w1 * x;
    x = (double)r->layers[k].w2 * pre * pre;
  }
  return x;
}

static void gradients_are_right_and_equal_under_every_strategy(void **state) {
  static const uint32_t strategies[] = {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO};
  struct run first, r;
  size_t s;
  int k;
  (void)state;
  open_run(&first, CKPT_STRATEGY_STORE_ALL, 0);
  assert_int_equal(step(&first, 1, 0), CKPT_OK);
  for (k = 0; k < COUNT; ++k) {
    const double x = (double)first.x[k], h = 1e-5 * x;
    const double slope = (chain_of(&first, x + h) - chain_of(&first, x - h)) / (2 * h);
    assert_true(fabs((double)first.dx[k] - slope) <= 1e-4 * fabs(slope) + 1e-30);
  }
  for (s = 0; s < sizeof strategies / sizeof strategies[0]; ++s) {
    int time;
    open_run(&r, strategies[s], 0);
    assert_int_equal(step(&r, 1, CKPT_TAPE_DRY), CKPT_OK);
    for (k = 0; k < LAYERS; ++k) assert_int_equal(r.layers[k].forwards, 0);
    for (time = 0; time < 3; ++time) {
      ckpt_tape_stats stats;
      for (k = 0; k < LAYERS; ++k) r.layers[k].g1 = r.layers[k].g2 = 0;
      assert_int_equal(step(&r, 1, 0), CKPT_OK);
      assert_memory_equal(r.dx, first.dx, sizeof r.dx);
      for (k = 0; k < LAYERS; ++k) {
        assert_memory_equal(&r.layers[k].g1, &first.layers[k].g1, sizeof(float));
        assert_memory_equal(&r.layers[k].g2, &first.layers[k].g2, sizeof(float));
        assert_int_equal(r.layers[k].backwards, time + 1);
        assert_int_equal(r.layers[k].released, time + 2);
      }
      stats = stats_of(&r);
      assert_int_equal(stats.planned, 1);
      assert_int_equal(stats.peak_predicted_bytes, stats.peak_measured_bytes);
      assert_int_equal(stats.arena_predicted_bytes, stats.arena_measured_bytes);
      assert_int_equal(stats.step, time + 1);
    }
    close_run(&r);
  }
  close_run(&first);
}

static void the_smallest_budget_works_and_less_is_refused_before_anything_runs(void **state) {
  struct run r, first;
  size_t minimum;
  int k;
  (void)state;
  open_run(&first, CKPT_STRATEGY_STORE_ALL, 0);
  assert_int_equal(step(&first, 1, 0), CKPT_OK);
  open_run(&r, CKPT_STRATEGY_AUTO, 256);
  assert_int_equal(step(&r, 1, CKPT_TAPE_DRY), CKPT_ERROR_BUDGET);
  assert_non_null(strstr(ckpt_last_error(), "256"));
  minimum = stats_of(&r).minimum_budget_bytes;
  assert_true(minimum > 256);
  assert_int_equal(step(&r, 1, 0), CKPT_ERROR_BUDGET);
  for (k = 0; k < LAYERS; ++k) assert_int_equal(r.layers[k].forwards, 0);
  close_run(&r);

  open_run(&r, CKPT_STRATEGY_AUTO, minimum - 1);
  assert_int_equal(step(&r, 1, CKPT_TAPE_DRY), CKPT_ERROR_BUDGET);
  close_run(&r);

  open_run(&r, CKPT_STRATEGY_AUTO, minimum);
  assert_int_equal(step(&r, 1, CKPT_TAPE_DRY), CKPT_OK);
  assert_int_equal(step(&r, 1, 0), CKPT_OK);
  assert_memory_equal(r.dx, first.dx, sizeof r.dx);
  assert_true(stats_of(&r).arena_measured_bytes <= minimum);
  assert_true(stats_of(&r).recompute_count > 0);
  close_run(&r);
  close_run(&first);
}

static void refusals(void **state) {
  struct run r;
  ckpt_tape *tape = (ckpt_tape *)&r;
  ckpt_segment *segment = (ckpt_segment *)&r;
  ckpt_tape_desc d = CKPT_TAPE_DESC_INIT;
  ckpt_segment_desc sd = CKPT_SEGMENT_DESC_INIT;
  ckpt_buffer old;
  const void *data = &r;
  (void)state;
  assert_int_equal(ckpt_tape_create(&d, &tape), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(tape);
  assert_int_equal(ckpt_segment_create(&sd, &segment), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(segment);
  sd.struct_size = 3;
  assert_int_equal(ckpt_segment_create(&sd, &segment), CKPT_ERROR_STRUCT_SIZE);
  open_run(&r, CKPT_STRATEGY_AUTO, 0);
  assert_int_equal(ckpt_backward(r.tape, &r.last, NULL, 1, 0), CKPT_ERROR_STATE);
  assert_int_equal(forward(&r, 1, 0), CKPT_OK);
  old = r.last;
  assert_int_equal(ckpt_tape_read(r.tape, old, &data), CKPT_OK);
  assert_int_equal(ckpt_tape_reset(r.tape), CKPT_OK);
  assert_int_equal(ckpt_tape_read(r.tape, old, &data), CKPT_ERROR_STALE);
  assert_null(data);
  assert_int_equal(forward(&r, 1, 0), CKPT_OK);
  assert_int_equal(ckpt_tape_read(r.tape, old, &data), CKPT_ERROR_STALE);
  assert_int_equal(ckpt_backward(r.tape, &old, NULL, 1, 0), CKPT_ERROR_STALE);
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_STALE);
  assert_non_null(strstr(ckpt_last_error(), "outputs[0]"));
  assert_int_equal(ckpt_tape_set_step(r.tape, (uint64_t)1 << 36), CKPT_ERROR_OVERFLOW);
  close_run(&r);
}

/* A caller that was compiled against a longer or a shorter struct. */
static void structs_grow_at_their_ends(void **state) {
  struct {
    ckpt_tape_desc desc;
    uint64_t more;
  } longer = {CKPT_TAPE_DESC_INIT, 0};
  struct run r;
  ckpt_tape *tape = NULL;
  (void)state;
  open_run(&r, CKPT_STRATEGY_AUTO, 0);
  longer.desc.struct_size = sizeof longer;
  longer.desc.arena = r.arena;
  assert_int_equal(ckpt_tape_create(&longer.desc, &tape), CKPT_OK);
  ckpt_tape_destroy(tape);
  longer.more = 1; /* what this library does not know must be zero */
  assert_int_equal(ckpt_tape_create(&longer.desc, &tape), CKPT_ERROR_STRUCT_SIZE);
  assert_null(tape);
  close_run(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_right_and_equal_under_every_strategy),
      cmocka_unit_test(the_smallest_budget_works_and_less_is_refused_before_anything_runs),
      cmocka_unit_test(refusals),
      cmocka_unit_test(structs_grow_at_their_ends),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
