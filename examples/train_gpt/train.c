#define _POSIX_C_SOURCE 200809L
#include "train.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY = 1, VOCABULARY = 256 };

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

int model_open(const struct options *options, const struct text *text, struct model *out) {
  memset(out, 0, sizeof *out);
  out->options = options;
  out->text = text;
  ckpt_ops_desc ops = CKPT_OPS_DESC_INIT;
  ops.thread_count = (uint32_t)options->threads;
  TRY_CORE(ckpt_device_open("cpu", &out->device));
  TRY_OPS(ckpt_ops_create(&ops, &out->ops));
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
  out->gradients = calloc(out->parameter_count, sizeof *out->gradients);
  out->tokens = calloc(out->micro_floats, sizeof *out->tokens);
  out->targets = calloc(out->micro_floats, sizeof *out->targets);
  if (out->gradients == NULL || out->tokens == NULL || out->targets == NULL)
    return complain("out of memory for the gradients of %zu parameters", out->parameter_count);
  return 0;
}

void model_close(struct model *model) {
  ckpt_gpt_destroy(model->gpt);
  ckpt_ops_destroy(model->ops);
  ckpt_device_close(model->device);
  free(model->gradients);
  free(model->tokens);
  free(model->targets);
}

int state_open(const struct model *model, struct state *out) {
  out->step = 0;
  out->parameters = calloc(model->parameter_count, sizeof(float));
  out->first_moment = calloc(model->parameter_count, sizeof(float));
  out->second_moment = calloc(model->parameter_count, sizeof(float));
  if (out->parameters == NULL || out->first_moment == NULL || out->second_moment == NULL)
    return complain("out of memory for %zu parameters and their moments", model->parameter_count);
  return 0;
}

void state_close(struct state *state) {
  free(state->parameters);
  free(state->first_moment);
  free(state->second_moment);
}

int state_init(struct model *model, struct state *state) {
  state->step = 0;
  memset(state->first_moment, 0, model->parameter_count * sizeof(float));
  memset(state->second_moment, 0, model->parameter_count * sizeof(float));
  TRY_OPS(ckpt_gpt_bind(model->gpt, state->parameters, model->gradients));
  TRY_OPS(ckpt_gpt_init(model->gpt, model->options->seed));
  return 0;
}

/* Each of n micro-batches adds 1 / n of its gradient. */
static float loss_grad(const struct model *model) { return 1.0f / (float)model->options->accumulation; }

/* A recording in which nothing runs: it tells the tape what a step is made of, and the tape answers with a plan. */
static int plan_dry(struct model *model, struct run *run) {
  const float grad = loss_grad(model);
  const void *grads[1] = {&grad};
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
    ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT; /* no capacity: the tape keeps to its budget, and pages come on use */
    TRY_CORE(ckpt_arena_create(model->device, &arena_desc, &out->arena));
    arena = out->arena;
  }
  ckpt_tape_desc desc = CKPT_TAPE_DESC_INIT;
  desc.arena = arena;
  desc.budget_bytes = budget;
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
  ckpt_tape_destroy(run->tape);
  ckpt_arena_destroy(run->arena);
}

static int micro_step(struct model *model, struct run *run, uint64_t number, struct measured *m) {
  const struct options *o = model->options;
  const float grad = loss_grad(model);
  const void *grads[1] = {&grad};
  ckpt_buffer loss = 0;
  const int failed = text_batch(model->text, o->seed, number, (size_t)o->batch, (size_t)o->sequence, model->tokens, model->targets);
  if (failed) return failed;
  TRY_CORE(ckpt_tape_set_step(run->tape, number)); /* dropout's masks depend on it: a resumed run draws what this one would */
  const double start = seconds_now();
  TRY_CORE(ckpt_tape_begin(run->tape, KEY, 0));
  TRY_OPS(ckpt_gpt_record(model->gpt, run->tape, model->tokens, model->targets, 0, &loss));
  m->forward_seconds += seconds_now() - start;
  m->loss += (double)(*ckpt_gpt_loss(model->gpt) * grad);
  TRY_CORE(ckpt_backward(run->tape, &loss, grads, 1, 0));
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
  m->recompute_seconds += stats.recompute_seconds;
  m->forward_count += stats.forward_count;
  m->recompute_count += stats.recompute_count;
  m->planned &= stats.planned != 0;
  return 0;
}

int run_step(struct model *model, struct state *state, struct run *run, struct measured *out) {
  const struct options *o = model->options;
  memset(out, 0, sizeof *out);
  out->planned = 1;
  const double start = seconds_now(), cpu_start = cpu_seconds_now();
  TRY_OPS(ckpt_gpt_bind(model->gpt, state->parameters, model->gradients));
  memset(model->gradients, 0, model->parameter_count * sizeof(float));
  for (uint64_t k = 0; k < o->accumulation; ++k) {
    const int failed = micro_step(model, run, state->step * o->accumulation + k, out);
    if (failed) return failed;
  }
  ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
  update.learning_rate = (float)o->learning_rate;
  update.weight_decay = (float)o->weight_decay;
  update.max_norm = (float)o->max_norm;
  update.step = state->step + 1;
  TRY_OPS(ckpt_gpt_update(model->gpt, &update, state->first_moment, state->second_moment, &out->norm));
  ++state->step;
  out->seconds = seconds_now() - start;
  out->cpu_seconds = cpu_seconds_now() - cpu_start;
  return 0;
}
