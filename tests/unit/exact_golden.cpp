// The core of the exact planner on the stage model: instances whose optima in each class are known from elsewhere, and the
// closed forms of equal steps.
#include <gtest/gtest.h>

#include <cmath>

#include "plan/exact/late.h"
#include "plan/exact/minimum.h"
#include "plan/exact/solver.h"

namespace {

using namespace ckpt::plan::exact;

struct Row {
  Bytes room;
  std::vector<Bytes> a, A, back;  // back: backward scratch and the input's gradient
  std::vector<Ticks> u;
  Ticks rotor, sigma, d, d_e;     // -1: infeasible
};

const std::vector<Row> &rows() {
  static const std::vector<Row> known = {
    {71, {15, 14, 16, 17, 10}, {16, 16, 18, 12}, {15, 14, 16, 17}, {2, 5, 2, 5}, 16, 9, 7, 7},
    {37, {18, 7, 10, 7, 6}, {7, 11, 9, 7}, {18, 7, 10, 7}, {3, 2, 4, 3}, 9, 8, 5, 5},
    {46, {3, 3, 19, 4, 9}, {5, 19, 4, 11}, {3, 3, 19, 4}, {1, 4, 1, 3}, 11, 6, 5, 5},
    {62, {4, 11, 4, 13, 16, 12}, {11, 6, 14, 17, 13}, {4, 11, 4, 13, 16}, {1, 1, 5, 4, 4}, 18, 9, 7, 7},
    {85, {11, 19, 12, 19, 8, 19}, {19, 13, 21, 8, 19}, {11, 19, 12, 19, 8}, {4, 2, 2, 3, 5}, 8, 6, 4, 4},
    {51, {18, 14, 6, 16, 8, 14}, {14, 8, 17, 10, 15}, {18, 14, 6, 16, 8}, {5, 3, 5, 5, 4}, 39, 31, 31, 28},
    {57, {11, 4, 12, 7, 11, 7, 15, 9}, {6, 12, 8, 11, 7, 17, 10}, {11, 4, 12, 7, 11, 7, 15}, {1, 3, 5, 1, 4, 3, 2}, 21, 13, 13, 13},
    {47, {3, 3, 9, 1, 7, 18}, {4, 10, 1, 9, 19}, {3, 3, 9, 1, 7}, {1, 4, 3, 2, 2}, -1, -1, -1, -1},
  };
  return known;
}

// The input is the caller's; every gradient has its boundary's size and counts.
Stage stage_of(const Row &row) {
  Stage s;
  s.a = row.a;
  s.d = row.a;
  s.a[0] = 0;
  s.A = row.A;
  s.u = row.u;
  s.scratch_forward.assign(row.A.size(), 0);
  for (size_t i = 0; i < row.back.size(); ++i) s.scratch_backward.push_back(row.back[i] - s.d[i]);
  return s;
}

Ticks least(const Model &model, Bytes room) {
  if (room < minimum_load(model)) return -1;
  Work work;
  const Solution s = Solver(model).solve(room, kNever, &work);
  EXPECT_TRUE(s.proved);
  EXPECT_EQ(s.bound, s.cost);
  EXPECT_LE(s.load, room);
  return s.cost;
}

TEST(ExactGolden, RotorAndSigma) {
  for (size_t k = 0; k < rows().size(); ++k) {
    const Row &row = rows()[k];
    EXPECT_EQ(least(stage_model(stage_of(row), false), row.room), row.rotor) << "row " << k;
    EXPECT_EQ(least(stage_model(stage_of(row), true), row.room), row.sigma) << "row " << k;
  }
}

TEST(ExactGolden, LateRelease) {
  for (size_t k = 0; k < rows().size(); ++k) {
    const Row &row = rows()[k];
    const Model model = stage_model(stage_of(row), true);
    for (const bool frees : {false, true}) {
      Work work;
      Found found;
      const bool any = LateSolver(model, frees).solve(row.room, kNever, &work, &found);
      EXPECT_EQ(any ? found.cost : -1, frees ? row.d_e : row.d) << "row " << k;
    }
  }
}

TEST(ExactGolden, MinimumIsWhereSolutionsBegin) {
  for (const Row &row : rows())
    for (const bool sigma : {false, true}) {
      const Model model = stage_model(stage_of(row), sigma);
      const Bytes least_bytes = minimum_load(model);
      Work work;
      Solver solver(model);
      const Solution s = solver.solve(least_bytes, kNever, &work);
      EXPECT_NE(s.cost, kNever);
      EXPECT_EQ(s.load, least_bytes);
      // With one byte less no limit on the cost lets anything through.
      Intervals intervals(model);
      ASSERT_TRUE(intervals.compute(least_bytes - 1, 4000, CostLimits{std::vector<std::vector<Ticks>>(model.size(), std::vector<Ticks>(model.size(), 4000))}, &work));
      Top top(intervals, &work);
      Found found;
      EXPECT_FALSE(top.prepare(kNever) && top.search(kNever, 0, &found));
    }
}

Stage equal_steps(uint32_t n, Bytes saved) {
  Stage s;
  s.a.assign(n + 1, 1);
  s.a[0] = 0;
  s.d.assign(n + 1, 0);
  s.A.assign(n, saved);
  s.u.assign(n, 1);
  s.scratch_forward.assign(n, 0);
  s.scratch_backward.assign(n, 0);
  return s;
}

// Griewank and Walther: extra forward steps of n steps with s checkpoints.
int64_t binomial(int64_t n, int64_t k) {
  int64_t r = 1;
  for (int64_t i = 1; i <= k; ++i) r = r * (n - k + i) / i;
  return r;
}
int64_t revolve(int64_t n, int64_t s) {
  int64_t r = 1;
  while (binomial(s + r, s) < n) ++r;
  return r * n - binomial(s + r, r - 1);
}

TEST(ExactGolden, Revolve) {
  EXPECT_EQ(revolve(10, 3), 15);
  EXPECT_EQ(revolve(250, 10), 672);
  // Saved sets that are much larger than all boundaries: one of them at a time.
  for (uint32_t n = 1; n < 40; n += 3)
    for (uint32_t s = 1; s < 12; s += 2) {
      const Bytes large = 1000;
      EXPECT_EQ(least(stage_model(equal_steps(n, large), false), large + s), n == 1 ? 0 : revolve(n, s)) << n << " steps, " << s << " checkpoints";
    }
}

TEST(ExactGolden, Mixed) {
  constexpr int64_t kSteps = 40, kSlots = 12;
  std::vector<std::vector<int64_t>> p(kSteps, std::vector<int64_t>(kSlots, 0));  // Maddison: total forward steps
  for (int64_t n = 1; n < kSteps; ++n)
    for (int64_t s = 1; s < kSlots; ++s) {
      if (n <= s + 1) {
        p[n][s] = n;
        continue;
      }
      if (s == 1) {
        p[n][s] = n * (n + 1) / 2 - 1;
        continue;
      }
      int64_t best = 1 + p[n - 1][s - 1];
      for (int64_t i = 2; i < n; ++i) best = std::min(best, i + p[i][s] + p[n - i][s - 1]);
      p[n][s] = best;
    }
  EXPECT_EQ(p[10][3], 19);
  for (uint32_t n = 1; n < kSteps; n += 2)
    for (uint32_t s = 1; s < kSlots; s += 2)
      EXPECT_EQ(least(stage_model(equal_steps(n, 1), false), s + 1), p[n][s] - n) << n << " steps, " << s << " slots";
}

}  // namespace
