#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/base.h"
#include "ckpt/device.h"

/* First of all tests: this thread has seen no failure yet. */
static void text_is_empty_before_the_first_failure(void **state) {
  (void)state;
  assert_non_null(ckpt_last_error());
  assert_string_equal(ckpt_last_error(), "");
  assert_int_equal(ckpt_last_status(), CKPT_OK);
}

static void version_agrees_with_the_header(void **state) {
  char text[64];
  (void)state;
  snprintf(text, sizeof text, "%d.%d.%d", CKPT_VERSION_MAJOR, CKPT_VERSION_MINOR, CKPT_VERSION_PATCH);
  assert_string_equal(ckpt_version_string(), text);
  assert_int_equal(ckpt_version(), CKPT_VERSION_MAJOR * 1000000 + CKPT_VERSION_MINOR * 1000 + CKPT_VERSION_PATCH);
}

static void each_code_has_its_number_and_name(void **state) {
  static const struct {
    ckpt_status status;
    int number;
    const char *name;
  } codes[] = {{CKPT_OK, 0, "OK"},
               {CKPT_ERROR_INVALID_ARGUMENT, -1, "INVALID_ARGUMENT"},
               {CKPT_ERROR_STRUCT_SIZE, -2, "STRUCT_SIZE"},
               {CKPT_ERROR_OUT_OF_MEMORY, -3, "OUT_OF_MEMORY"},
               {CKPT_ERROR_BUDGET, -4, "BUDGET"},
               {CKPT_ERROR_BUSY, -5, "BUSY"},
               {CKPT_ERROR_STALE, -6, "STALE"},
               {CKPT_ERROR_STATE, -7, "STATE"},
               {CKPT_ERROR_NOT_FILLED, -8, "NOT_FILLED"},
               {CKPT_ERROR_CHECK, -9, "CHECK"},
               {CKPT_ERROR_OVERFLOW, -10, "OVERFLOW"},
               {CKPT_ERROR_NOT_FOUND, -11, "NOT_FOUND"},
               {CKPT_ERROR_CONFLICT, -12, "CONFLICT"},
               {CKPT_ERROR_DEVICE, -13, "DEVICE"},
               {CKPT_ERROR_CAPTURE, -14, "CAPTURE"},
               {CKPT_ERROR_UNSUPPORTED, -15, "UNSUPPORTED"},
               {CKPT_ERROR_INVALID_PLAN, -16, "INVALID_PLAN"},
               {CKPT_ERROR_INTERNAL, -17, "INTERNAL"},
               {-18, -18, "UNKNOWN"},
               {INT32_MIN, INT32_MIN, "UNKNOWN"},
               {1, 1, "USER"},
               {INT32_MAX, INT32_MAX, "USER"}};
  size_t k;
  (void)state;
  for (k = 0; k < sizeof codes / sizeof codes[0]; ++k) {
    assert_int_equal(codes[k].status, codes[k].number);
    assert_string_equal(ckpt_status_name(codes[k].status), codes[k].name);
  }
}

static void a_failure_sets_text_and_status_and_success_leaves_them(void **state) {
  ckpt_device *device = NULL;
  char text[1024];
  (void)state;
  assert_int_equal(ckpt_device_open("gpu", &device), CKPT_ERROR_INVALID_ARGUMENT);
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_INVALID_ARGUMENT);
  strcpy(text, ckpt_last_error());
  assert_non_null(strstr(text, "gpu"));
  assert_int_equal(ckpt_device_open("cpu", &device), CKPT_OK);
  assert_string_equal(ckpt_last_error(), text);
  assert_int_equal(ckpt_last_status(), CKPT_ERROR_INVALID_ARGUMENT);
  ckpt_device_close(device);
}

static void long_names_are_cut(void **state) {
  char name[5000];
  ckpt_device *device = NULL;
  (void)state;
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_int_equal(ckpt_device_open(name, &device), CKPT_ERROR_INVALID_ARGUMENT);
  assert_in_range(strlen(ckpt_last_error()), 64, 1023);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_is_empty_before_the_first_failure),
      cmocka_unit_test(version_agrees_with_the_header),
      cmocka_unit_test(each_code_has_its_number_and_name),
      cmocka_unit_test(a_failure_sets_text_and_status_and_success_leaves_them),
      cmocka_unit_test(long_names_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
