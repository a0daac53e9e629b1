// The placer against a model that is a sorted list of intervals and nothing else.
#include "arena/placer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace {

using ckpt::arena::BlockId;
using ckpt::arena::kNoBlock;
using ckpt::arena::kUnbounded;
using ckpt::arena::Placer;
using ckpt::arena::Side;

// Live intervals of one end, by distance; holes are what lies between them.
struct Interval {
  size_t begin, end;
};

struct ModelEnd {
  std::vector<Interval> live;  // ascending
  size_t furthest = 0;
  size_t frontier() const { return live.empty() ? 0 : live.back().end; }

  std::optional<Interval> best_hole(size_t bytes) const {
    std::optional<Interval> best;
    size_t at = 0;
    for (const Interval &i : live) {
      if (i.begin - at >= bytes && i.begin > at && (!best || i.begin - at < best->end - best->begin)) best = Interval{at, i.begin};
      at = i.end;
    }
    return best;
  }
  size_t largest_hole() const {
    size_t at = 0, best = 0;
    for (const Interval &i : live) {
      best = std::max(best, i.begin - at);
      at = i.end;
    }
    return best;
  }
  void add(size_t begin, size_t bytes) {
    live.push_back({begin, begin + bytes});
    std::sort(live.begin(), live.end(), [](const Interval &a, const Interval &b) { return a.begin < b.begin; });
    furthest = std::max(furthest, frontier());
  }
  void remove(size_t begin) {
    live.erase(std::find_if(live.begin(), live.end(), [&](const Interval &i) { return i.begin == begin; }));
  }
};

struct Model {
  size_t capacity;
  ModelEnd end[2];

  struct Place {
    size_t side, distance, bytes;
  };
  std::optional<Place> allocate(size_t bytes, size_t side) {
    if (bytes == 0) return Place{side, 0, 0};
    if (auto hole = end[side].best_hole(bytes)) return add(side, hole->begin, bytes);
    if (end[0].frontier() + end[1].frontier() + bytes <= capacity) return add(side, end[side].frontier(), bytes);
    if (auto hole = end[1 - side].best_hole(bytes)) return add(1 - side, hole->begin, bytes);
    return std::nullopt;
  }
  Place add(size_t side, size_t distance, size_t bytes) {
    end[side].add(distance, bytes);
    return {side, distance, bytes};
  }
  void free(const Place &p) {
    if (p.bytes != 0) end[p.side].remove(p.distance);
  }
  size_t offset(const Place &p) const {
    return p.side == 0 || p.bytes == 0 ? p.distance : capacity - p.distance - p.bytes;
  }
  size_t in_use() const {
    size_t sum = 0;
    for (const ModelEnd &e : end)
      for (const Interval &i : e.live) sum += i.end - i.begin;
    return sum;
  }
  size_t largest_free() const {
    const size_t taken = end[0].frontier() + end[1].frontier();
    return std::max({capacity > taken ? capacity - taken : 0, end[0].largest_hole(), end[1].largest_hole()});
  }
};

// One request: bytes >= 0 allocates, bytes < 0 frees the (choice mod live)-th block.
struct Op {
  int bytes;
  size_t choice;
  bool high;
};

std::vector<Op> any_ops(int largest) {
  return *rc::gen::container<std::vector<Op>>(rc::gen::apply(
      [](int bytes, size_t choice, bool high) { return Op{bytes, choice, high}; },
      rc::gen::resize(rc::kNominalSize, rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 9), rc::gen::inRange(0, largest + 1)),
                                                     [](const std::pair<int, int> &p) { return p.first < 4 ? -1 : p.second; })),
      rc::gen::arbitrary<size_t>(), rc::gen::arbitrary<bool>()));
}

struct Pair {
  BlockId block;
  Model::Place place;
};

void check_equal(const Placer &placer, const Model &model, const std::vector<Pair> &live) {
  RC_ASSERT(placer.in_use() == model.in_use());
  RC_ASSERT(placer.low_frontier() == model.end[0].frontier());
  RC_ASSERT(placer.high_frontier() == model.end[1].frontier());
  RC_ASSERT(placer.height() == model.end[0].furthest + model.end[1].furthest);
  RC_ASSERT(placer.largest_free() == model.largest_free());
  RC_ASSERT(placer.block_count() == live.size());
  for (const Pair &p : live) {
    RC_ASSERT(placer.live(p.block));
    RC_ASSERT(placer.bytes(p.block) == p.place.bytes);
    RC_ASSERT(placer.offset(p.block) == model.offset(p.place));
    RC_ASSERT(p.place.bytes == 0 || placer.side(p.block) == (p.place.side == 0 ? Side::low : Side::high));
  }
}

void check_disjoint(const Placer &placer, const std::vector<Pair> &live) {
  std::vector<Interval> all;
  for (const Pair &p : live)
    if (placer.bytes(p.block) != 0) all.push_back({placer.offset(p.block), placer.offset(p.block) + placer.bytes(p.block)});
  std::sort(all.begin(), all.end(), [](const Interval &a, const Interval &b) { return a.begin < b.begin; });
  for (size_t i = 0; i < all.size(); ++i) {
    RC_ASSERT(all[i].end <= placer.capacity());
    if (i > 0) RC_ASSERT(all[i - 1].end <= all[i].begin);
  }
}

void against_model(size_t capacity, const std::vector<Op> &ops, size_t scale) {
  Placer placer(capacity * scale);
  Model model{capacity * scale, {}};
  std::vector<Pair> live;
  size_t peak = 0;
  for (const Op &op : ops) {
    if (op.bytes < 0) {
      if (live.empty()) continue;
      const size_t k = op.choice % live.size();
      placer.free(live[k].block);
      model.free(live[k].place);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      const size_t bytes = static_cast<size_t>(op.bytes) * scale;
      const BlockId block = placer.allocate(bytes, op.high ? Side::high : Side::low);
      const auto place = model.allocate(bytes, op.high ? 1 : 0);
      RC_ASSERT((block != kNoBlock) == place.has_value());
      if (place) live.push_back({block, *place});
    }
    peak = std::max(peak, model.in_use());
    RC_ASSERT(placer.peak_in_use() == peak);
    check_equal(placer, model, live);
  }
  check_disjoint(placer, live);
  for (const Pair &p : live) placer.free(p.block);
  RC_ASSERT(placer.empty());
  RC_ASSERT(placer.largest_free() == capacity * scale);  // everything coalesced
}

RC_GTEST_PROP(placer, agrees_with_the_interval_model_in_a_tight_slab, ()) {
  against_model(*rc::gen::inRange<size_t>(0, 60), any_ops(12), 1);
}

RC_GTEST_PROP(placer, agrees_with_the_interval_model_in_a_wide_slab, ()) {
  against_model(4000, any_ops(300), 256);
}

RC_GTEST_PROP(placer, agrees_with_the_interval_model_when_sizes_repeat, ()) {
  against_model(200, any_ops(2), 4096);
}

// Runs ops and returns each request's (distance from its end), kNoBlock's as SIZE_MAX.
std::vector<size_t> places(Placer &placer, const std::vector<Op> &ops, bool *used_other_end) {
  std::vector<size_t> result;
  std::vector<BlockId> live;
  for (const Op &op : ops) {
    if (op.bytes < 0) {
      if (live.empty()) continue;
      const size_t k = op.choice % live.size();
      if (live[k] != kNoBlock) placer.free(live[k]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    const Side side = op.high ? Side::high : Side::low;
    const BlockId block = placer.allocate(static_cast<size_t>(op.bytes), side);
    live.push_back(block);
    if (block == kNoBlock) {
      result.push_back(SIZE_MAX);
      continue;
    }
    if (placer.side(block) != side) *used_other_end = true;
    const size_t offset = placer.offset(block), bytes = placer.bytes(block);
    result.push_back(side == Side::low || bytes == 0 ? offset : placer.capacity() - offset - bytes);
  }
  return result;
}

RC_GTEST_PROP(placer, height_is_the_smallest_capacity_that_changes_nothing, ()) {
  const auto ops = any_ops(40);
  bool other = false;
  Placer unbounded;
  const auto expected = places(unbounded, ops, &other);
  RC_ASSERT(!other);
  const size_t height = unbounded.height();

  Placer exact(height);
  RC_ASSERT(places(exact, ops, &other) == expected);
  RC_ASSERT(!other);
  RC_ASSERT(exact.height() == height);

  Placer roomy(height + *rc::gen::inRange<size_t>(1, 1000));
  RC_ASSERT(places(roomy, ops, &other) == expected);
  RC_ASSERT(!other);
  RC_ASSERT(roomy.height() == height);
}

// One unit less: where the two frontiers peak together, some request is refused or goes to the other end. (Where they peak
// at different moments the height is a bound that need not be tight.)
RC_GTEST_PROP(placer, below_the_height_of_one_end_something_gives_way, ()) {
  auto ops = any_ops(40);
  ops.push_back({1, 0, false});
  for (Op &op : ops) op.high = false;
  bool other = false;
  Placer unbounded;
  const auto expected = places(unbounded, ops, &other);
  Placer tight(unbounded.height() - 1);
  RC_ASSERT(places(tight, ops, &other) != expected);
  RC_ASSERT(tight.height() < unbounded.height());
}

RC_GTEST_PROP(placer, a_copy_is_independent_and_goes_on_alike, ()) {
  const auto before = any_ops(30), after = any_ops(30), aside = any_ops(30);
  bool other = false;
  Placer a(400);
  places(a, before, &other);
  Placer b = a, scratch = a;
  places(scratch, aside, &other);  // must not be felt by a or b
  RC_ASSERT(places(a, after, &other) == places(b, after, &other));
  RC_ASSERT(a.height() == b.height());
  RC_ASSERT(a.in_use() == b.in_use());
}

RC_GTEST_PROP(placer, equal_requests_after_empty_give_equal_ids, ()) {
  const auto first = any_ops(30);
  const auto ids = [](Placer &placer, const std::vector<Op> &ops) {
    std::vector<BlockId> result, live;
    for (const Op &op : ops) {
      if (op.bytes >= 0) {
        live.push_back(placer.allocate(static_cast<size_t>(op.bytes), op.high ? Side::high : Side::low));
        result.push_back(live.back());
      } else if (!live.empty()) {
        const size_t k = op.choice % live.size();
        placer.free(live[k]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
    for (BlockId block : live) placer.free(block);
    return result;
  };
  Placer placer;
  const auto one = ids(placer, first);
  RC_ASSERT(ids(placer, first) == one);
}

// ---- regions: places that are named, then requests that look for theirs ----

// Blocks at random free places of a region; returns what lives there.
void fill_region(Placer &placer, Model &model, size_t height, const std::vector<Op> &ops, std::vector<Pair> *live) {
  const size_t begin = model.end[0].frontier();
  RC_ASSERT(placer.open_region(height) != 0);
  size_t furthest = model.end[0].furthest;
  for (const Op &op : ops) {
    if (op.bytes < 0) {
      if (live->empty()) continue;
      const size_t k = op.choice % live->size();
      placer.free((*live)[k].block);
      model.free((*live)[k].place);
      live->erase(live->begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      const size_t bytes = static_cast<size_t>(op.bytes), offset = height > bytes ? op.choice % (height - bytes + 1) : 0;
      const bool taken = offset + bytes > height || std::any_of(model.end[0].live.begin(), model.end[0].live.end(), [&](const Interval &i) {
                           return i.begin < begin + offset + bytes && begin + offset < i.end;
                         });
      if (taken) continue;
      const BlockId block = placer.allocate_at(offset, bytes);
      if (bytes != 0) furthest = std::max(furthest, begin + offset + bytes);
      live->push_back({block, bytes != 0 ? model.add(0, begin + offset, bytes) : Model::Place{0, 0, 0}});
      RC_ASSERT(bytes == 0 || placer.offset(block) == begin + offset);
    }
    RC_ASSERT(placer.in_use() == model.in_use());
    RC_ASSERT(placer.block_count() == live->size());
    RC_ASSERT(placer.height() == furthest + model.end[1].furthest);
  }
  model.end[0].furthest = furthest;
}

// Online, then in a region, then online again: from the moment on that it is settled, the placer is the one that a model with
// the same live blocks is. (The model knows no regions: a place that was named is a place.)
RC_GTEST_PROP(placer, goes_on_from_a_settled_region_like_the_interval_model, ()) {
  const size_t capacity = 400;
  const auto before = any_ops(12), planned = any_ops(30), after = any_ops(30);
  const size_t height = *rc::gen::inRange<size_t>(0, 200);
  Placer placer(capacity);
  Model model{capacity, {}};
  std::vector<Pair> live;
  const auto online = [&](const std::vector<Op> &ops) {
    for (const Op &op : ops) {
      if (op.bytes < 0) {
        if (live.empty()) continue;
        const size_t k = op.choice % live.size();
        placer.free(live[k].block);
        model.free(live[k].place);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
      } else {
        const BlockId block = placer.allocate(static_cast<size_t>(op.bytes), op.high ? Side::high : Side::low);
        const auto place = model.allocate(static_cast<size_t>(op.bytes), op.high ? 1 : 0);
        RC_ASSERT((block != kNoBlock) == place.has_value());
        if (place) live.push_back({block, *place});
      }
      if (placer.region() == 0) check_equal(placer, model, live);
    }
  };
  for (int round = 0; round < 2; ++round) {
    online(before);
    placer.settle();
    if (model.end[0].frontier() + model.end[1].frontier() + height > capacity) {
      RC_ASSERT(placer.open_region(height) == 0);
      continue;
    }
    const uint64_t decisions = placer.decision_count();
    fill_region(placer, model, height, planned, &live);
    RC_ASSERT(placer.decision_count() == decisions);
    Placer copy = placer;
    copy.settle();
    check_equal(copy, model, live);
    check_disjoint(copy, live);
    online(after);
    placer.settle();
    check_equal(placer, model, live);
    check_disjoint(placer, live);
  }
  for (const Pair &p : live) placer.free(p.block);
  RC_ASSERT(placer.empty());
  RC_ASSERT(placer.largest_free() == capacity);
}

}  // namespace
