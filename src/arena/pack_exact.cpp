#include "arena/pack_exact.h"

#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

namespace ckpt::arena {
namespace {

constexpr size_t kPlaced = SIZE_MAX;
constexpr uint32_t kNone = UINT32_MAX;

// Spread evenly over [0, 1), the same on every machine.
double noise(uint32_t seed, uint32_t item) {
  uint64_t x = (uint64_t{seed} << 32 | item) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
  return static_cast<double>((x ^ x >> 32) >> 11) * 0x1p-53;
}

}  // namespace

ExactSearch::ExactSearch(const PackProblem &problem) : problem_(problem) {
  list_members();
  list_neighbours();
  find_twins();
}

uint64_t ExactSearch::table_size(const PackProblem &problem) {
  uint64_t size = 0;
  for (const PackItem &i : problem.items) {
    const auto later = std::lower_bound(problem.items.begin(), problem.items.end(), i.last, [](const PackItem &other, uint32_t s) { return other.first < s; });
    size += static_cast<uint64_t>(later - problem.items.begin()) - static_cast<uint64_t>(&i - problem.items.data()) + i.last - i.first;
  }
  return size;
}

void ExactSearch::list_members() {
  const size_t sections = problem_.load.size();
  member_begin_.assign(sections + 1, 0);
  for (const PackItem &i : problem_.items)
    for (uint32_t s = i.first; s < i.last; ++s) ++member_begin_[s + 1];
  std::partial_sum(member_begin_.begin(), member_begin_.end(), member_begin_.begin());
  members_.resize(member_begin_.back());
  std::vector<uint32_t> next(member_begin_.begin(), member_begin_.end() - 1);
  for (uint32_t k = 0; k < problem_.items.size(); ++k)
    for (uint32_t s = problem_.items[k].first; s < problem_.items[k].last; ++s) members_[next[s]++] = k;
}

// Items come by their first section, so of the later ones a run overlaps, and only the earlier ones need a list.
void ExactSearch::list_neighbours() {
  const std::vector<PackItem> &items = problem_.items;
  const auto n = static_cast<uint32_t>(items.size());
  later_end_.resize(n);
  earlier_begin_.assign(n + 1, 0);
  for (uint32_t k = 0; k < n; ++k) {
    const auto end = std::lower_bound(items.begin() + k + 1, items.end(), items[k].last, [](const PackItem &i, uint32_t s) { return i.first < s; });
    later_end_[k] = static_cast<uint32_t>(end - items.begin());
    for (uint32_t j = k + 1; j < later_end_[k]; ++j) ++earlier_begin_[j + 1];
  }
  std::partial_sum(earlier_begin_.begin(), earlier_begin_.end(), earlier_begin_.begin());
  earlier_.resize(earlier_begin_.back());
  std::vector<uint32_t> next(earlier_begin_.begin(), earlier_begin_.end() - 1);
  for (uint32_t k = 0; k < n; ++k)
    for (uint32_t j = k + 1; j < later_end_[k]; ++j) earlier_[next[j]++] = k;
}

void ExactSearch::find_twins() {
  const auto n = static_cast<uint32_t>(problem_.items.size());
  const auto shape = [&](uint32_t k) {
    const PackItem &i = problem_.items[k];
    return std::tuple(i.first, i.last, i.size, k);
  };
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return shape(a) < shape(b); });
  twin_.resize(n);
  std::iota(twin_.begin(), twin_.end(), 0u);
  for (uint32_t k = 1; k < n; ++k) {
    const PackItem &a = problem_.items[order[k - 1]], &b = problem_.items[order[k]];
    if (a.first == b.first && a.last == b.last && a.size == b.size) twin_[order[k]] = order[k - 1];
  }
}

void ExactSearch::rank_by(Preference preference, uint32_t seed) {
  const auto n = static_cast<uint32_t>(problem_.items.size());
  std::vector<std::array<double, 3>> keys(n);
  for (uint32_t k = 0; k < n; ++k) {
    const PackItem &i = problem_.items[k];
    size_t load = 0;
    uint32_t crowd = UINT32_MAX;
    for (uint32_t s = i.first; s < i.last; ++s) {
      load = std::max(load, problem_.load[s]);
      crowd = std::min(crowd, member_begin_[s + 1] - member_begin_[s]);
    }
    const double life = problem_.lives[k] * (seed == 0 ? 1 : 0.9 + 0.2 * noise(seed, k)), area = life * static_cast<double>(i.size), tight = static_cast<double>(load);
    // Products and square roots are exact to the last bit on every machine, as powers are not.
    const double share = tight / static_cast<double>(problem_.bound), share4 = share * share * share * share;
    switch (preference) {
      case Preference::life: keys[k] = {life, area, tight}; break;
      case Preference::load_area: keys[k] = {tight, area, life}; break;
      case Preference::load_life: keys[k] = {tight, life, area}; break;
      case Preference::load_and_life: keys[k] = {share4 * share4 * share4 * share4 * std::sqrt(std::sqrt(life)), area, tight}; break;
      case Preference::life_in_thin: keys[k] = {life / (static_cast<double>(crowd) * crowd), 0, 0}; break;
    }
  }
  by_rank_.resize(n);
  std::iota(by_rank_.begin(), by_rank_.end(), 0u);
  std::stable_sort(by_rank_.begin(), by_rank_.end(), [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });
  rank_.resize(n);
  for (uint32_t r = 0; r < n; ++r) rank_[by_rank_[r]] = r;
}

void ExactSearch::reset() {
  const size_t n = problem_.items.size(), sections = problem_.load.size();
  low_.assign(n, 0);
  offset_.assign(n, 0);
  rest_.assign(sections, 0);
  floor_.assign(sections, 0);
  crossing_.assign(sections, 0);
  witness_.resize(sections);
  for (uint32_t s = 0; s < sections; ++s) witness_[s] = members_[member_begin_[s]];
  for (const PackItem &i : problem_.items)
    for (uint32_t s = i.first; s < i.last; ++s) {
      rest_[s] += i.size;
      crossing_[s] += s != i.first;
    }
  lows_.clear();
  floors_.clear();
  placed_.clear();
  candidates_.clear();
  parts_.clear();
  frames_.clear();
  part_of_section_.resize(sections);
  blocker_.assign(n, kNone);
}

ExactSearch::Outcome ExactSearch::run(size_t height, Preference preference, uint32_t seed, uint64_t work) {
  if (problem_.bound > height) return Outcome::none;
  height_ = height;
  const uint64_t end = work_ + work;
  rank_by(preference, seed);
  reset();
  stack_ = by_rank_;
  enter({0, stack_.size(), 0, static_cast<uint32_t>(problem_.load.size())}, 0, 0);
  for (;;) {
    Frame &f = frames_.back();
    if (f.next_part < f.end_part) {  // an item is placed, some parts that it leaves are not
      enter(parts_[f.next_part++], f.from, f.rank);
    } else if (f.item != kNone) {  // all are
      leave(true);
      if (frames_.empty()) return Outcome::found;
    } else if (f.next_candidate == f.end_candidate) {
      leave(false);
      if (frames_.empty()) return Outcome::none;
      retreat(&frames_.back());
    } else {
      if (work_ >= end) return Outcome::out_of_work;
      if (!advance(&f, candidates_[f.next_candidate++])) retreat(&f);
    }
  }
}

// Items of `part` are placed at `from` or above; at `from`, by rank.
void ExactSearch::enter(const Part &part, size_t from, uint32_t from_rank) {
  Frame f;
  f.part = part;
  f.first_candidate = f.next_candidate = candidates_.size();
  list_candidates(part, from, from_rank);
  if (lone_candidate(f.first_candidate, from, from_rank)) {
    f.keep_from = true;
    f.from = from;
    f.rank = from_rank;
  }
  f.end_candidate = candidates_.size();
  f.lows = lows_.size();
  f.floors = floors_.size();
  f.placed = placed_.size();
  f.stack = stack_.size();
  f.parts = f.next_part = f.end_part = parts_.size();
  frames_.push_back(f);
}

void ExactSearch::leave(bool found) {
  const Frame &f = frames_.back();
  candidates_.resize(f.first_candidate);
  stack_.resize(f.stack);
  parts_.resize(f.parts);
  if (!found) take_back(f.lows, f.floors, f.placed);
  frames_.pop_back();
}

bool ExactSearch::advance(Frame *f, uint32_t item) {
  f->item = item;
  if (!f->keep_from) {
    f->from = low_[item];
    f->rank = rank_[item];
  }
  if (!place(item) || !sections_fit(f->part, f->from) || !all_blocked(f->part, f->from, f->rank)) return false;
  divide(f->part, item);
  f->end_part = parts_.size();
  return true;
}

// This candidate was none, or some part that it left: whatever is placed since goes again.
void ExactSearch::retreat(Frame *f) {
  take_back(f->lows, f->floors, f->placed);
  stack_.resize(f->stack);
  parts_.resize(f->parts);
  f->next_part = f->end_part = f->parts;
  f->item = kNone;
}

void ExactSearch::list_candidates(const Part &part, size_t from, uint32_t from_rank) {
  const size_t first = candidates_.size();
  size_t lowest_top = SIZE_MAX;
  for (size_t p = part.begin; p < part.end; ++p) lowest_top = std::min(lowest_top, low_[stack_[p]] + problem_.items[stack_[p]].size);
  for (size_t p = part.begin; p < part.end; ++p) {
    const uint32_t k = stack_[p];
    if (low_[k] < from || low_[k] >= lowest_top || (low_[k] == from && rank_[k] < from_rank)) continue;
    if (twin_[k] != k && low_[twin_[k]] != kPlaced) continue;
    candidates_.push_back(k);
    for (size_t c = candidates_.size() - 1; c > first && low_[candidates_[c]] < low_[candidates_[c - 1]]; --c) std::swap(candidates_[c], candidates_[c - 1]);
  }
  work_ += part.end - part.begin;
}

// False: a neighbour no longer fits.
bool ExactSearch::place(uint32_t item) {
  const PackItem &i = problem_.items[item];
  const size_t top = low_[item] + i.size;
  offset_[item] = low_[item];
  lows_.push_back({item, 0, low_[item]});
  low_[item] = kPlaced;
  placed_.push_back(item);
  for (uint32_t s = i.first; s < i.last; ++s) {
    rest_[s] -= i.size;
    crossing_[s] -= s != i.first;
  }
  bool fits = true;
  const auto raise = [&](uint32_t k) {
    if (low_[k] >= top) return;
    lows_.push_back({k, 0, low_[k]});
    low_[k] = top;
    fits &= problem_.items[k].size <= height_ - top;
  };
  for (uint32_t p = earlier_begin_[item]; p < earlier_begin_[item + 1]; ++p) raise(earlier_[p]);
  for (uint32_t k = item + 1; k < later_end_[item]; ++k) raise(k);
  work_ += later_end_[item] - item + earlier_begin_[item + 1] - earlier_begin_[item];
  return fits;
}

// Too low for the order in which items are placed: only something new below it brings it back.
bool ExactSearch::put_off(uint32_t item, size_t from, uint32_t from_rank) const {
  return low_[item] < from || (low_[item] == from && rank_[item] < from_rank);
}

// May `other`, if it is not placed yet, come to lie below `top`, where an item would end at its lowest offset?
bool ExactSearch::may_block(uint32_t other, size_t top, size_t from, uint32_t from_rank) const {
  if (low_[other] >= top) return false;
  return put_off(other, from, from_rank) ? from + 1 < top : true;
}

// Does something that is not placed keep this item from its lowest offset, perhaps?
bool ExactSearch::blocked(uint32_t item, size_t from, uint32_t from_rank) {
  const size_t top = low_[item] + problem_.items[item].size;
  if (blocker_[item] != kNone && may_block(blocker_[item], top, from, from_rank)) return true;
  for (uint32_t p = earlier_begin_[item]; p < earlier_begin_[item + 1]; ++p) {
    ++work_;
    if (may_block(earlier_[p], top, from, from_rank)) return blocker_[item] = earlier_[p], true;
  }
  for (uint32_t k = item + 1; k < later_end_[item]; ++k) {
    ++work_;
    if (may_block(k, top, from, from_rank)) return blocker_[item] = k, true;
  }
  return false;
}

// Each item that is put off must be kept from where it could lie, or it could move down in the end.
bool ExactSearch::all_blocked(const Part &part, size_t from, uint32_t from_rank) {
  for (size_t p = part.begin; p < part.end; ++p) {
    const uint32_t k = stack_[p];
    if (low_[k] == kPlaced) continue;
    if (put_off(k, from, from_rank) && !blocked(k, from, from_rank)) return false;
  }
  work_ += part.end - part.begin;
  return true;
}

// A candidate that nothing keeps from its lowest offset lies there: no other needs to be tried.
bool ExactSearch::lone_candidate(size_t first, size_t from, uint32_t from_rank) {
  for (size_t c = first; c < candidates_.size(); ++c)
    if (!blocked(candidates_[c], from, from_rank)) {
      candidates_[first] = candidates_[c];
      candidates_.resize(first + 1);
      return true;
    }
  return false;
}

bool ExactSearch::sections_fit(const Part &part, size_t from) {
  work_ += (part.last - part.first) / 2;
  for (uint32_t s = part.first; s < part.last; ++s) {
    if (rest_[s] == 0) continue;
    if (low_[witness_[s]] != floor_[s] && !find_witness(s)) return false;
    if (std::max(floor_[s], from) > height_ - rest_[s]) return false;
  }
  return true;
}

bool ExactSearch::find_witness(uint32_t section) {
  floors_.push_back({section, witness_[section], floor_[section]});
  size_t least = kPlaced;
  uint32_t witness = 0;
  for (uint32_t p = member_begin_[section]; p < member_begin_[section + 1]; ++p)
    if (low_[members_[p]] < least) least = low_[members_[p]], witness = members_[p];
  work_ += member_begin_[section + 1] - member_begin_[section];
  floor_[section] = least;
  witness_[section] = witness;
  return least <= height_ - rest_[section];
}

// The part without `item`, cut where nothing crosses.
void ExactSearch::divide(const Part &part, uint32_t item) {
  const PackItem &i = problem_.items[item];
  for (uint32_t s = i.first; s < i.last; ++s)
    if (rest_[s] == 0 || (s != i.first && crossing_[s] == 0)) return divide_at_cuts(part, item);
  const size_t begin = stack_.size();
  for (size_t p = part.begin; p < part.end; ++p)
    if (stack_[p] != item) stack_.push_back(stack_[p]);
  parts_.push_back({begin, stack_.size(), part.first, part.last});
}

void ExactSearch::divide_at_cuts(const Part &part, uint32_t item) {
  const size_t parts = parts_.size();
  for (uint32_t s = part.first; s < part.last; ++s) {
    if (rest_[s] == 0) continue;
    if (parts_.size() == parts || crossing_[s] == 0) parts_.push_back({0, 0, s, s});
    parts_.back().last = s + 1;
    part_of_section_[s] = static_cast<uint32_t>(parts_.size() - 1);
  }
  for (size_t p = part.begin; p < part.end; ++p)
    if (stack_[p] != item) ++parts_[part_of_section_[problem_.items[stack_[p]].first]].end;
  size_t at = stack_.size();
  for (size_t p = parts; p < parts_.size(); ++p) {
    const size_t count = parts_[p].end;
    parts_[p].begin = parts_[p].end = at;
    at += count;
  }
  stack_.resize(at);
  for (size_t p = part.begin; p < part.end; ++p)
    if (const uint32_t k = stack_[p]; k != item) stack_[parts_[part_of_section_[problem_.items[k].first]].end++] = k;
  // The smallest one fails cheapest.
  std::stable_sort(parts_.begin() + static_cast<std::ptrdiff_t>(parts), parts_.end(), [](const Part &a, const Part &b) { return a.end - a.begin < b.end - b.begin; });
}

void ExactSearch::take_back(size_t lows, size_t floors, size_t placed) {
  for (; lows_.size() > lows; lows_.pop_back()) low_[lows_.back().index] = lows_.back().value;
  for (; floors_.size() > floors; floors_.pop_back()) {
    floor_[floors_.back().index] = floors_.back().value;
    witness_[floors_.back().index] = floors_.back().witness;
  }
  for (; placed_.size() > placed; placed_.pop_back()) {
    const PackItem &i = problem_.items[placed_.back()];
    for (uint32_t s = i.first; s < i.last; ++s) {
      rest_[s] += i.size;
      crossing_[s] += s != i.first;
    }
  }
}

}  // namespace ckpt::arena
