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

static void the_cpu_does_a_devices_work(void **state) {
  ckpt_device *device = NULL;
  ckpt_graph *graph = (ckpt_graph *)&graph;
  void *stream = &device, *pinned = NULL, *self = &device;
  unsigned char from[100], to[100];
  size_t k;
  (void)state;
  for (k = 0; k < sizeof from; ++k) from[k] = (unsigned char)(k + 1);
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  assert_int_equal(ckpt_device_stream_create(device, &stream), CKPT_OK);
  assert_null(stream);
  assert_int_equal(ckpt_device_host_alloc(device, sizeof from, &pinned), CKPT_OK);
  assert_int_equal((uintptr_t)pinned % 256, 0);
  assert_int_equal(ckpt_device_copy(device, stream, pinned, from, sizeof from, CKPT_COPY_HOST_TO_DEVICE), CKPT_OK);
  assert_int_equal(ckpt_device_fill(device, stream, (unsigned char *)pinned + 10, 0x5A, 5), CKPT_OK);
  assert_int_equal(ckpt_device_copy(device, stream, to, pinned, sizeof from, CKPT_COPY_DEVICE_TO_HOST), CKPT_OK);
  assert_int_equal(ckpt_device_synchronize(device, stream), CKPT_OK);
  for (k = 0; k < sizeof to; ++k) assert_int_equal(to[k], k >= 10 && k < 15 ? 0x5A : from[k]);
  assert_int_equal(ckpt_device_copy(device, stream, NULL, NULL, 0, CKPT_COPY_DEVICE_TO_DEVICE), CKPT_OK);
  ckpt_device_host_free(device, pinned, sizeof from);
  ckpt_device_host_free(device, NULL, 1);
  ckpt_device_stream_destroy(device, stream);
  assert_int_equal(ckpt_device_capture_begin(device, stream), CKPT_ERROR_UNSUPPORTED);
  assert_int_equal(ckpt_device_capture_end(device, stream, &graph), CKPT_ERROR_UNSUPPORTED);
  assert_null(graph);
  assert_null(ckpt_device_interface(device, "ops", &self));
  assert_null(self);
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_NOT_FOUND);
  assert_non_null(strstr(ckpt_last_error(), "\"ops\""));
  ckpt_device_close(device);
}

static void work_with_wrong_arguments(void **state) {
  ckpt_device *device = NULL;
  ckpt_graph *graph = NULL;
  void *out = &out;
  unsigned char data[4] = {0, 0, 0, 0};
  (void)state;
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  assert_int_equal(ckpt_device_copy(device, NULL, data, data + 2, 2, 3), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "ckpt_device_copy: kind is 3"));
  assert_int_equal(ckpt_device_copy(device, NULL, NULL, data, 2, 0), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "to is NULL"));
  assert_int_equal(ckpt_device_copy(NULL, NULL, data, data + 2, 2, 0), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_fill(device, NULL, NULL, 0, 2), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_fill(NULL, NULL, data, 0, 2), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_synchronize(NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_stream_create(device, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_stream_create(NULL, &out), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(out);
  out = &out;
  assert_int_equal(ckpt_device_host_alloc(device, 0, &out), CKPT_ERROR_INVALID_ARGUMENT);
  assert_null(out);
  assert_non_null(strstr(ckpt_last_error(), "bytes is 0"));
  assert_int_equal(ckpt_device_host_alloc(device, (size_t)1 << 62, &out), CKPT_ERROR_OUT_OF_MEMORY);
  assert_int_equal(ckpt_device_host_alloc(NULL, 1, &out), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_capture_begin(NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_capture_end(device, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_device_capture_end(NULL, NULL, &graph), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_graph_launch(NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(ckpt_last_error(), "graph is NULL"));
  ckpt_graph_destroy(NULL);
  assert_null(ckpt_device_interface(NULL, "ops", &out));
  assert_null(ckpt_device_interface(device, NULL, &out));
  assert_null(ckpt_device_interface(device, "ops", NULL));
  ckpt_device_stream_destroy(NULL, NULL);
  ckpt_device_host_free(NULL, NULL, 0);
  ckpt_device_close(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cpu_does_a_devices_work), cmocka_unit_test(work_with_wrong_arguments),
      cmocka_unit_test(the_cpu_opens_and_describes_itself), cmocka_unit_test(bad_names_are_refused),
      cmocka_unit_test(an_absent_plugin_is_said_to_be_absent), cmocka_unit_test(null_arguments),
      cmocka_unit_test(out_structs_of_other_sizes), cmocka_unit_test(arenas_outlive_the_callers_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
