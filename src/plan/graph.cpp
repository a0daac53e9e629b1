#include "plan/graph.h"

#include <algorithm>

namespace ckpt::plan {

uint32_t Graph::add_input(size_t bytes, size_t grad_bytes, bool caller, uint8_t grad) {
  Value v;
  v.item = static_cast<uint32_t>(inputs.size());
  v.bytes = bytes;
  v.grad_bytes = grad_bytes != 0 ? grad_bytes : bytes;
  v.caller = caller;
  v.grad = grad;
  values.push_back(v);
  inputs.push_back(value_count() - 1);
  return value_count() - 1;
}

uint32_t Graph::add_node(const Shape *shape, std::span<const uint32_t> input_values, const size_t *slot_bytes, const size_t *output_bytes) {
  Node node;
  node.shape = shape;
  node.first_input = static_cast<uint32_t>(node_inputs.size());
  node.first_value = value_count();
  node.first_item = static_cast<uint32_t>(item_bytes.size());
  node_inputs.insert(node_inputs.end(), input_values.begin(), input_values.end());
  for (uint32_t k = 0; k < shape->item_count(); ++k) {
    const Item &it = shape->item(k);
    const bool slot = k < shape->slot_count();
    const size_t *own = slot ? slot_bytes : output_bytes;
    const size_t bytes = own != nullptr ? own[slot ? k : k - shape->slot_count()] : it.bytes;
    item_bytes.push_back(bytes);
    item_seconds.push_back(it.cost_seconds);
    if (slot) continue;
    Value v;
    v.producer = node_count();
    v.item = k;
    v.bytes = bytes;
    v.grad_bytes = it.grad_bytes != 0 ? it.grad_bytes : bytes;
    v.caller = it.caller_memory;
    v.grad = (it.flags & CKPT_OUTPUT_NO_GRAD) ? CKPT_GRAD_NONE : CKPT_GRAD_ARENA;
    values.push_back(v);
  }
  if (shape->saved_holds_input()) holders.emplace(input_values[0], node_count());
  nodes.push_back(node);
  return node_count() - 1;
}

double Graph::seconds(uint32_t node, const Closure &c) const {
  if (c.todo.empty()) return 0;
  const Shape &s = *nodes[node].shape;
  const Bits counted = s.whole() ? s.all() : c.todo;
  double sum = 0;
  counted.each([&](uint32_t k) {
    const bool own_cost = k < s.slot_count() && (s.item(k).flags & CKPT_SLOT_ALONE);
    if (!own_cost || c.alone.has(k)) sum += seconds_of(node, k);
  });
  return sum;
}

double Graph::forward_seconds() const {
  double sum = 0;
  for (uint32_t i = 0; i < node_count(); ++i) sum += seconds(i, {nodes[i].shape->all(), {}});
  return sum;
}

double Graph::backward_seconds() const {
  double sum = 0;
  for (const Node &n : nodes) sum += n.backward_seconds;
  return sum;
}

bool Graph::any_in_place() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node &n) {
    for (uint32_t k = n.shape->slot_count(); k < n.shape->item_count(); ++k)
      if (n.shape->item(k).in_place_input != 0) return true;
    return false;
  });
}

uint64_t Graph::hash() const {
  Hasher h;
  h.add(node_count()).add(value_count()).add(inputs.size()).add(root_grads_in_arena);
  h.add(rule.alignment_bytes).add(rule.guard_bytes);
  // Sizes as they are in this graph: what a shape has where a use says otherwise is nobody's.
  for (const Node &n : nodes) h.add(n.shape->structure_hash()).add(n.shape->forward_scratch()).add(n.shape->backward_scratch()).add(n.first_value);
  for (uint32_t v : node_inputs) h.add(v);
  for (size_t b : item_bytes) h.add(b);
  for (const Value &v : values) h.add(v.bytes).add(v.grad_bytes).add(v.caller).add(v.grad).add(v.read_at_end);
  return h.value();
}

std::vector<Root> default_roots(const Graph &graph) {
  std::vector<uint8_t> read(graph.value_count(), 0);
  for (uint32_t v : graph.node_inputs) read[v] = 1;
  std::vector<Root> roots;
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    if (!read[v] && graph.values[v].producer != kNone && graph.values[v].grad != CKPT_GRAD_NONE) roots.push_back({v, true});
  return roots;
}

GradientMap derive_gradients(const Graph &graph, std::span<const Root> roots) {
  GradientMap map;
  map.runs.assign(graph.node_count(), 0);
  map.value_has_grad.assign(graph.value_count(), 0);
  map.mode.assign(graph.node_inputs.size(), GradMode::none);
  map.roots.assign(roots.begin(), roots.end());
  std::vector<uint8_t> seeded(graph.value_count(), 0);     // a root without gradient: its node runs
  std::vector<uint8_t> in_arena(graph.value_count(), 0);   // its gradient is a block of the arena
  for (const Root &r : roots) {
    seeded[r.value] = 1;
    if (r.has_grad) map.value_has_grad[r.value] = 1;
    if (r.has_grad && graph.root_grads_in_arena) in_arena[r.value] = 1;
  }
  for (uint32_t i = graph.node_count(); i-- > 0;) {
    const Node &n = graph.nodes[i];
    for (uint32_t k = 0; k < n.shape->output_count(); ++k)
      if (map.value_has_grad[n.first_value + k] || seeded[n.first_value + k]) map.runs[i] = 1;
    if (!map.runs[i]) continue;
    bool over_free = n.shape->output_count() > 0 && in_arena[n.first_value];
    for (uint32_t k = 0; k < n.shape->input_count(); ++k) {
      const uint32_t v = graph.node_inputs[n.first_input + k];
      const Value &value = graph.values[v];
      if (value.grad == CKPT_GRAD_NONE || (n.shape->input_flags(k) & CKPT_INPUT_NO_GRAD)) continue;
      GradMode &mode = map.mode[n.first_input + k];
      if (map.value_has_grad[v]) {
        // A root's gradient that the caller owns is copied into the arena by its first contributor, which then adds.
        mode = GradMode::accumulate;
        if (value.producer != kNone) in_arena[v] = 1;
        continue;
      }
      map.value_has_grad[v] = 1;
      mode = GradMode::first;
      if (value.grad != CKPT_GRAD_ARENA) continue;
      in_arena[v] = 1;
      const bool same_size = graph.rule.footprint(value.grad_bytes) == graph.rule.footprint(graph.values[n.shape->output_count() > 0 ? n.first_value : v].grad_bytes);
      // A value that the node names twice gets two contributions: the first would overwrite what the second still reads.
      const auto inputs = graph.inputs_of(i);
      const bool once = std::count(inputs.begin(), inputs.end(), v) == 1;
      if ((n.shape->input_flags(k) & CKPT_INPUT_GRAD_OVER_OUTPUT_0) && over_free && same_size && once) {
        mode = GradMode::over;
        over_free = false;
      }
    }
  }
  return map;
}

}  // namespace ckpt::plan
