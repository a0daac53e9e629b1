#include "plan/tighten.h"

#include <algorithm>

namespace ckpt::plan {
namespace {

class Tightener {
 public:
  Tightener(const Graph &graph, const GradientMap &gradients, const LiveState &state, std::span<const Bits> retain)
      : graph_(graph), gradients_(gradients), start_(state), retain_(retain) {}

  void run(Program *program) {
    look_forward(program->actions);
    look_back(program->actions);
    emit(program->actions);
    program->actions = std::move(out_);
  }

 private:
  struct Note {            // of one action
    Bits live;             // forward: items of its node that are live before it
    Bits need;             // of its node after it
    size_t first_input = 0;  // into input_need_: are its inputs needed after it?
    bool first_run = false, dropped = false;
  };

  bool needed(uint32_t v) const {
    const Value &value = graph_.values[v];
    return value.producer == kNone ? need_input_[value.item] != 0 : need_[value.producer].has(value.item);
  }
  void need_value(uint32_t v) {
    const Value &value = graph_.values[v];
    if (value.producer == kNone) need_input_[value.item] = 1;
    else need_[value.producer].set(value.item);
  }

  void look_forward(const std::vector<Action> &actions);
  void look_back(std::vector<Action> &actions);
  void look_back_forward(Action &a, Note &note);
  void look_back_backward(const Action &a);
  void emit(const std::vector<Action> &actions);
  void emit_forward(const Action &a, const Note &note);
  Bits find_in_place(const Action &a, const Note &note, const Bits &made) const;
  void give_back_unneeded(uint32_t node, const Note &note);
  void give_value(uint32_t v);

  const Graph &graph_;
  const GradientMap &gradients_;
  const LiveState &start_;
  std::span<const Bits> retain_;
  std::vector<Note> notes_;
  std::vector<Bits> need_;             // per node: items that later actions need
  std::vector<uint8_t> need_input_;    // per graph input
  std::vector<uint8_t> input_need_;    // per action and input
  std::vector<uint8_t> end_need_;      // per value with read_at_end: needed when the first backward begins
  // In a program that begins with the forward pass: else the user is through with reading.
  size_t first_backward_ = SIZE_MAX;
  LiveState state_;
  std::vector<Action> out_;
};

// What is live before each action, as the program stands.
void Tightener::look_forward(const std::vector<Action> &actions) {
  LiveState state = start_;
  notes_.resize(actions.size());
  for (size_t t = 0; t < actions.size(); ++t) {
    const Action &a = actions[t];
    switch (a.kind) {
      case ActionKind::forward:
        notes_[t].live = state.live[a.index];
        notes_[t].first_run = a.index == state.nodes_run;
        if (notes_[t].first_run) ++state.nodes_run;
        state.live[a.index] |= a.want;
        break;
      case ActionKind::backward:
        if (first_backward_ == SIZE_MAX && start_.nodes_run < graph_.node_count()) first_backward_ = t;
        state.live[a.index] &= a.want;
        break;
      case ActionKind::free: {
        const Value &v = graph_.values[a.index];
        if (v.producer == kNone) state.input_live[v.item] = 0;
        else state.live[v.producer].clear(v.item);
        break;
      }
      case ActionKind::drop: state.live[a.index] -= a.want; break;
    }
  }
}

void Tightener::look_back_backward(const Action &a) {
  const Shape &s = *graph_.nodes[a.index].shape;
  Bits &need = need_[a.index];
  need = s.keep() | a.want;
  if (!gradients_.runs[a.index]) return;
  need |= s.needed() | s.backward_outputs();
  const auto inputs = graph_.inputs_of(a.index);
  for (uint32_t k = 0; k < s.input_count(); ++k)
    if (s.backward_reads_input(k)) need_value(inputs[k]);
  // Where a slot holds the input, it stays with that slot; forwards of this node read it anyway.
  if (s.saved_holds_input() && need.has(0)) need_value(inputs[0]);
}

void Tightener::look_back_forward(Action &a, Note &note) {
  const Shape &s = *graph_.nodes[a.index].shape;
  Bits &need = need_[a.index];
  const Bits useful = (a.want & need) - note.live;
  if (useful.empty() && !note.first_run) {
    note.dropped = true;
    return;
  }
  a.want = note.first_run ? useful | s.outputs() : useful;
  const Bits todo = s.closure(a.want, note.live).todo;
  need -= todo - note.live;
  todo.each([&](uint32_t k) { need |= s.item(k).reads & note.live; });
  for (uint32_t v : graph_.inputs_of(a.index)) need_value(v);
}

void Tightener::look_back(std::vector<Action> &actions) {
  need_.assign(graph_.node_count(), Bits{});
  if (!retain_.empty()) need_.assign(retain_.begin(), retain_.end());
  need_input_.assign(graph_.inputs.size(), !retain_.empty());
  size_t inputs = 0;
  for (size_t t = 0; t < actions.size(); ++t) {
    notes_[t].first_input = inputs;
    if (actions[t].kind == ActionKind::forward || actions[t].kind == ActionKind::backward) inputs += graph_.nodes[actions[t].index].shape->input_count();
  }
  input_need_.assign(inputs, 0);
  for (size_t t = actions.size(); t-- > 0;) {
    Action &a = actions[t];
    if (a.kind == ActionKind::free || a.kind == ActionKind::drop) continue;  // given back right after the last use instead
    notes_[t].need = need_[a.index];
    const auto inputs_of = graph_.inputs_of(a.index);
    for (size_t k = 0; k < inputs_of.size(); ++k) input_need_[notes_[t].first_input + k] = needed(inputs_of[k]);
    if (a.kind == ActionKind::backward) look_back_backward(a);
    else look_back_forward(a, notes_[t]);
    if (t != first_backward_) continue;
    end_need_.assign(graph_.value_count(), 0);
    for (uint32_t v = 0; v < graph_.value_count(); ++v) {
      if (!graph_.values[v].read_at_end) continue;
      end_need_[v] = needed(v);
      need_value(v);
    }
  }
}

void Tightener::give_value(uint32_t v) {
  const Value &value = graph_.values[v];
  if (value.caller || !state_.value_live(graph_, v)) return;
  if (value.producer != kNone && graph_.nodes[value.producer].shape->keep().has(value.item)) return;
  out_.push_back({ActionKind::free, v, {}, {}});
  if (value.producer == kNone) state_.input_live[value.item] = 0;
  else state_.live[value.producer].clear(value.item);
}

// After an action on `node`: its items, and its inputs, that nobody needs any more.
void Tightener::give_back_unneeded(uint32_t node, const Note &note) {
  const Shape &s = *graph_.nodes[node].shape;
  const Bits rest = state_.live[node] - note.need - s.keep();
  if (const Bits slots = rest & s.slots(); !slots.empty()) {
    out_.push_back({ActionKind::drop, node, slots, {}});
    state_.live[node] -= slots;
  }
  (rest & s.outputs()).each_down([&](uint32_t k) { give_value(graph_.value_of(node, k)); });
  const auto inputs = graph_.inputs_of(node);
  for (uint32_t k = 0; k < s.input_count(); ++k)
    if (!input_need_[note.first_input + k]) give_value(inputs[k]);
}

Bits Tightener::find_in_place(const Action &a, const Note &note, const Bits &made) const {
  const Shape &s = *graph_.nodes[a.index].shape;
  const auto inputs = graph_.inputs_of(a.index);
  Bits over;
  std::vector<uint32_t> taken;
  (made & a.want & s.outputs()).each([&](uint32_t k) {
    const uint32_t input = s.item(k).in_place_input;
    if (input == 0) return;
    const uint32_t v = inputs[input - 1];
    const Value &value = graph_.values[v];
    if (input_need_[note.first_input + input - 1] || value.caller || graph_.holders.contains(v) || !state_.value_live(graph_, v)) return;
    if (value.producer != kNone && graph_.nodes[value.producer].shape->keep().has(value.item)) return;
    if (graph_.rule.footprint(value.bytes) != graph_.item_footprint(a.index, k)) return;
    if (std::count(inputs.begin(), inputs.end(), v) != 1 || std::find(taken.begin(), taken.end(), v) != taken.end()) return;
    taken.push_back(v);
    over.set(k);
  });
  return over;
}

void Tightener::emit_forward(const Action &a, const Note &note) {
  const Shape &s = *graph_.nodes[a.index].shape;
  Action action = a;
  action.in_place = find_in_place(a, note, s.closure(a.want, state_.live[a.index]).todo - state_.live[a.index]);
  out_.push_back(action);
  action.in_place.each([&](uint32_t k) {
    const Value &value = graph_.values[graph_.inputs_of(a.index)[s.item(k).in_place_input - 1]];
    if (value.producer == kNone) state_.input_live[value.item] = 0;
    else state_.live[value.producer].clear(value.item);
  });
  state_.live[a.index] |= a.want;
}

void Tightener::emit(const std::vector<Action> &actions) {
  state_ = start_;
  // What is live at the start and needed by nobody.
  for (uint32_t i = 0; i < state_.live.size(); ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    const Bits rest = state_.live[i] - need_[i] - s.keep();
    if (const Bits slots = rest & s.slots(); !slots.empty()) {
      out_.push_back({ActionKind::drop, i, slots, {}});
      state_.live[i] -= slots;
    }
    (rest & s.outputs()).each_down([&](uint32_t k) { give_value(graph_.value_of(i, k)); });
  }
  for (uint32_t k = 0; k < graph_.inputs.size(); ++k)
    if (!need_input_[k]) give_value(graph_.inputs[k]);
  for (size_t t = 0; t < actions.size(); ++t) {
    const Action &a = actions[t];
    if (a.kind == ActionKind::free || a.kind == ActionKind::drop || notes_[t].dropped) continue;
    if (t == first_backward_)
      for (uint32_t v = 0; v < graph_.value_count(); ++v)
        if (graph_.values[v].read_at_end && !end_need_[v]) give_value(v);
    if (a.kind == ActionKind::forward) {
      emit_forward(a, notes_[t]);
    } else {
      out_.push_back(a);
      state_.live[a.index] &= a.want;
    }
    give_back_unneeded(a.index, notes_[t]);
  }
}

}  // namespace

void tighten(const Graph &graph, const GradientMap &gradients, const LiveState &state, std::span<const Bits> retain, Program *program) {
  Tightener(graph, gradients, state, retain).run(program);
}

}  // namespace ckpt::plan
