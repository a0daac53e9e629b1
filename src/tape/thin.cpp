// An unknown recording that runs short drops what it can make again: slots first, the largest node's first; then
// boundaries, every second one, then every second of the rest, and so on (as an online checkpointing scheme thins its
// snapshots: Wang, Moin, Iaccarino 2009). It goes by bytes and numbers alone, so equal ranks drop the same.
#include <algorithm>

#include "tape/tape.h"

namespace ckpt::tape {

using plan::kNone;
using plan::Shape;
using plan::Value;

namespace {

size_t slot_bytes(const plan::Graph &graph, uint32_t node, const Bits &slots) {
  size_t sum = 0;
  slots.each([&](uint32_t k) { sum += graph.item_footprint(node, k); });
  return sum;
}

}  // namespace

void Recording::note_droppable(uint32_t node) {
  const Shape &s = *graph_->nodes[node].shape;
  const size_t bytes = slot_bytes(*graph_, node, (machine_.state().live[node] & s.slots()) - s.keep());
  if (bytes > 0) droppable_.push({bytes, ~node});
}

bool Recording::droppable_value(uint32_t value) const {
  const Value &v = graph_->values[value];
  if (v.caller || v.producer == kNone || v.producer >= next_node_ || !machine_.value_live(value)) return false;
  if (graph_->nodes[v.producer].shape->keep().has(v.item) || (value_flags_[value] & kValueHeld)) return false;
  return std::find(protected_.begin(), protected_.end(), value) == protected_.end();
}

// One step; false: there is nothing left to drop.
bool Recording::thin() {
  while (!droppable_.empty()) {
    const auto [bytes, inverse] = droppable_.top();
    droppable_.pop();
    const uint32_t node = ~inverse;
    const Shape &s = *graph_->nodes[node].shape;
    const Bits slots = (machine_.state().live[node] & s.slots()) - s.keep();
    if (slots.empty() || slot_bytes(*graph_, node, slots) != bytes) continue;
    if (machine_.drop(node, slots)) continue;
    ++counters_.thinned;
    trace(CKPT_ACTION_DROP, node, false);
    return true;
  }
  // Level l: nodes that are an odd multiple of 2^l, counted from 1; node 0 has no level below 32 and goes last.
  for (uint32_t level = 0; level < 32; ++level) {
    if (thin_cursor_.size() <= level) thin_cursor_.push_back(0);
    const uint64_t stride = uint64_t{2} << level;
    for (uint64_t at = thin_cursor_[level] != 0 ? thin_cursor_[level] : stride / 2;; at += stride) {
      const uint64_t node = at - 1;
      if (node >= next_node_) break;
      const plan::Node &n = graph_->nodes[node];
      for (uint32_t k = 0; k < n.shape->output_count(); ++k) {
        const uint32_t v = n.first_value + k;
        if (!droppable_value(v) || machine_.free_value(v)) continue;
        ++counters_.thinned;
        trace(CKPT_ACTION_FREE, v, false);
        return true;
      }
      // Nothing here any more, unless it is only protected or held for the moment.
      bool later = false;
      for (uint32_t k = 0; k < n.shape->output_count(); ++k) later |= machine_.value_live(n.first_value + k) && !graph_->values[n.first_value + k].caller;
      if (!later && (thin_cursor_[level] == at || thin_cursor_[level] == 0)) thin_cursor_[level] = static_cast<uint32_t>(at + stride);
    }
    if (stride / 2 > next_node_) break;
  }
  return false;
}

}  // namespace ckpt::tape
