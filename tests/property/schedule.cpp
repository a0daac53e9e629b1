// Adjoints of nonlinear recurrences run by a schedule are those of the run that keeps every state, bit by bit; and counts
// behave as counts of an optimum must.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "ckpt/schedule.h"

namespace {

struct Delete {
  void operator()(ckpt_schedule *schedule) const { ckpt_schedule_destroy(schedule); }
};

// Leap-frog for a nonlinear chain of kPoints masses: the state is two time levels, and depends on the step's number.
constexpr size_t kPoints = 5;
using Level = std::array<double, kPoints>;
struct State {
  Level now, before;
};

double force(double x, uint64_t step) { return std::sin(x) * (1.0 + 0.01 * static_cast<double>(step % 7)); }
double slope(double x, uint64_t step) { return std::cos(x) * (1.0 + 0.01 * static_cast<double>(step % 7)); }
constexpr double kStep = 0.05;

State forward(const State &state, uint64_t step) {
  State next;
  for (size_t i = 0; i < kPoints; ++i) {
    const double left = state.now[(i + kPoints - 1) % kPoints], right = state.now[(i + 1) % kPoints];
    next.now[i] = 2 * state.now[i] - state.before[i] + kStep * (left - 2 * state.now[i] + right - force(state.now[i], step));
  }
  next.before = state.now;
  return next;
}

State adjoint(const State &state, uint64_t step, const State &gradient) {
  State out{};
  for (size_t i = 0; i < kPoints; ++i) {
    const double left = gradient.now[(i + kPoints - 1) % kPoints], right = gradient.now[(i + 1) % kPoints];
    out.now[i] = gradient.before[i] + gradient.now[i] * (2 - kStep * (2 + slope(state.now[i], step))) + kStep * (left + right);
    out.before[i] = -gradient.now[i];
  }
  return out;
}

State start() { return {{0.1, 0.7, -0.3, 0.2, 1.1}, {0.1, 0.6, -0.2, 0.2, 1.0}}; }
State seed() { return {{1, -2, 3, -4, 5}, {0.5, 0, 0, 0, 0}}; }

bool same(const State &a, const State &b) { return a.now == b.now && a.before == b.before; }

State store_all(uint64_t steps) {
  std::vector<State> states = {start()};
  for (uint64_t i = 0; i + 1 < steps; ++i) states.push_back(forward(states.back(), i));
  State gradient = seed();
  for (uint64_t i = steps; i-- > 0;) gradient = adjoint(states[i], i, gradient);
  return gradient;
}

State by_schedule(uint64_t steps, uint32_t snapshots, uint64_t *advances) {
  ckpt_schedule *made = nullptr;
  EXPECT_EQ(ckpt_schedule_revolve(steps, snapshots, &made), CKPT_OK);
  const std::unique_ptr<ckpt_schedule, Delete> schedule(made);
  std::vector<State> stored(snapshots);
  State state = start(), gradient = seed();
  *advances = 0;
  for (;;) {
    ckpt_schedule_action a;
    EXPECT_EQ(ckpt_schedule_next(schedule.get(), &a), CKPT_OK);
    if (a.kind == CKPT_SCHEDULE_DONE) return gradient;
    if (a.kind == CKPT_SCHEDULE_STORE) stored.at(a.snapshot) = state;
    if (a.kind == CKPT_SCHEDULE_RESTORE) state = stored.at(a.snapshot);
    if (a.kind == CKPT_SCHEDULE_ADVANCE)
      for (uint64_t i = a.first; i < a.last; ++i, ++*advances) state = forward(state, i);
    if (a.kind == CKPT_SCHEDULE_BACKWARD) {
      gradient = adjoint(state, a.first, gradient);
      state = State{};  // whatever the caller does with it, it is restored first
    }
  }
}

uint64_t extra(uint64_t n, uint64_t s) {
  uint64_t count = 0;
  EXPECT_EQ(ckpt_revolve_extra_forwards(n, s, &count), CKPT_OK);
  return count;
}

TEST(ScheduleAdjoint, LeapFrog500StepsWith4Snapshots) {
  uint64_t advances = 0;
  EXPECT_TRUE(same(by_schedule(500, 4, &advances), store_all(500)));
  EXPECT_EQ(advances, 3213u);
}

// The adjoint that both share is right: central differences of seed . state(steps).
TEST(ScheduleAdjoint, GradientAgreesWithFiniteDifferences) {
  constexpr uint64_t kCount = 30;
  const auto objective = [](State state) {
    for (uint64_t i = 0; i < kCount; ++i) state = forward(state, i);
    double sum = 0;
    for (size_t i = 0; i < kPoints; ++i) sum += seed().now[i] * state.now[i] + seed().before[i] * state.before[i];
    return sum;
  };
  uint64_t advances = 0;
  const State gradient = by_schedule(kCount, 3, &advances);
  constexpr double kEps = 1e-6;
  for (size_t i = 0; i < kPoints; ++i) {
    State up = start(), down = start();
    up.now[i] += kEps, down.now[i] -= kEps;
    EXPECT_NEAR((objective(up) - objective(down)) / (2 * kEps), gradient.now[i], 1e-5 * (1 + std::fabs(gradient.now[i])));
  }
}

RC_GTEST_PROP(ScheduleAdjoint, EqualsStoreAllBitByBit, ()) {
  const auto steps = *rc::gen::inRange<uint64_t>(1, 400);
  const auto snapshots = *rc::gen::inRange<uint32_t>(1, 40);
  uint64_t advances = 0;
  RC_ASSERT(same(by_schedule(steps, snapshots, &advances), store_all(steps)));
  RC_ASSERT(advances == extra(steps, snapshots));
}

RC_GTEST_PROP(ScheduleCount, FallsWithSnapshotsAndRisesWithSteps, ()) {
  const auto bits = *rc::gen::inRange(1, 63);
  const uint64_t n = *rc::gen::inRange<uint64_t>(2, uint64_t{1} << bits);
  const uint64_t s = *rc::gen::inRange<uint64_t>(1, uint64_t{1} << bits);
  RC_ASSERT(extra(n, s + 1) <= extra(n, s));
  RC_ASSERT(extra(n, s) <= extra(n + 1, s));
  RC_ASSERT(extra(n, s) >= n - 1);
}

// One step of the recurrence that defines the optimum: no first advance beats it, whatever its length.
RC_GTEST_PROP(ScheduleCount, NoSplitIsBetter, ()) {
  const auto bits = *rc::gen::inRange(2, 34);
  const uint64_t n = *rc::gen::inRange<uint64_t>(2, uint64_t{1} << bits), s = *rc::gen::inRange<uint64_t>(2, 200);
  const uint64_t j = *rc::gen::inRange<uint64_t>(1, n);
  const uint64_t whole = extra(n, s), right = extra(n - j, s - 1), left = extra(j, s);
  if (right >= UINT64_MAX / 4 || left >= UINT64_MAX / 4) return;
  RC_ASSERT(whole <= j + right + left);
}

}  // namespace
