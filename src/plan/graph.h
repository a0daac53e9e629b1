// The cost model of one recording: nodes (uses of a Shape) in the order of their first runs, and the values (boundaries)
// that pass between them. A chain is the graph in which node i reads value i and makes value i + 1.
//
// Values are numbered: graph inputs and node outputs share one numbering, in the order in which they were added; outputs of
// a node are consecutive. Sizes are the caller's; `rule` says what they take in the arena.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "arena/size_rule.h"
#include "base/bits.h"
#include "base/status.h"
#include "plan/shape.h"

namespace ckpt::plan {

inline constexpr uint32_t kNone = UINT32_MAX;

struct Value {
  uint32_t producer = kNone;  // node, or kNone: an input of the graph
  uint32_t item = 0;          // of the producer's shape; for inputs: their number among the inputs
  size_t bytes = 0;
  size_t grad_bytes = 0;
  bool caller = false;        // memory of the caller's: never counted, always there (once made)
  uint8_t grad = CKPT_GRAD_NONE;  // inputs: where its gradient is; outputs: NONE or ARENA
  bool read_at_end = false;   // the user reads it after the forward pass: it stays until backward begins
};

struct Node {
  const Shape *shape = nullptr;  // borrowed: Graph::shapes owns it
  uint32_t first_input = 0;      // into Graph::node_inputs; shape->input_count() of them
  uint32_t first_value = 0;      // value of output 0
  uint32_t first_item = 0;       // into Graph::item_bytes and item_seconds
  double backward_seconds = 0;
};

struct Graph {
  arena::SizeRule rule;
  std::vector<std::shared_ptr<const Shape>> shapes;
  std::vector<Node> nodes;
  std::vector<uint32_t> node_inputs;  // value numbers
  std::vector<size_t> item_bytes;     // per node and item, as recorded (a value's bytes equal its item's)
  std::vector<double> item_seconds;
  std::vector<Value> values;
  std::vector<uint32_t> inputs;       // values without producer
  std::multimap<uint32_t, uint32_t> holders;  // value -> nodes whose slot 0 holds it (Shape::saved_holds_input)
  bool root_grads_in_arena = false;   // gradients of values that no node reads count from the start (planning papers)

  uint32_t node_count() const { return static_cast<uint32_t>(nodes.size()); }
  uint32_t value_count() const { return static_cast<uint32_t>(values.size()); }
  std::span<const uint32_t> inputs_of(uint32_t node) const {
    return {node_inputs.data() + nodes[node].first_input, nodes[node].shape->input_count()};
  }
  uint32_t value_of(uint32_t node, uint32_t item) const { return nodes[node].first_value + item - nodes[node].shape->slot_count(); }
  size_t bytes_of(uint32_t node, uint32_t item) const { return item_bytes[nodes[node].first_item + item]; }
  double seconds_of(uint32_t node, uint32_t item) const { return item_seconds[nodes[node].first_item + item]; }
  size_t item_footprint(uint32_t node, uint32_t item) const { return rule.footprint(bytes_of(node, item)); }

  uint32_t add_input(size_t bytes, size_t grad_bytes, bool caller, uint8_t grad);
  // slot_bytes, output_bytes: NULL for the shape's. `shape` must be in `shapes` or outlive the graph.
  uint32_t add_node(const Shape *shape, std::span<const uint32_t> input_values, const size_t *slot_bytes, const size_t *output_bytes);

  // Seconds of a forward that computes `c` (whole shapes: of all, if it computes anything).
  double seconds(uint32_t node, const Closure &c) const;
  double forward_seconds() const;   // all first runs: everything computed
  double backward_seconds() const;
  bool any_in_place() const;        // outputs that may be placed over inputs
  uint64_t hash() const;            // structure and sizes
};

// Which nodes' backwards run, and what each does with the gradient of each of its inputs, given the roots.
enum class GradMode : uint8_t {
  none,        // not wanted
  first,       // takes memory and writes
  accumulate,  // adds to what is there
  over,        // placed over output 0's gradient, and writes
};
struct Root {
  uint32_t value;
  bool has_grad;  // false: the segment seeds itself
};
struct GradientMap {
  std::vector<uint8_t> runs;          // per node
  std::vector<uint8_t> value_has_grad;  // per value: some contribution or a root's gradient arrives
  std::vector<GradMode> mode;         // per Graph::node_inputs entry
  std::vector<Root> roots;
};
// Roots that are not given: every value that no node reads and that may have a gradient, with a gradient.
std::vector<Root> default_roots(const Graph &graph);
GradientMap derive_gradients(const Graph &graph, std::span<const Root> roots);

}  // namespace ckpt::plan
