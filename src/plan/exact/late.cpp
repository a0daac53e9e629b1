#include "plan/exact/late.h"

#include <algorithm>

#include "plan/exact/trace.h"

namespace ckpt::plan::exact {
namespace {
constexpr uint32_t kFirst = UINT32_MAX;  // option of t: nothing has run yet
constexpr uint32_t kNone = UINT32_MAX;
}  // namespace

bool LateSolver::solve(Bytes room, Ticks below, Work *work, Found *found) {
  const uint32_t n = model_.size();
  room_ = room;
  below_ = below;
  work_ = work;
  nodes_.clear();
  stretches_.clear();
  lates_.clear();
  sticky_.assign(n + 1, 0);
  for (uint32_t i = 0; i < n; ++i) sticky_[i + 1] = sticky_[i] + model_.segments[i].sticky;
  const std::vector<uint32_t> &top = stretch(0, 0, false, n - 1, kFirst);
  if (work->out() || top.empty()) return false;
  found->cost = nodes_[top.back()].c;
  found->load = nodes_[top.back()].m;
  found->steps.clear();
  write(top.back(), &found->steps);
  return true;
}

Bytes LateSolver::stored(uint32_t t, uint32_t option) const { return option == kFirst ? 0 : model_.segments[t].options[option].bytes; }

// `base` has floor and cost; `one` (NULL: nothing) with `outside` more bytes, `two` as they are.
void LateSolver::combine(const Node &base, const std::vector<uint32_t> *one, Bytes outside, const std::vector<uint32_t> &two, Front *out) {
  size_t a = one == nullptr ? 1 : one->size(), b = two.empty() ? 0 : two.size();
  while (a > 0 && b > 0) {
    const Node *first = one == nullptr ? nullptr : &nodes_[(*one)[a - 1]];
    const Node &second = nodes_[two[b - 1]];
    Node n = base;
    const Bytes first_bytes = outside + (first == nullptr ? 0 : first->m);
    n.c += (first == nullptr ? 0 : first->c) + second.c;
    n.m = std::max({n.m, first_bytes, second.m});
    n.one = first == nullptr ? kNone : (*one)[a - 1];
    n.two = two[b - 1];
    if (n.c >= below_) break;
    if (n.m <= room_) out->push_back(n);
    ++work_->spent;
    if (n.m == base.m) break;
    if (first_bytes >= second.m) --a;
    if (second.m >= first_bytes) --b;
  }
}

std::vector<uint32_t> LateSolver::best(Front all) {
  std::stable_sort(all.begin(), all.end(), [](const Node &a, const Node &b) { return a.m != b.m ? a.m < b.m : a.c < b.c; });
  std::vector<uint32_t> kept;
  Ticks least = kNever;
  for (const Node &n : all)
    if (n.c < least) {
      least = n.c;
      kept.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back(n);
    }
  return kept;
}

void LateSolver::add_leaf(uint32_t s, uint32_t option, bool stays, bool gone, Front *out) const {
  const Option &o = model_.segments[s].options[option];
  const std::vector<Point> &ways = stays || gone ? o.leaf : o.leaf_inside;
  for (uint32_t k = 0; k < ways.size(); ++k)
    if (const Point &p = ways[k]; p.m <= room_ && p.c < below_) out->push_back({p.m, p.c, Kind::leaf, false, gone, stays, s, s, k, option, kNone, kNone});
}

const std::vector<uint32_t> &LateSolver::stretch(uint32_t s, uint32_t start, bool stays, uint32_t t, uint32_t option) {
  const Key key{s, start, stays, t, option, 0};
  if (const auto known = stretches_.find(key); known != stretches_.end()) return known->second;
  Front all;
  if (s == t && option != kFirst) add_leaf(s, option, stays, false, &all);
  else if (!work_->out()) {
    add_splits(s, start, stays, t, option, &all);
    add_jumps(s, start, stays, t, option, kNone, false, &all);
  }
  return stretches_[key] = best(std::move(all));
}

void LateSolver::add_splits(uint32_t s, uint32_t start, bool stays, uint32_t t, uint32_t option, Front *out) {
  const bool first = option == kFirst;
  const Segment &segment = model_.segments[s];
  const Start &from = start_of(s, start, first);
  const Bytes x = stays ? 0 : model_.x[s];
  const Bytes base = model_.g[t + 1] + stored(t, option) + x + (first ? 0 : sticky(s, t) + from.extra);
  for (uint32_t q = 0; q < segment.options.size(); ++q) {
    const Option &o = segment.options[q];
    if (from.run[q].cost >= below_ || base + from.run[q].bytes > room_) continue;
    for (const bool gone : {true, false}) {
      if (gone && (stays || !o.gone)) continue;
      Front leaf;
      add_leaf(s, q, stays, gone, &leaf);
      const std::vector<uint32_t> left = best(std::move(leaf));
      const Node node{base + from.run[q].bytes, from.run[q].cost, Kind::split, first, gone, stays, s, s, start, q, kNone, kNone};
      combine(node, s + 1 == model_.size() ? nullptr : &stretch(s + 1, 0, o.k, t, option), (gone ? 0 : x) + o.bytes, left, out);
    }
  }
}

// Jumps from s to j, where something is kept by D; then what is left of s..j: a stretch, or (late) D(s, j, kept, ...).
void LateSolver::add_jumps(uint32_t s, uint32_t start, bool stays, uint32_t t, uint32_t option, uint32_t kept, bool is_late, Front *out) {
  const bool first = option == kFirst;
  const Segment &segment = model_.segments[s];
  const Start &from = start_of(s, start, first);
  const Bytes x = stays ? 0 : model_.x[s];
  const Bytes base = model_.g[t + 1] + stored(t, option) + x + (first ? 0 : sticky(s, t));
  for (uint32_t to = 0; to < from.jump.size(); ++to) {
    if (from.jump[to].cost >= below_) continue;
    if (is_late && segment.starts[to].run[kept].cost == kNever) continue;
    const Bytes extra = segment.starts[to].extra;
    Bytes floor = base + (first ? 0 : from.extra) + from.jump[to].bytes;
    Ticks cost = from.jump[to].cost;
    for (uint32_t j = s + 1; (j < t || (first && j == t)) && floor <= room_ && cost < below_ && !work_->out(); ++j) {
      const Segment &at = model_.segments[j];
      for (uint32_t q = 0; q < at.options.size(); ++q) {
        const Option &o = at.options[q];
        if (o.stays || o.at_once || (!model_.slots_at_jumps && !o.bare)) continue;
        const std::vector<uint32_t> left = is_late ? late(s, to, j, kept, q) : stretch(s, to, stays, j, q);
        if (left.empty()) continue;
        const Node node{floor, cost, is_late ? Kind::late_jump : Kind::jump, first, false, stays, s, j, start, to, kNone, kNone};
        combine(node, &late(j, 0, t, q, option), x + extra + sticky(s, j), left, out);
      }
      const Run &next = (first ? at.first : at.starts[0]).jump[0];
      if (at.wall || next.cost == kNever) break;
      floor = std::max(floor, base + extra + (first ? sticky(s, j) : 0) + model_.x[j] + next.bytes);
      cost += next.cost;
    }
  }
}

const std::vector<uint32_t> &LateSolver::late(uint32_t j, uint32_t start, uint32_t t, uint32_t kept, uint32_t option) {
  const Key key{j, start, kept, t, option, 1};
  if (const auto known = lates_.find(key); known != lates_.end()) return known->second;
  const bool first = option == kFirst, last = j + 1 == model_.size();
  const Segment &segment = model_.segments[j];
  const Start &from = start_of(j, start, first);
  const Option &o = segment.options[kept];
  const Bytes x = model_.x[j], base = model_.g[t + 1] + stored(t, option) + x + (first ? 0 : sticky(j, t) + from.extra);
  Front all;
  static const Node kNothing{0, 0, Kind::leaf, false, false, false, 0, 0, 0, 0, kNone, kNone};
  Front nothing{kNothing};
  const std::vector<uint32_t> right = last ? best(nothing) : stretch(j + 1, 0, o.k, t, option), empty = best(nothing);
  if (from.run[kept].cost < below_)
    combine({base + from.run[kept].bytes, from.run[kept].cost, Kind::now, first, false, false, j, j, start, kept, kNone, kNone}, &right, o.bytes, empty, &all);
  for (uint32_t k = 0; k < segment.fills.size(); ++k) {
    const Fill &f = segment.fills[k];
    const Run &run = first ? f.first : f.again;
    if (f.option != kept || start != 0 || run.cost >= below_) continue;
    const Bytes floor = std::max(base + run.bytes, model_.g[j + 1] + x + f.peak);
    combine({floor, run.cost, Kind::fill, first, false, false, j, j, start, k, kNone, kNone}, &right, x + f.held, empty, &all);
  }
  if (frees_ || !o.bare) add_jumps(j, start, false, t, option, kept, true, &all);
  return lates_[key] = best(std::move(all));
}

void LateSolver::write(uint32_t at, std::vector<Step> *steps) const {
  const Node &n = nodes_[at];
  Tracer tracer(model_, steps);
  const uint32_t from = n.first ? kNoStart : n.from;
  switch (n.kind) {
    case Kind::leaf:
      steps->push_back({Step::Kind::leaf, static_cast<uint8_t>(n.gone ? 2 : n.stays ? 1 : 0), n.s, n.from, n.to});
      return;
    case Kind::split:
      tracer.run(n.s, from, n.to);
      if (n.gone) tracer.free(n.s);
      if (n.s + 1 == model_.size() && !model_.segments[n.s].options[n.to].k) tracer.free(n.s + 1);
      break;
    case Kind::now:
    case Kind::fill: {
      const uint32_t option = n.kind == Kind::now ? n.to : model_.segments[n.s].fills[n.to].option;
      if (n.kind == Kind::now) {
        tracer.run(n.s, from, option);
        tracer.free(n.s);
      } else {
        tracer.run(n.s, from, model_.segments[n.s].fills[n.to].keeps);
      }
      if (n.s + 1 == model_.size()) {
        if (!model_.segments[n.s].options[option].k) tracer.free(n.s + 1);
      } else {
        write(n.one, steps);
      }
      if (n.kind == Kind::fill) {
        steps->push_back({Step::Kind::fill, 0, n.s, 0, option});
        tracer.free(n.s);
      }
      return;
    }
    case Kind::jump:
    case Kind::late_jump: tracer.jump(n.s, n.j, from, n.to); break;
  }
  if (n.one != kNone) write(n.one, steps);
  write(n.two, steps);
}

}  // namespace ckpt::plan::exact
