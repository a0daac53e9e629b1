#include <deque>
#include <string>

#include "estimate/stage.h"
#include "plan/chain.h"

namespace ckpt::estimate {
namespace {

double cost_of(const Request &request, const Piece &p, Cost cost) { return cost == Cost::flops ? p.flops / kFlopUnit : seconds(request.hardware, p); }

plan::ChainSegment to_chain(const Request &request, const Segment &from, const char *name, bool caller_output, Cost cost) {
  plan::ChainSegment to{};
  double forward = 0;
  for (const Piece &p : from.slots) {
    ckpt_slot s{};
    s.name = p.name;
    s.bytes = p.bytes;
    s.reads = p.reads.data();
    static constexpr uint32_t kNothing = 0;
    if (s.reads == nullptr) s.reads = &kNothing;  // NULL would say: every earlier one
    s.read_count = static_cast<uint32_t>(p.reads.size());
    s.group = p.group;
    s.cost_seconds = cost_of(request, p, cost);
    s.flags = CKPT_SLOT_COST_GIVEN;
    forward += s.cost_seconds;
    to.slots.push_back(s);
  }
  ckpt_output out{};
  out.name = from.output.name;
  out.bytes = from.output.bytes;
  out.reads = from.output.reads.data();
  static constexpr uint32_t kNothing = 0;
  if (out.reads == nullptr) out.reads = &kNothing;
  out.read_count = static_cast<uint32_t>(from.output.reads.size());
  static int callers;  // only its address counts: the caller's memory
  if (caller_output) out.memory = &callers;
  out.cost_seconds = cost_of(request, from.output, cost);
  out.flags = CKPT_OUTPUT_COST_GIVEN;
  forward += out.cost_seconds;
  to.outputs.push_back(out);
  to.desc.name = name;
  to.desc.forward_seconds = forward;
  to.desc.backward_seconds = 2 * forward;
  to.desc.slot_count = static_cast<uint32_t>(to.slots.size());
  to.desc.output_count = 1;
  return to;
}

}  // namespace

Span span_of(const Request &request, uint64_t rank, uint64_t chunk) {
  const Layout &l = request.layout;
  Span s;
  s.layers = request.chunk_layers();
  s.first_layer = (chunk * l.pipeline + rank) * s.layers;
  s.embedding = rank == 0 && chunk == 0;
  s.head = rank == l.pipeline - 1 && chunk == l.chunks - 1 && request.model.vocabulary != 0;
  return s;
}

Result<plan::Graph> make_graph(const char *function, const Request &request, const Pieces &pieces, const Span &span, Cost cost, size_t alignment_bytes) {
  std::deque<std::string> names;
  std::vector<plan::ChainSegment> segments;
  if (span.embedding) segments.push_back(to_chain(request, pieces.embedding, "embedding", false, cost));
  for (uint64_t k = 0; k < span.layers; ++k) {
    names.push_back("layer" + std::to_string(span.first_layer + k));
    segments.push_back(to_chain(request, pieces.layer, names.back().c_str(), k + 1 == span.layers && !span.head, cost));
  }
  if (span.head) segments.push_back(to_chain(request, pieces.head, "head", true, cost));
  ckpt_chain_input input{};
  input.bytes = span.embedding ? pieces.token_bytes : pieces.boundary_bytes;
  input.memory = span.embedding ? CKPT_MEMORY_CALLER : CKPT_MEMORY_ARENA;
  input.grad = span.embedding ? CKPT_GRAD_NONE : CKPT_GRAD_ARENA;
  ckpt_chain_desc desc{};
  desc.struct_size = sizeof desc;
  desc.segment_size = sizeof(ckpt_chain_segment);
  desc.slot_size = sizeof(ckpt_slot);
  desc.output_size = sizeof(ckpt_output);
  desc.inputs = &input;
  desc.input_count = 1;
  desc.segment_count = static_cast<uint32_t>(segments.size());
  desc.output_grad = CKPT_GRAD_CALLER;
  desc.alignment_bytes = alignment_bytes;
  return plan::make_chain(function, desc, segments);
}

}  // namespace ckpt::estimate
