#include "plan/exact/minimum.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ckpt::plan::exact {
namespace {

constexpr uint64_t kLargestTable = 24'000'000;  // entries of 8 bytes

bool needs_no_more(const Run &a, Bytes a_more, const Run &b, Bytes b_more) { return b.cost == kNever || (a.cost != kNever && a.bytes + a_more <= b.bytes + b_more); }

// Is option `a` of segment i, in bytes alone, never worse than `b`?
bool covers(const Model &model, uint32_t i, uint32_t a, uint32_t b) {
  const Segment &s = model.segments[i];
  const Option &p = s.options[a], &q = s.options[b];
  const Bytes room = !p.k && q.k ? model.x[i + 1] : 0;  // without k the output lies inside what comes next
  if ((p.k && !q.k) || (q.gone && !p.gone) || (p.stays && !q.stays) || (p.at_once && !q.at_once) || (q.bare && !p.bare && !model.slots_at_jumps)) return false;
  if (p.bytes + room > q.bytes || p.leaf.front().m > q.leaf.front().m || p.leaf_inside.front().m > q.leaf_inside.front().m) return false;
  return needs_no_more(s.first.run[a], 0, s.first.run[b], 0) &&
         std::all_of(s.starts.begin(), s.starts.end(), [&](const Start &v) { return needs_no_more(v.run[a], 0, v.run[b], 0); });
}
// Likewise a start (0 always stays).
bool start_covers(const Segment &s, uint32_t a, uint32_t b) {
  const Start &p = s.starts[a], &q = s.starts[b];
  if (p.extra > q.extra || !needs_no_more(s.first.jump[a], 0, s.first.jump[b], 0)) return false;
  for (size_t k = 0; k < p.run.size(); ++k)
    if (!needs_no_more(p.run[k], p.extra, q.run[k], q.extra)) return false;
  for (size_t k = 0; k < p.jump.size(); ++k)
    if (!needs_no_more(p.jump[k], p.extra, q.jump[k], q.extra)) return false;
  return std::all_of(s.starts.begin(), s.starts.end(), [&](const Start &v) { return needs_no_more(v.jump[a], 0, v.jump[b], 0); });
}

// The numbers 0 .. count - 1 of which none covers another.
template <class Covers>
std::vector<uint32_t> uncovered(uint32_t count, Covers &&covered_by) {
  std::vector<uint32_t> kept;
  for (uint32_t k = 0; k < count; ++k) {
    if (std::any_of(kept.begin(), kept.end(), [&](uint32_t o) { return covered_by(o, k); })) continue;
    std::erase_if(kept, [&](uint32_t o) { return o != 0 && covered_by(k, o); });
    kept.push_back(k);
  }
  return kept;
}

// The model with what matters where time does not, and the numbers that its options and starts have in the whole model.
struct Lean {
  Model model;
  std::vector<std::vector<uint32_t>> options, starts;

  explicit Lean(const Model &whole) : model(whole), options(whole.size()), starts(whole.size()) {
    std::vector<uint32_t> by_kind;
    for (uint32_t i = 0; i < whole.size(); ++i) {
      const Segment &s = whole.segments[i];
      if (s.kind >= by_kind.size()) by_kind.resize(s.kind + 1, UINT32_MAX);
      uint32_t &same = by_kind[s.kind];
      if (same != UINT32_MAX) {
        options[i] = options[same];
        starts[i] = starts[same];
        model.segments[i] = model.segments[same];
        continue;
      }
      same = i;
      options[i] = uncovered(static_cast<uint32_t>(s.options.size()), [&](uint32_t a, uint32_t b) { return covers(whole, i, a, b); });
      starts[i] = uncovered(static_cast<uint32_t>(s.starts.size()), [&](uint32_t a, uint32_t b) { return start_covers(s, a, b); });
      Segment &lean = model.segments[i];
      lean.options = picked(s.options, options[i]);
      lean.starts = picked(s.starts, starts[i]);
      for (Start &v : lean.starts) shorten(&v, i);
      shorten(&lean.first, i);
    }
  }

 private:
  template <class T>
  static std::vector<T> picked(const std::vector<T> &from, const std::vector<uint32_t> &which) {
    std::vector<T> out;
    for (uint32_t k : which) out.push_back(from[k]);
    return out;
  }
  void shorten(Start *v, uint32_t i) const {
    v->run = picked(v->run, options[i]);
    v->jump = picked(v->jump, starts[i]);
  }
};

class Minimum {
 public:
  Minimum(const Lean &lean, const Model &whole) : lean_(lean), whole_(whole), model_(lean.model), n_(whole.size()) {
    const Model &model = model_;
    sticky_.assign(n_ + 1, 0);
    for (uint32_t i = 0; i < n_; ++i) sticky_[i + 1] = sticky_[i] + model.segments[i].sticky;
    again_ = RangeMax(n_, [&](uint32_t i) { return jump_bytes(i, model_.segments[i].starts[0].jump[0]); });
    first_runs_ = RangeMax(n_, [&](uint32_t i) { return jump_bytes(i, model_.segments[i].first.jump[0]) + sticky_[i]; });
    first_.assign(2 * n_ + 2, kNoRoom);
    for (const bool first : {false, true}) {
      jumps_[first].assign(n_ + 1, 0);
      for (uint32_t i = 0; i < n_; ++i) {
        const Run &jump = (first ? model.segments[i].first : model.segments[i].starts[0]).jump[0];
        jumps_[first][i + 1] = jumps_[first][i] + (jump.cost == kNever ? 0 : jump.cost);
      }
    }
    boundaries_.assign(n_ + 1, 0);
    for (uint32_t i = 0; i < n_; ++i) boundaries_[i + 1] = boundaries_[i] + model.x[i];
  }

  Bytes solve() {
    twins_ = find_twins(model_);
    columns_.resize(n_);
    for (uint32_t t = 0; t < n_; ++t)
      for (uint32_t s = t + 1; s-- > 0;) {
        if (s < t && model_.segments[s].wall) break;
        const uint32_t length = t - s + 1;
        if (twins_.length[s] >= length) columns_[t].push_back(columns_[twins_.at[s] + length - 1][length - 1]);
        else compute_block(s, t);
      }
    for (uint32_t p = n_; p-- > 0;)
      for (uint32_t side = 0; side < sides(p); ++side) first_[2 * p + side] = first(p, side);
    return right_first(0, false);
  }

  // A program of so few bytes, after solve(). At each place the cheapest start that leaves enough for the rest, else the jump that
  // lands nearest to the middle. False: there are more steps than `most`.
  bool write(Bytes room, size_t most, std::vector<Step> *steps) const {
    Tracer tracer(model_, steps);
    std::vector<Stretch> parts;
    Stretch at{0, 0, 0, n_ - 1, 0, 0, false, false, room};
    while (at.s < n_) {
      const Stretch here = entered(at);
      const Cut cut = first_cut(here);
      const uint32_t j = cut.j;
      const Option &o = whole_.segments[j].options[cut.whole];
      const bool gone = j == here.s && here.side == 1 && o.gone;
      if (j > here.s) tracer.jump(here.s, j, kNoStart, lean_.starts[here.s][cut.start]);
      tracer.run(j, kNoStart, cut.whole);
      if (gone || j > here.s) tracer.free(j);
      parts.push_back({here.s, j > here.s ? cut.start : 0, here.side, j, cut.option, cut.whole, here.stays, gone, here.room});
      if (j + 1 == n_ && !o.k) tracer.free(n_);
      at = {j + 1, 0, 0, n_ - 1, 0, 0, o.k, false, here.room - cut.outside};
    }
    // Stacks of what is still to be gone back over: the last stretch first, and in it what lies behind.
    while (!parts.empty()) {
      if (steps->size() > most) return false;
      const Stretch part = parts.back();
      parts.pop_back();
      if (part.s == part.t) {
        const Option &o = whole_.segments[part.s].options[part.whole];
        const std::vector<Point> &ways = part.side == 1 && !part.gone ? o.leaf_inside : o.leaf;
        uint32_t way = 0;  // the cheapest that fits
        while (way + 1 < ways.size() && ways[way + 1].m <= part.room) ++way;
        steps->push_back({Step::Kind::leaf, static_cast<uint8_t>(part.gone ? 2 : part.stays ? 1 : 0), part.s, way, part.whole});
        continue;
      }
      const Cut cut = later_cut(part);
      const uint32_t j = cut.j;
      const Option &o = whole_.segments[j].options[cut.whole];
      const bool gone = j == part.s && part.side == 1 && o.gone;
      const uint32_t from = lean_.starts[part.s][part.start];
      if (j > part.s) tracer.jump(part.s, j, from, lean_.starts[part.s][cut.start]);
      tracer.run(j, j > part.s ? 0 : from, cut.whole);
      if (gone || j > part.s) tracer.free(j);
      parts.push_back({part.s, j > part.s ? cut.start : 0, part.side, j, cut.option, cut.whole, part.stays, gone, part.room});
      parts.push_back(entered({j + 1, 0, 0, part.t, part.option, part.whole, o.k, false, part.room - cut.outside}));
    }
    return steps->size() <= most;
  }

  // From each wall to the next: one jump, and then a run from its start for each segment.
  Bytes simple() {
    for (uint32_t end = n_; end > 0;) {
      uint32_t p = end - 1;
      while (p > 0 && !model_.segments[p - 1].wall) --p;
      for (uint32_t side = 0; side < sides(p); ++side) first_[2 * p + side] = simple_first(p, side, end - 1);
      end = p;
    }
    return right_first(0, false);
  }

 private:
  struct Stretch {  // s .. t to be gone back over, with `option` of t stored (in first passes: to the end)
    uint32_t s, start, side, t, option, whole;  // whole: its number in the whole model
    bool stays, gone;  // boundary s survives it; has gone already
    Bytes room;
  };
  struct Cut {  // jump from `start` to j and keep `option` of j; j == s: no jump, and `whole` alone counts
    uint32_t j = 0, start = 0, option = 0, whole = 0;
    Bytes outside = 0;  // of what then lives, as the rest behind j sees it
  };

  // From the frame of right() to that of part().
  Stretch entered(Stretch at) const {
    const bool reads = model_.segments[at.s].reads_input;
    at.side = reads || at.stays ? 0 : 1;
    if (reads && !at.stays) at.room -= model_.x[at.s];
    return at;
  }

  Cut first_cut(const Stretch &at) const {
    const uint32_t p = at.s;
    const Segment &s = model_.segments[p];
    const Bytes x = at.side == 1 ? model_.x[p] : 0, base = model_.g[n_] + x;
    Cut best;
    double least = 1e300;
    const Segment &all = whole_.segments[p];
    for (uint32_t q = 0; q < all.options.size(); ++q) {
      const Option &o = all.options[q];
      const bool gone = at.side == 1 && o.gone;
      const Bytes outside = (gone ? 0 : x) + o.bytes, rest = right_first(p + 1, o.k);
      if (all.first.run[q].cost == kNever || std::max({base + all.first.run[q].bytes, leaf(o, at.side, gone), rest + outside}) > at.room) continue;
      const double cost = static_cast<double>(all.first.run[q].cost) + guess(p + 1, n_ - 1, at.room - outside - rest);
      if (cost < least) least = cost, best = {p, 0, 0, q, outside};
    }
    for (uint32_t j = p + 1; j < n_ && !model_.segments[j - 1].wall; ++j)
      for (uint32_t to = 0; to < s.first.jump.size(); ++to) {
        if (s.first.jump[to].cost == kNever) continue;
        const Bytes extra = s.starts[to].extra, live = base + extra + sticky(p, j), outside = x + extra + sticky(p, j);
        if (std::max(base + s.first.jump[to].bytes, base + extra + first_runs_.of(p + 1, j) - sticky_[p]) > at.room) continue;
        const Ticks jumps = s.first.jump[to].cost + jumps_[1][j] - jumps_[1][p + 1];
        consider({at.side, p, to, j, n_ - 1, live, at.room, outside, jumps}, model_.segments[j].first, [&](uint32_t next, bool k) { return right_first(next, k); }, &least, &best);
      }
    return best;
  }

  Cut later_cut(const Stretch &at) const {
    const uint32_t s = at.s;
    const Segment &segment = model_.segments[s];
    const Start &from = segment.starts[at.start];
    const Bytes x = at.side == 1 ? model_.x[s] : 0, base = model_.g[at.t + 1] + model_.segments[at.t].options[at.option].bytes + x + sticky(s, at.t);
    Cut best;
    double least = 1e300;
    const std::vector<Option> &all = whole_.segments[s].options;
    const std::vector<Run> &runs = whole_.segments[s].starts[lean_.starts[s][at.start]].run;
    for (uint32_t q = 0; q < all.size(); ++q) {
      const Option &o = all[q];
      const bool gone = at.side == 1 && o.gone;
      const Bytes outside = (gone ? 0 : x) + o.bytes, rest = right(s + 1, o.k, at.t, at.option);
      if (runs[q].cost == kNever || std::max({base + from.extra + runs[q].bytes, leaf(o, at.side, gone), rest + outside}) > at.room) continue;
      const double cost = static_cast<double>(runs[q].cost) + guess(s + 1, at.t, at.room - outside - rest);
      if (cost < least) least = cost, best = {s, 0, 0, q, outside};
    }
    for (uint32_t j = s + 1; j < at.t; ++j)
      for (uint32_t to = 0; to < segment.starts.size(); ++to) {
        if (from.jump[to].cost == kNever) continue;
        const Bytes extra = segment.starts[to].extra;
        if (std::max(base + from.extra + from.jump[to].bytes, base + extra + again_.of(s + 1, j)) > at.room) continue;
        const Ticks jumps = from.jump[to].cost + jumps_[0][j] - jumps_[0][s + 1];
        consider({at.side, s, to, j, at.t, base + extra, at.room, x + extra + sticky(s, j), jumps}, model_.segments[j].starts[0],
                 [&](uint32_t next, bool k) { return right(next, k, at.t, at.option); }, &least, &best);
      }
    return best;
  }

  struct Landing {  // of a jump over s .. j - 1 on j
    uint32_t side, s, to, j, t;
    Bytes live, room, outside;
    Ticks jumps;
  };
  // With each option of j: does it fit, and what may it come to?
  template <class Behind>
  void consider(const Landing &l, const Start &runs, Behind &&behind_bytes, double *least, Cut *best) const {
    for (uint32_t q = 0; q < option_count(l.j); ++q) {
      const Option &o = model_.segments[l.j].options[q];
      if (runs.run[q].cost == kNever || !may_jump_to(o)) continue;
      const Bytes left = part(l.s, l.to, l.side, l.j, q), rest = behind_bytes(l.j + 1, o.k), outside = l.outside + o.bytes;
      if (std::max({l.live + model_.x[l.j] + runs.run[q].bytes, left, rest + outside}) > l.room) continue;
      const double cost = static_cast<double>(l.jumps + runs.run[q].cost) + guess(l.j + 1, l.t, l.room - outside - rest) + guess(l.s, l.j, l.room - left);
      if (cost < *least) *least = cost, *best = {l.j, l.to, q, lean_.options[l.j][q], outside};
    }
  }

  // What s .. t may cost with so many bytes more than they need: as equal steps would, with a checkpoint for each boundary that
  // fits (Griewank and Walther).
  double guess(uint32_t s, uint32_t t, Bytes spare) const {
    if (s >= t) return 0;
    const auto length = static_cast<double>(t - s + 1);
    const double boundary = std::max(1.0, static_cast<double>(boundaries_[t + 1] - boundaries_[s + 1]) / (length - 1)), forward = static_cast<double>(jumps_[0][t + 1] - jumps_[0][s]);
    double checkpoints = 1 + static_cast<double>(spare) / boundary, fits = 1, sweeps = 0;  // fits: steps within so many sweeps
    if (checkpoints < 2) return forward * (length - 1) / 2 * (1 - (checkpoints - 1) * (1 - 2 / std::sqrt(length)));
    for (double before = 0;; before = fits) {
      sweeps += 1;
      fits *= (checkpoints + sweeps) / sweeps;
      if (fits >= length) return forward * (sweeps - 1 + (length - before) / (fits - before));
    }
  }

  // Of any range of segments in constant time.
  class RangeMax {
   public:
    RangeMax() = default;
    template <class F>
    RangeMax(uint32_t n, F &&value) {
      levels_.emplace_back();
      for (uint32_t i = 0; i < n; ++i) levels_[0].push_back(value(i));
      for (uint32_t width = 1; 2 * width <= n; width *= 2) {
        const std::vector<Bytes> &below = levels_.back();
        std::vector<Bytes> level;
        for (uint32_t i = 0; i + 2 * width <= n; ++i) level.push_back(std::max(below[i], below[i + width]));
        levels_.push_back(std::move(level));
      }
    }
    Bytes of(uint32_t begin, uint32_t end) const {  // [begin, end)
      if (begin >= end) return 0;
      const auto level = static_cast<uint32_t>(std::bit_width(end - begin)) - 1;
      return std::max(levels_[level][begin], levels_[level][end - (1u << level)]);
    }

   private:
    std::vector<std::vector<Bytes>> levels_;
  };

  Bytes jump_bytes(uint32_t i, const Run &run) const { return run.cost == kNever ? kNoRoom : model_.x[i] + run.bytes; }
  uint32_t sides(uint32_t s) const { return model_.segments[s].reads_input ? 1 : 2; }
  uint32_t option_count(uint32_t t) const { return static_cast<uint32_t>(model_.segments[t].options.size()); }
  bool may_jump_to(const Option &o) const { return !o.stays && !o.at_once && (model_.slots_at_jumps || o.bare); }
  Bytes sticky(uint32_t begin, uint32_t end) const { return sticky_[end] - sticky_[begin]; }
  static Bytes leaf(const Option &o, uint32_t side, bool gone) { return (side == 1 && !gone ? o.leaf_inside : o.leaf).front().m; }
  Bytes part(uint32_t s, uint32_t start, uint32_t side, uint32_t t, uint32_t option) const {
    return values_[columns_[t][t - s] + (start * sides(s) + side) * option_count(t) + option];
  }
  Bytes right(uint32_t s, bool stays, uint32_t t, uint32_t option) const {
    if (model_.segments[s].reads_input) return part(s, 0, 0, t, option) + (stays ? 0 : model_.x[s]);
    return part(s, 0, stays ? 0 : 1, t, option);
  }
  Bytes right_first(uint32_t s, bool stays) const {
    if (s == n_) return 0;
    if (model_.segments[s].reads_input) return first_[2 * s] + (stays ? 0 : model_.x[s]);
    return first_[2 * s + (stays ? 0 : 1)];
  }

  void compute_block(uint32_t s, uint32_t t) {
    const auto block = static_cast<uint32_t>(values_.size());
    const auto starts = static_cast<uint32_t>(model_.segments[s].starts.size());
    values_.resize(block + size_t{starts} * sides(s) * option_count(t), kNoRoom);
    columns_[t].push_back(block);
    for (uint32_t start = 0; start < starts; ++start)
      for (uint32_t side = 0; side < sides(s); ++side)
        for (uint32_t o = 0; o < option_count(t); ++o) {
          const Option &option = model_.segments[t].options[o];
          values_[block + (start * sides(s) + side) * option_count(t) + o] = s == t ? leaf(option, side, false) : compute(s, start, side, t, o);
        }
  }

  Bytes compute(uint32_t s, uint32_t start, uint32_t side, uint32_t t, uint32_t option) const {
    const Segment &segment = model_.segments[s];
    const Start &from = segment.starts[start];
    const Bytes x = side == 1 ? model_.x[s] : 0, base = model_.g[t + 1] + model_.segments[t].options[option].bytes + x + sticky(s, t);
    const Bytes least = part(s + 1, 0, 0, t, option);
    Bytes best = kNoRoom;
    for (uint32_t q = 0; q < option_count(s); ++q) {
      const Option &o = segment.options[q];
      if (from.run[q].cost == kNever) continue;
      const bool gone = side == 1 && o.gone;
      const Bytes here = std::max(base + from.extra + from.run[q].bytes, leaf(o, side, gone));
      if (here < best) best = std::min(best, std::max(here, right(s + 1, o.k, t, option) + (gone ? 0 : x) + o.bytes));
    }
    for (uint32_t j = t; j-- > s + 1 && best > least;)
      for (uint32_t to = 0; to < segment.starts.size(); ++to) {
        if (from.jump[to].cost == kNever) continue;
        const Bytes extra = segment.starts[to].extra;
        const Bytes floor = std::max(base + from.extra + from.jump[to].bytes, base + extra + again_.of(s + 1, j));
        if (floor < best) best = std::min(best, behind(s, to, side, j, t, option, floor, base + extra, x + extra + sticky(s, j), best));
      }
    return best;
  }
  Bytes behind(uint32_t s, uint32_t to, uint32_t side, uint32_t j, uint32_t t, uint32_t option, Bytes floor, Bytes live, Bytes outside, Bytes best) const {
    const Segment &at = model_.segments[j];
    for (uint32_t q = 0; q < option_count(j); ++q) {
      const Option &o = at.options[q];
      const Run &run = at.starts[0].run[q];
      if (run.cost == kNever || !may_jump_to(o)) continue;
      const Bytes here = std::max({floor, live + model_.x[j] + run.bytes, part(s, to, side, j, q)});
      if (here < best) best = std::min(best, std::max(here, right(j + 1, o.k, t, option) + outside + o.bytes));
    }
    return best;
  }

  Bytes first(uint32_t p, uint32_t side) const {
    const Segment &s = model_.segments[p];
    const Bytes x = side == 1 ? model_.x[p] : 0, base = model_.g[n_] + x;
    Bytes best = kNoRoom;
    for (uint32_t q = 0; q < option_count(p); ++q) {
      const Option &o = s.options[q];
      const bool gone = side == 1 && o.gone;
      if (s.first.run[q].cost == kNever) continue;
      best = std::min(best, std::max({base + s.first.run[q].bytes, leaf(o, side, gone), right_first(p + 1, o.k) + (gone ? 0 : x) + o.bytes}));
    }
    for (uint32_t j = p + 1; j < n_ && !model_.segments[j - 1].wall; ++j)
      for (uint32_t to = 0; to < s.first.jump.size(); ++to) {
        if (s.first.jump[to].cost == kNever) continue;
        const Bytes extra = s.starts[to].extra, held = base + extra + sticky(p, j) + model_.x[j];
        const Bytes floor = std::max(base + s.first.jump[to].bytes, base + extra + first_runs_.of(p + 1, j) - sticky_[p]);
        if (floor >= best) continue;
        for (uint32_t q = 0; q < option_count(j); ++q) {
          const Option &o = model_.segments[j].options[q];
          const Run &run = model_.segments[j].first.run[q];
          if (run.cost == kNever || !may_jump_to(o)) continue;
          const Bytes here = std::max({floor, held + run.bytes, right_first(j + 1, o.k) + x + extra + sticky(p, j) + o.bytes});
          if (here < best) best = std::min(best, std::max(here, part(p, to, side, j, q)));
        }
      }
    return best;
  }

  Bytes simple_first(uint32_t p, uint32_t side, uint32_t w) const {
    const Segment &s = model_.segments[p];
    const Bytes x = side == 1 ? model_.x[p] : 0;
    std::vector<Bytes> before;  // by option of t - 1, then of t
    for (uint32_t t = p; t <= w; ++t) {
      std::vector<Bytes> now;
      for (const Option &o : model_.segments[t].options) {
        const Bytes base = model_.g[t + 1] + o.bytes + x + sticky(p, t);
        Bytes best = t == p ? leaf(o, side, false) : kNoRoom;
        for (uint32_t q = 0; t > p && q < option_count(t - 1); ++q) {
          const Option &kept = model_.segments[t - 1].options[q];
          const Run &run = model_.segments[t - 1].starts[0].run[q];
          if (run.cost == kNever || (t - 1 > p && !may_jump_to(kept))) continue;
          const Bytes runs = t - 1 == p ? base + run.bytes : std::max({base + s.starts[0].jump[0].bytes, base + again_.of(p + 1, t - 1), base + model_.x[t - 1] + run.bytes});
          const Bytes last = x + sticky(p, t - 1) + kept.bytes + (model_.segments[t].reads_input || kept.k ? o.leaf.front().m + (kept.k ? 0 : model_.x[t]) : o.leaf_inside.front().m);
          best = std::min(best, std::max({runs, last, before[q]}));
        }
        now.push_back(best);
      }
      before = std::move(now);
    }
    Bytes best = kNoRoom;
    for (uint32_t q = 0; q < option_count(w); ++q) {
      const Option &o = model_.segments[w].options[q];
      const Run &run = model_.segments[w].first.run[q];
      if (run.cost == kNever || (w > p && !may_jump_to(o))) continue;
      const Bytes base = model_.g[n_] + x;
      const Bytes runs = w == p ? base + run.bytes : std::max({base + s.first.jump[0].bytes, base + first_runs_.of(p + 1, w) - sticky_[p], base + sticky(p, w) + model_.x[w] + run.bytes});
      best = std::min(best, std::max({runs, before[q], right_first(w + 1, o.k) + x + sticky(p, w) + o.bytes}));
    }
    return best;
  }

  const Lean &lean_;
  const Model &whole_, &model_;  // the lean one
  const uint32_t n_;
  Twins twins_;
  std::vector<Bytes> sticky_, first_, boundaries_;  // prefix sums: sticky_, boundaries_
  std::vector<Ticks> jumps_[2];                     // prefix sums of jumps again, and of first ones
  RangeMax again_, first_runs_;
  std::vector<std::vector<uint32_t>> columns_;
  std::vector<Bytes> values_;
};

bool fits(const Model &model) {
  uint64_t options = 0, places = 0;
  for (const Segment &s : model.segments) {
    options = std::max<uint64_t>(options, s.options.size());
    places = std::max<uint64_t>(places, s.starts.size() * (s.reads_input ? 1 : 2));
  }
  const Twins twins = find_twins(model);
  uint64_t fresh = 0;  // stretches that are no earlier one's
  for (uint32_t s = 0; s < model.size(); ++s) fresh += model.size() - s - twins.length[s];
  return uint64_t{model.size()} * model.size() <= 64'000'000 && fresh * options * places <= kLargestTable;
}

}  // namespace

struct SmallPrograms::State {
  Lean lean;
  Minimum minimum;
  Bytes load = 0;
  bool known = false;

  explicit State(const Model &model) : lean(model), minimum(lean, model), known(fits(lean.model)) { load = known ? minimum.solve() : minimum.simple(); }
};

SmallPrograms::SmallPrograms(const Model &model) : state_(std::make_unique<State>(model)) {}
SmallPrograms::SmallPrograms(SmallPrograms &&) noexcept = default;
SmallPrograms &SmallPrograms::operator=(SmallPrograms &&) noexcept = default;
SmallPrograms::~SmallPrograms() = default;
Bytes SmallPrograms::least() const { return state_->load; }
std::vector<Step> SmallPrograms::write(Bytes room, size_t most) const {
  std::vector<Step> steps;
  if (state_->known && room >= state_->load && !state_->minimum.write(room, most, &steps)) steps.clear();
  return steps;
}

bool has_small_programs(const Model &model) { return fits(Lean(model).model); }
Bytes minimum_load(const Model &model) { return SmallPrograms(model).least(); }
Bytes simple_minimum(const Model &model) {
  const Lean lean(model);
  return Minimum(lean, model).simple();
}

}  // namespace ckpt::plan::exact
