#include "plan/exact/trace.h"

#include <algorithm>

namespace ckpt::plan::exact {

void Tracer::jump(uint32_t s, uint32_t j, uint32_t from, uint32_t to) {
  const bool first = from == kNoStart;
  for (uint32_t i = s; i < j; ++i) {
    steps_->push_back({Step::Kind::jump, first, i, i == s && !first ? from : 0, i == s ? to : 0});
    if (i > s) free(i);
  }
}

void Tracer::run(uint32_t i, uint32_t from, uint32_t option) {
  const bool first = from == kNoStart;
  steps_->push_back({Step::Kind::run, first, i, first ? 0 : from, option});
}

void Tracer::part(const Part &whole) {
  std::vector<Part> todo{whole};
  while (!todo.empty()) {
    const Part p = todo.back();
    todo.pop_back();
    if (p.s == p.t && p.start == 0 && (p.gone || p.point.m >= 0)) {
      const uint8_t how = p.gone ? 2 : p.stays ? 1 : 0;
      const Option &o = model_.segments[p.s].options[p.option];
      const std::vector<Point> &ways = p.side == 1 && !p.gone ? o.leaf_inside : o.leaf;
      const auto way = std::find_if(ways.begin(), ways.end(), [&](const Point &w) { return w.m == p.point.m && w.c == p.point.c; });
      steps_->push_back({Step::Kind::leaf, how, p.s, way == ways.end() ? 0 : static_cast<uint32_t>(way - ways.begin()), p.option});
      continue;
    }
    if (!expand(p, &todo)) return;
  }
}

// The cheapest point within so many bytes, if it costs what is asked.
bool Tracer::find_right(const Part &part, uint32_t next, bool next_stays, Bytes outside, Ticks cost, Point *point) const {
  Bytes shift = 0;
  const Front right = in_->right(next, next_stays, part.t, part.option, &shift);
  for (uint32_t b = 0; b < right.count; ++b)
    if (right.begin[b].c == cost && right.begin[b].m + shift + outside <= part.point.m) {
      *point = right.begin[b];
      return true;
    }
  return false;
}

bool Tracer::expand(const Part &part, std::vector<Part> *todo) {
  if (try_start(part, todo)) return true;
  for (uint32_t to = 0; to < model_.segments[part.s].starts.size(); ++to)
    if (try_behind(part, to, todo)) return true;
  return false;
}

bool Tracer::try_start(const Part &part, std::vector<Part> *todo) {
  const uint32_t s = part.s, t = part.t;
  const Segment &segment = model_.segments[s];
  const Start &from = segment.starts[part.start];
  const Bytes x = part.side == 1 ? model_.x[s] : 0, stored = model_.g[t + 1] + model_.segments[t].options[part.option].bytes;
  for (uint32_t q = 0; q < segment.options.size(); ++q) {
    const Option &o = segment.options[q];
    if (from.run[q].cost > part.point.c) continue;
    const bool gone = part.side == 1 && o.gone;
    if (x + from.extra + in_->sticky(s, t) + from.run[q].bytes + stored > part.point.m) continue;
    for (const Point &leaf : part.side == 1 && !gone ? o.leaf_inside : o.leaf) {
      Point right{};
      if (leaf.m > part.point.m || !find_right(part, s + 1, o.k, (gone ? 0 : x) + o.bytes, part.point.c - from.run[q].cost - leaf.c, &right)) continue;
      run(s, part.start, q);
      if (gone) free(s);
      todo->push_back({s, 0, part.side, s, q, part.stays, gone, leaf});
      todo->push_back({s + 1, 0, model_.segments[s + 1].reads_input || o.k ? 0u : 1u, t, part.option, o.k, false, right});
      return true;
    }
  }
  return false;
}

bool Tracer::try_behind(const Part &part, uint32_t to, std::vector<Part> *todo) {
  const uint32_t s = part.s, t = part.t;
  const Segment &segment = model_.segments[s];
  const Start &from = segment.starts[part.start];
  Ticks cost = from.jump[to].cost;
  if (cost > part.point.c) return false;
  const Bytes x = part.side == 1 ? model_.x[s] : 0, stored = model_.g[t + 1] + model_.segments[t].options[part.option].bytes;
  const Bytes extra = segment.starts[to].extra, live = stored + x + extra + in_->sticky(s, t);
  Bytes floor = stored + x + from.extra + in_->sticky(s, t) + from.jump[to].bytes;
  for (uint32_t j = s + 1; j < t && cost <= part.point.c && floor <= part.point.m; ++j) {
    const Segment &at = model_.segments[j];
    for (uint32_t q = 0; q < at.options.size(); ++q) {
      const Option &o = at.options[q];
      const Run &run_j = at.starts[0].run[q];
      if (run_j.cost > part.point.c - cost || !in_->may_jump_to(o) || live + model_.x[j] + run_j.bytes > part.point.m) continue;
      const Front left = in_->front(s, to, part.side, j, q);
      for (uint32_t a = 0; a < left.count && left.begin[a].m <= part.point.m; ++a) {
        Point right{};
        if (!find_right(part, j + 1, o.k, x + extra + in_->sticky(s, j) + o.bytes, part.point.c - cost - run_j.cost - left.begin[a].c, &right)) continue;
        jump(s, j, part.start, to);
        run(j, 0, q);
        free(j);
        todo->push_back({s, to, part.side, j, q, part.stays, false, left.begin[a]});
        todo->push_back({j + 1, 0, model_.segments[j + 1].reads_input || o.k ? 0u : 1u, t, part.option, o.k, false, right});
        return true;
      }
    }
    if (at.wall || at.starts[0].jump[0].cost == kNever) break;
    floor = std::max(floor, live + model_.x[j] + at.starts[0].jump[0].bytes);
    cost += at.starts[0].jump[0].cost;
  }
  return false;
}

}  // namespace ckpt::plan::exact
