// Final norm, product with the vocabulary's weight, cross-entropy. Backward works in the slots: the gradient of the logits over the
// logits, that of the norm's output over the norm's output (CONSUMED). In chunks, logits are never more than a few rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu/rows.h"
#include "ops/layer.h"

using namespace ckpt::ops;

namespace {

enum Slot : uint32_t { kLn, kLnMean, kLnRstd, kLogits };  // lse is the last, with or without logits before it

struct Head final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  ckpt_layer_head_desc shape = {};
  const float *tied_weight = nullptr;
  float *tied_weight_grad = nullptr;
  float own_loss = 0.0f;

  const char *kind() const noexcept override { return "head"; }
  bool bound() const noexcept override { return parameters != nullptr && (shape.tied == 0 || tied_weight != nullptr); }
  bool has_gradients() const noexcept override {
    return gradients != nullptr && (shape.tied == 0 || tied_weight_grad != nullptr);
  }
  uint32_t watched(ckpt_watch out[2]) const noexcept override {
    const uint32_t count = ckpt_layer::watched(out);
    if (shape.tied == 0) return count;
    out[count] = {"tied weight", tied_weight, shape.vocabulary * shape.channels * sizeof(float)};
    return count + 1;
  }
  bool chunked() const noexcept { return shape.chunk_rows > 0; }
  uint32_t lse_slot() const noexcept { return chunked() ? kLnRstd + 1 : kLogits + 1; }
  const float *weight() const noexcept { return shape.tied != 0 ? tied_weight : parameter(2); }
  float *weight_grad() const noexcept { return shape.tied != 0 ? tied_weight_grad : gradient(2); }

  ckpt_status forward(ckpt_frame *frame, bool evaluate) noexcept override;
  ckpt_status backward(ckpt_frame *frame, bool evaluate) noexcept override;
  ckpt_status build();

  ckpt_status logits_of(const float *ln, size_t rows, float *logits) const noexcept {
    return ckpt_ops_linear_forward(ops, ln, weight(), nullptr, rows, shape.channels, shape.vocabulary, logits);
  }
  // The weight's gradient reads ln, so it comes before the gradient that is written over it.
  ckpt_status logits_backward(const float *logits_grad, size_t rows, float *ln) const noexcept {
    CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, ln, nullptr, logits_grad, rows, shape.channels, shape.vocabulary, nullptr, 0,
                                          weight_grad(), nullptr));
    return ckpt_ops_linear_backward(ops, nullptr, weight(), logits_grad, rows, shape.channels, shape.vocabulary, ln, 0, nullptr, nullptr);
  }
  // body(first, rows, logits): all rows at once with the slot's logits, or chunks with logits made in `scratch`.
  template <class Body>
  ckpt_status chunks(const float *ln, float *logits, float *scratch, const Body &body) const noexcept {
    if (!chunked()) return body(size_t{0}, shape.rows, logits);
    for (size_t first = 0; first < shape.rows; first += shape.chunk_rows) {
      const size_t n = std::min(shape.chunk_rows, shape.rows - first);
      CKPT_OPS_TRY(logits_of(ln + first * shape.channels, n, scratch));
      CKPT_OPS_TRY(body(first, n, scratch));
    }
    return CKPT_OK;
  }
};

ckpt_status Head::forward(ckpt_frame *frame, bool) noexcept {
  const auto *x = static_cast<const float *>(ckpt_frame_input(frame, 0));
  const auto *targets = static_cast<const int32_t *>(ckpt_frame_input(frame, 1));
  auto *ln = static_cast<float *>(ckpt_frame_slot(frame, kLn)), *mean = static_cast<float *>(ckpt_frame_slot(frame, kLnMean));
  auto *rstd = static_cast<float *>(ckpt_frame_slot(frame, kLnRstd)), *lse = static_cast<float *>(ckpt_frame_slot(frame, lse_slot()));
  auto *logits = chunked() ? nullptr : static_cast<float *>(ckpt_frame_slot(frame, kLogits));
  auto *loss = static_cast<float *>(ckpt_frame_output(frame, 0));
  if (ckpt_frame_needs(frame, kLn))
    CKPT_FRAME_TRY(frame, ckpt_ops_layernorm_forward(ops, x, parameter(0), parameter(1), shape.rows, shape.channels, shape.epsilon,
                                                     ln, mean, rstd));
  if (!chunked() && ckpt_frame_needs(frame, kLogits)) CKPT_FRAME_TRY(frame, logits_of(ln, shape.rows, logits));
  if (ckpt_frame_needs(frame, lse_slot())) {
    CKPT_FRAME_TRY(frame, check_indices("head", "targets", targets, shape.rows, shape.vocabulary, &shape.ignore_index));
    double sum = 0.0;
    CKPT_FRAME_TRY(frame, chunks(ln, logits, static_cast<float *>(ckpt_frame_scratch(frame)),
                                 [&](size_t first, size_t n, const float *of_chunk) {
      sum = cross_entropy_sum(ops, of_chunk, targets + first, n, shape.vocabulary, shape.ignore_index, lse + first, sum);
      return CKPT_OK;
    }));
    *loss = mean_loss(targets, shape.rows, shape.ignore_index, sum);
  }
  return CKPT_OK;
}

ckpt_status Head::backward(ckpt_frame *frame, bool) noexcept {
  const auto *x = static_cast<const float *>(ckpt_frame_input(frame, 0));
  const auto *targets = static_cast<const int32_t *>(ckpt_frame_input(frame, 1));
  auto *ln = static_cast<float *>(ckpt_frame_slot(frame, kLn)), *mean = static_cast<float *>(ckpt_frame_slot(frame, kLnMean));
  auto *rstd = static_cast<float *>(ckpt_frame_slot(frame, kLnRstd)), *lse = static_cast<float *>(ckpt_frame_slot(frame, lse_slot()));
  auto *logits = chunked() ? nullptr : static_cast<float *>(ckpt_frame_slot(frame, kLogits));
  const auto *loss_grad = static_cast<const float *>(ckpt_frame_output_grad(frame, 0));
  int accumulate = 0;
  auto *in_grad = static_cast<float *>(ckpt_frame_input_grad(frame, 0, &accumulate));
  const float row_grad = row_loss_grad(targets, shape.rows, shape.ignore_index, loss_grad == nullptr ? 1.0f : *loss_grad);
  CKPT_FRAME_TRY(frame, chunks(ln, logits, static_cast<float *>(ckpt_frame_scratch(frame)), [&](size_t first, size_t n, float *of_chunk) {
    cross_entropy_gradient(ops, of_chunk, targets + first, lse + first, n, shape.vocabulary, shape.ignore_index, row_grad, of_chunk);
    return logits_backward(of_chunk, n, ln + first * shape.channels);
  }));
  CKPT_FRAME_TRY(frame, ckpt_ops_layernorm_backward(ops, x, mean, rstd, parameter(0), ln, nullptr, shape.rows, shape.channels,
                                                    in_grad == nullptr ? ln : in_grad, in_grad == nullptr ? 0 : accumulate != 0,
                                                    gradient(0), gradient(1)));
  return CKPT_OK;
}

ckpt_status Head::build() {
  const size_t n = shape.rows, c = shape.channels, v = shape.vocabulary;
  add_tensor(ckpt::ops::vector("ln.weight", c, 1.0f));
  add_tensor(ckpt::ops::vector("ln.bias", c, 0.0f));
  if (shape.tied == 0) add_tensor(matrix("weight", v, c));
  enum : uint32_t { kNoGroup, kNorm, kLoss };
  // Slots are computed from earlier ones: without logits, lse comes from ln.
  Slots slots;
  slots.add("ln", n * c, {}, kNorm, CKPT_SLOT_CONSUMED);
  slots.add("ln_mean", n, {}, kNorm);
  slots.add("ln_rstd", n, {}, kNorm);
  if (!chunked()) slots.add("logits", n * v, {kLn}, kNoGroup, CKPT_SLOT_CONSUMED);
  slots.add("lse", n, {chunked() ? uint32_t{kLn} : uint32_t{kLogits}}, kLoss);
  const std::vector<ckpt_slot> list = slots.list();
  const uint32_t reads = chunked() ? kLn : kLogits, input_flags[] = {0, CKPT_INPUT_NO_GRAD};
  ckpt_output output = {};
  output.name = "loss";
  output.bytes = sizeof(float);
  output.reads = &reads;
  output.read_count = 1;
  output.group = kLoss;
  output.memory = shape.loss;
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  desc.slots = list.data();
  desc.slot_count = static_cast<uint32_t>(list.size());
  desc.outputs = &output;
  desc.output_count = 1;
  desc.input_flags = input_flags;
  desc.input_count = 2;
  desc.forward_scratch_bytes = desc.backward_scratch_bytes = chunked() ? std::min(shape.chunk_rows, n) * v * sizeof(float) : 0;
  return describe(desc);
}

}  // namespace

extern "C" {

ckpt_status ckpt_layer_head_create(ckpt_ops *ops, const ckpt_layer_head_desc *desc, ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_head_create";
  CKPT_OPS_TRY(Check(kName).pointers({{"out_layer", out_layer}}).status());
  *out_layer = nullptr;
  CKPT_OPS_TRY(Check(kName).pointers({{"ops", ops}}).status());
  ckpt_layer_head_desc mine = {};
  CKPT_OPS_TRY(read_struct(kName, desc, 56, &mine));
  if (mine.epsilon == 0.0f) mine.epsilon = kEpsilon;
  CKPT_OPS_TRY(Check(kName)
                   .sizes({{"desc.rows", mine.rows}, {"desc.channels", mine.channels}})
                   .sizes({{"desc.rows", mine.rows}, {"desc.vocabulary", mine.vocabulary}})
                   .sizes({{"desc.channels", mine.channels}, {"desc.vocabulary", mine.vocabulary}}).status());
  if (mine.tied > 1) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.tied is %u, expected 0 or 1", kName, mine.tied);
  if (!(mine.epsilon > 0.0f && std::isfinite(mine.epsilon)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.epsilon is %g, expected 0 or more", kName, static_cast<double>(mine.epsilon));
  return make_layer<Head>(kName, ops, out_layer, [&](Head &head) {
    head.shape = mine;
    if (mine.loss == nullptr) head.shape.loss = &head.own_loss;
    return head.build();
  });
}

const float *ckpt_layer_loss(const ckpt_layer *layer) {
  const auto *head = dynamic_cast<const Head *>(layer);
  return head == nullptr ? nullptr : head->shape.loss;
}

ckpt_status ckpt_layer_bind_tied(ckpt_layer *layer, const float *weight, float *weight_grad) {
  CKPT_OPS_TRY(Check("ckpt_layer_bind_tied").pointers({{"layer", layer}, {"weight", weight}}).status());
  auto *head = dynamic_cast<Head *>(layer);
  if (head == nullptr || head->shape.tied == 0)
    return fail(CKPT_ERROR_STATE, "ckpt_layer_bind_tied: the layer is %s %s, expected a head made with tied = 1",
                head == nullptr ? "of kind" : "an untied", layer->kind());
  head->tied_weight = weight;
  head->tied_weight_grad = weight_grad;
  return CKPT_OK;
}

}  // extern "C"
