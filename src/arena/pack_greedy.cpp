#include "arena/pack_greedy.h"

#include <array>
#include <bit>
#include <numeric>

#include "arena/placer.h"

namespace ckpt::arena {

PackEngine::PackEngine(const PackProblem &problem) : problem_(problem) {
  const size_t n = problem.items.size(), sections = problem.load.size();
  begun_.assign(sections, 0);
  ended_.assign(sections + 1, 0);
  for (const PackItem &i : problem.items) {
    ++begun_[i.first];
    ++ended_[i.last];
  }
  std::partial_sum(begun_.begin(), begun_.end(), begun_.begin());
  std::partial_sum(ended_.begin(), ended_.end(), ended_.begin());
  leaves_ = std::bit_ceil(n);
}

// Gathering what overlaps and sorting it, or walking the whole list?
bool PackEngine::scan_list(size_t placed, uint32_t item) const {
  const size_t n = problem_.items.size();
  if (n > kMostListed) return false;
  const uint64_t expected = uint64_t{neighbours(item)} * placed / n;
  return 2 * expected * static_cast<uint64_t>(std::bit_width(expected)) + 64 > placed;
}

size_t PackEngine::place(std::span<const Placed> by_offset, const PackItem &item, Fit fit) {
  size_t top = 0, at = SIZE_MAX, gap = SIZE_MAX, p = 0;
  for (; p < by_offset.size(); ++p) {
    const Placed &q = by_offset[p];
    if (q.first >= item.last || item.first >= q.last) continue;
    if (q.begin > top && q.begin - top >= item.size && q.begin - top < gap) {
      gap = q.begin - top;
      at = top;
      if (fit == Fit::first) break;
    }
    top = std::max(top, q.end);
  }
  work_ += p + 1;
  return at == SIZE_MAX ? top : at;
}

std::span<const PackEngine::Placed> PackEngine::overlapping(uint32_t item) {
  const PackItem &i = problem_.items[item];
  const uint32_t end = begun_[i.last - 1];  // later ones begin after it
  found_.clear();
  nodes_.assign(1, 1);
  while (!nodes_.empty()) {
    const size_t node = nodes_.back();
    nodes_.pop_back();
    const size_t first = (node << (std::countl_zero(node) - std::countl_zero(leaves_))) - leaves_;  // its first leaf
    work_ += 4;  // likely a cache miss
    if (tree_[node] <= i.first || first >= end) continue;
    if (node >= leaves_) {
      const PackItem &q = problem_.items[first];
      found_.push_back({offsets_[first], offsets_[first] + q.size, q.first, q.last});
      continue;
    }
    nodes_.push_back(static_cast<uint32_t>(2 * node + 1));
    nodes_.push_back(static_cast<uint32_t>(2 * node));
  }
  std::sort(found_.begin(), found_.end(), [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
  work_ += found_.size() * static_cast<uint64_t>(std::bit_width(found_.size())) / 2;
  return found_;
}

void PackEngine::mark(uint32_t item) {
  const PackItem &i = problem_.items[item];
  if (problem_.items.size() <= kMostListed) {
    const size_t at = offsets_[item];
    const auto where = std::upper_bound(list_.begin(), list_.end(), at, [](size_t a, const Placed &q) { return a < q.begin; });
    list_.insert(where, {at, at + i.size, i.first, i.last});
  }
  for (size_t node = leaves_ + item; node != 0 && tree_[node] < i.last; node /= 2) tree_[node] = i.last;
}

size_t PackEngine::fit(std::span<const uint32_t> order, Fit fit, size_t limit, std::vector<size_t> *offsets) {
  list_.clear();
  list_.reserve(std::min(problem_.items.size(), kMostListed));
  tree_.assign(2 * leaves_, 0);
  offsets_.assign(problem_.items.size(), 0);
  size_t height = 0, placed = 0;
  for (const uint32_t k : order) {
    const PackItem &item = problem_.items[k];
    const size_t at = place(scan_list(placed, k) ? std::span<const Placed>(list_) : overlapping(k), item, fit);
    if (item.size > limit || at > limit - item.size) return SIZE_MAX;
    offsets_[k] = at;
    height = std::max(height, at + item.size);
    mark(k);
    ++placed;
  }
  *offsets = offsets_;
  return height;
}

namespace {

// The largest load of the sections of each item.
std::vector<size_t> peak_loads(const PackProblem &problem) {
  // levels[l][s]: the largest of the 2^l sections from s on.
  std::vector<std::vector<size_t>> levels{problem.load};
  for (size_t width = 1; 2 * width <= problem.load.size(); width *= 2) {
    const std::vector<size_t> &below = levels.back();
    std::vector<size_t> level(below.size() - width);
    for (size_t s = 0; s < level.size(); ++s) level[s] = std::max(below[s], below[s + width]);
    levels.push_back(std::move(level));
  }
  std::vector<size_t> peaks;
  peaks.reserve(problem.items.size());
  for (const PackItem &i : problem.items) {
    const auto level = static_cast<size_t>(std::bit_width(i.last - i.first) - 1);
    peaks.push_back(std::max(levels[level][i.first], levels[level][i.last - (size_t{1} << level)]));
  }
  return peaks;
}

// By what items are ordered, largest first, and how they are placed. The first one reaches the bound on nine programs of ten:
// what is live at the peak comes first and is stacked without a hole, then what is live at the next highest load, ...
enum class Order : uint8_t { load_life, load_area, load_meets, life, size, load_size, area, start };
struct Variant {
  Order order;
  Fit fit;
};
constexpr Variant kVariants[] = {
    {Order::load_life, Fit::best}, {Order::load_area, Fit::best}, {Order::load_meets, Fit::best}, {Order::life, Fit::best}, {Order::size, Fit::first},
    {Order::load_size, Fit::first}, {Order::start, Fit::best},     {Order::area, Fit::first},      {Order::size, Fit::best}, {Order::start, Fit::first},
};

using Key = std::array<double, 3>;

Key key_of(Order order, const PackProblem &problem, const PackEngine &engine, const std::vector<size_t> &peaks, uint32_t k) {
  const double size = static_cast<double>(problem.items[k].size), life = problem.lives[k], load = static_cast<double>(peaks[k]);
  const double share = load / static_cast<double>(problem.bound), share4 = share * share * share * share;
  switch (order) {
    case Order::load_life: return {load, life, size};
    case Order::load_area: return {load, life * size, life};
    case Order::load_meets: return {load * load * engine.neighbours(k), size, life};
    case Order::life: return {life, size, load};
    case Order::size: return {size, life, load};
    case Order::load_size: return {share4 * share4 * share4 * share4 * size, life, load};
    case Order::area: return {life * size, size, load};
    case Order::start: break;
  }
  return {-static_cast<double>(problem.items[k].first), life, size};
}

}  // namespace

void pack_online(const PackProblem &problem, PackAnswer *best, std::vector<uint32_t> *order) {
  const auto n = static_cast<uint32_t>(problem.items.size());
  std::vector<uint32_t> by_end(n);
  order->resize(n);
  std::iota(order->begin(), order->end(), 0u);
  std::stable_sort(order->begin(), order->end(), [&](uint32_t a, uint32_t b) { return problem.items[a].first < problem.items[b].first; });
  std::iota(by_end.begin(), by_end.end(), 0u);
  std::stable_sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) { return problem.items[a].last < problem.items[b].last; });
  Placer placer;
  std::vector<BlockId> ids(n, kNoBlock);
  std::vector<size_t> offsets(n);
  size_t gone = 0;
  for (uint32_t k : *order) {
    for (; gone < n && problem.items[by_end[gone]].last <= problem.items[k].first; ++gone) placer.free(ids[by_end[gone]]);
    ids[k] = placer.allocate(problem.items[k].size, Side::low);
    if (ids[k] == kNoBlock) return;
    offsets[k] = placer.offset(ids[k]);
  }
  best->offsets = std::move(offsets);
  best->height = placer.height();
}

void pack_greedy(const PackProblem &problem, PackEngine &engine, size_t goal, uint64_t work, PackAnswer *best, std::vector<uint32_t> *best_order) {
  const auto n = static_cast<uint32_t>(problem.items.size());
  const std::vector<size_t> peaks = peak_loads(problem);
  std::vector<uint32_t> order(n);
  std::vector<Key> keys(n);
  const uint64_t begin = engine.work();
  for (const Variant &v : kVariants) {
    if (best->height != SIZE_MAX && (best->height <= goal || engine.work() - begin > work)) return;
    for (uint32_t k = 0; k < n; ++k) keys[k] = key_of(v.order, problem, engine, peaks, k);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
    const size_t height = engine.fit(order, v.fit, best->height == SIZE_MAX ? kMaxPackBytes : best->height - 1, &best->offsets);
    if (height == SIZE_MAX) continue;
    best->height = height;
    *best_order = order;
  }
}

}  // namespace ckpt::arena
