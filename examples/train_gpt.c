/* Trains a byte-level GPT on the CPU or a GPU within a memory budget.
 *
 *   train_gpt --budget 64MiB                     the fastest schedule that fits
 *   train_gpt --compare --svg out                the same steps under many strategies: a table, and memory over time
 *   train_gpt --steps 100 --save gpt.bin         and later: train_gpt --steps 100 --resume gpt.bin
 *   train_gpt --device cuda --dtype bfloat16     the same on a GPU; with --graph its steps are launched as graphs
 *
 * The gradients do not depend on budget or strategy, not in their last bit; a resumed run may use another one.
 *
 * train_gpt/train.c is the part to copy from: a model, a tape, a step. Beside it: options.c the command line, text.c the text
 * and its batches, save.c the save file, compare.c the comparison, timeline.c the picture, report.c the JSON. */
#include <ckpt/ops.h>
#include <stdio.h>
#include <stdlib.h>

#include "train_gpt/compare.h"
#include "train_gpt/report.h"
#include "train_gpt/save.h"
#include "train_gpt/timeline.h"
#include "train_gpt/train.h"

static void progress(FILE *people, const struct options *o, const struct state *state, const struct measured *m, uint64_t done, double spent) {
  const double left = spent / (double)done * (double)(o->steps - done);
  fprintf(people, "step %llu  loss %.4f  %.0f tokens/s  %.0f s left  peak measured %.2f MiB, predicted %.2f MiB%s\n", (unsigned long long)state->step,
          m->loss, (double)(o->batch * o->accumulation * o->sequence) / m->seconds, left, (double)m->peak_measured / 1048576,
          (double)m->peak_predicted / 1048576, m->planned ? "" : " (no plan)");
  fflush(people);
}

/* seconds: `count` of the wall's, then as many of all threads. */
static int write_json(const struct model *model, const struct run *run, const struct state *state, const struct measured *last, const double *seconds,
                      uint64_t count) {
  FILE *file = report_open(model->options);
  char name[32];
  if (file == NULL) return EXIT_BAD_INPUT;
  strategy_text(&run->strategy, name, sizeof name);
  fputs("{\"strategy\": ", file);
  report_string(file, name);
  fprintf(file, ", \"budget_bytes\": %zu, \"minimum_budget_bytes\": %zu, \"step\": %llu, \"loss\": ", run->budget, run->minimum_budget,
          (unsigned long long)state->step);
  report_number(file, last->loss);
  fprintf(file, ", \"peak_predicted_bytes\": %zu, \"peak_measured_bytes\": %zu, \"arena_predicted_bytes\": %zu, \"arena_measured_bytes\": %zu",
          last->peak_predicted, last->peak_measured, last->arena_predicted, last->arena_measured);
  report_numbers(file, "each_step_seconds", seconds, count);
  report_numbers(file, "each_step_cpu_seconds", seconds + count, count);
  const uint64_t skip = count > 2 ? 2 : count - 1; /* costs are measured in the first two */
  const double step_seconds = median(seconds + skip, (size_t)(count - skip));
  fputs(", \"step_seconds\": ", file);
  report_number(file, step_seconds);
  fputs(", \"tokens_per_second\": ", file);
  report_number(file, (double)(model->options->batch * model->options->accumulation * model->options->sequence) / step_seconds);
  fputs(", ", file);
  report_config(file, model);
  fputs("}", file);
  return report_close(model->options, file);
}

static int draw(const struct options *o, const struct run *run, const struct timeline *timeline) {
  struct panel panel = {timeline, "", "", run->budget};
  strategy_text(&run->strategy, panel.title, sizeof panel.title);
  return timeline_draw(o->svg, "Memory over one training step", &panel, 1);
}

static int save(struct model *model, const struct state *state) {
  struct snapshot snapshot;
  int failed = snapshot_open(model, &snapshot);
  if (!failed) failed = state_to_host(model, state, &snapshot);
  if (!failed) failed = save_write(model->options->save, model->options, model->text, &snapshot, model->parameter_count);
  snapshot_close(&snapshot);
  return failed;
}

static int resume(struct model *model, struct state *state) {
  struct snapshot snapshot;
  int failed = snapshot_open(model, &snapshot);
  if (!failed) failed = save_read(model->options->resume, model->options, model->text, &snapshot, model->parameter_count);
  if (!failed) failed = state_from_host(model, &snapshot, state);
  snapshot_close(&snapshot);
  return failed;
}

/* The steps, with what is printed and saved on the way. */
static int train_steps(struct model *model, struct state *state, struct run *run, double *seconds, struct timeline *timeline) {
  const struct options *o = model->options;
  FILE *people = report_people(o);
  struct measured m = {0};
  const double start = seconds_now();
  int failed = 0;
  for (uint64_t k = 0; k < o->steps && !failed; ++k) {
    const int traced = o->svg != NULL && k + 1 == o->steps;
    if (traced) failed = timeline_start(timeline, run->tape);
    if (!failed) failed = run_step(model, state, run, &m);
    if (!failed && traced) failed = timeline_stop(timeline, run->tape);
    if (failed) return failed;
    seconds[k] = m.seconds;
    seconds[o->steps + k] = m.cpu_seconds;
    progress(people, o, state, &m, k + 1, seconds_now() - start);
    const int due = k + 1 == o->steps || (o->save_every > 0 && (k + 1) % o->save_every == 0);
    if (o->save != NULL && due) failed = save(model, state);
  }
  if (!failed && o->svg != NULL) failed = draw(o, run, timeline);
  if (!failed && o->json) failed = write_json(model, run, state, &m, seconds, o->steps);
  return failed;
}

static int train(struct model *model) {
  const struct options *o = model->options;
  const struct strategy automatic = {CKPT_STRATEGY_AUTO, 0};
  struct state state = {0};
  struct run run = {0};
  struct timeline timeline = {0};
  double *seconds = calloc(2 * (size_t)o->steps, sizeof *seconds);
  int failed = seconds == NULL ? complain("out of memory for %llu steps", (unsigned long long)o->steps) : 0;
  if (!failed) failed = state_open(model, &state);
  if (!failed) failed = state_init(model, &state);
  if (!failed && o->resume != NULL) failed = resume(model, &state);
  if (!failed)
    failed = run_open(model, o->strategy_count > 0 ? &o->strategies[0] : &automatic, &o->keep, &o->recompute,
                      o->budget_count > 0 ? (size_t)o->budgets[0] : 0, NULL, &run);
  if (!failed) failed = train_steps(model, &state, &run, seconds, &timeline);
  timeline_free(&timeline);
  run_close(&run);
  state_close(&state);
  free(seconds);
  return failed;
}

int main(int argc, char **argv) {
  struct options options;
  struct text text = {0};
  struct model model = {0};
  int failed = options_parse(argc, argv, &options);
  if (failed) return failed;
  if (options.help) return options_help(), 0;
  failed = text_load(options.text, (size_t)options.sequence + 1, &text);
  if (!failed) failed = model_open(&options, &text, &model);
  if (!failed) failed = options.compare ? compare(&model) : train(&model);
  model_close(&model);
  text_free(&text);
  return failed;
}
