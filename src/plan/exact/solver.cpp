#include "plan/exact/solver.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace ckpt::plan::exact {
namespace {

constexpr Bytes kNear = 8;             // part of the room by which tables are used for less
constexpr uint32_t kFine = 400;        // a gap of one segment in so many is small
constexpr uint32_t kNarrow = 16, kWide = 64;  // labels per place: to have a program at all, and to better it

Ticks mean_jump(const Model &model) {
  Ticks sum = 0, count = 0;
  for (const Segment &s : model.segments) {
    Ticks most = s.first.jump[0].cost == kNever ? 0 : s.first.jump[0].cost;
    for (const Run &r : s.first.run)
      if (r.cost != kNever) most = std::max(most, r.cost);
    sum += most;
    ++count;
  }
  return sum / std::max<Ticks>(1, count);
}

Ticks to_ticks(double bound) { return bound > 1e18 ? kNever : static_cast<Ticks>(std::ceil(bound)); }

void take(const Found &found, Solution *best) {
  if (found.cost >= best->cost) return;
  best->cost = found.cost;
  best->load = found.load;
  best->steps = found.steps;
}

}  // namespace

// A pass that throws away most labels does better the less it may spend: halve what lies between the bound and the best program,
// where that is much and cannot be proved yet.
void Solver::refine(Top *top, Solution *best, Ticks below, Work *work) {
  if (best->cost == kNever) return;
  const Ticks enough = mean_jump(model_) * std::max<Ticks>(1, model_.size() / kFine);
  Found found;
  for (Ticks low = std::max(best->bound, to_ticks(top->lower())); !work->out();) {
    const Ticks goal = std::min(below, best->cost), most = low + (goal - low) / 2;
    if (goal <= to_ticks(top->conclusive()) || goal - low < 2 * enough || most >= goal) return;
    if (top->search(most, kWide, &found)) take(found, best);
    else low = most + 1;
  }
}

// True: proved, or the work ran out.
bool Solver::improve(Top *top, Solution *best, Ticks below, Work *work) {
  const Ticks conclusive = to_ticks(top->conclusive());  // below this everything is known
  const auto goal = [&] { return std::min(below, best->cost); };
  const auto done = [&] {
    best->proved = best->bound >= goal();
    return best->proved || work->out();
  };
  best->bound = std::max(best->bound, std::min(to_ticks(top->lower()), goal()));
  if (done()) return true;
  Found found;
  const Ticks step = std::max<Ticks>(1, std::max(mean_jump(model_) / 10, (std::min(conclusive, goal()) - best->bound) / 16));
  const Ticks far = best->bound + std::max(whole_->limit(), 16 * step);
  for (Ticks most : {best->bound + 2, best->bound + 4 * step, far, kNever}) {
    // With a program in hand one look is enough; none where it is good and everything near the bound uses what is not known.
    const bool good = goal() - best->bound < 16 * mean_jump(model_);
    if (best->cost != kNever && (most < far || (good && to_ticks(top->lower()) >= conclusive))) continue;
    most = std::min(most, goal() - 1);
    if (most < best->bound) break;
    if (top->search(most, best->cost == kNever ? kNarrow : kWide, &found)) {
      take(found, best);
      break;
    }
    if (work->out()) return true;
  }
  if (done()) return true;
  refine(top, best, below, work);
  if (done()) return true;
  for (Ticks width = step;; width = width * 5 / 2) {
    const Ticks most = std::min({goal(), conclusive, best->bound + width}) - 1;
    if (most < best->bound) break;
    const bool any = top->search(most, 0, &found);
    if (any) take(found, best);
    if (work->out()) return true;
    best->bound = std::max(best->bound, any ? found.cost : most + 1);
    if (done()) return true;
  }
  best->bound = std::max(best->bound, std::min(conclusive, goal()));
  return done();
}

// With the tables of a little more room: costs of stretches are known at least as far, and bounds hold. A program costs a little
// more than the one of more room did.
bool Solver::resume(Bytes room, Ticks below, Work *work, Solution *best, Ticks *limit) {
  const Bytes before = whole_->room();
  if (known_ <= 0 || room > before || room < before - before / kNear) return false;
  Top top(*whole_, room, work);
  *limit = whole_->limit();
  if (!top.prepare(known_)) return false;
  best->bound = to_ticks(top.lower());
  if (latest_ < kNever / 8) {
    Found found;
    const Ticks above = std::max<Ticks>(1, (latest_ - std::min(latest_, best->bound)) / 4);
    const std::pair<Ticks, uint32_t> passes[] = {{latest_ + 8 * above, kNarrow}, {latest_ + above, kWide}, {latest_ + 4 * above, kWide}};
    for (const auto &[most, width] : passes) {
      if (best->cost <= latest_ + above || work->out()) break;
      if (top.search(std::min({most, below - 1, best->cost - 1}), width, &found)) take(found, best);
    }
    if (work->out()) return true;
  }
  return improve(&top, best, below, work);
}

Solution Solver::solve(Bytes room, Ticks below, Work *work) {
  Solution best;
  Ticks resumed = 0;  // limit of the tables that were looked at
  if (resume(room, below, work, &best, &resumed) || (resumed > 0 && work->out())) {
    best.bound = std::min(best.bound, best.cost);
    if (best.cost != kNever) latest_ = best.cost;
    return best;
  }
  next_->compute(room, -1, {}, work);
  Top nothing(*next_, work);  // every part costs nothing
  nothing.prepare(kNever);
  best.bound = std::max(best.bound, to_ticks(nothing.lower()));
  std::unique_ptr<Top> before;
  Ticks known = kNever;  // the bounds of `before` hold up to here
  Ticks span = 0;        // with a program in hand: how far above the bound to look
  for (Ticks limit = std::max<Ticks>({1, mean_jump(model_) / 4, resumed}); limit < kNever / 8;) {
    const Ticks goal = std::min(below, best.cost);
    if (best.bound >= goal) {
      best.proved = true;
      break;
    }
    // What is looked at grows fast with the room between bound and goal: the lower third first.
    if (goal != kNever && (span == 0 || best.bound > known)) span = span == 0 ? (goal - best.bound) / 3 + 1 : 2 * span;
    const Ticks most = goal == kNever ? best.bound + 8 * limit : std::min(goal - 1, best.bound + span);
    const Top &bounds = before != nullptr && most <= known ? *before : nothing;
    if (!next_->compute(room, limit, bounds.limits(most), work)) break;
    known_ = most;
    std::swap(whole_, next_);
    next_->share_floors(*whole_);
    auto top = std::make_unique<Top>(*whole_, work);
    if (top->prepare(most) && improve(top.get(), &best, below, work)) break;
    if (work->out()) break;
    known = most;
    const Ticks missing = std::min({below, best.cost, most + 1}) - to_ticks(top->conclusive());
    limit = std::clamp(limit + missing, 2 * limit, 4 * limit);
    before = std::move(top);
  }
  best.bound = std::min(best.bound, best.cost);
  latest_ = best.cost;
  return best;
}

}  // namespace ckpt::plan::exact
