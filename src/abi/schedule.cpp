#include "ckpt/schedule.h"

#include <cinttypes>
#include <memory>

#include "plan/schedule.h"

struct ckpt_schedule {
  ckpt::plan::Revolve revolve;
};

namespace {

ckpt_status null_argument(const char *function, const char *argument) noexcept {
  return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, argument);
}

}  // namespace

extern "C" {

ckpt_status ckpt_revolve_extra_forwards(uint64_t step_count, uint64_t snapshot_count, uint64_t *out_count) {
  if (out_count == nullptr) return null_argument("ckpt_revolve_extra_forwards", "out_count");
  *out_count = 0;
  if (step_count > 1 && snapshot_count == 0)
    return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT,
                      "ckpt_revolve_extra_forwards: snapshot_count is 0, expected at least 1 (the input's) for %" PRIu64
                      " steps",
                      step_count);
  *out_count = ckpt::plan::revolve_extra_forwards(step_count, snapshot_count);
  return CKPT_OK;
}

ckpt_status ckpt_schedule_revolve(uint64_t step_count, uint32_t snapshot_count, ckpt_schedule **out_schedule) {
  if (out_schedule == nullptr) return null_argument("ckpt_schedule_revolve", "out_schedule");
  *out_schedule = nullptr;
  return ckpt::guarded("ckpt_schedule_revolve", [&] {
    ckpt::Result<ckpt::plan::Revolve> revolve = ckpt::plan::Revolve::create(step_count, snapshot_count);
    if (!revolve.ok()) return revolve.status();
    *out_schedule = std::make_unique<ckpt_schedule>(ckpt_schedule{std::move(*revolve)}).release();
    return ckpt::Status{CKPT_OK};
  });
}

void ckpt_schedule_destroy(ckpt_schedule *schedule) { delete schedule; }

ckpt_status ckpt_schedule_next(ckpt_schedule *schedule, ckpt_schedule_action *out_action) {
  if (schedule == nullptr) return null_argument("ckpt_schedule_next", "schedule");
  if (out_action == nullptr) return null_argument("ckpt_schedule_next", "out_action");
  return ckpt::guarded("ckpt_schedule_next", [&] {
    *out_action = schedule->revolve.next();
    return CKPT_OK;
  });
}

}  // extern "C"
