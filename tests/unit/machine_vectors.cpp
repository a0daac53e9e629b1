// Machine, verifier and planner against known answers.
#include "machine_vectors.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "plan/make_plan.h"
#include "plan/verify.h"

namespace {

using namespace ckpt;
using namespace ckpt::plan;

struct Segment {
  std::vector<Item> slots;
  Item output;
  size_t forward_scratch = 0, backward_scratch = 0;
  uint32_t input_flags = 0;
  double forward_seconds = 0, backward_seconds = 0;
  bool whole = false;
};

// One chain with a program and what it gives, or with least seconds.
struct Case {
  Graph graph;
  std::vector<Root> roots;
  std::vector<Action> actions;
  size_t peak = 0;
  double seconds = 0, overhead_seconds = 0;
  std::vector<std::pair<size_t, double>> least;  // budgets falling
};

Bits bits(uint64_t members) {
  Bits b;
  b.set_word(0, members);
  return b;
}

class Reader {
 public:
  std::vector<Case> read(const char *text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream in(line);
      std::string word;
      in >> word;
      if (word == "chain") chain(in);
      else if (word == "segment") segment(in);
      else if (word == "slot") slot(in);
      else if (word == "program") program(in);
      else if (word == "gives") gives(in);
      else if (word == "least") least(in);
      else EXPECT_TRUE(word.empty()) << line;
    }
    return std::move(cases_);
  }

 private:
  void chain(std::istream &in) {
    case_ = Case{};
    segments_.clear();
    size_t bytes;
    std::string memory, grad, output_grad;
    in >> case_.graph.rule.alignment_bytes >> bytes >> memory >> grad >> output_memory_ >> output_grad;
    const uint8_t where = grad == "none" ? CKPT_GRAD_NONE : grad == "arena" ? CKPT_GRAD_ARENA : CKPT_GRAD_CALLER;
    case_.graph.add_input(bytes, 0, memory == "caller", where);
    case_.graph.root_grads_in_arena = output_grad == "arena";
  }
  void segment(std::istream &in) {
    Segment s;
    std::string kind, reads;
    uint64_t output_reads;
    s.output.name = "out";
    in >> kind >> s.forward_seconds >> s.backward_seconds >> s.output.bytes >> output_reads >> s.forward_scratch >> s.backward_scratch >> reads;
    s.whole = kind == "whole";
    s.output.reads = bits(output_reads);
    s.output.cost_seconds = s.forward_seconds;
    if (reads.find('o') != std::string::npos) s.output.flags = CKPT_OUTPUT_BACKWARD_READS;
    if (reads.find('i') == std::string::npos) s.input_flags = CKPT_INPUT_BACKWARD_IGNORES;
    segments_.push_back(s);
  }
  void slot(std::istream &in) {
    static const std::map<std::string, uint32_t> flags = {{"none", 0}, {"transient", CKPT_SLOT_TRANSIENT}, {"keep", CKPT_SLOT_KEEP}, {"recompute", CKPT_SLOT_RECOMPUTE}};
    Segment &s = segments_.back();
    Item it;
    uint64_t reads;
    std::string flag;
    in >> it.bytes >> it.cost_seconds >> reads >> flag;
    it.name = "s" + std::to_string(s.slots.size());
    it.reads = bits(reads);
    it.flags = flags.at(flag);
    s.output.cost_seconds -= it.cost_seconds;
    s.slots.push_back(it);
  }
  void build() {
    Graph &g = case_.graph;
    segments_.back().output.caller_memory = output_memory_ == "caller";
    for (const Segment &s : segments_) {
      const uint32_t n = g.node_count(), input[] = {n};
      auto shape = Shape::create("segment" + std::to_string(n), s.slots, {s.output}, {s.input_flags}, s.forward_scratch, s.backward_scratch, true, s.whole);
      ASSERT_TRUE(shape.ok()) << last_error();
      g.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
      g.add_node(g.shapes.back().get(), input, nullptr, nullptr);
      g.nodes[n].backward_seconds = s.backward_seconds;
    }
    case_.roots = default_roots(g);
  }
  void program(std::istream &in) {
    build();
    for (std::string word; in >> word;) {
      char *rest = nullptr;
      Action a;
      a.index = static_cast<uint32_t>(std::strtoul(word.c_str() + 1, &rest, 10));
      if (*rest == ':') a.want = bits(std::strtoull(rest + 1, &rest, 10));
      a.kind = word[0] == 'f' ? ActionKind::forward : word[0] == 'b' ? ActionKind::backward : word[0] == 'x' ? ActionKind::free : ActionKind::drop;
      if (*rest == '+') a.want.set(case_.graph.nodes[a.index].shape->slot_count());
      case_.actions.push_back(a);
    }
  }
  void gives(std::istream &in) {
    in >> case_.peak >> case_.seconds >> case_.overhead_seconds;
    cases_.push_back(std::move(case_));
  }
  void least(std::istream &in) {
    build();
    size_t budget;
    double seconds;
    for (char colon; in >> budget >> colon >> seconds;) case_.least.push_back({budget, seconds});
    cases_.push_back(std::move(case_));
  }

  Case case_;
  std::vector<Case> cases_;
  std::vector<Segment> segments_;
  std::string output_memory_;
};

const std::vector<Case> &cases() {
  static const std::vector<Case> all = Reader().read(kMachineVectors);
  return all;
}

TEST(MachineVectors, AreThere) {
  size_t programs = 0, least = 0;
  for (const Case &c : cases()) ++(c.actions.empty() ? least : programs);
  EXPECT_EQ(programs, 24u);
  EXPECT_EQ(least, 16u);
}

TEST(MachineVectors, Programs) {
  size_t number = 0;
  for (const Case &c : cases()) {
    SCOPED_TRACE("case " + std::to_string(number++));
    if (c.actions.empty()) continue;
    Simulation s;
    ASSERT_EQ(simulate_step(c.graph, derive_gradients(c.graph, c.roots), {c.actions}, arena::Placer(), &s), CKPT_OK) << last_error();
    EXPECT_EQ(s.peak, c.peak);
    EXPECT_EQ(s.seconds(), c.seconds);
    EXPECT_EQ(s.seconds() - c.graph.forward_seconds() - c.graph.backward_seconds(), c.overhead_seconds);
    // Beyond the overhead: what a first run left out and a later run made for the first time.
    EXPECT_EQ(s.recompute_seconds - c.overhead_seconds, c.graph.forward_seconds() - s.forward_seconds);
    Verified v;
    ASSERT_EQ(verify(c.graph, c.roots, c.actions, &v), CKPT_OK) << last_error();
    EXPECT_EQ(v.peak, c.peak);
    EXPECT_EQ(v.seconds, c.seconds);
    EXPECT_EQ(v.recompute_seconds, s.recompute_seconds);
    EXPECT_EQ(v.held, s.held);
  }
}

// Without one of its actions no program is still a step of the same peak and time, unless that action did nothing.
TEST(MachineVectors, ProgramsWithoutOneAction) {
  size_t refused = 0, other = 0, same = 0;
  for (const Case &c : cases())
    for (size_t k = 0; k < c.actions.size(); ++k) {
      std::vector<Action> fewer = c.actions;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      const ActionKind kind = c.actions[k].kind;
      Verified v;
      const Status status = verify(c.graph, c.roots, fewer, &v);
      if (kind == ActionKind::backward) {
        EXPECT_EQ(status, CKPT_ERROR_INVALID_PLAN) << "without action " << k;
      }
      ++(status ? refused : v.peak == c.peak && v.seconds == c.seconds ? same : other);
    }
  EXPECT_GT(refused, 2 * (same + other));
}

// What the planner finds is never below the least of all programs, and its least budget never below the least peak.
TEST(MachineVectors, NoPlanIsBelowTheLeast) {
  double gap = 0, forward = 0;
  size_t number = 0, questions = 0;
  for (const Case &c : cases()) {
    SCOPED_TRACE("case " + std::to_string(number++));
    if (c.least.empty()) continue;
    const GradientMap gradients = derive_gradients(c.graph, c.roots);
    size_t minimum = 0;
    ASSERT_EQ(find_minimum_budget(c.graph, gradients, PlanRequest{}, arena::Placer(), &minimum), CKPT_OK) << last_error();
    EXPECT_GE(minimum, c.least.back().first);
    for (const auto &[budget, seconds] : c.least) {
      PlanRequest request;
      request.budget = budget;
      Planned p;
      const Status status = make_plan(c.graph, gradients, request, arena::Placer(), &p);
      ASSERT_EQ(status, budget < minimum ? CKPT_ERROR_BUDGET : CKPT_OK) << last_error();
      if (status) continue;
      EXPECT_LE(p.prediction.height, budget);
      EXPECT_GE(p.prediction.seconds(), seconds);
      Verified v;
      ASSERT_EQ(verify(c.graph, c.roots, p.program.actions, &v), CKPT_OK) << last_error();
      EXPECT_EQ(v.peak, p.prediction.peak);
      EXPECT_EQ(v.seconds, p.prediction.seconds());
      gap += (p.prediction.seconds() - seconds) / c.graph.forward_seconds();
      forward += 1;
      ++questions;
    }
    // Where nothing need be made again, nothing is.
    EXPECT_GE(c.least.front().second, c.graph.forward_seconds() + c.graph.backward_seconds() - 1e-9);
  }
  EXPECT_GT(questions, 20u);
  std::printf("%zu budgets at which the least seconds change: mean gap %.4f forward passes\n", questions, gap / forward);
}

}  // namespace
