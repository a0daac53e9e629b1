// Small chains as plain numbers, random ones of several kinds, and what they are as graphs: the common ground of the planner
// and of the oracles that it is held against.
#pragma once

#include <string>

#include "plan/program.h"
#include "plan_random.h"

namespace plan_test {

struct ModelSlot {
  uint32_t bytes = 1, cost = 0;
  uint32_t reads = 0;      // mask of earlier slots
  bool transient = false;  // backward does not read it
  bool keep = false;
};
struct ModelSegment {
  std::vector<ModelSlot> slots;
  uint32_t output_bytes = 1, output_grad_bytes = 0;  // 0: as bytes
  uint32_t output_cost = 0, output_reads = 0, backward_cost = 0, forward_scratch = 0, backward_scratch = 0;
  bool reads_input = true, reads_output = false, whole = false;  // whole: computes everything if anything
};
struct ChainModel {
  uint32_t input_bytes = 0, input_grad_bytes = 0;
  bool input_caller = true;
  uint8_t input_grad = CKPT_GRAD_NONE;
  bool output_caller = false, output_grad_in_arena = false;
  std::vector<ModelSegment> segments;

  uint32_t size() const { return static_cast<uint32_t>(segments.size()); }
  // Boundary i; what is in the caller's memory takes nothing.
  uint32_t boundary_bytes(uint32_t i) const {
    if (i == 0) return input_caller ? 0 : input_bytes;
    return i == size() && output_caller ? 0 : segments[i - 1].output_bytes;
  }
  uint32_t gradient_bytes(uint32_t i) const {
    if (i == 0) return input_grad != CKPT_GRAD_ARENA ? 0 : input_grad_bytes != 0 ? input_grad_bytes : input_bytes;
    if (i == size() && !output_grad_in_arena) return 0;
    const ModelSegment &s = segments[i - 1];
    return s.output_grad_bytes != 0 ? s.output_grad_bytes : s.output_bytes;
  }
  uint32_t forward_cost() const {
    uint32_t sum = 0;
    for (const ModelSegment &s : segments) {
      sum += s.output_cost;
      for (const ModelSlot &k : s.slots) sum += k.cost;
    }
    return sum;
  }
  uint32_t backward_cost() const {
    uint32_t sum = 0;
    for (const ModelSegment &s : segments) sum += s.backward_cost;
    return sum;
  }
};

// A cost of c takes c * tick seconds, a size of b takes b * unit bytes (a power of two: sizes are rounded up to it).
inline Graph graph_of(const ChainModel &chain, double tick = 1, size_t unit = 1) {
  const auto sized = [&](uint32_t bytes) { return bytes == 0 ? 0 : (bytes - 1) * unit + 1; };
  Graph g;
  g.rule.alignment_bytes = unit;
  g.root_grads_in_arena = chain.output_grad_in_arena;
  g.add_input(sized(chain.input_bytes), sized(chain.input_grad_bytes), chain.input_caller, chain.input_grad);
  for (uint32_t i = 0; i < chain.size(); ++i) {
    const ModelSegment &s = chain.segments[i];
    std::vector<Item> slots(s.slots.size()), outputs(1);
    for (uint32_t k = 0; k < slots.size(); ++k) {
      slots[k].name = std::string(1, static_cast<char>('a' + k));
      slots[k].bytes = sized(s.slots[k].bytes);
      slots[k].cost_seconds = tick * s.slots[k].cost;
      if (s.slots[k].transient) slots[k].flags |= CKPT_SLOT_TRANSIENT;
      if (s.slots[k].keep) slots[k].flags |= CKPT_SLOT_KEEP;
      for (uint32_t r = 0; r < k; ++r)
        if (s.slots[k].reads >> r & 1) slots[k].reads.set(r);
      if (s.output_reads >> k & 1) outputs[0].reads.set(k);
    }
    outputs[0].name = "out";
    outputs[0].bytes = sized(s.output_bytes);
    outputs[0].grad_bytes = sized(s.output_grad_bytes);
    outputs[0].cost_seconds = tick * s.output_cost;
    if (s.reads_output) outputs[0].flags = CKPT_OUTPUT_BACKWARD_READS;
    outputs[0].caller_memory = i + 1 == chain.size() && chain.output_caller;
    const uint32_t input_flags = s.reads_input ? 0 : CKPT_INPUT_BACKWARD_IGNORES;
    Result<Shape> shape = Shape::create("n" + std::to_string(i), std::move(slots), std::move(outputs), {input_flags}, sized(s.forward_scratch), sized(s.backward_scratch), true, s.whole);
    EXPECT_TRUE(shape.ok()) << last_error();
    g.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t latest[] = {g.value_count() - 1};
    g.nodes[g.add_node(g.shapes.back().get(), latest, nullptr, nullptr)].backward_seconds = tick * s.backward_cost;
  }
  return g;
}

// As the documentation writes chains.
inline std::string text(const ChainModel &chain) {
  const auto names = [](uint32_t mask) {
    std::string all;
    for (uint32_t k = 0; mask >> k != 0; ++k)
      if (mask >> k & 1) all += (all.empty() ? "\"" : ", \"") + std::string(1, static_cast<char>('a' + k)) + "\"";
    return "[" + all + "]";
  };
  const auto number = [](const char *key, uint32_t value) { return "\"" + std::string(key) + "\": " + std::to_string(value); };
  static constexpr const char *kGrad[] = {"none", "arena", "caller"};
  std::string t = "{\"input\": {" + number("bytes", chain.input_bytes) + ", " + number("grad_bytes", chain.input_grad_bytes) + ", \"memory\": \"" + (chain.input_caller ? "caller" : "arena") + "\", \"grad\": \"" + kGrad[chain.input_grad] +
                  "\"}, \"output\": {\"memory\": \"" + (chain.output_caller ? "caller" : "arena") + "\", \"grad\": \"" + (chain.output_grad_in_arena ? "arena" : "caller") + "\"}, \"segments\": [";
  for (uint32_t i = 0; i < chain.size(); ++i) {
    const ModelSegment &s = chain.segments[i];
    uint32_t forward = s.output_cost;
    for (const ModelSlot &k : s.slots) forward += k.cost;
    t += i == 0 ? "\n  {" : ",\n  {";
    t += number("forward_seconds", forward) + ", " + number("backward_seconds", s.backward_cost) + ", " + number("output_bytes", s.output_bytes) + ", " + number("grad_bytes", s.output_grad_bytes) + ", \"slots\": [";
    for (uint32_t k = 0; k < s.slots.size(); ++k) {
      const ModelSlot &slot = s.slots[k];
      t += std::string(k == 0 ? "" : ", ") + "{\"name\": " + names(1u << k).substr(1, 3) + ", " + number("bytes", slot.bytes) + ", " + number("cost_seconds", slot.cost) + ", \"reads\": " + names(slot.reads);
      if (slot.transient || slot.keep) t += std::string(", \"flags\": [") + (slot.transient ? "\"transient\"" : "") + (slot.transient && slot.keep ? ", " : "") + (slot.keep ? "\"keep\"" : "") + "]";
      t += "}";
    }
    t += "], \"output_reads\": " + names(s.output_reads) + ", " + number("forward_scratch_bytes", s.forward_scratch) + ", " + number("backward_scratch_bytes", s.backward_scratch) + ", \"backward_reads\": [" +
         (s.reads_input ? "\"input\"" : "") + (s.reads_input && s.reads_output ? ", " : "") + (s.reads_output ? "\"output\"" : "") + "]" + (s.whole ? ", \"whole\": true" : "") + "}";
  }
  return t + "]}";
}

enum class ChainKind : uint8_t {
  random,  // everything that a chain without KEEP, groups and the like may have
  clean,   // slots that all are read by backward and by the output, no scratch, the input is read by backward and the caller's
  sparse,  // the output reads few slots, or none
  whole,   // segments that run as a whole or not at all
};
inline const char *name_of(ChainKind kind) {
  static constexpr const char *kNames[] = {"random", "clean", "sparse output_reads", "whole"};
  return kNames[static_cast<size_t>(kind)];
}

class ChainMaker {
 public:
  ChainMaker(Genes *genes, ChainKind kind) : g_(*genes), kind_(kind) {}

  ChainModel make(uint32_t segments, uint32_t slots) {
    ChainModel c;
    c.segments.resize(segments);
    for (ModelSegment &s : c.segments) s = segment(slots);
    const bool clean = kind_ == ChainKind::clean;
    c.input_bytes = 1 + g_.below(8);
    c.input_caller = clean || g_.one_in(2);
    c.input_grad = clean ? static_cast<uint8_t>(CKPT_GRAD_NONE) : static_cast<uint8_t>(g_.below(3));
    if (!clean && g_.one_in(4)) c.input_grad_bytes = 1 + g_.below(8);
    c.output_grad_in_arena = !clean && g_.one_in(2);
    c.output_caller = !clean && g_.one_in(4);
    return c;
  }

 private:
  ModelSegment segment(uint32_t most_slots) {
    const bool clean = kind_ == ChainKind::clean;
    ModelSegment s;
    s.slots.resize(g_.below(most_slots + 1));
    const auto count = static_cast<uint32_t>(s.slots.size());
    for (uint32_t k = 0; k < count; ++k) {
      ModelSlot &slot = s.slots[k];
      slot.bytes = g_.one_in(8) && !clean ? 0 : 1 + g_.below(9);
      slot.cost = g_.below(5);
      slot.reads = g_.below(3) == 0 ? (1u << k) - 1 : g_.below(1u << k);
      slot.transient = !clean && g_.one_in(4);
    }
    s.output_reads = (1u << count) - 1;
    if (kind_ == ChainKind::sparse) s.output_reads = g_.one_in(2) ? 0 : 1u << g_.below(count + 1) >> 1;
    else if (!clean && g_.one_in(2)) s.output_reads = g_.below(1u << count);
    // A slot that nobody needs would be refused: backward reads it then.
    uint32_t read = s.output_reads;
    for (uint32_t k = count; k-- > 0;) {
      if (!(read >> k & 1)) s.slots[k].transient = false;
      read |= s.slots[k].reads;
    }
    s.whole = kind_ == ChainKind::whole ? !g_.one_in(4) : kind_ == ChainKind::random && g_.one_in(10);
    s.output_bytes = g_.one_in(12) && !clean ? 0 : 1 + g_.below(9);
    if (!clean && g_.one_in(6)) s.output_grad_bytes = 1 + g_.below(9);
    s.output_cost = g_.below(5);
    s.backward_cost = g_.below(6);
    if (clean) return s;
    s.forward_scratch = g_.one_in(4) ? g_.below(8) : 0;
    s.backward_scratch = g_.one_in(4) ? g_.below(8) : 0;
    s.reads_input = !g_.one_in(3);
    s.reads_output = g_.one_in(3);
    return s;
  }

  Genes &g_;
  ChainKind kind_;
};

// Each slot is read by backward, by the output, or by a slot that is.
inline bool valid(const ChainModel &chain) {
  for (const ModelSegment &s : chain.segments) {
    uint32_t read = s.output_reads;
    for (uint32_t k = static_cast<uint32_t>(s.slots.size()); k-- > 0;) {
      if (s.slots[k].transient && !(read >> k & 1)) return false;
      read |= s.slots[k].reads;
    }
  }
  return chain.size() != 0;
}

// The smallest chain, by leaving out segments and slots and by simpler numbers, of which `fails` still holds.
template <class Fails>
ChainModel reduced(ChainModel chain, Fails &&fails) {
  const auto attempt = [&](const ChainModel &simpler) {
    if (!valid(simpler) || !fails(simpler)) return false;
    chain = simpler;
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < chain.size() && chain.size() > 1; ++i) {
      ChainModel c = chain;
      c.segments.erase(c.segments.begin() + i);
      if (attempt(c)) again = true, --i;
    }
    for (uint32_t i = 0; i < chain.size(); ++i)
      for (uint32_t k = 0; k < chain.segments[i].slots.size(); ++k) {
        ChainModel c = chain;
        ModelSegment &s = c.segments[i];
        const auto without = [&](uint32_t mask) { return (mask & ((1u << k) - 1)) | (mask >> (k + 1) << k); };
        s.slots.erase(s.slots.begin() + k);
        s.output_reads = without(s.output_reads);
        for (ModelSlot &slot : s.slots) slot.reads = without(slot.reads), slot.transient = false;
        if (attempt(c)) again = true, --k;
      }
    const auto lower = [&](auto &&field) {
      for (uint32_t to : {0u, 1u}) {
        ChainModel c = chain;
        auto &value = field(c);
        if (static_cast<uint32_t>(value) <= to) return;
        value = static_cast<std::remove_reference_t<decltype(value)>>(to);
        if (attempt(c)) again = true;
      }
      ChainModel c = chain;
      auto &value = field(c);
      value = static_cast<std::remove_reference_t<decltype(value)>>(static_cast<uint32_t>(value) - 1);
      if (attempt(c)) again = true;
    };
    lower([](ChainModel &c) -> uint32_t & { return c.input_bytes; });
    lower([](ChainModel &c) -> uint32_t & { return c.input_grad_bytes; });
    lower([](ChainModel &c) -> uint8_t & { return c.input_grad; });
    lower([](ChainModel &c) -> bool & { return c.output_caller; });
    lower([](ChainModel &c) -> bool & { return c.output_grad_in_arena; });
    for (uint32_t i = 0; i < chain.size(); ++i) {
      for (auto field : {&ModelSegment::output_bytes, &ModelSegment::output_grad_bytes, &ModelSegment::output_cost, &ModelSegment::backward_cost, &ModelSegment::forward_scratch, &ModelSegment::backward_scratch, &ModelSegment::output_reads})
        lower([&](ChainModel &c) -> uint32_t & { return c.segments[i].*field; });
      for (auto field : {&ModelSegment::reads_output, &ModelSegment::whole})
        lower([&](ChainModel &c) -> bool & { return c.segments[i].*field; });
      for (uint32_t k = 0; k < chain.segments[i].slots.size(); ++k) {
        for (auto field : {&ModelSlot::bytes, &ModelSlot::cost, &ModelSlot::reads})
          lower([&](ChainModel &c) -> uint32_t & { return c.segments[i].slots[k].*field; });
        for (auto field : {&ModelSlot::transient, &ModelSlot::keep})
          lower([&](ChainModel &c) -> bool & { return c.segments[i].slots[k].*field; });
      }
    }
  }
  return chain;
}

}  // namespace plan_test
