// Fails the k-th request for memory for k = 0, 1, 2, ... until chains, plans of every strategy, summaries, actions and the
// verifier pass. Each failure is OUT_OF_MEMORY with a text, gives no handle and leaves nothing behind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <vector>

#include "ckpt/plan.h"

namespace {

constexpr int64_t kNever = INT64_MAX;
int64_t g_left = kNever;  // requests until the one that fails
int64_t g_live = 0;       // blocks
bool g_optional = false;  // the refused one was asked for with nothrow: a sort that would like a buffer goes on without

void *take(size_t bytes) {
  if (g_left != kNever && g_left-- == 0) return nullptr;
  void *p = std::malloc(bytes != 0 ? bytes : 1);
  if (p != nullptr) ++g_live;
  return p;
}
void give(void *p) {
  if (p != nullptr) --g_live;
  std::free(p);
}

}  // namespace

// All forms of new end in these two, and sanitizers see malloc and free below.
void *operator new(size_t bytes) {
  void *p = take(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  const bool refused = g_left == 0;
  void *p = take(bytes);
  if (refused) g_optional = true;
  return p;
}
void operator delete(void *p) noexcept { give(p); }
void operator delete(void *p, size_t) noexcept { give(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { give(p); }

namespace {

struct Description {
  ckpt_chain_desc desc{};
  ckpt_chain_segment segments[4] = {};
  ckpt_slot slots[2] = {};
  ckpt_output output{};

  Description() {
    slots[0] = {"an activation of a long name", 100, nullptr, 0, 0, 1, 0, 0};
    slots[1] = {"b", 300, nullptr, 0, 0, 2, CKPT_SLOT_TRANSIENT, 0};
    output.name = "out";
    output.bytes = 50;
    for (ckpt_chain_segment &s : segments) {
      s.name = "a segment of a name that is long";
      s.forward_seconds = 7;
      s.slots = slots;
      s.slot_count = 2;
      s.outputs = &output;
      s.output_count = 1;
    }
    desc.struct_size = sizeof desc;
    desc.segment_size = sizeof(ckpt_chain_segment);
    desc.slot_size = sizeof(ckpt_slot);
    desc.output_size = sizeof(ckpt_output);
    desc.segments = segments;
    desc.segment_count = 4;
  }
};

// `call` with its k-th request refused, for every k until it passes; `far`: beyond the first 100 further and further apart.
// `done` undoes a call that passed all the same.
void fail_each(bool far, const std::function<ckpt_status()> &call, const std::function<void()> &done = [] {}) {
  int64_t k = 0, failures = 0;
  for (;; k += far && k >= 100 ? 1 + (k - 100) / 4 : 1) {
    const int64_t live = g_live;
    g_left = k;
    g_optional = false;
    const ckpt_status status = call();
    const bool reached = g_left < 0;
    g_left = kNever;
    if (status == CKPT_OK && !reached) break;
    if (status == CKPT_OK && g_optional) {
      done();
      continue;
    }
    ASSERT_EQ(status, CKPT_ERROR_OUT_OF_MEMORY) << "request " << k << ": " << ckpt_last_error();
    ASSERT_STRNE(ckpt_last_error(), "");
    ASSERT_EQ(g_live, live) << "request " << k << " refused leaves blocks behind";
    ++failures;
  }
  EXPECT_GT(failures, 0);
}

ckpt_chain *make_chain() {
  const Description d;
  ckpt_chain *chain = nullptr;
  EXPECT_EQ(ckpt_chain_create(&d.desc, &chain), CKPT_OK) << ckpt_last_error();
  return chain;
}

TEST(PlanFaults, Chain) {
  const Description d;
  ckpt_chain *chain = nullptr;
  fail_each(false, [&] {
    const ckpt_status status = ckpt_chain_create(&d.desc, &chain);
    if (status) { EXPECT_EQ(chain, nullptr); }
    return status;
  });
  ckpt_chain_destroy(chain);
}

TEST(PlanFaults, EveryStrategy) {
  ckpt_chain *chain = make_chain();
  const char *patterns[] = {"an activation of a long name"};
  for (uint32_t s = CKPT_STRATEGY_AUTO; s <= CKPT_STRATEGY_SELECTIVE; ++s) {
    SCOPED_TRACE(ckpt_strategy_name(s));
    ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
    d.strategy = s;
    d.k = s == CKPT_STRATEGY_UNIFORM || s == CKPT_STRATEGY_BLOCK ? 2 : 0;
    d.in_flight_count = 2;
    if (s == CKPT_STRATEGY_SELECTIVE) {
      d.recompute_patterns = patterns;
      d.recompute_pattern_count = 1;
    }
    const bool far = s == CKPT_STRATEGY_AUTO;
    size_t minimum = 0;
    fail_each(far, [&] { return ckpt_plan_minimum_budget(chain, &d, &minimum); });
    d.budget_bytes = minimum;
    ckpt_plan *plan = nullptr;
    const auto create = [&] {
      const ckpt_status status = ckpt_plan_create(chain, &d, &plan);
      if (status) { EXPECT_EQ(plan, nullptr); }
      return status;
    };
    fail_each(far, create, [&] { ckpt_plan_destroy(plan); });
    ASSERT_NE(plan, nullptr);
    ckpt_plan_summary summary{};
    summary.struct_size = sizeof summary;
    g_left = 0;  // these two ask for nothing
    EXPECT_EQ(ckpt_plan_get_summary(plan, &summary), CKPT_OK);
    g_left = kNever;
    std::vector<ckpt_action> actions(summary.action_count);
    g_left = 0;
    EXPECT_EQ(ckpt_plan_get_actions(plan, 0, summary.action_count, sizeof(ckpt_action), actions.data()), CKPT_OK);
    g_left = kNever;
    size_t peak = 0;
    double seconds = 0, again = 0;
    fail_each(false, [&] { return ckpt_program_verify(chain, actions.data(), summary.action_count, sizeof(ckpt_action), &peak, &seconds, &again); });
    EXPECT_EQ(peak, summary.peak_bytes);
    ckpt_plan_destroy(plan);
  }
  ckpt_chain_destroy(chain);
}

}  // namespace
