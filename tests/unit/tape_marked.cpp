// Slots marked RECOMPUTE, and slots that a plan puts off, wherever a step leaves the way of its plan. The last segment's may be
// live between its forward and its backward; whatever acts in between, they go and are made again.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "ckpt/tape.h"

namespace {

constexpr size_t kCount = 64, kBytes = kCount * sizeof(double);

// slot = 3 x + 1, output = x + 7 (without the slot) or slot + 7 (with it); backward: gradient times slot.
struct Layer {
  bool from_slot = false;

  static ckpt_status forward(void *user, ckpt_frame *f) {
    const bool from_slot = static_cast<Layer *>(user)->from_slot;
    const auto *x = static_cast<const double *>(ckpt_frame_input(f, 0));
    auto *s = static_cast<double *>(ckpt_frame_slot(f, 0)), *o = static_cast<double *>(ckpt_frame_output(f, 0));
    if (ckpt_frame_needs(f, 0))
      for (size_t k = 0; k < kCount; ++k) s[k] = 3 * x[k] + 1;
    if (ckpt_frame_needs_output(f, 0))
      for (size_t k = 0; k < kCount; ++k) o[k] = (from_slot ? s[k] : x[k]) + 7;
    return CKPT_OK;
  }
  static ckpt_status backward(void *, ckpt_frame *f) {
    int accumulate = 0;
    const auto *g = static_cast<const double *>(ckpt_frame_output_grad(f, 0)), *s = static_cast<const double *>(ckpt_frame_slot(f, 0));
    auto *d = static_cast<double *>(ckpt_frame_input_grad(f, 0, &accumulate));
    for (size_t k = 0; d != nullptr && k < kCount; ++k) d[k] = (accumulate ? d[k] : 0) + g[k] * s[k];
    return CKPT_OK;
  }
};

struct Trainer {
  explicit Trainer(uint32_t slot_flags, bool from_slot, uint32_t checks = 0, size_t budget = 0) {
    layer.from_slot = from_slot;
    EXPECT_EQ(ckpt_device_open("cpu", &device), CKPT_OK);
    ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
    a.flags = CKPT_ARENA_GUARD | CKPT_ARENA_POISON;
    EXPECT_EQ(ckpt_arena_create(device, &a, &arena), CKPT_OK);
    ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
    t.arena = arena;
    t.checks = checks;
    t.budget_bytes = budget;
    EXPECT_EQ(ckpt_tape_create(&t, &tape), CKPT_OK);
    ckpt_slot slot{};
    slot.name = "s";
    slot.bytes = kBytes;
    slot.flags = slot_flags;
    ckpt_output output{};
    output.name = "o";
    output.bytes = kBytes;
    static const uint32_t kNothing = 0;
    if (!from_slot) output.reads = &kNothing;  // count 0: the input alone
    ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
    d.name = "layer";
    d.forward = Layer::forward;
    d.backward = Layer::backward;
    d.slots = &slot;
    d.outputs = &output;
    d.slot_count = d.output_count = d.input_count = 1;
    EXPECT_EQ(ckpt_segment_create(&d, &segment), CKPT_OK) << ckpt_last_error();
    std::iota(x.begin(), x.end(), 0.0);
    std::iota(og.begin(), og.end(), 1.0);
  }
  Trainer(const Trainer &) = delete;
  ~Trainer() {
    ckpt_tape_destroy(tape);
    ckpt_segment_destroy(segment);
    ckpt_arena_destroy(arena);
    ckpt_device_close(device);
  }

  // Records n layers; `read`: brings the boundary behind layer 0 to the user in between.
  void record(uint32_t n, uint32_t flags = 0, bool read = false) {
    ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
    in.data = x.data();
    in.bytes = kBytes;
    in.grad = dx.data();
    ASSERT_EQ(ckpt_tape_begin(tape, 0, flags), CKPT_OK) << ckpt_last_error();
    ASSERT_EQ(ckpt_tape_input(tape, &in, &last), CKPT_OK) << ckpt_last_error();
    ckpt_buffer first = 0;
    for (uint32_t k = 0; k < n; ++k) {
      ckpt_call call = CKPT_CALL_INIT;
      call.user = &layer;
      call.inputs = &last;
      call.input_count = 1;
      ckpt_buffer out = 0;
      ASSERT_EQ(ckpt_segment_run(tape, segment, &call, &out), CKPT_OK) << "layer " << k << ": " << ckpt_last_error();
      last = out;
      if (k == 0) first = out;
    }
    const void *data = nullptr;
    if (read) {
      ASSERT_EQ(ckpt_tape_read(tape, first, &data), CKPT_OK) << ckpt_last_error();
    }
  }
  void back(uint32_t n, uint32_t flags = 0) {
    const void *g = og.data();
    ASSERT_EQ(ckpt_backward(tape, &last, &g, 1, flags), CKPT_OK) << ckpt_last_error();
    std::vector<double> value = x, want = og;
    std::vector<std::vector<double>> slots;
    for (uint32_t k = 0; k < n; ++k) {
      std::vector<double> slot(kCount);
      for (size_t j = 0; j < kCount; ++j) slot[j] = 3 * value[j] + 1;
      for (size_t j = 0; j < kCount; ++j) value[j] = (layer.from_slot ? slot[j] : value[j]) + 7;
      slots.push_back(std::move(slot));
    }
    for (uint32_t k = n; k-- > 0;)
      for (size_t j = 0; j < kCount; ++j) want[j] *= slots[k][j];
    EXPECT_EQ(dx, want);
  }
  void learn(uint32_t n) {
    record(n, CKPT_TAPE_DRY);
    const void *g = og.data();
    ASSERT_EQ(ckpt_backward(tape, &last, &g, 1, 0), CKPT_OK) << ckpt_last_error();
  }
  size_t minimum() const {
    ckpt_tape_stats s{};
    s.struct_size = sizeof s;
    ckpt_tape_get_stats(tape, &s);
    return s.minimum_budget_bytes;
  }

  Layer layer;
  ckpt_device *device = nullptr;
  ckpt_arena *arena = nullptr;
  ckpt_tape *tape = nullptr;
  ckpt_segment *segment = nullptr;
  ckpt_buffer last = 0;
  std::vector<double> x = std::vector<double>(kCount), og = x, dx = x;
};

TEST(TapeMarked, WhatAPlanPutsOffPassesTheDeterminismCheck) {
  for (uint32_t flags : {0u, uint32_t{CKPT_SLOT_RECOMPUTE}})
    for (uint32_t n : {1u, 2u, 4u}) {
      Trainer run(flags, false, CKPT_CHECK_DETERMINISM);
      run.learn(n);
      for (int step = 0; step < 4; ++step) {
        run.record(n);
        run.back(n);
      }
    }
}

TEST(TapeMarked, RetainedBackward) {
  for (bool from_slot : {false, true})
    for (uint32_t n : {1u, 2u, 5u}) {
      Trainer run(CKPT_SLOT_RECOMPUTE, from_slot);
      run.learn(n);
      for (int step = 0; step < 3; ++step) {
        run.record(n);
        run.back(n, CKPT_BACKWARD_RETAIN);
        run.back(n);
      }
    }
}

TEST(TapeMarked, RecordingsThatGoOnBehindTheirPlan) {
  for (bool from_slot : {false, true})
    for (uint32_t n : {1u, 3u}) {
      Trainer run(CKPT_SLOT_RECOMPUTE, from_slot);
      run.learn(n);
      for (uint32_t more : {1u, 2u, 0u, 3u}) {
        run.record(n + more);
        run.back(n + more);
      }
    }
}

TEST(TapeMarked, ABoundaryIsReadAgainBeforeTheBackward) {
  for (bool from_slot : {false, true}) {
    Trainer all(CKPT_SLOT_RECOMPUTE, from_slot);
    all.learn(6);
    for (size_t more : {size_t{0}, size_t{2048}, size_t{8192}}) {
      Trainer run(CKPT_SLOT_RECOMPUTE, from_slot, 0, all.minimum() + 2048 + more);
      run.learn(6);
      for (int step = 0; step < 3; ++step) {
        run.record(6, 0, true);
        run.back(6);
      }
    }
  }
}

}  // namespace
