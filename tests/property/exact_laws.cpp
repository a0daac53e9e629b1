// Laws of the exact planner on chains that are too long for oracles: more memory is never slower, dearer or larger chains never
// faster, bounds hold, other strategies are never better, the same question has the same answer, and more work none worse.
#include <gtest/gtest.h>

#include "bench/grid_planner.h"
#include "plan/generate.h"
#include "plan/make_plan.h"
#include "plan/strategy.h"
#include "support/exact_checks.h"

namespace plan_test {
namespace {

ChainModel some_chain(uint64_t seed, uint64_t salt, uint32_t segments, uint32_t slots) {
  Genes genes = Genes::endless(seed ^ salt << 32);
  return ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(1 + genes.below(segments), slots);
}
// A load at which nothing needs to be made twice: everything at once.
size_t everything(const Graph &graph) {
  size_t sum = 0;
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    for (uint32_t k = 0; k < s.item_count(); ++k) sum += graph.item_footprint(i, k);
    sum += graph.rule.footprint(s.forward_scratch()) + graph.rule.footprint(s.backward_scratch());
  }
  for (const Value &v : graph.values) sum += graph.rule.footprint(v.grad_bytes) + (v.producer == kNone ? graph.rule.footprint(v.bytes) : 0);
  return sum;
}
exact::Answer solved(exact::Planner *planner, const Planning &p, size_t load) {
  exact::Answer a;
  EXPECT_EQ(planner->solve(load, 0, &a), CKPT_OK) << "at " << load << "\n" << text(p.chain);
  EXPECT_EQ(wrong_with(a, load, p), "") << "at " << load << "\n" << text(p.chain);
  EXPECT_EQ(proved(a, p), "") << "at " << load << "\n" << text(p.chain);
  return a;
}

TEST(ExactLaws, MoreMemoryIsNeverSlower) {
  for (uint64_t seed = 0; seed < 160 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0x1a35, 16, 3));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const size_t ample = everything(p.graph);
    for (uint32_t plan_class : {CKPT_CLASS_ROTOR, CKPT_CLASS_SIGMA, CKPT_CLASS_SIGMA_S_W}) {
      const std::unique_ptr<exact::Planner> planner = p.planner(plan_class);
      ASSERT_NE(planner, nullptr);
      const size_t least = planner->minimum_load();
      exact::Answer a;
      if (least > 0) {
        ASSERT_EQ(planner->solve(least - 1, 0, &a), CKPT_ERROR_BUDGET) << text(p.chain);
      }
      std::vector<double> now;
      for (uint32_t part = 0; part <= 6; ++part) {
        const exact::Answer at = solved(planner.get(), p, least + (ample - least) * part * part / 36);
        ASSERT_FALSE(HasFailure());
        if (!now.empty()) {
          ASSERT_LE(at.overhead_seconds, now.back() + p.slack()) << text(p.chain);
        }
        now.push_back(at.overhead_seconds);
      }
      ASSERT_NEAR(now.back(), 0, p.slack()) << text(p.chain);
    }
  }
}

// The program behind the smallest load is of that load.
TEST(ExactLaws, TheSmallestProgramIsAsSmallAsItSays) {
  for (uint64_t seed = 0; seed < 1500 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0x5a11, 20, 3));
    for (uint32_t plan_class : {CKPT_CLASS_ROTOR, CKPT_CLASS_SIGMA, CKPT_CLASS_SIGMA_S_W}) {
      const std::unique_ptr<exact::Planner> planner = p.planner(plan_class);
      ASSERT_NE(planner, nullptr);
      const size_t least = planner->minimum_load();
      const Program smallest = planner->write_small(least, SIZE_MAX);
      ASSERT_TRUE(planner->knows_small());
      ASSERT_GE(planner->enough(), least);
      ASSERT_FALSE(smallest.actions.empty());
      ASSERT_TRUE(planner->write_small(least, smallest.actions.size() / 4).actions.empty());
      ASSERT_TRUE(least == 0 || planner->write_small(least - 1, SIZE_MAX).actions.empty());
      Verified v;
      ASSERT_EQ(verify(p.graph, p.roots, smallest.actions, &v), CKPT_OK) << last_error() << "\nseed " << seed << "\n" << text(p.chain);
      ASSERT_EQ(v.peak, least) << "seed " << seed << " class " << plan_class << "\n" << text(p.chain);
    }
  }
}

// Also of pipelines, whose height is another thing than one recording's load: a curve begins at the smallest budget, and each of its
// budgets is accepted.
TEST(ExactLaws, BudgetsOfACurveAreAccepted) {
  for (uint64_t seed = 0; seed < 48 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0xc09e, 8, 3));
    PlanRequest r;
    r.work_limit = 500'000;
    r.in_flight = 1 + static_cast<uint32_t>(seed % 3);
    r.plan_class = static_cast<uint32_t>(seed / 4 % 4);
    std::vector<CurvePoint> points;
    ASSERT_EQ(find_curve(p.graph, p.gradients, r, 4, &points), CKPT_OK) << last_error();
    size_t minimum = 0;
    ASSERT_EQ(find_minimum_budget(p.graph, p.gradients, r, arena::Placer(), &minimum), CKPT_OK) << last_error();
    ASSERT_EQ(points.front().prediction.height, minimum) << "seed " << seed << "\n" << text(p.chain);
    for (const CurvePoint &point : points) {
      r.budget = point.prediction.height;
      Planned planned;
      ASSERT_EQ(make_plan(p.graph, p.gradients, r, arena::Placer(), &planned), CKPT_OK) << "seed " << seed << ": " << last_error() << "\n" << text(p.chain);
    }
  }
}

TEST(ExactLaws, LargerClassesAreNeverSlower) {
  for (uint64_t seed = 0; seed < 120 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0xc1a5, 12, 3));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const size_t ample = everything(p.graph);
    const std::unique_ptr<exact::Planner> smaller = p.planner(CKPT_CLASS_ROTOR);
    const size_t least = smaller->minimum_load();
    for (uint32_t part = 0; part <= 4; ++part) {
      const size_t load = least + (ample - least) * part * part / 36;
      double before = solved(smaller.get(), p, load).overhead_seconds;
      for (uint32_t plan_class : {CKPT_CLASS_SIGMA, CKPT_CLASS_SIGMA_S_W}) {
        const std::unique_ptr<exact::Planner> planner = p.planner(plan_class);
        ASSERT_LE(planner->minimum_load(), least);
        const exact::Answer a = solved(planner.get(), p, load);
        ASSERT_FALSE(HasFailure());
        ASSERT_LE(a.overhead_seconds, before + p.slack()) << text(p.chain);
        before = a.overhead_seconds;
      }
      // What holds for every program holds for those of the largest class.
      ASSERT_LE(solved(smaller.get(), p, load).universal_bound_seconds, before + p.slack()) << text(p.chain);
    }
  }
}

// Every program computes each slot and output at least once, so its overhead grows with costs; its load grows with sizes.
TEST(ExactLaws, DearerAndLargerChainsAreNeverFaster) {
  for (uint64_t seed = 0; seed < 200 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xdea5ull << 32);
    const ChainModel chain = some_chain(seed, 0xdea4, 10, 3);
    ChainModel dearer = chain, larger = chain;
    ModelSegment &d = dearer.segments[genes.below(chain.size())], &l = larger.segments[genes.below(chain.size())];
    const uint32_t more = 1 + genes.below(4);
    if (d.slots.empty() || genes.one_in(2)) d.output_cost += more;
    else d.slots[genes.below(static_cast<uint32_t>(d.slots.size()))].cost += more;
    switch (genes.below(5)) {
      case 0: l.output_bytes += more; break;
      case 1: l.forward_scratch += more; break;
      case 2: l.backward_scratch += more; break;
      case 3: l.output_grad_bytes = std::max(l.output_grad_bytes, l.output_bytes) + more; break;
      default:
        if (!l.slots.empty()) l.slots[genes.below(static_cast<uint32_t>(l.slots.size()))].bytes += more;
    }
    const Planning p(chain), pd(dearer), pl(larger);
    for (uint32_t plan_class : {CKPT_CLASS_ROTOR, CKPT_CLASS_SIGMA}) {
      const std::unique_ptr<exact::Planner> a = p.planner(plan_class), b = pd.planner(plan_class), c = pl.planner(plan_class);
      const size_t least = a->minimum_load();
      ASSERT_EQ(b->minimum_load(), least) << text(chain) << text(dearer);
      ASSERT_GE(c->minimum_load(), least) << text(chain) << text(larger);
      for (uint32_t part = 0; part <= 4; ++part) {
        const size_t load = c->minimum_load() + (everything(p.graph) - std::min(everything(p.graph), least)) * part / 12;
        const double base = solved(a.get(), p, load).overhead_seconds;
        ASSERT_GE(solved(b.get(), pd, load).overhead_seconds, base - p.slack()) << "at " << load << "\n" << text(chain) << text(dearer);
        ASSERT_GE(solved(c.get(), pl, load).overhead_seconds, base - p.slack()) << "at " << load << "\n" << text(chain) << text(larger);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

TEST(ExactLaws, NoFixedStrategyIsBetter) {
  uint32_t asked = 0, refused = 0, slower = 0;
  for (uint64_t seed = 0; seed < 300 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0xf1ed, 12, 3));
    const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_DEFAULT);
    ASSERT_NE(planner, nullptr);
    for (uint32_t strategy = CKPT_STRATEGY_STORE_ALL; strategy <= CKPT_STRATEGY_FULL; ++strategy) {
      PlanRequest request;
      request.strategy = strategy;
      if (strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK) request.k = 1 + static_cast<uint32_t>(seed % 4);
      Result<Policy> policy = fixed_policy(p.graph, request);
      ASSERT_TRUE(policy.ok());
      Result<Program> program = write_step(p.graph, p.gradients, *policy);
      ASSERT_TRUE(program.ok());
      Verified v;
      ASSERT_EQ(verify(p.graph, p.roots, program->actions, &v), CKPT_OK) << last_error();
      const double overhead = v.seconds - p.graph.forward_seconds() - p.graph.backward_seconds();
      exact::Answer a;
      const Status status = planner->solve(v.peak, 0, &a);
      ++asked;
      if (status == CKPT_ERROR_BUDGET) {
        ++refused;
        std::printf("refused %s at %zu, minimum %zu, seed %llu\n", strategy_name(strategy), v.peak, planner->minimum_load(), static_cast<unsigned long long>(seed));
        continue;
      }
      ASSERT_EQ(status, CKPT_OK);
      ASSERT_LE(a.universal_bound_seconds, overhead + p.slack()) << strategy_name(strategy) << "\n" << text(p.chain);
      if (a.overhead_seconds > overhead + p.slack()) {
        ++slower;
        std::printf("slower than %s at %zu: %g, %g, seed %llu\n", strategy_name(strategy), v.peak, a.overhead_seconds, overhead, static_cast<unsigned long long>(seed));
      }
    }
  }
  std::printf("%u programs of fixed strategies: less memory than the class needs %u, faster than the class %u\n", asked, refused, slower);
  EXPECT_LE((refused + slower) * 100, asked);
}

// Long chains of large segments, which run as a whole: a planner that rounds sizes up to a grid finds programs of class rotor,
// which are never faster.
TEST(ExactLaws, NoGridIsBetter) {
  uint32_t asked = 0;
  for (uint64_t seed = 0; seed < 12 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0x941dull << 32);
    ckpt_bench::StageChain stages;
    ChainModel chain;
    chain.input_grad = CKPT_GRAD_ARENA;
    chain.output_grad_in_arena = true;
    chain.segments.resize(40 + genes.below(40) / kSlow);
    chain.input_bytes = 1'000'000 << genes.below(6);
    stages.boundary.push_back(chain.input_bytes);
    for (ModelSegment &s : chain.segments) {
      s.output_bytes = (1'000'000u << genes.below(6)) + genes.below(999'999);
      s.slots = {{s.output_bytes / 4 * genes.below(30), 0, 0, false, false}};
      s.output_cost = 200 + genes.below(4800);
      s.forward_scratch = genes.one_in(2) ? s.output_bytes / 3 : 0;
      s.backward_scratch = genes.one_in(2) ? s.output_bytes : 0;
      s.reads_output = true;
      s.whole = true;
      stages.boundary.push_back(s.output_bytes);
      stages.saved.push_back(size_t{s.slots[0].bytes} + s.output_bytes);
      stages.forward_scratch.push_back(s.forward_scratch);
      stages.backward_scratch.push_back(s.backward_scratch);
      stages.seconds.push_back(s.output_cost);
    }
    const Planning p(chain);
    const std::unique_ptr<exact::Planner> rotor = p.planner(CKPT_CLASS_ROTOR), sigma = p.planner(CKPT_CLASS_DEFAULT);
    for (size_t percent : {70, 45, 30, 20}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(percent) + " %");
      const size_t load = stages.store_all_bytes() / 100 * percent;
      const auto grid = ckpt_bench::GridPlanner(stages, load, 500).overhead();
      if (!grid) continue;
      ++asked;
      const exact::Answer a = solved(rotor.get(), p, load), b = solved(sigma.get(), p, load);
      ASSERT_FALSE(HasFailure());
      ASSERT_LE(a.overhead_seconds, *grid * (1 + 1e-4));
      ASSERT_LE(b.overhead_seconds, a.overhead_seconds + p.slack());
      ASSERT_LE(a.universal_bound_seconds, b.overhead_seconds + p.slack());
    }
  }
  EXPECT_GT(asked, 24u / kSlow);
}

TEST(ExactLaws, TheSameQuestionHasTheSameAnswer) {
  for (uint64_t seed = 0; seed < 60 / kSlow; ++seed) {
    const ChainModel chain = some_chain(seed, 0xde7e, 16, 3);
    const Planning p(chain), q(chain);
    const std::unique_ptr<exact::Planner> one = p.planner(CKPT_CLASS_DEFAULT), two = q.planner(CKPT_CLASS_DEFAULT), other = q.planner(CKPT_CLASS_DEFAULT);
    const size_t least = one->minimum_load(), ample = everything(p.graph);
    for (uint32_t part : {3u, 0u, 9u, 1u}) {
      const size_t load = least + (ample - least) * part / 20;
      const exact::Answer a = solved(one.get(), p, load), b = solved(two.get(), q, load);
      ASSERT_TRUE(a.program.actions == b.program.actions) << text(chain);
      ASSERT_EQ(a.work, b.work);
      ASSERT_EQ(a.load, b.load);
      ASSERT_EQ(a.class_bound_seconds, b.class_bound_seconds);
      ASSERT_EQ(a.universal_bound_seconds, b.universal_bound_seconds);
    }
    // Whatever was asked before, the optimum is the same.
    for (uint32_t part : {0u, 1u, 3u, 9u}) {
      const size_t load = least + (ample - least) * part / 20;
      ASSERT_NEAR(solved(one.get(), p, load).overhead_seconds, solved(other.get(), q, load).overhead_seconds, p.slack()) << text(chain);
    }
  }
}

TEST(ExactLaws, MoreWorkIsNeverWorse) {
  uint32_t asked = 0, optimal = 0;
  for (uint64_t seed = 0; seed < 40 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0x3043, 20, 3));
    const std::unique_ptr<exact::Planner> full = p.planner(CKPT_CLASS_DEFAULT);
    const size_t least = full->minimum_load(), ample = everything(p.graph);
    for (uint32_t part = 0; part <= 2; ++part) {
      const size_t load = least + (ample - least) * part / 8;
      const double best = solved(full.get(), p, load).overhead_seconds;
      double before = HUGE_VAL;
      for (uint64_t limit = 1; limit <= 10'000'000; limit *= 10) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", at " + std::to_string(load) + " with " + std::to_string(limit) + " units of work\n" + text(p.chain));
        const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_DEFAULT);
        exact::Answer a;
        ASSERT_EQ(planner->solve(load, limit, &a), CKPT_OK);
        ASSERT_EQ(wrong_with(a, load, p), "");
        ASSERT_LE(a.class_bound_seconds, best + p.slack());
        ASSERT_LE(a.overhead_seconds, before + p.slack());
        ASSERT_GE(a.overhead_seconds, best - p.slack());
        if (a.status == CKPT_PLAN_OPTIMAL) {
          ASSERT_NEAR(a.overhead_seconds, best, p.slack());
        }
        before = a.overhead_seconds;
        ++asked;
        optimal += a.status == CKPT_PLAN_OPTIMAL;
      }
    }
  }
  std::printf("%u questions with a work limit, %u proved within it\n", asked, optimal);
}

TEST(ExactLaws, CurvesAreSolutions) {
  for (uint64_t seed = 0; seed < 60 / kSlow; ++seed) {
    const Planning p(some_chain(seed, 0xc04e, 10, 3));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text(p.chain));
    const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_DEFAULT), fresh = p.planner(CKPT_CLASS_DEFAULT);
    std::vector<exact::Answer> points;
    ASSERT_EQ(planner->curve(8, 0, &points), CKPT_OK);
    ASSERT_FALSE(points.empty());
    ASSERT_LE(points.size(), 8u);
    ASSERT_NEAR(points.back().overhead_seconds, 0, p.slack());
    ASSERT_NEAR(points.front().overhead_seconds, solved(fresh.get(), p, fresh->minimum_load()).overhead_seconds, p.slack());
    for (size_t k = 0; k < points.size(); ++k) {
      ASSERT_EQ(wrong_with(points[k], points[k].load, p), "");
      ASSERT_NEAR(points[k].overhead_seconds, solved(fresh.get(), p, points[k].load).overhead_seconds, p.slack());
      if (k == 0) continue;
      ASSERT_LT(points[k - 1].load, points[k].load);
      ASSERT_GT(points[k - 1].overhead_seconds, points[k].overhead_seconds);
    }
  }
}

}  // namespace
}  // namespace plan_test
