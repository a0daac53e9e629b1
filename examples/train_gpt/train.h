/* The model, its state, and a run: a tape with a strategy and a budget. The part of train_gpt to copy from. */
#ifndef TRAIN_GPT_TRAIN_H
#define TRAIN_GPT_TRAIN_H

#include <ckpt/ckpt.h>
#include <ckpt/ops.h>

#include "options.h"
#include "text.h"

/* What is there once, whatever the strategy. */
struct model {
  const struct options *options;
  const struct text *text;
  ckpt_device *device;
  ckpt_ops *ops;
  ckpt_gpt *gpt;
  size_t parameter_count, micro_floats; /* micro_floats: tokens of a micro-batch */
  float *gradients;
  int32_t *tokens, *targets;
};

/* What training moves. */
struct state {
  float *parameters, *first_moment, *second_moment;
  uint64_t step; /* steps done */
};

/* One way to run it. */
struct run {
  ckpt_arena *arena;
  ckpt_tape *tape;
  struct strategy strategy;
  size_t budget; /* 0: none */
  size_t minimum_budget;
};

/* What one step was like. Peaks are the largest among its micro-batches, seconds their sums. */
struct measured {
  double loss, norm;
  double seconds;           /* the whole step */
  double cpu_seconds;       /* of all threads: what a busy machine disturbs less */
  double forward_seconds;   /* first runs */
  double recompute_seconds; /* forward callbacks beyond the first */
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
