/* libckpt: schedules for loops of equal steps, as closed forms and iterators that hold no table.
 * Revolve: Griewank & Walther, Algorithm 799, ACM TOMS 26 (2000) 19-45. */
#ifndef CKPT_SCHEDULE_H
#define CKPT_SCHEDULE_H

#include "ckpt/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Extra forward steps of the optimal schedule for step_count steps and snapshot_count snapshots, the input's included:
 * t(n, s) = r n - C(s + r, r - 1) with C(s + r - 1, s) < n <= C(s + r, s). Saturates at UINT64_MAX.
 * Errors: INVALID_ARGUMENT (no snapshots with more than one step). */
CKPT_API ckpt_status ckpt_revolve_extra_forwards(uint64_t step_count, uint64_t snapshot_count, uint64_t *out_count);

/* What to do next. The state is "at step i", 0 at first; snapshots are numbered 0 .. snapshot_count - 1, snapshot 0 holds
 * step 0. Actions that name no snapshot have 0 there; STORE and RESTORE have last = first, BACKWARD last = first + 1. After
 * a BACKWARD the state may be anything: a RESTORE follows before it is used. A loop of one step stores nothing. */
enum {
  CKPT_SCHEDULE_DONE = 0,
  CKPT_SCHEDULE_STORE = 1,    /* copy the state, at step `first`, to snapshot `snapshot` */
  CKPT_SCHEDULE_RESTORE = 2,  /* copy snapshot `snapshot`, of step `first`, to the state */
  CKPT_SCHEDULE_ADVANCE = 3,  /* run steps first .. last - 1 forward, keeping nothing */
  CKPT_SCHEDULE_BACKWARD = 4  /* run step `first` forward, keeping what its adjoint needs, and then its adjoint */
};

typedef struct ckpt_schedule_action {
  uint32_t kind;
  uint32_t snapshot;
  uint64_t first;
  uint64_t last;
} ckpt_schedule_action;

typedef struct ckpt_schedule ckpt_schedule;

/* Revolve for a known number of steps (up to 2^62). *out_schedule is owned. Memory: O(snapshot_count), taken as snapshots
 * are used. The fewest ADVANCE steps possible and, among such schedules, the fewest STOREs.
 * Errors: INVALID_ARGUMENT (no snapshots with more than one step), OVERFLOW (more than 2^62 steps). */
CKPT_API ckpt_status ckpt_schedule_revolve(uint64_t step_count, uint32_t snapshot_count, ckpt_schedule **out_schedule);
CKPT_API void ckpt_schedule_destroy(ckpt_schedule *schedule);
/* The next action; DONE again and again at the end. Error: OUT_OF_MEMORY, after which the same call can be made again. */
CKPT_API ckpt_status ckpt_schedule_next(ckpt_schedule *schedule, ckpt_schedule_action *out_action);

#ifdef __cplusplus
}
#endif
#endif
