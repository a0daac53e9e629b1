// Programs and schedules in the vocabulary of checkpoint_schedules. Its machine has a working memory (WORK) with one forward
// state and what adjoints need, and restart points beside it (RAM).
#include "json/plan_file.h"
#include "json/writer.h"

namespace ckpt::json {
namespace {

class ScheduleWriter {
 public:
  ScheduleWriter() { w_.list(true); }

  void forward(uint64_t n0, uint64_t n1, bool ics, bool adjoint, const plan::Shape *shape, const Bits &partial) {
    w_.object().key("action").text("Forward").key("n0").number(n0).key("n1").number(n1).key("write_ics").flag(ics).key("write_adj_deps").flag(adjoint);
    w_.key("storage").text(ics ? "RAM" : adjoint || !partial.empty() ? "WORK" : "NONE");
    if (!partial.empty()) {
      w_.key("slots").list();
      partial.each([&](uint32_t k) { w_.text(shape->item(k).name); });
      w_.end();
    }
    w_.end();
  }
  void forward(uint64_t n0, uint64_t n1, bool ics, bool adjoint) { forward(n0, n1, ics, adjoint, nullptr, Bits{}); }
  void bring(bool last, uint64_t n, const char *from, const char *to) {
    w_.object().key("action").text(last ? "Move" : "Copy").key("n").number(n).key("from_storage").text(from).key("to_storage").text(to).end();
  }
  void reverse(uint64_t n) { w_.object().key("action").text("Reverse").key("n1").number(n + 1).key("n0").number(n).key("clear_adj_deps").flag(true).end(); }
  void end_forward() { w_.object().key("action").text("EndForward").end(); }
  std::string finish() {
    w_.object().key("action").text("EndReverse").key("exhausted").flag(true).end().end();
    return w_.finish();
  }

 private:
  Writer w_;
};

bool is_chain(const plan::Graph &g) {
  if (g.inputs.size() != 1 || g.inputs[0] != 0) return false;
  for (uint32_t i = 0; i < g.node_count(); ++i)
    if (g.nodes[i].shape->output_count() != 1 || g.inputs_of(i).size() != 1 || g.inputs_of(i)[0] != i) return false;
  return true;
}

// Of each action: will boundary `index` of a forward still be a restart point after it? That is, does the segment run again before
// the boundary is freed?
std::vector<uint8_t> restarts_after(const plan::Graph &g, const std::vector<plan::Action> &actions) {
  std::vector<uint8_t> again(g.value_count() + 1, 0), out(actions.size(), 0), live(g.value_count() + 1, 0), makes(actions.size(), 0);
  for (size_t t = 0; t < actions.size(); ++t) {
    const plan::Action &a = actions[t];
    if (a.kind == plan::ActionKind::free) live[a.index] = 0;
    if (a.kind != plan::ActionKind::forward) continue;
    makes[t] = !live[a.index + 1] && !(a.want & g.nodes[a.index].shape->outputs()).empty();
    live[a.index + 1] |= makes[t];
    if (!a.in_place.empty()) live[a.index] = 0;
  }
  for (size_t t = actions.size(); t-- > 0;) {
    const plan::Action &a = actions[t];
    if (a.kind == plan::ActionKind::free) again[a.index] = 0;
    if (a.kind != plan::ActionKind::forward) continue;
    if (makes[t]) again[a.index + 1] = 0;
    if (!a.in_place.empty()) again[a.index] = 0;  // the output takes over its input's block
    out[t] = again[a.index];
    again[a.index] = 1;
  }
  return out;
}

class ProgramWriter {
 public:
  ProgramWriter(const plan::Graph &graph, const std::vector<plan::Action> &actions)
      : g_(graph), actions_(actions), restarts_(restarts_after(graph, actions)), live_(graph.node_count()), stored_(graph.value_count(), 0), state_live_(1) {}

  std::string write() {
    for (size_t t = 0; t < actions_.size(); ++t) {
      const plan::Action &a = actions_[t];
      switch (a.kind) {
        case plan::ActionKind::forward: forward(t, a); break;
        case plan::ActionKind::backward: backward(a); break;
        case plan::ActionKind::free:
          stored_[a.index] = 0;
          if (a.index > 0) live_[a.index - 1] -= g_.nodes[a.index - 1].shape->outputs();
          break;
        case plan::ActionKind::drop: live_[a.index] -= a.want; break;
      }
    }
    return w_.finish();
  }

 private:
  // The state in WORK is a boundary that a later run starts from, and WORK is about to hold another.
  void save_state(uint64_t next) {
    if (!state_live_ || state_ == next || state_ >= g_.value_count() || stored_[state_]) return;
    if (!used_later(static_cast<uint32_t>(state_))) return;
    w_.bring(false, state_, "WORK", "RAM");
    stored_[state_] = 1;
  }
  bool used_later(uint32_t boundary) const {
    for (size_t t = at_; t < actions_.size(); ++t) {
      if (actions_[t].kind == plan::ActionKind::free && actions_[t].index == boundary) return false;
      if (actions_[t].kind == plan::ActionKind::forward && actions_[t].index == boundary) return true;
      if (actions_[t].kind == plan::ActionKind::backward && actions_[t].index <= boundary) return false;
    }
    return false;
  }

  void forward(size_t t, const plan::Action &a) {
    at_ = t;
    const plan::Shape &s = *g_.nodes[a.index].shape;
    const bool first = a.index == ran_;
    const Bits before = live_[a.index];
    const Bits made = a.want - before;
    if (first) ++ran_;
    if (made.empty() && !first) return;
    save_state(a.index);
    if (!state_live_ || state_ != a.index) w_.bring(!restarts_[t], a.index, "RAM", "WORK");
    if (!restarts_[t]) stored_[a.index] = 0;
    const bool ics = restarts_[t] && !stored_[a.index];
    if (ics) stored_[a.index] = 1;
    live_[a.index] |= a.want;
    const Bits kept = live_[a.index] & s.slots();
    const bool all = kept.contains(s.needed()) && stays(t, a.index, s.needed()), had = before.contains(s.needed()) && !s.needed().empty();
    const bool adjoint = all && !had;
    w_.forward(a.index, a.index + 1, ics, adjoint, &s, adjoint || had ? Bits{} : made & s.slots());
    const bool output = !(a.want & s.outputs()).empty();
    state_ = a.index + 1;
    state_live_ = output;
    if (output) stored_[a.index + 1] = 0;
    if (!a.in_place.empty() && a.index > 0) live_[a.index - 1] -= g_.nodes[a.index - 1].shape->outputs();
    if (first && ran_ == g_.node_count()) w_.end_forward();
  }

  // Until the segment's backward no run makes what it reads anew.
  bool stays(size_t t, uint32_t node, const Bits &needed) const {
    for (size_t k = t + 1; k < actions_.size(); ++k) {
      if (actions_[k].index != node) continue;
      if (actions_[k].kind == plan::ActionKind::backward) return true;
      if (actions_[k].kind == plan::ActionKind::drop && !(actions_[k].want & needed).empty()) return false;
    }
    return false;
  }

  void backward(const plan::Action &a) {
    live_[a.index] = Bits{};
    if (state_ >= a.index) state_live_ = false;
    w_.reverse(a.index);
  }

  const plan::Graph &g_;
  const std::vector<plan::Action> &actions_;
  const std::vector<uint8_t> restarts_;
  std::vector<Bits> live_;
  std::vector<uint8_t> stored_;
  uint64_t state_ = 0;
  bool state_live_;
  uint32_t ran_ = 0;
  size_t at_ = 0;
  ScheduleWriter w_;
};

}  // namespace

Status write_schedule(const char *fn, const ckpt_plan &plan, std::string *out) {
  if (!is_chain(*plan.graph)) return fail(CKPT_ERROR_UNSUPPORTED, "%s: the plan's graph is no chain, expected one input and segments in a row", fn);
  *out = ProgramWriter(*plan.graph, plan.planned.program.actions).write();
  return CKPT_OK;
}

std::string write_schedule(const std::vector<ckpt_schedule_action> &actions, uint64_t step_count) {
  // Is the snapshot that is restored here restored again before another is stored in its place?
  std::vector<uint8_t> again(actions.size(), 0);
  std::vector<uint8_t> restored;
  for (size_t t = actions.size(); t-- > 0;) {
    const ckpt_schedule_action &a = actions[t];
    if (a.kind != CKPT_SCHEDULE_STORE && a.kind != CKPT_SCHEDULE_RESTORE) continue;
    if (a.snapshot >= restored.size()) restored.resize(size_t{a.snapshot} + 1, 0);
    again[t] = restored[a.snapshot];
    restored[a.snapshot] = a.kind == CKPT_SCHEDULE_RESTORE;
  }
  ScheduleWriter w;
  bool store = false;
  for (size_t t = 0; t < actions.size(); ++t) {
    const ckpt_schedule_action &a = actions[t];
    switch (a.kind) {
      case CKPT_SCHEDULE_STORE: store = true; break;
      case CKPT_SCHEDULE_RESTORE: w.bring(!again[t], a.first, "RAM", "WORK"); break;
      case CKPT_SCHEDULE_ADVANCE:
        w.forward(a.first, a.last, store, false);
        store = false;
        break;
      case CKPT_SCHEDULE_BACKWARD:
        w.forward(a.first, a.first + 1, store, true);
        store = false;
        if (a.first + 1 == step_count) w.end_forward();
        w.reverse(a.first);
        break;
      default: break;
    }
  }
  return w.finish();
}

}  // namespace ckpt::json
