// A backward pass for whatever an unknown forward pass, or one that left its plan, has left behind.
#include <algorithm>

#include "plan/make_plan.h"

namespace ckpt::plan {
namespace {

constexpr uint64_t kMaxRuns = 4'000'000;  // of Again::nothing, at most
constexpr size_t kLarge = 100'000;        // items

// How much goes before the pass begins: a part of the slots that can be made again, the first nodes' first, as they are
// needed last; then boundaries too, but for those of every `stride`-th node (0: all of them).
struct Thinning {
  uint32_t sixteenths = 0;
  bool boundaries = false;
  uint32_t stride = 0;
};

// Coarser ones where each try takes its time.
std::vector<Thinning> thinnings(const Graph &graph) {
  const bool large = graph.item_bytes.size() > kLarge;
  std::vector<Thinning> all;
  for (uint32_t part : {0u, 1u, 2u, 4u, 8u, 12u, 16u})
    if (!large || part % 8 == 0) all.push_back({part, false, 0});
  for (uint64_t stride = 2; stride < graph.node_count(); stride *= large ? 8 : 2) all.push_back({16, true, static_cast<uint32_t>(stride)});
  all.push_back({16, true, 0});
  return all;
}

class Backward {
 public:
  Backward(const PaperMachine &machine, const GradientMap &gradients, bool retain, size_t budget)
      : machine_(machine), graph_(machine_.graph()), gradients_(gradients), retain_(retain), budget_(budget != 0 ? budget : SIZE_MAX) {
    machine_.backend().placer.set_capacity(arena::kUnbounded);
    machine_.backend().placer.set_limit(arena::kUnbounded);
  }

  Status run(Planned *out);

 private:
  void find_droppable();
  std::vector<Action> drops(const Thinning &how) const;
  Status retained(const LiveState &state, std::vector<Bits> *retain) const;
  Status try_one(const Thinning &how, Again again);

  PaperMachine machine_;
  const Graph &graph_;
  const GradientMap &gradients_;
  const bool retain_;
  const size_t budget_;
  std::vector<Bits> droppable_;  // per node: live items that can be made again
  size_t slot_bytes_ = 0;        // of the slots among them
  bool fits_ = false, any_ = false;
  Planned best_;
  size_t least_ = 0;
};

void Backward::find_droppable() {
  const LiveState &state = machine_.state();
  std::vector<uint8_t> had(graph_.value_count(), 0);  // live, or can be made again
  for (uint32_t v : graph_.inputs) had[v] = state.value_live(graph_, v);
  droppable_.assign(graph_.node_count(), Bits{});
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    const auto inputs = graph_.inputs_of(i);
    const bool runs = s.replayable() && std::all_of(inputs.begin(), inputs.end(), [&](uint32_t v) { return had[v] != 0; });
    if (runs) droppable_[i] = state.live[i] - s.keep() - s.caller();
    s.outputs().each([&](uint32_t k) { had[graph_.value_of(i, k)] = state.live[i].has(k) || (runs && !s.keep().has(k)); });
    (droppable_[i] & s.slots()).each([&](uint32_t k) { slot_bytes_ += graph_.item_footprint(i, k); });
  }
}

std::vector<Action> Backward::drops(const Thinning &how) const {
  std::vector<Action> actions;
  size_t gone = 0;
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    const Bits slots = droppable_[i] & s.slots();
    if (!slots.empty() && static_cast<double>(gone) * 16 < static_cast<double>(slot_bytes_) * how.sixteenths) {
      actions.push_back({ActionKind::drop, i, slots, {}});
      slots.each([&](uint32_t k) { gone += graph_.item_footprint(i, k); });
    }
    if (!how.boundaries || (how.stride != 0 && (i + 1) % how.stride == 0)) continue;
    (droppable_[i] & s.outputs()).each([&](uint32_t k) { actions.push_back({ActionKind::free, graph_.value_of(i, k), {}, {}}); });
  }
  return actions;
}

// What is live before the pass and stays live: all but what the pass itself may overwrite, and what does not live across other
// segments.
Status Backward::retained(const LiveState &state, std::vector<Bits> *retain) const {
  retain->resize(graph_.node_count());
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    const Bits consumed = gradients_.runs[i] ? s.consumed() : Bits{};
    Status bad = CKPT_OK;
    (consumed & s.keep()).each([&](uint32_t k) {
      if (!bad)
        bad = fail(CKPT_ERROR_CONFLICT, "a recording that is retained cannot have slot '%s' of segment '%s' (number %u): it is CONSUMED, and %s", s.item(k).name.c_str(),
                   s.name().c_str(), i, s.replayable() ? "marked KEEP" : "its segment has no forward to make it again");
    });
    CKPT_TRY(bad);
    (*retain)[i] = state.live[i] - consumed - s.again();
  }
  return CKPT_OK;
}

Status Backward::try_one(const Thinning &how, Again again) {
  PaperMachine paper = machine_;
  Program program;
  program.actions = drops(how);
  Simulation s;
  CKPT_TRY(simulate(paper, gradients_, program.actions, &s));
  std::vector<Bits> retain;
  if (retain_) CKPT_TRY(retained(paper.state(), &retain));
  Result<Program> rest = write_backward(graph_, gradients_, paper.state(), again, retain);
  if (!rest.ok()) return rest.status();
  program.actions.insert(program.actions.end(), rest->actions.begin(), rest->actions.end());
  paper = machine_;
  CKPT_TRY(simulate(paper, gradients_, program.actions, &s));
  if (!any_ || s.height < least_) least_ = s.height;
  any_ = true;
  if (s.height > budget_) return CKPT_OK;
  const Simulation &b = best_.prediction;
  if (fits_ && (s.recompute_seconds > b.recompute_seconds || (s.recompute_seconds == b.recompute_seconds && s.height >= b.height))) return CKPT_OK;
  fits_ = true;
  best_.program = std::move(program);
  best_.prediction = s;
  return CKPT_OK;
}

// The less goes, the less is made again: the first thinning with which anything fits is the one.
Status Backward::run(Planned *out) {
  find_droppable();
  const std::vector<Thinning> steps = thinnings(graph_);
  for (const Thinning &how : steps) {
    for (Again again : {Again::everything, Again::boundaries, Again::halves}) {
      if (again == Again::boundaries && graph_.item_bytes.size() > kLarge) continue;
      CKPT_TRY(try_one(how, again));
      if (fits_ && best_.prediction.recompute_count == 0) break;
    }
    if (fits_) break;
  }
  if (!fits_ && runs_from_inputs(graph_) <= kMaxRuns)
    for (const Thinning &how : {steps.front(), steps.back()}) CKPT_TRY(try_one(how, Again::nothing));
  best_.minimum_budget = fits_ ? 0 : least_;
  *out = std::move(best_);
  if (fits_) return CKPT_OK;
  return fail(CKPT_ERROR_BUDGET, "the backward pass wants %zu bytes, the budget is %zu; the smallest budget that works is %zu", least_, budget_, least_);
}

}  // namespace

Status plan_backward(const PaperMachine &machine, const GradientMap &gradients, bool retain, size_t budget, Planned *out) {
  *out = Planned{};
  return Backward(machine, gradients, retain, budget).run(out);
}

}  // namespace ckpt::plan
