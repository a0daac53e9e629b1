/* pack.h through the shared library, from C99: every field, every error. */
#include "ckpt/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static ckpt_pack_desc desc_of(const ckpt_pack_buffer *buffers, size_t count) {
  ckpt_pack_desc d = CKPT_PACK_DESC_INIT;
  d.buffers = buffers;
  d.buffer_count = count;
  return d;
}

static ckpt_pack_result fresh(void) {
  ckpt_pack_result r;
  memset(&r, 0xee, sizeof r);
  r.struct_size = sizeof r;
  return r;
}

static void refused(ckpt_status got, ckpt_status want, const char *part) {
  assert_int_equal(got, want);
  if (strstr(ckpt_last_error(), part) == NULL) fail_msg("\"%s\" does not say \"%s\"", ckpt_last_error(), part);
}

static void packs(void **state) {
  /* The first and the last share a place; the one of zero bytes takes none. */
  const ckpt_pack_buffer buffers[] = {{0, 2, 10}, {1, 3, 20}, {2, 4, 10}, {0, 4, 0}};
  const ckpt_pack_desc d = desc_of(buffers, COUNT(buffers));
  size_t offsets[COUNT(buffers)] = {7, 7, 7, 7};
  ckpt_pack_result r = fresh();
  (void)state;
  assert_int_equal(ckpt_pack(&d, offsets, &r), CKPT_OK);
  assert_int_equal(r.struct_size, sizeof r);
  assert_int_equal(r.proved, 1);
  assert_int_equal(r.lower_bound_bytes, 30);
  assert_int_equal(r.height_bytes, 30);
  assert_int_equal(r.work, 0); /* the first greedy answer reaches the bound */
  assert_int_equal(offsets[0], offsets[2]);
  assert_true(offsets[0] == 0 ? offsets[1] == 10 : offsets[0] == 20 && offsets[1] == 0);
  assert_int_equal(offsets[3], 0);
  assert_int_equal(ckpt_pack(&d, offsets, NULL), CKPT_OK);
}

static void nothing(void **state) {
  const ckpt_pack_desc d = desc_of(NULL, 0);
  ckpt_pack_result r = fresh();
  (void)state;
  assert_int_equal(ckpt_pack(&d, NULL, &r), CKPT_OK);
  assert_int_equal(r.height_bytes, 0);
  assert_int_equal(r.proved, 1);
}

static void alignment(void **state) {
  const ckpt_pack_buffer buffers[] = {{0, 1, 1}, {0, 1, 65}, {0, 1, 64}};
  ckpt_pack_desc d = desc_of(buffers, COUNT(buffers));
  size_t offsets[COUNT(buffers)], k;
  ckpt_pack_result r = fresh();
  (void)state;
  d.alignment_bytes = 64;
  assert_int_equal(ckpt_pack(&d, offsets, &r), CKPT_OK);
  assert_int_equal(r.height_bytes, 64 + 128 + 64);
  assert_int_equal(r.lower_bound_bytes, 256);
  for (k = 0; k < COUNT(buffers); ++k) assert_int_equal(offsets[k] % 64, 0);
  d.alignment_bytes = 0;
  assert_int_equal(ckpt_pack(&d, offsets, &r), CKPT_OK);
  assert_int_equal(r.height_bytes, 130);
  d.alignment_bytes = 48;
  refused(ckpt_pack(&d, offsets, &r), CKPT_ERROR_INVALID_ARGUMENT, "ckpt_pack: desc.alignment_bytes is 48, expected a power of two");
}

static void capacity(void **state) {
  /* A live load of 6 that no packing below 7 holds. */
  const ckpt_pack_buffer buffers[] = {{0, 5, 4}, {9, 10, 3}, {5, 8, 2}, {5, 6, 3}, {1, 7, 1}, {6, 10, 2}, {7, 8, 2}};
  ckpt_pack_desc d = desc_of(buffers, COUNT(buffers));
  size_t offsets[COUNT(buffers)], again[COUNT(buffers)], top = 0, k;
  ckpt_pack_result r = fresh();
  (void)state;
  d.capacity_bytes = 7;
  assert_int_equal(ckpt_pack(&d, offsets, &r), CKPT_OK);
  assert_int_equal(r.height_bytes, 7);
  assert_int_equal(r.lower_bound_bytes, 6);
  d.capacity_bytes = 6;
  memset(offsets, 0xee, sizeof offsets);
  r = fresh();
  refused(ckpt_pack(&d, offsets, &r), CKPT_ERROR_BUDGET,
          "ckpt_pack: 7 buffers do not fit in desc.capacity_bytes of 6: the lowest packing found takes 7, the lower bound is 6; it is proved that none fits");
  assert_int_equal(r.height_bytes, 7);
  assert_int_equal(r.proved, 1);
  for (k = 0; k < COUNT(buffers); ++k)
    if (offsets[k] + buffers[k].bytes > top) top = offsets[k] + buffers[k].bytes;
  assert_int_equal(top, 7);
  assert_int_equal(ckpt_pack(&d, again, NULL), CKPT_ERROR_BUDGET);
  assert_memory_equal(offsets, again, sizeof offsets);
}

static void work_limit(void **state) {
  ckpt_pack_buffer buffers[120];
  size_t offsets[COUNT(buffers)], k;
  uint64_t x = 1;
  ckpt_pack_desc d = desc_of(buffers, COUNT(buffers));
  ckpt_pack_result little = fresh(), much = fresh();
  (void)state;
  for (k = 0; k < COUNT(buffers); ++k) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    buffers[k].lower = (x >> 33) % 60;
    buffers[k].upper = buffers[k].lower + 1 + (x >> 45) % 20;
    buffers[k].bytes = (size_t)(1 + (x >> 54) % 97);
  }
  d.work_limit = 1;
  d.capacity_bytes = 1;
  assert_int_equal(ckpt_pack(&d, offsets, &little), CKPT_ERROR_BUDGET);
  assert_true(little.height_bytes >= little.lower_bound_bytes);
  d.capacity_bytes = 0;
  assert_int_equal(ckpt_pack(&d, offsets, &little), CKPT_OK);
  d.work_limit = 50000000;
  assert_int_equal(ckpt_pack(&d, offsets, &much), CKPT_OK);
  assert_true(much.height_bytes <= little.height_bytes);
  assert_true(much.work >= little.work);
}

/* Elements and structs of other sizes: a caller compiled against a newer or an older header. */
static void sizes(void **state) {
  struct longer { ckpt_pack_buffer buffer; uint64_t more; } wide[] = {{{0, 1, 3}, 0}, {{0, 1, 4}, 0}};
  ckpt_pack_desc d = desc_of(&wide[0].buffer, COUNT(wide));
  size_t offsets[2];
  ckpt_pack_result r = fresh();
  (void)state;
  d.buffer_size = sizeof wide[0];
  assert_int_equal(ckpt_pack(&d, offsets, &r), CKPT_OK);
  assert_int_equal(r.height_bytes, 7);
  wide[1].more = 1;
  refused(ckpt_pack(&d, offsets, &r), CKPT_ERROR_STRUCT_SIZE, "desc.buffers[1]");
  d.buffer_size = 8;
  refused(ckpt_pack(&d, offsets, &r), CKPT_ERROR_STRUCT_SIZE, "desc.buffers[0]");
  d = desc_of(&wide[0].buffer, 1);
  d.struct_size = 16;
  refused(ckpt_pack(&d, offsets, &r), CKPT_ERROR_STRUCT_SIZE, "desc");
  d = desc_of(&wide[0].buffer, 1);
  r.struct_size = 4;
  refused(ckpt_pack(&d, offsets, &r), CKPT_ERROR_STRUCT_SIZE, "out_result");
}

static void bad_arguments(void **state) {
  ckpt_pack_buffer buffers[] = {{0, 2, 1}, {0, 2, 1}, {3, 5, 1}};
  ckpt_pack_desc d = desc_of(buffers, COUNT(buffers));
  size_t offsets[COUNT(buffers)] = {1, 2, 3};
  (void)state;
  refused(ckpt_pack(NULL, offsets, NULL), CKPT_ERROR_INVALID_ARGUMENT, "desc is NULL");
  refused(ckpt_pack(&d, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_offsets is NULL and desc.buffer_count is 3");
  d.buffers = NULL;
  refused(ckpt_pack(&d, offsets, NULL), CKPT_ERROR_INVALID_ARGUMENT, "desc.buffers is NULL and desc.buffer_count is 3");
  d.buffers = buffers;
  buffers[2].upper = 3;
  refused(ckpt_pack(&d, offsets, NULL), CKPT_ERROR_INVALID_ARGUMENT, "desc.buffers[2].upper is 3, expected more than lower (3)");
  buffers[2].upper = 2;
  refused(ckpt_pack(&d, offsets, NULL), CKPT_ERROR_INVALID_ARGUMENT, "desc.buffers[2].upper is 2, expected more than lower (3)");
  buffers[2].upper = 5;
  buffers[1].bytes = SIZE_MAX - 10;
  d.alignment_bytes = 256;
  refused(ckpt_pack(&d, offsets, NULL), CKPT_ERROR_OVERFLOW, "desc.buffers[1].bytes is 18446744073709551605");
  d.alignment_bytes = 1;
  refused(ckpt_pack(&d, offsets, NULL), CKPT_ERROR_OVERFLOW, "buffers[1] of 18446744073709551605 bytes");
  d.buffer_count = SIZE_MAX / 2;
  refused(ckpt_pack(&d, offsets, NULL), CKPT_ERROR_OVERFLOW, "desc.buffer_count is");
  assert_int_equal(offsets[0], 1);
  assert_int_equal(offsets[2], 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packs),      cmocka_unit_test(nothing), cmocka_unit_test(alignment),     cmocka_unit_test(capacity),
      cmocka_unit_test(work_limit), cmocka_unit_test(sizes),   cmocka_unit_test(bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
