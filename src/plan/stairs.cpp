#include "plan/stairs.h"

#include <algorithm>

namespace ckpt::plan {
namespace {

bool faster(const Point &a, const Point &b) {
  if (a.ticks != b.ticks) return a.ticks < b.ticks;
  if (a.recompute_count != b.recompute_count) return a.recompute_count < b.recompute_count;
  if (a.height != b.height) return a.height < b.height;
  return a.peak != b.peak ? a.peak < b.peak : a.number < b.number;
}

}  // namespace

void Stairs::add(Point point) {
  point.number = static_cast<uint32_t>(points_.size());
  rows_.emplace(key(point.family, point.member), point.number);
  points_.push_back(point);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), point, faster), point);
  stairs_.clear();
  for (const Point &p : sorted_)
    if (stairs_.empty() || p.height < stairs_.back().height) stairs_.push_back(p);
}

Bracket Stairs::bracket(const Family &family, size_t height) const {
  Bracket b;
  // Both ordered rows begin with the same program.
  if (const auto none = rows_.find(key({family.group, family.again, Order::by_rate, 0}, 0)); none != rows_.end() && ordered(family.order)) {
    if (points_[none->second].height > height) return b;
    b.below = &points_[none->second];
  }
  for (auto at = rows_.lower_bound(key(family, 1)); at != rows_.end() && same_row(points_[at->second].family, family); ++at) {
    const Point &p = points_[at->second];
    if (p.height <= height) {
      b.below = &p;
      b.above = nullptr;
    } else if (b.above == nullptr) {
      b.above = &p;
    }
  }
  return b;
}

size_t Stairs::first_that_fits(size_t budget) const {
  size_t at = 0;
  while (at < stairs_.size() && stairs_[at].height > budget) ++at;
  return at;
}

}  // namespace ckpt::plan
