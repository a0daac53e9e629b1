#include "plan/exact/emit.h"

#include <algorithm>

namespace ckpt::plan::exact {
namespace {

struct Group {  // actions that stand for one
  size_t begin, end;
};

class Writer {
 public:
  Writer(const Chain &chain, const Tables &tables, Program *out) : chain_(chain), tables_(tables), out_(out) {}

  std::span<const Group> groups() const { return groups_; }

  void add(const Step &step) {
    const uint32_t i = step.segment;
    switch (step.kind) {
      case Step::Kind::jump: forward(i, tables_.starts[i][start(i, step.to)].slots, step.first != 0); break;
      case Step::Kind::run: run(step); break;
      case Step::Kind::free: free(i); break;
      case Step::Kind::leaf: leaf(step); break;
      case Step::Kind::fill: out_->actions.push_back({ActionKind::forward, i, option(i, step.to).slots, {}}); break;
    }
  }

 private:
  uint32_t start(uint32_t i, uint32_t number) const { return tables_.model.segments[i].starts[number].choice; }
  const Choice &option(uint32_t i, uint32_t number) const { return tables_.options[i][tables_.model.segments[i].options[number].choice]; }

  void forward(uint32_t i, const Bits &slots, bool first) {
    out_->actions.push_back({ActionKind::forward, i, slots | (first ? chain_.links[i].first_outputs : chain_.links[i].outputs), {}});
  }
  bool several(uint32_t i, const Calls &calls) {
    if (calls.empty()) return false;
    groups_.push_back({out_->actions.size(), out_->actions.size() + calls.size()});
    for (const Call &c : calls) out_->actions.push_back({c.drop ? ActionKind::drop : ActionKind::forward, i, c.items, {}});
    return true;
  }
  void run(const Step &step) {
    const uint32_t i = step.segment;
    const Choice &o = option(i, step.to);
    if (o.several != nullptr && several(i, step.first != 0 ? o.several->first : o.several->again[step.from])) return;
    forward(i, o.slots, step.first != 0);
  }
  void free(uint32_t boundary) {
    for (uint32_t v : chain_.boundary[boundary]) out_->actions.push_back({ActionKind::free, v, {}, {}});
  }
  // Fill, backward, and what becomes of the input: `step.first` as in Step.
  void leaf(const Step &step) {
    const uint32_t i = step.segment;
    const Choice &o = option(i, step.to);
    const bool inside = step.first == 0 && !tables_.model.segments[i].reads_input;
    const bool in_several = o.several != nullptr && several(i, (inside ? o.several->leaf_inside : o.several->leaf)[step.from]);
    if (!in_several && o.fills) out_->actions.push_back({ActionKind::forward, i, o.fill, {}});
    const bool frees = step.first == 0, before = !chain_.links[i].reads_input && !tables_.model.segments[i].options[step.to].stays;
    if (frees && before) free(i);
    out_->actions.push_back({ActionKind::backward, i, {}, {}});
    if (frees && !before) free(i);
  }

  const Chain &chain_;
  const Tables &tables_;
  Program *out_;
  std::vector<Group> groups_;
};

// What is live while a program runs.
class Live {
 public:
  explicit Live(const Chain &chain) : chain_(chain), graph_(*chain.graph), items_(chain.size()), bytes_(chain.x[0] + chain.g[chain.size()]), peak_(bytes_) {}

  const Bits &items(uint32_t i) const { return items_[i]; }
  Bytes peak() const { return peak_; }
  // While a forward runs that is asked for `want`.
  Bytes during(uint32_t i, const Bits &want) const {
    const Shape &s = *graph_.nodes[i].shape;
    const Bits todo = s.closure(want, items_[i]).todo;
    return bytes_ + bytes_of(i, todo - items_[i]) + (todo.empty() ? 0 : scratch(s.forward_scratch()));
  }
  void take(const Action &a) {
    const uint32_t i = a.index;
    switch (a.kind) {
      case ActionKind::forward:
        peak_ = std::max(peak_, during(i, a.want));
        change(i, items_[i] | a.want);
        break;
      case ActionKind::drop: change(i, items_[i] - a.want); break;
      case ActionKind::backward:
        peak_ = std::max(peak_, bytes_ + chain_.g_new[i] + (chain_.links[i].runs ? scratch(graph_.nodes[i].shape->backward_scratch()) : 0));
        bytes_ += chain_.g[i] - chain_.g[i + 1];
        change(i, Bits{});
        break;
      case ActionKind::free: {
        const Value &v = graph_.values[a.index];
        if (v.producer == kNone) bytes_ -= static_cast<Bytes>(graph_.rule.footprint(v.bytes));
        else change(v.producer, items_[v.producer] - Bits::one(v.item));
        break;
      }
    }
  }

 private:
  Bytes scratch(size_t bytes) const { return bytes == 0 ? 0 : static_cast<Bytes>(graph_.rule.footprint(bytes)); }
  Bytes bytes_of(uint32_t i, const Bits &items) const {
    Bytes sum = 0;
    (items - chain_.links[i].given).each([&](uint32_t k) { sum += static_cast<Bytes>(graph_.item_footprint(i, k)); });
    return sum;
  }
  void change(uint32_t i, const Bits &to) {
    bytes_ += bytes_of(i, to) - bytes_of(i, items_[i]);
    items_[i] = to;
  }

  const Chain &chain_;
  const Graph &graph_;
  std::vector<Bits> items_;
  Bytes bytes_, peak_;
};

// Makes one forward of as many of a group's as the load allows: that takes no longer.
class Joiner {
 public:
  Joiner(const Chain &chain, Bytes load) : load_(load), live_(chain) {}

  Program join(const Program &program, std::span<const Group> groups) {
    size_t next = 0;
    for (size_t k = 0; k < program.actions.size();) {
      if (next == groups.size() || groups[next].begin != k) {
        take(program.actions[k++]);
        continue;
      }
      const Group &g = groups[next++];
      while (k < g.end) k = join_from(program.actions, k, g.end);
    }
    return std::move(out_);
  }

 private:
  void take(const Action &a) {
    live_.take(a);
    out_.actions.push_back(a);
  }
  // One forward in place of those of [begin, end), if it fits.
  bool one_forward(const std::vector<Action> &actions, size_t begin, size_t end, Action *forward, Action *drop) const {
    const uint32_t i = actions[begin].index;
    Bits after = live_.items(i);
    for (size_t k = begin; k < end; ++k) {
      if (actions[k].kind == ActionKind::drop) after -= actions[k].want;
      else after |= actions[k].want;
    }
    *forward = {ActionKind::forward, i, after - live_.items(i), {}};
    *drop = {ActionKind::drop, i, live_.items(i) - after, {}};
    return !forward->want.empty() && live_.during(i, forward->want) <= load_;
  }
  size_t join_from(const std::vector<Action> &actions, size_t begin, size_t end) {
    for (size_t to = end; to > begin + 1; --to) {
      Action forward, drop;
      if (actions[begin].kind != ActionKind::forward || !one_forward(actions, begin, to, &forward, &drop)) continue;
      take(forward);
      if (!drop.want.empty()) take(drop);
      return to;
    }
    take(actions[begin]);
    return begin + 1;
  }

  const Bytes load_;
  Live live_;
  Program out_;
};

}  // namespace

Bytes load_of(const Chain &chain, const Program &program) {
  Live live(chain);
  for (const Action &a : program.actions) live.take(a);
  return live.peak();
}

Program write_program(const Chain &chain, const Tables &tables, std::span<const Step> steps, Bytes load) {
  Program program;
  Writer writer(chain, tables, &program);
  for (const Step &s : steps) writer.add(s);
  return writer.groups().empty() ? program : Joiner(chain, load).join(program, writer.groups());
}

double forward_seconds(const Graph &graph, const Program &program) {
  std::vector<Bits> live(graph.node_count());
  double sum = 0;
  for (const Action &a : program.actions) {
    if (a.kind == ActionKind::forward) {
      sum += graph.seconds(a.index, graph.nodes[a.index].shape->closure(a.want, live[a.index]));
      live[a.index] |= a.want;
    } else if (a.kind == ActionKind::free) {
      const Value &v = graph.values[a.index];
      if (v.producer != kNone) live[v.producer].clear(v.item);
    } else if (a.kind == ActionKind::drop) {
      live[a.index] -= a.want;
    }
  }
  return sum;
}

}  // namespace ckpt::plan::exact
