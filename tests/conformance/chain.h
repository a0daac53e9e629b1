// Scenario 1's chain on the target: segments of [linear 64, dropout 0.1, gelu], batch 8, with the library's layers as kernels.
#pragma once

#include <memory>

#include "ckpt/ops.h"
#include "target.h"

namespace conformance {

constexpr size_t kBatch = 8, kWidth = 64, kCount = kBatch * kWidth, kWeights = kWidth * kWidth;
constexpr float kDropout = 0.1f;
enum : uint32_t { kPre = 0, kDropped = 1 };

inline ckpt_ops *ops() {
  static ckpt_ops *const made = [] {
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.device = target().device;
    desc.stream = target().stream;
    ckpt_ops *o = nullptr;
    EXPECT_EQ(ckpt_ops_create(&desc, &o), CKPT_OK) << ckpt_ops_last_error();
    return o;
  }();
  return made;
}

struct Results {
  std::vector<float> out, weight_grads, input_grad;
  std::vector<uint8_t> masks;  // as each segment's first run drew them
  bool operator==(const Results &other) const {
    const auto same = [](const std::vector<float> &a, const std::vector<float> &b) { return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0; };
    return same(out, other.out) && same(weight_grads, other.weight_grads) && same(input_grad, other.input_grad) && masks == other.masks;
  }
};

struct ChainOptions {
  uint32_t segments = 24;
  uint32_t strategy = CKPT_STRATEGY_STORE_ALL;
  uint32_t k = 0;
  size_t budget = 0;
  uint32_t checks = 0;
  uint32_t replan = CKPT_REPLAN_AUTO;
  uint32_t arena_flags = 0;
  size_t capacity = size_t{8} << 20;
  bool state = false;  // segments have host state
  uint32_t in_flight = 1;
};

class Chain {
 public:
  explicit Chain(const ChainOptions &o) : options(o), memory(o.segments * kWeights * 8 + (1 << 20)) {
    weights = memory.take<float>(o.segments * kWeights);
    weight_grads = memory.take<float>(o.segments * kWeights);
    input = memory.take<float>(kCount);
    input_grad = memory.take<float>(kCount);
    root = memory.take<float>(kCount);
    out = memory.take<float>(kCount);
    masks = memory.take<uint8_t>(o.segments * kCount);
    const ckpt_philox w{1, 1, 0, nullptr}, x{1, 2, 0, nullptr}, r{1, 3, 0, nullptr};
    EXPECT_OK(ckpt_device_philox_normal(target().device, target().stream, &w, 0, o.segments * kWeights, 0, 0.15f, weights));
    EXPECT_OK(ckpt_device_philox_normal(target().device, target().stream, &x, 0, kCount, 0, 1, input));
    EXPECT_OK(ckpt_device_philox_normal(target().device, target().stream, &r, 0, kCount, 0, 1, root));
    EXPECT_NE(ops(), nullptr);
    make_segments();
    ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
    a.capacity_bytes = o.capacity;
    a.flags = o.arena_flags;
    a.stream = target().stream;
    EXPECT_OK(ckpt_arena_create(target().device, &a, &arena));
    ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
    t.arena = arena;
    t.budget_bytes = o.budget;
    t.seed = 99;
    t.strategy = o.strategy;
    t.strategy_k = o.k;
    t.checks = o.checks;
    t.replan = o.replan;
    t.in_flight_count = o.in_flight;
    EXPECT_OK(ckpt_tape_create(&t, &tape));
  }
  ~Chain() {
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(arena);
    ckpt_segment_destroy(inner);
    ckpt_segment_destroy(last);
    // Blocks of `memory` are given back after the work on them.
    (void)ckpt_device_synchronize(target().device, target().stream);
  }
  Chain(const Chain &) = delete;
  Chain &operator=(const Chain &) = delete;

  // Gradients to zero, forward, backward; enqueues only. `count`: so many segments (0: all).
  ckpt_status step(uint64_t key = 0, uint32_t flags = 0, uint32_t count = 0) {
    if (!(flags & CKPT_TAPE_DRY)) {
      if (const ckpt_status s = ckpt_device_fill(target().device, target().stream, weight_grads, 0, 4 * options.segments * kWeights)) return s;
    }
    if (key != 0 || flags != 0)
      if (const ckpt_status s = ckpt_tape_begin(tape, key, flags)) return s;
    ckpt_buffer buffer = 0;
    if (const ckpt_status s = forward(count != 0 ? count : options.segments, &buffer)) {
      (void)ckpt_tape_reset(tape);
      return s;
    }
    const void *grad = root;
    if (flags & CKPT_TAPE_NO_BACKWARD) return ckpt_tape_reset(tape);
    return ckpt_backward(tape, &buffer, &grad, 1, backward_flags);
  }
  ckpt_status forward(uint32_t count, ckpt_buffer *buffer) {
    ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
    in.data = input;
    in.bytes = 4 * kCount;
    in.grad = input_grad;
    if (const ckpt_status s = ckpt_tape_input(tape, &in, buffer)) return s;
    for (uint32_t k = 0; k < count; ++k) {
      ckpt_call call = CKPT_CALL_INIT;
      call.user = &layers[k];
      call.inputs = buffer;
      call.input_count = 1;
      ckpt_buffer next = 0;
      if (const ckpt_status s = ckpt_segment_run(tape, k + 1 == count ? last : inner, &call, &next)) return s;
      *buffer = next;
    }
    return CKPT_OK;
  }
  Results results() const {
    return {Memory::read(out, kCount), Memory::read(weight_grads, options.segments * kWeights), Memory::read(input_grad, kCount), Memory::read(masks, options.segments * kCount)};
  }
  ckpt_tape_stats stats() const {
    ckpt_tape_stats s{};
    s.struct_size = sizeof s;
    EXPECT_OK(ckpt_tape_get_stats(tape, &s));
    return s;
  }
  size_t arena_in_use() const {
    ckpt_arena_stats s{};
    s.struct_size = sizeof s;
    EXPECT_OK(ckpt_arena_get_stats(arena, &s));
    return s.in_use_bytes;
  }
  // The masks that the host draws for a step.
  std::vector<uint8_t> host_masks(uint64_t step) const {
    std::vector<uint8_t> m(options.segments * kCount);
    for (uint32_t k = 0; k < options.segments; ++k) {
      ckpt_philox p;
      EXPECT_OK(ckpt_philox_pack(99, step, k, 0, &p));
      EXPECT_OK(ckpt_philox_bernoulli(&p, 0, kCount, 1.0 - static_cast<double>(kDropout), m.data() + k * kCount));
    }
    return m;
  }

  struct Layer {
    Chain *chain;
    uint32_t index;
  };

  ChainOptions options;
  Memory memory;
  float *weights, *weight_grads, *input, *input_grad, *root, *out;
  uint8_t *masks;
  ckpt_arena *arena = nullptr;
  ckpt_tape *tape = nullptr;
  ckpt_segment *inner = nullptr, *last = nullptr;
  std::vector<Layer> layers;
  uint32_t backward_flags = 0;
  std::vector<uint64_t> frame_steps;  // of first runs

 private:
  static ckpt_status told(ckpt_frame *f, ckpt_status status) { return status == CKPT_OK ? CKPT_OK : ckpt_frame_fail(f, status, ckpt_ops_last_error()); }

  static ckpt_status forward_of(void *user, ckpt_frame *f) {
    const Layer &l = *static_cast<Layer *>(user);
    Chain &c = *l.chain;
    const auto *x = static_cast<const float *>(ckpt_frame_input(f, 0));
    auto *pre = static_cast<float *>(ckpt_frame_slot(f, kPre)), *dropped = static_cast<float *>(ckpt_frame_slot(f, kDropped)), *y = static_cast<float *>(ckpt_frame_output(f, 0));
    if (y == nullptr) y = c.out;  // the last one's: the caller's memory
    ckpt_philox p;
    ckpt_frame_random(f, 0, &p);
    if (ckpt_frame_needs(f, kPre))
      if (const ckpt_status s = told(f, ckpt_ops_linear_forward(ops(), x, c.weights + l.index * kWeights, nullptr, kBatch, kWidth, kWidth, pre))) return s;
    if (ckpt_frame_needs(f, kDropped))
      if (const ckpt_status s = told(f, ckpt_ops_dropout_forward(ops(), pre, nullptr, kDropout, &p, kCount, dropped))) return s;
    if (ckpt_frame_needs_output(f, 0))
      if (const ckpt_status s = told(f, ckpt_ops_gelu_forward(ops(), dropped, nullptr, kBatch, kWidth, y))) return s;
    if (ckpt_frame_is_recompute(f) || ckpt_frame_is_dry(f)) return CKPT_OK;
    c.frame_steps.push_back(ckpt_frame_step(f));
    const ckpt_status s = ckpt_device_philox_bernoulli(target().device, target().stream, &p, 0, kCount, 1.0 - static_cast<double>(kDropout), c.masks + l.index * kCount);
    return s == CKPT_OK ? CKPT_OK : ckpt_frame_fail(f, s, std::string(ckpt_last_error()).c_str());
  }
  static ckpt_status backward_of(void *user, ckpt_frame *f) {
    const Layer &l = *static_cast<Layer *>(user);
    Chain &c = *l.chain;
    int accumulate = 0;
    const auto *x = static_cast<const float *>(ckpt_frame_input(f, 0));
    const auto *dropped = static_cast<const float *>(ckpt_frame_slot(f, kDropped)), *dy = static_cast<const float *>(ckpt_frame_output_grad(f, 0));
    auto *dx = static_cast<float *>(ckpt_frame_input_grad(f, 0, &accumulate)), *d = static_cast<float *>(ckpt_frame_scratch(f));
    ckpt_philox p;
    ckpt_frame_random(f, 0, &p);
    if (const ckpt_status s = told(f, ckpt_ops_gelu_backward(ops(), dropped, nullptr, dy, kBatch, kWidth, d, 0, nullptr))) return s;
    if (const ckpt_status s = told(f, ckpt_ops_dropout_backward(ops(), d, kDropout, &p, kCount, d, 0))) return s;
    return told(f, ckpt_ops_linear_backward(ops(), x, c.weights + l.index * kWeights, d, kBatch, kWidth, kWidth, dx, static_cast<uint32_t>(accumulate),
                                            c.weight_grads + l.index * kWeights, nullptr));
  }
  static ckpt_status no_state(void *, void *) { return CKPT_OK; }

  void make_segments() {
    static const uint32_t first[] = {kPre}, second[] = {kDropped};
    for (const bool is_last : {false, true}) {
      ckpt_slot slots[2] = {};
      slots[kPre] = {"pre", 4 * kCount, first, 0, 0, 0, CKPT_SLOT_TRANSIENT, 0};
      slots[kDropped] = {"dropped", 4 * kCount, first, 1, 0, 0, 0, 0};
      ckpt_output output{};
      output.name = "out";
      output.bytes = 4 * kCount;
      output.reads = second;
      output.read_count = 1;
      output.memory = is_last ? out : nullptr;
      ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
      desc.name = is_last ? "last" : "layer";
      desc.forward = forward_of;
      desc.backward = backward_of;
      desc.slots = slots;
      desc.slot_count = 2;
      desc.outputs = &output;
      desc.output_count = 1;
      desc.input_count = 1;
      desc.backward_scratch_bytes = 4 * kCount;
      if (options.state) {
        desc.save_state = no_state;
        desc.restore_state = no_state;
        desc.state_bytes = 8;
      }
      EXPECT_OK(ckpt_segment_create(&desc, is_last ? &last : &inner));
    }
    for (uint32_t k = 0; k < options.segments; ++k) layers.push_back({this, k});
  }
};

}  // namespace conformance
