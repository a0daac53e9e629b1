// A net of test layers, the plain executor that stores everything (the oracle), and the session that runs a net through the
// public C ABI and keeps account of every callback, release and byte.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "ckpt/ckpt.h"
#include "ops_special_layers.h"

namespace ops {

struct NetInput {
  std::vector<float> data;
  bool wants_grad = false;
  bool accumulate = false;
  std::vector<float> grad;
};
struct NetNode {
  Layer *layer;
  std::vector<uint32_t> inputs;  // value numbers: net inputs first, then outputs in order
};
struct NetRoot {
  uint32_t value;
  std::vector<float> grad;  // empty: none, the segment seeds itself
};

struct Net {
  std::vector<NetInput> inputs;
  std::vector<NetNode> nodes;
  std::vector<NetRoot> roots;
  std::vector<std::shared_ptr<Layer>> layers;  // owned; one may serve several nodes

  uint32_t input(size_t count, bool wants_grad, uint32_t salt = 3, bool accumulate = false) {
    EXPECT_TRUE(nodes.empty()) << "a net's inputs come first";
    NetInput in;
    in.wants_grad = wants_grad;
    in.accumulate = accumulate;
    for (size_t k = 0; k < count; ++k) in.data.push_back(0.03f * static_cast<float>(static_cast<int>((k * 48271u + salt * 69621u) % 67) - 33));
    inputs.push_back(in);
    value_count_ = static_cast<uint32_t>(inputs.size());
    return value_count_ - 1;
  }
  template <class L, class... Args>
  L *make(Args &&...args) {
    layers.push_back(std::make_shared<L>(std::forward<Args>(args)...));
    return static_cast<L *>(layers.back().get());
  }
  // The value of its first output.
  uint32_t add(Layer *layer, std::vector<uint32_t> node_inputs) {
    nodes.push_back({layer, std::move(node_inputs)});
    const uint32_t first = value_count_;
    value_count_ += static_cast<uint32_t>(layer->spec.outputs.size());
    return first;
  }
  template <class L, class... Args>
  uint32_t then(uint32_t input, const std::string &name, Args &&...args) {
    return add(make<L>(name, std::forward<Args>(args)...), {input});
  }
  void root(uint32_t value, std::vector<float> grad = {}) { roots.push_back({value, std::move(grad)}); }
  uint32_t value_count() const { return value_count_; }

  void zero_grads() {
    for (auto &l : layers) std::fill(l->weight_grad.begin(), l->weight_grad.end(), 0.0f);
    for (size_t k = 0; k < inputs.size(); ++k) {
      // What was there is either overwritten or, with accumulate, added to.
      inputs[k].grad.assign(inputs[k].wants_grad ? inputs[k].data.size() : 0, inputs[k].accumulate ? 0.5f : -7.0f);
    }
  }

 private:
  uint32_t value_count_ = 0;
};

// Everything that a step produces, by name.
using Result = std::vector<std::pair<std::string, std::vector<double>>>;

inline Result collect(const Net &net) {
  Result r;
  const auto floats_of = [](const std::vector<float> &v) { return std::vector<double>(v.begin(), v.end()); };
  for (size_t k = 0; k < net.inputs.size(); ++k)
    if (net.inputs[k].wants_grad) r.emplace_back("gradient of input " + std::to_string(k), floats_of(net.inputs[k].grad));
  for (size_t k = 0; k < net.layers.size(); ++k) {
    const Layer &l = *net.layers[k];
    const std::string name = "layer " + std::to_string(k) + " '" + l.spec.name + "'";
    r.emplace_back("weight gradient of " + name, floats_of(l.weight_grad));
    r.emplace_back("statistics of " + name, l.statistics);
    if (const auto *loss = dynamic_cast<const Loss *>(&l)) r.emplace_back("loss of " + name, std::vector<double>{static_cast<double>(loss->value)});
    if (const auto *drop = dynamic_cast<const Dropout *>(&l)) r.emplace_back("mask of " + name, std::vector<double>(drop->last_mask.begin(), drop->last_mask.end()));
  }
  return r;
}

// "" if they are equal bit by bit (float to double is injective), else the first difference.
inline std::string difference(const Result &a, const Result &b) {
  if (a.size() != b.size()) return "different numbers of results";
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].first != b[k].first) return "'" + a[k].first + "' against '" + b[k].first + "'";
    if (a[k].second.size() != b[k].second.size()) return a[k].first + ": sizes differ";
    for (size_t i = 0; i < a[k].second.size(); ++i) {
      const double x = a[k].second[i], y = b[k].second[i];
      if (std::memcmp(&x, &y, sizeof x) != 0)
        return a[k].first + "[" + std::to_string(i) + "]: " + std::to_string(x) + " against " + std::to_string(y);
    }
  }
  return "";
}

// ---- the oracle: everything is stored, each gradient has memory of its own ----

class PlainRun {
 public:
  PlainRun(Net &net, uint64_t seed, uint64_t step) : net_(net), seed_(seed), step_(step) {}

  Result run() {
    net_.zero_grads();
    forward();
    backward();
    return collect(net_);
  }
  void forward() {
    values_.clear();
    for (NetInput &in : net_.inputs) values_.push_back({in.data.data(), {}});
    slots_.assign(net_.nodes.size(), {});
    first_value_.clear();
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      const Spec &s = net_.nodes[i].layer->spec;
      for (const SlotSpec &k : s.slots) slots_[i].emplace_back(k.bytes + 1);
      first_value_.push_back(values_.size());
      for (const OutputSpec &o : s.outputs) values_.push_back({nullptr, std::vector<std::byte>(o.bytes + 1)});
      for (size_t k = first_value_[i]; k < values_.size(); ++k) values_[k].data = net_.nodes[i].layer->spec.outputs[k - first_value_[i]].memory != nullptr ? net_.nodes[i].layer->spec.outputs[k - first_value_[i]].memory : values_[k].memory.data();
      scratch_.assign(s.forward_scratch + 1, std::byte{0xFF});
      Frame f(*this, i, false);
      net_.nodes[i].layer->forward(f);
    }
  }
  void backward() {
    const size_t count = values_.size();
    std::vector<uint8_t> seeded(count, 0);
    grads_.assign(count, {});
    for (const NetRoot &r : net_.roots) {
      if (r.grad.empty()) seeded[r.value] = 1;
      else grads_[r.value].assign(r.grad.begin(), r.grad.end());
    }
    input_given_.assign(net_.inputs.size(), 0);
    for (size_t i = net_.nodes.size(); i-- > 0;) {
      const NetNode &n = net_.nodes[i];
      bool runs = false;
      for (size_t k = 0; k < n.layer->spec.outputs.size(); ++k) runs |= seeded[first_value_[i] + k] || !grads_[first_value_[i] + k].empty();
      if (!runs) continue;
      fresh_.clear();
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const uint32_t v = n.inputs[k];
        bool twice = false;
        for (size_t j = 0; j < n.inputs.size(); ++j) twice |= j != k && n.inputs[j] == v && !(n.layer->spec.input_flags[j] & CKPT_INPUT_NO_GRAD);
        if (!has_grad(v) || (n.layer->spec.input_flags[k] & CKPT_INPUT_NO_GRAD)) { fresh_.push_back(-1); continue; }
        const bool is_input = v < net_.inputs.size();
        const bool there = is_input ? input_given_[v] || net_.inputs[v].accumulate : !grads_[v].empty();
        if (!there) {
          if (is_input) std::fill(net_.inputs[v].grad.begin(), net_.inputs[v].grad.end(), 0.0f);
          else grads_[v].assign(bytes_of(v) / sizeof(float), 0.0f);
        }
        fresh_.push_back(!there && !twice ? 1 : 0);
        if (is_input) input_given_[v] = 1;
      }
      scratch_.assign(n.layer->spec.backward_scratch + 1, std::byte{0xFF});
      Frame f(*this, i, true);
      n.layer->backward(f);
    }
    for (size_t k = 0; k < net_.inputs.size(); ++k)
      if (net_.inputs[k].wants_grad && !net_.inputs[k].accumulate && !input_given_[k]) std::fill(net_.inputs[k].grad.begin(), net_.inputs[k].grad.end(), 0.0f);
  }
  const float *value(uint32_t v) const { return static_cast<const float *>(values_[v].data); }
  size_t bytes_of(uint32_t v) const {
    if (v < net_.inputs.size()) return net_.inputs[v].data.size() * sizeof(float);
    for (size_t i = first_value_.size(); i-- > 0;)
      if (first_value_[i] <= v) return net_.nodes[i].layer->spec.outputs[v - first_value_[i]].bytes;
    return 0;
  }

 private:
  struct Memory {
    void *data;
    std::vector<std::byte> memory;
  };
  bool has_grad(uint32_t v) const {
    if (v < net_.inputs.size()) return net_.inputs[v].wants_grad;
    for (size_t i = first_value_.size(); i-- > 0;)
      if (first_value_[i] <= v) return !(net_.nodes[i].layer->spec.outputs[v - first_value_[i]].flags & CKPT_OUTPUT_NO_GRAD);
    return false;
  }

  class Frame : public View {
   public:
    Frame(PlainRun &run, size_t node, bool back) : r_(run), node_(node), back_(back) {}
    bool needs(uint32_t) override { return !back_; }
    bool needs_output(uint32_t) override { return !back_; }
    // In backward only what is declared as read by it: the same pointers are NULL as in a frame.
    void *slot(uint32_t k) override { return back_ && (spec().slots[k].flags & CKPT_SLOT_TRANSIENT) ? nullptr : r_.slots_[node_][k].data(); }
    void *output(uint32_t k) override {
      return back_ && !(spec().outputs[k].flags & CKPT_OUTPUT_BACKWARD_READS) ? nullptr : r_.values_[r_.first_value_[node_] + k].data;
    }
    const void *input(uint32_t k) override {
      return back_ && (spec().input_flags[k] & CKPT_INPUT_BACKWARD_IGNORES) ? nullptr : r_.values_[r_.net_.nodes[node_].inputs[k]].data;
    }
    const void *output_grad(uint32_t k) override {
      const auto &g = r_.grads_[r_.first_value_[node_] + k];
      return g.empty() ? nullptr : g.data();
    }
    void *input_grad(uint32_t k, bool *accumulate) override {
      *accumulate = r_.fresh_[k] == 0;
      if (r_.fresh_[k] < 0) return nullptr;
      const uint32_t v = r_.net_.nodes[node_].inputs[k];
      return v < r_.net_.inputs.size() ? r_.net_.inputs[v].grad.data() : r_.grads_[v].data();
    }
    void *scratch() override { return r_.scratch_.data(); }
    ckpt_philox random(uint32_t site) override {
      ckpt_philox p{};
      EXPECT_EQ(ckpt_philox_pack(r_.seed_, r_.step_, node_, site, &p), CKPT_OK);
      return p;
    }
    bool is_recompute() override { return false; }
    uint64_t index() override { return node_; }

   private:
    const Spec &spec() const { return r_.net_.nodes[node_].layer->spec; }
    PlainRun &r_;
    size_t node_;
    bool back_;
  };

  Net &net_;
  uint64_t seed_, step_;
  std::vector<Memory> values_;
  std::vector<size_t> first_value_;
  std::vector<std::vector<std::vector<std::byte>>> slots_;
  std::vector<std::vector<float>> grads_;
  std::vector<uint8_t> input_given_;
  std::vector<int> fresh_;  // per input of the node: 1 writes, 0 adds, -1 not wanted
  std::vector<std::byte> scratch_;
};

inline Result plain(Net &net, uint64_t seed, uint64_t step) { return PlainRun(net, seed, step).run(); }

// Host state that steps move (running means, generators): set back, so that two runs start alike.
struct HostState {
  std::vector<std::vector<double>> statistics;
  std::vector<uint64_t> generators;
  explicit HostState(const Net &net) {
    for (auto &l : net.layers) {
      statistics.push_back(l->statistics);
      const auto *h = dynamic_cast<const HostDropout *>(l.get());
      generators.push_back(h != nullptr ? h->state : 0);
    }
  }
  void restore(Net &net) const {
    for (size_t k = 0; k < net.layers.size(); ++k) {
      net.layers[k]->statistics = statistics[k];
      if (auto *h = dynamic_cast<HostDropout *>(net.layers[k].get())) h->state = generators[k];
    }
  }
};

// ---- through the C ABI ----

struct Log {
  uint64_t firsts = 0, recomputes = 0, backwards = 0, dry = 0;
  std::vector<uint32_t> backward_order;
  int64_t fail_in = -1;  // the callback (of any kind) that fails: 0 is the next
  ckpt_status fail_with = 77;
  std::string violation;
  std::function<void(ckpt_frame *, Layer &)> inside;  // called in each callback, before the layer's work

  bool fails() { return fail_in >= 0 && fail_in-- == 0; }
  uint64_t callbacks() const { return firsts + recomputes + backwards; }
};

struct Use {  // `user` of one call
  Layer *layer;
  Log *log;
  int released = 0;
};

class AbiView : public View {
 public:
  explicit AbiView(ckpt_frame *f) : f_(f) {}
  bool needs(uint32_t k) override { return ckpt_frame_needs(f_, k) != 0; }
  bool needs_output(uint32_t k) override { return ckpt_frame_needs_output(f_, k) != 0; }
  void *slot(uint32_t k) override { return ckpt_frame_slot(f_, k); }
  void *output(uint32_t k) override { return ckpt_frame_output(f_, k); }
  const void *input(uint32_t k) override { return ckpt_frame_input(f_, k); }
  const void *output_grad(uint32_t k) override { return ckpt_frame_output_grad(f_, k); }
  void *input_grad(uint32_t k, bool *accumulate) override {
    int add = -1;
    void *p = ckpt_frame_input_grad(f_, k, &add);
    *accumulate = add == 1;
    return p;
  }
  void *scratch() override { return ckpt_frame_scratch(f_); }
  ckpt_philox random(uint32_t site) override {
    ckpt_philox p{};
    ckpt_frame_random(f_, site, &p);
    return p;
  }
  bool is_recompute() override { return ckpt_frame_is_recompute(f_) != 0; }
  uint64_t index() override { return ckpt_frame_index(f_); }

 private:
  ckpt_frame *f_;
};

inline ckpt_status call_layer(Use &use, ckpt_frame *frame, bool back) {
  Log &log = *use.log;
  if (ckpt_frame_is_backward(frame) != (back ? 1 : 0)) log.violation = "is_backward is wrong";
  if (back) {
    ++log.backwards;
    log.backward_order.push_back(static_cast<uint32_t>(ckpt_frame_index(frame)));
  } else if (ckpt_frame_is_dry(frame)) {
    ++log.dry;
  } else {
    ++(ckpt_frame_is_recompute(frame) ? log.recomputes : log.firsts);
  }
  if (log.fails()) return ckpt_frame_fail(frame, log.fail_with, "asked to fail");
  if (log.inside) log.inside(frame, *use.layer);
  AbiView view(frame);
  try {
    if (back) use.layer->backward(view);
    else use.layer->forward(view);
  } catch (const Violation &v) {
    log.violation = use.layer->spec.name + ": " + v.what();
    return ckpt_frame_fail(frame, 99, log.violation.c_str());
  }
  return CKPT_OK;
}

inline ckpt_status abi_forward(void *user, ckpt_frame *f) { return call_layer(*static_cast<Use *>(user), f, false); }
inline ckpt_status abi_backward(void *user, ckpt_frame *f) { return call_layer(*static_cast<Use *>(user), f, true); }
inline ckpt_status abi_save(void *user, void *state) {
  static_cast<Use *>(user)->layer->save(state);
  return CKPT_OK;
}
inline ckpt_status abi_restore(void *user, void *state) {
  static_cast<Use *>(user)->layer->restore(state);
  return CKPT_OK;
}
inline void abi_release(void *user) { ++static_cast<Use *>(user)->released; }

struct Options {
  uint32_t strategy = CKPT_STRATEGY_AUTO;
  uint32_t k = 0;
  std::vector<const char *> keep, recompute;
  size_t budget = 0;
  size_t capacity = size_t{64} << 20;
  size_t alignment = 64;
  uint32_t arena_flags = CKPT_ARENA_POISON;
  uint32_t checks = 0;
  uint32_t in_flight = 0;
  uint32_t replan = CKPT_REPLAN_AUTO;
  uint64_t seed = 42;
};

struct Step {
  ckpt_status status = CKPT_OK;
  std::string text;
  Result result;
  ckpt_tape_stats stats{};
};

class Session {
 public:
  ckpt_device *device = nullptr;
  ckpt_arena *arena = nullptr;
  ckpt_tape *tape = nullptr;
  Log log;
  Options options;
  ckpt_status made = CKPT_OK;

  // What segments are made of: a test may put something around them, before the first segment.
  ckpt_segment_fn forward_fn = abi_forward, backward_fn = abi_backward;
  ckpt_state_fn save_fn = abi_save, restore_fn = abi_restore;

  explicit Session(const Options &o, ckpt_arena *shared = nullptr, ckpt_device *own_device = nullptr) : device(own_device), options(o) {
    if (device == nullptr) { EXPECT_EQ(ckpt_device_open("cpu", &device), CKPT_OK); }
    arena = shared;
    if (shared == nullptr) {
      ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
      a.capacity_bytes = o.capacity;
      a.alignment_bytes = o.alignment;
      a.flags = o.arena_flags;
      EXPECT_EQ(ckpt_arena_create(device, &a, &arena), CKPT_OK) << ckpt_last_error();
      owns_arena_ = true;
    }
    ckpt_tape_desc d = CKPT_TAPE_DESC_INIT;
    d.arena = arena;
    d.budget_bytes = o.budget;
    d.seed = o.seed;
    d.strategy = o.strategy;
    d.strategy_k = o.k;
    d.keep_patterns = o.keep.data();
    d.keep_pattern_count = static_cast<uint32_t>(o.keep.size());
    d.recompute_patterns = o.recompute.data();
    d.recompute_pattern_count = static_cast<uint32_t>(o.recompute.size());
    d.checks = o.checks;
    d.in_flight_count = o.in_flight;
    d.replan = o.replan;
    made = ckpt_tape_create(&d, &tape);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;
  ~Session() {
    ckpt_tape_destroy(tape);
    for (auto &[layer, segment] : segments_) ckpt_segment_destroy(segment);
    if (owns_arena_) ckpt_arena_destroy(arena);
    ckpt_device_close(device);
    for (const Use &u : uses_) EXPECT_EQ(u.released, 1) << "a call's user was not released exactly once";
  }

  ckpt_segment *segment(Layer *layer) {
    auto [at, fresh] = segments_.try_emplace(layer, nullptr);
    if (fresh) {
      EXPECT_EQ(make_segment(*layer, forward_fn, backward_fn, save_fn, restore_fn, &at->second), CKPT_OK) << ckpt_last_error();
    }
    return at->second;
  }
  void forget_arena() { owns_arena_ = false; }  // the test has destroyed it
  void forget_segments() {
    for (auto &[layer, segment] : segments_) ckpt_segment_destroy(segment);
    segments_.clear();
  }

  ckpt_call call(Layer *layer, const std::vector<ckpt_buffer> &inputs) {
    uses_.push_back({layer, &log});
    ckpt_call c = CKPT_CALL_INIT;
    c.input_count = static_cast<uint32_t>(inputs.size());
    c.inputs = inputs.data();
    c.user = &uses_.back();
    c.release = abi_release;
    return c;
  }

  // Inputs and segments of a net; buffers[v] names value v.
  std::vector<ckpt_buffer> buffers;
  ckpt_status forward(Net &net, size_t node_count = SIZE_MAX) {
    buffers.clear();
    for (NetInput &in : net.inputs) {
      ckpt_input_desc d = CKPT_INPUT_DESC_INIT;
      d.data = in.data.data();
      d.bytes = floats(in.data.size());
      d.grad = in.wants_grad ? in.grad.data() : nullptr;
      d.flags = in.accumulate ? uint32_t{CKPT_TAPE_INPUT_ACCUMULATE} : 0u;
      buffers.push_back(0);
      if (const ckpt_status bad = ckpt_tape_input(tape, &d, &buffers.back()); bad) return bad;
    }
    for (size_t i = 0; i < std::min(node_count, net.nodes.size()); ++i)
      if (const ckpt_status bad = run_node(net, net.nodes[i]); bad) return bad;
    return CKPT_OK;
  }
  // A forward pass during which a callback may destroy the tape: the rest is left out then.
  ckpt_status forward_until_destroyed(Net &net) {
    ckpt_status status = forward(net, 0);
    for (size_t i = 0; !status && tape != nullptr && i < net.nodes.size(); ++i) status = run_node(net, net.nodes[i]);
    return status;
  }
  ckpt_status run_node(Net &, const NetNode &n) {
    std::vector<ckpt_buffer> in;
    for (uint32_t v : n.inputs) in.push_back(buffers[v]);
    const size_t first = buffers.size();
    buffers.resize(first + n.layer->spec.outputs.size(), 0);
    ckpt_call c = call(n.layer, in);
    ckpt_segment *s = segment(n.layer);
    if (n.layer->replayable) return ckpt_segment_run(tape, s, &c, n.layer->spec.outputs.empty() ? nullptr : &buffers[first]);
    ckpt_frame *frame = nullptr;
    if (const ckpt_status bad = ckpt_segment_begin(tape, s, &c, &frame); bad) return bad;
    const ckpt_status done = call_layer(*static_cast<Use *>(c.user), frame, false);
    return ckpt_segment_end(frame, done, n.layer->spec.outputs.empty() ? nullptr : &buffers[first]);
  }
  ckpt_status backward(Net &net, uint32_t flags = 0) {
    std::vector<ckpt_buffer> outputs;
    std::vector<const void *> grads;
    for (const NetRoot &r : net.roots) {
      outputs.push_back(buffers[r.value]);
      grads.push_back(r.grad.empty() ? nullptr : r.grad.data());
    }
    return ckpt_backward(tape, outputs.data(), grads.data(), static_cast<uint32_t>(outputs.size()), flags);
  }

  ckpt_tape_stats stats() const {
    ckpt_tape_stats s{};
    s.struct_size = sizeof s;
    EXPECT_EQ(ckpt_tape_get_stats(tape, &s), CKPT_OK);
    return s;
  }
  ckpt_arena_stats arena_stats() const {
    ckpt_arena_stats s{};
    s.struct_size = sizeof s;
    EXPECT_EQ(ckpt_arena_get_stats(arena, &s), CKPT_OK);
    return s;
  }

  // A whole step with key 0 and without begin, or begun with key and flags. Checks what every step must keep to.
  Step step(Net &net, uint64_t key = 0, uint32_t flags = 0, bool begin = true) {
    Step s;
    net.zero_grads();
    log.backward_order.clear();
    const uint64_t firsts = log.firsts, backwards = log.backwards, recomputes = log.recomputes;
    const size_t in_use_before = arena_stats().in_use_bytes;
    EXPECT_EQ(ckpt_arena_reset_stats(arena), CKPT_OK);
    if (begin) s.status = ckpt_tape_begin(tape, key, flags);
    if (s.status == CKPT_OK) s.status = forward(net);
    if (s.status == CKPT_OK) s.status = backward(net);
    if (s.status) {
      s.text = ckpt_last_error();
      EXPECT_EQ(ckpt_last_status(), s.status);
      EXPECT_EQ(ckpt_tape_reset(tape), CKPT_OK);  // nothing on nothing
    }
    s.stats = stats();
    s.result = collect(net);
    const ckpt_arena_stats a = arena_stats();
    EXPECT_EQ(log.violation, "");
    EXPECT_EQ(a.in_use_bytes, in_use_before) << "something stayed in the arena";
    EXPECT_LE(a.height_bytes, s.stats.budget_bytes) << "the budget was exceeded";
    for (const Use &u : uses_) EXPECT_EQ(u.released, 1);
    uses_.clear();
    if ((flags & CKPT_TAPE_DRY) != 0) {
      EXPECT_EQ(log.firsts, firsts);
      EXPECT_EQ(log.backwards, backwards);
      EXPECT_EQ(log.recomputes, recomputes);
    } else if (s.status == CKPT_OK) {
      for (size_t k = 1; k < log.backward_order.size(); ++k) EXPECT_GT(log.backward_order[k - 1], log.backward_order[k]) << "backward out of order";
      EXPECT_EQ(log.firsts - firsts, net.nodes.size());
      EXPECT_EQ(s.stats.forward_count, net.nodes.size());
      EXPECT_EQ(log.backwards - backwards, s.stats.backward_done);
      EXPECT_EQ(s.stats.backward_done + s.stats.skipped_count, net.nodes.size());
      if (options.checks == 0) { EXPECT_EQ(log.recomputes - recomputes, s.stats.recompute_count); }
      EXPECT_EQ(a.height_bytes, s.stats.arena_measured_bytes);
      EXPECT_EQ(a.peak_in_use_bytes, s.stats.peak_measured_bytes);
    }
    return s;
  }

  std::deque<Use> &uses() { return uses_; }

 private:
  bool owns_arena_ = false;
  std::map<Layer *, ckpt_segment *> segments_;
  std::deque<Use> uses_;
};

}  // namespace ops
