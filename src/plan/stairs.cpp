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

uint32_t Stairs::tried_below(const Family &family, uint32_t member) const {
  auto at = rows_.lower_bound(key(family, member));
  if (at == rows_.begin()) return 0;
  --at;
  const auto &[group, again, order, found] = at->first;
  return group == family.group && again == family.again && order == family.order ? found : 0;
}

uint32_t Stairs::tried_above(const Family &family, uint32_t member) const {
  const auto at = rows_.upper_bound(key(family, member));
  if (at == rows_.end()) return family.size;
  const auto &[group, again, order, found] = at->first;
  return group == family.group && again == family.again && order == family.order ? found : family.size;
}

size_t Stairs::first_that_fits(size_t budget) const {
  size_t at = 0;
  while (at < stairs_.size() && stairs_[at].height > budget) ++at;
  return at;
}

}  // namespace ckpt::plan
