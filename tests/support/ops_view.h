// What a test layer sees of one execution: the frame of the C ABI, or the plain executor's that stores everything. One text
// of each layer runs in both, so the plain executor is an oracle for everything that the tape does with memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ckpt/tape.h"

namespace ops {

class View {
 public:
  virtual ~View() = default;
  virtual bool needs(uint32_t slot) = 0;
  virtual bool needs_output(uint32_t output) = 0;
  virtual void *slot(uint32_t slot) = 0;
  virtual void *output(uint32_t output) = 0;
  virtual const void *input(uint32_t input) = 0;
  virtual const void *output_grad(uint32_t output) = 0;
  virtual void *input_grad(uint32_t input, bool *accumulate) = 0;
  virtual void *scratch() = 0;
  virtual ckpt_philox random(uint32_t site) = 0;
  virtual bool is_recompute() = 0;
  virtual uint64_t index() = 0;

  float *fslot(uint32_t k) { return static_cast<float *>(slot(k)); }
  float *fout(uint32_t k) { return static_cast<float *>(output(k)); }
  const float *fin(uint32_t k) { return static_cast<const float *>(input(k)); }
  const float *fgrad(uint32_t k) { return static_cast<const float *>(output_grad(k)); }
};

// A pointer that must be there is NULL: stops the callback, which reports it.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class T>
T *must(T *pointer, const char *what) {
  if (pointer == nullptr) throw Violation(std::string("NULL: ") + what);
  return pointer;
}

struct SlotSpec {
  std::string name = {};
  size_t bytes = 0;
  bool reads_all = true;  // else `reads`
  std::vector<uint32_t> reads = {};
  uint32_t group = 0;
  uint32_t flags = 0;
  double cost = 0;
};
struct OutputSpec {
  std::string name = {};
  size_t bytes = 0;
  bool reads_all = true;
  std::vector<uint32_t> reads = {};
  uint32_t group = 0;
  uint32_t flags = 0;
  uint32_t in_place_input = 0;
  void *memory = nullptr;
};
struct Spec {
  std::string name;
  std::vector<SlotSpec> slots;
  std::vector<OutputSpec> outputs;
  std::vector<uint32_t> input_flags;  // one per input
  size_t forward_scratch = 0, backward_scratch = 0, state_bytes = 0;
};

class Layer {
 public:
  Spec spec;
  bool replayable = true;     // else its forward runs between begin and end, by hand
  bool has_backward = true;
  std::vector<float> weight, weight_grad;
  std::vector<double> statistics;  // host state that a first run moves (running means, counters)

  virtual ~Layer() = default;
  virtual void forward(View &f) = 0;
  virtual void backward(View &f) = 0;
  virtual void save(void *) {}
  virtual void restore(const void *) {}

  void set_weight(size_t count, uint32_t salt) {
    weight.resize(count);
    for (size_t k = 0; k < count; ++k) weight[k] = 0.05f * static_cast<float>(static_cast<int>((k * 2654435761u + salt * 40503u) % 41) - 20);
    weight_grad.assign(count, 0.0f);
  }
};

// All earlier ones (NULL), none (an address with count 0), or these.
template <class From, class To>
void set_reads(const From &from, To *to) {
  static const uint32_t none = 0;
  if (from.reads_all) return;
  to->reads = from.reads.empty() ? &none : from.reads.data();
  to->read_count = static_cast<uint32_t>(from.reads.size());
}

// The segment of a layer; aborts the test with an exception where the ABI refuses it.
inline ckpt_status make_segment(const Layer &layer, ckpt_segment_fn forward, ckpt_segment_fn backward, ckpt_state_fn save,
                                ckpt_state_fn restore, ckpt_segment **out) {
  const Spec &s = layer.spec;
  std::vector<ckpt_slot> slots;
  for (const SlotSpec &k : s.slots) {
    ckpt_slot c{};
    c.name = k.name.c_str();
    c.bytes = k.bytes;
    set_reads(k, &c);
    c.group = k.group;
    c.flags = k.flags;
    c.cost_seconds = k.cost;
    slots.push_back(c);
  }
  std::vector<ckpt_output> outputs;
  for (const OutputSpec &k : s.outputs) {
    ckpt_output c{};
    c.name = k.name.c_str();
    c.bytes = k.bytes;
    set_reads(k, &c);
    c.group = k.group;
    c.flags = k.flags;
    c.in_place_input = k.in_place_input;
    c.memory = k.memory;
    outputs.push_back(c);
  }
  ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
  d.name = s.name.c_str();
  d.forward = layer.replayable ? forward : nullptr;
  d.backward = layer.has_backward ? backward : nullptr;
  d.slots = slots.data();
  d.outputs = outputs.data();
  d.input_flags = s.input_flags.data();
  d.slot_count = static_cast<uint32_t>(slots.size());
  d.output_count = static_cast<uint32_t>(outputs.size());
  d.input_count = static_cast<uint32_t>(s.input_flags.size());
  d.forward_scratch_bytes = s.forward_scratch;
  d.backward_scratch_bytes = s.backward_scratch;
  if (s.state_bytes > 0) {
    d.save_state = save;
    d.restore_state = restore;
    d.state_bytes = s.state_bytes;
  }
  return ckpt_segment_create(&d, out);
}

}  // namespace ops
