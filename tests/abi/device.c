#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/arena.h"
#include "ckpt/device.h"

static void the_cpu_opens_and_describes_itself(void **state) {
  ckpt_device *device = NULL;
  ckpt_device_info info;
  (void)state;
  memset(&info, 0xEE, sizeof info);
  info.struct_size = sizeof info;
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  assert_int_equal(ckpt_device_get_info(device, &info), CKPT_OK);
  assert_int_equal(info.struct_size, sizeof info);
  assert_int_equal(info.kind, CKPT_DEVICE_KIND_CPU);
  assert_int_equal(info.index, 0);
  assert_in_range(info.thread_count, 1, 1 << 20);
  assert_true(info.total_bytes > 0 && info.available_bytes <= info.total_bytes);
  assert_non_null(memchr(info.name, '\0', sizeof info.name));
  assert_true(info.name[0] != '\0');
  ckpt_device_close(device);
}

static void bad_names_are_refused(void **state) {
  static const char *const names[] = {"", "CPU", "cpu:0", "cuda:", "cuda:01", "cuda:x", "cuda:-1", "cuda:70000", "tpu"};
  size_t k;
  (void)state;
  for (k = 0; k < sizeof names / sizeof names[0]; ++k) {
    ckpt_device *device = (ckpt_device *)&device;
    assert_int_equal(ckpt_device_open(names[k], &device), CKPT_ERROR_INVALID_ARGUMENT);
    assert_null(device);
    assert_non_null(strstr(ckpt_last_error(), "ckpt_device_open: name is \""));
    assert_non_null(strstr(ckpt_last_error(), names[k]));
  }
}

/* Whether there is a plugin depends on the machine; that the answer is a proper one does not. */
static void an_absent_plugin_is_said_to_be_absent(void **state) {
  ckpt_device *device = (ckpt_device *)&device;
  const ckpt_status status = ckpt_device_open("cuda:65535", &device);
  (void)state;
  assert_true(status == CKPT_ERROR_NOT_FOUND || status == CKPT_ERROR_DEVICE);
  assert_null(device);
  assert_non_null(strstr(ckpt_last_error(), "cuda"));
}

static void null_arguments(void **state) {
  ckpt_device *device = NULL;
  ckpt_device_info info;
  (void)state;
  info.struct_size = sizeof info;
  assert_int_equal(ckpt_device_open("cpu", NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "out_device"));
  device = (ckpt_device *)&device;
  assert_int_equal(ckpt_device_open(NULL, &device), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(device);
  assert_non_null(strstr(ckpt_last_error(), "name"));
  assert_int_equal(ckpt_device_get_info(NULL, &info), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  assert_int_equal(ckpt_device_get_info(device, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "out_info"));
  ckpt_device_close(device);
  ckpt_device_close(NULL);
}

static void out_structs_of_other_sizes(void **state) {
  ckpt_device *device = NULL;
  struct {
    ckpt_device_info info;
    unsigned char tail[32];
  } longer;
  ckpt_device_info info;
  size_t k;
  (void)state;
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  info.struct_size = (uint32_t)sizeof info - 1;
  assert_int_equal(ckpt_device_get_info(device, &info), CKPT_ERROR_STRUCT_SIZE);
  info.struct_size = 0;
  assert_int_equal(ckpt_device_get_info(device, &info), CKPT_ERROR_STRUCT_SIZE);
  info.struct_size = UINT32_MAX;
  assert_int_equal(ckpt_device_get_info(device, &info), CKPT_ERROR_STRUCT_SIZE);
  memset(&longer, 0xEE, sizeof longer);
  longer.info.struct_size = (uint32_t)sizeof longer;
  assert_int_equal(ckpt_device_get_info(device, &longer.info), CKPT_OK);
  assert_int_equal(longer.info.struct_size, sizeof longer);
  assert_in_range(longer.info.thread_count, 1, 1 << 20);
  for (k = 0; k < sizeof longer.tail; ++k) assert_int_equal(longer.tail[k], 0xEE);
  ckpt_device_close(device);
}

static void arenas_outlive_the_callers_count(void **state) {
  ckpt_device *device = NULL;
  ckpt_arena *arena = NULL;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  void *data;
  (void)state;
  desc.capacity_bytes = 65536;
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  assert_int_equal(ckpt_arena_create(device, &desc, &arena), CKPT_OK);
  ckpt_device_close(device);
  data = ckpt_arena_alloc(arena, 1000, 0);
  assert_non_null(data);
  memset(data, 1, 1000);
  assert_int_equal(ckpt_arena_free(arena, data), CKPT_OK);
  ckpt_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cpu_opens_and_describes_itself), cmocka_unit_test(bad_names_are_refused),
      cmocka_unit_test(an_absent_plugin_is_said_to_be_absent), cmocka_unit_test(null_arguments),
      cmocka_unit_test(out_structs_of_other_sizes), cmocka_unit_test(arenas_outlive_the_callers_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
