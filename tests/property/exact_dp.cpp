// The exact planner against the dynamic program of the same class that leaves nothing out: equal at every budget at which the
// optimum changes, and one byte below each of them.
#include <gtest/gtest.h>

#include "support/exact_checks.h"
#include "support/plan_dp.h"
#include "support/stage_dp.h"

namespace plan_test {
namespace {

uint32_t plan_class(DpClass c) { return c == DpClass::rotor ? CKPT_CLASS_ROTOR : CKPT_CLASS_SIGMA; }
const char *name_of(DpClass c) { return c == DpClass::rotor ? "rotor" : "sigma"; }

// One question; `cost` < 0: to be refused.
std::string ask(exact::Planner *planner, const Planning &p, int64_t bytes, int64_t cost) {
  const std::string at = "at " + std::to_string(bytes) + " bytes, " + (cost < 0 ? "to be refused" : "least overhead " + std::to_string(cost)) + ": ";
  exact::Answer a;
  const size_t load = static_cast<size_t>(bytes) * p.unit;
  const Status status = planner->solve(load, 0, &a);
  if (cost < 0) return status == CKPT_ERROR_BUDGET ? "" : at + "status " + std::to_string(status);
  if (status) return at + "refused with " + std::to_string(status);
  if (const std::string wrong = wrong_with(a, load, p); !wrong.empty()) return at + wrong;
  if (std::abs(a.overhead_seconds - p.tick * static_cast<double>(cost)) > p.slack()) return at + "the planner's is " + std::to_string(a.overhead_seconds / p.tick);
  if (const std::string wrong = proved(a, p); !wrong.empty()) return at + wrong;
  return "";
}

// The first difference, or "". `down`: from the largest budget to the smallest.
std::string difference(const ChainModel &chain, DpClass dp_class, double tick, size_t unit, bool down) {
  const Planning p(chain, tick, unit);
  const std::unique_ptr<exact::Planner> planner = p.planner(plan_class(dp_class));
  if (planner == nullptr) return "no planner";
  const ChainDp dp(chain, dp_class);
  const ChainDp::Frontier &points = dp.frontier();
  for (size_t k = 0; k < points.size(); ++k) {
    const size_t at = down ? points.size() - 1 - k : k;
    if (std::string wrong = ask(planner.get(), p, points[at].bytes, points[at].cost); !wrong.empty()) return wrong;
    if (points[at].bytes == 0) continue;
    if (std::string wrong = ask(planner.get(), p, points[at].bytes - 1, at == 0 ? -1 : points[at - 1].cost); !wrong.empty()) return wrong;
  }
  if (const size_t least = planner->minimum_load(); least != static_cast<size_t>(points[0].bytes) * unit)
    return "the minimum is " + std::to_string(points[0].bytes) + ", the planner's " + std::to_string(static_cast<double>(least) / static_cast<double>(unit));
  return "";
}

void compare(const ChainModel &chain, DpClass dp_class, uint64_t seed) {
  static constexpr double kTicks[] = {1, 0.125, 1e-3, 1.0 / 3};
  const double tick = kTicks[seed % 4];
  const size_t unit = seed % 3 == 0 ? 64 : 1;
  const bool down = seed % 2;
  const std::string wrong = difference(chain, dp_class, tick, unit, down);
  if (wrong.empty()) return;
  const ChainModel small = reduced(chain, [&](const ChainModel &c) { return !difference(c, dp_class, tick, unit, down).empty(); });
  FAIL() << "class " << name_of(dp_class) << ", seed " << seed << ", tick " << tick << ", unit " << unit << ": " << wrong << "\nsmallest such chain: " << difference(small, dp_class, tick, unit, down) << "\n" << text(small);
}

TEST(ExactAgainstDp, EqualAtEveryBudget) {
  constexpr uint64_t kChains = kSlow == 1 ? 10000 : 400;
  uint64_t points = 0;
  for (uint64_t seed = 0; seed < kChains; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xe8ac7ull << 32);
    const uint32_t n = 1 + static_cast<uint32_t>(seed / 4 % 6);
    const ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(n, n <= 3 ? 4 : n == 4 ? 3 : 2);
    for (DpClass c : {DpClass::rotor, DpClass::sigma}) {
      ASSERT_NO_FATAL_FAILURE(compare(chain, c, seed / 24));
      points += ChainDp(chain, c).frontier().size();
    }
  }
  std::printf("%llu chains in two classes, %llu points\n", static_cast<unsigned long long>(kChains), static_cast<unsigned long long>(points));
}

// Longer ones, half of them of a few kinds of segment that come again and again: many programs of equal cost.
TEST(ExactAgainstDp, LongerChains) {
  for (uint64_t seed = 0; seed < 240 / (kSlow * kSlow); ++seed) {
    Genes genes = Genes::endless(seed ^ 0x10a6ull << 32);
    ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(7 + genes.below(8), 2);
    const uint32_t period = 1 + genes.below(3);
    for (uint32_t i = period; i < chain.size() && seed % 8 < 4; ++i) chain.segments[i] = chain.segments[i - period];
    for (DpClass c : {DpClass::rotor, DpClass::sigma}) ASSERT_NO_FATAL_FAILURE(compare(chain, c, seed));
  }
}

TEST(ExactAgainstDp, SlotsThatAreMadeOnce) {
  for (uint64_t seed = 0; seed < 800 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0x5e1full << 32);
    ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(1 + genes.below(5), 3);
    for (ModelSegment &s : chain.segments)
      for (ModelSlot &k : s.slots) k.keep = genes.one_in(3);
    for (DpClass c : {DpClass::rotor, DpClass::sigma}) ASSERT_NO_FATAL_FAILURE(compare(chain, c, seed));
  }
}

// Costs that are no multiples of anything: the planner counts in ticks, so it may be off by a little, but never below what is
// possible, and its bound never above it.
TEST(ExactAgainstDp, AnyCosts) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 600 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xa17ull << 32);
    ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(1 + genes.below(5), 2);
    for (ModelSegment &s : chain.segments) {  // in millionths
      s.output_cost = genes.below(5'000'000);
      for (ModelSlot &k : s.slots) k.cost = genes.below(3'000'000);
    }
    const Planning p(chain, 1e-6);
    for (DpClass c : {DpClass::rotor, DpClass::sigma}) {
      const std::unique_ptr<exact::Planner> planner = p.planner(plan_class(c));
      ASSERT_NE(planner, nullptr);
      const ChainDp dp(chain, c);
      for (const ChainDp::Point &point : dp.frontier()) {
        exact::Answer a;
        ASSERT_EQ(planner->solve(static_cast<size_t>(point.bytes), 0, &a), CKPT_OK) << text(chain);
        ASSERT_EQ(wrong_with(a, static_cast<size_t>(point.bytes), p), "") << text(chain);
        const double best = p.tick * static_cast<double>(point.cost);
        ASSERT_GE(a.overhead_seconds, best - p.slack()) << text(chain);
        ASSERT_LE(a.class_bound_seconds, best + p.slack()) << name_of(c) << " at " << point.bytes << "\n" << text(chain);
        worst = std::max(worst, (a.overhead_seconds - best) / (1e-9 + p.graph.forward_seconds() / chain.size()));
      }
    }
  }
  std::printf("at most %.6f of a segment above the optimum\n", worst);
  EXPECT_LE(worst, 2e-3);
}

TEST(ExactAgainstDp, LargerClassesAreNeverSlower) {
  for (uint64_t seed = 0; seed < 600 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0x1a6ull << 32);
    const ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(1 + genes.below(5), 2);
    const Planning p(chain);
    const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_SIGMA_S_W);
    ASSERT_NE(planner, nullptr);
    const ChainDp dp(chain, DpClass::sigma);
    ASSERT_LE(planner->minimum_load(), static_cast<size_t>(dp.frontier()[0].bytes)) << text(chain);
    for (const ChainDp::Point &point : dp.frontier()) {
      exact::Answer a;
      ASSERT_EQ(planner->solve(static_cast<size_t>(point.bytes), 0, &a), CKPT_OK) << text(chain);
      ASSERT_EQ(wrong_with(a, static_cast<size_t>(point.bytes), p), "") << text(chain);
      ASSERT_LE(a.overhead_seconds, static_cast<double>(point.cost) + p.slack()) << "at " << point.bytes << "\n" << text(chain);
    }
  }
}

// ---- known answers ----

double overhead(const Planning &p, uint32_t in_class, size_t load, Status expected = CKPT_OK) {
  const std::unique_ptr<exact::Planner> planner = p.planner(in_class);
  exact::Answer a;
  if (planner == nullptr) return -2;
  const Status status = planner->solve(load, 0, &a);
  EXPECT_EQ(status, expected);
  if (status) return -1;
  EXPECT_EQ(wrong_with(a, load, p), "");
  EXPECT_EQ(proved(a, p), "");
  return a.overhead_seconds;
}

TEST(ExactAgainstKnown, StageInstances) {
  for (size_t row = 0; row < stage_known().size(); ++row) {
    SCOPED_TRACE(row);
    const StageKnown &known = stage_known()[row];
    const Planning p(machine_of(known.chain));
    const auto load = static_cast<size_t>(known.bytes);
    const Status expected = known.least[0] < 0 ? CKPT_ERROR_BUDGET : CKPT_OK;
    EXPECT_EQ(overhead(p, CKPT_CLASS_ROTOR, load, expected), static_cast<double>(known.least[0]));
    EXPECT_EQ(overhead(p, CKPT_CLASS_SIGMA, load, expected), static_cast<double>(known.least[1]));
    if (known.least[0] < 0) continue;
    EXPECT_LE(overhead(p, CKPT_CLASS_SIGMA_S_W, load), static_cast<double>(known.least[1]));
  }
}

// Equal steps on the machine: boundaries of 1000 bytes, so that gradients of one byte make no difference.
ChainModel equal_chain(uint32_t n, int64_t saved) {
  StageChain c = equal_steps(n, saved * 1000);
  for (int64_t &a : c.a) a = 1000;
  for (int64_t &g : c.gradient) g = 1;
  for (int64_t &b : c.backward) b = 1;
  return machine_of(c);
}

TEST(ExactAgainstKnown, MixedCheckpoints) {
  Mixed mixed;
  for (uint32_t n = 1; n < 40; n += n < 12 ? 1 : 5) {
    const Planning p(equal_chain(n, 1));
    for (uint32_t s = 1; s < 12; s += s < 4 ? 1 : 3)
      ASSERT_EQ(overhead(p, CKPT_CLASS_ROTOR, 1000 * (s + 1) + 2), static_cast<double>(mixed.forwards(n, s) - n)) << n << " steps, " << s << " checkpoints";
  }
}

TEST(ExactAgainstKnown, Revolve) {
  const uint32_t large[][2] = {{10, 3}, {50, 7}, {100, 5}, {250, 10}};
  for (const auto &[n, s] : large) {
    const Planning p(equal_chain(n, 1000));
    ASSERT_EQ(overhead(p, CKPT_CLASS_ROTOR, 1000 * (1000 + s) + 2), static_cast<double>(revolve_extra(n, s))) << n << " steps, " << s << " checkpoints";
  }
  for (uint32_t n = 2; n < 30; n += 3) {
    const Planning p(equal_chain(n, 1000));
    for (uint32_t s = 1; s < 8; ++s)
      ASSERT_EQ(overhead(p, CKPT_CLASS_ROTOR, 1000 * (1000 + s) + 2), static_cast<double>(revolve_extra(n, s))) << n << " steps, " << s << " checkpoints";
  }
}

}  // namespace
}  // namespace plan_test
