/* The model, its state, and a run: a tape with a strategy and a budget. The part of train_gpt to copy from. */
#ifndef TRAIN_GPT_TRAIN_H
#define TRAIN_GPT_TRAIN_H

#include <ckpt/ckpt.h>
#include <ckpt/ops.h>

#include "options.h"
#include "save.h"
#include "text.h"

/* What is there once, whatever the strategy. On the CPU the device's memory is the host's, and its stream is NULL. */
struct model {
  const struct options *options;
  const struct text *text;
  ckpt_device *device;
  void *stream;       /* of all work */
  ckpt_ops *ops;
  ckpt_gpt *gpt;
  size_t parameter_count, micro_floats; /* micro_floats: tokens of a micro-batch */
  ckpt_arena *memory; /* all that follows up to `batches`, and the states */
  float *gradients;
  int32_t *tokens, *targets; /* of one micro-batch */
  float *loss_grad;
  float *losses;      /* one a micro-batch */
  int32_t *batches;   /* host memory that the device copies from: tokens and targets of all micro-batches of a step */
  size_t batches_bytes;
};

/* What training moves, in the device's memory. */
struct state {
  const struct model *model;
  void *parameters;     /* of the dtype */
  float *master_weights; /* the same in float32, which AdamW updates; NULL where the dtype is float32 */
  float *first_moment, *second_moment;
  uint64_t step;        /* steps done */
};

/* One way to run it. */
struct run {
  ckpt_arena *arena;
  ckpt_tape *tape;
  ckpt_graph *graph; /* of a micro-batch, forward and backward; NULL: not captured (yet) */
  uint64_t steps;    /* of this run */
  struct strategy strategy;
  size_t budget; /* 0: none */
  size_t minimum_budget;
};

/* What one step was like. Peaks are the largest among its micro-batches, seconds their sums. */
struct measured {
  double loss;
  double seconds;           /* the whole step */
  double cpu_seconds;       /* of all threads: what a busy machine disturbs less */
  double forward_seconds;   /* first runs; on a GPU, where nothing waits to measure, both as the plan has them */
  double recompute_seconds; /* forward callbacks beyond the first */
  double recompute_predicted; /* what the plan said of that, 0 where costs were not known yet */
  uint64_t forward_count, recompute_count;
  size_t peak_predicted, peak_measured;   /* live load */
  size_t arena_predicted, arena_measured; /* height: what a budget bounds */
  int planned;              /* every micro-batch ran a plan from begin to end */
};

/* Each gives 0 or an exit status after a complaint; close takes what is half open. */
int model_open(const struct options *options, const struct text *text, struct model *out);
void model_close(struct model *model);

int state_open(const struct model *model, struct state *out);
void state_close(struct state *state);
/* The parameters that the seed gives, no moments, step 0. */
int state_init(struct model *model, struct state *state);
/* Copies between a state and the host's memory. snapshot_open gives memory for one. */
int snapshot_open(const struct model *model, struct snapshot *out);
void snapshot_close(struct snapshot *snapshot);
int state_to_host(const struct model *model, const struct state *state, struct snapshot *out);
int state_from_host(const struct model *model, const struct snapshot *from, struct state *out);

/* Opens a tape and makes its plan from a dry recording: nothing has run and no memory is taken when this says no.
 * arena: where its memory comes from (shared, between steps it is empty), or NULL for one of its own. */
int run_open(struct model *model, const struct strategy *strategy, const struct list *keep, const struct list *recompute, size_t budget,
             ckpt_arena *arena, struct run *out);
void run_close(struct run *run);

/* One update: `accumulation` micro-batches, forward and backward, then AdamW. */
int run_step(struct model *model, struct state *state, struct run *run, struct measured *out);

double seconds_now(void);
double cpu_seconds_now(void);

#endif
