// Arena and tape for the tests of the layers.
#pragma once

#include "common.h"

namespace test {

constexpr uint64_t kSeed = 77;

class Tape {
 public:
  explicit Tape(uint32_t strategy = CKPT_STRATEGY_STORE_ALL, uint32_t k = 0, uint32_t checks = 0, uint32_t arena_flags = CKPT_ARENA_POISON) {
    EXPECT_EQ(ckpt_device_open("cpu", &device_), CKPT_OK);
    ckpt_arena_desc arena = CKPT_ARENA_DESC_INIT;
    arena.flags = arena_flags;
    arena.capacity_bytes = size_t{1} << 28;
    EXPECT_EQ(ckpt_arena_create(device_, &arena, &arena_), CKPT_OK) << ckpt_last_error();
    ckpt_tape_desc desc = CKPT_TAPE_DESC_INIT;
    desc.arena = arena_;
    desc.seed = kSeed;
    desc.strategy = strategy;
    desc.strategy_k = k;
    desc.checks = checks;
    EXPECT_EQ(ckpt_tape_create(&desc, &tape_), CKPT_OK) << ckpt_last_error();
  }
  ~Tape() {
    ckpt_tape_destroy(tape_);
    ckpt_arena_destroy(arena_);
    ckpt_device_close(device_);
  }
  Tape(const Tape &) = delete;
  Tape &operator=(const Tape &) = delete;
  operator ckpt_tape *() const { return tape_; }
  ckpt_arena *arena() const { return arena_; }

 private:
  ckpt_device *device_ = nullptr;
  ckpt_arena *arena_ = nullptr;
  ckpt_tape *tape_ = nullptr;
};

inline ckpt_buffer input(ckpt_tape *tape, const void *data, size_t bytes, float *grad = nullptr, uint32_t flags = 0) {
  ckpt_input_desc desc = CKPT_INPUT_DESC_INIT;
  desc.data = data;
  desc.bytes = bytes;
  desc.grad = grad;
  desc.flags = flags;
  ckpt_buffer out = 0;
  EXPECT_EQ(ckpt_tape_input(tape, &desc, &out), CKPT_OK) << ckpt_last_error();
  return out;
}
inline ckpt_buffer input(ckpt_tape *tape, const Floats &data, Floats *grad = nullptr, uint32_t flags = 0) {
  return input(tape, data.data(), data.size() * sizeof(float), grad == nullptr ? nullptr : grad->data(), flags);
}
inline ckpt_buffer input(ckpt_tape *tape, const std::vector<int32_t> &data) { return input(tape, data.data(), data.size() * sizeof(int32_t)); }

// The snapshot that segment `segment` of the recording of step 0 draws from.
inline ckpt_philox draws(uint64_t segment, uint32_t site) {
  ckpt_philox out = {};
  EXPECT_EQ(ckpt_philox_pack(kSeed, 0, segment, site, &out), CKPT_OK);
  return out;
}
// Factors of that mask; empty where p is 0, as the reference has it.
inline reference::Values drawn_mask(uint64_t segment, uint32_t site, size_t count, float probability) {
  return probability == 0.0f ? reference::Values() : mask(draws(segment, site), count, probability);
}

class Layer {
 public:
  Layer() = default;
  ~Layer() { ckpt_layer_destroy(layer_); }
  Layer(const Layer &) = delete;
  Layer &operator=(const Layer &) = delete;
  ckpt_layer **out() { return &layer_; }
  operator ckpt_layer *() const { return layer_; }

 private:
  ckpt_layer *layer_ = nullptr;
};

}  // namespace test
