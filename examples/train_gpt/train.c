#define _POSIX_C_SOURCE 200809L
#include "train.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY = 1, VOCABULARY = 256, ALIGNMENT = 256 };

#define TRY_CORE(call)                                                    \
  do {                                                                    \
    if ((call) != CKPT_OK) return complain("%s", ckpt_last_error());      \
  } while (0)
#define TRY_OPS(call)                                                     \
  do {                                                                    \
    if ((call) != CKPT_OK) return complain("%s", ckpt_ops_last_error());  \
  } while (0)

static double clock_seconds(clockid_t clock_id) {
  struct timespec now;
  clock_gettime(clock_id, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double seconds_now(void) { return clock_seconds(CLOCK_MONOTONIC); }
double cpu_seconds_now(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

/* ---- memory of the device ---- */

static int take(const struct model *model, size_t bytes, void *out) {
  void *data = ckpt_arena_alloc(model->memory, bytes, 0);
  if (data == NULL) return complain("out of memory for %zu bytes on %s: %s", bytes, model->options->device, ckpt_last_error());
  memcpy(out, &data, sizeof data);
  return 0;
}

static int zero(const struct model *model, void *data, size_t bytes) {
  TRY_CORE(ckpt_device_fill(model->device, model->stream, data, 0, bytes));
  return 0;
}

static int copy(const struct model *model, void *to, const void *from, size_t bytes, uint32_t kind) {
  TRY_CORE(ckpt_device_copy(model->device, model->stream, to, from, bytes, kind));
  return 0;
}

/* Copies to the host, and waits for what it brings. */
static int fetch(const struct model *model, void *to, const void *from, size_t bytes) {
  const int failed = copy(model, to, from, bytes, CKPT_COPY_DEVICE_TO_HOST);
  if (failed) return failed;
  TRY_CORE(ckpt_device_synchronize(model->device, model->stream));
  return 0;
}

/* ---- model ---- */

static int open_device(struct model *out) {
  const struct options *o = out->options;
  ckpt_ops_desc ops = CKPT_OPS_DESC_INIT;
  ckpt_arena_desc memory = CKPT_ARENA_DESC_INIT;
  if (ckpt_device_open(o->device, &out->device) != CKPT_OK) return complain("--device: %s", ckpt_last_error());
  TRY_CORE(ckpt_device_stream_create(out->device, &out->stream));
  ops.thread_count = (uint32_t)o->threads;
  ops.dtype = (uint32_t)o->dtype;
  ops.device = out->device;
  ops.stream = out->stream;
  TRY_OPS(ckpt_ops_create(&ops, &out->ops));
  memory.stream = out->stream;
  TRY_CORE(ckpt_arena_create(out->device, &memory, &out->memory));
  return 0;
}

static int open_gpt(struct model *out) {
  const struct options *options = out->options;
  ckpt_gpt_desc desc = CKPT_GPT_DESC_INIT;
  desc.attention = (uint32_t)options->attention;
  desc.layers = (size_t)options->layers;
  desc.heads = (size_t)options->heads;
  desc.channels = (size_t)options->channels;
  desc.sequence = (size_t)options->sequence;
  desc.batch = (size_t)options->batch;
  desc.vocabulary = VOCABULARY;
  desc.dropout_probability = (float)options->dropout;
  TRY_OPS(ckpt_gpt_create(out->ops, &desc, &out->gpt));
  out->parameter_count = ckpt_gpt_parameter_count(out->gpt);
  out->micro_floats = desc.batch * desc.sequence;
  return 0;
}

int model_open(const struct options *options, const struct text *text, struct model *out) {
  memset(out, 0, sizeof *out);
  out->options = options;
  out->text = text;
  int failed = open_device(out);
  if (!failed) failed = open_gpt(out);
  if (failed) return failed;
  const size_t indices_bytes = out->micro_floats * sizeof(int32_t), count = (size_t)options->accumulation;
  out->batches_bytes = 2 * count * indices_bytes;
  void *batches = NULL;
  TRY_CORE(ckpt_device_host_alloc(out->device, out->batches_bytes, &batches));
  out->batches = batches;
  failed = take(out, out->parameter_count * sizeof(float), &out->gradients);
  if (!failed) failed = take(out, indices_bytes, &out->tokens);
  if (!failed) failed = take(out, indices_bytes, &out->targets);
  if (!failed) failed = take(out, sizeof(float), &out->loss_grad);
  if (!failed) failed = take(out, count * sizeof(float), &out->losses);
  const float share = 1.0f / (float)count; /* each of n micro-batches adds 1 / n of its gradient */
  if (!failed) failed = copy(out, out->loss_grad, &share, sizeof share, CKPT_COPY_HOST_TO_DEVICE);
  if (failed) return failed;
  TRY_CORE(ckpt_device_synchronize(out->device, out->stream));
  return 0;
}

void model_close(struct model *model) {
  if (model->stream != NULL) (void)ckpt_device_synchronize(model->device, model->stream);
  ckpt_gpt_destroy(model->gpt);
  ckpt_ops_destroy(model->ops);
  void *all[] = {model->gradients, model->tokens, model->targets, model->loss_grad, model->losses};
  for (int k = 0; k < 5 && model->memory != NULL; ++k) (void)ckpt_arena_free(model->memory, all[k]); /* blocks keep an arena alive */
  ckpt_arena_destroy(model->memory);
  if (model->device != NULL) {
    ckpt_device_host_free(model->device, model->batches, model->batches_bytes);
    ckpt_device_stream_destroy(model->device, model->stream);
  }
  ckpt_device_close(model->device);
}

/* ---- state ---- */

static size_t parameter_bytes(const struct model *model) {
  return model->parameter_count * (model->options->dtype == CKPT_DTYPE_FLOAT32 ? sizeof(float) : sizeof(uint16_t));
}

int state_open(const struct model *model, struct state *out) {
  const size_t bytes = model->parameter_count * sizeof(float);
  memset(out, 0, sizeof *out);
  out->model = model;
  int failed = take(model, parameter_bytes(model), &out->parameters);
  if (!failed && model->options->dtype != CKPT_DTYPE_FLOAT32) failed = take(model, bytes, &out->master_weights);
  if (!failed) failed = take(model, bytes, &out->first_moment);
  if (!failed) failed = take(model, bytes, &out->second_moment);
  return failed;
}

void state_close(struct state *state) {
  if (state->model == NULL) return;
  void *all[] = {state->second_moment, state->first_moment, state->master_weights, state->parameters};
  for (int k = 0; k < 4; ++k) (void)ckpt_arena_free(state->model->memory, all[k]);
}

int state_init(struct model *model, struct state *state) {
  const size_t count = model->parameter_count;
  state->step = 0;
  if (zero(model, state->first_moment, count * sizeof(float)) || zero(model, state->second_moment, count * sizeof(float))) return EXIT_BAD_INPUT;
  TRY_OPS(ckpt_gpt_bind(model->gpt, state->parameters, model->gradients));
  TRY_OPS(ckpt_gpt_init(model->gpt, model->options->seed));
  if (state->master_weights != NULL) TRY_OPS(ckpt_ops_to_float(model->ops, state->parameters, count, state->master_weights));
  return 0;
}

int snapshot_open(const struct model *model, struct snapshot *out) {
  memset(out, 0, sizeof *out);
  out->parameters = malloc(model->parameter_count * sizeof(float));
  out->first_moment = malloc(model->parameter_count * sizeof(float));
  out->second_moment = malloc(model->parameter_count * sizeof(float));
  if (out->parameters == NULL || out->first_moment == NULL || out->second_moment == NULL)
    return complain("out of memory for a copy of %zu parameters and their moments", model->parameter_count);
  return 0;
}

void snapshot_close(struct snapshot *snapshot) {
  free(snapshot->parameters);
  free(snapshot->first_moment);
  free(snapshot->second_moment);
}

int state_to_host(const struct model *model, const struct state *state, struct snapshot *out) {
  const size_t bytes = model->parameter_count * sizeof(float);
  const void *parameters = state->master_weights != NULL ? state->master_weights : state->parameters;
  out->step = state->step;
  return fetch(model, out->parameters, parameters, bytes) || fetch(model, out->first_moment, state->first_moment, bytes) ||
         fetch(model, out->second_moment, state->second_moment, bytes);
}

int state_from_host(const struct model *model, const struct snapshot *from, struct state *out) {
  const size_t bytes = model->parameter_count * sizeof(float);
  void *parameters = out->master_weights != NULL ? out->master_weights : out->parameters;
  out->step = from->step;
  if (copy(model, parameters, from->parameters, bytes, CKPT_COPY_HOST_TO_DEVICE) ||
      copy(model, out->first_moment, from->first_moment, bytes, CKPT_COPY_HOST_TO_DEVICE) ||
      copy(model, out->second_moment, from->second_moment, bytes, CKPT_COPY_HOST_TO_DEVICE))
    return EXIT_BAD_INPUT;
  if (out->master_weights != NULL) TRY_OPS(ckpt_ops_from_float(model->ops, out->master_weights, model->parameter_count, out->parameters));
  TRY_CORE(ckpt_device_synchronize(model->device, model->stream)); /* `from` may go */
  return 0;
}

/* ---- runs ---- */

/* A recording in which nothing runs: it tells the tape what a step is made of, and the tape answers with a plan. */
static int plan_dry(struct model *model, struct run *run) {
  const void *grads[1] = {model->loss_grad};
  ckpt_buffer loss = 0;
  TRY_CORE(ckpt_tape_begin(run->tape, KEY, CKPT_TAPE_DRY));
  TRY_OPS(ckpt_gpt_record(model->gpt, run->tape, NULL, NULL, 0, &loss));
  const ckpt_status status = ckpt_backward(run->tape, &loss, grads, 1, 0);
  ckpt_tape_stats stats = {0};
  stats.struct_size = sizeof stats;
  if (status != CKPT_OK && status != CKPT_ERROR_BUDGET) return complain("%s", ckpt_last_error());
  TRY_CORE(ckpt_tape_get_stats(run->tape, &stats));
  run->minimum_budget = stats.minimum_budget_bytes;
  if (status == CKPT_OK) return 0;
  char name[32];
  strategy_text(&run->strategy, name, sizeof name);
  complain("--budget is %zu bytes, too small for strategy %s: the smallest budget that works is %zu bytes (%.1f MiB)", run->budget, name,
           run->minimum_budget, (double)run->minimum_budget / 1048576);
  return EXIT_INFEASIBLE;
}

int run_open(struct model *model, const struct strategy *strategy, const struct list *keep, const struct list *recompute, size_t budget,
             ckpt_arena *arena, struct run *out) {
  memset(out, 0, sizeof *out);
  out->strategy = *strategy;
  out->budget = budget;
  if (arena == NULL) {
    ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT; /* no capacity: the tape keeps to its budget, and memory comes on use */
    arena_desc.stream = model->stream;
    TRY_CORE(ckpt_arena_create(model->device, &arena_desc, &out->arena));
    arena = out->arena;
  }
  ckpt_tape_desc desc = CKPT_TAPE_DESC_INIT;
  desc.arena = arena;
  /* A tape takes no budget below its arena's alignment; what a dry recording says of that one is true of less. */
  desc.budget_bytes = budget > 0 && budget < ALIGNMENT ? ALIGNMENT : budget;
  desc.seed = model->options->seed;
  desc.strategy = strategy->id;
  desc.strategy_k = strategy->k;
  if (strategy->id == CKPT_STRATEGY_SELECTIVE) {
    desc.keep_patterns = keep->items;
    desc.keep_pattern_count = keep->count;
    desc.recompute_patterns = recompute->items;
    desc.recompute_pattern_count = recompute->count;
  }
  TRY_CORE(ckpt_tape_create(&desc, &out->tape));
  return plan_dry(model, out);
}

void run_close(struct run *run) {
  ckpt_graph_destroy(run->graph);
  ckpt_tape_destroy(run->tape);
  ckpt_arena_destroy(run->arena);
}

/* ---- a step ---- */

/* Forward and backward of the batch that is in the device's memory. */
static int forward_and_backward(struct model *model, struct run *run, double *out_forward_seconds) {
  const void *grads[1] = {model->loss_grad};
  ckpt_buffer loss = 0;
  const double start = seconds_now();
  TRY_CORE(ckpt_tape_begin(run->tape, KEY, 0));
  TRY_OPS(ckpt_gpt_record(model->gpt, run->tape, model->tokens, model->targets, 0, &loss));
  *out_forward_seconds = seconds_now() - start;
  TRY_CORE(ckpt_backward(run->tape, &loss, grads, 1, 0));
  return 0;
}

/* Notes that work as a graph, without doing it. */
static int capture(struct model *model, struct run *run) {
  double unused = 0;
  TRY_CORE(ckpt_tape_prepare(run->tape, KEY));
  TRY_CORE(ckpt_device_capture_begin(model->device, model->stream));
  const int failed = forward_and_backward(model, run, &unused);
  const ckpt_status status = ckpt_device_capture_end(model->device, model->stream, &run->graph);
  return failed ? failed : status != CKPT_OK ? complain("%s", ckpt_last_error()) : 0;
}

/* `number` counts the micro-batches of the whole training, `k` those of this step. */
static int next_batch(struct model *model, uint64_t number, uint64_t k) {
  const struct options *o = model->options;
  int32_t *tokens = model->batches + 2 * k * model->micro_floats, *targets = tokens + model->micro_floats;
  const size_t bytes = model->micro_floats * sizeof(int32_t);
  const int failed = text_batch(model->text, o->seed, number, (size_t)o->batch, (size_t)o->sequence, tokens, targets);
  return failed || copy(model, model->tokens, tokens, bytes, CKPT_COPY_HOST_TO_DEVICE) ||
         copy(model, model->targets, targets, bytes, CKPT_COPY_HOST_TO_DEVICE);
}

static int micro_step(struct model *model, struct run *run, uint64_t number, uint64_t k, struct measured *m) {
  double forward = 0;
  int failed = next_batch(model, number, k);
  if (failed) return failed;
  TRY_CORE(ckpt_tape_set_step(run->tape, number)); /* dropout's masks depend on it: a resumed run draws what this one would */
  if (run->graph != NULL) {
    TRY_CORE(ckpt_tape_replay(run->tape));
    TRY_CORE(ckpt_graph_launch(run->graph, model->stream));
  } else {
    failed = forward_and_backward(model, run, &forward);
    if (failed) return failed;
  }
  if (copy(model, model->losses + k, ckpt_gpt_loss(model->gpt), sizeof(float), CKPT_COPY_DEVICE_TO_DEVICE)) return EXIT_BAD_INPUT;
  ckpt_tape_stats stats = {0};
  stats.struct_size = sizeof stats;
  TRY_CORE(ckpt_tape_get_stats(run->tape, &stats));
#define LARGER(field, value) \
  if (m->field < (value)) m->field = (value)
  LARGER(peak_predicted, stats.peak_predicted_bytes);
  LARGER(peak_measured, stats.peak_measured_bytes);
  LARGER(arena_predicted, stats.arena_predicted_bytes);
  LARGER(arena_measured, stats.arena_measured_bytes);
#undef LARGER
  m->forward_seconds += forward;
  m->recompute_seconds += stats.recompute_seconds;
  m->recompute_predicted += stats.predicted_recompute_seconds;
  m->forward_count += stats.forward_count;
  m->recompute_count += stats.recompute_count;
  m->planned &= stats.planned != 0;
  return 0;
}

/* Waits for the step: the only time that the host does. */
static int end_step(struct model *model, struct measured *m) {
  const size_t count = (size_t)model->options->accumulation;
  float *losses = malloc(count * sizeof *losses);
  if (losses == NULL) return complain("out of memory for %zu losses", count);
  int failed = copy(model, losses, model->losses, count * sizeof *losses, CKPT_COPY_DEVICE_TO_HOST);
  if (!failed && ckpt_ops_check(model->ops) != CKPT_OK) failed = complain("%s", ckpt_ops_last_error());
  for (size_t k = 0; k < count && !failed; ++k) m->loss += (double)(losses[k] * (1.0f / (float)count));
  free(losses);
  return failed;
}

/* On a GPU the host's clock tells nothing of the parts of a step: what the plan in use says of them. */
static int parts_as_planned(struct model *model, struct run *run, struct measured *m) {
  ckpt_plan *plan = NULL;
  ckpt_plan_summary summary = {0};
  summary.struct_size = sizeof summary;
  TRY_CORE(ckpt_tape_plan(run->tape, KEY, &plan));
  const ckpt_status status = ckpt_plan_get_summary(plan, &summary);
  ckpt_plan_destroy(plan);
  if (status != CKPT_OK) return complain("%s", ckpt_last_error());
  m->forward_seconds = summary.forward_seconds * (double)model->options->accumulation;
  m->recompute_seconds = m->recompute_predicted;
  return 0;
}

int run_step(struct model *model, struct state *state, struct run *run, struct measured *out) {
  const struct options *o = model->options;
  memset(out, 0, sizeof *out);
  out->planned = 1;
  TRY_OPS(ckpt_gpt_bind(model->gpt, state->parameters, model->gradients));
  if (o->graph && run->steps == STEPS_BEFORE_CAPTURE && capture(model, run)) return EXIT_BAD_INPUT;
  const double start = seconds_now(), cpu_start = cpu_seconds_now();
  if (zero(model, model->gradients, model->parameter_count * sizeof(float))) return EXIT_BAD_INPUT;
  for (uint64_t k = 0; k < o->accumulation; ++k) {
    const int failed = micro_step(model, run, state->step * o->accumulation + k, k, out);
    if (failed) return failed;
  }
  ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
  update.learning_rate = (float)o->learning_rate;
  update.weight_decay = (float)o->weight_decay;
  update.max_norm = (float)o->max_norm;
  update.step = state->step + 1;
  update.master_weights = state->master_weights;
  TRY_OPS(ckpt_gpt_update(model->gpt, &update, state->first_moment, state->second_moment, NULL));
  if (end_step(model, out)) return EXIT_BAD_INPUT;
  ++state->step;
  ++run->steps;
  out->seconds = seconds_now() - start;
  out->cpu_seconds = cpu_seconds_now() - cpu_start;
  return options_on_cpu(o) ? 0 : parts_as_planned(model, run, out);
}
