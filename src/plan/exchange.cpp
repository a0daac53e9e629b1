#include "plan/exchange.h"

#include <algorithm>

namespace ckpt::plan {
namespace {

static_assert(Bits::kWords == CKPT_PLAN_MASK_WORDS);

uint32_t input_under(const Graph &graph, uint32_t node, uint32_t item) {
  return graph.inputs_of(node)[graph.nodes[node].shape->item(item).in_place_input - 1];
}

// The output of `a` that takes over the block of `value`, which is freed right after it; kNone: none can. What the user reads
// after the forward pass is not given back within it, though it may be right behind it.
uint32_t output_over(const Graph &graph, const Action &a, const Bits &live, bool backward_begun, uint32_t value) {
  const Shape &s = *graph.nodes[a.index].shape;
  const Value &v = graph.values[value];
  const auto inputs = graph.inputs_of(a.index);
  const bool keep = v.producer != kNone && graph.nodes[v.producer].shape->keep().has(v.item);
  if (v.caller || keep || graph.holders.contains(value) || (v.read_at_end && !backward_begun) || std::count(inputs.begin(), inputs.end(), value) != 1) return kNone;
  uint32_t found = kNone;
  ((a.want & s.outputs()) - live - a.in_place).each([&](uint32_t k) {
    if (found != kNone || s.item(k).in_place_input == 0 || input_under(graph, a.index, k) != value) return;
    if (graph.rule.footprint(v.bytes) == graph.item_footprint(a.index, k)) found = k;
  });
  return found;
}

Status read_action(const char *fn, const Graph &graph, uint32_t number, const ckpt_action &c, Action *to) {
  if (c.kind > CKPT_ACTION_DROP) return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: kind is %u, expected CKPT_ACTION_FORWARD (0) to CKPT_ACTION_DROP (3)", fn, number, c.kind);
  to->kind = static_cast<ActionKind>(c.kind);
  to->index = c.index;
  Bits slots, outputs;
  for (uint32_t w = 0; w < Bits::kWords; ++w) {
    slots.set_word(w, c.slots[w]);
    outputs.set_word(w, c.outputs[w]);
  }
  if (to->kind == ActionKind::free) {
    if (c.index >= graph.value_count()) return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: free of boundary %u, expected one below %u", fn, number, c.index, graph.value_count());
    if (!(slots | outputs).empty()) return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: free of boundary %u with a mask, expected none", fn, number, c.index);
    return CKPT_OK;
  }
  if (c.index >= graph.node_count()) return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: segment %u, expected one below %u", fn, number, c.index, graph.node_count());
  const Shape &s = *graph.nodes[c.index].shape;
  if (!s.slots().contains(slots)) return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: a slot that segment '%s' (number %u) does not have", fn, number, s.name().c_str(), c.index);
  if (!Bits::first(s.output_count()).contains(outputs))
    return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: an output that segment '%s' (number %u) does not have", fn, number, s.name().c_str(), c.index);
  if (to->kind == ActionKind::drop && !outputs.empty())
    return fail(CKPT_ERROR_INVALID_PLAN, "%s: action %u: drop of an output of segment '%s' (number %u), expected free", fn, number, s.name().c_str(), c.index);
  to->want = slots;
  outputs.each([&](uint32_t k) { to->want.set(s.slot_count() + k); });
  return CKPT_OK;
}

}  // namespace

std::vector<ckpt_action> program_to_c(const Graph &graph, std::span<const Action> actions) {
  std::vector<ckpt_action> to;
  to.reserve(actions.size());
  for (const Action &a : actions) {
    ckpt_action c{};
    c.kind = static_cast<uint32_t>(a.kind);
    c.index = a.index;
    if (a.kind == ActionKind::free) {
      to.push_back(c);
      continue;
    }
    const uint32_t slots = graph.nodes[a.index].shape->slot_count();
    a.want.each([&](uint32_t k) {
      const uint32_t bit = k < slots ? k : k - slots;
      (k < slots ? c.slots : c.outputs)[bit / 64] |= uint64_t{1} << (bit % 64);
    });
    to.push_back(c);
    a.in_place.each([&](uint32_t k) {
      ckpt_action gone{};
      gone.kind = CKPT_ACTION_FREE;
      gone.index = input_under(graph, a.index, k);
      to.push_back(gone);
    });
  }
  return to;
}

Result<Program> program_from_c(const char *fn, const Graph &graph, std::span<const ckpt_action> actions) {
  Program program;
  std::vector<Bits> live(graph.node_count());
  Bits before;                       // live of the latest forward's node, before it
  bool behind_forward = false;       // nothing but frees since then
  bool backward_begun = false;
  size_t forward = 0;
  for (uint32_t number = 0; number < actions.size(); ++number) {
    Action a;
    if (const Status bad = read_action(fn, graph, number, actions[number], &a); bad) return Result<Program>::failed(bad);
    if (a.kind == ActionKind::free) {
      const uint32_t producer = graph.values[a.index].producer;
      if (producer != kNone) live[producer].clear(graph.values[a.index].item);
      const uint32_t over = behind_forward ? output_over(graph, program.actions[forward], before, backward_begun, a.index) : kNone;
      if (over != kNone) {
        program.actions[forward].in_place.set(over);
        continue;
      }
      program.actions.push_back(a);
      continue;
    }
    behind_forward = a.kind == ActionKind::forward;
    backward_begun = backward_begun || a.kind == ActionKind::backward;
    before = live[a.index];
    if (a.kind == ActionKind::forward) live[a.index] |= a.want;
    if (a.kind == ActionKind::backward) live[a.index] &= a.want;
    if (a.kind == ActionKind::drop) live[a.index] -= a.want;
    forward = program.actions.size();
    program.actions.push_back(a);
  }
  return program;
}

uint64_t program_hash(uint64_t graph_hash, std::span<const ckpt_action> actions) {
  Hasher h;
  h.add(graph_hash).add(actions.size());
  for (const ckpt_action &a : actions) {
    h.add(uint64_t{a.kind} << 32 | a.index);
    for (uint32_t w = 0; w < CKPT_PLAN_MASK_WORDS; ++w) h.add(a.slots[w]).add(a.outputs[w]);
  }
  return h.value();
}

}  // namespace ckpt::plan
