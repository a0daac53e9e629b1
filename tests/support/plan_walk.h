// Random programs: a walk over legal actions, then the shortest way home; and programs with one thing wrong.
#pragma once

#include <cstdio>
#include <cstring>

#include "plan/simulate.h"
#include "plan/verify.h"
#include "plan_reference.h"

namespace plan_test {

inline std::string text(const Bits &bits) {
  std::string t = "{";
  bits.each([&](uint32_t k) { t += (t.size() > 1 ? " " : "") + std::to_string(k); });
  return t + "}";
}
inline std::string text(const Action &a) {
  static constexpr const char *kKinds[] = {"forward", "backward", "free", "drop"};
  const auto kind = static_cast<size_t>(a.kind);
  std::string t = std::string(kind < 4 ? kKinds[kind] : "?") + " " + std::to_string(a.index);
  if (!a.want.empty()) t += " " + text(a.want);
  if (!a.in_place.empty()) t += " in place " + text(a.in_place);
  return t;
}
inline std::string text(const std::vector<Action> &actions) {
  std::string t;
  for (size_t k = 0; k < actions.size(); ++k) t += "  " + std::to_string(k) + ": " + text(actions[k]) + "\n";
  return t;
}
inline std::string text(const RandomGraph &r) {
  const Graph &g = r.graph;
  std::string t = "alignment " + std::to_string(g.rule.alignment_bytes) + " guards " + std::to_string(g.rule.guard_bytes) + (g.root_grads_in_arena ? " root gradients in the arena" : "") + "\n";
  for (uint32_t v : g.inputs)
    t += "  input " + std::to_string(v) + ": " + std::to_string(g.values[v].bytes) + " bytes, gradient " + std::to_string(g.values[v].grad_bytes) + " where " + std::to_string(g.values[v].grad) + (g.values[v].caller ? " caller's\n" : "\n");
  for (uint32_t i = 0; i < g.node_count(); ++i) {
    const Shape &s = *g.nodes[i].shape;
    t += "  node " + std::to_string(i) + ": first boundary " + std::to_string(g.nodes[i].first_value) + (s.replayable() ? "" : " not replayable") + (s.whole() ? " whole" : "") + ", scratch " +
         std::to_string(s.forward_scratch()) + " " + std::to_string(s.backward_scratch()) + ", inputs";
    for (uint32_t k = 0; k < s.input_count(); ++k) t += " " + std::to_string(g.inputs_of(i)[k]) + ":" + std::to_string(s.input_flags(k));
    for (uint32_t k = 0; k < s.item_count(); ++k) {
      const Item &it = s.item(k);
      t += "\n    " + it.name + ": bytes " + std::to_string(g.bytes_of(i, k)) + " seconds " + std::to_string(g.seconds_of(i, k)) + " reads " + text(it.reads) + " group " + std::to_string(it.group) + " flags " +
           std::to_string(it.flags) + (it.caller_memory ? " caller's" : "") + (it.in_place_input ? " over input " + std::to_string(it.in_place_input - 1) : "");
      if (k >= s.slot_count()) t += g.values[g.value_of(i, k)].read_at_end ? " read at end" : "";
    }
    t += "\n";
  }
  t += "  roots";
  for (const Root &root : r.roots) t += " " + std::to_string(root.value) + (root.has_grad ? "" : " (seeds itself)");
  return t + "\n";
}

class Walk {
 public:
  Walk(const RandomGraph &r, Genes *genes) : r_(r), graph_(r.graph), g_(*genes), ref_(r.graph, r.roots) {}

  // Whole in most cases; where the walk gave away what nothing can bring back, a part.
  std::vector<Action> program(uint32_t steps) {
    for (uint32_t k = 0; k < steps && ref_.done() != 0; ++k) step();
    go_home();
    return actions_;
  }
  const Reference &reference() const { return ref_; }
  bool whole() const { return !ref_.finish(); }

 private:
  bool attempt(const Action &a) {
    Reference copy = ref_.fork();
    if (copy.act(a)) return false;
    EXPECT_FALSE(ref_.act(a));
    actions_.push_back(a);
    return true;
  }
  Bits some(const Bits &from) {
    Bits b;
    const uint32_t how = g_.below(4);
    from.each([&](uint32_t k) {
      if (how == 0 || (how < 3 && g_.one_in(2))) b.set(k);
    });
    return b;
  }
  const Shape &shape(uint32_t node) const { return *graph_.nodes[node].shape; }
  Bits keeps(uint32_t node) const {
    Bits b;
    for (uint32_t k = 0; k < shape(node).item_count(); ++k)
      if (ref_.is_keep({node, k})) b.set(k);
    return b;
  }

  void step() {
    const uint32_t n = graph_.node_count();
    switch (g_.below(6)) {
      case 0:
        if (ref_.first() < n) first_run();
        else attempt({ActionKind::backward, ref_.done() - 1, {}, {}});
        return;
      case 1: {
        const uint32_t node = g_.below(std::min(ref_.first() + 1, ref_.done()));
        if (node == ref_.first()) first_run();
        else attempt({ActionKind::forward, node, some(shape(node).all()), some(shape(node).outputs())});
        return;
      }
      case 2: {
        const uint32_t v = g_.below(graph_.value_count());
        if (graph_.values[v].producer == kNone && !g_.one_in(6)) return;
        attempt({ActionKind::free, v, {}, {}});
        return;
      }
      case 3: {
        const uint32_t node = g_.below(n);
        Bits live;
        for (uint32_t k = 0; k < shape(node).slot_count(); ++k)
          if (ref_.live(node, k)) live.set(k);
        attempt({ActionKind::drop, node, some(live), {}});
        return;
      }
      case 4:
        if (ref_.first() == n) fill_and_backward(some(shape(ref_.done() - 1).all()));
        else first_run();
        return;
      default: make(g_.below(graph_.value_count())); return;
    }
  }
  void first_run() {
    const uint32_t node = ref_.first();
    for (uint32_t v : graph_.inputs_of(node)) make(v);
    drop_again_slots(node);
    Action a{ActionKind::forward, node, some(shape(node).slots()) | shape(node).outputs() | keeps(node), some(shape(node).outputs())};
    if (attempt(a)) return;
    a.in_place = {};
    attempt(a);
  }
  // Brings a boundary back.
  bool make(uint32_t v) {
    if (ref_.value_live(v)) return true;
    const uint32_t node = graph_.values[v].producer;
    if (node == kNone || node >= ref_.first() || node >= ref_.done()) return false;
    for (uint32_t u : graph_.inputs_of(node))
      if (!make(u)) return false;
    drop_again_slots(node);
    return attempt({ActionKind::forward, node, Bits::one(graph_.values[v].item), {}});
  }
  void drop_again_slots(uint32_t but) {
    std::map<uint32_t, Bits> live;
    for (const Name &n : ref_.items())
      if (n.first != but && ref_.is_again(n)) live[n.first].set(n.second);
    for (const auto &[node, slots] : live) attempt({ActionKind::drop, node, slots, {}});
  }
  bool fill_and_backward(const Bits &stay) {
    const uint32_t node = ref_.done() - 1;
    if (ref_.runs(node)) {
      for (uint32_t v : graph_.inputs_of(node)) make(v);
      drop_again_slots(node);
      Bits missing;
      for (uint32_t k = 0; k < shape(node).item_count(); ++k)
        if (ref_.is_read({node, k}) && !ref_.live(node, k)) missing.set(k);
      if (!missing.empty()) attempt({ActionKind::forward, node, missing, {}});
    }
    drop_again_slots(node);
    if (g_.one_in(8) && attempt({ActionKind::backward, node, stay, {}})) return true;
    return attempt({ActionKind::backward, node, {}, {}});
  }
  void go_home() {
    for (uint32_t at = ref_.first(); at < graph_.node_count(); ++at) {
      first_run();
      if (ref_.first() == at) return;
    }
    while (ref_.done() != 0)
      if (!fill_and_backward({})) return;
  }

  const RandomGraph &r_;
  const Graph &graph_;
  Genes &g_;
  Reference ref_;
  std::vector<Action> actions_;
};

// One thing wrong, perhaps: what the program does then is for the reference to say.
inline std::vector<Action> mutate(const Graph &graph, std::vector<Action> actions, Genes *genes) {
  if (actions.empty()) return actions;
  const uint32_t at = genes->below(static_cast<uint32_t>(actions.size()));
  Action &a = actions[at];
  switch (genes->below(8)) {
    case 0: actions.erase(actions.begin() + at); break;
    case 1: std::swap(a, actions[genes->below(static_cast<uint32_t>(actions.size()))]); break;
    case 2: std::swap(a, actions[at + 1 < actions.size() ? at + 1 : 0]); break;
    case 3: {
      const uint32_t bit = genes->one_in(8) ? genes->below(Bits::kCapacity) : genes->below(6);
      if (a.want.has(bit)) a.want.clear(bit);
      else a.want.set(bit);
      break;
    }
    case 4: a.index = genes->one_in(8) ? graph.value_count() + genes->below(3) : genes->below(graph.value_count()); break;
    case 5: {
      const Action again = a;
      actions.insert(actions.begin() + genes->below(static_cast<uint32_t>(actions.size())), again);
      break;
    }
    case 6: {
      const uint32_t bit = genes->below(6);
      if (a.in_place.has(bit)) a.in_place.clear(bit);
      else a.in_place.set(bit);
      break;
    }
    default: a.kind = static_cast<ActionKind>(genes->below(5)); break;
  }
  return actions;
}

// One action of the machine on paper, as the simulator does it.
inline Status machine_act(PaperMachine *m, const GradientMap &gradients, const Action &a) {
  switch (a.kind) {
    case ActionKind::forward: {
      PaperMachine::Run run;
      CKPT_TRY(m->begin_forward(a.index, a.want, a.in_place, &run));
      m->end_forward(run);
      return CKPT_OK;
    }
    case ActionKind::backward: {
      PaperMachine::BackwardRun run;
      CKPT_TRY(m->begin_backward(a.index, a.want, gradients, &run));
      m->end_backward(run);
      return CKPT_OK;
    }
    case ActionKind::free: return m->free_value(a.index);
    case ActionKind::drop: return m->drop(a.index, a.want);
  }
  return fail(CKPT_ERROR_INVALID_PLAN, "unknown kind");
}

// What reference, machine and verifier say of a program; a text where they differ.
inline std::string disagreement(const RandomGraph &r, const std::vector<Action> &actions, std::string *broken_rule = nullptr) {
  const Graph &graph = r.graph;
  Reference ref(graph, r.roots);
  const GradientMap gradients = derive_gradients(graph, r.roots);
  PaperMachine machine(&graph, Paper{graph.rule, arena::Placer()});
  if (machine.start(gradients)) return "the machine does not start";
  if (ref.load() != machine.backend().placer.in_use()) return "loads at the start: " + std::to_string(ref.load()) + " and " + std::to_string(machine.backend().placer.in_use());
  std::optional<std::string> rule;
  size_t at = 0;
  for (; at < actions.size(); ++at) {
    rule = ref.act(actions[at]);
    if (rule && whole_step_rule(*rule)) break;
    const Status status = machine_act(&machine, gradients, actions[at]);
    if (rule.has_value() != (status == CKPT_ERROR_INVALID_PLAN) || (!rule && status))
      return "action " + std::to_string(at) + ": reference says '" + rule.value_or("fine") + "', the machine '" + (status ? last_error() : "fine") + "'";
    if (rule) break;
    const arena::Placer &placer = machine.backend().placer;
    if (ref.load() != placer.in_use() || ref.peak() != placer.peak_in_use())
      return "after action " + std::to_string(at) + " load and peak are " + std::to_string(ref.load()) + " and " + std::to_string(ref.peak()) + ", the machine says " + std::to_string(placer.in_use()) + " and " +
             std::to_string(placer.peak_in_use());
    for (uint32_t i = 0; i < graph.node_count(); ++i)
      for (uint32_t k = 0; k < graph.nodes[i].shape->item_count(); ++k)
        if (ref.live(i, k) != machine.state().live[i].has(k)) return "after action " + std::to_string(at) + " item " + std::to_string(k) + " of node " + std::to_string(i) + " is live for one only";
  }
  if (!rule) rule = ref.finish();
  if (broken_rule != nullptr) *broken_rule = rule.value_or("");
  Verified verified;
  const Status status = verify(graph, r.roots, actions, &verified);
  if (rule.has_value() != (status == CKPT_ERROR_INVALID_PLAN) || (!rule && status)) return "at " + std::to_string(at) + " the rule is '" + rule.value_or("fine") + "', the verifier says '" + (status ? last_error() : "fine") + "'";
  if (rule) {
    const std::string expected = "action " + std::to_string(at) + ":";
    if (*rule != "unfinished" && std::string(last_error()).rfind(expected, 0) != 0) return expected + " expected, the verifier says '" + last_error() + "'";
    return "";
  }
  Simulation s;
  if (simulate_step(graph, gradients, {actions}, arena::Placer(), &s)) return std::string("the simulator says '") + last_error() + "'";
  if (s.peak != ref.peak() || verified.peak != ref.peak()) return "peaks: reference " + std::to_string(ref.peak()) + ", simulator " + std::to_string(s.peak) + ", verifier " + std::to_string(verified.peak);
  if (s.held != verified.held) return "held: simulator " + std::to_string(s.held) + ", verifier " + std::to_string(verified.held);
  if (s.seconds() != ref.seconds() || verified.seconds != ref.seconds() || s.recompute_seconds != ref.again_seconds() || verified.recompute_seconds != ref.again_seconds())
    return "seconds: reference " + std::to_string(ref.seconds()) + ", simulator " + std::to_string(s.seconds()) + ", verifier " + std::to_string(verified.seconds);
  if (s.height < s.peak) return "the height is below the peak";
  return "";
}

}  // namespace plan_test
