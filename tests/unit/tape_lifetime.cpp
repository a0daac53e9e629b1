// Tapes, segments, arenas and recordings are given up in any order, at any moment and on any thread: inside callbacks,
// between begin and end, while others work. What they held goes back, and each call is released once.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "../support/ops_net.h"

namespace {

using namespace ops;

Net little(uint32_t n = 3) {
  Net net;
  uint32_t x = net.input(16, true);
  for (uint32_t k = 0; k < n; ++k) x = net.then<Mlp>(x, "mlp", size_t{16}, k);
  net.root(net.then<Loss>(x, "loss", size_t{16}, true));
  net.zero_grads();
  return net;
}

// Destroys the tape now; the session does not do it again.
void drop_tape(Session &s) { ckpt_tape_destroy(std::exchange(s.tape, nullptr)); }

TEST(TapeLifetime, AnyOrder) {
  // t: tape, s: segments, a: arena, d: device.
  std::string order = "adst";
  do {
    for (bool recorded : {false, true}) {
      SCOPED_TRACE(order + (recorded ? ", with something recorded" : ""));
      Net net = little();
      auto s = std::make_unique<Session>(Options{});
      if (recorded) { ASSERT_EQ(s->forward(net), CKPT_OK); }
      ckpt_arena *arena = s->arena;
      for (char what : order) {
        if (what == 't') drop_tape(*s);
        if (what == 's') s->forget_segments();
        if (what == 'a') ckpt_arena_destroy(std::exchange(arena, nullptr));
        if (what == 'd') ckpt_device_close(std::exchange(s->device, nullptr));
      }
      for (const Use &u : s->uses()) EXPECT_EQ(u.released, 1);
      s->forget_arena();
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(TapeLifetime, DestroyTakesNull) {
  ckpt_tape_destroy(nullptr);
  ckpt_segment_destroy(nullptr);
  ckpt_recording_destroy(nullptr);
}

TEST(TapeLifetime, TapeDestroyedInsideACallback) {
  // In the first run of each segment, then in each recompute and backward: the call that is running says so or succeeds, and
  // nothing stays.
  for (uint64_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    ASSERT_LT(at, 100u);
    Net net = little();
    Options o;
    o.strategy = CKPT_STRATEGY_FULL;
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    uint64_t calls = 0;
    ckpt_tape *tape = s.tape;
    s.log.inside = [&](ckpt_frame *, Layer &) {
      if (calls++ == at) drop_tape(s);
    };
    ckpt_status status = ckpt_tape_begin(tape, 1, 0);
    // The handle is gone once it is destroyed: a real program would not use it again.
    if (!status) status = s.forward_until_destroyed(net);
    if (!status && s.tape != nullptr) status = s.backward(net);
    if (s.tape != nullptr) {
      EXPECT_EQ(status, CKPT_OK) << ckpt_last_error();
      break;
    }
    EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    for (const Use &u : s.uses()) EXPECT_EQ(u.released, 1);
  }
}

TEST(TapeLifetime, SegmentsAndArenaDestroyedInsideACallback) {
  Net net = little();
  const Result expected = plain(net, 42, 0);
  net.zero_grads();
  Options o;
  o.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  Session s(o);
  ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
  ckpt_arena *arena = s.arena;
  s.log.inside = [&](ckpt_frame *f, Layer &) {
    if (!ckpt_frame_is_backward(f)) return;
    s.forget_segments();
    ckpt_arena_destroy(std::exchange(arena, nullptr));
  };
  ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
  ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
  ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(difference(collect(net), expected), "");
  s.forget_arena();
}

TEST(TapeLifetime, TapeDestroyedBetweenBeginAndEnd) {
  for (int how = 0; how < 3; ++how) {  // end with success, end with a failure, a second segment before
    Net net;
    auto *layer = net.make<Scratchy>("by hand", size_t{16}, size_t{2});
    layer->replayable = false;
    uint32_t x = net.add(layer, {net.input(16, true)});
    auto *relu = net.make<Relu>("in place", size_t{16}, true);
    relu->replayable = false;
    net.add(relu, {x});
    Session s({});
    ASSERT_EQ(s.forward(net, how == 2 ? 1 : 0), CKPT_OK);
    Layer *open = how == 2 ? static_cast<Layer *>(relu) : layer;
    const std::vector<ckpt_buffer> in{s.buffers.back()};
    ckpt_call c = s.call(open, in);
    ckpt_frame *f = nullptr;
    ASSERT_EQ(ckpt_segment_begin(s.tape, s.segment(open), &c, &f), CKPT_OK) << ckpt_last_error();
    drop_tape(s);
    // The frame's memory is there until its end.
    AbiView view(f);
    open->forward(view);
    ckpt_buffer out = 3;
    EXPECT_EQ(ckpt_segment_end(f, how == 1 ? 5 : CKPT_OK, &out), CKPT_ERROR_STALE);
    EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    EXPECT_EQ(s.arena_stats().block_count, 0u);
    for (const Use &u : s.uses()) EXPECT_EQ(u.released, 1);
  }
}

TEST(TapeLifetime, ResetReleasesAndStepsAgain) {
  Net net = little();
  Session s({});
  for (size_t count = 0; count <= net.nodes.size(); ++count) {
    ASSERT_EQ(s.forward(net, count), CKPT_OK);
    ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
    EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    for (const Use &u : s.uses()) EXPECT_EQ(u.released, 1);
  }
  const Result expected = plain(net, 42, 0);
  const Step got = s.step(net);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, expected), "") << "an abandoned recording has not moved the step";
}

// A release that calls back into the library, as a finaliser of a host may.
struct Nosy {
  ckpt_tape *tape;
  ckpt_segment *segment;
  ckpt_status status = CKPT_OK;
  int count = 0;
};

TEST(TapeLifetime, ReleaseMayDestroyAndIsRefusedTheRest) {
  Net net = little();
  Session s({});
  ckpt_segment *own = nullptr;
  ASSERT_EQ(make_segment(*net.nodes[0].layer, abi_forward, abi_backward, abi_save, abi_restore, &own), CKPT_OK);
  ckpt_segment *other = nullptr;
  ASSERT_EQ(make_segment(*net.nodes[1].layer, abi_forward, abi_backward, abi_save, abi_restore, &other), CKPT_OK);
  ASSERT_EQ(s.forward(net, 0), CKPT_OK);
  struct Both : Use {
    Nosy nosy;
  } both{{net.nodes[0].layer, &s.log}, {s.tape, other}};
  ckpt_call c = CKPT_CALL_INIT;
  c.input_count = 1;
  c.inputs = &s.buffers[0];
  c.user = static_cast<Use *>(&both);
  c.release = [](void *user) {
    Nosy &n = static_cast<Both *>(static_cast<Use *>(user))->nosy;
    ++n.count;
    n.status = ckpt_tape_begin(n.tape, 0, 0);
    ckpt_segment_destroy(std::exchange(n.segment, nullptr));
  };
  ckpt_buffer out = 0;
  ASSERT_EQ(ckpt_segment_run(s.tape, own, &c, &out), CKPT_OK) << ckpt_last_error();
  ckpt_segment_destroy(own);
  ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  EXPECT_EQ(both.nosy.count, 1);
  EXPECT_EQ(both.nosy.status, CKPT_ERROR_BUSY);
  EXPECT_EQ(s.step(net).status, CKPT_OK) << ckpt_last_error();
}

// ---- threads ----

TEST(TapeThreads, HandlesAreGivenUpOnAnotherThreadWhileTheOwnerWorks) {
  for (int round = 0; round < 20; ++round) {
    Net net = little(), other = little();
    Session s({});
    Session second(Options{}, s.arena);
    ASSERT_EQ(second.forward(other), CKPT_OK);
    ckpt_recording *recording = nullptr;
    ASSERT_EQ(ckpt_tape_detach(second.tape, &recording), CKPT_OK);
    ASSERT_EQ(second.forward(other, 2), CKPT_OK);
    std::atomic<int> ready{0};
    ckpt_tape *tape = std::exchange(second.tape, nullptr);
    std::thread finaliser([&] {
      ++ready;
      while (ready < 2) {}
      ckpt_recording_destroy(recording);
      ckpt_tape_destroy(tape);
    });
    ++ready;
    while (ready < 2) {}
    for (int k = 0; k < 5; ++k) {
      net.zero_grads();
      ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
      ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
    }
    finaliser.join();
    // What was given up while the arena was in use went back by the owner's next call at the latest.
    net.zero_grads();
    ASSERT_EQ(s.forward(net), CKPT_OK);
    ASSERT_EQ(s.backward(net), CKPT_OK);
    EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    for (const Use &u : second.uses()) EXPECT_EQ(u.released, 1);
  }
}

TEST(TapeThreads, OneSegmentInManyTapes) {
  // Segments are immutable: tapes of several threads share one, each on an arena of its own.
  Mlp layer("shared", 32);
  ckpt_segment *segment = nullptr;
  ASSERT_EQ(make_segment(layer, [](void *, ckpt_frame *f) -> ckpt_status {
    for (uint32_t k = 0; k < 2; ++k) {
      float *p = static_cast<float *>(ckpt_frame_slot(f, k));
      if (ckpt_frame_needs(f, k)) std::fill_n(p, 32, 1.0f);
    }
    float *y = static_cast<float *>(ckpt_frame_output(f, 0));
    if (ckpt_frame_needs_output(f, 0)) std::fill_n(y, 32, 2.0f);
    return CKPT_OK;
  }, [](void *, ckpt_frame *f) -> ckpt_status {
    int add = 0;
    float *dx = static_cast<float *>(ckpt_frame_input_grad(f, 0, &add));
    for (size_t k = 0; k < 32; ++k) put(dx, k, 1.0f, add != 0);
    return CKPT_OK;
  }, abi_save, abi_restore, &segment), CKPT_OK);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Session s({});
      float data[32] = {}, grad[32] = {}, root[32] = {};
      for (int at = 0; at < 20; ++at) {
        ckpt_input_desc d = CKPT_INPUT_DESC_INIT;
        d.data = data;
        d.bytes = sizeof data;
        d.grad = grad;
        ckpt_buffer x = 0;
        ckpt_status status = ckpt_tape_input(s.tape, &d, &x);
        for (int k = 0; k < 4 && !status; ++k) {
          ckpt_call c = CKPT_CALL_INIT;
          c.input_count = 1;
          c.inputs = &x;
          status = ckpt_segment_run(s.tape, segment, &c, &x);
        }
        const void *grads[] = {root};
        if (!status) status = ckpt_backward(s.tape, &x, grads, 1, 0);
        failures += status != CKPT_OK || grad[31] != 1.0f;
      }
    });
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(failures, 0);
  ckpt_segment_destroy(segment);
}

TEST(TapeThreads, ASecondThreadIsRefusedWhileACallbackRuns) {
  Net net = little();
  Session s({});
  std::atomic<int> busy{0};
  s.log.inside = [&](ckpt_frame *f, Layer &) {
    if (ckpt_frame_index(f) != 1 || ckpt_frame_is_backward(f)) return;
    std::thread([&] {
      const std::vector<ckpt_buffer> in{s.buffers[0]};
      ckpt_call c = CKPT_CALL_INIT;
      int released = 0;
      c.user = &released;
      c.release = [](void *user) { ++*static_cast<int *>(user); };
      c.input_count = 1;
      c.inputs = in.data();
      ckpt_buffer out = 0;
      busy += ckpt_segment_run(s.tape, s.segment(net.nodes[0].layer), &c, &out) == CKPT_ERROR_BUSY && released == 1;
      busy += ckpt_tape_reset(s.tape) == CKPT_ERROR_BUSY;
    }).join();
  };
  const Result expected = plain(net, 42, 0);
  const Step got = s.step(net);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, expected), "");
  EXPECT_EQ(busy, 2);
}

}  // namespace
