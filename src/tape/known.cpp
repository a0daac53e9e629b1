#include "tape/known.h"

#include <algorithm>

namespace ckpt::tape {

using plan::Graph;
using plan::kNone;
using plan::Node;
using plan::Shape;
using plan::Value;

Match match(const Graph &graph, uint32_t, uint32_t value, const InputEvent &event) {
  if (value >= graph.value_count()) return Match::no;
  const Value &v = graph.values[value];
  if (v.producer != kNone || v.grad != event.grad || event.bytes > v.bytes || event.grad_bytes > v.grad_bytes) return Match::no;
  return event.bytes == v.bytes && event.grad_bytes == v.grad_bytes ? Match::exact : Match::smaller;
}

namespace {

// Sizes of a use against those that the graph has for this node.
Match match_sizes(const Graph &graph, uint32_t node, const NodeEvent &event) {
  const Shape &mine = *event.shape, &theirs = *graph.nodes[node].shape;
  if (mine.forward_scratch() > theirs.forward_scratch() || mine.backward_scratch() > theirs.backward_scratch()) return Match::no;
  bool smaller = mine.forward_scratch() < theirs.forward_scratch() || mine.backward_scratch() < theirs.backward_scratch();
  for (uint32_t k = 0; k < mine.item_count(); ++k) {
    const size_t bytes = event.bytes(k), known = graph.bytes_of(node, k);
    if (bytes > known) return Match::no;
    smaller |= bytes < known;
    if (k < mine.slot_count()) continue;
    const size_t grad = event.grad_bytes(k);
    const size_t known_grad = graph.values[graph.value_of(node, k)].grad_bytes;
    if (grad > known_grad) return Match::no;
    smaller |= grad < known_grad;
  }
  return smaller ? Match::smaller : Match::exact;
}

}  // namespace

Match match(const Graph &graph, uint32_t node, uint32_t value, const NodeEvent &event) {
  if (node >= graph.node_count()) return Match::no;
  const Node &n = graph.nodes[node];
  if (n.first_value != value || n.shape->input_count() != event.inputs.size()) return Match::no;
  if (n.shape != event.shape && n.shape->structure_hash() != event.shape->structure_hash()) return Match::no;
  if (!std::equal(event.inputs.begin(), event.inputs.end(), graph.inputs_of(node).begin())) return Match::no;
  return match_sizes(graph, node, event);
}

Graph prefix(const Graph &graph, uint32_t nodes, uint32_t values) {
  Graph g;
  g.rule = graph.rule;
  g.root_grads_in_arena = graph.root_grads_in_arena;
  g.shapes = graph.shapes;
  g.nodes.assign(graph.nodes.begin(), graph.nodes.begin() + nodes);
  const bool whole = nodes == graph.node_count();
  const size_t inputs = whole ? graph.node_inputs.size() : graph.nodes[nodes].first_input;
  const size_t items = whole ? graph.item_bytes.size() : graph.nodes[nodes].first_item;
  g.node_inputs.assign(graph.node_inputs.begin(), graph.node_inputs.begin() + static_cast<ptrdiff_t>(inputs));
  g.item_bytes.assign(graph.item_bytes.begin(), graph.item_bytes.begin() + static_cast<ptrdiff_t>(items));
  g.item_seconds.assign(graph.item_seconds.begin(), graph.item_seconds.begin() + static_cast<ptrdiff_t>(items));
  g.values.assign(graph.values.begin(), graph.values.begin() + values);
  for (uint32_t v : graph.inputs)
    if (v < values) g.inputs.push_back(v);
  return g;
}

bool same_prefix(const Graph &a, const Graph &b, uint32_t nodes, uint32_t values) {
  if (nodes > a.node_count() || nodes > b.node_count() || values > a.value_count() || values > b.value_count()) return false;
  for (uint32_t i = 0; i < nodes; ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    if (x.shape->structure_hash() != y.shape->structure_hash() || x.first_value != y.first_value) return false;
    const auto p = a.inputs_of(i), q = b.inputs_of(i);
    if (!std::equal(p.begin(), p.end(), q.begin(), q.end())) return false;
  }
  for (uint32_t v = 0; v < values; ++v)
    if (a.values[v].producer != b.values[v].producer || a.values[v].grad != b.values[v].grad) return false;
  return true;
}

bool same_structure(const Graph &a, const Graph &b) {
  return a.node_count() == b.node_count() && a.value_count() == b.value_count() && same_prefix(a, b, a.node_count(), a.value_count());
}

KnownPtr KnownCache::find(uint64_t key) const {
  for (const KnownPtr &k : all_)
    if (k->key == key) return k;
  return nullptr;
}

KnownPtr KnownCache::find_same(uint64_t key, const Graph &graph) const {
  for (const KnownPtr &k : all_)
    if (k->key == key && same_structure(*k->graph, graph)) return k;
  return nullptr;
}

void KnownCache::put(KnownPtr known, const Known *replaced) {
  if (replaced != nullptr) std::erase_if(all_, [&](const KnownPtr &k) { return k.get() == replaced; });
  all_.insert(all_.begin(), std::move(known));
  if (all_.size() > kCapacity) all_.pop_back();
}

bool KnownCache::holds(const Known *known) const {
  return std::any_of(all_.begin(), all_.end(), [&](const KnownPtr &k) { return k.get() == known; });
}

void KnownCache::touch(const Known *known) {
  for (size_t k = 1; k < all_.size(); ++k)
    if (all_[k].get() == known) {
      std::rotate(all_.begin(), all_.begin() + static_cast<ptrdiff_t>(k), all_.begin() + static_cast<ptrdiff_t>(k) + 1);
      return;
    }
}

}  // namespace ckpt::tape
