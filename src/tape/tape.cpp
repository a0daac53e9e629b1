#include "tape/tape.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/checked.h"
#include "plan/verify.h"
#include "tape/learn.h"
#include "tape/places.h"

using ckpt::fail;
using ckpt::Result;
using ckpt::Status;
using ckpt::tape::Known;
using ckpt::tape::KnownPtr;
using ckpt::tape::Recording;

namespace {

// A number that buffers of this tape carry, so that another tape's are found out.
uint32_t next_tape_id() {
  static std::atomic<uint32_t> count{0};
  return ++count;
}

Status check_patterns(const char *name, const char *const *patterns, uint32_t count, std::vector<std::string> *out) {
  if (count > 0 && patterns == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_tape_create: desc.%s is NULL, expected %u patterns", name, count);
  for (uint32_t k = 0; k < count; ++k) {
    if (patterns[k] == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_tape_create: desc.%s[%u] is NULL, expected a pattern", name, k);
    out->emplace_back(patterns[k]);
  }
  return CKPT_OK;
}

}  // namespace

ckpt_tape::ckpt_tape(ckpt::Ref<ckpt::arena::Arena> a)
    : arena(std::move(a)),
      clock([](void *) { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }),
      events(arena->device()) {}

// Recordings give their events back, so they go first.
ckpt_tape::~ckpt_tape() {
  current.reset();
  pool.clear();
  if (timed != nullptr) timed->timeline.clear(&events);
  if (step_word != nullptr) arena->device().release(step_word, sizeof *step_word);
}

Result<ckpt::Ref<ckpt_tape>> ckpt_tape::create(const ckpt_tape_desc &d, ckpt::Ref<ckpt::arena::Arena> arena) {
  using R = Result<ckpt::Ref<ckpt_tape>>;
  const char *fn = "ckpt_tape_create";
  constexpr uint32_t kChecks = CKPT_CHECK_DETERMINISM | CKPT_CHECK_RECOMPUTE | CKPT_CHECK_INPUTS;
  if (!arena) return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.arena is NULL, expected an arena", fn));
  if (d.checks & ~kChecks) return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.checks is 0x%x, expected CKPT_CHECK_* bits", fn, d.checks));
  if (d.replan > CKPT_REPLAN_NEVER) return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.replan is %u, expected CKPT_REPLAN_AUTO or CKPT_REPLAN_NEVER", fn, d.replan));
  // Rounded down it would be 0, which means no budget.
  if (d.budget_bytes != 0 && d.budget_bytes < arena->size_rule().alignment_bytes)
    return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.budget_bytes is %zu, expected 0 (the arena's capacity) or at least the arena's alignment of %zu", fn, d.budget_bytes,
                          arena->size_rule().alignment_bytes));
  // Both are rounded down to the alignment: the same number for both is fine.
  if (ckpt::round_down(d.budget_bytes, arena->size_rule().alignment_bytes) > arena->capacity())
    return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.budget_bytes is %zu, expected at most the arena's capacity of %zu", fn, d.budget_bytes, arena->capacity()));
  auto tape = ckpt::Ref<ckpt_tape>::adopt(new ckpt_tape(std::move(arena)));
  ckpt::plan::PlanRequest &r = tape->request;
  r.strategy = d.strategy;
  r.k = d.strategy_k;
  r.in_flight = d.in_flight_count != 0 ? d.in_flight_count : 1;
  if (const Status bad = check_patterns("keep_patterns", d.keep_patterns, d.keep_pattern_count, &r.keep_patterns); bad) return R::failed(bad);
  if (const Status bad = check_patterns("recompute_patterns", d.recompute_patterns, d.recompute_pattern_count, &r.recompute_patterns); bad) return R::failed(bad);
  if (const Status bad = ckpt::plan::check_request(fn, r); bad) return R::failed(bad);
  const size_t bound = d.budget_bytes != 0 ? d.budget_bytes : tape->arena->capacity();
  tape->budget = ckpt::round_down(bound, tape->arena->size_rule().alignment_bytes);
  if (tape->budget == 0)  // to a planner 0 is no budget
    return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.arena has a capacity of %zu usable bytes, expected at least its alignment of %zu", fn, tape->arena->capacity(),
                          tape->arena->size_rule().alignment_bytes));
  tape->seed = d.seed;
  tape->checks = d.checks;
  tape->replan = d.replan == CKPT_REPLAN_AUTO;
  tape->id = next_tape_id();
  return tape;
}

void ckpt_tape::close() noexcept {
  closed.store(true);
  if (!frame_is_open.load()) finish_close();
}

void ckpt_tape::finish_close() noexcept {
  if (given_up.exchange(true)) return;
  const ckpt::Ref<ckpt::arena::Arena> keep = arena;
  keep->give_up(this);
}

// The handle's count goes with it.
void ckpt_tape::bury() noexcept {
  if (current != nullptr) current->clear();
  current.reset();
  drop();
}

void ckpt_recording::close() noexcept {
  const ckpt::Ref<ckpt::arena::Arena> keep = tape->arena;
  keep->give_up(this);
}

void ckpt_recording::bury() noexcept {
  if (recording != nullptr) {
    recording->clear();
    --tape->flying;
  }
  delete this;
}

Status ckpt_tape::recording(Recording **out) {
  if (current == nullptr) {
    if (asynchronous()) {
      uint32_t captured = 0;
      CKPT_TRY(stream_captured(&captured));
      if (captured != 0) return fail(CKPT_ERROR_CAPTURE, "the stream is being captured: a recording that is captured begins with ckpt_tape_begin and a key that was prepared (ckpt_tape_prepare)");
      CKPT_TRY(look_at_times());
    }
    std::unique_ptr<Recording> r = take_recording();
    (void)r->begin(0, 0, step, ++generation, nullptr);  // fails only with a plan
    current = std::move(r);
    begun = false;
  }
  *out = current.get();
  return CKPT_OK;
}

std::unique_ptr<Recording> ckpt_tape::take_recording() {
  if (pool.empty()) return std::make_unique<Recording>(this);
  std::unique_ptr<Recording> r = std::move(pool.back());
  pool.pop_back();
  return r;
}

Status ckpt_tape::begin(uint64_t key, uint32_t flags) {
  if (asynchronous()) {
    uint32_t capture = 0;
    CKPT_TRY(stream_captured(&capture));
    if (capture != 0) return begin_captured(key, flags, capture);
    CKPT_TRY(look_at_times());
  }
  KnownPtr known;
  if (key != 0 && flags == 0) {
    known = cache.find(key);
    if (known != nullptr) {
      Result<KnownPtr> with_plan = planned(std::move(known));
      if (!with_plan.ok()) return with_plan.status();
      known = *with_plan;
      if (known->refused && !known->ran) {
        minimum_budget = known->plan.minimum_budget;
        return fail(known->refused, "%s", known->refusal.c_str());
      }
      if (known->refused) known = nullptr;
    }
  }
  std::unique_ptr<Recording> r = take_recording();
  const Status status = r->begin(key, flags, step, ++generation, std::move(known));
  if (status) {
    minimum_budget = r->minimum_budget() != 0 ? r->minimum_budget() : minimum_budget;
    recycle(std::move(r));
    return status;
  }
  current = std::move(r);
  begun = true;
  return CKPT_OK;
}

// Without memory for the pool it is deleted.
void ckpt_tape::recycle(std::unique_ptr<Recording> r) noexcept {
  r->clear();
  try {
    pool.push_back(std::move(r));
  } catch (...) {
  }
}

void ckpt_tape::end_recording() {
  if (current != nullptr) recycle(std::move(current));
}

ckpt_tape::Learnt ckpt_tape::summary(const Recording &r) {
  Learnt l;
  l.counters = r.counters();
  l.segments = r.node_count();
  l.peak_measured = r.measured().peak;
  l.height_measured = r.measured().height();
  l.peak_predicted = r.predicted_peak();
  l.height_predicted = r.predicted_height();
  l.predicted_recompute = r.predicted_recompute();
  l.planned = r.followed();
  return l;
}

void ckpt_tape::note(const Recording &r) {
  latest = summary(r);
  ++step_count;
  if (r.minimum_budget() != 0) minimum_budget = r.minimum_budget();
  if (r.known() != nullptr) {
    plan_strategy = r.known()->plan.strategy;
    plan_k = r.known()->plan.k;
  }
}

ckpt::arena::Placer ckpt_tape::paper(bool region) const {
  ckpt::arena::Placer placer = arena->placer();
  if (!region) placer.settle();
  placer.set_capacity(ckpt::arena::kUnbounded);
  placer.set_limit(ckpt::arena::kUnbounded);
  placer.reset_peaks();
  return placer;
}

KnownPtr ckpt_tape::learn(const Recording &r) {
  const KnownPtr before = cache.find_same(r.key(), r.graph());
  KnownPtr known = ckpt::tape::Learner::learn(r, before.get(), replan, request.strategy == CKPT_STRATEGY_AUTO, asynchronous());
  cache.put(known, before.get());
  return known;
}

void ckpt_tape::teach(Recording *r) {
  using ckpt::tape::Timed;
  if (r->captured()) return;
  if (!asynchronous()) {
    if (r->teaches()) learn(*r);
    else if (r->sampled()) watch(*r);
    return;
  }
  const KnownPtr known = r->teaches() ? learn(*r) : r->known();
  if (timed != nullptr || r->timeline().empty()) return;
  auto ended = std::make_unique<Timed>();
  ended->known = known;
  ended->use = r->sampled() ? Timed::Use::sample : r->measuring() ? Timed::Use::costs : Timed::Use::statistics;
  ended->number = step_count + 1;
  std::swap(ended->timeline, r->timeline());
  timed = std::move(ended);
}

void ckpt_tape::watch(const Recording &r) {
  const KnownPtr known = r.known();
  if (!cache.holds(known.get())) return;
  std::vector<double> items, backward;
  ckpt::tape::Learner::measured(r, *known->graph, &items, &backward);
  watch(known, items, backward);
}

void ckpt_tape::watch(const KnownPtr &known, const std::vector<double> &items, const std::vector<double> &backward) {
  if (known->drift == nullptr || !known->drift->take(items, backward)) return;
  auto drifted = std::make_shared<Known>(*known);
  auto graph = std::make_shared<ckpt::plan::Graph>(*known->graph);
  known->drift->write_costs(graph.get());
  drifted->graph = std::move(graph);
  drifted->again = ckpt::tape::Again::drifted;
  cache.put(drifted, known.get());
}

// Another plan, if one is faster (enough, where costs have drifted) by the costs of now. The one that is there works in any case.
Status ckpt_tape::make_again(Known *known) {
  using ckpt::plan::Planned;
  const bool drifted = std::exchange(known->again, ckpt::tape::Again::no) == ckpt::tape::Again::drifted;
  ckpt::plan::Simulation present;
  CKPT_TRY(ckpt::plan::simulate_step(*known->graph, known->gradients, known->plan.program, ckpt::arena::Placer(), &present));
  ckpt::plan::PlanRequest wanted = request;
  wanted.budget = budget;
  Planned other;
  Status status = CKPT_ERROR_BUDGET;
  if (request.strategy == CKPT_STRATEGY_AUTO) {  // a fixed strategy does not look at costs
    ++plan_count;
    status = ckpt::plan::make_plan(*known->graph, known->gradients, wanted, ckpt::arena::Placer(), &other);
    if (status && status != CKPT_ERROR_BUDGET) return status;
  }
  const double seconds = other.prediction.seconds(), limit = present.seconds();
  const bool taken = !status && (drifted ? seconds < (1 - ckpt::tape::Drift::kGain) * limit : seconds <= limit);
  if (drifted) known->drift->planned(taken);
  if (taken) {
    known->plan = std::move(other);
    return CKPT_OK;
  }
  // The same program by other costs; how far it is from the best is known by the plan that was not taken, if any.
  Planned &plan = known->plan;
  plan.prediction.forward_seconds = present.forward_seconds;
  plan.prediction.recompute_seconds = present.recompute_seconds;
  plan.prediction.backward_seconds = present.backward_seconds;
  plan.universal_gap_seconds = status ? present.recompute_seconds : std::max(0.0, limit - seconds + other.universal_gap_seconds);
  plan.class_gap_seconds = status ? present.recompute_seconds : std::max(0.0, limit - seconds + other.class_gap_seconds);
  plan.status = plan.class_gap_seconds > 0 ? CKPT_PLAN_GAP : CKPT_PLAN_OPTIMAL;
  return CKPT_OK;
}

Result<KnownPtr> ckpt_tape::planned(KnownPtr known) {
  // Recordings in flight were planned for by each other: they end before another plan begins.
  const bool again = known->again != ckpt::tape::Again::no && (request.in_flight == 1 || flying == 0);
  if ((known->planned && !again) || known->refused) return known;
  auto with_plan = std::make_shared<Known>(*known);
  if (again) {
    if (const Status status = make_again(with_plan.get()); status) return Result<KnownPtr>::failed(status);
    plan_strategy = with_plan->plan.strategy;
    plan_k = with_plan->plan.k;
    minimum_budget = with_plan->plan.minimum_budget;
    cache.put(with_plan, known.get());
    return KnownPtr(with_plan);
  }
  ckpt::plan::PlanRequest wanted = request;
  wanted.budget = budget;
  ++plan_count;
  const Status status = ckpt::plan::make_plan(*with_plan->graph, with_plan->gradients, wanted, ckpt::arena::Placer(), &with_plan->plan);
  if (status == CKPT_ERROR_BUDGET) {
    with_plan->refused = status;
    with_plan->refusal = ckpt::last_error();
  } else if (status) {
    return Result<KnownPtr>::failed(status);
  } else {
    with_plan->planned = true;
  }
  plan_strategy = with_plan->plan.strategy;
  plan_k = with_plan->plan.k;
  minimum_budget = with_plan->plan.minimum_budget;
  cache.put(with_plan, known.get());
  return KnownPtr(with_plan);
}

Result<KnownPtr> ckpt_tape::known_plan(const char *function, uint64_t key) {
  KnownPtr known = cache.find(key);
  if (known == nullptr)
    return Result<KnownPtr>::failed(fail(CKPT_ERROR_NOT_FOUND, "%s: no recording is known by key %llu", function, static_cast<unsigned long long>(key)));
  Result<KnownPtr> with_plan = planned(std::move(known));
  if (with_plan.ok() && (*with_plan)->refused) return Result<KnownPtr>::failed(fail((*with_plan)->refused, "%s", (*with_plan)->refusal.c_str()));
  return with_plan;
}

Status ckpt_tape::adopt(uint64_t key, const ckpt_plan &plan) {
  const KnownPtr known = cache.find(key);
  if (known == nullptr) return fail(CKPT_ERROR_NOT_FOUND, "ckpt_tape_adopt: no recording is known by key %llu", static_cast<unsigned long long>(key));
  if (plan.graph_hash != known->graph->hash())
    return fail(CKPT_ERROR_INVALID_PLAN, "ckpt_tape_adopt: the plan was made for a recording of another structure or other sizes (hash %016llx, expected %016llx)",
                static_cast<unsigned long long>(plan.graph_hash), static_cast<unsigned long long>(known->graph->hash()));
  ckpt::plan::Verified verified;
  CKPT_TRY(ckpt::plan::verify(*known->graph, known->gradients.roots, plan.planned.program.actions, &verified));
  auto adopted = std::make_shared<Known>(*known);
  adopted->plan = plan.planned;
  // Seconds, height and places by this tape's own costs, recordings in flight and arena.
  ckpt::plan::Planned &own = adopted->plan;
  CKPT_TRY(ckpt::plan::simulate_in_flight(*known->graph, known->gradients, own.program, ckpt::arena::Placer(), request.in_flight, &own.prediction));
  if (request.in_flight > 1) own.offsets.clear();
  else CKPT_TRY(ckpt::tape::take_places(*known->graph, known->gradients, &own));
  if (adopted->plan.prediction.height > budget)
    return fail(CKPT_ERROR_BUDGET, "ckpt_tape_adopt: the plan needs %zu bytes of arena, the tape's budget is %zu", adopted->plan.prediction.height, budget);
  adopted->planned = true;
  adopted->adopted = true;
  adopted->again = ckpt::tape::Again::no;
  adopted->drift = nullptr;
  adopted->refused = CKPT_OK;
  std::erase_if(prepared, [&](const KnownPtr &p) { return p->key == key; });
  cache.put(adopted, known.get());
  return CKPT_OK;
}

Status ckpt_tape::prepare(const char *function, uint64_t key) {
  if (asynchronous()) {  // the costs of the steps so far are part of the plan
    uint32_t captured = 0;
    CKPT_TRY(stream_captured(&captured));
    if (captured != 0) return fail(CKPT_ERROR_CAPTURE, "%s: the stream is being captured: prepare before", function);
    if (timed != nullptr) CKPT_TRY(arena->device().synchronize(arena->stream()));
    CKPT_TRY(look_at_times());
  }
  Result<KnownPtr> known = known_plan(function, key);
  if (!known.ok()) return known.status();
  // A step is placed from the low end, above what is there.
  const ckpt::arena::Placer &placer = arena->placer();
  const size_t height = std::min(placer.low_frontier() + (*known)->plan.prediction.height, arena->capacity());
  CKPT_TRY(arena->commit(height, asynchronous() ? placer.high_frontier() : 0));
  if (asynchronous()) CKPT_TRY(prepare_capture(*known));
  arena->reserve((*known)->graph->item_bytes.size() + 16);
  if (pool.empty()) pool.push_back(std::make_unique<Recording>(this));
  return CKPT_OK;
}

ckpt_tape_stats ckpt_tape::stats() const {
  const Learnt l = current != nullptr ? summary(*current) : latest;
  ckpt_tape_stats s{};
  s.struct_size = sizeof s;
  s.strategy = plan_strategy;
  s.strategy_k = plan_k;
  s.planned = l.planned;
  s.step = step;
  s.segment_count = l.segments;
  s.forward_count = l.counters.forward;
  s.recompute_count = l.counters.recompute;
  s.backward_done = l.counters.backward;
  s.skipped_count = l.counters.skipped;
  s.thinned_count = l.counters.thinned;
  s.plan_count = plan_count;
  s.plan_hit_count = plan_hit_count;
  s.budget_bytes = budget;
  s.peak_predicted_bytes = l.peak_predicted;
  s.peak_measured_bytes = l.peak_measured;
  s.arena_predicted_bytes = l.height_predicted;
  s.arena_measured_bytes = l.height_measured;
  s.held_bytes = l.counters.held;
  s.minimum_budget_bytes = current != nullptr && current->minimum_budget() != 0 ? current->minimum_budget() : minimum_budget;
  s.recompute_seconds = l.counters.recompute_seconds;
  s.forward_seconds = l.counters.forward_seconds;
  s.backward_seconds = l.counters.backward_seconds;
  s.predicted_recompute_seconds = l.predicted_recompute;
  return s;
}
