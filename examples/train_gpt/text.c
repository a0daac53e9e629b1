#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include <ckpt/rng.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "options.h"

uint64_t checksum(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *at = data;
  for (size_t k = 0; k < bytes; k += 8) {
    uint64_t word = 0;
    memcpy(&word, at + k, bytes - k < 8 ? bytes - k : 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29; /* so that what high bits say reaches low ones */
  }
  return hash;
}

static int append_file(const char *path, struct text *out) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return complain("text file '%s': %s", path, strerror(errno));
  int failed = 0;
  for (size_t capacity = 0, got = 1; got > 0 && !failed;) {
    if (capacity - out->bytes < 65536 || capacity == 0) {
      capacity = 2 * out->bytes + 131072;
      unsigned char *larger = realloc(out->data, capacity);
      if (larger == NULL) {
        failed = complain("text file '%s': out of memory for %zu bytes", path, capacity);
        break;
      }
      out->data = larger;
    }
    got = fread(out->data + out->bytes, 1, 65536, file);
    out->bytes += got;
  }
  if (!failed && ferror(file)) failed = complain("text file '%s': %s", path, strerror(errno));
  fclose(file);
  ++out->file_count;
  return failed;
}

/* ---- the sources of the repository ---- */

struct paths {
  char **items;
  size_t count, capacity;
};

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int is_source(const char *name) {
  static const char *const endings[] = {".h", ".c", ".cpp", ".cu", ".py"};
  const char *dot = strrchr(name, '.');
  for (size_t k = 0; dot != NULL && k < sizeof endings / sizeof endings[0]; ++k)
    if (strcmp(dot, endings[k]) == 0) return 1;
  return 0;
}

static int collect(const char *folder, struct paths *paths) {
  DIR *directory = opendir(folder);
  if (directory == NULL) return complain("sources of the repository, '%s': %s; expected --text FILE", folder, strerror(errno));
  int failed = 0;
  for (struct dirent *entry; !failed && (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    const size_t length = strlen(folder) + strlen(entry->d_name) + 2;
    char *path = malloc(length);
    struct stat status;
    if (path == NULL) {
      failed = complain("out of memory");
      break;
    }
    snprintf(path, length, "%s/%s", folder, entry->d_name);
    if (stat(path, &status) != 0) {
      free(path); /* gone since */
    } else if (S_ISDIR(status.st_mode)) {
      failed = collect(path, paths);
      free(path);
    } else if (!is_source(path)) {
      free(path);
    } else {
      if (paths->count == paths->capacity) {
        const size_t capacity = 2 * paths->capacity + 64;
        char **larger = realloc(paths->items, capacity * sizeof *larger);
        if (larger == NULL) {
          free(path);
          failed = complain("out of memory");
          break;
        }
        paths->items = larger;
        paths->capacity = capacity;
      }
      paths->items[paths->count++] = path;
    }
  }
  closedir(directory);
  return failed;
}

static int append_sources(struct text *out) {
  static const char *const folders[] = {"include", "src", "examples"};
  struct paths paths = {0};
  int failed = 0;
  for (size_t k = 0; k < sizeof folders / sizeof folders[0] && !failed; ++k) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/%s", TRAIN_GPT_SOURCES, folders[k]);
    failed = collect(folder, &paths);
  }
  if (paths.count > 0) qsort(paths.items, paths.count, sizeof *paths.items, compare_paths);
  for (size_t k = 0; k < paths.count; ++k) {
    if (!failed) failed = append_file(paths.items[k], out);
    free(paths.items[k]);
  }
  free(paths.items);
  return failed;
}

int text_load(const char *file, size_t least, struct text *out) {
  memset(out, 0, sizeof *out);
  out->name = file != NULL ? file : TRAIN_GPT_SOURCES;
  const int failed = file != NULL ? append_file(file, out) : append_sources(out);
  if (failed) return failed;
  if (out->bytes == 0) return complain("text file '%s' is empty, expected at least %zu bytes (--sequence + 1)", out->name, least);
  if (out->bytes < least)
    return complain("text file '%s' has %zu bytes, expected at least %zu (--sequence + 1)", out->name, out->bytes, least);
  out->hash = checksum(out->bytes, out->data, out->bytes);
  return 0;
}

void text_free(struct text *text) {
  free(text->data);
  text->data = NULL;
}

int text_batch(const struct text *text, uint64_t seed, uint64_t micro_step, size_t batch, size_t sequence, int32_t *tokens, int32_t *targets) {
  enum { TEXT_SEGMENT = (1 << 28) - 1 }; /* the last there is: no segment of the model draws from it */
  const uint64_t starts = text->bytes - sequence;
  ckpt_philox philox;
  if (ckpt_philox_pack(seed, micro_step, TEXT_SEGMENT, 0, &philox) != CKPT_OK) return complain("%s", ckpt_last_error());
  for (size_t row = 0; row < batch; ++row) {
    uint32_t words[2];
    if (ckpt_philox_u32(&philox, 2 * row, 2, words) != CKPT_OK) return complain("%s", ckpt_last_error());
    const size_t start = (size_t)((((uint64_t)words[0] << 32) | words[1]) % starts);
    for (size_t k = 0; k < sequence; ++k) {
      tokens[row * sequence + k] = text->data[start + k];
      targets[row * sequence + k] = text->data[start + k + 1];
    }
  }
  return 0;
}
