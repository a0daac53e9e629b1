#include "plan/exact/model.h"

#include <algorithm>
#include <map>

namespace ckpt::plan::exact {

Model stage_model(const Stage &stage, bool slots_at_jumps) {
  const size_t n = stage.A.size();
  Model m;
  m.x.assign(stage.a.begin(), stage.a.end());
  m.g.assign(stage.d.begin(), stage.d.end());
  m.slots_at_jumps = slots_at_jumps;
  for (size_t i = 0; i < n; ++i) {
    Segment s;
    const Bytes run = stage.A[i] + stage.scratch_forward[i], jump = stage.a[i + 1] + stage.scratch_forward[i];
    const Bytes back = m.g[i + 1] + stage.A[i] + stage.scratch_backward[i] + stage.d[i], again = m.g[i + 1] + run;
    Option nothing, all;
    nothing.bare = true;
    nothing.leaf = {{std::max(back, again), 0}};
    nothing.leaf_inside = {{nothing.leaf[0].m + m.x[i], 0}};
    all.bytes = stage.A[i];
    all.k = true;
    all.leaf = {{back, 0}};
    all.leaf_inside = {{back + m.x[i], 0}};
    all.choice = 1;
    s.options = {nothing, all};
    s.first.run = {{jump, stage.u[i]}, {run, 0}};
    s.first.jump = {{jump, stage.u[i]}};
    s.starts = {s.first};
    const Run twice{jump, stage.u[i]};
    s.fills = {{1, 0, twice, twice, stage.a[i + 1], stage.A[i] + stage.scratch_forward[i]}};
    m.segments.push_back(s);
  }
  name_kinds(&m);
  return m;
}

namespace {

void add_start(const Start &start, std::vector<int64_t> *key) {
  key->push_back(start.extra);
  for (const Run &r : start.run) key->insert(key->end(), {r.bytes, r.cost});
  for (const Run &r : start.jump) key->insert(key->end(), {r.bytes, r.cost});
}

}  // namespace

void name_kinds(Model *model) {
  std::map<std::vector<int64_t>, uint64_t> known;
  for (uint32_t i = 0; i < model->size(); ++i) {
    Segment &s = model->segments[i];
    std::vector<int64_t> key{s.reads_input, s.wall, s.sticky, model->x[i], model->x[i + 1], model->g[i], model->g[i + 1],
                             static_cast<int64_t>(s.options.size()), static_cast<int64_t>(s.starts.size())};
    for (const Option &o : s.options) {
      key.insert(key.end(), {o.bytes, o.k, o.bare, o.gone, o.stays, o.at_once, static_cast<int64_t>(o.leaf.size())});
      for (const Point &p : o.leaf) key.insert(key.end(), {p.m, p.c});
      for (const Point &p : o.leaf_inside) key.insert(key.end(), {p.m, p.c});
    }
    add_start(s.first, &key);
    for (const Start &start : s.starts) add_start(start, &key);
    s.kind = known.emplace(std::move(key), known.size()).first->second;
  }
}

Twins find_twins(const Model &model) {
  const uint32_t n = model.size();
  Twins twins;
  twins.at.assign(n, 0);
  twins.length.assign(n, 0);
  std::vector<uint32_t> same(n + 1, 0), before(n + 1, 0);
  for (uint32_t s = n; s-- > 0;) {
    std::swap(same, before);
    for (uint32_t other = 0; other < s; ++other) {
      same[other] = model.segments[other].kind == model.segments[s].kind ? before[other + 1] + 1 : 0;
      if (same[other] > twins.length[s]) {
        twins.length[s] = same[other];
        twins.at[s] = other;
      }
    }
  }
  return twins;
}

}  // namespace ckpt::plan::exact
