#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include <ckpt/ops.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("train_gpt: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return EXIT_BAD_INPUT;
}

enum kind { COUNT, REAL, TEXT, PATTERN, STRATEGY, BUDGET, ATTENTION, DTYPE, FLAG, JSON };

struct option {
  const char *name, *value, *help;
  enum kind kind;
  size_t offset; /* into struct options */
  double least, most;
};

#define AT(field) offsetof(struct options, field)

static const struct option kOptions[] = {
    {"--text", "FILE", "text to train on, byte by byte (default: the sources of this repository)", TEXT, AT(text), 0, 0},
    {"--layers", "N", "transformer blocks (4)", COUNT, AT(layers), 1, 1e6},
    {"--heads", "N", "attention heads, a divisor of channels (4)", COUNT, AT(heads), 1, 1e6},
    {"--channels", "N", "width (128)", COUNT, AT(channels), 1, 1e6},
    {"--sequence", "N", "bytes in a sequence (128)", COUNT, AT(sequence), 1, 1e6},
    {"--batch", "N", "sequences in a micro-batch (8)", COUNT, AT(batch), 1, 1e6},
    {"--accumulation", "N", "micro-batches in a step (1)", COUNT, AT(accumulation), 1, 1e6},
    {"--attention", "plain|tiled", "store the weights of attention, or make them again tile by tile (tiled)", ATTENTION, AT(attention), 0, 0},
    {"--dropout", "P", "probability, in [0, 1) (0)", REAL, AT(dropout), 0, 0.999999},
    {"--steps", "N", "steps of this run (20; with --compare 8)", COUNT, AT(steps), 1, 1e9},
    {"--seed", "N", "of parameters, batches and dropout (1)", COUNT, AT(seed), 0, 9007199254740992.0},
    {"--learning-rate", "X", "AdamW (0.001)", REAL, AT(learning_rate), 1e-12, 1e3},
    {"--weight-decay", "X", "of matrices (0.1)", REAL, AT(weight_decay), 0, 1e3},
    {"--max-norm", "X", "gradients are scaled down to this norm; 0: never (1)", REAL, AT(max_norm), 0, 1e12},
    {"--strategy", "NAME[:K]", "auto, store_all, every_segment, sqrt, uniform:K, block:K, full, selective (auto). With --compare\n"
     "repeatable: the rows beside store_all", STRATEGY, AT(strategies), 0, 0},
    {"--keep", "PATTERN", "selective: slots to keep, as in 'block/qkv' or 'ln*'; repeatable", PATTERN, AT(keep), 0, 0},
    {"--recompute", "PATTERN", "selective: slots to make again; repeatable", PATTERN, AT(recompute), 0, 0},
    {"--budget", "SIZE", "bytes of activations at most: 800000, 640KiB, 1.5GiB (no bound). With --compare repeatable: the\n"
     "rows of auto", BUDGET, AT(budgets), 0, 0},
    {"--device", "NAME", "cpu, cuda or cuda:N (cpu)", TEXT, AT(device), 0, 0},
    {"--dtype", "NAME", "of activations and weights: float32, bfloat16, float16; the CPU has float32 alone (float32)", DTYPE, AT(dtype), 0, 0},
    {"--graph", NULL, "after three steps capture one as a graph, and launch that from then on (cuda)", FLAG, AT(graph), 0, 0},
    {"--threads", "N", "threads of the CPU; 0: all there are (0)", COUNT, AT(threads), 0, 1024},
    {"--save", "FILE", "write parameters, AdamW's moments and the step to FILE at the end", TEXT, AT(save), 0, 0},
    {"--save-every", "N", "and after every N steps", COUNT, AT(save_every), 1, 1e9},
    {"--resume", "FILE", "go on from FILE; what shapes the training must be as it was then", TEXT, AT(resume), 0, 0},
    {"--compare", NULL, "run the same steps under many strategies and budgets, and compare", FLAG, AT(compare), 0, 0},
    {"--budget-count", "N", "with --compare: N rows of auto, from the smallest budget that works to all that store_all takes, and\n"
     "one at the bytes of each other row; and each row's time against what its plan predicted", COUNT, AT(sweep), 2, 20},
    {"--json", "[=FILE]", "one object on standard output and nothing else there; or to FILE", JSON, AT(json), 0, 0},
    {"--svg", "DIR", "write DIR/timeline.svg: memory over one step", TEXT, AT(svg), 0, 0},
    {"--help", NULL, "this text", FLAG, AT(help), 0, 0},
};
enum { OPTION_COUNT = sizeof kOptions / sizeof kOptions[0] };

void options_help(void) {
  puts("train_gpt [options]\n\n"
       "Trains a byte-level GPT on the CPU or a GPU within a memory budget. Exit status: 0; 1 for bad input, or a comparison in which\n"
       "a row is not bitwise equal or a measured peak is not the predicted one; 2 for a budget that is too small.\n");
  for (int k = 0; k < OPTION_COUNT; ++k) {
    const struct option *o = &kOptions[k];
    char left[64];
    snprintf(left, sizeof left, o->kind == JSON ? "%s%s" : "%s %s", o->name, o->value == NULL ? "" : o->value);
    const char *line = o->help;
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1, left[0] = 0)
      printf("  %-24s %.*s\n", left, (int)(end - line), line);
    printf("  %-24s %s\n", left, line);
  }
}

static const char *const kDtypes[] = {"float32", "bfloat16", "float16"}; /* CKPT_DTYPE_* */

const char *dtype_text(uint64_t dtype) { return dtype < 3 ? kDtypes[dtype] : "?"; }

int options_on_cpu(const struct options *options) { return strcmp(options->device, "cpu") == 0; }

void strategy_text(const struct strategy *strategy, char *text, size_t capacity) {
  const char *name = ckpt_strategy_name(strategy->id);
  if (strategy->k > 0) snprintf(text, capacity, "%s:%u", name, strategy->k);
  else snprintf(text, capacity, "%s", name);
}

/* ---- values ---- */

static int parse_count(const struct option *o, const char *value, uint64_t *out) {
  char *end = NULL;
  errno = 0;
  const unsigned long long number = strtoull(value, &end, 10);
  if (value[0] < '0' || value[0] > '9' || *end != 0 || errno != 0 || (double)number < o->least || (double)number > o->most)
    return complain("%s is '%s', expected a whole number from %.0f to %.0f", o->name, value, o->least, o->most);
  *out = number;
  return 0;
}

static int parse_real(const struct option *o, const char *value, double *out) {
  char *end = NULL;
  const double number = strtod(value, &end);
  const int starts = (value[0] >= '0' && value[0] <= '9') || value[0] == '.';
  if (!starts || *end != 0 || !isfinite(number) || number < o->least || number > o->most)
    return complain("%s is '%s', expected a number from %g to %g", o->name, value, o->least, o->most);
  *out = number;
  return 0;
}

/* Bytes, or a number with a unit; rounded down, so that the budget is kept. */
static int parse_size(const struct option *o, const char *value, uint64_t *out) {
  static const struct { const char *name; double bytes; } units[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
  char *end = NULL;
  const double number = strtod(value, &end);
  if (value[0] >= '0' && value[0] <= '9' && strcspn(value, "xXeEnN") >= (size_t)(end - value))
    for (int k = 0; k < 4; ++k) {
      const double bytes = number * units[k].bytes;
      if (strcmp(end, units[k].name) != 0 || bytes < 1 || bytes > 9007199254740992.0 || (k == 0 && bytes != floor(bytes))) continue;
      *out = (uint64_t)bytes;
      return 0;
    }
  return complain("%s is '%s', expected a size of at least one byte: 800000, 640KiB, 96MiB, 1.5GiB", o->name, value);
}

static int append(const struct option *o, const char *value, struct list *list) {
  if (list->count == MAX_LIST) return complain("%s '%s': expected at most %d of this option", o->name, value, MAX_LIST);
  if (value[0] == 0) return complain("%s is '', expected a pattern, as in 'block/fc1' or 'ln*'", o->name);
  list->items[list->count++] = value;
  return 0;
}

static int take(const struct option *o, const char *value, struct options *out) {
  void *field = (char *)out + o->offset;
  switch (o->kind) {
    case COUNT: return parse_count(o, value, field);
    case REAL: return parse_real(o, value, field);
    case PATTERN: return append(o, value, field);
    case TEXT:
      if (value[0] == 0) return complain("%s is '', expected %s", o->name, o->value);
      memcpy(field, &value, sizeof value);
      return 0;
    case STRATEGY:
      if (out->strategy_count == MAX_LIST) return complain("%s '%s': expected at most %d of this option", o->name, value, MAX_LIST);
      if (ckpt_strategy_parse(value, &out->strategies[out->strategy_count].id, &out->strategies[out->strategy_count].k) != CKPT_OK)
        return complain("%s is '%s': %s", o->name, value, ckpt_last_error());
      ++out->strategy_count;
      return 0;
    case BUDGET:
      if (out->budget_count == MAX_LIST) return complain("%s '%s': expected at most %d of this option", o->name, value, MAX_LIST);
      return parse_size(o, value, &out->budgets[out->budget_count]) || (++out->budget_count, 0);
    case ATTENTION:
      if (strcmp(value, "plain") != 0 && strcmp(value, "tiled") != 0)
        return complain("%s is '%s', expected plain or tiled", o->name, value);
      out->attention = value[0] == 'p' ? CKPT_ATTENTION_PLAIN : CKPT_ATTENTION_TILED;
      return 0;
    case DTYPE:
      for (uint64_t k = 0; k < 3; ++k)
        if (strcmp(value, kDtypes[k]) == 0) return out->dtype = k, 0;
      return complain("%s is '%s', expected float32, bfloat16 or float16", o->name, value);
    case FLAG: break;
    case JSON: break;
  }
  return 0;
}

/* ---- the whole line ---- */

static int take_argument(int argc, char **argv, int *at, struct options *out, int *given) {
  const char *argument = argv[*at];
  const char *equals = strchr(argument, '=');
  const size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
  for (int k = 0; k < OPTION_COUNT; ++k) {
    const struct option *o = &kOptions[k];
    if (strlen(o->name) != length || strncmp(o->name, argument, length) != 0) continue;
    const int repeatable = o->kind == PATTERN || o->kind == STRATEGY || o->kind == BUDGET;
    if (given[k]++ && !repeatable) return complain("%s is given twice, expected it once", o->name);
    if (o->kind == FLAG || o->kind == JSON) {
      if (equals != NULL && (o->kind == FLAG || equals[1] == 0))
        return complain("%s is '%s', expected %s", o->name, equals + 1, o->kind == FLAG ? "no value" : "a file name, or no '='");
      if (equals != NULL) out->json_file = equals + 1;
      *(int *)(void *)((char *)out + o->offset) = 1;
      return 0;
    }
    if (equals == NULL && *at + 1 == argc) return complain("%s: no value, expected %s", o->name, o->value);
    return take(o, equals != NULL ? equals + 1 : argv[++*at], out);
  }
  return complain("unknown option '%s', see train_gpt --help", argument);
}

static int has_strategy(const struct options *o, uint32_t id) {
  for (uint32_t k = 0; k < o->strategy_count; ++k)
    if (o->strategies[k].id == id) return 1;
  return 0;
}

static int check_device(const struct options *o) {
  if (options_on_cpu(o) && o->dtype != CKPT_DTYPE_FLOAT32)
    return complain("--dtype is %s, expected float32 with --device cpu", dtype_text(o->dtype));
  if (options_on_cpu(o) && o->graph) return complain("--graph with --device cpu: expected --device cuda");
  if (!options_on_cpu(o) && o->threads != 0)
    return complain("--threads is %llu, expected --device cpu: a GPU takes no threads", (unsigned long long)o->threads);
  if (o->graph && (o->compare || o->svg != NULL))
    return complain("--graph with %s: expected one of them, a graph is launched without the tape", o->compare ? "--compare" : "--svg");
  if (o->graph && o->steps <= STEPS_BEFORE_CAPTURE)
    return complain("--graph with --steps %llu: expected at least %d, the first %d are no graph", (unsigned long long)o->steps,
                    STEPS_BEFORE_CAPTURE + 1, STEPS_BEFORE_CAPTURE);
  return 0;
}

/* May the last part of `path` be made, or replaced, in its folder? errno says why not. */
static int can_make(const char *path) {
  char folder[4096];
  size_t length = strlen(path);
  while (length > 0 && path[length - 1] == '/') --length; /* a directory's name may end so */
  while (length > 0 && path[length - 1] != '/') --length;
  if (snprintf(folder, sizeof folder, "%.*s.", (int)length, path) >= (int)sizeof folder) return errno = ENAMETOOLONG, 0;
  return access(folder, W_OK | X_OK) == 0;
}

static int can_write(const char *path) { return access(path, F_OK) == 0 ? access(path, W_OK) == 0 : can_make(path); }

static int is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? (errno = EISDIR, 1) : 0;
}

/* Where the training's results go: better said before it than after. */
static int check_places(const struct options *o) {
  if (o->save != NULL && (is_folder(o->save) || !can_make(o->save))) return complain("save file '%s': %s", o->save, strerror(errno));
  if (o->json_file != NULL && (is_folder(o->json_file) || !can_write(o->json_file)))
    return complain("--json: file '%s': %s", o->json_file, strerror(errno));
  if (o->svg != NULL && !can_write(o->svg)) return complain("--svg: directory '%s': %s", o->svg, strerror(errno));
  return 0;
}

/* What excludes or needs what: an option that would do nothing is an error. */
static int check_together(struct options *o, int steps_given) {
  const int failed = check_device(o);
  if (failed) return failed;
  if (o->channels % o->heads != 0)
    return complain("--heads is %llu, expected a divisor of --channels (%llu)", (unsigned long long)o->heads, (unsigned long long)o->channels);
  if (o->compare && (o->save != NULL || o->resume != NULL || o->save_every != 0))
    return complain("%s with --compare: expected one of them, a comparison starts anew and saves nothing",
                    o->resume != NULL ? "--resume" : o->save != NULL ? "--save" : "--save-every");
  if (o->save_every != 0 && o->save == NULL) return complain("--save-every without --save: expected --save FILE too");
  if (!o->compare && o->strategy_count > 1) return complain("--strategy is given %u times, expected once without --compare", o->strategy_count);
  if (!o->compare && o->budget_count > 1) return complain("--budget is given %u times, expected once without --compare", o->budget_count);
  if (o->compare && o->budget_count > 0 && o->strategy_count > 0 && !has_strategy(o, CKPT_STRATEGY_AUTO))
    return complain("--budget with --compare is for rows of auto, expected --strategy auto among the rows");
  if (o->sweep > 0 && !o->compare) return complain("--budget-count is %llu, expected --compare too", (unsigned long long)o->sweep);
  if (o->sweep > 0 && o->budget_count > 0) return complain("--budget with --budget-count: expected one of them");
  if (o->sweep > 0 && o->strategy_count > 0 && !has_strategy(o, CKPT_STRATEGY_AUTO))
    return complain("--budget-count is for rows of auto, expected --strategy auto among the rows");
  const uint32_t patterns = o->keep.count + o->recompute.count;
  const int default_rows = o->compare && o->strategy_count == 0;
  if (patterns > 0 && !default_rows && !has_strategy(o, CKPT_STRATEGY_SELECTIVE))
    return complain("%s '%s': patterns are for --strategy selective", o->keep.count > 0 ? "--keep" : "--recompute",
                    o->keep.count > 0 ? o->keep.items[0] : o->recompute.items[0]);
  if (patterns == 0 && !o->compare && has_strategy(o, CKPT_STRATEGY_SELECTIVE))
    return complain("--strategy selective: expected --keep PATTERN or --recompute PATTERN too");
  if (o->max_norm > 0 && (float)o->max_norm == 0)
    return complain("--max-norm is %g, expected 0 (never), or a number that float32 holds", o->max_norm);
  if (!steps_given && o->compare) o->steps = 8;
  return check_places(o);
}

int options_parse(int argc, char **argv, struct options *out) {
  memset(out, 0, sizeof *out);
  out->layers = 4;
  out->heads = 4;
  out->channels = 128;
  out->sequence = 128;
  out->batch = 8;
  out->accumulation = 1;
  out->steps = 20;
  out->seed = 1;
  out->device = "cpu";
  out->attention = CKPT_ATTENTION_TILED;
  out->learning_rate = 1e-3;
  out->weight_decay = 0.1;
  out->max_norm = 1.0;
  int given[OPTION_COUNT] = {0}, steps_given = 0;
  for (int k = 1; k < argc; ++k) {
    const int failed = take_argument(argc, argv, &k, out, given);
    if (failed) return failed;
  }
  if (out->help) return 0;
  for (int k = 0; k < OPTION_COUNT; ++k)
    if (kOptions[k].offset == AT(steps)) steps_given = given[k];
  return check_together(out, steps_given);
}
