#include "plan/exact/chain.h"

#include <algorithm>

namespace ckpt::plan::exact {
namespace {

Bytes footprint(const Graph &graph, size_t bytes) { return static_cast<Bytes>(graph.rule.footprint(bytes)); }

// Who reads each value: kNone nobody, node_count() several.
std::vector<uint32_t> readers(const Graph &graph) {
  std::vector<uint32_t> reader(graph.value_count(), kNone);
  for (uint32_t i = 0; i < graph.node_count(); ++i)
    for (uint32_t v : graph.inputs_of(i)) reader[v] = reader[v] == kNone || reader[v] == i ? i : graph.node_count();
  return reader;
}

// Boundary i as node i - 1 (or the caller) makes it for node i.
bool collect(const Graph &graph, const std::vector<uint32_t> &reader, Chain *chain) {
  const uint32_t n = graph.node_count();
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Value &value = graph.values[v];
    if (value.producer == kNone) {
      if (value.caller) continue;
      if (reader[v] != 0) return false;
      chain->boundary[0].push_back(v);
      continue;
    }
    const uint32_t i = value.producer;
    Link &link = chain->links[i];
    link.first_outputs.set(value.item);
    const bool last = i + 1 == n, handed_on = reader[v] == i + 1;
    if (reader[v] != kNone && !handed_on) return false;
    if (value.caller) {
      link.given.set(value.item);
      if (handed_on) link.wall = true;
      continue;
    }
    if (!handed_on && !last) return false;
    if (value.read_at_end && !last) return false;
    link.outputs.set(value.item);
    chain->boundary[i + 1].push_back(v);
    if (graph.nodes[i].shape->keep().has(value.item)) link.wall = true;
  }
  for (uint32_t i = 1; i < n; ++i) {
    const auto inputs = graph.inputs_of(i);
    if (std::none_of(inputs.begin(), inputs.end(), [&](uint32_t v) { return graph.values[v].producer == i - 1; })) return false;
  }
  return true;
}

// A boundary stays as a whole or goes as a whole.
bool all_or_none(const Graph &graph, uint32_t i, const Link &link) {
  const Shape &s = *graph.nodes[i].shape;
  const Bits keep = s.keep() & link.outputs;
  return keep.empty() || keep == link.outputs;
}

bool gradients_of(const Graph &graph, const GradientMap &gradients, Chain *chain) {
  const uint32_t n = graph.node_count();
  for (uint32_t i = 0; i < n; ++i) {
    const Node &node = graph.nodes[i];
    const auto inputs = graph.inputs_of(i);
    std::vector<uint32_t> counted;  // a value that the node names twice has one gradient
    for (uint32_t k = 0; k < inputs.size(); ++k) {
      const uint32_t v = inputs[k];
      const GradMode mode = gradients.mode[node.first_input + k];
      if (mode == GradMode::none || graph.values[v].grad != CKPT_GRAD_ARENA) continue;
      if (std::find(counted.begin(), counted.end(), v) != counted.end()) continue;
      counted.push_back(v);
      if (graph.values[v].producer == kNone && i > 0) return false;  // it would live from here to the end
      const Bytes bytes = footprint(graph, graph.values[v].grad_bytes);
      chain->g[i] += bytes;
      if (mode != GradMode::over) chain->g_new[i] += bytes;
    }
  }
  for (const Root &r : gradients.roots) {
    if (!r.has_grad || !graph.root_grads_in_arena) continue;
    if (graph.values[r.value].producer != n - 1) return false;
    chain->g[n] += footprint(graph, graph.values[r.value].grad_bytes);
  }
  return true;
}

}  // namespace

std::optional<Chain> as_chain(const Graph &graph, const GradientMap &gradients) {
  const uint32_t n = graph.node_count();
  if (n == 0) return std::nullopt;
  Chain c;
  c.graph = &graph;
  c.links.resize(n);
  c.boundary.resize(n + 1);
  c.x.assign(n + 1, 0);
  c.g.assign(n + 1, 0);
  c.g_new.assign(n + 1, 0);
  if (!collect(graph, readers(graph), &c)) return std::nullopt;
  for (uint32_t i = 0; i <= n; ++i)
    for (uint32_t v : c.boundary[i]) c.x[i] += footprint(graph, graph.values[v].bytes);
  for (uint32_t i = 0; i < n; ++i) {
    Link &link = c.links[i];
    const Shape &s = *graph.nodes[i].shape;
    if (!all_or_none(graph, i, link)) return std::nullopt;
    link.rerun = s.replayable();
    link.runs = gradients.runs[i] != 0;
    if (link.runs) {
      link.reads_output = !(s.backward_outputs() & link.outputs).empty();
      const auto inputs = graph.inputs_of(i);
      for (uint32_t k = 0; k < inputs.size(); ++k)
        if (s.backward_reads_input(k) && !graph.values[inputs[k]].caller) link.reads_input = true;
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    // What a KEEP slot holds stays with it: as if its producer had marked it.
    const Shape &s = *graph.nodes[i].shape;
    if (!s.saved_holds_input() || graph.values[graph.inputs_of(i)[0]].caller) continue;
    c.links[i].holds_input = true;
    if (s.needed().has(0)) c.links[i].reads_input = true;
    if (!s.keep().has(0)) continue;
    c.links[i].reads_input = true;
    if (i > 0) c.links[i - 1].wall = true;
  }
  if (!gradients_of(graph, gradients, &c)) return std::nullopt;
  // Sums of a few of these stay below what stands for "no room".
  Bytes total = 0;
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t k = 0; k < graph.nodes[i].shape->item_count(); ++k)
      if (total += footprint(graph, graph.bytes_of(i, k)); total > kNoRoom / 8) return std::nullopt;
  for (uint32_t i = 0; i < n; ++i)
    if (const Shape &s = *graph.nodes[i].shape; (total += footprint(graph, s.forward_scratch()) + footprint(graph, s.backward_scratch())) > kNoRoom / 8) return std::nullopt;
  for (uint32_t i = 0; i <= n; ++i)
    if ((total += c.x[i] + c.g[i]) > kNoRoom / 8) return std::nullopt;
  return c;
}

}  // namespace ckpt::plan::exact
