#include "estimate/request.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace ckpt::estimate {
namespace {

constexpr uint64_t kMaxLayers = 8192;
constexpr uint64_t kMaxCount = uint64_t{1} << 31;  // of anything else: a product of two fits, sizes are checked later

class Checker {
 public:
  explicit Checker(const char *function) : function_(function) {}

  Status range(const char *field, uint64_t value, uint64_t least, uint64_t most) const {
    if (value >= least && value <= most) return CKPT_OK;
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is %" PRIu64 ", expected %" PRIu64 " to %" PRIu64, function_, field, value, least, most);
  }
  Status flags(const char *field, uint32_t value, uint32_t known) const {
    if ((value & ~known) == 0) return CKPT_OK;
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is 0x%x, expected a union of flags within 0x%x", function_, field, value, known);
  }
  Status divides(const char *field, uint64_t value, const char *whole_field, uint64_t whole) const {
    if (value != 0 && whole % value == 0) return CKPT_OK;
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is %" PRIu64 ", expected a divisor of %s, which is %" PRIu64, function_, field, value, whole_field, whole);
  }
  Status rate(const char *field, double value) const {
    if (value > 0 && std::isfinite(value)) return CKPT_OK;
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is %g, expected a finite number above 0", function_, field, value);
  }

 private:
  const char *function_;
};

Status check_model(const Checker &c, const ckpt_model_desc &d, Model *m) {
  CKPT_TRY(c.range("model.activation", d.activation, CKPT_MODEL_GELU, CKPT_MODEL_SWIGLU));
  CKPT_TRY(c.range("model.attention", d.attention, CKPT_MODEL_PLAIN_ATTENTION, CKPT_MODEL_FLASH_ATTENTION));
  CKPT_TRY(c.flags("model.flags", d.flags, CKPT_MODEL_DROPOUT));
  CKPT_TRY(c.range("model.element_bytes", d.element_bytes, 0, 8));
  if (d.element_bytes != 0) CKPT_TRY(c.divides("model.element_bytes", d.element_bytes, "the widest type's bytes", 8));
  CKPT_TRY(c.range("model.reserved", d.reserved, 0, 0));
  CKPT_TRY(c.range("model.layers", d.layers, 1, kMaxLayers));
  CKPT_TRY(c.range("model.hidden", d.hidden, 1, kMaxCount));
  CKPT_TRY(c.range("model.heads", d.heads, 1, kMaxCount));
  CKPT_TRY(c.range("model.kv_heads", d.kv_heads, 0, d.heads));
  CKPT_TRY(c.range("model.head_size", d.head_size, 0, kMaxCount));
  CKPT_TRY(c.range("model.ffn", d.ffn, 0, kMaxCount));
  CKPT_TRY(c.range("model.sequence", d.sequence, 1, kMaxCount));
  CKPT_TRY(c.range("model.micro_batch", d.micro_batch, 1, kMaxCount));
  CKPT_TRY(c.range("model.vocabulary", d.vocabulary, 0, kMaxCount));
  m->gated = d.activation == CKPT_MODEL_SWIGLU;
  m->flash = d.attention == CKPT_MODEL_FLASH_ATTENTION;
  m->dropout = (d.flags & CKPT_MODEL_DROPOUT) != 0;
  m->element = d.element_bytes != 0 ? d.element_bytes : 2;
  m->layers = d.layers;
  m->hidden = d.hidden;
  m->heads = d.heads;
  m->kv_heads = d.kv_heads != 0 ? d.kv_heads : d.heads;
  CKPT_TRY(c.divides("model.kv_heads", m->kv_heads, "model.heads", m->heads));
  if (d.head_size == 0) CKPT_TRY(c.divides("model.heads", m->heads, "model.hidden", m->hidden));
  m->head_size = d.head_size != 0 ? d.head_size : m->hidden / m->heads;
  m->ffn = d.ffn != 0 ? d.ffn : 4 * m->hidden;
  m->sequence = d.sequence;
  m->micro_batch = d.micro_batch;
  m->vocabulary = d.vocabulary;
  return CKPT_OK;
}

Status check_layout(const Checker &c, const ckpt_layout_desc &d, const Model &m, Layout *l) {
  CKPT_TRY(c.flags("layout.flags", d.flags, CKPT_LAYOUT_SEQUENCE_PARALLEL));
  const struct { const char *field; uint64_t value; uint64_t *to; } counts[] = {
      {"layout.tensor_parallel", d.tensor_parallel, &l->tensor}, {"layout.context_parallel", d.context_parallel, &l->context},
      {"layout.pipeline", d.pipeline, &l->pipeline}, {"layout.virtual_pipeline", d.virtual_pipeline, &l->chunks}};
  for (const auto &count : counts) {
    CKPT_TRY(c.range(count.field, count.value, 0, kMaxCount));
    *count.to = std::max<uint64_t>(count.value, 1);
  }
  CKPT_TRY(c.range("layout.micro_batches", d.micro_batches, 0, kMaxCount));
  l->sequence_parallel = (d.flags & CKPT_LAYOUT_SEQUENCE_PARALLEL) != 0;
  CKPT_TRY(c.divides("layout.tensor_parallel", l->tensor, "model.heads", m.heads));
  if (m.kv_heads < l->tensor) CKPT_TRY(c.divides("model.kv_heads", m.kv_heads, "layout.tensor_parallel", l->tensor));
  else CKPT_TRY(c.divides("layout.tensor_parallel", l->tensor, "model.kv_heads", m.kv_heads));
  CKPT_TRY(c.divides("layout.tensor_parallel", l->tensor, "model.ffn", m.ffn));
  CKPT_TRY(c.divides("layout.tensor_parallel", l->tensor, "model.vocabulary", m.vocabulary));
  CKPT_TRY(c.divides("layout.context_parallel", l->context, "model.sequence", m.sequence));
  if (l->sequence_parallel) CKPT_TRY(c.divides("layout.tensor_parallel", l->tensor, "model.sequence / layout.context_parallel (sequence parallel)", m.sequence / l->context));
  CKPT_TRY(c.divides("layout.pipeline", l->pipeline, "model.layers", m.layers));
  CKPT_TRY(c.divides("layout.virtual_pipeline", l->chunks, "model.layers / layout.pipeline", m.layers / l->pipeline));
  if (l->chunks > 1) CKPT_TRY(c.range("layout.pipeline (with layout.virtual_pipeline above 1)", l->pipeline, 2, kMaxCount));
  l->micro_batches = d.micro_batches != 0 ? d.micro_batches : l->chunks > 1 ? 2 * l->pipeline : l->pipeline;
  if (l->chunks > 1) CKPT_TRY(c.divides("layout.pipeline", l->pipeline, "layout.micro_batches (interleaved)", l->micro_batches));
  return CKPT_OK;
}

}  // namespace

uint64_t Request::in_flight(uint64_t rank) const {
  const Layout &l = layout;
  if (l.pipeline == 1) return 1;
  if (l.chunks == 1) return std::min(l.micro_batches, l.pipeline - rank);
  return std::min(l.micro_batches * l.chunks, 2 * (l.pipeline - rank - 1) + (l.chunks - 1) * l.pipeline + 1);
}

Status check_request(const char *function, const ckpt_model_desc &model, const ckpt_layout_desc &layout, const ckpt_hardware_desc *hardware, Request *out) {
  const Checker c(function);
  CKPT_TRY(check_model(c, model, &out->model));
  CKPT_TRY(check_layout(c, layout, out->model, &out->layout));
  if (hardware == nullptr) return CKPT_OK;
  CKPT_TRY(c.range("hardware.reserved", hardware->reserved, 0, 0));
  CKPT_TRY(c.rate("hardware.flops_per_second", hardware->flops_per_second));
  CKPT_TRY(c.rate("hardware.bytes_per_second", hardware->bytes_per_second));
  out->hardware = {true, hardware->flops_per_second, hardware->bytes_per_second};
  return CKPT_OK;
}

}  // namespace ckpt::estimate
