// Revolve: counts against a dynamic program and published numbers, and the iterator's actions against a machine that
// checks every one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "plan/schedule.h"

namespace ckpt::plan {
namespace {

constexpr uint64_t kSteps = 200, kSnapshots = 12;

// Least (advances, stores) to reverse n steps with s snapshots, the input's included and not counted as a store; a state
// whose adjoint follows at once needs none. Convention: advances only; the n forward steps within BACKWARD do not count.
class Table {
 public:
  using Cost = std::pair<uint64_t, uint64_t>;
  Table() : cost_((kSteps + 1) * (kSnapshots + 1)) {
    for (uint64_t s = 1; s <= kSnapshots; ++s)
      for (uint64_t n = 2; n <= kSteps; ++n) at(n, s) = s == 1 ? Cost{n * (n - 1) / 2, 0} : best(n, s);
  }
  Cost operator()(uint64_t n, uint64_t s) const { return cost_[n * (kSnapshots + 1) + s]; }

 private:
  Cost &at(uint64_t n, uint64_t s) { return cost_[n * (kSnapshots + 1) + s]; }
  Cost best(uint64_t n, uint64_t s) {
    Cost least{UINT64_MAX, 0};
    for (uint64_t j = 1; j < n; ++j) {
      const Cost left = at(j, s), right = at(n - j, s - 1);
      least = std::min(least, Cost{j + left.first + right.first, left.second + right.second + (n - j > 1 ? 1 : 0)});
    }
    return least;
  }
  std::vector<Cost> cost_;
};

const Table &table() {
  static const Table t;
  return t;
}

TEST(RevolveCount, EqualsTheDynamicProgram) {
  for (uint64_t s = 1; s <= kSnapshots; ++s)
    for (uint64_t n = 1; n <= kSteps; ++n) ASSERT_EQ(revolve_extra_forwards(n, s), table()(n, s).first) << n << " " << s;
}

TEST(RevolveCount, EqualsPublishedNumbers) {
  // Advances only, s snapshots with the input's.
  const uint64_t rows[][3] = {{4, 4, 3},     {10, 3, 15},    {50, 7, 105},     {100, 3, 490},     {100, 5, 316},
                              {225, 15, 522}, {250, 10, 672}, {500, 4, 3213},   {1000, 10, 3636},  {10000, 20, 37976},
                              {10000, 25, 36346}};
  for (const auto &[n, s, want] : rows) EXPECT_EQ(revolve_extra_forwards(n, s), want) << n << " " << s;
}

TEST(RevolveCount, EdgesAndExtremes) {
  EXPECT_EQ(revolve_extra_forwards(0, 0), 0u);
  EXPECT_EQ(revolve_extra_forwards(1, 0), 0u);
  EXPECT_EQ(revolve_extra_forwards(1, 5), 0u);
  EXPECT_EQ(revolve_extra_forwards(2, 1), 1u);
  constexpr uint64_t kMany = uint64_t{1} << 33;
  EXPECT_EQ(revolve_extra_forwards(kMany, kMany), kMany - 1);
  EXPECT_EQ(revolve_extra_forwards(kMany, UINT64_MAX), kMany - 1);
  EXPECT_EQ(revolve_extra_forwards(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(revolve_extra_forwards(UINT64_MAX, 1), UINT64_MAX);           // n (n - 1) / 2 does not fit
  EXPECT_EQ(revolve_extra_forwards(kMany / 2, 1), (kMany / 2) * (kMany / 2 - 1) / 2);
  // s = 2: least r with (r + 1)(r + 2) / 2 >= n, then r n - C(r + 2, 3). For n = 2^33: r = 131071, since 131072 131073 / 2
  // = 8590000128 is the first of at least 8589934592 (131071 131072 / 2 = 8589869056).
  EXPECT_EQ(revolve_extra_forwards(kMany, 2), uint64_t{131071} * kMany - uint64_t{131073} * 131072 / 2 * 131071 / 3);
  // r = 1 up to s + 1 steps, then r = 2.
  EXPECT_EQ(revolve_extra_forwards(1000001, 1000000), 1000000u);
  EXPECT_EQ(revolve_extra_forwards(1000002, 1000000), 2 * uint64_t{1000002} - 1000002);
}

// Runs a schedule on paper and checks each action against the rules of schedule.h.
struct Count {
  uint64_t advances = 0, stores = 0, most_live = 0, backwards = 0;
};

Count check(uint64_t steps, uint32_t snapshots, uint64_t backwards_wanted = UINT64_MAX) {
  Result<Revolve> made = Revolve::create(steps, snapshots);
  EXPECT_TRUE(made.ok());
  Revolve &schedule = *made;
  Count count;
  std::map<uint32_t, uint64_t> live;  // snapshot number -> step
  uint64_t state = 0, next_backward = steps;
  bool known = true;
  const auto wrong = [&](const ckpt_schedule_action &a, const char *what) {
    ADD_FAILURE() << what << ": kind " << a.kind << " snapshot " << a.snapshot << " first " << a.first << " last " << a.last;
    return count;
  };
  while (count.backwards < backwards_wanted) {
    const ckpt_schedule_action a = schedule.next();
    switch (a.kind) {
      case CKPT_SCHEDULE_STORE:
        if (!known || a.first != state || a.last != a.first) return wrong(a, "stores another state");
        if (a.snapshot >= snapshots || (a.snapshot == 0 && a.first != 0)) return wrong(a, "bad snapshot number");
        live[a.snapshot] = a.first;
        std::erase_if(live, [&](const auto &entry) { return entry.second >= next_backward; });  // of no more use
        count.most_live = std::max<uint64_t>(count.most_live, live.size());
        ++count.stores;
        break;
      case CKPT_SCHEDULE_RESTORE:
        if (!live.contains(a.snapshot) || live[a.snapshot] != a.first || a.last != a.first) return wrong(a, "not stored");
        state = a.first, known = true;
        break;
      case CKPT_SCHEDULE_ADVANCE:
        if (!known || a.first != state || a.last <= a.first || a.last >= next_backward) return wrong(a, "bad advance");
        count.advances += a.last - a.first;
        state = a.last;
        break;
      case CKPT_SCHEDULE_BACKWARD:
        if (!known || a.first != state || a.first + 1 != next_backward || a.last != next_backward) return wrong(a, "order");
        --next_backward, known = false;
        ++count.backwards;
        break;
      case CKPT_SCHEDULE_DONE:
        if (next_backward != 0) return wrong(a, "stops early");
        EXPECT_EQ(schedule.next().kind, uint32_t{CKPT_SCHEDULE_DONE});
        return count;
      default:
        return wrong(a, "unknown kind");
    }
  }
  return count;
}

TEST(RevolveIterator, IsOptimalInAdvancesAndThenInStores) {
  for (uint32_t s = 1; s <= kSnapshots; ++s)
    for (uint64_t n = 1; n <= kSteps; ++n) {
      const Count count = check(n, s);
      ASSERT_EQ(count.advances, table()(n, s).first) << n << " " << s;
      ASSERT_EQ(count.stores, table()(n, s).second + (n > 1 ? 1 : 0)) << n << " " << s;
      ASSERT_EQ(count.backwards, n);
      ASSERT_LE(count.most_live, s);
      if (HasFailure()) return;
    }
}

TEST(RevolveIterator, LongerLoopsMeetTheClosedForm) {
  const uint64_t rows[][2] = {{225, 15}, {500, 4}, {1000, 10}, {1000, 1}, {10000, 20}, {10000, 25}, {3000, 2999}, {3000, 5000}};
  for (const auto &[n, s] : rows)
    EXPECT_EQ(check(n, static_cast<uint32_t>(s)).advances, revolve_extra_forwards(n, s)) << n << " " << s;
}

TEST(RevolveIterator, EmptyAndSingleLoops) {
  EXPECT_EQ(check(0, 0).backwards, 0u);
  EXPECT_EQ(check(0, 3).stores, 0u);
  EXPECT_EQ(check(1, 0).backwards, 1u);
  EXPECT_EQ(check(1, 3).stores, 0u);
}

TEST(RevolveIterator, StartsLoopsOfBillionsOfStepsAtOnce) {
  for (const uint64_t n : {uint64_t{1} << 33, (uint64_t{1} << 33) + 12345, Revolve::kMaxSteps})
    for (const uint32_t s : {1u, 2u, 3u, 10u, 64u, 1000u, UINT32_MAX}) {
      // With UINT32_MAX snapshots the first sweep alone has billions of stores: a prefix of it is enough below.
      if (s == UINT32_MAX) continue;
      EXPECT_EQ(check(n, s, 1000).backwards, 1000u) << n << " " << s;
    }
  Result<Revolve> made = Revolve::create(uint64_t{1} << 33, UINT32_MAX);
  ASSERT_TRUE(made.ok());
  uint64_t at = 0;
  for (uint32_t k = 0; k < 1000; ++k) {
    ckpt_schedule_action a = made->next();
    ASSERT_TRUE(a.kind == CKPT_SCHEDULE_STORE && a.snapshot == k && a.first == at);
    a = made->next();
    ASSERT_TRUE(a.kind == CKPT_SCHEDULE_ADVANCE && a.first == at && a.last > at);
    at = a.last;
  }
}

TEST(RevolveIterator, RefusesWhatItCannotDo) {
  EXPECT_EQ(Revolve::create(2, 0).status(), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(Revolve::create(Revolve::kMaxSteps + 1, 5).status(), CKPT_ERROR_OVERFLOW);
}

}  // namespace
}  // namespace ckpt::plan
