#include "plan/graph_search_local.h"

#include <algorithm>

namespace ckpt::plan {
namespace {

constexpr uint32_t kMovesAtOnce = 8;
constexpr size_t kCrowded = 192;  // points, from which on a new one must be worth its place
constexpr double kWorth = 1.0 / 1024;

uint64_t hash_of(const Choices &choices) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (Choice c : choices) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

bool faster(const LocalPoint &a, const LocalPoint &b) {
  if (a.ticks != b.ticks) return a.ticks < b.ticks;
  if (a.recompute_count != b.recompute_count) return a.recompute_count < b.recompute_count;
  return a.height < b.height;
}

}  // namespace

// Is there room for it on the front?
bool LocalSearch::is_news(const LocalPoint &p) const {
  // The first point that is not faster; the one before it is, and must be higher.
  const auto after = std::lower_bound(front_.begin(), front_.end(), p, faster);
  if (after != front_.begin() && std::prev(after)->height <= p.height) return false;
  if (after == front_.end()) return true;
  if (after->ticks == p.ticks && after->recompute_count == p.recompute_count && after->height == p.height) return false;
  if (after->height >= p.height || front_.size() < kCrowded) return true;
  // Between two points: it pushes nothing out.
  const double saved = static_cast<double>(after->ticks - p.ticks), bytes = after == front_.begin() ? 0 : static_cast<double>(std::prev(after)->height - p.height);
  return saved > kWorth * (Trial::kTicks + static_cast<double>(p.ticks)) || bytes > 4 * kWorth * static_cast<double>(p.height);
}

void LocalSearch::insert(LocalPoint p) {
  auto at = std::lower_bound(front_.begin(), front_.end(), p, faster);
  auto end = at;
  while (end != front_.end() && end->height >= p.height) ++end;
  at = front_.erase(at, end);
  front_.insert(at, std::move(p));
}

Status LocalSearch::consider(Choices choices, uint32_t next) {
  if (!seen_.insert(hash_of(choices)).second) return CKPT_OK;
  LocalPoint p;
  p.choices = std::move(choices);
  Result<Program> program = write_step(trial_.graph(), trial_.gradients(), space_.to_policy(p.choices));
  work_ += 16 * space_.size() + 8 * trial_.graph().item_bytes.size();
  if (!program.ok()) return program.status() == CKPT_ERROR_OVERFLOW ? Status{CKPT_OK} : program.status();  // too long a program: no point
  work_ += 48 * program->actions.size() * (trial_.in_flight() > 1 ? 3 * uint64_t{trial_.in_flight()} + 1 : 1);
  Simulation s;
  CKPT_TRY(trial_.simulate(*program, &s));
  p.ticks = trial_.ticks(s);
  p.recompute_count = s.recompute_count;
  p.height = trial_.height(s);
  p.next = next;
  if (is_news(p)) insert(std::move(p));
  return CKPT_OK;
}

// Of those that tried the least, the one with the widest gap before it.
size_t LocalSearch::pick() const {
  size_t best = front_.size();
  double widest = -1;
  for (size_t k = 0; k < front_.size(); ++k) {
    const LocalPoint &p = front_[k];
    if (p.tried >= space_.move_count()) continue;
    if (best != front_.size() && p.tried > front_[best].tried) continue;
    const double gap = k == 0 ? 1 : static_cast<double>(front_[k - 1].height - p.height) / static_cast<double>(front_[k - 1].height);
    if (best != front_.size() && p.tried == front_[best].tried && gap <= widest) continue;
    best = k;
    widest = gap;
  }
  return best;
}

Status LocalSearch::run() {
  const uint32_t moves = space_.move_count();
  while (work_ < work_limit_) {
    const size_t at = pick();
    if (at == front_.size()) {
      finished_ = true;
      return CKPT_OK;
    }
    const Choices from = front_[at].choices;
    const uint32_t first = front_[at].next, count = std::min(kMovesAtOnce, moves - front_[at].tried);
    front_[at].tried += count;
    front_[at].next = (first + count) % moves;
    for (uint32_t k = 0; k < count; ++k) {
      Choices to = from;
      const uint32_t number = (first + k) % moves;
      if (space_.move(number, &to)) CKPT_TRY(consider(std::move(to), (number + 1) % moves));
    }
  }
  return CKPT_OK;
}

}  // namespace ckpt::plan
