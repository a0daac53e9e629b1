#include <algorithm>

#include "plan/exact/tables.h"

namespace ckpt::plan::exact {
namespace {

constexpr uint32_t kExactSlots = 16;

double seconds_to(const Graph &graph, uint32_t node, const Bits &want, const Bits &live) {
  return graph.seconds(node, graph.nodes[node].shape->closure(want, live));
}

// Nested sets, from all to none: at each step the slot goes whose absence costs the least per byte.
void greedy(const Graph &graph, uint32_t node, const Bits &sticky, const Bits &free, std::vector<Bits> *sets) {
  const Shape &s = *graph.nodes[node].shape;
  Bits kept = sticky | free;
  while (!(kept - sticky).empty()) {
    sets->push_back(kept);
    double best = 0;
    uint32_t worst = kNone;
    (kept - sticky).each([&](uint32_t k) {
      const Bits rest = kept - Bits::one(k);
      const double cost = seconds_to(graph, node, rest | s.outputs(), Bits{}) + seconds_to(graph, node, s.needed(), rest);
      const double score = cost / (static_cast<double>(graph.item_footprint(node, k)) + 1);
      if (worst != kNone && score >= best) return;
      best = score;
      worst = k;
    });
    kept.clear(worst);
  }
  sets->push_back(sticky);
}

// From none: the slot comes that saves the most seconds per byte.
void greedy_up(const Graph &graph, uint32_t node, const Bits &sticky, const Bits &free, std::vector<Bits> *sets) {
  const Shape &s = *graph.nodes[node].shape;
  Bits kept = sticky;
  for (Bits rest = free; !rest.empty();) {
    double best = 0;
    uint32_t next = kNone;
    rest.each([&](uint32_t k) {
      const double saved = -seconds_to(graph, node, s.needed(), kept | Bits::one(k));
      const double score = saved / (static_cast<double>(graph.item_footprint(node, k)) + 1);
      if (next != kNone && score <= best) return;
      best = score;
      next = k;
    });
    kept.set(next);
    rest.clear(next);
    sets->push_back(kept);
  }
}

}  // namespace

std::vector<Bits> slot_sets(const Graph &graph, uint32_t node, const Bits &sticky, const Bits &barred) {
  const Shape &s = *graph.nodes[node].shape;
  const Bits free = s.slots() - sticky - barred;
  std::vector<Bits> sets;
  std::vector<uint32_t> slots;
  free.each([&](uint32_t k) { slots.push_back(k); });
  if (slots.size() <= kExactSlots) {
    for (uint32_t mask = 0; mask < uint32_t{1} << slots.size(); ++mask) {
      Bits set = sticky;
      for (size_t b = 0; b < slots.size(); ++b)
        if (mask >> b & 1) set.set(slots[b]);
      sets.push_back(set);
    }
    return sets;
  }
  greedy(graph, node, sticky, free, &sets);
  greedy_up(graph, node, sticky, free, &sets);
  const size_t nested = sets.size();
  for (size_t k = 0; k < nested && slots.size() <= 64; ++k)
    for (uint32_t slot : slots) {
      Bits set = sets[k];
      if (set.has(slot)) set.clear(slot);
      else set.set(slot);
      sets.push_back(set);
    }
  return sets;
}

std::vector<std::vector<Bits>> sticky_families(const Chain &chain, uint32_t limit) {
  const Graph &graph = *chain.graph;
  struct Item {
    double bytes_per_second;
    uint32_t node, slot;
  };
  std::vector<Item> items;
  std::vector<Bits> keep;
  for (uint32_t i = 0; i < chain.size(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    keep.push_back(s.keep() & s.slots());
    if (s.whole() || !chain.links[i].rerun || !chain.links[i].runs) continue;
    (s.slots() - s.keep() - s.again()).each([&](uint32_t k) {
      const double seconds = graph.seconds_of(i, k);
      if (seconds <= 0 || (k == 0 && chain.links[i].holds_input)) return;
      items.push_back({static_cast<double>(graph.item_footprint(i, k)) / seconds, i, k});
    });
  }
  std::stable_sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return a.bytes_per_second < b.bytes_per_second; });
  std::vector<std::vector<Bits>> families{keep};
  // As many thresholds as there are values, or spread evenly over the slots.
  std::vector<size_t> ends;
  for (size_t k = 1; k <= items.size(); ++k)
    if (k == items.size() || items[k].bytes_per_second > items[k - 1].bytes_per_second) ends.push_back(k);
  const size_t wanted = limit > 0 ? limit - 1 : 0;
  std::vector<Bits> now = keep;
  size_t taken = 0;
  for (size_t e = 0; e < ends.size(); ++e) {
    for (; taken < ends[e]; ++taken) now[items[taken].node].set(items[taken].slot);
    const bool all = ends.size() <= wanted;
    if (all || (wanted > 0 && (e + 1) * wanted / ends.size() != e * wanted / ends.size())) families.push_back(now);
  }
  return families;
}

}  // namespace ckpt::plan::exact
