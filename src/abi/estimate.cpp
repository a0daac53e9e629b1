#include "ckpt/estimate.h"

#include <cinttypes>

#include "abi/struct_size.h"
#include "estimate/stage.h"
#include "plan/handles.h"

namespace {

using ckpt::fail;
namespace estimate = ckpt::estimate;

// Sizes in the first release.
constexpr size_t kModelFirst = 96, kLayoutFirst = 48, kHardwareFirst = 24, kEstimateFirst = 152;
static_assert(sizeof(ckpt_model_desc) == kModelFirst && sizeof(ckpt_layout_desc) == kLayoutFirst);
static_assert(sizeof(ckpt_hardware_desc) == kHardwareFirst && sizeof(ckpt_estimate) == kEstimateFirst);

ckpt_status read_request(const char *fn, const ckpt_model_desc *model, const ckpt_layout_desc *layout, const ckpt_hardware_desc *hardware, estimate::Request *to) {
  ckpt_model_desc m;
  ckpt_layout_desc l;
  ckpt_hardware_desc h;
  CKPT_TRY(ckpt::abi::read_struct(fn, "model", model, kModelFirst, &m));
  CKPT_TRY(ckpt::abi::read_struct(fn, "layout", layout, kLayoutFirst, &l));
  if (hardware != nullptr) CKPT_TRY(ckpt::abi::read_struct(fn, "hardware", hardware, kHardwareFirst, &h));
  return estimate::check_request(fn, m, l, hardware != nullptr ? &h : nullptr, to);
}

}  // namespace

extern "C" {

const char *ckpt_recompute_name(uint32_t policy) {
  static const char *const kNames[] = {"none", "attention", "feed_forward", "full", "optimal"};
  return policy <= CKPT_RECOMPUTE_OPTIMAL ? kNames[policy] : "unknown";
}

ckpt_status ckpt_estimate_rank(const ckpt_model_desc *model, const ckpt_layout_desc *layout, const ckpt_hardware_desc *hardware, uint32_t policy, uint64_t rank, size_t budget_bytes,
                               ckpt_estimate *out_estimate) {
  CKPT_TRY(ckpt::abi::check_out_struct(__func__, "out_estimate", out_estimate, kEstimateFirst));
  return ckpt::guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    ckpt_estimate result{};
    ckpt::abi::write_struct(result, out_estimate);
    estimate::Request request;
    CKPT_TRY(read_request(fn, model, layout, hardware, &request));
    const ckpt_status status = estimate::estimate_rank(fn, request, policy, rank, budget_bytes, &result);
    if (status == CKPT_OK || status == CKPT_ERROR_BUDGET) ckpt::abi::write_struct(result, out_estimate);
    return status;
  });
}

ckpt_status ckpt_estimate_chain(const ckpt_model_desc *model, const ckpt_layout_desc *layout, const ckpt_hardware_desc *hardware, uint64_t rank, uint64_t chunk, size_t alignment_bytes,
                                ckpt_chain **out_chain) {
  if (out_chain == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: out_chain is NULL, expected an address", __func__);
  *out_chain = nullptr;
  return ckpt::guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    estimate::Request request;
    CKPT_TRY(read_request(fn, model, layout, hardware, &request));
    const estimate::Layout &l = request.layout;
    if (rank >= l.pipeline) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: rank is %" PRIu64 ", expected one below layout.pipeline, which is %" PRIu64, fn, rank, l.pipeline);
    if (chunk >= l.chunks) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: chunk is %" PRIu64 ", expected one below layout.virtual_pipeline, which is %" PRIu64, fn, chunk, l.chunks);
    estimate::Pieces pieces;
    CKPT_TRY(estimate::count_pieces(fn, request, &pieces));
    ckpt::Result<ckpt::plan::Graph> graph = estimate::make_graph(fn, request, pieces, estimate::span_of(request, rank, chunk), estimate::Cost::seconds, alignment_bytes);
    if (!graph.ok()) return graph.status();
    auto shared = std::make_shared<const ckpt::plan::Graph>(std::move(*graph));
    std::vector<ckpt::plan::Root> roots = ckpt::plan::default_roots(*shared);
    *out_chain = new ckpt_chain(std::move(shared), std::move(roots));
    return CKPT_OK;
  });
}

}  // extern "C"
