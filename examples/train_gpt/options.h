/* The command line of train_gpt. Parsing is strict: what is wrong is named, with its value and what was expected. */
#ifndef TRAIN_GPT_OPTIONS_H
#define TRAIN_GPT_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { EXIT_BAD_INPUT = 1, EXIT_INFEASIBLE = 2, MAX_LIST = 16 };
enum { STEPS_BEFORE_CAPTURE = 3 }; /* costs are measured in the first two, kernels loaded */

struct strategy {
  uint32_t id, k; /* CKPT_STRATEGY_*, and k where the strategy has one */
};

struct list {
  const char *items[MAX_LIST];
  uint32_t count;
};

struct options {
  const char *text;      /* NULL: the sources of this repository */
  const char *save, *resume;
  const char *json_file; /* with json: NULL is standard output */
  const char *svg;       /* a directory */
  const char *device;    /* "cpu", "cuda", "cuda:1" */
  uint64_t layers, heads, channels, sequence, batch, accumulation;
  uint64_t steps, save_every, seed, threads;
  uint64_t attention;    /* CKPT_ATTENTION_* */
  uint64_t dtype;        /* CKPT_DTYPE_* */
  double dropout, learning_rate, weight_decay, max_norm;
  struct strategy strategies[MAX_LIST];
  uint64_t budgets[MAX_LIST];
  struct list keep, recompute; /* slot patterns of the strategy selective */
  uint32_t strategy_count, budget_count;
  uint64_t sweep;        /* rows of auto, over budgets from the smallest on; 0: not given */
  int json, compare, graph, help;
};

int options_on_cpu(const struct options *options);
const char *dtype_text(uint64_t dtype);

/* Prints "train_gpt: ..." on standard error and returns EXIT_BAD_INPUT. */
int complain(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* 0, or an exit status after a complaint. */
int options_parse(int argc, char **argv, struct options *out);
void options_help(void);

/* "selective", "uniform:4". */
void strategy_text(const struct strategy *strategy, char *text, size_t capacity);

#endif
