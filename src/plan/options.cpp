#include "plan/options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace ckpt::plan {
namespace {

struct Option {
  Bits keep;
  size_t bytes = 0;
  double seconds = 0;
};

// Nodes that do not differ in anything that matters here share their options.
struct Kind {
  const Shape *shape;
  std::vector<size_t> bytes;
  std::vector<double> seconds;
  auto operator<=>(const Kind &) const = default;
};

Kind kind_of(const Graph &graph, uint32_t node) {
  const Node &n = graph.nodes[node];
  const auto first = static_cast<ptrdiff_t>(n.first_item), last = first + n.shape->item_count();
  return {n.shape, {graph.item_bytes.begin() + first, graph.item_bytes.begin() + last}, {graph.item_seconds.begin() + first, graph.item_seconds.begin() + last}};
}

class NodeOptions {
 public:
  NodeOptions(const Graph &graph, uint32_t node, size_t work) : graph_(graph), node_(node), shape_(*graph.nodes[node].shape) {
    fixed_ = shape_.keep() | shape_.outputs();
    const Bits fill = shape_.closure(shape_.needed(), fixed_).todo & shape_.slots();
    (fill - shape_.again()).each([&](uint32_t k) { choice_.push_back(k); });
    if (choice_.size() <= 14 && size_t{1} << choice_.size() <= work) every_set();
    else if (choice_.size() * choice_.size() <= work) greedy();
    else in_fixed_order();
  }

  // From least bytes to least seconds.
  std::vector<Option> hull() {
    std::sort(found_.begin(), found_.end(), [](const Option &a, const Option &b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds; });
    std::vector<Option> h;
    for (const Option &o : found_) {
      if (!h.empty() && !(o.seconds < h.back().seconds)) continue;  // no gain
      while (h.size() >= 2 && !above(h[h.size() - 2], h.back(), o)) h.pop_back();
      h.push_back(o);
    }
    return h;
  }

 private:
  void note(const Bits &keep) {
    Option o;
    o.keep = keep;
    keep.each([&](uint32_t k) { o.bytes += graph_.item_footprint(node_, k); });
    o.seconds = graph_.seconds(node_, shape_.closure(keep | fixed_, Bits{})) + graph_.seconds(node_, shape_.closure(shape_.needed(), keep | fixed_));
    found_.push_back(o);
  }

  // Does the corner b lie below the line from a to c?
  static bool above(const Option &a, const Option &b, const Option &c) {
    const double first = (a.seconds - b.seconds) * static_cast<double>(c.bytes - b.bytes);
    const double second = (b.seconds - c.seconds) * static_cast<double>(b.bytes - a.bytes);
    return first > second;
  }

  void every_set() {
    for (size_t set = 0; set < size_t{1} << choice_.size(); ++set) {
      Bits keep;
      for (size_t k = 0; k < choice_.size(); ++k)
        if (set >> k & 1) keep.set(choice_[k]);
      note(keep);
    }
  }

  // Drops what costs least for its bytes, one slot after the other.
  void greedy() {
    Bits keep;
    for (uint32_t k : choice_) keep.set(k);
    note(keep);
    while (!keep.empty()) {
      const Option now = found_.back();
      uint32_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      Option next;
      keep.each([&](uint32_t k) {
        note(keep - Bits::one(k));
        const Option o = found_.back();
        found_.pop_back();
        const double bytes = static_cast<double>(now.bytes - o.bytes), price = bytes > 0 ? (o.seconds - now.seconds) / bytes : std::numeric_limits<double>::max();
        if (price < least) {
          least = price;
          best = k;
          next = o;
        }
      });
      keep.clear(best);
      found_.push_back(next);
    }
  }

  void in_fixed_order() {
    std::stable_sort(choice_.begin(), choice_.end(), [&](uint32_t a, uint32_t b) { return price(a) > price(b); });
    Bits keep;
    note(keep);
    for (uint32_t k : choice_) {
      keep.set(k);
      note(keep);
    }
  }
  double price(uint32_t k) const { return graph_.seconds_of(node_, k) / std::fmax(1, static_cast<double>(graph_.item_footprint(node_, k))); }

  const Graph &graph_;
  const uint32_t node_;
  const Shape &shape_;
  Bits fixed_;
  std::vector<uint32_t> choice_;
  std::vector<Option> found_;
};

}  // namespace

std::vector<KeepStep> keep_order(const Graph &graph, const GradientMap &gradients) {
  constexpr size_t kWork = size_t{1} << 19;  // closures in all
  std::map<Kind, std::vector<uint32_t>> kinds;
  for (uint32_t i = 0; i < graph.node_count(); ++i)
    if (gradients.runs[i] && graph.nodes[i].shape->replayable() && graph.nodes[i].shape->slot_count() > 0) kinds[kind_of(graph, i)].push_back(i);
  std::vector<KeepStep> steps;
  for (const auto &[kind, nodes] : kinds) {
    const std::vector<Option> hull = NodeOptions(graph, nodes.front(), kWork / kinds.size()).hull();
    double rate = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < hull.size(); ++k) {
      const size_t bytes = hull[k].bytes - (k > 0 ? hull[k - 1].bytes : 0);
      // Falling by construction, but for rounding.
      if (k > 0) rate = std::min(rate, (hull[k - 1].seconds - hull[k].seconds) / static_cast<double>(bytes));
      if (hull[k].keep.empty()) continue;
      for (uint32_t i : nodes) steps.push_back({i, hull[k].keep, bytes, rate});
    }
  }
  // Stable: a node's steps stay in their order.
  std::stable_sort(steps.begin(), steps.end(), [](const KeepStep &a, const KeepStep &b) { return a.rate != b.rate ? a.rate > b.rate : a.node > b.node; });
  return steps;
}

}  // namespace ckpt::plan
