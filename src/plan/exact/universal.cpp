#include "plan/exact/universal.h"

#include <algorithm>
#include <bit>
#include <map>

#include "plan/exact/tables.h"

namespace ckpt::plan::exact {
namespace {

constexpr uint32_t kExactSlots = 16;

Bytes slot_bytes(const Graph &graph, uint32_t i, const Bits &slots) {
  Bytes sum = 0;
  slots.each([&](uint32_t k) { sum += static_cast<Bytes>(graph.item_footprint(i, k)); });
  return sum;
}

// What is made at least once if `want` is, whichever slots are made by themselves: all that only a kernel makes.
Bits forced(const Shape &s, const Bits &want) {
  Bits alone;
  for (uint32_t k = 0; k < s.slot_count(); ++k)
    if (s.item(k).flags & CKPT_SLOT_ALONE) alone.set(k);
  Bits out, open = want - alone;
  while (!open.empty()) {
    Bits found;
    open.each([&](uint32_t k) {
      out.set(k);
      found |= s.item(k).reads;
      for (uint32_t m = 0; s.item(k).group != 0 && m < s.item_count(); ++m)
        if (s.item(m).group == s.item(k).group) {
          found.set(m);
          found |= s.item(m).reads;
        }
    });
    open = found - out - alone;
  }
  return out;
}

// Slots that can also be made by themselves, and for which nothing but that or their group's kernel is a way to make them, and that the
// cheaper one: whatever a program does, it pays what closure() says.
bool one_way(const Graph &graph, uint32_t i) {
  const Shape &s = *graph.nodes[i].shape;
  for (uint32_t k = 0; k < s.slot_count(); ++k) {
    if (!(s.item(k).flags & CKPT_SLOT_ALONE)) continue;
    double kernel = 0;
    for (uint32_t m = 0; m < s.item_count(); ++m) {
      if (m == k || s.item(m).group != s.item(k).group || s.item(m).group == 0) continue;
      if (m < s.slot_count() && (s.item(m).flags & CKPT_SLOT_ALONE)) return false;
      kernel += graph.seconds_of(i, m);
    }
    if (!s.item(k).reads.empty() || graph.seconds_of(i, k) > kernel) return false;
  }
  return true;
}

std::vector<uint64_t> kind_key(const Chain &chain, uint32_t i) {
  const Graph &graph = *chain.graph;
  const Link &l = chain.links[i];
  const bool held = i + 1 < chain.size() && chain.links[i + 1].reads_input;
  std::vector<uint64_t> key{graph.nodes[i].shape->hash(), static_cast<uint64_t>(chain.x[i + 1]),
                            uint64_t{l.wall} | uint64_t{l.runs} << 1 | uint64_t{l.reads_output} << 2 | uint64_t{held} << 3 | uint64_t{l.rerun} << 4 | uint64_t{i + 1 == chain.size()} << 5};
  for (uint32_t w = 0; w < Bits::kWords; ++w) key.insert(key.end(), {l.first_outputs.word(w), l.outputs.word(w), l.given.word(w)});
  for (uint32_t k = 0; k < graph.nodes[i].shape->item_count(); ++k) {
    key.push_back(graph.bytes_of(i, k));
    key.push_back(std::bit_cast<uint64_t>(graph.seconds_of(i, k)));
  }
  return key;
}

}  // namespace

UniversalBound::UniversalBound(const Chain &chain) {
  const Graph &graph = *chain.graph;
  const uint32_t n = chain.size();
  std::map<std::vector<uint64_t>, uint32_t> known;
  for (uint32_t i = 0; i < n; ++i) {
    const auto [at, fresh] = known.emplace(kind_key(chain, i), static_cast<uint32_t>(segments_.size()));
    if (fresh) {
      Segment s;
      s.output_needed = chain.links[i].reads_output || (i + 1 < n && chain.links[i + 1].reads_input);
      add_choices(chain, i, &s);
      segments_.push_back(std::move(s));
    }
    kind_.push_back(at->second);
    base_seconds_ += segments_[at->second].base;
    forced_.push_back(i + 1 < n && chain.links[i + 1].reads_input);
    const Shape &shape = *graph.nodes[i].shape;
    const Link &l = chain.links[i];
    Bytes base = chain.g[i + 1] + chain.g_new[i] + (l.reads_output ? chain.x[i + 1] : 0);
    if (l.runs) {
      base += slot_bytes(graph, i, shape.needed());
      if (shape.backward_scratch() != 0) base += static_cast<Bytes>(graph.rule.footprint(shape.backward_scratch()));
    }
    if (chain.links[0].reads_input) base += chain.x[0];
    base_.push_back(base);
  }
  std::vector<double> rates;
  for (const Segment &s : segments_) {
    double most = 0, bytes = 0;
    for (const Choice &c : s.choices) {
      most = std::max(most, c.seconds);
      if (c.seconds <= 0 && (bytes == 0 || c.bytes < bytes)) bytes = c.bytes;
    }
    for (const Choice &c : s.choices)
      if (c.seconds > 0 && c.bytes < bytes) rates.push_back(c.seconds / (bytes - c.bytes));
  }
  std::sort(rates.begin(), rates.end());
  constexpr size_t kPrices = 16;
  for (size_t k = 0; k <= kPrices && !rates.empty(); ++k) prices_.push_back(rates[k * (rates.size() - 1) / kPrices]);
  prices_.erase(std::unique(prices_.begin(), prices_.end()), prices_.end());
  for (double price : prices_) {
    std::vector<double> sums(n + 1, 0);
    for (uint32_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + least(i, price, false);
    sums_.push_back(std::move(sums));
  }
}

void UniversalBound::add_choices(const Chain &chain, uint32_t i, Segment *out) const {
  const Graph &graph = *chain.graph;
  const Shape &s = *graph.nodes[i].shape;
  const Link &l = chain.links[i];
  const bool own_cost = !one_way(graph, i);
  const Bits needed = l.runs ? s.needed() : Bits{}, keep = s.keep() & s.slots();
  const Bits barred = (i + 1 == chain.size() ? Bits{} : s.again()) | (l.rerun ? Bits{} : s.slots() - keep);
  // Two ways to make one slot, or too many sets: nothing is claimed of this segment.
  if (own_cost || (s.slots() - keep - barred).count() > kExactSlots) {
    out->choices.push_back({static_cast<double>(slot_bytes(graph, i, keep)), 0, true});
    const Bits made = own_cost ? forced(s, needed | l.first_outputs) : s.closure(needed | l.first_outputs, Bits{}).todo;
    out->base = graph.seconds(i, {made, {}});
    return;
  }
  const auto seconds = [&](const Bits &want, const Bits &live) { return graph.seconds(i, s.closure(want, live)); };
  const double x = static_cast<double>(chain.x[i + 1]);
  double base = 1e300;
  for (const Bits &set : slot_sets(graph, i, keep, barred))
    for (const bool output : {false, true}) {
      if ((output && !out->output_needed && !l.wall) || (!output && l.wall)) continue;
      const Bits live = set | l.given | (output ? l.outputs : Bits{});
      const Bits want = needed | (out->output_needed && !output ? l.outputs : Bits{});
      const double total = seconds(set | l.first_outputs, Bits{}) + seconds(want, live);
      base = std::min(base, total);
      out->choices.push_back({static_cast<double>(slot_bytes(graph, i, set)) + (output ? x : 0), total, output});
    }
  out->base = base;
  for (Choice &c : out->choices) c.seconds = std::max(0.0, c.seconds - base);
  // Only what no other choice covers.
  std::stable_sort(out->choices.begin(), out->choices.end(), [](const Choice &a, const Choice &b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds; });
  std::vector<Choice> best;
  for (const bool output : {false, true}) {
    double least_seconds = 1e300;
    for (const Choice &c : out->choices)
      if (c.output == output && c.seconds < least_seconds) {
        least_seconds = c.seconds;
        best.push_back(c);
      }
  }
  out->choices = std::move(best);
}

double UniversalBound::least(uint32_t i, double price, bool with_output) const {
  double best = 1e300, any = 1e300;
  for (const Choice &c : segments_[kind_[i]].choices) {
    const double cost = c.seconds + price * c.bytes;
    any = std::min(any, cost);
    if (!with_output || c.output) best = std::min(best, cost);
  }
  return best < 1e299 ? best : any < 1e299 ? any : 0;
}

double UniversalBound::at(uint32_t t, double price, double room) const {
  double sum = -price * room;
  for (uint32_t i = 0; i < t; ++i) sum += least(i, price, i + 1 == t && forced_[i]);
  return sum;
}

double UniversalBound::seconds(Bytes load) const {
  double best = 0;
  uint32_t best_t = 0;
  size_t best_k = 0;
  for (uint32_t t = 0; t < kind_.size(); ++t) {
    if (base_[t] > load) return 1e300;
    const double room = static_cast<double>(load - base_[t]);
    for (size_t k = 0; k < prices_.size(); ++k) {
      const double bound = sums_[k][t] - prices_[k] * room;
      if (bound > best) best = bound, best_t = t, best_k = k;
    }
  }
  if (prices_.empty()) return best;
  // Around the best price the bound is concave: narrow it down.
  const double room = static_cast<double>(load - base_[best_t]);
  double low = best_k > 0 ? prices_[best_k - 1] : 0, high = best_k + 1 < prices_.size() ? prices_[best_k + 1] : prices_[best_k] * 2;
  for (int k = 0; k < 40; ++k) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3, at_a = at(best_t, a, room), at_b = at(best_t, b, room);
    best = std::max({best, at_a, at_b});
    if (at_a < at_b) low = a;
    else high = b;
  }
  return best;
}

}  // namespace ckpt::plan::exact
