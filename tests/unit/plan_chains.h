// Small chains by hand, and programs as text: "f0:a,o" a forward that wants slot a and output o ("o!": over its input),
// "b0" a backward, "free1", "drop0:a".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan::testing {

struct Slot {
  std::string name;
  size_t bytes;
  double seconds;
  std::vector<uint32_t> reads;
  uint32_t flags = 0;
  uint32_t group = 0;
};

struct Segment {
  std::vector<Slot> slots = {{"a", 3, 1, {}}};
  std::vector<uint32_t> output_reads = {0};
  size_t output_bytes = 2;
  double output_seconds = 1, backward_seconds = 2;
  uint32_t output_flags = 0, input_flags = 0, in_place = 0;
  size_t forward_scratch = 0, backward_scratch = 0;
  bool replayable = true, whole = false;
};

inline std::shared_ptr<const Shape> shape_of(const Segment &s, uint32_t inputs = 1, const std::string &name = "seg") {
  std::vector<Item> slots, outputs(1);
  for (const Slot &from : s.slots) {
    Item it;
    it.name = from.name;
    it.bytes = from.bytes;
    it.cost_seconds = from.seconds;
    it.flags = from.flags;
    it.group = from.group;
    for (uint32_t r : from.reads) it.reads.set(r);
    slots.push_back(it);
  }
  outputs[0].name = "o";
  outputs[0].bytes = s.output_bytes;
  outputs[0].cost_seconds = s.output_seconds;
  outputs[0].flags = s.output_flags;
  outputs[0].in_place_input = s.in_place;
  for (uint32_t r : s.output_reads) outputs[0].reads.set(r);
  Result<Shape> shape = Shape::create(name, slots, outputs, std::vector<uint32_t>(inputs, s.input_flags), s.forward_scratch, s.backward_scratch, s.replayable, s.whole);
  return shape.ok() ? std::make_shared<const Shape>(std::move(*shape)) : nullptr;
}

// Sizes as they are (alignment 1). The input is the caller's, without gradient; so is the last output's gradient.
struct ChainOf : Graph {
  ChainOf(uint32_t n, const Segment &segment) {
    rule.alignment_bytes = 1;
    add_input(0, 0, true, CKPT_GRAD_NONE);
    for (uint32_t i = 0; i < n; ++i) append(segment, i == 0 ? nullptr : shapes.back());
  }
  void append(const Segment &segment, std::shared_ptr<const Shape> shape = nullptr) {
    if (shape == nullptr) shape = shape_of(segment);
    if (shapes.empty() || shapes.back() != shape) shapes.push_back(shape);
    const uint32_t latest[] = {value_count() - 1};
    nodes[add_node(shape.get(), latest, nullptr, nullptr)].backward_seconds = segment.backward_seconds;
  }
};

inline std::string text_of(const Graph &g, const Program &p) {
  std::string text;
  for (const Action &a : p.actions) {
    if (!text.empty()) text += ' ';
    switch (a.kind) {
      case ActionKind::forward: text += 'f'; break;
      case ActionKind::backward: text += 'b'; break;
      case ActionKind::free: text += "free"; break;
      case ActionKind::drop: text += "drop"; break;
    }
    text += std::to_string(a.index);
    if (a.kind == ActionKind::free || a.want.empty()) continue;
    char before = ':';
    a.want.each([&](uint32_t k) {
      text += before + g.nodes[a.index].shape->item(k).name + (a.in_place.has(k) ? "!" : "");
      before = ',';
    });
  }
  return text;
}

}  // namespace ckpt::plan::testing
