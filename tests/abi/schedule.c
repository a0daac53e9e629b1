/* schedule.h through the shared library, from C99. */
#include "ckpt/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), CKPT_OK)

static void refused(ckpt_status got, ckpt_status want, const char *part) {
  assert_int_equal(got, want);
  if (strstr(ckpt_last_error(), part) == NULL) fail_msg("\"%s\" does not say \"%s\"", ckpt_last_error(), part);
}

static uint64_t extra(uint64_t steps, uint64_t snapshots) {
  uint64_t count = 12345;
  OK(ckpt_revolve_extra_forwards(steps, snapshots, &count));
  return count;
}

static void counts(void **state) {
  (void)state;
  assert_true(extra(0, 0) == 0);
  assert_true(extra(1, 0) == 0);
  assert_true(extra(10, 3) == 15);
  assert_true(extra(225, 15) == 522);
  assert_true(extra(500, 4) == 3213);
  assert_true(extra(UINT64_MAX, 1) == UINT64_MAX);
}

static void refusals(void **state) {
  uint64_t count = 5;
  ckpt_schedule *schedule = (ckpt_schedule *)&count;
  ckpt_schedule_action action;
  (void)state;
  refused(ckpt_revolve_extra_forwards(7, 0, &count), CKPT_ERROR_INVALID_ARGUMENT, "snapshot_count is 0");
  refused(ckpt_revolve_extra_forwards(7, 1, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_count");
  refused(ckpt_schedule_revolve(7, 0, &schedule), CKPT_ERROR_INVALID_ARGUMENT, "for 7 steps");
  assert_null(schedule);
  refused(ckpt_schedule_revolve((UINT64_C(1) << 62) + 1, 3, &schedule), CKPT_ERROR_OVERFLOW, "4611686018427387905");
  refused(ckpt_schedule_revolve(7, 1, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_schedule");
  refused(ckpt_schedule_next(NULL, &action), CKPT_ERROR_INVALID_ARGUMENT, "schedule is NULL");
  OK(ckpt_schedule_revolve(7, 2, &schedule));
  refused(ckpt_schedule_next(schedule, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_action");
  ckpt_schedule_destroy(schedule);
  ckpt_schedule_destroy(NULL);
}

static void three_steps_and_two_snapshots(void **state) {
  static const ckpt_schedule_action want[] = {
      {CKPT_SCHEDULE_STORE, 0, 0, 0},    {CKPT_SCHEDULE_ADVANCE, 0, 0, 1}, {CKPT_SCHEDULE_STORE, 1, 1, 1},
      {CKPT_SCHEDULE_ADVANCE, 0, 1, 2},  {CKPT_SCHEDULE_BACKWARD, 0, 2, 3}, {CKPT_SCHEDULE_RESTORE, 1, 1, 1},
      {CKPT_SCHEDULE_BACKWARD, 0, 1, 2}, {CKPT_SCHEDULE_RESTORE, 0, 0, 0}, {CKPT_SCHEDULE_BACKWARD, 0, 0, 1},
      {CKPT_SCHEDULE_DONE, 0, 0, 0},     {CKPT_SCHEDULE_DONE, 0, 0, 0}};
  ckpt_schedule *schedule = NULL;
  ckpt_schedule_action got;
  size_t i;
  (void)state;
  OK(ckpt_schedule_revolve(3, 2, &schedule));
  for (i = 0; i < sizeof want / sizeof want[0]; ++i) {
    OK(ckpt_schedule_next(schedule, &got));
    assert_memory_equal(&got, &want[i], sizeof got);
  }
  ckpt_schedule_destroy(schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts),
      cmocka_unit_test(refusals),
      cmocka_unit_test(three_steps_and_two_snapshots),
  };
  return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
