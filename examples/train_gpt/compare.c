#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "timeline.h"

/* The tape measures costs in the first two steps and plans anew before the third: they are not timed. */
enum { MAX_ROWS = 40, WARM_UP = 3, MAX_STEPS_TIMED = 1000 };

/* Patterns of the selective row where none are given: what is cheap to make again and large to keep. */
static const struct list kFeedForward = {{"block/ln2*", "block/fc1", "block/gelu"}, 3};
static const struct list kNone = {{NULL}, 0};

struct row {
  struct run run;
  struct state state;
  struct timeline timeline;
  struct measured last;
  char name[32];
  double *seconds, *cpu, *forward, *recompute; /* one a step */
  size_t height; /* predicted before the first step */
  int bitwise_equal, predicted, opened;
};

struct comparison {
  struct model *model;
  ckpt_arena *arena; /* shared by all rows: between steps it is empty, and all find the same pages warm */
  struct row rows[MAX_ROWS];
  size_t count;
  FILE *people;
};

/* ---- which rows ---- */

static int add_row(struct comparison *c, uint32_t id, uint32_t k, size_t budget) {
  const struct options *o = c->model->options;
  if (c->count == MAX_ROWS) return complain("--compare: more than %d rows", MAX_ROWS);
  struct row *row = &c->rows[c->count];
  const struct strategy strategy = {id, k};
  const int own_patterns = o->keep.count + o->recompute.count > 0;
  ++c->count;
  strategy_text(&strategy, row->name, sizeof row->name);
  row->predicted = 1;
  row->seconds = calloc(4 * (size_t)o->steps, sizeof(double));
  if (row->seconds == NULL) return complain("out of memory for %llu steps", (unsigned long long)o->steps);
  row->cpu = row->seconds + o->steps;
  row->forward = row->cpu + o->steps;
  row->recompute = row->forward + o->steps;
  if (state_open(c->model, &row->state) || state_init(c->model, &row->state)) return EXIT_BAD_INPUT;
  row->opened = 1;
  const int failed = run_open(c->model, &strategy, own_patterns ? &o->keep : &kNone, own_patterns ? &o->recompute : &kFeedForward, budget, c->arena, &row->run);
  if (failed) return failed;
  ckpt_tape_stats stats = {0};
  stats.struct_size = sizeof stats;
  if (ckpt_tape_get_stats(row->run.tape, &stats) != CKPT_OK) return complain("%s", ckpt_last_error());
  row->height = stats.arena_predicted_bytes;
  return 0;
}

/* The height that a strategy needs, and the smallest that AUTO can do with, from dry recordings. */
static int height_of(struct comparison *c, uint32_t id, size_t *out_height, size_t *out_minimum) {
  const struct strategy strategy = {id, 0};
  struct run run;
  ckpt_tape_stats stats = {0};
  stats.struct_size = sizeof stats;
  int failed = run_open(c->model, &strategy, &kNone, &kNone, 0, c->arena, &run);
  if (!failed && ckpt_tape_get_stats(run.tape, &stats) != CKPT_OK) failed = complain("%s", ckpt_last_error());
  *out_height = stats.arena_predicted_bytes;
  *out_minimum = run.minimum_budget;
  run_close(&run);
  return failed;
}

/* Rows of AUTO: the budgets given, or five from the smallest that works towards all that store_all takes. */
static int add_auto(struct comparison *c) {
  const struct options *o = c->model->options;
  for (uint32_t k = 0; k < o->budget_count; ++k) {
    const int failed = add_row(c, CKPT_STRATEGY_AUTO, 0, (size_t)o->budgets[k]);
    if (failed) return failed;
  }
  if (o->budget_count > 0) return 0;
  size_t all = 0, minimum = 0, unused = 0;
  const size_t fixed = c->count;
  int failed = height_of(c, CKPT_STRATEGY_STORE_ALL, &all, &unused);
  if (!failed) failed = height_of(c, CKPT_STRATEGY_AUTO, &unused, &minimum);
  for (uint64_t k = 0; k < o->sweep && !failed; ++k)
    failed = add_row(c, CKPT_STRATEGY_AUTO, 0, k + 1 == o->sweep ? all : minimum + (all > minimum ? (size_t)((double)(all - minimum) * (double)k / (double)(o->sweep - 1)) : 0));
  for (size_t k = 0; o->sweep > 0 && k < fixed && !failed; ++k)
    if (c->rows[k].height >= minimum && c->rows[k].height < all) failed = add_row(c, CKPT_STRATEGY_AUTO, 0, c->rows[k].height);
  if (o->sweep > 0) return failed;
  static const size_t eighths[] = {0, 1, 2, 4, 6};
  for (size_t k = 0; k < sizeof eighths / sizeof eighths[0] && !failed; ++k) {
    const size_t step = all > minimum ? (all - minimum) / 8 : 0;
    if (step > 0 || k == 0) failed = add_row(c, CKPT_STRATEGY_AUTO, 0, minimum + eighths[k] * step);
  }
  return failed;
}

static int add_rows(struct comparison *c) {
  const struct options *o = c->model->options;
  int failed = add_row(c, CKPT_STRATEGY_STORE_ALL, 0, 0);
  if (o->strategy_count > 0) {
    for (uint32_t k = 0; k < o->strategy_count && !failed; ++k) {
      const struct strategy *s = &o->strategies[k];
      if (s->id != CKPT_STRATEGY_STORE_ALL) failed = s->id == CKPT_STRATEGY_AUTO ? add_auto(c) : add_row(c, s->id, s->k, 0);
    }
    return failed;
  }
  if (!failed) failed = add_row(c, CKPT_STRATEGY_EVERY_SEGMENT, 0, 0);
  if (!failed) failed = add_row(c, CKPT_STRATEGY_SQRT, 0, 0);
  for (uint32_t k = 2; k <= o->layers && k <= 4 && !failed; k *= 2) failed = add_row(c, CKPT_STRATEGY_UNIFORM, k, 0);
  if (!failed) failed = add_row(c, CKPT_STRATEGY_BLOCK, (uint32_t)(o->layers + 1) / 2 + 1, 0);
  if (!failed) failed = add_row(c, CKPT_STRATEGY_FULL, 0, 0);
  if (!failed) failed = add_row(c, CKPT_STRATEGY_SELECTIVE, 0, 0);
  return failed ? failed : add_auto(c);
}

/* ---- the steps ---- */

static int step_row(struct comparison *c, struct row *row, uint64_t step) {
  const struct options *o = c->model->options;
  const int traced = o->svg != NULL && step + 1 == o->steps;
  int failed = traced ? timeline_start(&row->timeline, row->run.tape) : 0;
  if (!failed) failed = run_step(c->model, &row->state, &row->run, &row->last);
  if (!failed && traced) failed = timeline_stop(&row->timeline, row->run.tape);
  const struct measured *m = &row->last;
  row->seconds[step] = m->seconds;
  row->cpu[step] = m->cpu_seconds;
  row->forward[step] = m->forward_seconds;
  row->recompute[step] = m->recompute_seconds;
  row->predicted &= m->planned && m->peak_predicted == m->peak_measured && m->arena_predicted == m->arena_measured;
  return failed;
}

/* All that training moves, in float32: what a gradient's last bit changed, parameters of 16 bits would round away. */
static int same_bits(const struct snapshot *a, const struct snapshot *b, size_t bytes) {
  return memcmp(a->parameters, b->parameters, bytes) == 0 && memcmp(a->first_moment, b->first_moment, bytes) == 0 &&
         memcmp(a->second_moment, b->second_moment, bytes) == 0;
}

static int compare_bits(struct comparison *c) {
  struct snapshot first = {0}, other = {0};
  int failed = snapshot_open(c->model, &first);
  if (!failed) failed = snapshot_open(c->model, &other);
  for (size_t k = 0; k < c->count && !failed; ++k) {
    failed = state_to_host(c->model, &c->rows[k].state, k == 0 ? &first : &other);
    c->rows[k].bitwise_equal = k == 0 || same_bits(&first, &other, c->model->parameter_count * sizeof(float));
  }
  snapshot_close(&first);
  snapshot_close(&other);
  return failed;
}

/* Step by step through all rows, so that a busy moment of the machine falls on all of them. */
static int run_rows(struct comparison *c) {
  const struct options *o = c->model->options;
  const double start = seconds_now();
  for (uint64_t step = 0; step < o->steps; ++step) {
    for (size_t k = 0; k < c->count; ++k) {
      const int failed = step_row(c, &c->rows[k], step);
      if (failed) return failed;
    }
    const double spent = seconds_now() - start;
    fprintf(c->people, "step %llu of %llu under %zu strategies and budgets, loss %.4f, %.0f s left\n", (unsigned long long)step + 1,
            (unsigned long long)o->steps, c->count, c->rows[0].last.loss, spent / (double)(step + 1) * (double)(o->steps - step - 1));
    fflush(c->people);
  }
  return compare_bits(c);
}

/* ---- what came of it ---- */

struct figures {
  double step_seconds, cpu_seconds, tokens_per_second, recomputed;
  double ratio, ratio_predicted; /* of step times, to store_all's: CPU seconds (of a GPU: seconds), and from what the plan says is made again */
};

/* Medians over the steps that are timed. Recomputed: seconds of forward work done again over those of first runs. */
static struct figures figures_of(const struct comparison *c, const struct row *row) {
  const struct options *o = c->model->options;
  const size_t skip = o->steps > WARM_UP ? WARM_UP : (size_t)o->steps - 1, timed = (size_t)o->steps - skip;
  struct figures f = {0, 0, 0, 0, 0, 0};
  f.step_seconds = median(row->seconds + skip, timed);
  f.cpu_seconds = median(row->cpu + skip, timed);
  f.tokens_per_second = (double)(o->batch * o->accumulation * o->sequence) / f.step_seconds;
  const double forward = median(row->forward + skip, timed), recompute = median(row->recompute + skip, timed);
  f.recomputed = forward > 0 ? recompute / forward : 0;
  const struct row *all = &c->rows[0];
  double ratios[MAX_STEPS_TIMED];
  size_t count = 0;
  const int on_cpu = options_on_cpu(o);
  for (; count < timed && count < MAX_STEPS_TIMED; ++count)
    ratios[count] = on_cpu ? row->cpu[skip + count] / all->cpu[skip + count] : row->seconds[skip + count] / all->seconds[skip + count];
  f.ratio = median(ratios, count); /* step by step: both had the same moment of the machine */
  f.ratio_predicted = 1 + (row->last.recompute_predicted - all->last.recompute_predicted) / median(all->seconds + skip, timed);
  return f;
}

static void size_text(size_t bytes, char *text, size_t capacity) {
  if (bytes == 0) snprintf(text, capacity, "-");
  else if (bytes < 1048576) snprintf(text, capacity, "%.1f KiB", (double)bytes / 1024);
  else if (bytes < (size_t)10 << 30) snprintf(text, capacity, "%.1f MiB", (double)bytes / 1048576);
  else snprintf(text, capacity, "%.2f GiB", (double)bytes / 1073741824);
}

static void print_table(struct comparison *c) {
  const double all = (double)c->rows[0].last.peak_measured;
  fprintf(c->people, "\n%-14s %11s %14s %14s %12s %11s %9s %9s %9s %8s  %s\n", "strategy", "budget", "peak predicted", "peak measured", "of store_all",
          "recomputed", "time", "predicted", "tokens/s", "loss", "bitwise equal");
  for (size_t k = 0; k < c->count; ++k) {
    const struct row *row = &c->rows[k];
    const struct figures f = figures_of(c, row);
    char budget[32], predicted[32], measured[32];
    size_text(row->run.budget, budget, sizeof budget);
    size_text(row->last.peak_predicted, predicted, sizeof predicted);
    size_text(row->last.peak_measured, measured, sizeof measured);
    fprintf(c->people, "%-14s %11s %14s %14s %11.1f%% %10.1f%% %9.3f %9.3f %9.0f %8.4f  %s\n", row->name, budget, predicted, measured,
            100 * (double)row->last.peak_measured / all, 100 * f.recomputed, f.ratio, f.ratio_predicted, f.tokens_per_second, row->last.loss, row->bitwise_equal ? "yes" : "NO");
  }
  fprintf(c->people, "\nbudget: of the arena's height. peak: of the live load. recomputed: seconds of forward work done again, over those of first runs.\n"
                     "time: %s of a step over store_all's (median over steps); predicted: the same from what the plan makes again.\n",
          options_on_cpu(c->model->options) ? "CPU seconds" : "seconds");
}

static int write_json(struct comparison *c) {
  FILE *file = report_open(c->model->options);
  if (file == NULL) return EXIT_BAD_INPUT;
  fputs("{\"rows\": [", file);
  for (size_t k = 0; k < c->count; ++k) {
    const struct row *row = &c->rows[k];
    const struct measured *m = &row->last;
    const struct figures f = figures_of(c, row);
    fprintf(file, "%s\n{\"strategy\": ", k > 0 ? "," : "");
    report_string(file, row->name);
    fprintf(file, ", \"budget_bytes\": %zu, \"peak_predicted_bytes\": %zu, \"peak_measured_bytes\": %zu, ", row->run.budget, m->peak_predicted, m->peak_measured);
    fprintf(file, "\"arena_predicted_bytes\": %zu, \"arena_measured_bytes\": %zu, \"step_seconds\": ", m->arena_predicted, m->arena_measured);
    report_number(file, f.step_seconds);
    fputs(", \"step_cpu_seconds\": ", file);
    report_number(file, f.cpu_seconds);
    fputs(", \"tokens_per_second\": ", file);
    report_number(file, f.tokens_per_second);
    fputs(", \"recomputed_fraction\": ", file);
    report_number(file, f.recomputed);
    fputs(", \"time_ratio\": ", file);
    report_number(file, f.ratio);
    fputs(", \"time_ratio_predicted\": ", file);
    report_number(file, f.ratio_predicted);
    report_numbers(file, "each_step_seconds", row->seconds, c->model->options->steps);
    report_numbers(file, "each_step_cpu_seconds", row->cpu, c->model->options->steps);
    fprintf(file, ", \"forward_count\": %llu, \"recompute_count\": %llu, \"loss\": ", (unsigned long long)m->forward_count, (unsigned long long)m->recompute_count);
    report_number(file, m->loss);
    fprintf(file, ", \"bitwise_equal\": %s, \"peaks_as_predicted\": %s}", row->bitwise_equal ? "true" : "false", row->predicted ? "true" : "false");
  }
  fputs("],\n", file);
  report_config(file, c->model);
  fputs("}", file);
  return report_close(c->model->options, file);
}

static int draw(struct comparison *c) {
  const struct options *o = c->model->options;
  struct panel panels[MAX_ROWS];
  for (size_t k = 0; k < c->count; ++k) {
    struct panel *p = &panels[k];
    const struct row *row = &c->rows[k];
    const struct figures f = figures_of(c, row);
    char budget[32];
    p->timeline = &row->timeline;
    p->budget = row->run.budget;
    size_text(p->budget, budget, sizeof budget);
    snprintf(p->title, sizeof p->title, p->budget > 0 ? "%s, budget %s" : "%s", row->name, budget);
    snprintf(p->note, sizeof p->note, "%.0f %% of store_all's peak, %.0f %% of the forward work again", 100 * (double)row->last.peak_measured / (double)c->rows[0].last.peak_measured,
             100 * f.recomputed);
  }
  char title[256];
  snprintf(title, sizeof title, "Memory over one training step: %llu blocks of %llu channels, sequence %llu, batch %llu", (unsigned long long)o->layers,
           (unsigned long long)o->channels, (unsigned long long)o->sequence, (unsigned long long)o->batch);
  const int failed = timeline_draw(o->svg, title, panels, c->count);
  if (!failed) fprintf(c->people, "memory over one step of each row: %s/timeline.svg\n", o->svg);
  return failed;
}

static int verdict(const struct comparison *c) {
  int failed = 0;
  for (size_t k = 0; k < c->count; ++k) {
    const struct row *row = &c->rows[k];
    if (!row->bitwise_equal) failed = complain("row %zu, %s: parameters or moments differ from store_all's", k + 1, row->name);
    if (!row->predicted)
      failed = complain("row %zu, %s: in one of the steps the measured peak was not the predicted one (last step: live %zu and %zu, height %zu and %zu bytes)", k + 1,
                        row->name, row->last.peak_measured, row->last.peak_predicted, row->last.arena_measured, row->last.arena_predicted);
  }
  return failed;
}

static int report(struct comparison *c) {
  print_table(c);
  const struct options *o = c->model->options;
  int failed = o->svg != NULL ? draw(c) : 0;
  if (!failed && o->json) failed = write_json(c);
  const int differs = verdict(c);
  return failed ? failed : differs;
}

int compare(struct model *model) {
  struct comparison *c = calloc(1, sizeof *c);
  if (c == NULL) return complain("out of memory");
  c->model = model;
  c->people = report_people(model->options);
  ckpt_arena_desc arena = CKPT_ARENA_DESC_INIT;
  arena.stream = model->stream;
  int failed = ckpt_arena_create(model->device, &arena, &c->arena) != CKPT_OK ? complain("%s", ckpt_last_error()) : 0;
  if (!failed) failed = add_rows(c);
  if (!failed) failed = run_rows(c);
  if (!failed) failed = report(c);
  for (size_t k = 0; k < c->count; ++k) {
    struct row *row = &c->rows[k];
    if (row->opened) run_close(&row->run);
    state_close(&row->state);
    timeline_free(&row->timeline);
    free(row->seconds);
  }
  ckpt_arena_destroy(c->arena);
  free(c);
  return failed;
}
