/* rng.h through the shared library, from C99. */
#include "ckpt/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), CKPT_OK)

#define REFUSED(call, code, part) refused((call), CKPT_ERROR_##code, part)

static void refused(ckpt_status got, ckpt_status want, const char *part) {
  assert_int_equal(got, want);
  assert_int_equal(ckpt_last_status(), want);
  if (strstr(ckpt_last_error(), part) == NULL) fail_msg("\"%s\" does not say \"%s\"", ckpt_last_error(), part);
}

static void snapshot_is_32_bytes(void **state) {
  (void)state;
  assert_int_equal(sizeof(ckpt_philox), 32);
}

static void a_block_has_its_known_answer(void **state) {
  static const uint32_t counter[4] = {0, 0, 0, 0}, key[2] = {0, 0};
  static const uint32_t want[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  uint32_t out[4];
  (void)state;
  ckpt_philox_block(counter, key, out);
  assert_memory_equal(out, want, sizeof want);
}

static void pack_refuses_what_does_not_fit(void **state) {
  ckpt_philox p;
  (void)state;
  OK(ckpt_philox_pack(1, (UINT64_C(1) << 36) - 1, (UINT64_C(1) << 28) - 1, (1u << 16) - 1, &p));
  REFUSED(ckpt_philox_pack(1, UINT64_C(1) << 36, 0, 0, &p), OVERFLOW, "step is 68719476736, expected less than 2^36");
  REFUSED(ckpt_philox_pack(1, 0, UINT64_C(1) << 28, 0, &p), OVERFLOW, "segment is 268435456, expected less than 2^28");
  REFUSED(ckpt_philox_pack(1, 0, 0, 1u << 16, &p), OVERFLOW, "site is 65536, expected less than 2^16");
  REFUSED(ckpt_philox_pack(1, 0, 0, 0, NULL), INVALID_ARGUMENT, "out_philox");
}

static void fills_refuse_bad_arguments(void **state) {
  const ckpt_philox p = {1, 2, 3, NULL}, last = {1, 2, UINT64_MAX - 9, NULL};
  uint32_t words[16];
  float values[16];
  uint8_t bytes[16];
  (void)state;
  REFUSED(ckpt_philox_u32(NULL, 0, 1, words), INVALID_ARGUMENT, "ckpt_philox_u32: philox is NULL");
  REFUSED(ckpt_philox_uniform(&p, 0, 5, NULL), INVALID_ARGUMENT, "uniform: the output is NULL and count is 5");
  OK(ckpt_philox_u32(&p, 0, 0, NULL));
  /* Ten words are left: words 2^64 - 10 .. 2^64 - 1. */
  OK(ckpt_philox_u32(&last, 0, 10, words));
  OK(ckpt_philox_u32(&last, 9, 1, words));
  REFUSED(ckpt_philox_u32(&last, 0, 11, words), OVERFLOW, "offset 18446744073709551606 + first 0 + count 11");
  REFUSED(ckpt_philox_u32(&last, 10, 0, words), OVERFLOW, "first 10");
  REFUSED(ckpt_philox_u32(&p, UINT64_MAX, 1, words), OVERFLOW, "first 18446744073709551615");
  REFUSED(ckpt_philox_normal(&p, 0, 1, NAN, 1.0f, values), INVALID_ARGUMENT, "mean is nan");
  REFUSED(ckpt_philox_normal(&p, 0, 1, 0.0f, -1.0f, values), INVALID_ARGUMENT, "stddev is -1");
  REFUSED(ckpt_philox_normal(&p, 0, 1, 0.0f, INFINITY, values), INVALID_ARGUMENT, "stddev is inf");
  REFUSED(ckpt_philox_bernoulli(&p, 0, 1, 1.5, bytes), INVALID_ARGUMENT, "probability is 1.5, expected 0 to 1");
  REFUSED(ckpt_philox_bernoulli(&p, 0, 1, NAN, bytes), INVALID_ARGUMENT, "probability is nan");
}

static void thresholds(void **state) {
  (void)state;
  assert_true(ckpt_philox_threshold(0.0) == 0);
  assert_true(ckpt_philox_threshold(1.0) == UINT64_C(4294967296));
  assert_true(ckpt_philox_threshold(0.5) == UINT64_C(2147483648));
  assert_true(ckpt_philox_threshold(-0.1) == UINT64_MAX);
  assert_true(ckpt_philox_threshold(1.0000001) == UINT64_MAX);
  assert_true(ckpt_philox_threshold(NAN) == UINT64_MAX);
}

static void a_mask_compares_words(void **state) {
  ckpt_philox p;
  uint32_t words[1000];
  uint8_t mask[1000];
  size_t i;
  (void)state;
  OK(ckpt_philox_pack(42, 5, 3, 1, &p));
  OK(ckpt_philox_u32(&p, 17, 1000, words));
  OK(ckpt_philox_bernoulli(&p, 17, 1000, 0.9, mask));
  for (i = 0; i < 1000; ++i) assert_int_equal(mask[i], words[i] < ckpt_philox_threshold(0.9));
}

static void step_word_is_added_to_the_subsequence(void **state) {
  const uint64_t step = 41;
  const ckpt_philox added = {9, 100, 4, &step}, plain = {9, 141, 4, NULL};
  uint32_t a[50], b[50];
  (void)state;
  OK(ckpt_philox_u32(&added, 1, 50, a));
  OK(ckpt_philox_u32(&plain, 1, 50, b));
  assert_memory_equal(a, b, sizeof a);
}

static void a_stateful_generator_snapshots_restores_and_advances(void **state) {
  ckpt_rng *rng = NULL;
  ckpt_philox p, q;
  const uint64_t word = 1;
  const ckpt_philox with_word = {1, 2, 3, &word};
  (void)state;
  OK(ckpt_rng_create(42, 7, 12, &rng));
  OK(ckpt_rng_snapshot(rng, &p));
  assert_true(p.seed == 42 && p.subsequence == 7 && p.offset == 12 && p.step_word == NULL);
  OK(ckpt_rng_advance(rng, 5, 1));
  OK(ckpt_rng_snapshot(rng, &q));
  assert_true(q.offset == 20);
  OK(ckpt_rng_advance(rng, 5, 0));
  OK(ckpt_rng_advance(rng, 0, 1));
  OK(ckpt_rng_snapshot(rng, &q));
  assert_true(q.offset == 25);
  OK(ckpt_rng_restore(rng, &p));
  OK(ckpt_rng_snapshot(rng, &q));
  assert_memory_equal(&p, &q, sizeof p);
  REFUSED(ckpt_rng_restore(rng, &with_word), INVALID_ARGUMENT, "step_word");
  REFUSED(ckpt_rng_advance(rng, UINT64_MAX, 1), OVERFLOW, "rounded up");
  REFUSED(ckpt_rng_advance(rng, UINT64_MAX - 11, 0), OVERFLOW, "position 12");
  OK(ckpt_rng_snapshot(rng, &q));
  assert_memory_equal(&p, &q, sizeof p); /* a refusal leaves it where it was */
  OK(ckpt_rng_advance(rng, UINT64_MAX - 12, 0));
  ckpt_rng_destroy(rng);
  ckpt_rng_destroy(NULL);
  REFUSED(ckpt_rng_create(1, 2, 3, NULL), INVALID_ARGUMENT, "out_rng");
  REFUSED(ckpt_rng_snapshot(NULL, &p), INVALID_ARGUMENT, "rng is NULL");
  REFUSED(ckpt_rng_restore(NULL, &p), INVALID_ARGUMENT, "rng is NULL");
  REFUSED(ckpt_rng_advance(NULL, 1, 0), INVALID_ARGUMENT, "rng is NULL");
}

static void the_cpus_device_fills_are_the_hosts(void **state) {
  const uint64_t step = 3;
  const ckpt_philox p = {77, 5, 9, &step}, far = {1, 2, UINT64_MAX, NULL};
  ckpt_device *cpu = NULL;
  uint32_t words[2][33];
  float values[2][33];
  uint8_t bytes[2][33];
  (void)state;
  OK(ckpt_device_open("cpu", &cpu));
  OK(ckpt_philox_u32(&p, 2, 33, words[0]));
  OK(ckpt_device_philox_u32(cpu, NULL, &p, 2, 33, words[1]));
  assert_memory_equal(words[0], words[1], sizeof words[0]);
  OK(ckpt_philox_uniform(&p, 2, 33, values[0]));
  OK(ckpt_device_philox_uniform(cpu, NULL, &p, 2, 33, values[1]));
  assert_memory_equal(values[0], values[1], sizeof values[0]);
  OK(ckpt_philox_normal(&p, 2, 33, 1.5f, 0.25f, values[0]));
  OK(ckpt_device_philox_normal(cpu, NULL, &p, 2, 33, 1.5f, 0.25f, values[1]));
  assert_memory_equal(values[0], values[1], sizeof values[0]);
  OK(ckpt_philox_bernoulli(&p, 2, 33, 0.3, bytes[0]));
  OK(ckpt_device_philox_bernoulli(cpu, NULL, &p, 2, 33, 0.3, bytes[1]));
  assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
  OK(ckpt_device_philox_u32(cpu, NULL, &p, 2, 0, NULL));
  REFUSED(ckpt_device_philox_u32(NULL, NULL, &p, 2, 33, words[1]), INVALID_ARGUMENT, "device is NULL");
  REFUSED(ckpt_device_philox_u32(cpu, NULL, NULL, 2, 33, words[1]), INVALID_ARGUMENT, "ckpt_device_philox_u32: philox is NULL");
  REFUSED(ckpt_device_philox_u32(cpu, NULL, &p, 2, 33, NULL), INVALID_ARGUMENT, "NULL");
  REFUSED(ckpt_device_philox_uniform(cpu, NULL, &far, 2, 33, values[1]), OVERFLOW, "2^64");
  REFUSED(ckpt_device_philox_normal(cpu, NULL, &p, 2, 33, (float)INFINITY, 1, values[1]), INVALID_ARGUMENT, "ckpt_device_philox_normal: mean");
  REFUSED(ckpt_device_philox_normal(cpu, NULL, &p, 2, 33, 0, -1, values[1]), INVALID_ARGUMENT, "stddev is -1");
  REFUSED(ckpt_device_philox_bernoulli(cpu, NULL, &p, 2, 33, 1.5, bytes[1]), INVALID_ARGUMENT, "probability is 1.5");
  ckpt_device_close(cpu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cpus_device_fills_are_the_hosts),
      cmocka_unit_test(snapshot_is_32_bytes),
      cmocka_unit_test(a_block_has_its_known_answer),
      cmocka_unit_test(pack_refuses_what_does_not_fit),
      cmocka_unit_test(fills_refuse_bad_arguments),
      cmocka_unit_test(thresholds),
      cmocka_unit_test(a_mask_compares_words),
      cmocka_unit_test(step_word_is_added_to_the_subsequence),
      cmocka_unit_test(a_stateful_generator_snapshots_restores_and_advances),
  };
  return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
