#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

FILE *report_people(const struct options *options) { return options->json && options->json_file == NULL ? stderr : stdout; }

FILE *report_open(const struct options *options) {
  if (options->json_file == NULL) return stdout;
  FILE *file = fopen(options->json_file, "w");
  if (file == NULL) complain("--json: file '%s': %s", options->json_file, strerror(errno));
  return file;
}

int report_close(const struct options *options, FILE *file) {
  fputc('\n', file);
  const int bad = ferror(file) != 0;
  if ((file != stdout ? fclose(file) : fflush(file)) != 0 || bad)
    return complain("--json: %s: %s", options->json_file != NULL ? options->json_file : "standard output", strerror(errno));
  return 0;
}

void report_string(FILE *file, const char *text) {
  fputc('"', file);
  for (const unsigned char *c = (const unsigned char *)text; *c != 0; ++c) {
    if (*c == '"' || *c == '\\') fprintf(file, "\\%c", *c);
    else if (*c < 0x20) fprintf(file, "\\u%04x", *c);
    else fputc(*c, file);
  }
  fputc('"', file);
}

void report_number(FILE *file, double number) {
  if (isfinite(number)) fprintf(file, "%.9g", number);
  else fputs("null", file);
}

void report_numbers(FILE *file, const char *name, const double *values, uint64_t count_of) {
  fprintf(file, ", \"%s\": [", name);
  for (uint64_t k = 0; k < count_of; ++k) {
    if (k > 0) fputs(", ", file);
    report_number(file, values[k]);
  }
  fputs("]", file);
}

static void count(FILE *file, const char *name, uint64_t value) { fprintf(file, "\"%s\": %llu, ", name, (unsigned long long)value); }

static void real(FILE *file, const char *name, double value) {
  fprintf(file, "\"%s\": ", name);
  report_number(file, value);
  fputs(", ", file);
}

/* Of this process, where the system tells (Linux); else 0. getrusage's starts from the peak of the process that started this one. */
static uint64_t resident_peak(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  unsigned long long kibibytes = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmHWM: %llu", &kibibytes) == 1) break;
  if (file != NULL) fclose(file);
  return (uint64_t)kibibytes * 1024;
}

void report_config(FILE *file, const struct model *model) {
  const struct options *o = model->options;
  ckpt_ops_info info = {0};
  info.struct_size = sizeof info;
  if (ckpt_ops_get_info(model->ops, &info) != CKPT_OK) info.struct_size = 0;
  fputs("\"config\": {", file);
  count(file, "layers", o->layers);
  count(file, "heads", o->heads);
  count(file, "channels", o->channels);
  count(file, "sequence", o->sequence);
  count(file, "batch", o->batch);
  count(file, "accumulation", o->accumulation);
  count(file, "steps", o->steps);
  count(file, "seed", o->seed);
  count(file, "parameters", model->parameter_count);
  real(file, "dropout", o->dropout);
  real(file, "learning_rate", o->learning_rate);
  real(file, "weight_decay", o->weight_decay);
  real(file, "max_norm", o->max_norm);
  fprintf(file, "\"attention\": \"%s\", \"text\": ", o->attention == CKPT_ATTENTION_PLAIN ? "plain" : "tiled");
  report_string(file, model->text->name);
  fputs(", ", file);
  count(file, "text_bytes", model->text->bytes);
  count(file, "threads", info.thread_count);
  ckpt_device_info device = {0};
  device.struct_size = sizeof device;
  if (ckpt_device_get_info(model->device, &device) != CKPT_OK) device.name[0] = 0;
  fputs("\"device\": ", file);
  report_string(file, o->device);
  fputs(", \"device_name\": ", file);
  report_string(file, device.name);
  fprintf(file, ", \"dtype\": \"%s\", \"graph\": %s, ", dtype_text(o->dtype), o->graph ? "true" : "false");
  fputs("\"isa\": ", file);
  report_string(file, info.isa);
  fputs(", \"blas\": ", file);
  report_string(file, info.blas);
  fputs(", ", file);
  count(file, "max_rss_bytes", resident_peak());
  fprintf(file, "\"version\": \"%s\"}", ckpt_version_string());
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(const double *values, size_t count_of) {
  if (count_of == 0) return 0;
  double *sorted = malloc(count_of * sizeof *sorted);
  if (sorted == NULL) return (double)NAN;
  memcpy(sorted, values, count_of * sizeof *sorted);
  qsort(sorted, count_of, sizeof *sorted, ascending);
  const double middle = count_of % 2 == 1 ? sorted[count_of / 2] : 0.5 * (sorted[count_of / 2 - 1] + sorted[count_of / 2]);
  free(sorted);
  return middle;
}
