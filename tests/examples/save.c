/* A save file that is refused leaves the training state as it was. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "train_gpt/save.h"

enum { COUNT = 37 };

struct fixture {
  struct options options;
  struct text text;
  struct snapshot state;
  float values[3][COUNT];
  char file[64];
};

static void fill(struct fixture *f, float first) {
  for (int a = 0; a < 3; ++a)
    for (int k = 0; k < COUNT; ++k) f->values[a][k] = first + (float)(a * COUNT + k);
  f->state.step = (uint64_t)first;
}

static void prepare(struct fixture *f) {
  memset(f, 0, sizeof *f);
  f->options.layers = 2;
  f->options.heads = 4;
  f->options.learning_rate = 0.25;
  f->text.bytes = 1000;
  f->text.hash = 77;
  f->state.parameters = f->values[0];
  f->state.first_moment = f->values[1];
  f->state.second_moment = f->values[2];
  snprintf(f->file, sizeof f->file, "save_test_%p.bin", (void *)f);
}

static int read_into(struct fixture *f) { return save_read(f->file, &f->options, &f->text, &f->state, COUNT); }

static void comes_back(void **unused) {
  struct fixture f;
  (void)unused;
  prepare(&f);
  fill(&f, 5);
  assert_int_equal(save_write(f.file, &f.options, &f.text, &f.state, COUNT), 0);
  fill(&f, 900);
  assert_int_equal(read_into(&f), 0);
  assert_int_equal(f.state.step, 5);
  for (int a = 0; a < 3; ++a)
    for (int k = 0; k < COUNT; ++k) assert_true(f.values[a][k] == 5 + (float)(a * COUNT + k));
  remove(f.file);
}

/* Standard error goes nowhere while a thousand complaints are made. */
static int quiet(void) {
  const int said = dup(2), nowhere = open("/dev/null", O_WRONLY);
  fflush(stderr);
  dup2(nowhere, 2);
  close(nowhere);
  return said;
}

static void aloud(int said) {
  fflush(stderr);
  dup2(said, 2);
  close(said);
}

/* Each single byte changed, each length cut: refused, and nothing moves. */
static void damage_changes_nothing(void **unused) {
  struct fixture f, before;
  unsigned char whole[4096];
  (void)unused;
  prepare(&f);
  fill(&f, 5);
  assert_int_equal(save_write(f.file, &f.options, &f.text, &f.state, COUNT), 0);
  FILE *file = fopen(f.file, "rb");
  assert_non_null(file);
  const size_t bytes = fread(whole, 1, sizeof whole, file);
  fclose(file);
  assert_int_equal(bytes, sizeof(struct save_header) + 3 * COUNT * sizeof(float) + 8);
  fill(&f, 900);
  before = f;
  size_t wrong = 0;
  const int said = quiet();
  for (size_t k = 0; k < 2 * bytes; ++k) {
    const size_t length = k < bytes ? bytes : k - bytes;
    if (k < bytes) whole[k] ^= (unsigned char)(1u << (k % 8));
    file = fopen(f.file, "wb");
    wrong += file == NULL || fwrite(whole, 1, length, file) != length;
    if (file != NULL) fclose(file);
    if (k < bytes) whole[k] ^= (unsigned char)(1u << (k % 8));
    wrong += read_into(&f) != EXIT_BAD_INPUT || memcmp(&f, &before, sizeof f) != 0;
  }
  aloud(said);
  assert_int_equal(wrong, 0);
  remove(f.file);
}

static void another_configuration_changes_nothing(void **unused) {
  struct fixture f, before;
  (void)unused;
  prepare(&f);
  fill(&f, 5);
  assert_int_equal(save_write(f.file, &f.options, &f.text, &f.state, COUNT), 0);
  fill(&f, 900);
  before = f;
  f.options.heads = before.options.heads = 2;
  assert_int_equal(read_into(&f), EXIT_BAD_INPUT);
  assert_memory_equal(&f, &before, sizeof f);
  f.options.heads = before.options.heads = 4;
  f.text.hash = before.text.hash = 78;
  assert_int_equal(read_into(&f), EXIT_BAD_INPUT);
  assert_memory_equal(&f, &before, sizeof f);
  f.text.hash = 77;
  f.options.dtype = 1;
  assert_int_equal(read_into(&f), EXIT_BAD_INPUT);
  f.options.dtype = 0;
  assert_int_equal(save_read(f.file, &f.options, &f.text, &f.state, COUNT - 1), EXIT_BAD_INPUT);
  f.text.hash = 78;
  assert_memory_equal(&f, &before, sizeof f);
  remove(f.file);
}

static void checksum_sees_each_pair_of_bits(void **unused) {
  unsigned char data[24] = {0};
  const uint64_t whole = checksum(1, data, sizeof data);
  (void)unused;
  for (unsigned a = 0; a < 8 * sizeof data; ++a)
    for (unsigned b = a; b < 8 * sizeof data; ++b) {
      data[a / 8] ^= (unsigned char)(1u << (a % 8));
      if (b != a) data[b / 8] ^= (unsigned char)(1u << (b % 8));
      assert_true(checksum(1, data, sizeof data) != whole);
      data[a / 8] ^= (unsigned char)(1u << (a % 8));
      if (b != a) data[b / 8] ^= (unsigned char)(1u << (b % 8));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_back),
      cmocka_unit_test(damage_changes_nothing),
      cmocka_unit_test(another_configuration_changes_nothing),
      cmocka_unit_test(checksum_sees_each_pair_of_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
