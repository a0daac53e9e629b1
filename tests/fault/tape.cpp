// Fails the k-th request that the library makes, of host memory or of the device, for k = 0, 1, 2, ... until a whole step
// passes: a step recorded dry, an unknown one that runs short, a planned one, a retained one, a detached one, one with all
// checks. Each failure must be a status with a text, leave the arena empty and every call released, and the next step right.
#include <gtest/gtest.h>

#include <algorithm>

#include "abi/handle.h"
#include "device/cpu/cpu.h"
#include "../support/ops_net.h"
#include "../support/refused_new.h"
#include "../support/slow.h"

namespace {

using namespace ops;
using ckpt::device::Device;
using ckpt::device::Table;
namespace cpu = ckpt::device::cpu;

const Table &faulty() {
  static Table table = cpu::table();
  table.fill = [](void *self, void *stream, void *data, uint8_t value, size_t bytes) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().fill(self, stream, data, value, bytes);
  };
  table.copy = [](void *self, void *stream, void *to, const void *from, size_t bytes, ckpt::device::Copy kind) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().copy(self, stream, to, from, bytes, kind);
  };
  table.commit = [](void *self, void *data, size_t bytes) {
    return refuse() ? ckpt::fail(CKPT_ERROR_OUT_OF_MEMORY, "injected") : cpu::table().commit(self, data, bytes);
  };
  table.hash = [](void *self, void *stream, const void *data, size_t bytes, uint64_t *out) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().hash(self, stream, data, bytes, out);
  };
  table.synchronize = [](void *self, void *stream) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().synchronize(self, stream);
  };
  return table;
}

// A call of the library.
template <class F>
ckpt_status in(F &&call) {
  ckpt_status status = CKPT_ERROR_INTERNAL;
  g_inside = true;
  try {
    status = call();
    g_inside = false;
  } catch (...) {
    g_inside = false;
    ADD_FAILURE() << "an exception crossed the ABI";
  }
  return status;
}
// A callback: the test's own code.
template <class F>
ckpt_status out(F &&callback) {
  const bool inside = std::exchange(g_inside, false);
  const ckpt_status status = callback();
  g_inside = inside;
  return status;
}

struct Way {
  const char *name;
  uint32_t warm = 0;        // good steps before
  bool dry = false;         // the step that meets the fault is a dry one
  bool retain = false, detach = false, read = false, no_backward = false;
  uint32_t checks = 0;
  size_t budget = 0;
  uint32_t strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  uint32_t arena_flags = 0;
  bool few = false;         // segments: where the step that meets the fault searches for a plan, which it does a hundred times
};

Net a_few() {
  Net net;
  uint32_t x = net.input(48, true);
  const uint32_t skip = x = net.then<Mlp>(x, "mlp", size_t{48}, 1u);
  x = net.then<Norm>(x, "norm", size_t{2}, size_t{24}, 2u);
  x = net.add(net.make<Add>("skip", size_t{48}), {x, skip});
  net.root(net.then<Loss>(x, "loss", size_t{48}, false));
  return net;
}

Net a_net() {
  Net net;
  uint32_t x = net.input(48, true);
  const uint32_t skip = x = net.then<Mlp>(x, "mlp", size_t{48}, 1u);
  x = net.then<Norm>(x, "norm", size_t{2}, size_t{24}, 2u);
  x = net.then<Relu>(net.then<Scale>(x, "scale", size_t{48}, 3u), "relu", size_t{48}, true);
  x = net.add(net.make<Add>("skip", size_t{48}), {x, skip});
  x = net.then<BatchNorm>(x, "batch norm", size_t{2}, size_t{24}, true, 4u);
  x = net.then<Scratchy>(x, "scratchy", size_t{48}, size_t{2});
  const uint32_t loss = net.then<Loss>(net.add(net.make<Mul>("x x", size_t{48}), {x, x}), "loss", size_t{48}, false);
  net.root(loss);
  net.root(x, std::vector<float>(48, 0.5f));
  return net;
}

// One step, with g_inside set in calls of the library alone.
ckpt_status a_step(Session &s, Net &net, const Way &way) {
  net.zero_grads();
  s.buffers.assign(net.value_count(), 0);
  s.log.backward_order.reserve(1000);
  const uint32_t flags = way.dry ? uint32_t{CKPT_TAPE_DRY} : way.no_backward ? uint32_t{CKPT_TAPE_NO_BACKWARD} : 0u;
  if (const ckpt_status bad = in([&] { return ckpt_tape_begin(s.tape, 1, flags); }); bad) return bad;
  uint32_t next = 0;
  for (NetInput &i : net.inputs) {
    ckpt_input_desc d = CKPT_INPUT_DESC_INIT;
    d.data = i.data.data();
    d.bytes = floats(i.data.size());
    d.grad = i.wants_grad ? i.grad.data() : nullptr;
    if (const ckpt_status bad = in([&] { return ckpt_tape_input(s.tape, &d, &s.buffers[next]); }); bad) return bad;
    ++next;
  }
  for (const NetNode &n : net.nodes) {
    std::vector<ckpt_buffer> inputs;
    for (uint32_t v : n.inputs) inputs.push_back(s.buffers[v]);
    ckpt_call c = s.call(n.layer, inputs);
    ckpt_segment *segment = s.segment(n.layer);
    if (const ckpt_status bad = in([&] { return ckpt_segment_run(s.tape, segment, &c, &s.buffers[next]); }); bad) return bad;
    next += static_cast<uint32_t>(n.layer->spec.outputs.size());
  }
  const void *data = nullptr;
  if (way.read) {
    if (const ckpt_status bad = in([&] { return ckpt_tape_read(s.tape, s.buffers[2], &data); }); bad) return bad;
  }
  if (way.no_backward) return in([&] { return ckpt_tape_reset(s.tape); });
  std::vector<ckpt_buffer> roots;
  std::vector<const void *> grads;
  for (const NetRoot &r : net.roots) {
    roots.push_back(s.buffers[r.value]);
    grads.push_back(r.grad.empty() ? nullptr : r.grad.data());
  }
  const auto count = static_cast<uint32_t>(roots.size());
  if (way.detach) {
    ckpt_recording *recording = nullptr;
    if (const ckpt_status bad = in([&] { return ckpt_tape_detach(s.tape, &recording); }); bad) return bad;
    const ckpt_status status = in([&] { return ckpt_recording_backward(recording, roots.data(), grads.data(), count, 0); });
    char text[1024];
    std::snprintf(text, sizeof text, "%s", ckpt_last_error());
    ckpt_recording_destroy(recording);
    return status ? ckpt::fail_text(status, text) : CKPT_OK;
  }
  if (way.retain) {
    if (const ckpt_status bad = in([&] { return ckpt_backward(s.tape, roots.data(), grads.data(), count, CKPT_BACKWARD_RETAIN); }); bad) return bad;
    net.zero_grads();
  }
  return in([&] { return ckpt_backward(s.tape, roots.data(), grads.data(), count, 0); });
}

// Every request up to the 200th, then fewer and fewer: planning asks for memory thousands of times.
void fail_each(const Way &way) {
  Net net = way.few ? a_few() : a_net();
  const HostState start(net);
  int64_t k = 0, failures = 0;
  const int64_t stride = way.few ? plan_test::kSlow : 1;
  for (;; k += (1 + std::max<int64_t>(0, k - 200) / 16) * stride) {
    ASSERT_LT(k, 10'000'000);
    SCOPED_TRACE(std::string(way.name) + ", request " + std::to_string(k));
    start.restore(net);
    auto opened = Device::create(faulty(), CKPT_DEVICE_KIND_CPU, 0);
    ASSERT_TRUE(opened.ok());
    Options o;
    o.alignment = 64;
    o.arena_flags = way.arena_flags;
    o.checks = way.checks;
    o.budget = way.budget;
    o.strategy = way.strategy;
    o.capacity = size_t{1} << 20;
    Session s(o, nullptr, ckpt::abi::handle(opened->leave()));
    s.forward_fn = [](void *user, ckpt_frame *f) { return out([&] { return abi_forward(user, f); }); };
    s.backward_fn = [](void *user, ckpt_frame *f) { return out([&] { return abi_backward(user, f); }); };
    s.save_fn = [](void *user, void *state) { return out([&] { return abi_save(user, state); }); };
    s.restore_fn = [](void *user, void *state) { return out([&] { return abi_restore(user, state); }); };
    for (uint32_t w = 0; w < way.warm; ++w) ASSERT_EQ(s.step(net, 1).status, CKPT_OK) << ckpt_last_error();
    const HostState before(net);
    const uint64_t step = s.stats().step;
    const Result expected = plain(net, o.seed, step);
    before.restore(net);
    for (const NetNode &n : net.nodes) s.segment(n.layer);

    g_left = k;
    const ckpt_status status = a_step(s, net, way);
    const bool reached = g_left < 0;
    g_left = kNever;

    if (status) {
      ++failures;
      ASSERT_TRUE(reached) << "no fault, but: " << ckpt_last_error();
      ASSERT_TRUE(status == CKPT_ERROR_OUT_OF_MEMORY || status == CKPT_ERROR_DEVICE) << status << ": " << ckpt_last_error();
      ASSERT_EQ(ckpt_last_status(), status);
      ASSERT_NE(std::string(ckpt_last_error()), "");
      ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
    } else if (!way.dry && !way.no_backward) {
      ASSERT_EQ(difference(collect(net), expected), "");  // a fault may only cost what the tape would have learnt
    }
    ASSERT_EQ(s.log.violation, "");
    ASSERT_EQ(s.arena_stats().in_use_bytes, 0u);
    for (const Use &u : s.uses()) ASSERT_EQ(u.released, 1);
    s.uses().clear();
    // The next steps are right.
    before.restore(net);
    for (uint32_t again = 0; again < 2; ++again) {
      const HostState now(net);
      const Result next = plain(net, o.seed, s.stats().step);
      now.restore(net);
      const Step got = s.step(net, 1);
      ASSERT_EQ(got.status, CKPT_OK) << got.text;
      ASSERT_EQ(difference(got.result, next), "");
    }
    if (!reached) break;
  }
  EXPECT_GT(k, 0) << "nothing could fail";
  ::testing::Test::RecordProperty("requests", static_cast<int>(k));
  ::testing::Test::RecordProperty("failures", static_cast<int>(failures));
}

// The least that works, and a unit or two more: an unknown step has to drop and remake things.
size_t tight(Net net = a_net()) {
  Options o;
  o.alignment = 64;
  o.arena_flags = 0;
  o.budget = 64;
  o.capacity = size_t{1} << 20;
  Session s(o);
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  EXPECT_EQ(dry.status, CKPT_ERROR_BUDGET);
  return dry.stats.minimum_budget_bytes + 512;
}

TEST(TapeFault, DryStep) { fail_each({.name = "dry", .dry = true}); }
TEST(TapeFault, DryStepWithinABudget) { fail_each({.name = "dry within a budget", .dry = true, .budget = tight(a_few()), .strategy = CKPT_STRATEGY_AUTO, .few = true}); }
TEST(TapeFault, UnknownStep) { fail_each({.name = "unknown"}); }
TEST(TapeFault, UnknownStepThatRunsShort) { fail_each({.name = "unknown, short", .budget = tight(a_few()), .strategy = CKPT_STRATEGY_AUTO, .few = true}); }
TEST(TapeFault, PlanIsMade) { fail_each({.name = "plan is made", .warm = 1, .budget = tight(a_few()), .strategy = CKPT_STRATEGY_AUTO, .few = true}); }
TEST(TapeFault, SettledPlan) { fail_each({.name = "settled", .warm = 4, .budget = tight(), .strategy = CKPT_STRATEGY_AUTO}); }
TEST(TapeFault, SettledPlanWithGuardsAndPoison) {
  fail_each({.name = "guards and poison", .warm = 4, .strategy = CKPT_STRATEGY_FULL, .arena_flags = CKPT_ARENA_GUARD | CKPT_ARENA_POISON});
}
TEST(TapeFault, RetainedStep) { fail_each({.name = "retained", .retain = true}); }
TEST(TapeFault, DetachedStep) { fail_each({.name = "detached", .warm = 2, .detach = true}); }
TEST(TapeFault, StepThatReadsADroppedBoundary) { fail_each({.name = "reading", .warm = 2, .read = true, .strategy = CKPT_STRATEGY_FULL}); }
TEST(TapeFault, StepWithoutBackward) { fail_each({.name = "without backward", .no_backward = true}); }
TEST(TapeFault, AllChecks) {
  fail_each({.name = "checks", .checks = CKPT_CHECK_DETERMINISM | CKPT_CHECK_RECOMPUTE | CKPT_CHECK_INPUTS});
}

// Creation of tapes and segments.
TEST(TapeFault, Creation) {
  Net net = a_net();
  Session s({});
  for (int64_t k = 0;; ++k) {
    ASSERT_LT(k, 1000);
    SCOPED_TRACE(k);
    ckpt_segment *segment = nullptr;
    ckpt_tape *tape = nullptr;
    const char *patterns[] = {"a pattern that is long enough to be somewhere else", "another pattern that is long enough"};
    ckpt_tape_desc d = CKPT_TAPE_DESC_INIT;
    d.arena = s.arena;
    d.strategy = CKPT_STRATEGY_SELECTIVE;
    d.keep_patterns = patterns;
    d.keep_pattern_count = 2;
    ckpt_slot slots[2] = {};
    slots[0].name = "a slot with a name of some length";
    slots[1].name = "another slot with a name of some length";
    slots[0].bytes = slots[1].bytes = 8;
    ckpt_segment_desc sd = CKPT_SEGMENT_DESC_INIT;
    sd.name = "a segment with a name of some length";
    sd.forward = abi_forward;
    sd.slots = slots;
    sd.slot_count = 2;
    g_left = k;
    const ckpt_status made = in([&] { return ckpt_tape_create(&d, &tape); });
    const ckpt_status made_too = in([&] { return ckpt_segment_create(&sd, &segment); });
    const bool reached = g_left < 0;
    g_left = kNever;
    EXPECT_EQ(made == CKPT_OK, tape != nullptr);
    EXPECT_EQ(made_too == CKPT_OK, segment != nullptr);
    for (ckpt_status status : {made, made_too}) { EXPECT_TRUE(status == CKPT_OK || status == CKPT_ERROR_OUT_OF_MEMORY) << status; }
    ckpt_tape_destroy(tape);
    ckpt_segment_destroy(segment);
    if (!reached) {
      EXPECT_EQ(made, CKPT_OK);
      EXPECT_GT(k, 5);
      break;
    }
    EXPECT_TRUE(made || made_too);
  }
}

}  // namespace
