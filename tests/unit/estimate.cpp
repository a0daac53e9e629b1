// The estimator against closed forms over random shapes, and against the plans of its own chains.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "estimate/stage.h"

namespace {

using namespace ckpt::estimate;
namespace plan = ckpt::plan;

struct Shape {
  ckpt_model_desc model = CKPT_MODEL_DESC_INIT;
  ckpt_layout_desc layout = CKPT_LAYOUT_DESC_INIT;
};

uint64_t among(std::initializer_list<uint64_t> values) { return *rc::gen::elementOf(std::vector<uint64_t>(values)); }

// Everything divides.
Shape draw() {
  Shape s;
  const uint64_t t = among({1, 2, 4}), c = among({1, 2});
  s.layout.tensor_parallel = t;
  s.layout.context_parallel = c;
  s.layout.flags = static_cast<uint32_t>(among({0, CKPT_LAYOUT_SEQUENCE_PARALLEL}));
  s.layout.pipeline = among({1, 2, 3});
  s.layout.virtual_pipeline = s.layout.pipeline > 1 ? among({1, 2}) : 1;
  s.model.activation = static_cast<uint32_t>(among({0, 1}));
  s.model.attention = static_cast<uint32_t>(among({0, 1}));
  s.model.flags = static_cast<uint32_t>(among({0, CKPT_MODEL_DROPOUT}));
  s.model.element_bytes = static_cast<uint32_t>(among({0, 1, 2, 4}));
  s.model.layers = s.layout.pipeline * s.layout.virtual_pipeline * among({1, 2, 3});
  s.model.heads = 4 * among({1, 2, 4});
  s.model.kv_heads = s.model.heads / among({1, 2, 4});
  s.model.head_size = among({0, 8, 24});
  s.model.hidden = s.model.heads * among({4, 16, 20});
  s.model.ffn = 4 * among({0, 16, 33});
  s.model.sequence = 8 * among({1, 5, 16});
  s.model.micro_batch = among({1, 3});
  s.model.vocabulary = 4 * among({0, 25, 64});
  return s;
}

Request checked(const Shape &s) {
  Request r;
  EXPECT_EQ(check_request("test", s.model, s.layout, nullptr, &r), CKPT_OK) << ckpt::last_error();
  return r;
}

// One layer on one rank, from the published formulas with their 2 replaced by the element's bytes.
double layer_bytes(const Shape &d, uint32_t policy) {
  const ckpt_model_desc &m = d.model;
  const double e = m.element_bytes != 0 ? m.element_bytes : 2, t = static_cast<double>(d.layout.tensor_parallel), h = static_cast<double>(m.hidden);
  const double s = static_cast<double>(m.sequence), c = static_cast<double>(d.layout.context_parallel), b = static_cast<double>(m.micro_batch), a = static_cast<double>(m.heads);
  const double size = m.head_size != 0 ? static_cast<double>(m.head_size) : h / a, kv = std::max(static_cast<double>(m.kv_heads), t);  // at least one on each rank
  const double f = m.ffn != 0 ? static_cast<double>(m.ffn) : 4 * h, masks = m.flags != 0 ? 1 : 0;
  const double sharded = d.layout.flags != 0 ? t : 1, tokens = s / c * b;
  if (policy == CKPT_RECOMPUTE_FULL) return e * tokens * h / sharded;
  double sum = tokens * h * (4 * e + 2 * masks) / sharded;           // two norms, what they feed, two masks
  sum += e * tokens * (2 * a * size + 2 * kv * size) / t;            // Q, K, V, the projection's input
  if (policy != CKPT_RECOMPUTE_FEED_FORWARD) sum += e * tokens * f * (m.activation == CKPT_MODEL_SWIGLU ? 3 : 2) / t;
  if (policy == CKPT_RECOMPUTE_ATTENTION) return sum;
  if (m.attention == CKPT_MODEL_FLASH_ATTENTION) return sum + 4 * a * tokens / t;
  return sum + a * tokens * s * (e + masks * (e + 1)) / t;
}

RC_GTEST_PROP(estimate, layers_follow_the_formulas, ()) {
  const Shape d = draw();
  const Request r = checked(d);
  for (uint32_t policy = 0; policy < CKPT_RECOMPUTE_OPTIMAL; ++policy) {
    const uint64_t rank = *rc::gen::inRange<uint64_t>(0, d.layout.pipeline);
    ckpt_estimate e{};
    RC_ASSERT(estimate_rank("test", r, policy, rank, 0, &e) == CKPT_OK);
    RC_ASSERT(static_cast<double>(e.layer_bytes) == layer_bytes(d, policy));
    RC_ASSERT(e.activation_bytes == e.layer_bytes * e.layers_in_flight + e.outside_bytes);
    RC_ASSERT(e.peak_bytes >= e.activation_bytes);
    RC_ASSERT(e.arena_bytes >= e.peak_bytes);
    RC_ASSERT(e.recompute_flops <= e.replay_flops * (1 + 1e-9));
  }
}

// Chunks of all ranks, planned with nothing made again: together they are the model, and each holds what is counted.
RC_GTEST_PROP(estimate, chains_add_up, ()) {
  const Shape d = draw();
  const Request r = checked(d);
  Pieces pieces;
  RC_ASSERT(count_pieces("test", r, &pieces) == CKPT_OK);
  uint64_t layers = 0, held = 0;
  double flops = 0;
  for (uint64_t rank = 0; rank < d.layout.pipeline; ++rank)
    for (uint64_t chunk = 0; chunk < d.layout.virtual_pipeline; ++chunk) {
      const Span span = span_of(r, rank, chunk);
      layers += span.layers;
      const ckpt::Result<plan::Graph> graph = make_graph("test", r, pieces, span, Cost::flops, 1);
      RC_ASSERT(graph.ok());
      flops += (*graph).forward_seconds() * kFlopUnit;
      plan::PlanRequest request;
      request.strategy = CKPT_STRATEGY_STORE_ALL;
      plan::Planned planned;
      RC_ASSERT(plan::make_plan(*graph, plan::derive_gradients(*graph, plan::default_roots(*graph)), request, ckpt::arena::Placer(), &planned) == CKPT_OK);
      held += planned.prediction.held;
    }
  RC_ASSERT(layers == d.model.layers);
  const uint64_t outside = pieces.embedding_bytes() + (d.model.vocabulary != 0 ? pieces.head_bytes() : 0);
  RC_ASSERT(static_cast<double>(held) == static_cast<double>(d.model.layers) * layer_bytes(d, CKPT_RECOMPUTE_NONE) + static_cast<double>(outside));
  if (d.layout.tensor_parallel <= r.model.kv_heads) {  // replicated K and V are made on each rank
    const double all = flops * static_cast<double>(d.layout.tensor_parallel * d.layout.context_parallel), want = model_forward_flops(r.model);
    RC_ASSERT(std::abs(all - want) <= 1e-9 * want);
  }
}

// The plan for a budget: never above it, never slower than a fixed policy that takes as much.
RC_GTEST_PROP(estimate, the_plan_is_no_worse_than_a_policy, ()) {
  const Shape d = draw();
  const Request r = checked(d);
  const uint64_t rank = d.layout.pipeline - 1;
  const auto policy = static_cast<uint32_t>(among({CKPT_RECOMPUTE_NONE, CKPT_RECOMPUTE_ATTENTION, CKPT_RECOMPUTE_FEED_FORWARD, CKPT_RECOMPUTE_FULL}));
  Request timed = r;
  timed.hardware.given = true;
  ckpt_estimate fixed{}, best{};
  RC_ASSERT(estimate_rank("test", timed, policy, rank, 0, &fixed) == CKPT_OK);
  if (fixed.in_flight != 1) return;  // several are placed as they go: heights are not the planner's
  if (estimate_rank("test", timed, CKPT_RECOMPUTE_OPTIMAL, rank, fixed.arena_bytes, &best)) RC_FAIL(ckpt::last_error());
  RC_ASSERT(best.arena_bytes <= fixed.arena_bytes);
  RC_ASSERT(best.minimum_budget_bytes <= fixed.arena_bytes);
  RC_ASSERT(best.recompute_seconds <= fixed.recompute_seconds * (1 + 1e-9) + 1e-15);
}

TEST(estimate, deep_pipelines_are_counted) {
  Shape d;
  d.model.layers = 1024;
  d.model.hidden = d.model.heads = d.model.sequence = d.model.micro_batch = 1;
  d.layout.pipeline = 64;
  d.layout.virtual_pipeline = 8;
  ckpt_estimate e{};
  ASSERT_EQ(estimate_rank("test", checked(d), CKPT_RECOMPUTE_NONE, 0, 0, &e), CKPT_OK);
  EXPECT_EQ(e.in_flight, 2u * 63 + 7 * 64 + 1);
  d.model.layers = 8192;
  d.layout.pipeline = 512;
  d.layout.virtual_pipeline = 16;
  EXPECT_EQ(estimate_rank("test", checked(d), CKPT_RECOMPUTE_NONE, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ckpt::last_error()).find("8703 chunks in flight, expected at most 4096"), std::string::npos) << ckpt::last_error();
  d.model.layers = 1024;
  d.layout.pipeline = d.layout.virtual_pipeline = 1;
  ASSERT_EQ(estimate_rank("test", checked(d), CKPT_RECOMPUTE_FULL, 0, 0, &e), CKPT_OK);
  EXPECT_EQ(e.layers_in_flight, 1024u);
}

}  // namespace
