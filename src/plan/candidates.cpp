#include "plan/candidates.h"

#include <algorithm>
#include <bit>

namespace ckpt::plan {
namespace {

constexpr uint32_t kMaxDrops = 16, kMaxChoices = 8;

// What crosses a cut 1, 2, 4, ... nodes before the last: the first pass's part of Again::halves.
std::vector<uint8_t> values_across_halves(const Graph &graph) {
  std::vector<uint8_t> keep(graph.value_count(), 0);
  const uint32_t last = graph.node_count() - 1;
  for (uint32_t i = 0; i < graph.node_count(); ++i)
    for (uint32_t v : graph.inputs_of(i)) {
      const uint32_t producer = graph.values[v].producer;
      if (producer != kNone && std::bit_floor(last - producer) > last - i) keep[v] = 1;
    }
  return keep;
}

}  // namespace

Candidates::Candidates(const Graph &graph, const GradientMap &gradients) : graph_(graph), gradients_(gradients), steps_(keep_order(graph, gradients)) {
  for (const Node &n : graph.nodes) all_.push_back(slots_for_all(*n.shape));
  find_drops();
  find_choices();
  sum_bytes();
}

// The cheapest slot to do without, the cheapest that gives more bytes than that, and so on. Among equals the first node's:
// it is away for the longest time.
void Candidates::find_drops() {
  std::vector<Drop> all;
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    if (!gradients_.runs[i]) continue;
    const Bits held = all_[i] | s.outputs();
    const double now = graph_.seconds(i, s.closure(s.needed(), held));
    (all_[i] - s.keep()).each([&](uint32_t k) {
      if (graph_.item_footprint(i, k) > 0) all.push_back({i, k, graph_.item_footprint(i, k), graph_.seconds(i, s.closure(s.needed(), held - Bits::one(k))) - now});
    });
  }
  std::stable_sort(all.begin(), all.end(), [](const Drop &a, const Drop &b) { return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes > b.bytes; });
  for (const Drop &d : all)
    if (drops_.size() < kMaxDrops && (drops_.empty() || d.bytes > drops_.back().bytes)) drops_.push_back(d);
}

void Candidates::find_choices() {
  std::vector<uint8_t> read(graph_.value_count(), 0);
  for (uint32_t v : graph_.node_inputs) read[v] = 1;
  for (uint32_t i = 0; i < graph_.node_count() && choices_.size() <= kMaxChoices; ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    if (gradients_.runs[i]) (all_[i] - s.keep()).each([&](uint32_t k) { choices_.push_back({i, k, kNone}); });
    (s.outputs() - s.keep() - s.caller()).each([&](uint32_t k) {
      if (read[graph_.value_of(i, k)]) choices_.push_back({i, kNone, graph_.value_of(i, k)});
    });
  }
  if (choices_.size() > kMaxChoices) choices_.clear();
}

uint32_t Candidates::size(Order order) const {
  switch (order) {
    case Order::by_rate: return static_cast<uint32_t>(steps_.size()) + 1;
    case Order::from_end: return graph_.node_count() + 1;
    case Order::all_but: return static_cast<uint32_t>(drops_.size());
    case Order::each: return choices_.empty() ? 0 : uint32_t{1} << choices_.size();
  }
  return 0;
}

std::vector<uint8_t> Candidates::kept_values(const Family &family) const {
  if (family.group == 1) return std::vector<uint8_t>(graph_.value_count(), 1);
  if (family.group > 1) return values_across_groups(graph_, family.group);
  if (family.again == Again::halves) return values_across_halves(graph_);
  return std::vector<uint8_t>(graph_.value_count(), 0);
}

Policy Candidates::policy(const Family &family, uint32_t member) const {
  Policy p;
  p.again = family.again;
  p.keep_value = kept_values(family);
  const bool everything = family.order == Order::all_but || family.order == Order::each;
  p.keep_slots.assign(graph_.node_count(), Bits{});
  if (everything) p.keep_slots = all_;
  switch (family.order) {
    case Order::by_rate:
      for (uint32_t k = 0; k < member; ++k) p.keep_slots[steps_[k].node] = steps_[k].keep;
      break;
    case Order::from_end:
      for (uint32_t i = graph_.node_count() - member; i < graph_.node_count(); ++i) p.keep_slots[i] = all_[i];
      break;
    case Order::all_but: p.keep_slots[drops_[member].node].clear(drops_[member].slot); break;
    case Order::each:
      for (uint32_t k = 0; k < choices_.size(); ++k) {
        if (member >> k & 1) continue;
        if (choices_[k].slot == kNone) p.keep_value[choices_[k].value] = 0;
        else p.keep_slots[choices_[k].node].clear(choices_[k].slot);
      }
      break;
  }
  return p;
}

uint32_t Candidates::strategy(const Family &family, uint32_t member, uint32_t *k) const {
  *k = 0;
  const uint32_t n = graph_.node_count();
  const bool nothing_kept = member == 0 && ordered(family.order);
  if (family.group == 1 && family.order == Order::from_end && member > 0) {
    if (member == n) return CKPT_STRATEGY_STORE_ALL;
    *k = n - member;
    return CKPT_STRATEGY_BLOCK;
  }
  if (!nothing_kept) return CKPT_STRATEGY_AUTO;
  if (family.group == 1) return CKPT_STRATEGY_EVERY_SEGMENT;
  if (family.group == 0) return family.again == Again::nothing ? CKPT_STRATEGY_FULL : CKPT_STRATEGY_AUTO;
  if (family.again != Again::everything) return CKPT_STRATEGY_AUTO;
  if (family.group == sqrt_group(n)) return CKPT_STRATEGY_SQRT;
  *k = family.group;
  return CKPT_STRATEGY_UNIFORM;
}

void Candidates::sum_bytes() {
  bytes_by_rate_.assign(1, 0);
  for (const KeepStep &step : steps_) bytes_by_rate_.push_back(bytes_by_rate_.back() + static_cast<double>(step.bytes));
  bytes_from_end_.assign(1, 0);
  for (uint32_t i = graph_.node_count(); i-- > 0;) {
    double sum = 0;
    all_[i].each([&](uint32_t k) { sum += static_cast<double>(graph_.item_footprint(i, k)); });
    bytes_from_end_.push_back(bytes_from_end_.back() + sum);
  }
}

uint32_t Candidates::member_above(Order order, uint32_t member, double bytes) const {
  const std::vector<double> &sum = order == Order::by_rate ? bytes_by_rate_ : bytes_from_end_;
  return static_cast<uint32_t>(std::lower_bound(sum.begin() + member, sum.end(), sum[member] + bytes) - sum.begin());
}

}  // namespace ckpt::plan
