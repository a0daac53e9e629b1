// A GPT: embedding, blocks, head, over flat arrays of parameters and gradients that belong to the caller.
#include <cmath>
#include <memory>
#include <vector>

#include "ops/layer.h"

using namespace ckpt::ops;

struct ckpt_gpt {
  struct DestroyLayer {
    void operator()(ckpt_layer *layer) const noexcept { ckpt_layer_destroy(layer); }
  };
  struct Part {
    std::unique_ptr<ckpt_layer, DestroyLayer> layer;
    std::string prefix;
    size_t first_parameter;
    uint32_t first_tensor;
  };

  void add(ckpt_layer *layer, std::string prefix) {
    std::unique_ptr<ckpt_layer, DestroyLayer> owner(layer);
    parts.push_back({std::move(owner), std::move(prefix), parameter_count, tensor_count});
    parameter_count += layer->parameter_count;
    tensor_count += static_cast<uint32_t>(layer->tensors.size());
  }
  ckpt_layer *embedding() const noexcept { return parts.front().layer.get(); }
  ckpt_layer *head() const noexcept { return parts.back().layer.get(); }

  void *element(size_t offset) const noexcept { return static_cast<char *>(parameters) + offset * ops->element_bytes(); }

  explicit ckpt_gpt(ckpt_ops *handle) noexcept : ops(handle) { ops->references.fetch_add(1); }
  ~ckpt_gpt() { ckpt_ops_destroy(ops); }
  ckpt_gpt(const ckpt_gpt &) = delete;
  ckpt_gpt &operator=(const ckpt_gpt &) = delete;

  ckpt_ops *const ops;
  ckpt_gpt_desc shape = {};
  std::vector<Part> parts;
  size_t parameter_count = 0;
  uint32_t tensor_count = 0;
  void *parameters = nullptr;
  float *gradients = nullptr;
};

namespace {

ckpt_status check(const ckpt_gpt_desc &d) noexcept {
  constexpr const char *kName = "ckpt_gpt_create";
  CKPT_OPS_TRY(Check(kName)
                   .sizes({{"desc.layers", d.layers}})
                   .sizes({{"desc.heads", d.heads}, {"desc.batch", d.batch}, {"desc.sequence", d.sequence}, {"desc.sequence", d.sequence}})
                   .sizes({{"4 * desc.channels", d.channels > SIZE_MAX / 4 ? SIZE_MAX : 4 * d.channels}, {"desc.batch", d.batch}, {"desc.sequence", d.sequence}})
                   .sizes({{"desc.vocabulary", d.vocabulary}, {"desc.channels", d.channels}})
                   .divides({"desc.heads", d.heads}, {"desc.channels", d.channels})
                   .probability("desc.dropout_probability", d.dropout_probability, &d).status());
  if (d.attention != CKPT_ATTENTION_PLAIN && d.attention != CKPT_ATTENTION_TILED)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.attention is %u, expected CKPT_ATTENTION_PLAIN (0) or _TILED (1)", kName, d.attention);
  if (d.untied > 1) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.untied is %u, expected 0 or 1", kName, d.untied);
  return CKPT_OK;
}

ckpt_status add_embedding(ckpt_gpt &gpt) {
  ckpt_layer_embedding_desc desc = CKPT_LAYER_EMBEDDING_DESC_INIT;
  desc.dropout_probability = gpt.shape.dropout_probability;
  desc.batch = gpt.shape.batch;
  desc.sequence = gpt.shape.sequence;
  desc.channels = gpt.shape.channels;
  desc.vocabulary = gpt.shape.vocabulary;
  ckpt_layer *layer = nullptr;
  CKPT_OPS_TRY(ckpt_layer_embedding_create(gpt.ops, &desc, &layer));
  gpt.add(layer, "embedding.");
  return CKPT_OK;
}

ckpt_status add_block(ckpt_gpt &gpt, size_t index) {
  ckpt_layer_block_desc desc = CKPT_LAYER_BLOCK_DESC_INIT;
  desc.attention = gpt.shape.attention;
  desc.batch = gpt.shape.batch;
  desc.sequence = gpt.shape.sequence;
  desc.channels = gpt.shape.channels;
  desc.heads = gpt.shape.heads;
  desc.dropout_probability = desc.attention_dropout_probability = gpt.shape.dropout_probability;
  // Two residual branches a layer add up: their variances are divided by their number.
  desc.residual_stddev = kInitStddev / std::sqrt(2.0f * static_cast<float>(gpt.shape.layers));
  ckpt_layer *layer = nullptr;
  CKPT_OPS_TRY(ckpt_layer_block_create(gpt.ops, &desc, &layer));
  gpt.add(layer, "block" + std::to_string(index) + ".");
  return CKPT_OK;
}

ckpt_status add_head(ckpt_gpt &gpt) {
  ckpt_layer_head_desc desc = CKPT_LAYER_HEAD_DESC_INIT;
  desc.tied = gpt.shape.untied == 0;
  desc.rows = gpt.shape.batch * gpt.shape.sequence;
  desc.channels = gpt.shape.channels;
  desc.vocabulary = gpt.shape.vocabulary;
  desc.chunk_rows = gpt.shape.head_chunk_rows;
  ckpt_layer *layer = nullptr;
  CKPT_OPS_TRY(ckpt_layer_head_create(gpt.ops, &desc, &layer));
  gpt.add(layer, "head.");
  return CKPT_OK;
}

ckpt_status build(ckpt_gpt &gpt) {
  CKPT_OPS_TRY(add_embedding(gpt));
  for (size_t k = 0; k < gpt.shape.layers; ++k) CKPT_OPS_TRY(add_block(gpt, k));
  return add_head(gpt);
}

ckpt_status check_bound(const char *function, const ckpt_gpt *gpt, bool gradients) noexcept {
  if (gpt->parameters == nullptr || (gradients && gpt->gradients == nullptr))
    return fail(CKPT_ERROR_STATE, "%s: the model has no %s bound: call ckpt_gpt_bind first", function,
                gpt->parameters == nullptr ? "parameters" : "gradients");
  return CKPT_OK;
}

ckpt_status input(ckpt_tape *tape, const int32_t *indices, size_t count, ckpt_buffer *out_buffer) noexcept {
  ckpt_input_desc desc = CKPT_INPUT_DESC_INIT;
  desc.data = indices;
  desc.bytes = count * sizeof(int32_t);
  const ckpt_status status = ckpt_tape_input(tape, &desc, out_buffer);
  return status == CKPT_OK ? CKPT_OK : fail_as_core(status);
}

}  // namespace

extern "C" {

ckpt_status ckpt_gpt_create(ckpt_ops *ops, const ckpt_gpt_desc *desc, ckpt_gpt **out_gpt) {
  constexpr const char *kName = "ckpt_gpt_create";
  CKPT_OPS_TRY(Check(kName).pointers({{"out_gpt", out_gpt}}).status());
  *out_gpt = nullptr;
  CKPT_OPS_TRY(Check(kName).pointers({{"ops", ops}}).status());
  ckpt_gpt_desc mine = {};
  CKPT_OPS_TRY(read_struct(kName, desc, 72, &mine));
  CKPT_OPS_TRY(check(mine));
  CKPT_OPS_TRY(head_fits(kName, ops, mine.heads, mine.channels));
  try {
    auto gpt = std::make_unique<ckpt_gpt>(ops);
    gpt->shape = mine;
    CKPT_OPS_TRY(build(*gpt));
    *out_gpt = gpt.release();
    return CKPT_OK;
  } catch (const std::exception &) {
    return out_of_memory(kName);
  }
}

void ckpt_gpt_destroy(ckpt_gpt *gpt) { delete gpt; }

size_t ckpt_gpt_parameter_count(const ckpt_gpt *gpt) { return gpt == nullptr ? 0 : gpt->parameter_count; }

uint32_t ckpt_gpt_tensor_count(const ckpt_gpt *gpt) { return gpt == nullptr ? 0 : gpt->tensor_count; }

ckpt_status ckpt_gpt_get_tensor(const ckpt_gpt *gpt, uint32_t index, ckpt_tensor_info *out_info) {
  constexpr const char *kName = "ckpt_gpt_get_tensor";
  CKPT_OPS_TRY(Check(kName).pointers({{"gpt", gpt}}).status());
  for (const auto &part : gpt->parts)
    if (index - part.first_tensor < part.layer->tensors.size())
      return fill_tensor_info(kName, part.layer->tensors[index - part.first_tensor], part.prefix, part.first_parameter, out_info);
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: index is %u, expected less than %u", kName, index, gpt->tensor_count);
}

ckpt_status ckpt_gpt_bind(ckpt_gpt *gpt, void *parameters, float *gradients) {
  CKPT_OPS_TRY(Check("ckpt_gpt_bind").pointers({{"gpt", gpt}, {"parameters", parameters}}).status());
  gpt->parameters = parameters;
  gpt->gradients = gradients;
  for (const auto &part : gpt->parts)
    CKPT_OPS_TRY(ckpt_layer_bind(part.layer.get(), gpt->element(part.first_parameter),
                                 gradients == nullptr ? nullptr : gradients + part.first_parameter));
  if (gpt->shape.untied != 0) return CKPT_OK;
  const ckpt_layer *const embedding = gpt->embedding();  // its first tensor is the token table
  return ckpt_layer_bind_tied(gpt->head(), embedding->parameter(0), gradients == nullptr ? nullptr : embedding->gradient(0));
}

ckpt_status ckpt_gpt_init(ckpt_gpt *gpt, uint64_t seed) {
  CKPT_OPS_TRY(Check("ckpt_gpt_init").pointers({{"gpt", gpt}}).status());
  CKPT_OPS_TRY(check_bound("ckpt_gpt_init", gpt, false));
  for (const auto &part : gpt->parts) CKPT_OPS_TRY(init_tensors(*part.layer, seed, part.first_tensor));
  return CKPT_OK;
}

ckpt_status ckpt_gpt_record(ckpt_gpt *gpt, ckpt_tape *tape, const int32_t *tokens, const int32_t *targets, uint32_t flags,
                            ckpt_buffer *out_loss) {
  constexpr const char *kName = "ckpt_gpt_record";
  CKPT_OPS_TRY(Check(kName).pointers({{"gpt", gpt}, {"tape", tape}, {"out_loss", out_loss}}).status());
  *out_loss = 0;
  CKPT_OPS_TRY(check_bound(kName, gpt, false));
  ckpt_buffer token_buffer = 0, x = 0, head_inputs[2] = {};
  const size_t rows = gpt->shape.batch * gpt->shape.sequence;
  CKPT_OPS_TRY(input(tape, tokens, rows, &token_buffer));
  CKPT_OPS_TRY(input(tape, targets, rows, &head_inputs[1]));
  CKPT_OPS_TRY(ckpt_layer_run(gpt->embedding(), tape, &token_buffer, 1, flags, &x));
  for (size_t k = 1; k + 1 < gpt->parts.size(); ++k) {
    ckpt_buffer next = 0;
    CKPT_OPS_TRY(ckpt_layer_run(gpt->parts[k].layer.get(), tape, &x, 1, flags, &next));
    const ckpt_status status = ckpt_tape_release(tape, x);  // the next block was its last reader
    if (status != CKPT_OK) return fail_as_core(status);
    x = next;
  }
  head_inputs[0] = x;
  return ckpt_layer_run(gpt->head(), tape, head_inputs, 2, flags, out_loss);
}

const float *ckpt_gpt_loss(const ckpt_gpt *gpt) { return gpt == nullptr ? nullptr : ckpt_layer_loss(gpt->head()); }

ckpt_status ckpt_gpt_update(ckpt_gpt *gpt, const ckpt_adamw_desc *desc, float *first_moment, float *second_moment,
                            double *out_norm) {
  constexpr const char *kName = "ckpt_gpt_update";
  CKPT_OPS_TRY(Check(kName).pointers({{"gpt", gpt}, {"first_moment", first_moment}, {"second_moment", second_moment}}).status());
  ckpt_adamw_desc mine = CKPT_ADAMW_DESC_INIT;
  CKPT_OPS_TRY(read_struct(kName, desc, 40, &mine));
  CKPT_OPS_TRY(check_bound(kName, gpt, true));
  if (!(mine.max_norm >= 0.0f))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.max_norm is %g, expected 0 or more", kName, static_cast<double>(mine.max_norm));
  DeviceAdamw step = {};
  CKPT_OPS_TRY(adamw_step(kName, gpt->ops, mine, &step));
  const float decay = step.decay;
  const std::lock_guard<std::mutex> lock(gpt->ops->sequence);  // the factor of clipping stays where the work is done
  step.clip = mine.max_norm > 0.0f;
  if (out_norm != nullptr || step.clip != 0)
    CKPT_OPS_TRY(call(gpt->ops, &DeviceOps::clip, static_cast<const float *>(gpt->gradients), gpt->parameter_count, step.grad_scale,
                      mine.max_norm, out_norm));
  for (const auto &part : gpt->parts) {
    for (const Tensor &tensor : part.layer->tensors) {
      const size_t at = part.first_parameter + tensor.offset;
      step.decay = tensor.decays ? decay : 1.0f;
      CKPT_OPS_TRY(call(gpt->ops, &DeviceOps::adamw, static_cast<const DeviceAdamw *>(&step), tensor.count(),
                        static_cast<const float *>(gpt->gradients + at), gpt->element(at),
                        mine.master_weights == nullptr ? nullptr : mine.master_weights + at, first_moment + at, second_moment + at));
    }
  }
  return CKPT_OK;
}

}  // extern "C"
