/* The known answers of bindings/vectors/vectors.txt, which every language checks, in C: as a binding sees the library. */
#include <ckpt/ckpt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 4096, MAX_CHAINS = 8 };

static int failures, checked;
static char *words[MAX_WORDS];
static int word_count;
static struct { char name[32]; ckpt_chain *chain; } chains[MAX_CHAINS];

static uint64_t hex(int k) { return strtoull(words[k], NULL, 16); }
static uint64_t number(int k) { return strtoull(words[k], NULL, 10); }

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void expect(int holds, const char *what) {
  ++checked;
  if (holds) return;
  ++failures;
  printf("%s:", what);
  for (int k = 0; k < word_count && k < 8; ++k) printf(" %.60s", words[k]);
  printf(" (%s)\n", ckpt_last_error());
}

/* `got` has elements of `size` bytes; the words from `first` on are theirs. */
static void expect_words(const void *got, size_t size, size_t count, int first) {
  int equal = word_count - first == (int)count;
  for (size_t k = 0; k < count && equal; ++k) {
    uint32_t value = 0;
    memcpy(&value, (const char *)got + k * size, size);
    equal = value == hex(first + (int)k);
  }
  expect(equal, "values");
}

static void fill(const char *kind) {
  const ckpt_philox philox = {hex(1), hex(2), hex(3), NULL};
  const uint64_t first = hex(4);
  static uint32_t out[MAX_WORDS];
  static float values[MAX_WORDS];
  static uint8_t bytes[MAX_WORDS];
  if (strcmp(kind, "u32") == 0) {
    expect(ckpt_philox_u32(&philox, first, hex(5), out) == CKPT_OK, "status");
    expect_words(out, 4, hex(5), 6);
  } else if (strcmp(kind, "uniform") == 0) {
    expect(ckpt_philox_uniform(&philox, first, hex(5), values) == CKPT_OK, "status");
    expect_words(values, 4, hex(5), 6);
  } else if (strcmp(kind, "normal") == 0) {
    expect(ckpt_philox_normal(&philox, first, hex(7), float_of((uint32_t)hex(5)), float_of((uint32_t)hex(6)), values) == CKPT_OK, "status");
    expect_words(values, 4, hex(7), 8);
  } else if (strcmp(kind, "bernoulli") == 0) {
    expect(ckpt_philox_bernoulli(&philox, first, hex(6), double_of(hex(5)), bytes) == CKPT_OK, "status");
    expect_words(bytes, 1, hex(6), 7);
  } else {
    expect(0, "unknown vector");
  }
}

static const ckpt_chain *chain_of(const char *name) {
  for (int k = 0; k < MAX_CHAINS; ++k)
    if (strcmp(chains[k].name, name) == 0) return chains[k].chain;
  return NULL;
}

static void chain(void) {
  int k = 0;
  while (k < MAX_CHAINS && chains[k].chain != NULL) ++k;
  expect(k < MAX_CHAINS && strlen(words[1]) < sizeof chains[k].name, "too many chains");
  if (failures > 0) return;
  strcpy(chains[k].name, words[1]);
  expect(ckpt_chain_from_json(words[2], strlen(words[2]), 0, words[1], &chains[k].chain) == CKPT_OK, "chain");
}

static void plan(int too_small) {
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  ckpt_plan_summary summary = {.struct_size = sizeof summary};
  ckpt_plan *made = NULL;
  size_t minimum = 0;
  expect(ckpt_strategy_parse(words[2], &desc.strategy, &desc.k) == CKPT_OK, "strategy");
  desc.budget_bytes = number(3);
  const ckpt_status status = ckpt_plan_create(chain_of(words[1]), &desc, &made);
  if (too_small) {
    expect(status == CKPT_ERROR_BUDGET && strstr(ckpt_last_error(), words[4]) != NULL, "refusal");
    expect(ckpt_plan_minimum_budget(chain_of(words[1]), &desc, &minimum) == CKPT_OK && minimum == number(4), "minimum");
    return;
  }
  expect(status == CKPT_OK && ckpt_plan_get_summary(made, &summary) == CKPT_OK, "plan");
  expect(summary.arena_bytes == number(4) && summary.peak_bytes == number(5) && ckpt_plan_hash(made) == hex(6), "plan");
  ckpt_plan_destroy(made);
}

static void revolve(void) {
  ckpt_schedule *schedule = NULL;
  ckpt_schedule_action action;
  uint64_t count = 0, advances = 0;
  expect(ckpt_revolve_extra_forwards(number(1), number(2), &count) == CKPT_OK && count == number(3), "count");
  expect(ckpt_schedule_revolve(number(1), (uint32_t)number(2), &schedule) == CKPT_OK, "schedule");
  while (schedule != NULL && ckpt_schedule_next(schedule, &action) == CKPT_OK && action.kind != CKPT_SCHEDULE_DONE)
    if (action.kind == CKPT_SCHEDULE_ADVANCE) advances += action.last - action.first;
  expect(advances == number(3), "advances");
  ckpt_schedule_destroy(schedule);
}

static void line(void) {
  const char *kind = words[0];
  ckpt_philox philox;
  if (strcmp(kind, "revolve") == 0) {
    revolve();
  } else if (strcmp(kind, "chain") == 0) {
    chain();
  } else if (strcmp(kind, "plan") == 0 || strcmp(kind, "toosmall") == 0) {
    plan(kind[0] == 't');
  } else if (strcmp(kind, "block") == 0) {
    uint32_t in[6], out[4];
    for (int k = 0; k < 6; ++k) in[k] = (uint32_t)hex(1 + k);
    ckpt_philox_block(in, in + 4, out);
    expect_words(out, 4, 4, 7);
  } else if (strcmp(kind, "pack") == 0) {
    expect(ckpt_philox_pack(hex(1), hex(2), hex(3), (uint32_t)hex(4), &philox) == CKPT_OK && philox.subsequence == hex(5) && philox.offset == hex(6),
           "pack");
  } else if (strcmp(kind, "refuse") == 0) {
    expect(ckpt_philox_pack(hex(1), hex(2), hex(3), (uint32_t)hex(4), &philox) == CKPT_ERROR_OVERFLOW, "refuse");
    expect(strstr(ckpt_last_error(), words[5]) != NULL, "refuse");
  } else if (strcmp(kind, "threshold") == 0) {
    expect(ckpt_philox_threshold(double_of(hex(1))) == hex(2), "threshold");
  } else {
    fill(kind);
  }
}

int main(int argc, char **argv) {
  static char text[1 << 16];
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (file == NULL) return printf("usage: vectors FILE\n"), 2;
  while (fgets(text, sizeof text, file) != NULL) {
    if (text[0] == '#' || text[0] == '\n') continue;
    word_count = 0;
    for (char *word = strtok(text, " \n"); word != NULL && word_count < MAX_WORDS; word = strtok(NULL, " \n")) words[word_count++] = word;
    line();
  }
  fclose(file);
  for (int k = 0; k < MAX_CHAINS; ++k) ckpt_chain_destroy(chains[k].chain);
  printf("%d checks, %d failures\n", checked, failures);
  return failures == 0 && checked > 100 ? 0 : 1;
}
