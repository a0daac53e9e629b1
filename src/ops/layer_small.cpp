// Embedding, linear, layernorm, GELU, dropout as segments of their own.
#include <cmath>
#include <vector>

#include "ops/layer.h"

using namespace ckpt::ops;

namespace {

struct Philox {  // the snapshot of a site, where one is needed
  Philox(ckpt_frame *frame, uint32_t site, float probability) noexcept {
    if (probability > 0.0f) ckpt_frame_random(frame, site, &value);
  }
  ckpt_philox value = {};
};

// Backward's two ends; a layer that is no loss cannot seed itself.
struct Ends {
  const void *out_grad = nullptr;
  void *in_grad = nullptr;
  uint32_t accumulate = 0;
};
ckpt_status ends(const ckpt_layer &layer, ckpt_frame *frame, bool input_has_gradient, Ends *out) noexcept {
  out->out_grad = ckpt_frame_output_grad(frame, 0);
  if (out->out_grad == nullptr)
    return frame_failed(frame, fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: its output's gradient is NULL, expected an array: only a head seeds itself",
                                    layer.kind()));
  int accumulate = 0;
  if (input_has_gradient) out->in_grad = ckpt_frame_input_grad(frame, 0, &accumulate);
  out->accumulate = accumulate != 0;
  return CKPT_OK;
}

ckpt_status describe_simple(ckpt_layer &layer, uint32_t input_flags, ckpt_output output, size_t backward_scratch_bytes = 0) {
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  output.name = "out";
  desc.outputs = &output;
  desc.output_count = 1;
  desc.input_flags = &input_flags;
  desc.input_count = 1;
  desc.backward_scratch_bytes = backward_scratch_bytes;
  return layer.describe(desc);
}

ckpt_output output_of(const ckpt_layer &layer, size_t elements) {
  ckpt_output output = {};
  output.bytes = layer.bytes_of(elements);
  return output;
}

struct Embedding final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  ckpt_layer_embedding_desc shape = {};
  const char *kind() const noexcept override { return "embedding"; }
  size_t input_bytes(uint32_t) const noexcept override { return shape.batch * shape.sequence * sizeof(int32_t); }
  size_t elements() const noexcept { return shape.batch * shape.sequence * shape.channels; }

  ckpt_status forward(ckpt_frame *frame, bool evaluate) noexcept override {
    const auto *tokens = static_cast<const int32_t *>(ckpt_frame_input(frame, 0));
    void *const out = ckpt_frame_output(frame, 0);
    if (!ckpt_frame_needs_output(frame, 0)) return CKPT_OK;
    const float p = evaluate ? 0.0f : shape.dropout_probability;
    const Philox philox(frame, 0, p);
    CKPT_FRAME_TRY(frame, ckpt_ops_embedding_forward(ops, tokens, parameter(0), parameter(1), shape.batch, shape.sequence,
                                                     shape.channels, shape.vocabulary, out));
    if (p > 0.0f) CKPT_FRAME_TRY(frame, ckpt_ops_dropout_forward(ops, out, nullptr, p, &philox.value, elements(), out));
    return CKPT_OK;
  }

  ckpt_status backward(ckpt_frame *frame, bool evaluate) noexcept override {
    Ends e;
    if (const ckpt_status status = ends(*this, frame, false, &e)) return status;
    const auto *tokens = static_cast<const int32_t *>(ckpt_frame_input(frame, 0));
    const float p = evaluate ? 0.0f : shape.dropout_probability;
    if (p > 0.0f) {
      const Philox philox(frame, 0, p);
      void *const dropped = ckpt_frame_scratch(frame);
      CKPT_FRAME_TRY(frame, ckpt_ops_dropout_backward(ops, e.out_grad, p, &philox.value, elements(), dropped, 0));
      e.out_grad = dropped;
    }
    CKPT_FRAME_TRY(frame, ckpt_ops_embedding_backward(ops, tokens, e.out_grad, shape.batch, shape.sequence, shape.channels,
                                                      shape.vocabulary, gradient(0), gradient(1)));
    return CKPT_OK;
  }
};

struct Linear final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  size_t rows = 0, inputs = 0, outputs = 0;
  bool bias = false;
  const char *kind() const noexcept override { return "linear"; }
  size_t input_bytes(uint32_t) const noexcept override { return bytes_of(rows * inputs); }

  ckpt_status forward(ckpt_frame *frame, bool) noexcept override {
    const void *const in = ckpt_frame_input(frame, 0);
    void *const out = ckpt_frame_output(frame, 0);
    if (!ckpt_frame_needs_output(frame, 0)) return CKPT_OK;
    CKPT_FRAME_TRY(frame, ckpt_ops_linear_forward(ops, in, parameter(0), bias ? parameter(1) : nullptr, rows, inputs, outputs, out));
    return CKPT_OK;
  }
  ckpt_status backward(ckpt_frame *frame, bool) noexcept override {
    Ends e;
    if (const ckpt_status status = ends(*this, frame, true, &e)) return status;
    CKPT_FRAME_TRY(frame, ckpt_ops_linear_backward(ops, ckpt_frame_input(frame, 0), parameter(0), e.out_grad, rows, inputs, outputs, e.in_grad,
                                                   e.accumulate, gradient(0), bias ? gradient(1) : nullptr));
    return CKPT_OK;
  }
};

struct Layernorm final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  size_t rows = 0, channels = 0;
  float epsilon = kEpsilon;
  const char *kind() const noexcept override { return "layernorm"; }
  size_t input_bytes(uint32_t) const noexcept override { return bytes_of(rows * channels); }

  ckpt_status forward(ckpt_frame *frame, bool) noexcept override {
    const void *const in = ckpt_frame_input(frame, 0);
    auto *mean = static_cast<float *>(ckpt_frame_slot(frame, 0)), *rstd = static_cast<float *>(ckpt_frame_slot(frame, 1));
    void *const out = ckpt_frame_output(frame, 0);
    if (!ckpt_frame_needs(frame, 0)) return CKPT_OK;  // one group: all or none
    CKPT_FRAME_TRY(frame, ckpt_ops_layernorm_forward(ops, in, parameter(0), parameter(1), rows, channels, epsilon, out, mean, rstd));
    return CKPT_OK;
  }
  ckpt_status backward(ckpt_frame *frame, bool) noexcept override {
    Ends e;
    if (const ckpt_status status = ends(*this, frame, true, &e)) return status;
    if (e.in_grad == nullptr) e.in_grad = ckpt_frame_scratch(frame);
    CKPT_FRAME_TRY(frame, ckpt_ops_layernorm_backward(ops, ckpt_frame_input(frame, 0), static_cast<const float *>(ckpt_frame_slot(frame, 0)),
                                                      static_cast<const float *>(ckpt_frame_slot(frame, 1)), parameter(0), e.out_grad,
                                                      nullptr, rows, channels, e.in_grad, e.accumulate, gradient(0), gradient(1)));
    return CKPT_OK;
  }
};

struct Gelu final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  size_t count = 0;
  const char *kind() const noexcept override { return "gelu"; }
  size_t input_bytes(uint32_t) const noexcept override { return bytes_of(count); }

  ckpt_status forward(ckpt_frame *frame, bool) noexcept override {
    const void *const in = ckpt_frame_input(frame, 0);
    void *const out = ckpt_frame_output(frame, 0);
    if (!ckpt_frame_needs_output(frame, 0)) return CKPT_OK;
    CKPT_FRAME_TRY(frame, ckpt_ops_gelu_forward(ops, in, nullptr, 1, count, out));
    return CKPT_OK;
  }
  ckpt_status backward(ckpt_frame *frame, bool) noexcept override {
    Ends e;
    if (const ckpt_status status = ends(*this, frame, true, &e)) return status;
    if (e.in_grad == nullptr) return CKPT_OK;
    CKPT_FRAME_TRY(frame, ckpt_ops_gelu_backward(ops, ckpt_frame_input(frame, 0), nullptr, e.out_grad, 1, count, e.in_grad, e.accumulate, nullptr));
    return CKPT_OK;
  }
};

struct DropoutLayer final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  size_t count = 0;
  float probability = 0.0f;
  const char *kind() const noexcept override { return "dropout"; }
  size_t input_bytes(uint32_t) const noexcept override { return bytes_of(count); }

  ckpt_status forward(ckpt_frame *frame, bool evaluate) noexcept override {
    const void *const in = ckpt_frame_input(frame, 0);
    void *const out = ckpt_frame_output(frame, 0);
    if (!ckpt_frame_needs_output(frame, 0)) return CKPT_OK;
    const float p = evaluate ? 0.0f : probability;
    const Philox philox(frame, 0, p);
    CKPT_FRAME_TRY(frame, ckpt_ops_dropout_forward(ops, in, nullptr, p, &philox.value, count, out));
    return CKPT_OK;
  }
  ckpt_status backward(ckpt_frame *frame, bool evaluate) noexcept override {
    Ends e;
    if (const ckpt_status status = ends(*this, frame, true, &e)) return status;
    if (e.in_grad == nullptr) return CKPT_OK;
    const float p = evaluate ? 0.0f : probability;
    const Philox philox(frame, 0, p);
    CKPT_FRAME_TRY(frame, ckpt_ops_dropout_backward(ops, e.out_grad, p, &philox.value, count, e.in_grad, e.accumulate));
    return CKPT_OK;
  }
};

ckpt_status check_out(const char *function, ckpt_ops *ops, ckpt_layer **out_layer) {
  CKPT_OPS_TRY(Check(function).pointers({{"out_layer", out_layer}}).status());
  *out_layer = nullptr;
  return Check(function).pointers({{"ops", ops}}).status();
}

}  // namespace

extern "C" {

ckpt_status ckpt_layer_embedding_create(ckpt_ops *ops, const ckpt_layer_embedding_desc *desc, ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_embedding_create";
  CKPT_OPS_TRY(check_out(kName, ops, out_layer));
  ckpt_layer_embedding_desc mine = {};
  CKPT_OPS_TRY(read_struct(kName, desc, 40, &mine));
  CKPT_OPS_TRY(Check(kName)
                   .sizes({{"desc.batch", mine.batch}, {"desc.sequence", mine.sequence}, {"desc.channels", mine.channels}})
                   .sizes({{"desc.vocabulary", mine.vocabulary}, {"desc.channels", mine.channels}})
                   .probability("desc.dropout_probability", mine.dropout_probability, desc).status());
  return make_layer<Embedding>(kName, ops, out_layer, [&](Embedding &layer) {
    layer.shape = mine;
    layer.add_tensor(matrix("token_table", mine.vocabulary, mine.channels));
    layer.add_tensor(matrix("position_table", mine.sequence, mine.channels));
    return describe_simple(layer, CKPT_INPUT_NO_GRAD, output_of(layer, layer.elements()),
                           mine.dropout_probability > 0.0f ? layer.bytes_of(layer.elements()) : 0);
  });
}

ckpt_status ckpt_layer_linear_create(ckpt_ops *ops, size_t rows, size_t inputs, size_t outputs, uint32_t bias,
                                     ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_linear_create";
  CKPT_OPS_TRY(check_out(kName, ops, out_layer));
  CKPT_OPS_TRY(Check(kName).sizes({{"rows", rows}, {"inputs", inputs}}).sizes({{"rows", rows}, {"outputs", outputs}})
                   .sizes({{"inputs", inputs}, {"outputs", outputs}}).status());
  return make_layer<Linear>(kName, ops, out_layer, [&](Linear &layer) {
    layer.rows = rows;
    layer.inputs = inputs;
    layer.outputs = outputs;
    layer.bias = bias != 0;
    layer.add_tensor(matrix("weight", outputs, inputs));
    if (layer.bias) layer.add_tensor(ckpt::ops::vector("bias", outputs, 0.0f));
    return describe_simple(layer, 0, output_of(layer, rows * outputs));
  });
}

ckpt_status ckpt_layer_layernorm_create(ckpt_ops *ops, size_t rows, size_t channels, float epsilon, ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_layernorm_create";
  CKPT_OPS_TRY(check_out(kName, ops, out_layer));
  CKPT_OPS_TRY(Check(kName).sizes({{"rows", rows}, {"channels", channels}}).status());
  if (!(epsilon >= 0.0f && std::isfinite(epsilon)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: epsilon is %g, expected 0 or more", kName, static_cast<double>(epsilon));
  return make_layer<Layernorm>(kName, ops, out_layer, [&](Layernorm &layer) {
    layer.rows = rows;
    layer.channels = channels;
    if (epsilon > 0.0f) layer.epsilon = epsilon;
    layer.add_tensor(ckpt::ops::vector("weight", channels, 1.0f));
    layer.add_tensor(ckpt::ops::vector("bias", channels, 0.0f));
    Slots slots;
    slots.add("mean", rows * sizeof(float), {}, 1);
    slots.add("rstd", rows * sizeof(float), {}, 1);
    const std::vector<ckpt_slot> list = slots.list();
    ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
    ckpt_output output = output_of(layer, rows * channels);
    output.name = "out";
    output.reads = list[0].reads;
    output.group = 1;
    desc.slots = list.data();
    desc.slot_count = 2;
    desc.outputs = &output;
    desc.output_count = 1;
    desc.input_count = 1;
    desc.backward_scratch_bytes = layer.bytes_of(rows * channels);
    return layer.describe(desc);
  });
}

ckpt_status ckpt_layer_gelu_create(ckpt_ops *ops, size_t count, ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_gelu_create";
  CKPT_OPS_TRY(check_out(kName, ops, out_layer));
  CKPT_OPS_TRY(Check(kName).sizes({{"count", count}}).status());
  return make_layer<Gelu>(kName, ops, out_layer, [&](Gelu &layer) {
    layer.count = count;
    return describe_simple(layer, CKPT_INPUT_GRAD_OVER_OUTPUT_0, output_of(layer, count));
  });
}

ckpt_status ckpt_layer_dropout_create(ckpt_ops *ops, size_t count, float probability, ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_dropout_create";
  CKPT_OPS_TRY(check_out(kName, ops, out_layer));
  CKPT_OPS_TRY(Check(kName).count("count", count).probability("probability", probability, ops).status());
  return make_layer<DropoutLayer>(kName, ops, out_layer, [&](DropoutLayer &layer) {
    layer.count = count;
    layer.probability = probability;
    ckpt_output output = output_of(layer, count);
    output.in_place_input = 1;
    return describe_simple(layer, CKPT_INPUT_BACKWARD_IGNORES | CKPT_INPUT_GRAD_OVER_OUTPUT_0, output);
  });
}

}  // extern "C"
