#include "plan/exact/exact.h"

#include <algorithm>
#include <cmath>

#include "plan/exact/emit.h"
#include "plan/exact/late.h"
#include "plan/exact/minimum.h"
#include "plan/exact/solver.h"
#include "plan/exact/universal.h"

namespace ckpt::plan::exact {
namespace {

constexpr uint32_t kFamilies = 8;
constexpr uint32_t kShortest = 24, kShort = 200;  // segments
constexpr uint32_t kLongest = 4000;   // tables of pairs of segments beyond that take more memory and time than a plan is worth
// Public units of work are about 10 ns each; the searches count steps of about three of them.
constexpr uint64_t kUnitsPerStep = 3;
constexpr uint64_t kLateShare = 5'000'000;      // for late release in each family: beyond it the class is given up
constexpr uint32_t kLateSegments = 200;
constexpr uint64_t kPatience = 100'000'000;  // steps at least before a search that has found no program is given up, where no other way is known
constexpr Bytes kLittle = 4;  // times what is enough: with more memory than that the smallest programs are never the fastest known
constexpr uint64_t kLeastShare = 1'000'000;  // steps for each family beyond the first

struct Family {
  Tables tables;
  std::unique_ptr<Solver> solver;
  Bytes simple = -1;                     // -1: not looked for
  std::unique_ptr<SmallPrograms> small;  // likewise NULL
};

class ChainPlanner final : public Planner {
 public:
  ChainPlanner(Chain chain, uint32_t plan_class) : chain_(std::move(chain)), universal_(chain_) {
    bool exact = false;
    tick_ = choose_tick(*chain_.graph, &exact);
    const bool rotor = plan_class == CKPT_CLASS_ROTOR, plain = rotor || plan_class == CKPT_CLASS_SIGMA;
    const std::vector<std::vector<Bits>> sets = sticky_families(chain_, plain ? 1 : kFamilies);
    TableOptions options{!rotor, false};
    add_family(sets[0], options);
    if (plain) return;
    // Sigma alone comes first: it is quick, and what it finds bounds the others.
    options.starts = true;
    late_ = plan_class == CKPT_CLASS_SIGMA_S_W_D;
    options.fills = late_;
    options.calls = true;
    for (const std::vector<Bits> &sticky : sets) {
      add_family(sticky, options);
      options.calls = false;
    }
    if (!richer(families_[1].tables)) families_.erase(families_.begin());  // the same model twice
    else covered_ = 1;
  }

  Status solve(size_t load, uint64_t work_limit, Answer *out) override {
    const Bytes room = static_cast<Bytes>(std::min(load, static_cast<size_t>(kNoRoom)));
    if (!can_be(room)) return CKPT_ERROR_BUDGET;
    Work work;
    const uint64_t limit = work_limit == 0 ? UINT64_MAX : std::max<uint64_t>(1, work_limit / kUnitsPerStep);
    uint64_t first_work = 0;
    *out = Answer{};
    const Family *best_family = nullptr;
    Solution best;
    double best_seconds = 1e300, bound_seconds = 1e300;
    const double universal = universal_.base_seconds() + universal_.seconds(room);
    for (size_t k = 0; k < families_.size(); ++k) {
      Family &f = families_[k];
      const bool last_chance = best_family == nullptr;
      if ((last_chance && !fits(&f, room)) || least_held(f.tables.model) > room) continue;
      // The first family has all of the limit; the others, which rarely better it, a share like what it took.
      work.limit = limit;
      if (limit != UINT64_MAX && !last_chance) work.limit = std::min(limit, work.spent + std::max({kLeastShare, 2 * first_work, limit / 64}));
      if (work.out() && !last_chance) {
        if (k >= covered_) bound_seconds = std::min(bound_seconds, universal);
        continue;
      }
      const Ticks below = last_chance ? kNever : static_cast<Ticks>(std::ceil((best_seconds - f.tables.base_seconds) / tick_ - 1e-6));
      if (f.solver == nullptr) f.solver = std::make_unique<Solver>(f.tables.model);
      Solution s{kNever, 0, 0, true, {}};
      if (below > 0) s = f.solver->solve(room, below, &work);
      if (last_chance && s.cost == kNever && work.out() && small(&families_[covered_])->write(room, SIZE_MAX).empty()) {  // nothing else knows a program
        work.limit = work.spent + std::max(kPatience, 3 * limit);
        s = f.solver->solve(room, below, &work);
      }
      if (k >= covered_) bound_seconds = std::min(bound_seconds, f.tables.base_seconds + tick_ * static_cast<double>(std::min(s.bound, below)));
      if (last_chance) first_work = work.spent;
      if (last_chance && s.cost == kNever) break;
      if (s.cost == kNever) continue;
      const double seconds = f.tables.base_seconds + tick_ * static_cast<double>(s.cost);
      if (seconds < best_seconds) {
        best_seconds = seconds;
        best = s;
        best_family = &f;
      }
    }
    if (late_ && best_family != nullptr) bound_seconds = std::min(bound_seconds, improve_late(room, limit, universal, &best, &best_seconds, &best_family, &work));
    const double forward = chain_.graph->forward_seconds();
    out->overhead_seconds = 1e300;
    if (best_family != nullptr) {
      out->program = write_program(chain_, best_family->tables, best.steps, best.load);
      out->overhead_seconds = forward_seconds(*chain_.graph, out->program) - forward;
      out->load = static_cast<size_t>(best.load);
    } else {
      bound_seconds = universal;
    }
    const bool little = chain_.size() <= kShort || room / kLittle < static_cast<Bytes>(enough());
    if (limit != UINT64_MAX && bound_seconds < best_seconds - tick_ * 1e-3 && (little || best_family == nullptr)) take_small(room, out);
    if (out->program.actions.empty() && !knows_small()) return CKPT_ERROR_BUDGET;
    if (out->program.actions.empty())
      return fail(CKPT_ERROR_INTERNAL, "exact planner: no program within %zu bytes was found, but %zu should do", load, minimum_load());
    out->status = bound_seconds >= best_seconds - tick_ * 1e-3 ? CKPT_PLAN_OPTIMAL : CKPT_PLAN_GAP;
    out->universal_bound_seconds = std::min(out->overhead_seconds, universal - forward);
    out->class_bound_seconds = std::min(out->overhead_seconds, std::max(bound_seconds - forward, out->universal_bound_seconds));
    out->work = work.spent * kUnitsPerStep;
    return CKPT_OK;
  }

  size_t minimum_load() override {
    Bytes least = kNoRoom;
    // More sticky slots rarely need less: looking takes longer than planning.
    if (chain_.size() > kShortest) return static_cast<size_t>(minimum_of(&families_[covered_]));
    for (Family &f : families_) least = std::min(least, minimum_of(&f));
    return static_cast<size_t>(least);
  }

  size_t enough() override {
    Bytes least = kNoRoom;
    for (Family &f : families_) least = std::min(least, simple_of(&f));
    return static_cast<size_t>(least);
  }

  bool knows_small() override { return has_small_programs(families_[covered_].tables.model); }

  Program write_small(size_t load, size_t most_actions) override {
    const auto least = static_cast<Bytes>(minimum_load()), room = static_cast<Bytes>(std::min(load, static_cast<size_t>(kNoRoom)));
    Program program;
    for (const Family &f : families_) {
      if (f.small == nullptr || f.small->least() != least) continue;
      program = write_program(chain_, f.tables, f.small->write(room, most_actions), room);
      break;
    }
    return program.actions.size() <= most_actions ? std::move(program) : Program{};
  }

  Status curve(uint32_t count, uint64_t work_limit, std::vector<Answer> *out) override {
    out->clear();
    count = std::max(count, 2u);
    const uint64_t each = work_limit == 0 ? 0 : std::max<uint64_t>(1, work_limit / count);
    Answer low, high;
    CKPT_TRY(solve(static_cast<size_t>(kNoRoom), each, &high));
    const size_t least = minimum_load();
    // The last bytes above the smallest load are the hardest to plan for, by far.
    CKPT_TRY(solve(chain_.size() > kShort && high.load > least ? least + (high.load - least) / 64 : least, each, &low));
    out->push_back(std::move(low));
    if (high.load > out->front().load && high.overhead_seconds < out->front().overhead_seconds) out->push_back(std::move(high));
    // Where the step between two neighbours is largest, in bytes and in time, another load between them.
    std::vector<uint8_t> closed(out->size(), 0);  // nothing between this point and the next
    while (out->size() < count) {
      size_t at = out->size();
      double widest = 0;
      const double bytes = static_cast<double>(out->back().load - out->front().load), seconds = out->front().overhead_seconds - out->back().overhead_seconds;
      for (size_t k = 0; k + 1 < out->size(); ++k) {
        if (closed[k]) continue;
        const Answer &a = (*out)[k], &b = (*out)[k + 1];
        const double wide = static_cast<double>(b.load - a.load) / bytes + (a.overhead_seconds - b.overhead_seconds) / seconds;
        if (wide > widest) widest = wide, at = k;
      }
      if (at == out->size()) break;
      const size_t from = (*out)[at].load, to = (*out)[at + 1].load;
      Answer middle;
      CKPT_TRY(solve(from + (to - from) / 2, each, &middle));
      if (middle.load <= from || middle.load >= to || middle.overhead_seconds >= (*out)[at].overhead_seconds) {
        closed[at] = 1;
        continue;
      }
      if (middle.overhead_seconds <= (*out)[at + 1].overhead_seconds) {  // as fast, in less memory
        (*out)[at + 1] = std::move(middle);
        continue;
      }
      out->insert(out->begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(middle));
      closed.insert(closed.begin() + static_cast<std::ptrdiff_t>(at), 0);
    }
    return CKPT_OK;
  }

 private:
  // The search has ended early. Where there is little more memory than the least, the tables of the smallest programs may know a
  // faster one, and always know one.
  void take_small(Bytes room, Answer *out) {
    for (size_t k = 0; k < families_.size(); ++k) {
      Family &f = families_[k];
      if ((chain_.size() > kShortest && k != covered_) || small(&f)->least() > room) continue;
      Program program = write_program(chain_, f.tables, f.small->write(room, SIZE_MAX), room);
      const double overhead = forward_seconds(*chain_.graph, program) - chain_.graph->forward_seconds();
      if (program.actions.empty() || overhead >= out->overhead_seconds) continue;
      out->overhead_seconds = overhead;
      out->load = static_cast<size_t>(load_of(chain_, program));
      out->program = std::move(program);
    }
  }

  // Late release, in every family; returns what no such program is faster than.
  double improve_late(Bytes room, uint64_t limit, double universal, Solution *best, double *best_seconds, const Family **best_family, Work *work) {
    double bound = 1e300;
    for (size_t k = covered_; k < families_.size(); ++k) {
      const Model &model = families_[k].tables.model;
      const double base = families_[k].tables.base_seconds;
      const auto below = static_cast<Ticks>(std::ceil((*best_seconds - base) / tick_ - 1e-6));
      bound = std::min(bound, base + tick_ * static_cast<double>(below));
      if (below <= 0) continue;
      if (model.size() > kLateSegments) {
        bound = std::min(bound, universal);
        continue;
      }
      work->limit = std::min(limit, work->spent + kLateShare);
      Found found;
      LateSolver late(model, true);
      if (late.solve(room, below, work, &found)) {
        best->cost = found.cost;
        best->load = found.load;
        best->steps = std::move(found.steps);
        *best_seconds = base + tick_ * static_cast<double>(found.cost);
        *best_family = &families_[k];
        bound = std::min(bound, *best_seconds);
      } else if (work->out()) {
        bound = std::min(bound, universal);
      }
    }
    return bound;
  }
  void add_family(const std::vector<Bits> &sticky, const TableOptions &options) {
    Family f;
    f.tables = make_tables(chain_, sticky, options, tick_);
    families_.push_back(std::move(f));
  }
  // Has it anything that sigma alone has not?
  static bool richer(const Tables &t) {
    const auto any = [](const Calls &calls) { return !calls.empty(); };
    const auto several = [&](const Choice &c) {
      if (c.several == nullptr) return false;
      const Choice::Several &s = *c.several;
      return any(s.first) || std::any_of(s.again.begin(), s.again.end(), any) || std::any_of(s.leaf.begin(), s.leaf.end(), any) || std::any_of(s.leaf_inside.begin(), s.leaf_inside.end(), any);
    };
    for (uint32_t i = 0; i < t.model.size(); ++i)
      if (t.model.segments[i].starts.size() > 1 || std::any_of(t.options[i].begin(), t.options[i].end(), several)) return true;
    return false;
  }
  static Bytes minimum_of(Family *f) { return small(f)->least(); }
  static SmallPrograms *small(Family *f) {
    if (f->small == nullptr) f->small = std::make_unique<SmallPrograms>(f->tables.model);
    return f->small.get();
  }
  // What is live when the last segment goes backward, at least.
  static Bytes least_held(const Model &model) {
    Bytes sticky = 0, last = kNoRoom;
    for (uint32_t i = 0; i + 1 < model.size(); ++i) sticky += model.segments[i].sticky;
    for (const Option &o : model.segments.back().options) last = std::min(last, std::min(o.leaf.front().m, o.leaf_inside.front().m));
    return sticky + last;
  }
  static Bytes simple_of(Family *f) {
    if (f->simple < 0) f->simple = simple_minimum(f->tables.model);
    return f->simple;
  }
  bool can_be(Bytes room) {
    for (Family &f : families_)
      if (room >= simple_of(&f)) return true;
    return room >= static_cast<Bytes>(minimum_load());
  }
  // Whether there is a program. Most budgets are answered by the quick bound.
  static bool fits(Family *f, Bytes room) { return room >= simple_of(f) || room >= minimum_of(f); }

  Chain chain_;
  UniversalBound universal_;
  double tick_ = 1;
  std::vector<Family> families_;
  bool late_ = false;
  size_t covered_ = 0;  // the first so many are contained in a later one
};

}  // namespace

std::unique_ptr<Planner> Planner::create(const Graph &graph, const GradientMap &gradients, uint32_t plan_class) {
  if (graph.node_count() > kLongest) return nullptr;
  std::optional<Chain> chain = as_chain(graph, gradients);
  if (!chain) return nullptr;
  return std::make_unique<ChainPlanner>(std::move(*chain), plan_class);
}

}  // namespace ckpt::plan::exact
