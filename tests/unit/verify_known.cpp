// Known answers: see plan_known.h.
#include <gtest/gtest.h>

#include "support/plan_brute.h"
#include "support/plan_known.h"
#include "support/plan_walk.h"

namespace plan_test {
namespace {

Bits bits(const std::vector<uint32_t> &numbers) {
  Bits b;
  for (uint32_t k : numbers) b.set(k);
  return b;
}

RandomGraph graph_of(const KnownChain &c) {
  RandomGraph r;
  r.graph.rule.alignment_bytes = c.alignment;
  r.graph.root_grads_in_arena = c.output_grad_in_arena;
  uint32_t value = r.graph.add_input(c.input_bytes, 0, c.input_of_caller, c.input_grad);
  for (uint32_t i = 0; i < c.segments.size(); ++i) {
    const KnownSegment &s = c.segments[i];
    std::vector<Item> slots, outputs(1);
    outputs[0].cost_seconds = s.forward_seconds;
    for (const KnownSlot &k : s.slots) {
      Item it;
      it.name = "s" + std::to_string(slots.size());
      it.bytes = k.bytes;
      it.cost_seconds = k.seconds;
      it.flags = k.flags;
      it.reads = bits(k.reads);
      outputs[0].cost_seconds -= k.seconds;
      slots.push_back(it);
    }
    outputs[0].name = "out";
    outputs[0].bytes = s.output_bytes;
    outputs[0].reads = bits(s.output_reads);
    outputs[0].flags = s.reads_output ? CKPT_OUTPUT_BACKWARD_READS : 0;
    outputs[0].caller_memory = c.output_of_caller && i + 1 == c.segments.size();
    std::vector<uint32_t> input_flags(1, 0);
    if (!s.reads_input) input_flags[0] = CKPT_INPUT_BACKWARD_IGNORES;
    Result<Shape> shape = Shape::create("segment", slots, outputs, input_flags, s.forward_scratch, s.backward_scratch, true, s.whole);
    EXPECT_TRUE(shape.ok()) << last_error();
    r.graph.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t inputs[] = {value};
    const uint32_t node = r.graph.add_node(r.graph.shapes.back().get(), inputs, nullptr, nullptr);
    r.graph.nodes[node].backward_seconds = s.backward_seconds;
    value = r.graph.value_of(node, static_cast<uint32_t>(slots.size()));
  }
  r.roots = default_roots(r.graph);
  return r;
}

std::vector<Action> actions_of(const Graph &graph, const char *at) {
  std::vector<Action> actions;
  while (*at != '\0') {
    Action a;
    const char kind = *at++;
    a.kind = kind == 'f' ? ActionKind::forward : kind == 'b' ? ActionKind::backward : kind == 'x' ? ActionKind::free : ActionKind::drop;
    char *end = nullptr;
    a.index = static_cast<uint32_t>(std::strtoul(at, &end, 10));
    at = end;
    if (*at == '[') {
      for (++at; *at != ']'; at = *end == ',' ? end + 1 : end) a.want.set(static_cast<uint32_t>(std::strtoul(at, &end, 10)));
      ++at;
    }
    if (kind == 'f' && *at++ == 'y') a.want |= graph.nodes[a.index].shape->outputs();
    actions.push_back(a);
    if (*at == ' ') ++at;
  }
  return actions;
}

double seconds_of_all(const KnownChain &c) {
  double sum = 0;
  for (const KnownSegment &s : c.segments) sum += s.forward_seconds + s.backward_seconds;
  return sum;
}

TEST(VerifyKnown, Programs) {
  ASSERT_GE(known_chains().size(), 20u);
  uint32_t number = 0;
  for (const KnownChain &c : known_chains()) {
    const RandomGraph r = graph_of(c);
    SCOPED_TRACE("chain " + std::to_string(number++) + "\n" + text(r));
    for (const KnownProgram &p : c.programs) {
      const std::vector<Action> actions = actions_of(r.graph, p.actions);
      Verified v;
      ASSERT_EQ(verify(r.graph, r.roots, actions, &v), CKPT_OK) << last_error() << "\n" << text(actions);
      EXPECT_EQ(v.peak, p.peak) << p.actions;
      EXPECT_EQ(v.seconds, p.seconds) << p.actions;
      EXPECT_EQ(v.seconds - seconds_of_all(c), p.overhead_seconds) << p.actions;
      Simulation s;
      ASSERT_EQ(simulate_step(r.graph, derive_gradients(r.graph, r.roots), {actions}, arena::Placer(), &s), CKPT_OK) << last_error();
      EXPECT_EQ(s.peak, p.peak) << p.actions;
      EXPECT_EQ(s.seconds(), p.seconds) << p.actions;
      EXPECT_EQ(disagreement(r, actions), "");
    }
  }
}

TEST(VerifyKnown, WrongPrograms) {
  for (const KnownChain &c : known_chains()) {
    const RandomGraph r = graph_of(c);
    const std::vector<Action> actions = actions_of(r.graph, c.wrong);
    ASSERT_EQ(verify(r.graph, r.roots, actions, nullptr), CKPT_ERROR_INVALID_PLAN) << text(r) << c.wrong;
    EXPECT_EQ(std::string(last_error()).rfind("action " + std::to_string(c.wrong_at) + ": ", 0), 0u) << last_error() << "\n" << text(r) << text(actions);
    EXPECT_EQ(disagreement(r, actions), "");
  }
}

TEST(VerifyKnown, LeastSeconds) {
  uint32_t answers = 0;
  for (const KnownChain &c : known_chains()) {
    if (c.least.empty()) continue;
    const RandomGraph r = graph_of(c);
    ASSERT_TRUE(Brute::can(r.graph));
    const Brute brute(r.graph, r.roots);
    for (const KnownLeast &l : c.least) {
      EXPECT_EQ(brute.least_seconds(l.budget).value_or(-1), l.seconds) << "budget " << l.budget << "\n" << text(r);
      EXPECT_EQ(brute.least_peak() <= l.budget, l.seconds >= 0) << "budget " << l.budget << "\n" << text(r);
      ++answers;
    }
  }
  EXPECT_GE(answers, 20u);
}

}  // namespace
}  // namespace plan_test
