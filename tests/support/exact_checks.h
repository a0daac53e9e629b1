// What every answer of the exact planner must be: a program that the verifier confirms, byte for byte and in seconds, within
// the load that was asked for, with bounds in order.
#pragma once

#include <cmath>

#include "chain_random.h"
#include "plan/exact/exact.h"
#include "plan/simulate.h"
#include "plan/verify.h"

namespace plan_test {

inline constexpr uint32_t kPlanClasses[] = {CKPT_CLASS_ROTOR, CKPT_CLASS_SIGMA, CKPT_CLASS_SIGMA_S_W, CKPT_CLASS_SIGMA_S_W_D};

// A chain (or any graph) with what hangs on it; the planner borrows the graph.
struct Planning {
  ChainModel chain;
  double tick = 1;
  size_t unit = 1;
  Graph graph;
  std::vector<Root> roots;
  GradientMap gradients;

  explicit Planning(const ChainModel &c, double t = 1, size_t u = 1)
      : chain(c), tick(t), unit(u), graph(graph_of(c, t, u)), roots(default_roots(graph)), gradients(derive_gradients(graph, roots)) {}
  explicit Planning(RandomGraph r) : graph(std::move(r.graph)), roots(std::move(r.roots)), gradients(derive_gradients(graph, roots)) {}
  Planning(const Planning &) = delete;

  std::unique_ptr<exact::Planner> planner(uint32_t plan_class) const {
    std::unique_ptr<exact::Planner> p = exact::Planner::create(graph, gradients, plan_class);
    EXPECT_NE(p, nullptr) << "no chain for the planner: " << text(chain);
    return p;
  }
  // Everything once; a segment that no gradient reaches does not go backward, and slots of it may never be made.
  double once() const {
    double sum = graph.forward_seconds();
    for (uint32_t i = 0; i < graph.node_count(); ++i) sum += gradients.runs[i] ? graph.nodes[i].backward_seconds : 0;
    return sum;
  }
  bool plain() const { return chain.size() != 0; }  // each slot is made at least once, in one way: no overhead is negative
  double slack() const { return 1e-9 * (once() + tick); }
};

// "": fine.
inline std::string wrong_with(const exact::Answer &a, size_t load, const Planning &p) {
  const auto number = [](auto v) { return std::to_string(v); };
  Verified v;
  if (verify(p.graph, p.roots, a.program.actions, &v)) return std::string("the verifier says: ") + last_error();
  if (v.peak != a.load) return "the load is " + number(v.peak) + ", the answer says " + number(a.load);
  if (a.load > load) return "the load is " + number(a.load) + ", asked for " + number(load);
  const double overhead = v.seconds - p.once(), slack = p.slack();
  if (std::abs(overhead - a.overhead_seconds) > slack) return "the overhead is " + number(overhead) + ", the answer says " + number(a.overhead_seconds);
  Simulation s;
  if (simulate_step(p.graph, p.gradients, a.program, arena::Placer(), &s)) return std::string("the simulator says: ") + last_error();
  if (s.peak != v.peak) return "the verifier's peak is " + number(v.peak) + ", the simulator's " + number(s.peak);
  if (a.class_bound_seconds > a.overhead_seconds + slack) return "class bound " + number(a.class_bound_seconds) + " above the overhead " + number(a.overhead_seconds);
  if (a.universal_bound_seconds > a.class_bound_seconds + slack) return "universal bound " + number(a.universal_bound_seconds) + " above the class bound " + number(a.class_bound_seconds);
  if (p.plain() && (a.universal_bound_seconds < -slack || a.class_bound_seconds < -slack)) return "a negative bound";
  if (a.status != CKPT_PLAN_OPTIMAL && a.status != CKPT_PLAN_GAP) return "status " + number(a.status);
  return "";
}

inline std::string proved(const exact::Answer &a, const Planning &p) {
  if (a.status != CKPT_PLAN_OPTIMAL) return "not proved: overhead " + std::to_string(a.overhead_seconds) + ", class bound " + std::to_string(a.class_bound_seconds);
  if (a.class_bound_seconds < a.overhead_seconds - p.slack()) return "optimal, with a class bound of " + std::to_string(a.class_bound_seconds) + " below the overhead " + std::to_string(a.overhead_seconds);
  return "";
}

}  // namespace plan_test
