#include <algorithm>
#include <unordered_set>

#include "json/chain_file.h"
#include "json/writer.h"

namespace ckpt::json {
namespace {

using plan::Graph;
using plan::Item;
using plan::kNone;
using plan::Node;
using plan::Shape;

constexpr const char *kMemory[] = {"arena", "caller"};
constexpr const char *kGrad[] = {"none", "arena", "caller"};

class ChainWriter {
 public:
  ChainWriter(const Graph &graph, const std::vector<plan::Root> &roots) : g_(graph), roots_(roots) {}

  std::string write() {
    w_.object(true);
    w_.key("alignment_bytes").number(g_.rule.alignment_bytes);
    if (g_.rule.guard_bytes != 0) w_.key("guard_bytes").number(g_.rule.guard_bytes);
    if (names_repeat()) w_.key("names_repeat").flag(true);
    inputs();
    last_simple_ = simple_output(g_.node_count() - 1, true);
    const plan::Value &last = g_.values[g_.nodes.back().first_value];
    w_.key("output").object();
    if (last_simple_) w_.key("memory").text(kMemory[last.caller]);
    w_.key("grad").text(g_.root_grads_in_arena ? "arena" : "caller").end();
    w_.key("segments").list(true);
    for (uint32_t i = 0; i < g_.node_count(); ++i) segment(i);
    w_.end();
    if (!default_roots()) roots();
    w_.end();
    return w_.finish();
  }

 private:
  bool names_repeat() const {
    std::unordered_set<std::string> seen;
    for (const Node &n : g_.nodes)
      if (!seen.insert(n.shape->name()).second) return true;
    return false;
  }

  void input(uint32_t value, bool listed) {
    const plan::Value &v = g_.values[value];
    w_.object().key("bytes").number(v.bytes);
    if (v.grad_bytes != v.bytes) w_.key("grad_bytes").number(v.grad_bytes);
    w_.key("memory").text(kMemory[v.caller]).key("grad").text(kGrad[v.grad]);
    if (listed) {
      uint32_t before = 0;
      while (before < g_.node_count() && g_.nodes[before].first_value < value) ++before;
      if (before != 0) w_.key("before_segment").number(before);
    }
    w_.end();
  }

  void inputs() {
    if (g_.inputs.size() == 1 && g_.inputs[0] == 0) {
      w_.key("input");
      return input(0, false);
    }
    w_.key("inputs").list(true);
    for (uint32_t value : g_.inputs) input(value, true);
    w_.end();
  }

  void reads(const char *key, const Shape &s, const Bits &reads, uint32_t limit) {
    if (reads == Bits::first(limit)) return;
    w_.key(key).list();
    reads.each([&](uint32_t k) { w_.text(s.item(k).name); });
    w_.end();
  }

  // Bytes of a slot as the user said it: one that holds the input, with it.
  size_t slot_bytes(uint32_t node, uint32_t k) const {
    const size_t bytes = g_.bytes_of(node, k);
    return k == 0 && g_.nodes[node].shape->saved_holds_input() ? bytes + g_.values[g_.inputs_of(node)[0]].bytes : bytes;
  }

  void slot(uint32_t node, uint32_t k) {
    const Shape &s = *g_.nodes[node].shape;
    const Item &it = s.item(k);
    w_.object().key("name").text(it.name).key("bytes").number(slot_bytes(node, k)).key("cost_seconds").real(g_.seconds_of(node, k));
    reads("reads", s, it.reads, k);
    constexpr struct { uint32_t flag; const char *name; } kNames[] = {{CKPT_SLOT_TRANSIENT, "transient"}, {CKPT_SLOT_KEEP, "keep"}, {CKPT_SLOT_RECOMPUTE, "recompute"},
                                                                      {CKPT_SLOT_COST_GIVEN, "cost_given"}, {CKPT_SLOT_CONSUMED, "consumed"}};
    if (it.flags & ~uint32_t{CKPT_SLOT_ALONE}) {
      w_.key("flags").list();
      for (const auto &n : kNames)
        if (it.flags & n.flag) w_.text(n.name);
      w_.end();
    }
    if (it.group != 0) w_.key("group").number(it.group);
    if (it.flags & CKPT_SLOT_ALONE) w_.key("alone").flag(true);
    w_.end();
  }

  // May a segment be told by saved_bytes?
  bool is_saved(uint32_t node) const {
    const Shape &s = *g_.nodes[node].shape;
    if (!s.whole() || s.slot_count() != 1) return false;
    const Item &it = s.item(0);
    return it.name == "saved" && it.flags == 0 && it.group == 0 && g_.seconds_of(node, 0) == 0;
  }

  // One output of which there is nothing to say but bytes, reads, and whether backward reads it.
  bool simple_output(uint32_t node, bool last) const {
    const Shape &s = *g_.nodes[node].shape;
    if (s.output_count() != 1) return false;
    const Item &it = s.item(s.slot_count());
    const plan::Value &v = g_.values[g_.nodes[node].first_value];
    std::vector<std::string> names;
    for (uint32_t k = 0; k < s.slot_count(); ++k) names.push_back(s.item(k).name);
    return it.name == default_output_name(names) && (it.flags & ~uint32_t{CKPT_OUTPUT_BACKWARD_READS}) == 0 && it.group == 0 && it.in_place_input == 0 && !v.read_at_end && (last || !v.caller);
  }

  void output(uint32_t node, uint32_t k, bool measured) {
    const Shape &s = *g_.nodes[node].shape;
    const Item &it = s.item(k);
    const plan::Value &v = g_.values[g_.value_of(node, k)];
    w_.object().key("name").text(it.name).key("bytes").number(v.bytes);
    if (v.grad_bytes != v.bytes) w_.key("grad_bytes").number(v.grad_bytes);
    const bool given = it.flags & CKPT_OUTPUT_COST_GIVEN;
    if (given || measured) w_.key("cost_seconds").real(g_.seconds_of(node, k));
    reads("reads", s, it.reads, s.slot_count());
    const bool is_measured = measured && !given;
    if ((it.flags & ~uint32_t{CKPT_OUTPUT_COST_GIVEN}) || is_measured || v.read_at_end) {
      w_.key("flags").list();
      if (it.flags & CKPT_OUTPUT_NO_GRAD) w_.text("no_grad");
      if (it.flags & CKPT_OUTPUT_KEEP) w_.text("keep");
      if (it.flags & CKPT_OUTPUT_BACKWARD_READS) w_.text("backward_reads");
      if (is_measured) w_.text("measured");
      if (v.read_at_end) w_.text("read_at_end");
      w_.end();
    }
    if (it.group != 0) w_.key("group").number(it.group);
    if (v.caller) w_.key("memory").text("caller");
    if (it.in_place_input != 0) w_.key("in_place_input").number(it.in_place_input - 1);
    w_.end();
  }

  void segment_inputs(uint32_t node) {
    const Shape &s = *g_.nodes[node].shape;
    const auto inputs = g_.inputs_of(node);
    bool chain = inputs.size() == 1 && inputs[0] == (node == 0 ? 0 : g_.nodes[node - 1].first_value);
    bool ignores_all = !inputs.empty();
    for (uint32_t k = 0; k < inputs.size(); ++k) ignores_all &= !s.backward_reads_input(k);
    const uint32_t said = ignores_all ? uint32_t{CKPT_INPUT_BACKWARD_IGNORES} : 0;
    for (uint32_t k = 0; k < inputs.size(); ++k) chain &= (s.input_flags(k) & ~said) == 0;
    if (!chain) {
      w_.key("inputs").list();
      for (uint32_t k = 0; k < inputs.size(); ++k) {
        const uint32_t f = s.input_flags(k) & ~said;
        if (f == 0) {
          w_.number(inputs[k]);
          continue;
        }
        w_.object().key("boundary").number(inputs[k]).key("flags").list();
        if (f & CKPT_INPUT_BACKWARD_IGNORES) w_.text("backward_ignores");
        if (f & CKPT_INPUT_NO_GRAD) w_.text("no_grad");
        if (f & CKPT_INPUT_GRAD_OVER_OUTPUT_0) w_.text("grad_over_output_0");
        w_.end().end();
      }
      w_.end();
    }
    const bool reads_output = simple_ && (s.item(s.slot_count()).flags & CKPT_OUTPUT_BACKWARD_READS);
    if (!ignores_all && !reads_output) return;
    w_.key("backward_reads").list();
    if (!ignores_all) w_.text("input");
    if (reads_output) w_.text("output");
    w_.end();
  }

  // Does the file's rule (what forward_seconds leaves is the first output's whose cost is not given) tell the outputs' costs?
  bool costs_follow(uint32_t node) const {
    const Shape &s = *g_.nodes[node].shape;
    bool first = true, follow = true;
    for (uint32_t k = s.slot_count(); k < s.item_count(); ++k) {
      if (s.item(k).flags & CKPT_OUTPUT_COST_GIVEN) continue;
      follow &= first || g_.seconds_of(node, k) == 0;
      first = false;
    }
    return follow;
  }

  void segment(uint32_t node) {
    const Node &n = g_.nodes[node];
    const Shape &s = *n.shape;
    const bool last = node + 1 == g_.node_count();
    simple_ = simple_output(node, last);
    w_.object(true);
    w_.key("name").text(s.name());
    w_.key("forward_seconds").real(g_.seconds(node, {s.all(), {}}));
    w_.key("backward_seconds").real(n.backward_seconds);
    if (s.forward_scratch() != 0) w_.key("forward_scratch_bytes").number(s.forward_scratch());
    if (s.backward_scratch() != 0) w_.key("backward_scratch_bytes").number(s.backward_scratch());
    segment_inputs(node);
    if (is_saved(node)) {
      w_.key("saved_bytes").number(slot_bytes(node, 0));
    } else {
      if (s.whole()) w_.key("whole").flag(true);
      w_.key("slots").list(s.slot_count() != 0);
      for (uint32_t k = 0; k < s.slot_count(); ++k) slot(node, k);
      w_.end();
    }
    if (s.saved_holds_input()) w_.key("saved_holds_input").flag(true);
    if (!s.replayable()) w_.key("replayable").flag(false);
    if (simple_) {
      const plan::Value &v = g_.values[n.first_value];
      w_.key("output_bytes").number(v.bytes);
      if (v.grad_bytes != v.bytes) w_.key("grad_bytes").number(v.grad_bytes);
      reads("output_reads", s, s.item(s.slot_count()).reads, s.slot_count());
    } else {
      const bool measured = !costs_follow(node);
      w_.key("outputs").list(true);
      for (uint32_t k = s.slot_count(); k < s.item_count(); ++k) output(node, k, measured);
      w_.end();
    }
    w_.end();
  }

  bool default_roots() const {
    const std::vector<plan::Root> usual = plan::default_roots(g_);
    return std::equal(usual.begin(), usual.end(), roots_.begin(), roots_.end(), [](const plan::Root &a, const plan::Root &b) { return a.value == b.value && a.has_grad == b.has_grad; });
  }
  void roots() {
    w_.key("roots").list();
    for (const plan::Root &r : roots_) {
      w_.object().key("boundary").number(r.value);
      if (!r.has_grad) w_.key("grad").flag(false);
      w_.end();
    }
    w_.end();
  }

  const Graph &g_;
  const std::vector<plan::Root> &roots_;
  Writer w_;
  bool simple_ = false, last_simple_ = false;
};

}  // namespace

Status write_chain(const char *fn, const Graph &graph, const std::vector<plan::Root> &roots, std::string *out) {
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const Shape &s = *graph.nodes[i].shape;
    bool good = valid_utf8(s.name());
    for (uint32_t k = 0; k < s.item_count(); ++k) good = good && valid_utf8(s.item(k).name);
    if (!good) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: a name in segment %u is no UTF-8, expected names that JSON can hold", fn, i);
    if (s.name().empty()) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment %u has no name, expected one", fn, i);
  }
  *out = ChainWriter(graph, roots).write();
  return CKPT_OK;
}

}  // namespace ckpt::json
