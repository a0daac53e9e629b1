#include "plan/chain.h"

#include <algorithm>
#include <cmath>

#include "plan/handles.h"

namespace ckpt::plan {
namespace {

constexpr size_t kMaxBytes = arena::SizeRule::kMaxBytes;
constexpr double kMaxSeconds = 1e18;
constexpr double kTolerance = 1e-9;  // relative: costs are sums of rounded parts

Status check_seconds(const char *fn, const char *segment, const char *field, double seconds) {
  if (seconds >= 0 && seconds <= kMaxSeconds) return CKPT_OK;
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': %s is %g, expected 0 to 1e18", fn, segment, field, seconds);
}

Status check_desc(const char *fn, const ckpt_chain_desc &d) {
  if (d.segment_count == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.segment_count is 0, expected at least 1", fn);
  if (d.inputs == nullptr && d.input_count != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.inputs is NULL and desc.input_count is %u, expected an array", fn, d.input_count);
  if (d.inputs != nullptr && d.input_count == 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.inputs is given and desc.input_count is 0, expected at least 1", fn);
  if (d.output_grad > CKPT_GRAD_CALLER)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.output_grad is %u, expected CKPT_GRAD_ARENA (1) or CKPT_GRAD_CALLER (2)", fn, d.output_grad);
  if (d.flags != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.flags is 0x%x, expected 0", fn, d.flags);
  if (d.alignment_bytes != 0 && (!is_power_of_two(d.alignment_bytes) || d.alignment_bytes > kMaxBytes))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.alignment_bytes is %zu, expected a power of two up to 2^60, or 0", fn, d.alignment_bytes);
  return CKPT_OK;
}

// The inputs up to number `count`.
Status add_inputs(const char *fn, const ckpt_chain_desc &d, uint32_t count, Graph *graph) {
  if (d.inputs == nullptr) {
    if (graph->inputs.empty()) graph->add_input(0, 0, true, CKPT_GRAD_NONE);
    return CKPT_OK;
  }
  for (auto k = static_cast<uint32_t>(graph->inputs.size()); k < std::min(d.input_count, count); ++k) {
    const ckpt_chain_input &in = d.inputs[k];
    if (in.memory > CKPT_MEMORY_CALLER)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.inputs[%u].memory is %u, expected CKPT_MEMORY_ARENA (0) or CKPT_MEMORY_CALLER (1)", fn, k, in.memory);
    if (in.grad > CKPT_GRAD_CALLER)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.inputs[%u].grad is %u, expected CKPT_GRAD_NONE (0), CKPT_GRAD_ARENA (1) or CKPT_GRAD_CALLER (2)", fn, k, in.grad);
    if (in.bytes > kMaxBytes || in.grad_bytes > kMaxBytes)
      return fail(CKPT_ERROR_OVERFLOW, "%s: desc.inputs[%u].%s is %zu, expected at most %zu", fn, k, in.bytes > kMaxBytes ? "bytes" : "grad_bytes",
                  in.bytes > kMaxBytes ? in.bytes : in.grad_bytes, kMaxBytes);
    graph->add_input(in.bytes, in.grad_bytes, in.memory == CKPT_MEMORY_CALLER, static_cast<uint8_t>(in.grad));
  }
  return CKPT_OK;
}

Status check_segment(const char *fn, const ChainSegment &s, uint32_t index) {
  const ckpt_chain_segment &d = s.desc;
  if (d.name == nullptr || d.name[0] == '\0')
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.segments[%u].name is %s, expected a name", fn, index, d.name == nullptr ? "NULL" : "empty");
  CKPT_TRY(check_seconds(fn, d.name, "forward_seconds", d.forward_seconds));
  CKPT_TRY(check_seconds(fn, d.name, "backward_seconds", d.backward_seconds));
  if (d.output_count == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': output_count is 0, expected at least 1", fn, d.name);
  if (d.flags & ~uint32_t{CKPT_CHAIN_SEGMENT_WHOLE | CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT})
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': flags is 0x%x, expected CKPT_CHAIN_SEGMENT_* (0 to 3)", fn, d.name, d.flags);
  if (d.forward_scratch_bytes > kMaxBytes || d.backward_scratch_bytes > kMaxBytes)
    return fail(CKPT_ERROR_OVERFLOW, "%s: segment '%s': %s is %zu, expected at most %zu", fn, d.name,
                d.forward_scratch_bytes > kMaxBytes ? "forward_scratch_bytes" : "backward_scratch_bytes",
                d.forward_scratch_bytes > kMaxBytes ? d.forward_scratch_bytes : d.backward_scratch_bytes, kMaxBytes);
  return CKPT_OK;
}

// Which boundaries a segment reads, with their flags.
Status read_inputs(const char *fn, const ckpt_chain_segment &d, const Graph &graph, std::vector<uint32_t> *inputs, std::vector<uint32_t> *flags) {
  inputs->clear();
  if (d.inputs == nullptr) {
    if (d.input_count > 1) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': inputs is NULL and input_count is %u, expected an array", fn, d.name, d.input_count);
    if (d.input_flags != nullptr && d.input_count == 0)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': input_flags is given and input_count is 0, expected 1", fn, d.name);
    inputs->push_back(graph.nodes.empty() ? 0 : graph.nodes.back().first_value);
  }
  for (uint32_t k = 0; d.inputs != nullptr && k < d.input_count; ++k) {
    if (d.inputs[k] >= graph.value_count())
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': inputs[%u] is boundary %u, expected one that is made before (below %u)", fn, d.name, k, d.inputs[k],
                  graph.value_count());
    inputs->push_back(d.inputs[k]);
  }
  flags->assign(inputs->size(), 0);
  if (d.input_flags != nullptr) flags->assign(d.input_flags, d.input_flags + d.input_count);
  return CKPT_OK;
}

// What forward_seconds leaves beside the given costs goes to the first output without a cost of its own.
Status share_seconds(const char *fn, const ckpt_chain_segment &d, const std::vector<Item> &slots, std::vector<Item> *outputs) {
  double given = 0;
  for (const Item &s : slots) {
    if (!(s.cost_seconds >= 0 && s.cost_seconds <= kMaxSeconds))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': slot '%s': cost_seconds is %g, expected 0 to 1e18", fn, d.name, s.name.c_str(), s.cost_seconds);
    if (!(s.flags & CKPT_SLOT_ALONE)) given += s.cost_seconds;
  }
  if (given > d.forward_seconds * (1 + kTolerance))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': the slots' cost_seconds are %g together, expected at most forward_seconds, which is %g", fn, d.name, given, d.forward_seconds);
  Item *rest = nullptr;
  for (Item &o : *outputs) {
    if (!(o.cost_seconds >= 0 && o.cost_seconds <= kMaxSeconds))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': output '%s': cost_seconds is %g, expected 0 to 1e18", fn, d.name, o.name.c_str(), o.cost_seconds);
    if (o.flags & CKPT_OUTPUT_COST_GIVEN) {
      given += o.cost_seconds;
      continue;
    }
    if (o.cost_seconds != 0)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': output '%s': cost_seconds is %g, expected 0 without CKPT_OUTPUT_COST_GIVEN", fn, d.name, o.name.c_str(), o.cost_seconds);
    if (rest == nullptr) rest = &o;
  }
  if (given > d.forward_seconds * (1 + kTolerance))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': cost_seconds of slots and outputs are %g together, expected at most forward_seconds, which is %g", fn, d.name, given,
                d.forward_seconds);
  const double left = std::fmax(d.forward_seconds - given, 0);
  if (rest != nullptr) rest->cost_seconds = left;
  else if (left > d.forward_seconds * kTolerance)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': cost_seconds of slots and outputs are %g together, expected forward_seconds, which is %g", fn, d.name, given, d.forward_seconds);
  return CKPT_OK;
}

// A slot that contains the input is counted without it: the input counts by itself, and stays as long as the slot does.
Status take_out_input(const char *fn, const ckpt_chain_segment &d, const Graph &graph, const std::vector<uint32_t> &inputs, std::vector<Item> *slots) {
  if (slots->empty() || inputs.empty())
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': flags has CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT with %zu slots and %zu inputs, expected at least 1 of each", fn, d.name,
                slots->size(), inputs.size());
  const size_t input = graph.values[inputs[0]].bytes;
  Item &slot = slots->front();
  if (slot.bytes < input)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': slot '%s': bytes is %zu, expected at least the %zu of the input that it holds", fn, d.name, slot.name.c_str(), slot.bytes, input);
  slot.bytes -= input;
  return CKPT_OK;
}

// No live load of the chain, whatever the program, is more than everything at once.
Status check_total(const char *fn, const Graph &graph) {
  constexpr size_t kMaxTotal = arena::kUnbounded;
  size_t total = 0;
  bool over = false;
  const auto add = [&](size_t bytes) { over = over || add_overflows(total, graph.rule.footprint(bytes), &total) || total > kMaxTotal; };
  for (size_t bytes : graph.item_bytes) add(bytes);
  for (const Value &v : graph.values) {
    if (v.producer == kNone) add(v.bytes);
    add(v.grad_bytes);
  }
  for (const Node &n : graph.nodes) {
    add(n.shape->forward_scratch());
    add(n.shape->backward_scratch());
  }
  return over ? fail(CKPT_ERROR_OVERFLOW, "%s: slots, boundaries, gradients and scratch are more than %zu bytes together", fn, kMaxTotal) : CKPT_OK;
}

}  // namespace

Result<Graph> make_chain(const char *fn, const ckpt_chain_desc &d, const std::vector<ChainSegment> &segments) {
  using R = Result<Graph>;
  if (const Status bad = check_desc(fn, d); bad) return R::failed(bad);
  Graph graph;
  graph.rule.alignment_bytes = d.alignment_bytes != 0 ? d.alignment_bytes : 256;
  graph.root_grads_in_arena = d.output_grad == CKPT_GRAD_ARENA;
  std::vector<uint32_t> inputs, flags;
  for (uint32_t i = 0; i < segments.size(); ++i) {
    const ChainSegment &s = segments[i];
    if (const Status bad = add_inputs(fn, d, s.input_count, &graph); bad) return R::failed(bad);
    if (const Status bad = check_segment(fn, s, i); bad) return R::failed(bad);
    if (const Status bad = read_inputs(fn, s.desc, graph, &inputs, &flags); bad) return R::failed(bad);
    std::vector<Item> slots(s.slots.size()), outputs(s.outputs.size());
    for (uint32_t k = 0; k < slots.size(); ++k)
      if (const Status bad = read_slot(fn, s.desc.name, s.slots[k], k, &slots[k]); bad) return R::failed(bad);
    for (uint32_t k = 0; k < outputs.size(); ++k)
      if (const Status bad = read_output(fn, s.desc.name, s.outputs[k], k, s.desc.slot_count, &outputs[k]); bad) return R::failed(bad);
    if (const Status bad = share_seconds(fn, s.desc, slots, &outputs); bad) return R::failed(bad);
    const bool holds = (s.desc.flags & CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT) != 0;
    if (holds)
      if (const Status bad = take_out_input(fn, s.desc, graph, inputs, &slots); bad) return R::failed(bad);
    Result<Shape> shape = Shape::create(s.desc.name, std::move(slots), std::move(outputs), flags, s.desc.forward_scratch_bytes, s.desc.backward_scratch_bytes, s.replayable,
                                        (s.desc.flags & CKPT_CHAIN_SEGMENT_WHOLE) != 0, holds);
    if (!shape.ok()) return R::failed(shape.status());
    graph.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t node = graph.add_node(graph.shapes.back().get(), inputs, nullptr, nullptr);
    graph.nodes[node].backward_seconds = s.desc.backward_seconds;
  }
  if (const Status bad = add_inputs(fn, d, UINT32_MAX, &graph); bad) return R::failed(bad);
  if (const Status bad = check_total(fn, graph); bad) return R::failed(bad);
  return graph;
}

}  // namespace ckpt::plan
