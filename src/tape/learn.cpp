#include "tape/learn.h"

#include <algorithm>
#include <unordered_map>

#include "tape/tape.h"

namespace ckpt::tape {

using plan::Graph;
using plan::kNone;
using plan::Node;
using plan::Shape;
using plan::Value;

namespace {

bool cost_given(const Shape &s, uint32_t k) {
  return (s.item(k).flags & (k < s.slot_count() ? uint32_t{CKPT_SLOT_COST_GIVEN} : uint32_t{CKPT_OUTPUT_COST_GIVEN})) != 0;
}

// A member of a group that can also be made alone was measured with its group: its share of the group's bytes.
void share_alone_costs(const Graph &graph, uint32_t node, std::vector<double> *seconds) {
  const Shape &s = *graph.nodes[node].shape;
  for (uint32_t k = 0; k < s.slot_count(); ++k) {
    if (!(s.item(k).flags & CKPT_SLOT_ALONE) || cost_given(s, k)) continue;
    double group_seconds = 0, group_bytes = 0;
    bool measured = false;
    for (uint32_t m = 0; m < s.item_count(); ++m) {
      if (s.item(m).group != s.item(k).group) continue;
      group_bytes += static_cast<double>(graph.bytes_of(node, m));
      const double own = (*seconds)[graph.nodes[node].first_item + m];
      if (own < 0 || (m < s.slot_count() && (s.item(m).flags & CKPT_SLOT_ALONE))) continue;
      group_seconds += own;
      measured = true;
    }
    if (!measured) continue;
    const double share = group_bytes > 0 ? static_cast<double>(graph.bytes_of(node, k)) / group_bytes : 0;
    (*seconds)[graph.nodes[node].first_item + k] = group_seconds * share;
  }
}

// What is measured on an ALONE member belongs to its group's kernel: to its first member that is not ALONE.
void move_to_group(const Graph &graph, uint32_t node, std::vector<double> *seconds) {
  const Shape &s = *graph.nodes[node].shape;
  for (uint32_t k = 0; k < s.slot_count(); ++k) {
    if (!(s.item(k).flags & CKPT_SLOT_ALONE)) continue;
    for (uint32_t m = 0; m < s.item_count(); ++m) {
      if (s.item(m).group != s.item(k).group || (m < s.slot_count() && (s.item(m).flags & CKPT_SLOT_ALONE))) continue;
      double &from = (*seconds)[graph.nodes[node].first_item + k], &to = (*seconds)[graph.nodes[node].first_item + m];
      if (from > 0) to = std::max(0.0, to) + from;
      from = -1;
      break;
    }
  }
}

// Not measured: while it followed a plan whose costs are settled, say. The graph has them. Else the least of the steps that were
// measured: the first one also pays for pages and caches.
void merge_costs(const std::vector<double> &seconds, const std::vector<double> &backward, const Graph *before, Graph *graph) {
  for (uint32_t i = 0; i < graph->node_count(); ++i) {
    const Node &n = graph->nodes[i];
    for (uint32_t k = 0; k < n.shape->item_count(); ++k) {
      const size_t at = n.first_item + k;
      if (cost_given(*n.shape, k)) graph->item_seconds[at] = n.shape->item(k).cost_seconds;
      else if (seconds[at] >= 0) graph->item_seconds[at] = before != nullptr ? std::min(seconds[at], before->item_seconds[at]) : seconds[at];
    }
    if (backward[i] >= 0) graph->nodes[i].backward_seconds = before != nullptr ? std::min(backward[i], before->nodes[i].backward_seconds) : backward[i];
  }
}

}  // namespace

void Learner::guess_costs(Graph *graph) {
  constexpr double kSecondsPerByte = 1e-10;
  for (uint32_t i = 0; i < graph->node_count(); ++i) {
    const Shape &s = *graph->nodes[i].shape;
    double sum = 0;
    for (uint32_t k = 0; k < s.item_count(); ++k) {
      double &seconds = graph->item_seconds[graph->nodes[i].first_item + k];
      seconds = cost_given(s, k) ? s.item(k).cost_seconds : kSecondsPerByte * static_cast<double>(graph->bytes_of(i, k));
      sum += seconds;
    }
    graph->nodes[i].backward_seconds = 2 * sum;
  }
}

void Learner::measured(const Recording &recording, const Graph &graph, std::vector<double> *items, std::vector<double> *backward) {
  *items = recording.item_seconds_;
  *backward = recording.node_backward_seconds_;
  complete(graph, items, backward);
}

void Learner::complete(const Graph &graph, std::vector<double> *items, std::vector<double> *backward) {
  items->resize(graph.item_bytes.size(), -1);
  backward->resize(graph.node_count(), -1);
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Node &n = graph.nodes[i];
    const auto first = items->begin() + n.first_item, last = first + n.shape->item_count();
    if (std::all_of(first, last, [](double t) { return t < 0; })) continue;
    move_to_group(graph, i, items);
    share_alone_costs(graph, i, items);
    for (uint32_t k = 0; k < n.shape->item_count(); ++k)
      if (cost_given(*n.shape, k)) (*items)[n.first_item + k] = n.shape->item(k).cost_seconds;
  }
}

void Learner::take_costs(const Recording &recording, const Known *before, Graph *graph) {
  std::vector<double> seconds, backward;
  measured(recording, *graph, &seconds, &backward);
  merge_costs(seconds, backward, before != nullptr && before->measured_steps > 0 ? before->graph.get() : nullptr, graph);
}

KnownPtr Learner::learn(const Recording &r, const Known *before, bool replan, bool by_costs, bool costs_later) {
  const Graph &recorded = r.graph();
  auto known = std::make_shared<Known>();
  auto graph = std::make_shared<Graph>(recorded);
  const bool same = before != nullptr;
  bool same_reads = same;
  known->key = r.key();
  // Shapes live as long as the graph: those of the segments that were used.
  graph->shapes.clear();
  std::unordered_map<const Shape *, std::shared_ptr<const Shape>> alive;
  for (const auto &shape : recorded.shapes) alive.emplace(shape.get(), shape);
  if (same)
    for (const auto &shape : before->graph->shapes) alive.emplace(shape.get(), shape);
  for (uint32_t i = 0; i < r.calls_.size(); ++i) alive.emplace(r.calls_[i].segment->shape.get(), r.calls_[i].segment->shape);
  std::unordered_map<const Shape *, bool> used;
  for (const Node &n : graph->nodes)
    if (!std::exchange(used[n.shape], true)) graph->shapes.push_back(alive.at(n.shape));
  std::vector<uint8_t> read(graph->value_count(), 0);
  for (uint32_t v : graph->node_inputs) read[v] = 1;
  for (uint32_t v = 0; v < graph->value_count(); ++v) {
    Value &value = graph->values[v];
    const uint8_t flags = v < r.value_flags_.size() ? r.value_flags_[v] : uint8_t{0};
    if (value.producer == kNone) continue;
    value.read_at_end = (flags & kValueRead) != 0 || (!read[v] && !(flags & kValueReleased));
    if (!same) continue;
    value.read_at_end |= before->graph->values[v].read_at_end && !(flags & kValueReleased);
    same_reads &= value.read_at_end == before->graph->values[v].read_at_end;
  }
  bool larger = false;
  if (same) {  // never smaller than before: the plan serves both
    for (size_t k = 0; k < graph->item_bytes.size(); ++k) {
      larger |= graph->item_bytes[k] > before->graph->item_bytes[k];
      graph->item_bytes[k] = std::max(graph->item_bytes[k], before->graph->item_bytes[k]);
    }
    for (uint32_t v = 0; v < graph->value_count(); ++v) {
      Value &value = graph->values[v];
      const Value &old = before->graph->values[v];
      larger |= value.bytes > old.bytes || value.grad_bytes > old.grad_bytes;
      value.bytes = std::max(value.bytes, old.bytes);
      value.grad_bytes = std::max(value.grad_bytes, old.grad_bytes);
    }
    for (uint32_t i = 0; i < graph->node_count(); ++i) {
      const Shape &mine = *graph->nodes[i].shape, &old = *before->graph->nodes[i].shape;
      if (mine.forward_scratch() < old.forward_scratch() || mine.backward_scratch() < old.backward_scratch()) graph->nodes[i].shape = &old;
      larger |= mine.forward_scratch() > old.forward_scratch() || mine.backward_scratch() > old.backward_scratch();
    }
    for (const auto &shape : before->graph->shapes)
      if (std::find(graph->shapes.begin(), graph->shapes.end(), shape) == graph->shapes.end()) graph->shapes.push_back(shape);
  }
  if (!r.dry() && !costs_later) {
    take_costs(r, larger ? nullptr : before, graph.get());
    known->measured_steps = (same && !larger ? before->measured_steps : 0) + 1;
    known->ran = true;
  } else if (same && !larger) {
    graph->item_seconds = before->graph->item_seconds;
    for (uint32_t i = 0; i < graph->node_count(); ++i) graph->nodes[i].backward_seconds = before->graph->nodes[i].backward_seconds;
    known->measured_steps = before->measured_steps;
    known->ran = before->ran || !r.dry();
  } else {
    guess_costs(graph.get());
    known->ran = !r.dry();
  }
  known->gradients = plan::derive_gradients(*graph, r.gradients_->roots);
  const bool same_roots = same && known->gradients.runs == before->gradients.runs && known->gradients.mode == before->gradients.mode &&
                          known->gradients.roots.size() == before->gradients.roots.size();
  const bool works = same && !larger && same_roots && before->planned && !before->refused;
  const bool stays = works && (!replan || before->adopted);
  known->graph = std::move(graph);
  if (costs_later) known->drift = same && !larger ? before->drift : nullptr;
  else if (replan && by_costs && known->measured_steps >= 2 && !(stays && before->adopted)) known->drift = std::make_shared<Drift>(*known->graph);
  if (stays || (works && same_reads)) {
    known->planned = true;
    known->adopted = before->adopted;
    known->plan = before->plan;
    known->again = costs_later ? before->again : stays ? Again::no : Again::learnt;
  }
  return known;
}

KnownPtr Learner::learn_costs(const Known &before, std::vector<double> items, std::vector<double> backward, bool replan, bool by_costs) {
  auto known = std::make_shared<Known>(before);
  auto graph = std::make_shared<Graph>(*before.graph);
  complete(*graph, &items, &backward);
  merge_costs(items, backward, before.measured_steps > 0 ? before.graph.get() : nullptr, graph.get());
  known->graph = std::move(graph);
  ++known->measured_steps;
  const bool stays = known->planned && (!replan || known->adopted);
  if (replan && by_costs && known->measured_steps >= 2 && !known->adopted) known->drift = std::make_shared<Drift>(*known->graph);
  if (known->planned && !stays) known->again = Again::learnt;
  return known;
}

}  // namespace ckpt::tape
