#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/arena.h"

static ckpt_device *g_device;

static int open_device(void **state) {
  (void)state;
  return ckpt_device_open("cpu", &g_device);
}
static int close_device(void **state) {
  (void)state;
  ckpt_device_close(g_device);
  return 0;
}

static unsigned char *aligned_to(unsigned char *memory, size_t alignment) {
  return memory + (alignment - (uintptr_t)memory % alignment) % alignment;
}

static ckpt_arena *create(size_t capacity, uint32_t flags) {
  ckpt_arena *arena = NULL;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.capacity_bytes = capacity;
  desc.flags = flags;
  assert_int_equal(ckpt_arena_create(g_device, &desc, &arena), CKPT_OK);
  assert_non_null(arena);
  return arena;
}

static ckpt_arena_stats stats_of(const ckpt_arena *arena) {
  ckpt_arena_stats stats;
  memset(&stats, 0xEE, sizeof stats);
  stats.struct_size = sizeof stats;
  assert_int_equal(ckpt_arena_get_stats(arena, &stats), CKPT_OK);
  return stats;
}

static void blocks_are_aligned_distinct_and_counted(void **state) {
  ckpt_arena *arena = create(65536, 0);
  char *low = ckpt_arena_alloc(arena, 1, 0), *next = ckpt_arena_alloc(arena, 257, 0);
  char *high = ckpt_arena_alloc(arena, 300, CKPT_ARENA_HIGH);
  ckpt_arena_stats s = stats_of(arena);
  (void)state;
  assert_int_equal((uintptr_t)low % 256, 0);
  assert_ptr_equal(next, low + 256);
  assert_ptr_equal(high, low + 65536 - 512);
  assert_int_equal(s.block_count, 3);
  assert_int_equal(s.in_use_bytes, 256 + 512 + 512);
  assert_int_equal(s.height_bytes, s.in_use_bytes);
  assert_int_equal(s.capacity_bytes, 65536);
  assert_int_equal(s.largest_free_bytes, 65536 - 1280);
  assert_int_equal(ckpt_arena_free(arena, low), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, next), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, high), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, NULL), CKPT_OK);
  s = stats_of(arena);
  assert_int_equal(s.block_count, 0);
  assert_int_equal(s.in_use_bytes, 0);
  assert_int_equal(s.peak_in_use_bytes, 1280);
  assert_int_equal(s.height_bytes, 1280);
  assert_int_equal(s.alloc_count, 3);
  assert_int_equal(s.free_count, 3);
  assert_int_equal(s.failed_count, 0);
  assert_int_equal(ckpt_arena_reset_stats(arena), CKPT_OK);
  s = stats_of(arena);
  assert_int_equal(s.peak_in_use_bytes, 0);
  assert_int_equal(s.height_bytes, 0);
  assert_int_equal(s.alloc_count, 3);
  ckpt_arena_destroy(arena);
}

static void zero_bytes_give_distinct_addresses(void **state) {
  ckpt_arena *arena = create(1024, 0);
  void *a = ckpt_arena_alloc(arena, 0, 0), *b = ckpt_arena_alloc(arena, 0, 0), *c = ckpt_arena_alloc(arena, 0, CKPT_ARENA_HIGH);
  (void)state;
  assert_non_null(a);
  assert_non_null(b);
  assert_non_null(c);
  assert_ptr_not_equal(a, b);
  assert_ptr_not_equal(a, c);
  assert_ptr_not_equal(b, c);
  assert_int_equal(ckpt_arena_free(arena, b), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, a), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, c), CKPT_OK);
  ckpt_arena_destroy(arena);
}

static void a_full_arena_says_what_there_was(void **state) {
  ckpt_arena *arena = create(1024, 0);
  void *a = ckpt_arena_alloc(arena, 512, 0);
  (void)state;
  assert_null(ckpt_arena_alloc(arena, 600, 0));
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_BUDGET);
  assert_string_equal(ckpt_last_error(),
                      "ckpt_arena_alloc: wanted 600 bytes (768 with alignment and guards); in use 512, free 512, "
                      "largest free block 512, capacity 1024");
  assert_null(ckpt_arena_alloc(arena, SIZE_MAX, 0));
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_OVERFLOW);
  assert_int_equal(stats_of(arena).failed_count, 2);
  assert_int_equal(stats_of(arena).block_count, 1);
  assert_int_equal(ckpt_arena_free(arena, a), CKPT_OK);
  ckpt_arena_destroy(arena);
}

static void only_live_blocks_can_be_freed(void **state) {
  ckpt_arena *arena = create(65536, 0), *other = create(65536, 0);
  char *a = ckpt_arena_alloc(arena, 1000, 0), *b = ckpt_arena_alloc(other, 1000, 0), *d = ckpt_arena_alloc(arena, 1000, 0);
  int on_the_stack = 0;
  (void)state;
  assert_int_equal(ckpt_arena_free(arena, b), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_free(arena, a + 1), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_free(arena, a + 256), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_free(arena, a - 256), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_free(arena, &on_the_stack), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(stats_of(arena).block_count, 2);
  assert_int_equal(ckpt_arena_free(arena, a), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, a), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "ckpt_arena_free: data is 0x"));
  assert_int_equal(ckpt_arena_free(arena, d), CKPT_OK);
  assert_int_equal(ckpt_arena_free(other, b), CKPT_OK);
  ckpt_arena_destroy(arena);
  ckpt_arena_destroy(other);
}

static void guards_and_poison(void **state) {
  ckpt_arena *arena = create(65536, CKPT_ARENA_GUARD | CKPT_ARENA_POISON);
  unsigned char *a = ckpt_arena_alloc(arena, 100, 0), *b = ckpt_arena_alloc(arena, 100, CKPT_ARENA_HIGH);
  int k;
  (void)state;
  for (k = 0; k < 100; ++k) assert_int_equal(a[k], 0xFF);
  memset(a, 0, 100);
  memset(b, 0, 100);
  assert_int_equal(stats_of(arena).in_use_bytes, 2 * (256 + 2 * 256));
  assert_int_equal(ckpt_arena_check(arena), CKPT_OK);
  a[100] = 0; /* one byte too many */
  assert_int_equal(ckpt_arena_check(arena), CKPT_ERROR_CHECK);
  assert_non_null(strstr(ckpt_last_error(), "(100 bytes, offset 256)"));
  assert_int_equal(ckpt_arena_free(arena, a), CKPT_ERROR_CHECK);
  assert_int_equal(ckpt_arena_check(arena), CKPT_OK);
  assert_int_equal(ckpt_arena_free(arena, a), CKPT_ERROR_INVALID_ARGUMENT); /* it is gone all the same */
  b[-1] = 0;
  assert_int_equal(ckpt_arena_free(arena, b), CKPT_ERROR_CHECK);
  assert_int_equal(stats_of(arena).block_count, 0);
  ckpt_arena_destroy(arena);
  arena = create(65536, 0);
  assert_int_equal(ckpt_arena_check(arena), CKPT_OK);
  ckpt_arena_destroy(arena);
}

static void *count_alloc(void *user, size_t bytes, size_t alignment) {
  (void)bytes;
  (void)alignment;
  ++((int *)user)[0];
  return NULL;
}
static void count_free(void *user, void *data, size_t bytes) {
  (void)data;
  (void)bytes;
  ++((int *)user)[1];
}
static void count_release(void *user) { ++((int *)user)[2]; }

static void refused(ckpt_arena_desc desc, ckpt_status status, const char *word) {
  ckpt_arena *arena = (ckpt_arena *)&arena;
  int count[3] = {0, 0, 0};
  desc.user = count;
  desc.release = count_release;
  assert_int_equal(ckpt_arena_create(g_device, &desc, &arena), status);
  assert_null(arena);
  assert_non_null(strstr(ckpt_last_error(), "ckpt_arena_create: "));
  assert_non_null(strstr(ckpt_last_error(), word));
  assert_int_equal(count[2], 0); /* a desc that is refused is not taken */
}

static void descs_are_validated(void **state) {
  static unsigned char memory[4096];
  ckpt_arena_desc good = CKPT_ARENA_DESC_INIT, desc;
  (void)state;
  good.capacity_bytes = 1024;
  desc = good; desc.flags = 8; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "flags is 0x8");
  desc = good; desc.flags = CKPT_ARENA_PLAIN; desc.capacity_bytes = 0; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "capacity_bytes is 0");
  desc = good; desc.flags = CKPT_ARENA_PLAIN; desc.slab = &desc; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "CKPT_ARENA_PLAIN");
  desc = good; desc.alignment_bytes = 32; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "alignment_bytes is 32");
  desc = good; desc.alignment_bytes = 192; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "alignment_bytes is 192");
  desc = good; desc.alignment_bytes = (size_t)1 << 40; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "alignment_bytes");
  desc = good; desc.capacity_bytes = SIZE_MAX; refused(desc, CKPT_ERROR_OVERFLOW, "capacity_bytes");
  desc = good; desc.stream = memory; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "stream");
  desc = good; desc.alloc = count_alloc; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "desc.free is NULL");
  desc = good; desc.free = count_free; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "desc.alloc is NULL");
  desc = good; desc.slab = memory; desc.alloc = count_alloc; desc.free = count_free; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "both");
  desc = good; desc.slab = memory; desc.capacity_bytes = 0; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "capacity_bytes is 0");
  desc = good; desc.slab = aligned_to(memory, 256) + 8; refused(desc, CKPT_ERROR_INVALID_ARGUMENT, "slab");
}

static void sizes_of_the_desc(void **state) {
  struct {
    ckpt_arena_desc desc;
    unsigned char tail[16];
  } longer;
  const ckpt_arena_desc good = CKPT_ARENA_DESC_INIT;
  ckpt_arena *arena = NULL;
  ckpt_arena_desc desc = good;
  (void)state;
  desc.struct_size = (uint32_t)sizeof desc - 8;
  refused(desc, CKPT_ERROR_STRUCT_SIZE, "desc");
  desc.struct_size = 0;
  refused(desc, CKPT_ERROR_STRUCT_SIZE, "desc");
  desc.struct_size = UINT32_MAX;
  refused(desc, CKPT_ERROR_STRUCT_SIZE, "desc");
  memset(&longer, 0, sizeof longer);
  longer.desc = good;
  longer.desc.capacity_bytes = 4096;
  longer.desc.struct_size = (uint32_t)sizeof longer;
  assert_int_equal(ckpt_arena_create(g_device, &longer.desc, &arena), CKPT_OK);
  ckpt_arena_destroy(arena);
  longer.tail[15] = 1;
  assert_int_equal(ckpt_arena_create(g_device, &longer.desc, &arena), CKPT_ERROR_STRUCT_SIZE);
  assert_null(arena);
  assert_non_null(strstr(ckpt_last_error(), "is not zero"));
}

static void sizes_of_the_stats(void **state) {
  struct {
    ckpt_arena_stats stats;
    unsigned char tail[16];
  } longer;
  ckpt_arena *arena = create(4096, 0);
  size_t k;
  (void)state;
  longer.stats.struct_size = (uint32_t)sizeof longer.stats - 1;
  assert_int_equal(ckpt_arena_get_stats(arena, &longer.stats), CKPT_ERROR_STRUCT_SIZE);
  memset(&longer, 0xEE, sizeof longer);
  longer.stats.struct_size = (uint32_t)sizeof longer;
  assert_int_equal(ckpt_arena_get_stats(arena, &longer.stats), CKPT_OK);
  assert_int_equal(longer.stats.capacity_bytes, 4096);
  assert_int_equal(longer.stats.failed_count, 0);
  for (k = 0; k < sizeof longer.tail; ++k) assert_int_equal(longer.tail[k], 0xEE);
  ckpt_arena_destroy(arena);
}

static void null_and_unknown_arguments(void **state) {
  ckpt_arena *arena = (ckpt_arena *)&arena;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  ckpt_arena_stats stats;
  (void)state;
  stats.struct_size = sizeof stats;
  assert_int_equal(ckpt_arena_create(NULL, &desc, &arena), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(arena);
  assert_int_equal(ckpt_arena_create(g_device, NULL, &arena), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_create(g_device, &desc, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(ckpt_arena_alloc(NULL, 1, 0));
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_free(NULL, &stats), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_check(NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_get_stats(NULL, &stats), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_arena_reset_stats(NULL), CKPT_ERROR_INVALID_ARGUMENT);
  arena = create(4096, 0);
  assert_int_equal(ckpt_arena_get_stats(arena, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(ckpt_arena_alloc(arena, 1, 2));
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "flags is 0x2"));
  ckpt_arena_destroy(arena);
  ckpt_arena_destroy(NULL);
}

static void the_callers_slab(void **state) {
  unsigned char *raw = malloc(1024 + 63), *memory = aligned_to(raw, 64);
  int count[3] = {0, 0, 0};
  ckpt_arena *arena = NULL;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  (void)state;
  desc.capacity_bytes = 1000; /* 960 in whole units */
  desc.alignment_bytes = 64;
  desc.slab = memory;
  desc.user = count;
  desc.release = count_release;
  assert_int_equal(ckpt_arena_create(g_device, &desc, &arena), CKPT_OK);
  assert_int_equal(stats_of(arena).capacity_bytes, 960);
  assert_ptr_equal(ckpt_arena_alloc(arena, 960, 0), memory);
  assert_null(ckpt_arena_alloc(arena, 1, 0));
  ckpt_arena_destroy(arena);
  assert_int_equal(count[2], 0); /* the block is alive, and so is its arena */
  assert_int_equal(ckpt_arena_free(arena, memory), CKPT_OK);
  assert_int_equal(count[2], 1);
  free(raw);
}

static void a_refusing_allocator(void **state) {
  int count[3] = {0, 0, 0};
  ckpt_arena *arena = (ckpt_arena *)&arena;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  (void)state;
  desc.capacity_bytes = 1000;
  desc.alloc = count_alloc;
  desc.free = count_free;
  desc.user = count;
  desc.release = count_release;
  assert_int_equal(ckpt_arena_create(g_device, &desc, &arena), CKPT_ERROR_OUT_OF_MEMORY);
  assert_null(arena);
  assert_non_null(strstr(ckpt_last_error(), "1000 bytes"));
  assert_int_equal(count[0], 1);
  assert_int_equal(count[1], 0);
  assert_int_equal(count[2], 1);
}

static void more_than_the_machine_can_address(void **state) {
  ckpt_arena *arena = NULL;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  (void)state;
  desc.capacity_bytes = (size_t)1 << 60;
  assert_int_equal(ckpt_arena_create(g_device, &desc, &arena), CKPT_ERROR_OUT_OF_MEMORY);
  assert_non_null(strstr(ckpt_last_error(), "1152921504606846976 bytes"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_aligned_distinct_and_counted),
      cmocka_unit_test(zero_bytes_give_distinct_addresses),
      cmocka_unit_test(a_full_arena_says_what_there_was),
      cmocka_unit_test(only_live_blocks_can_be_freed),
      cmocka_unit_test(guards_and_poison),
      cmocka_unit_test(descs_are_validated),
      cmocka_unit_test(sizes_of_the_desc),
      cmocka_unit_test(sizes_of_the_stats),
      cmocka_unit_test(null_and_unknown_arguments),
      cmocka_unit_test(the_callers_slab),
      cmocka_unit_test(a_refusing_allocator),
      cmocka_unit_test(more_than_the_machine_can_address),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
