#include "plan/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace ckpt::plan {
namespace {

// The graph with every item, value and gradient flattened into rows, and every fact that a rule asks for looked up once.
// Items of node i are rows first[i] .. first[i + 1] - 1: its slots, then its outputs.
struct Facts {
  struct Row {
    size_t footprint = 0;  // 0 for the caller's memory
    bool slot = false, needed = false, keep = false, again = false, consumed = false, alone = false, caller = false;
  };
  explicit Facts(const Graph &g);

  uint32_t nodes() const { return static_cast<uint32_t>(graph.nodes.size()); }
  uint32_t count(uint32_t node) const { return static_cast<uint32_t>(first[node + 1] - first[node]); }
  const Shape &shape(uint32_t node) const { return *graph.nodes[node].shape; }
  uint32_t input(uint32_t node, uint32_t k) const { return graph.node_inputs[graph.nodes[node].first_input + k]; }
  const char *name(uint32_t node) const { return shape(node).name().c_str(); }
  const char *name(uint32_t node, uint32_t item) const { return shape(node).item(item).name.c_str(); }
  size_t scratch(size_t bytes) const { return bytes == 0 ? 0 : graph.rule.footprint(bytes); }

  const Graph &graph;
  std::vector<size_t> first;
  std::vector<Row> rows;
  bool may_be_held(uint32_t v) const { return holders.count(v) != 0; }
  std::map<uint32_t, std::vector<uint32_t>> holders;  // value: the nodes whose slot 0 contains it
  std::vector<size_t> value_row;  // per value: its producer's row; of an input: behind all rows
};

Facts::Facts(const Graph &g) : graph(g), first(1, 0) {
  for (uint32_t i = 0; i < nodes(); ++i) {
    const Shape &s = shape(i);
    for (uint32_t k = 0; k < s.item_count(); ++k) {
      const Item &it = s.item(k);
      Row r;
      r.slot = k < s.slot_count();
      r.caller = !r.slot && it.caller_memory;
      r.footprint = r.caller ? 0 : g.rule.footprint(g.item_bytes[g.nodes[i].first_item + k]);
      const bool transient = r.slot && (it.flags & CKPT_SLOT_TRANSIENT);
      r.needed = r.slot ? !transient : (it.flags & CKPT_OUTPUT_BACKWARD_READS) != 0;
      // What cannot be made again is made once.
      const bool marked = r.slot ? (it.flags & CKPT_SLOT_KEEP) != 0 : (it.flags & CKPT_OUTPUT_KEEP) != 0;
      r.keep = marked || (!s.replayable() && !transient);
      r.again = r.slot && (it.flags & CKPT_SLOT_RECOMPUTE);
      r.consumed = r.slot && (it.flags & CKPT_SLOT_CONSUMED);
      r.alone = r.slot && (it.flags & CKPT_SLOT_ALONE);
      rows.push_back(r);
    }
    if (s.saved_holds_input()) holders[input(i, 0)].push_back(i);
    first.push_back(rows.size());
  }
  for (const Value &v : g.values) {
    value_row.push_back(v.producer == kNone ? rows.size() : first[v.producer] + v.item);
    if (v.producer != kNone) continue;
    Row r;
    r.caller = v.caller;
    r.footprint = v.caller ? 0 : g.rule.footprint(v.bytes);
    rows.push_back(r);
  }
}

// Which backwards run, and from when to when each gradient lies in the arena. Found from the roots: a node runs if one can
// walk from a root to it against the edges that carry gradients.
struct Gradients {
  Gradients(const Facts &facts, std::span<const Root> roots);

  std::vector<uint8_t> runs;                // per node
  std::vector<size_t> footprint;            // per value
  std::vector<uint8_t> at_start;            // per value: a root's, in the arena
  std::vector<std::vector<uint32_t>> born;  // per node: values whose gradient takes memory in its backward
  std::vector<uint32_t> over;               // per node: the value whose gradient takes over output 0's memory; or kNone

 private:
  bool carries(uint32_t node, uint32_t k) const;
  void walk(std::span<const Root> roots);
  void find_over(uint32_t node, std::span<const uint8_t> rooted, std::span<const uint32_t> birth);

  const Facts &f_;
};

bool Gradients::carries(uint32_t node, uint32_t k) const {
  return !(f_.shape(node).input_flags(k) & CKPT_INPUT_NO_GRAD) && f_.graph.values[f_.input(node, k)].grad != CKPT_GRAD_NONE;
}

void Gradients::walk(std::span<const Root> roots) {
  std::vector<uint32_t> open;
  const auto reach = [&](uint32_t value) {
    const uint32_t p = f_.graph.values[value].producer;
    if (p == kNone || runs[p]) return;
    runs[p] = 1;
    open.push_back(p);
  };
  for (const Root &r : roots) reach(r.value);
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    for (uint32_t k = 0; k < f_.shape(node).input_count(); ++k)
      if (carries(node, k)) reach(f_.input(node, k));
  }
}

// A gradient's first contribution comes from the last of its value's readers that contribute.
Gradients::Gradients(const Facts &facts, std::span<const Root> roots)
    : runs(facts.nodes(), 0), at_start(facts.graph.values.size(), 0), born(facts.nodes()), over(facts.nodes(), kNone), f_(facts) {
  for (const Value &v : f_.graph.values) footprint.push_back(f_.graph.rule.footprint(v.grad_bytes));
  walk(roots);
  std::vector<uint8_t> rooted(f_.graph.values.size(), 0);
  for (const Root &r : roots) {
    rooted[r.value] = r.has_grad;
    at_start[r.value] = r.has_grad && f_.graph.root_grads_in_arena;
  }
  std::vector<uint32_t> birth(f_.graph.values.size(), kNone);
  for (uint32_t i = 0; i < f_.nodes(); ++i)
    for (uint32_t k = 0; runs[i] && k < f_.shape(i).input_count(); ++k)
      if (carries(i, k)) birth[f_.input(i, k)] = i;
  for (uint32_t v = 0; v < birth.size(); ++v)
    if (birth[v] != kNone && !at_start[v] && f_.graph.values[v].grad == CKPT_GRAD_ARENA) born[birth[v]].push_back(v);
  for (uint32_t i = 0; i < f_.nodes(); ++i)
    if (runs[i]) find_over(i, rooted, birth);
}

// Only where this is the gradient's one first contribution, and output 0's gradient is in the arena and of the same size.
void Gradients::find_over(uint32_t node, std::span<const uint8_t> rooted, std::span<const uint32_t> birth) {
  const Shape &s = f_.shape(node);
  if (s.item_count() == s.slot_count()) return;
  const uint32_t from = f_.graph.nodes[node].first_value;
  if (!at_start[from] && birth[from] == kNone) return;
  for (uint32_t k = 0; k < s.input_count(); ++k) {
    const uint32_t v = f_.input(node, k);
    if (!carries(node, k) || !(s.input_flags(k) & CKPT_INPUT_GRAD_OVER_OUTPUT_0) || f_.graph.values[v].grad != CKPT_GRAD_ARENA) continue;
    uint32_t uses = 0;
    for (uint32_t j = 0; j < s.input_count(); ++j) uses += f_.input(node, j) == v;
    if (rooted[v] || birth[v] != node || uses != 1 || footprint[v] != footprint[from]) continue;
    over[node] = v;
    return;
  }
}

class Verifier {
 public:
  Verifier(const Facts &facts, const Gradients &gradients) : f_(facts), grads_(gradients), live_(facts.rows.size(), 0), grad_live_(facts.graph.values.size(), 0) {}

  Status run(std::span<const Action> actions, Verified *out);

 private:
  Status perform(const Action &a);
  Status forward(const Action &a);
  Status check_forward(const Action &a, bool first) const;
  Status check_made(const Action &a, bool first) const;
  Status check_in_place(const Action &a);
  Status backward(const Action &a);
  Status check_backward(const Action &a) const;
  void take_gradients(uint32_t node);
  void end_gradients(uint32_t node);
  Status free_value(uint32_t value);
  Status check_not_held(uint32_t value, const char *what) const;
  Status drop(const Action &a);
  Status check_recompute_slots(uint32_t node) const;
  Status check_read_at_end() const;

  void find_made(uint32_t node, const Bits &want);
  bool kernel_needed(uint32_t node, uint32_t item) const;
  double seconds(uint32_t node) const;

  bool is_live(uint32_t node, uint32_t item) const { return live_[f_.first[node] + item]; }
  bool value_live(uint32_t v) const { return live_[f_.value_row[v]]; }
  const Facts::Row &row(uint32_t node, uint32_t item) const { return f_.rows[f_.first[node] + item]; }
  void set_live(uint32_t node, uint32_t item, bool yes);
  void set_row(size_t row, bool yes);
  void note_peak(size_t more) { peak_ = std::max(peak_, load_ + more); }

  const Facts &f_;
  const Gradients &grads_;
  std::vector<uint8_t> live_;       // per row
  std::vector<uint8_t> grad_live_;  // per value: lies in the arena
  std::set<std::pair<uint32_t, uint32_t>> again_live_;  // slots marked RECOMPUTE: node and slot
  size_t load_ = 0, peak_ = 0, number_ = 0;
  uint32_t nodes_run_ = 0, done_ = 0;  // first runs; backwards are over from done_ on
  double first_seconds_ = 0, again_seconds_ = 0, backward_seconds_ = 0;
  // Of the forward at hand, per item: computed; by itself instead of by its group's kernel; over an input's block.
  std::vector<uint8_t> made_, alone_, in_place_;
};

void Verifier::set_row(size_t row, bool yes) {
  if (static_cast<bool>(live_[row]) == yes) return;
  live_[row] = yes;
  if (yes) load_ += f_.rows[row].footprint;
  else load_ -= f_.rows[row].footprint;
}

void Verifier::set_live(uint32_t node, uint32_t item, bool yes) {
  set_row(f_.first[node] + item, yes);
  if (!row(node, item).again) return;
  if (yes) again_live_.insert({node, item});
  else again_live_.erase({node, item});
}

// Can this item, which must be made, not be made by itself?
bool Verifier::kernel_needed(uint32_t node, uint32_t item) const {
  if (!row(node, item).alone) return true;
  bool all_there = true;
  f_.shape(node).item(item).reads.each([&](uint32_t r) { all_there = all_there && is_live(node, r); });
  return !all_there;
}

// The least set that holds what is wanted and missing, and with each item what it is computed from, as far as that is
// missing, and with each member of a group for which the group's kernel must run the whole group. Rules are applied until
// none adds anything.
void Verifier::find_made(uint32_t node, const Bits &want) {
  const Shape &s = f_.shape(node);
  const uint32_t count = f_.count(node);
  made_.assign(count, 0);
  alone_.assign(count, 0);
  std::vector<uint8_t> kernel(count, 0);
  for (uint32_t k = 0; k < count; ++k) made_[k] = want.has(k) && !is_live(node, k);
  for (bool grew = true; grew;) {
    grew = false;
    const auto add = [&](std::vector<uint8_t> &to, uint32_t k) {
      if (to[k]) return;
      to[k] = 1;
      grew = true;
    };
    for (uint32_t k = count; k-- > 0;) {
      if (!made_[k]) continue;
      const uint32_t group = s.item(k).group;
      if (group != 0 && !kernel[k] && kernel_needed(node, k))
        for (uint32_t m = 0; m < count; ++m)
          if (s.item(m).group == group) {
            add(made_, m);
            add(kernel, m);
          }
      if (group != 0 && !kernel[k]) continue;  // by itself: what it reads is there
      s.item(k).reads.each([&](uint32_t r) {
        if (!is_live(node, r)) add(made_, r);
      });
    }
  }
  for (uint32_t k = 0; k < count; ++k) alone_[k] = made_[k] && s.item(k).group != 0 && !kernel[k];
}

// A whole segment computes everything if it computes anything. A member of a group that can be made by itself costs its
// own seconds then, and nothing where the kernel makes it.
double Verifier::seconds(uint32_t node) const {
  if (std::find(made_.begin(), made_.end(), 1) == made_.end()) return 0;
  double sum = 0;
  for (uint32_t k = 0; k < made_.size(); ++k) {
    const bool counts = row(node, k).alone ? alone_[k] != 0 : made_[k] || f_.shape(node).whole();
    if (counts) sum += f_.graph.item_seconds[f_.graph.nodes[node].first_item + k];
  }
  return sum;
}

// All of them belong to one segment, since no other could act while they were live.
Status Verifier::check_recompute_slots(uint32_t node) const {
  if (again_live_.empty()) return CKPT_OK;
  const auto &[other, slot] = *again_live_.begin();
  if (other == node) return CKPT_OK;
  return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: segment %u acts while slot '%s' of segment %u is live, which is marked RECOMPUTE", number_, node, f_.name(other, slot), other);
}

Status Verifier::check_forward(const Action &a, bool first) const {
  const uint32_t i = a.index;
  if (i > nodes_run_) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u before the first run of segment %u", number_, i, nodes_run_);
  if (i >= done_) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u after its backward", number_, i);
  for (uint32_t k = f_.count(i); k < Bits::kCapacity; ++k)
    if (a.want.has(k)) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u wants item %u, segment '%s' has %u", number_, i, k, f_.name(i), f_.count(i));
  for (uint32_t k = 0; k < f_.count(i); ++k)
    if (first && !row(i, k).slot && !a.want.has(k))
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: the first run of segment %u without its output '%s', expected all outputs", number_, i, f_.name(i, k));
  for (uint32_t k = 0; k < f_.count(i); ++k)
    if (first && row(i, k).keep && !a.want.has(k))
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: the first run of segment %u does not keep '%s', which is marked KEEP or cannot be made again", number_, i, f_.name(i, k));
  for (uint32_t k = 0; k < f_.shape(i).input_count(); ++k)
    if (!value_live(f_.input(i, k))) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u reads boundary %u, which is not live", number_, i, f_.input(i, k));
  return check_recompute_slots(i);
}

Status Verifier::check_made(const Action &a, bool first) const {
  const uint32_t i = a.index;
  for (uint32_t k = 0; k < f_.count(i); ++k) {
    if (first || !made_[k]) continue;
    if (!f_.shape(i).replayable())
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u makes '%s', but segment '%s' has no forward to run again", number_, i, f_.name(i, k), f_.name(i));
    if (row(i, k).keep) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u makes '%s' of segment '%s' again, which is marked KEEP", number_, i, f_.name(i, k), f_.name(i));
  }
  return CKPT_OK;
}

// Sets in_place_ to the outputs that take over a block: of those asked for, the ones that this forward makes anew.
Status Verifier::check_in_place(const Action &a) {
  const uint32_t i = a.index;
  const Shape &s = f_.shape(i);
  in_place_.assign(f_.count(i), 0);
  std::vector<uint32_t> taken;
  for (uint32_t k = 0; k < f_.count(i); ++k) {
    if (!a.in_place.has(k) || !a.want.has(k) || !made_[k] || is_live(i, k)) continue;
    const uint32_t input = row(i, k).slot ? 0 : s.item(k).in_place_input;
    if (input == 0) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u places '%s' over an input, but it names none", number_, i, f_.name(i, k));
    const uint32_t v = f_.input(i, input - 1);
    const Facts::Row &under = f_.rows[f_.value_row[v]];
    const char *why = nullptr;
    if (under.caller) why = "is the caller's memory";
    else if (under.keep) why = "is marked KEEP";
    else if (under.footprint != row(i, k).footprint) why = "has another size";
    else if (std::find(taken.begin(), taken.end(), v) != taken.end()) why = "is taken by another output";
    else if (f_.may_be_held(v)) why = "a slot may hold";
    for (uint32_t j = 0; j < s.input_count(); ++j)
      if (j != input - 1 && f_.input(i, j) == v) why = "is read twice by this segment";
    if (why != nullptr) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u places '%s' over boundary %u, which %s", number_, i, f_.name(i, k), v, why);
    taken.push_back(v);
    in_place_[k] = 1;
  }
  return CKPT_OK;
}

Status Verifier::forward(const Action &a) {
  const uint32_t i = a.index;
  if (i >= f_.nodes()) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: forward %u, expected a segment below %u", number_, i, f_.nodes());
  const bool first = i == nodes_run_;
  CKPT_TRY(check_forward(a, first));
  find_made(i, a.want);
  CKPT_TRY(check_made(a, first));
  CKPT_TRY(check_in_place(a));
  size_t more = 0;
  bool any = false;
  for (uint32_t k = 0; k < f_.count(i); ++k) {
    any = any || made_[k];
    if (made_[k] && !is_live(i, k) && !in_place_[k]) more += row(i, k).footprint;
  }
  note_peak(more + (any ? f_.scratch(f_.shape(i).forward_scratch()) : 0));
  (first ? first_seconds_ : again_seconds_) += seconds(i);
  for (uint32_t k = 0; k < f_.count(i); ++k)
    if (in_place_[k]) set_row(f_.value_row[f_.input(i, f_.shape(i).item(k).in_place_input - 1)], false);
  for (uint32_t k = 0; k < f_.count(i); ++k)
    if (a.want.has(k)) set_live(i, k, true);
  if (!first) return CKPT_OK;
  ++nodes_run_;
  return nodes_run_ == f_.nodes() ? check_read_at_end() : Status{CKPT_OK};
}

Status Verifier::check_read_at_end() const {
  for (uint32_t v = 0; v < f_.value_row.size(); ++v)
    if (f_.graph.values[v].read_at_end && !value_live(v))
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: the forward pass is over and boundary %u, which is read then, is not live", number_, v);
  return CKPT_OK;
}

Status Verifier::check_backward(const Action &a) const {
  const uint32_t i = a.index;
  if (nodes_run_ < f_.nodes()) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u before the first run of segment %u", number_, i, nodes_run_);
  if (done_ == 0) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u after the last backward", number_, i);
  if (i != done_ - 1) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u out of order, expected backward %u", number_, i, done_ - 1);
  CKPT_TRY(check_recompute_slots(i));
  for (uint32_t k = 0; k < Bits::kCapacity; ++k) {
    if (!a.want.has(k)) continue;
    if (k >= f_.count(i)) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u retains item %u, segment '%s' has %u", number_, i, k, f_.name(i), f_.count(i));
    if (row(i, k).consumed && grads_.runs[i])
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u retains slot '%s' of segment '%s', which it may overwrite (CONSUMED)", number_, i, f_.name(i, k), f_.name(i));
  }
  if (!grads_.runs[i]) return CKPT_OK;
  for (uint32_t k = 0; k < f_.count(i); ++k)
    if (row(i, k).needed && !is_live(i, k)) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u reads '%s' of segment '%s', which is not live", number_, i, f_.name(i, k), f_.name(i));
  for (uint32_t k = 0; k < f_.shape(i).input_count(); ++k)
    if (!(f_.shape(i).input_flags(k) & CKPT_INPUT_BACKWARD_IGNORES) && !value_live(f_.input(i, k)))
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u reads boundary %u, which is not live", number_, i, f_.input(i, k));
  return CKPT_OK;
}

void Verifier::take_gradients(uint32_t node) {
  for (uint32_t v : grads_.born[node]) {
    grad_live_[v] = 1;
    if (v != grads_.over[node]) load_ += grads_.footprint[v];
  }
}

// The gradient of an output that another took over goes on under that name.
void Verifier::end_gradients(uint32_t node) {
  const Shape &s = f_.shape(node);
  const uint32_t from = f_.graph.nodes[node].first_value;
  for (uint32_t k = 0; k < s.item_count() - s.slot_count(); ++k) {
    if (!grad_live_[from + k]) continue;
    grad_live_[from + k] = 0;
    if (k != 0 || grads_.over[node] == kNone) load_ -= grads_.footprint[from + k];
  }
}

Status Verifier::backward(const Action &a) {
  const uint32_t i = a.index;
  if (i >= f_.nodes()) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: backward %u, expected a segment below %u", number_, i, f_.nodes());
  CKPT_TRY(check_backward(a));
  if (grads_.runs[i]) {
    take_gradients(i);
    note_peak(f_.scratch(f_.shape(i).backward_scratch()));
    end_gradients(i);
    backward_seconds_ += f_.graph.nodes[i].backward_seconds;
  }
  for (uint32_t k = 0; k < f_.count(i); ++k)
    if (!a.want.has(k)) set_live(i, k, false);
  done_ = i;
  return CKPT_OK;
}

// A boundary that a live slot holds stays.
Status Verifier::check_not_held(uint32_t v, const char *what) const {
  const auto found = f_.holders.find(v);
  for (uint32_t i : found != f_.holders.end() ? found->second : std::vector<uint32_t>())
    if (is_live(i, 0))
      return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: %s of boundary %u, which '%s' of segment %u holds", number_, what, v, f_.name(i, 0), i);
  return CKPT_OK;
}

Status Verifier::free_value(uint32_t v) {
  if (v >= f_.value_row.size()) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: free %u, expected a boundary below %zu", number_, v, f_.value_row.size());
  const Facts::Row &r = f_.rows[f_.value_row[v]];
  const char *why = r.caller ? "is the caller's memory" : r.keep ? "is marked KEEP" : !value_live(v) ? "is not live" : nullptr;
  if (why != nullptr) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: free of boundary %u, which %s", number_, v, why);
  CKPT_TRY(check_not_held(v, "free"));
  set_row(f_.value_row[v], false);
  return CKPT_OK;
}

Status Verifier::drop(const Action &a) {
  const uint32_t i = a.index;
  if (i >= f_.nodes()) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: drop %u, expected a segment below %u", number_, i, f_.nodes());
  for (uint32_t k = 0; k < Bits::kCapacity; ++k) {
    if (!a.want.has(k)) continue;
    if (k >= f_.count(i) || !row(i, k).slot) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: drop %u of item %u, expected slots of segment '%s'", number_, i, k, f_.name(i));
    const char *why = row(i, k).keep ? "is marked KEEP" : !is_live(i, k) ? "is not live" : nullptr;
    if (why != nullptr) return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: drop of slot '%s' of segment '%s', which %s", number_, f_.name(i, k), f_.name(i), why);
    set_live(i, k, false);
  }
  return CKPT_OK;
}

Status Verifier::perform(const Action &a) {
  switch (a.kind) {
    case ActionKind::forward: return forward(a);
    case ActionKind::backward: return backward(a);
    case ActionKind::free: return free_value(a.index);
    case ActionKind::drop: return drop(a);
  }
  return fail(CKPT_ERROR_INVALID_PLAN, "action %zu: unknown kind %u", number_, static_cast<unsigned>(a.kind));
}

Status Verifier::run(std::span<const Action> actions, Verified *out) {
  done_ = f_.nodes();
  for (uint32_t v : f_.graph.inputs) set_row(f_.value_row[v], true);
  for (uint32_t v = 0; v < f_.value_row.size(); ++v) {
    if (!grads_.at_start[v]) continue;
    grad_live_[v] = 1;
    load_ += grads_.footprint[v];
  }
  note_peak(0);
  bool held_open = true;  // what is given back right after the last first run is not held
  Verified result;
  for (number_ = 0; number_ < actions.size(); ++number_) {
    const Action &a = actions[number_];
    const bool forward_over = nodes_run_ == f_.nodes();
    const bool gives_back = a.kind == ActionKind::drop || (a.kind == ActionKind::free && a.index < f_.value_row.size() && !f_.graph.values[a.index].read_at_end);
    if (forward_over && !gives_back && held_open) {
      result.held = load_;
      held_open = false;
    }
    CKPT_TRY(perform(a));
  }
  if (held_open) result.held = load_;
  if (nodes_run_ < f_.nodes()) return fail(CKPT_ERROR_INVALID_PLAN, "the program ends after %zu actions before the first run of segment %u", actions.size(), nodes_run_);
  if (done_ != 0) return fail(CKPT_ERROR_INVALID_PLAN, "the program ends after %zu actions without backward %u", actions.size(), done_ - 1);
  result.peak = peak_;
  result.seconds = first_seconds_ + again_seconds_ + backward_seconds_;
  result.recompute_seconds = again_seconds_;
  if (out != nullptr) *out = result;
  return CKPT_OK;
}

Status check_roots(const Graph &graph, std::span<const Root> roots) {
  std::vector<uint8_t> seen(graph.values.size(), 0);
  for (const Root &r : roots) {
    if (r.value >= graph.values.size()) return fail(CKPT_ERROR_INVALID_ARGUMENT, "verify: root %u, expected a boundary below %zu", r.value, graph.values.size());
    if (seen[r.value]) return fail(CKPT_ERROR_INVALID_ARGUMENT, "verify: boundary %u is given as a root twice", r.value);
    seen[r.value] = 1;
  }
  return CKPT_OK;
}

}  // namespace

Status verify(const Graph &graph, std::span<const Root> roots, std::span<const Action> actions, Verified *out) {
  CKPT_TRY(check_roots(graph, roots));
  const Facts facts(graph);
  const Gradients gradients(facts, roots);
  return Verifier(facts, gradients).run(actions, out);
}

}  // namespace ckpt::plan
