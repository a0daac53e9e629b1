// What a tape knows of recordings that it has seen, or that were recorded dry: structure, sizes, costs, and the plan.
// Immutable once published: a recording in flight keeps the one that it started with. (What is measured while the plan is in use
// is not part of that: it goes from one to the next.)
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/graph.h"
#include "plan/make_plan.h"
#include "tape/drift.h"

namespace ckpt::tape {

// A plan was made by other costs than the graph has now, and will be made again before the next step.
enum class Again : uint8_t {
  no,
  learnt,  // costs that were not known before: whatever is not slower is taken
  drifted  // see drift.h
};

struct Known {
  uint64_t key = 0;
  std::shared_ptr<const plan::Graph> graph;
  plan::GradientMap gradients;   // roots included
  uint32_t measured_steps = 0;   // real steps whose costs are in the graph
  bool planned = false;
  bool adopted = false;          // the plan came from outside: it stays
  bool ran = false;              // a real step of it has succeeded
  Again again = Again::no;       // only where it is planned
  Status refused = CKPT_OK;      // planning failed, with `refusal`
  std::string refusal;
  plan::Planned plan;
  std::shared_ptr<Drift> drift;  // NULL: the plan stays, or is made anew by the next step anyway
};
using KnownPtr = std::shared_ptr<const Known>;

// How an event of a recording (an input, a segment) compares with what a known graph has at that place.
enum class Match { no, smaller, exact };

struct InputEvent {
  size_t bytes, grad_bytes;
  uint8_t grad;
};
struct NodeEvent {
  const plan::Shape *shape;
  std::span<const uint32_t> inputs;  // value numbers
  const size_t *slot_bytes, *output_bytes;  // NULL: the shape's

  size_t bytes(uint32_t item) const {
    const bool slot = item < shape->slot_count();
    const size_t *own = slot ? slot_bytes : output_bytes;
    return own != nullptr ? own[slot ? item : item - shape->slot_count()] : shape->item(item).bytes;
  }
  size_t grad_bytes(uint32_t output_item) const {
    const size_t own = shape->item(output_item).grad_bytes;
    return own != 0 ? own : bytes(output_item);
  }
};
Match match(const plan::Graph &graph, uint32_t node, uint32_t value, const InputEvent &event);
Match match(const plan::Graph &graph, uint32_t node, uint32_t value, const NodeEvent &event);

// The first `nodes` nodes and `values` values of a graph.
plan::Graph prefix(const plan::Graph &graph, uint32_t nodes, uint32_t values);
bool same_prefix(const plan::Graph &a, const plan::Graph &b, uint32_t nodes, uint32_t values);
bool same_structure(const plan::Graph &a, const plan::Graph &b);  // sizes aside

// Most recently used first; at most kCapacity.
class KnownCache {
 public:
  static constexpr size_t kCapacity = 16;
  KnownPtr find(uint64_t key) const;                        // the most recently used one of this key
  KnownPtr find_same(uint64_t key, const plan::Graph &) const;  // same key and structure
  void put(KnownPtr known, const Known *replaced);          // to the front
  void touch(const Known *known);
  bool holds(const Known *known) const;
  const std::vector<KnownPtr> &all() const { return all_; }

 private:
  std::vector<KnownPtr> all_;
};

}  // namespace ckpt::tape
