/* The smallest whole program: a multilayer perceptron that trains in half the memory that its activations take.
 *
 *   cc -std=c99 minimal.c $(pkg-config --cflags --libs ckpt) -lm && ./a.out        (LD_LIBRARY_PATH: the folder of libckpt.so)
 *
 * A layer is one segment with two slots: PRE = x W1^T and ACT = silu(PRE); its output is x + ACT W2^T. The kernels are plain
 * loops of our own: libckpt says what to compute and where to put it, it computes nothing. The same training runs twice, first
 * with everything stored, then within a budget: loss and gradients of every step must be the same, bit by bit. */
#include <ckpt/ckpt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 8, ROWS = 64, WIDTH = 32, HIDDEN = 64, WEIGHTS = HIDDEN * WIDTH, STEPS = 20, KEY = 1 };
enum { PRE, ACT };
static const float LEARNING_RATE = 2.0f;

struct weights {
  float w1[WEIGHTS], w2[WEIGHTS]; /* HIDDEN x WIDTH, WIDTH x HIDDEN */
};
struct layer {
  struct weights value, grad;
};

#define TRY(call) \
  if ((call) != CKPT_OK) return fprintf(stderr, "minimal: %s\n", ckpt_last_error()), 1

/* ---- kernels ---- */

static void linear(float *out, const float *in, const float *weight, int inputs, int outputs) {
  for (int r = 0; r < ROWS; ++r)
    for (int o = 0; o < outputs; ++o) {
      float sum = 0.0f;
      for (int i = 0; i < inputs; ++i) sum += in[r * inputs + i] * weight[o * inputs + i];
      out[r * outputs + o] = sum;
    }
}

/* Adds to weight_grad; in_grad may be NULL: not wanted. */
static void linear_backward(float *in_grad, float *weight_grad, const float *in, const float *weight, const float *out_grad,
                            int inputs, int outputs) {
  if (in_grad != NULL) memset(in_grad, 0, sizeof(float) * ROWS * (size_t)inputs);
  for (int r = 0; r < ROWS; ++r)
    for (int o = 0; o < outputs; ++o)
      for (int i = 0; i < inputs; ++i) {
        if (in_grad != NULL) in_grad[r * inputs + i] += out_grad[r * outputs + o] * weight[o * inputs + i];
        weight_grad[o * inputs + i] += out_grad[r * outputs + o] * in[r * inputs + i];
      }
}

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
static float silu(float x) { return x * sigmoid(x); }
static float silu_slope(float x) { return sigmoid(x) * (1.0f + x * (1.0f - sigmoid(x))); }

/* ---- a layer as a segment ---- */

/* One function for the first run, a full and a partial recomputation: it asks what is needed now. In a replay nobody needs
 * the output, and the second product is skipped. */
static ckpt_status layer_forward(void *user, ckpt_frame *f) {
  const struct layer *l = user;
  const float *x = ckpt_frame_input(f, 0);
  float *pre = ckpt_frame_slot(f, PRE), *act = ckpt_frame_slot(f, ACT), *out = ckpt_frame_output(f, 0);
  if (ckpt_frame_needs(f, PRE)) linear(pre, x, l->value.w1, WIDTH, HIDDEN);
  if (ckpt_frame_needs(f, ACT))
    for (int k = 0; k < ROWS * HIDDEN; ++k) act[k] = silu(pre[k]);
  if (ckpt_frame_needs_output(f, 0)) {
    linear(out, act, l->value.w2, HIDDEN, WIDTH);
    for (int k = 0; k < ROWS * WIDTH; ++k) out[k] += x[k];
  }
  return CKPT_OK;
}

/* Input and both slots are there, whatever was dropped before; the scratch holds the gradient of PRE. The gradients of weights
 * are our own memory: each backward runs once, so they are added to once. */
static ckpt_status layer_backward(void *user, ckpt_frame *f) {
  struct layer *l = user;
  const float *x = ckpt_frame_input(f, 0), *pre = ckpt_frame_slot(f, PRE), *act = ckpt_frame_slot(f, ACT);
  const float *out_grad = ckpt_frame_output_grad(f, 0);
  float *pre_grad = ckpt_frame_scratch(f);
  int accumulate = 0; /* stays 0 here: each boundary has one reader */
  float *x_grad = ckpt_frame_input_grad(f, 0, &accumulate); /* NULL in the first layer: nobody wants it */
  linear_backward(pre_grad, l->grad.w2, act, l->value.w2, out_grad, HIDDEN, WIDTH);
  for (int k = 0; k < ROWS * HIDDEN; ++k) pre_grad[k] *= silu_slope(pre[k]);
  linear_backward(x_grad, l->grad.w1, x, l->value.w1, pre_grad, WIDTH, HIDDEN);
  for (int k = 0; k < ROWS * WIDTH && x_grad != NULL; ++k) x_grad[k] += out_grad[k];
  return CKPT_OK;
}

static ckpt_status create_segment(ckpt_segment **out_segment) {
  static const uint32_t pre_alone[] = {PRE}, act_alone[] = {ACT};
  const size_t hidden_bytes = sizeof(float) * ROWS * HIDDEN;
  /* reads says what a slot is computed from: with PRE kept, ACT costs one pass of silu and no product. */
  const ckpt_slot slots[] = {{.name = "pre", .bytes = hidden_bytes},
                             {.name = "act", .bytes = hidden_bytes, .reads = pre_alone, .read_count = 1}};
  const ckpt_output output = {.name = "out", .bytes = sizeof(float) * ROWS * WIDTH, .reads = act_alone, .read_count = 1};
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  desc.name = "layer";
  desc.forward = layer_forward;
  desc.backward = layer_backward;
  desc.slots = slots;
  desc.slot_count = 2;
  desc.outputs = &output;
  desc.output_count = 1;
  desc.input_count = 1;
  desc.backward_scratch_bytes = hidden_bytes;
  return ckpt_segment_create(&desc, out_segment);
}

/* ---- training ---- */

/* The forward pass, layer by layer. In a dry recording no callback runs, and x is NULL. */
static ckpt_status record(ckpt_tape *tape, const ckpt_segment *segment, struct layer *layers, const float *x, ckpt_buffer *y) {
  ckpt_input_desc input = CKPT_INPUT_DESC_INIT;
  input.data = x;
  input.bytes = sizeof(float) * ROWS * WIDTH;
  ckpt_status status = ckpt_tape_input(tape, &input, y);
  for (int k = 0; k < LAYERS && status == CKPT_OK; ++k) {
    ckpt_call call = CKPT_CALL_INIT;
    const ckpt_buffer in = *y;
    call.user = &layers[k];
    call.inputs = &in;
    call.input_count = 1;
    status = ckpt_segment_run(tape, segment, &call, y);
  }
  return status;
}

static float uniform(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static float squared_error(const float *y, const float *target, float *y_grad) {
  float loss = 0.0f;
  for (int k = 0; k < ROWS * WIDTH; ++k) {
    const float difference = y[k] - target[k];
    loss += difference * difference / (ROWS * WIDTH);
    y_grad[k] = 2.0f * difference / (ROWS * WIDTH);
  }
  return loss;
}

/* Trains from the same start within `budget` bytes (0: as many as it takes). Loss and gradients of each step go to `trail`. */
static int train(ckpt_device *device, size_t budget, struct layer *layers, float *trail, ckpt_tape_stats *stats) {
  static float x[ROWS * WIDTH], target[ROWS * WIDTH], y_grad[ROWS * WIDTH];
  uint32_t random = 1;
  for (int k = 0; k < ROWS * WIDTH; ++k) target[k] = sinf(3.0f * (x[k] = uniform(&random)));
  for (int k = 0; k < LAYERS; ++k)
    for (int i = 0; i < WEIGHTS; ++i) {
      layers[k].value.w1[i] = uniform(&random) * 0.2f;
      layers[k].value.w2[i] = uniform(&random) * 0.05f;
    }

  ckpt_arena *arena = NULL;
  ckpt_tape *tape = NULL;
  ckpt_segment *segment = NULL;
  ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT;
  ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT; /* strategy AUTO: the fastest that fits */
  TRY(ckpt_arena_create(device, &arena_desc, &arena));
  tape_desc.arena = arena;
  tape_desc.budget_bytes = budget;
  TRY(ckpt_tape_create(&tape_desc, &tape));
  TRY(create_segment(&segment));

  /* A dry recording: the plan, or its refusal with the smallest budget that works, before anything runs. */
  ckpt_buffer y = 0;
  const void *grads[1] = {y_grad}, *out = NULL;
  TRY(ckpt_tape_begin(tape, KEY, CKPT_TAPE_DRY));
  TRY(record(tape, segment, layers, NULL, &y));
  TRY(ckpt_backward(tape, &y, grads, 1, 0));

  for (int step = 0; step < STEPS; ++step) {
    TRY(ckpt_tape_begin(tape, KEY, 0));
    TRY(record(tape, segment, layers, x, &y));
    TRY(ckpt_tape_read(tape, y, &out)); /* the last output, held until backward */
    *trail = squared_error(out, target, y_grad);
    for (int k = 0; k < LAYERS; ++k) memset(&layers[k].grad, 0, sizeof layers[k].grad);
    TRY(ckpt_backward(tape, &y, grads, 1, 0));

    TRY(ckpt_tape_get_stats(tape, stats));
    if (step % 5 == 0 || step == STEPS - 1)
      printf("  step %2d  loss %.6f  arena predicted %zu, measured %zu bytes; %llu of %llu forwards run again\n", step, (double)*trail,
             stats->arena_predicted_bytes, stats->arena_measured_bytes, (unsigned long long)stats->recompute_count,
             (unsigned long long)stats->forward_count);
    if (stats->arena_predicted_bytes != stats->arena_measured_bytes || stats->peak_predicted_bytes != stats->peak_measured_bytes)
      return fprintf(stderr, "minimal: step %d: the prediction was wrong\n", step), 1;
    ++trail;
    for (int k = 0; k < LAYERS; ++k, trail += 2 * WEIGHTS) {
      memcpy(trail, &layers[k].grad, sizeof layers[k].grad);
      for (int i = 0; i < WEIGHTS; ++i) {
        layers[k].value.w1[i] -= LEARNING_RATE * layers[k].grad.w1[i];
        layers[k].value.w2[i] -= LEARNING_RATE * layers[k].grad.w2[i];
      }
    }
  }
  ckpt_segment_destroy(segment);
  ckpt_tape_destroy(tape);
  ckpt_arena_destroy(arena);
  return 0;
}

int main(void) {
  const size_t trail_bytes = sizeof(float) * STEPS * (1 + LAYERS * 2 * WEIGHTS);
  struct layer *layers = malloc(LAYERS * sizeof *layers);
  float *stored = malloc(trail_bytes), *budgeted = malloc(trail_bytes);
  ckpt_tape_stats stats = {.struct_size = sizeof stats};
  ckpt_device *device = NULL;
  if (layers == NULL || stored == NULL || budgeted == NULL) return fprintf(stderr, "minimal: out of memory\n"), 1;
  TRY(ckpt_device_open("cpu", &device));

  printf("no budget: everything is stored\n");
  if (train(device, 0, layers, stored, &stats) != 0) return 1;
  const size_t budget = stats.arena_measured_bytes / 2;
  printf("budget %zu bytes, half of that (the smallest that works is %zu)\n", budget, stats.minimum_budget_bytes);
  if (train(device, budget, layers, budgeted, &stats) != 0) return 1;

  const int equal = memcmp(stored, budgeted, trail_bytes) == 0;
  printf("loss and gradients of all steps bitwise equal: %s\n", equal ? "yes" : "no");
  ckpt_device_close(device);
  free(budgeted);
  free(stored);
  free(layers);
  return equal ? 0 : 1;
}
