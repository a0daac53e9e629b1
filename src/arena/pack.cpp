#include "arena/pack.h"

#include <optional>

#include "arena/pack_exact.h"
#include "arena/pack_greedy.h"
#include "arena/pack_local.h"
#include "arena/pack_problem.h"

namespace ckpt::arena {
namespace {

// Beyond this the tables of the exact search take too much memory (4 bytes each, twice) ...
constexpr uint64_t kMostExactEntries = 50'000'000;
// ... and one descent, without a step back, too much time.
constexpr uint64_t kMostExactDescent = 400'000'000;
// Rounds of local search before the exact one: what it finds, it mostly finds in a few.
constexpr uint64_t kLocalRounds = 12;

// One part of the time axis.
class Ladder {
 public:
  // `goal`: a height that is low enough; at least the bound.
  Ladder(const PackProblem &problem, size_t goal, uint64_t work) : problem_(problem), goal_(goal), work_limit_(work), impossible_(problem.bound - 1) {}

  void climb() {
    std::vector<uint32_t> order;
    pack_online(problem_, &best_, &order);
    if (best_.height <= goal_) return;
    PackEngine engine(problem_);
    pack_greedy(problem_, engine, goal_, work_limit_, &best_, &order);
    work_ = engine.work();
    if (best_.height == SIZE_MAX || best_.height <= goal_ || left() == 0) return;
    const uint64_t n = problem_.items.size(), descent = n * (n + problem_.load.size()), entries = ExactSearch::table_size(problem_);
    const bool exact = descent <= kMostExactDescent && entries <= kMostExactEntries;
    const uint64_t before = engine.work();
    pack_local(problem_, engine, goal_, exact ? std::min(left(), kLocalRounds * (n * n / 8 + n * 8)) : left(), order, &best_);
    work_ += engine.work() - before;
    if (best_.height <= goal_ || !exact) return;
    work_ += entries;
    search(2 * descent + 200'000);
  }

  const PackAnswer &best() const { return best_; }
  size_t lowest() const { return impossible_ + 1; }  // no packing is lower
  uint64_t work() const { return work_; }

 private:
  uint64_t left() const { return work_limit_ - std::min(work_, work_limit_); }

  // Rounds with ever more work. What fails at the goal is tried half way to what there is, so that the answer gets better
  // all the time.
  void search(uint64_t work) {
    ExactSearch exact(problem_);
    for (uint32_t round = 0; left() != 0; ++round, work *= 2) {
      size_t target = std::max(goal_, lowest());
      for (int step = round == 0 ? 2 : 0; step < 3 && target < best_.height && left() != 0; ++step) {
        const auto outcome = attempt(exact, target, round, work);
        const size_t least = std::max(goal_, lowest());
        if (best_.height <= least) return;
        target = outcome == ExactSearch::Outcome::out_of_work ? target + (best_.height - target) / 2 : least;
      }
    }
  }

  ExactSearch::Outcome attempt(ExactSearch &exact, size_t target, uint32_t round, uint64_t work) {
    auto outcome = ExactSearch::Outcome::out_of_work;
    for (uint32_t p = 0; p < ExactSearch::kPreferences && left() != 0 && outcome == ExactSearch::Outcome::out_of_work; ++p) {
      const uint64_t before = exact.work();
      outcome = exact.run(target, static_cast<ExactSearch::Preference>(p), round % 2 == 0 ? 0 : round, std::min(work, left()));
      work_ += exact.work() - before + problem_.items.size();
    }
    if (outcome == ExactSearch::Outcome::none) impossible_ = std::max(impossible_, target);
    if (outcome != ExactSearch::Outcome::found) return outcome;
    best_.offsets = exact.offsets();
    best_.height = 0;
    for (size_t k = 0; k < problem_.items.size(); ++k) best_.height = std::max(best_.height, best_.offsets[k] + problem_.items[k].size);
    return outcome;
  }

  const PackProblem &problem_;
  size_t goal_;
  uint64_t work_limit_, work_ = 0;
  size_t impossible_;
  PackAnswer best_;
};

}  // namespace

Status pack(std::span<const PackBuffer> buffers, const PackLimits &limits, Packing *out) {
  *out = Packing{};
  PackParts parts;
  CKPT_TRY(split(buffers, &parts));
  out->offsets.assign(buffers.size(), 0);
  const uint64_t work = limits.work == 0 ? kDefaultPackWork : limits.work;
  size_t height = 0, lowest = parts.bound;
  for (const PackProblem &p : parts.parts) {
    Ladder ladder(p, std::max(lowest, limits.capacity / parts.unit), work - std::min(work, out->work));
    ladder.climb();
    out->work += ladder.work();
    if (ladder.best().height == SIZE_MAX)
      return fail(CKPT_ERROR_OVERFLOW, "pack: no packing of the live load of %zu bytes was found below %zu bytes", parts.bound * parts.unit, kMaxPackBytes);
    height = std::max(height, ladder.best().height);
    lowest = std::max(lowest, ladder.lowest());
    for (size_t k = 0; k < p.items.size(); ++k) out->offsets[p.buffers[k]] = ladder.best().offsets[k] * parts.unit;
  }
  out->lower_bound = parts.bound * parts.unit;
  out->height = height * parts.unit;
  out->proved = height == lowest;
  out->refuted = limits.capacity != 0 && lowest > limits.capacity / parts.unit;
  return CKPT_OK;
}

}  // namespace ckpt::arena
