#define _POSIX_C_SOURCE 200809L
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct save_header header_of(const struct options *o, const struct text *text, uint64_t step, size_t parameter_count) {
  struct save_header h;
  memset(&h, 0, sizeof h);
  memcpy(h.magic, "ckptgpt", 8);
  h.version = SAVE_VERSION;
  h.attention = (uint32_t)o->attention;
  h.dtype = (uint32_t)o->dtype;
  h.step = step;
  h.parameter_count = parameter_count;
  h.layers = o->layers;
  h.heads = o->heads;
  h.channels = o->channels;
  h.sequence = o->sequence;
  h.batch = o->batch;
  h.accumulation = o->accumulation;
  h.seed = o->seed;
  h.text_bytes = text->bytes;
  h.text_hash = text->hash;
  h.dropout = o->dropout;
  h.learning_rate = o->learning_rate;
  h.weight_decay = o->weight_decay;
  h.max_norm = o->max_norm;
  return h;
}

/* ---- writing ---- */

static int write_all(int file, const void *data, size_t bytes) {
  const char *at = data;
  while (bytes > 0) {
    const ssize_t wrote = write(file, at, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return -1;
    at += wrote;
    bytes -= (size_t)wrote;
  }
  return 0;
}

static int write_body(int file, const struct save_header *header, const struct snapshot *state) {
  const size_t bytes = (size_t)header->parameter_count * sizeof(float);
  uint64_t sum = checksum(0, header, sizeof *header);
  sum = checksum(sum, state->parameters, bytes);
  sum = checksum(sum, state->first_moment, bytes);
  sum = checksum(sum, state->second_moment, bytes);
  return write_all(file, header, sizeof *header) || write_all(file, state->parameters, bytes) ||
         write_all(file, state->first_moment, bytes) || write_all(file, state->second_moment, bytes) ||
         write_all(file, &sum, sizeof sum) || fsync(file);
}

/* The rename is on the disk once the directory is. A file system that cannot do that has done what it can. */
static void sync_directory(char *path) {
  char *slash = strrchr(path, '/');
  if (slash != NULL) slash[slash == path] = 0;
  const int directory = open(slash != NULL ? path : ".", O_RDONLY);
  if (directory < 0) return;
  (void)fsync(directory);
  close(directory);
}

int save_write(const char *file, const struct options *options, const struct text *text, const struct snapshot *state, size_t parameter_count) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s.%ld.partial", file, (long)getpid()) >= (int)sizeof path) return complain("save file '%s': too long a name", file);
  const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (out < 0) return complain("save file '%s': %s", path, strerror(errno));
  const struct save_header header = header_of(options, text, state->step, parameter_count);
  int bad = write_body(out, &header, state) != 0 ? errno : 0;
  if (close(out) != 0 && bad == 0) bad = errno;
  if (bad == 0 && rename(path, file) != 0) bad = errno;
  if (bad != 0) {
    unlink(path);
    return complain("save file '%s': %s", file, strerror(bad));
  }
  sync_directory(path);
  return 0;
}

/* ---- reading ---- */

/* What shapes the training must be as it was. */
static int check_count(const char *file, const char *name, uint64_t saved, uint64_t mine) {
  if (saved == mine) return 0;
  return complain("save file '%s': of another configuration: %s is %llu there and %llu here", file, name, (unsigned long long)saved,
                  (unsigned long long)mine);
}

static int check_real(const char *file, const char *name, double saved, double mine) {
  if (saved == mine) return 0;
  return complain("save file '%s': of another configuration: %s is %.9g there and %.9g here", file, name, saved, mine);
}

static int check_configuration(const char *file, const struct save_header *h, const struct save_header *mine) {
  if (h->attention != mine->attention) {
    const char *names[] = {"plain", "tiled"};
    return complain("save file '%s': of another configuration: --attention is %s there and %s here", file, h->attention < 2 ? names[h->attention] : "?",
                    names[mine->attention]);
  }
  if (h->dtype != mine->dtype)
    return complain("save file '%s': of another configuration: --dtype is %s there and %s here", file, dtype_text(h->dtype), dtype_text(mine->dtype));
  if (check_count(file, "--layers", h->layers, mine->layers) || check_count(file, "--heads", h->heads, mine->heads) ||
      check_count(file, "--channels", h->channels, mine->channels) || check_count(file, "--sequence", h->sequence, mine->sequence) ||
      check_count(file, "--batch", h->batch, mine->batch) || check_count(file, "--accumulation", h->accumulation, mine->accumulation) ||
      check_count(file, "--seed", h->seed, mine->seed) || check_real(file, "--dropout", h->dropout, mine->dropout) ||
      check_real(file, "--learning-rate", h->learning_rate, mine->learning_rate) ||
      check_real(file, "--weight-decay", h->weight_decay, mine->weight_decay) || check_real(file, "--max-norm", h->max_norm, mine->max_norm) ||
      check_count(file, "the number of parameters", h->parameter_count, mine->parameter_count))
    return EXIT_BAD_INPUT;
  if (h->text_bytes != mine->text_bytes || h->text_hash != mine->text_hash)
    return complain("save file '%s': of another text: %llu bytes with checksum %016llx there, %llu with %016llx here", file,
                    (unsigned long long)h->text_bytes, (unsigned long long)h->text_hash, (unsigned long long)mine->text_bytes,
                    (unsigned long long)mine->text_hash);
  return 0;
}

/* Reads the file into memory of its own; its size is what its header says and its checksum is right. */
static int read_whole(const char *file, FILE *in, struct save_header *header, float **out_values) {
  unsigned long long size = 0;
  if (fseek(in, 0, SEEK_END) != 0 || ftell(in) < 0) return complain("save file '%s': %s", file, strerror(errno));
  size = (unsigned long long)ftell(in);
  rewind(in);
  memset(header, 0, sizeof *header);
  const size_t got = fread(header, 1, sizeof *header, in);
  if (ferror(in)) return complain("save file '%s': %s", file, strerror(errno));
  if (got < sizeof header->magic || memcmp(header->magic, "ckptgpt", 8) != 0)
    return complain("save file '%s': not a save file of train_gpt: it does not begin with 'ckptgpt'", file);
  if (got < sizeof *header) return complain("save file '%s': truncated: %llu bytes, the header alone has %zu", file, size, sizeof *header);
  if (header->version != SAVE_VERSION)
    return complain("save file '%s': version %lu (or written with another byte order), expected %d", file, (unsigned long)header->version, SAVE_VERSION);
  const unsigned long long rest = size - sizeof *header;
  const uint64_t most = (uint64_t)1 << 40;
  if (header->parameter_count > most || rest != 3 * header->parameter_count * sizeof(float) + sizeof(uint64_t))
    return complain("save file '%s': damaged or truncated: %llu bytes, expected %llu for the %llu parameters that its header names", file, size,
                    header->parameter_count > most ? 0ull : (unsigned long long)(sizeof *header + 3 * header->parameter_count * sizeof(float) + sizeof(uint64_t)),
                    (unsigned long long)header->parameter_count);
  float *values = malloc((size_t)rest);
  if (values == NULL) return complain("save file '%s': out of memory for %llu bytes", file, rest);
  uint64_t sum = 0, saved_sum = 0;
  const size_t bytes = (size_t)header->parameter_count * sizeof(float);
  if (fread(values, 1, (size_t)rest, in) != (size_t)rest) {
    free(values);
    return complain("save file '%s': %s", file, ferror(in) ? strerror(errno) : "it became shorter while it was read");
  }
  memcpy(&saved_sum, (const char *)values + 3 * bytes, sizeof saved_sum);
  sum = checksum(0, header, sizeof *header);
  for (int k = 0; k < 3; ++k) sum = checksum(sum, (const char *)values + (size_t)k * bytes, bytes);
  if (sum != saved_sum) {
    free(values);
    return complain("save file '%s': damaged: its checksum is %016llx, expected %016llx", file, (unsigned long long)sum, (unsigned long long)saved_sum);
  }
  *out_values = values;
  return 0;
}

int save_read(const char *file, const struct options *options, const struct text *text, struct snapshot *state, size_t parameter_count) {
  FILE *in = fopen(file, "rb");
  if (in == NULL) return complain("save file '%s': %s", file, strerror(errno));
  struct save_header header;
  float *values = NULL;
  int failed = read_whole(file, in, &header, &values);
  fclose(in);
  const struct save_header mine = header_of(options, text, 0, parameter_count);
  if (!failed) failed = check_configuration(file, &header, &mine);
  if (!failed) {
    memcpy(state->parameters, values, parameter_count * sizeof(float));
    memcpy(state->first_moment, values + parameter_count, parameter_count * sizeof(float));
    memcpy(state->second_moment, values + 2 * parameter_count, parameter_count * sizeof(float));
    state->step = header.step;
  }
  free(values);
  return failed;
}
