// Final norm, product with the vocabulary's weight, cross-entropy. Backward works in the slots: the gradient of the logits over the
// logits, that of the norm's output over the norm's output (CONSUMED). In chunks, logits are never more than a few rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu/functions.h"
#include "ops/layer.h"

using namespace ckpt::ops;

namespace {

struct Run;
enum Slot : uint32_t { kLn, kLnMean, kLnRstd, kLogits };  // lse is the last, with or without logits before it

struct Head final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  ~Head() override { drop_float(ops, own_loss); }
  ckpt_layer_head_desc shape = {};
  const void *tied_weight = nullptr;
  float *tied_weight_grad = nullptr;
  float *own_loss = nullptr;

  const char *kind() const noexcept override { return "head"; }
  size_t input_bytes(uint32_t input) const noexcept override { return input == 0 ? bytes_of(shape.rows * shape.channels) : shape.rows * sizeof(int32_t); }
  bool bound() const noexcept override { return parameters != nullptr && (shape.tied == 0 || tied_weight != nullptr); }
  bool has_gradients() const noexcept override {
    return gradients != nullptr && (shape.tied == 0 || tied_weight_grad != nullptr);
  }
  uint32_t watched(ckpt_watch out[2]) const noexcept override {
    const uint32_t count = ckpt_layer::watched(out);
    if (shape.tied == 0) return count;
    out[count] = {"tied weight", tied_weight, bytes_of(shape.vocabulary * shape.channels)};
    return count + 1;
  }
  bool chunked() const noexcept { return shape.chunk_rows > 0; }
  uint32_t lse_slot() const noexcept { return chunked() ? kLnRstd + 1 : kLogits + 1; }
  const void *weight() const noexcept { return shape.tied != 0 ? tied_weight : parameter(2); }
  float *weight_grad() const noexcept { return shape.tied != 0 ? tied_weight_grad : gradient(2); }

  ckpt_status forward(ckpt_frame *frame, bool evaluate) noexcept override;
  ckpt_status backward(ckpt_frame *frame, bool evaluate) noexcept override;
  ckpt_status build();
  ckpt_status loss_of(const Run &run, float *loss) noexcept;
  ckpt_status loss_backward(const Run &run, const float *loss_grad) noexcept;

  ckpt_status logits_of(const void *ln, size_t rows, void *logits) const noexcept {
    return ckpt_ops_linear_forward(ops, ln, weight(), nullptr, rows, shape.channels, shape.vocabulary, logits);
  }
  // The weight's gradient reads ln, so it comes before the gradient that is written over it.
  ckpt_status logits_backward(const void *logits_grad, size_t rows, void *ln) const noexcept {
    CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, ln, nullptr, logits_grad, rows, shape.channels, shape.vocabulary, nullptr, 0,
                                          weight_grad(), nullptr));
    return ckpt_ops_linear_backward(ops, nullptr, weight(), logits_grad, rows, shape.channels, shape.vocabulary, ln, 0, nullptr, nullptr);
  }
  // body(first, rows, logits): all rows at once with the slot's logits, or chunks with logits made in `scratch`.
  template <class Body>
  ckpt_status chunks(void *ln, void *logits, void *scratch, const Body &body) const noexcept {
    if (!chunked()) return body(size_t{0}, shape.rows, logits);
    for (size_t first = 0; first < shape.rows; first += shape.chunk_rows) {
      const size_t n = std::min(shape.chunk_rows, shape.rows - first);
      CKPT_OPS_TRY(logits_of(element(ln, first * shape.channels), n, scratch));
      CKPT_OPS_TRY(body(first, n, scratch));
    }
    return CKPT_OK;
  }
};

// What forward and backward ask the frame for.
struct Run {
  Run(const Head &head, ckpt_frame *frame) noexcept
      : x(ckpt_frame_input(frame, 0)), targets(static_cast<const int32_t *>(ckpt_frame_input(frame, 1))), ln(ckpt_frame_slot(frame, kLn)),
        logits(head.chunked() ? nullptr : ckpt_frame_slot(frame, kLogits)), scratch(ckpt_frame_scratch(frame)),
        mean(static_cast<float *>(ckpt_frame_slot(frame, kLnMean))), rstd(static_cast<float *>(ckpt_frame_slot(frame, kLnRstd))),
        lse(static_cast<float *>(ckpt_frame_slot(frame, head.lse_slot()))) {}
  const void *x;
  const int32_t *targets;
  void *ln, *logits, *scratch;
  float *mean, *rstd, *lse;
};

// The sums of the loss are the handle's: one at a time.
ckpt_status Head::loss_of(const Run &run, float *loss) noexcept {
  const auto &s = shape;
  if (ops->on_host()) CKPT_OPS_TRY(cpu::check_indices("head", "targets", run.targets, s.rows, s.vocabulary, &s.ignore_index));
  const std::lock_guard<std::mutex> lock(ops->sequence);
  CKPT_OPS_TRY(call(ops, &DeviceOps::loss_begin, run.targets, s.rows, s.vocabulary, s.ignore_index));
  CKPT_OPS_TRY(chunks(run.ln, run.logits, run.scratch, [&](size_t first, size_t n, const void *logits) {
    return call(ops, &DeviceOps::loss_add, logits, run.targets + first, n, s.vocabulary, s.ignore_index, run.lse + first);
  }));
  return call(ops, &DeviceOps::loss_end, loss);
}

// Leaves the gradient of ln in its place. loss_grad is the device's, NULL: 1.
ckpt_status Head::loss_backward(const Run &run, const float *loss_grad) noexcept {
  const auto &s = shape;
  const std::lock_guard<std::mutex> lock(ops->sequence);
  CKPT_OPS_TRY(call(ops, &DeviceOps::loss_scale, run.targets, s.rows, s.vocabulary, s.ignore_index, loss_grad, 1.0f));
  return chunks(run.ln, run.logits, run.scratch, [&](size_t first, size_t n, void *logits) {
    CKPT_OPS_TRY(call(ops, &DeviceOps::loss_gradient, static_cast<const void *>(logits), run.targets + first,
                      static_cast<const float *>(run.lse + first), n, s.vocabulary, s.ignore_index, logits));
    return logits_backward(logits, n, element(run.ln, first * s.channels));
  });
}

ckpt_status Head::forward(ckpt_frame *frame, bool) noexcept {
  const Run run(*this, frame);
  auto *loss = static_cast<float *>(ckpt_frame_output(frame, 0));
  if (ckpt_frame_needs(frame, kLn))
    CKPT_FRAME_TRY(frame, ckpt_ops_layernorm_forward(ops, run.x, parameter(0), parameter(1), shape.rows, shape.channels, shape.epsilon,
                                                     run.ln, run.mean, run.rstd));
  if (!chunked() && ckpt_frame_needs(frame, kLogits)) CKPT_FRAME_TRY(frame, logits_of(run.ln, shape.rows, run.logits));
  if (ckpt_frame_needs(frame, lse_slot())) CKPT_FRAME_TRY(frame, loss_of(run, loss));
  return CKPT_OK;
}

ckpt_status Head::backward(ckpt_frame *frame, bool) noexcept {
  const Run run(*this, frame);
  int accumulate = 0;
  const auto *loss_grad = static_cast<const float *>(ckpt_frame_output_grad(frame, 0));
  void *const in_grad = ckpt_frame_input_grad(frame, 0, &accumulate);
  CKPT_FRAME_TRY(frame, loss_backward(run, loss_grad));
  CKPT_FRAME_TRY(frame, ckpt_ops_layernorm_backward(ops, run.x, run.mean, run.rstd, parameter(0), run.ln, nullptr, shape.rows,
                                                    shape.channels, in_grad == nullptr ? run.ln : in_grad,
                                                    in_grad == nullptr ? 0 : accumulate != 0, gradient(0), gradient(1)));
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
  slots.add("ln", bytes_of(n * c), {}, kNorm, CKPT_SLOT_CONSUMED);
  slots.add("ln_mean", n * sizeof(float), {}, kNorm);
  slots.add("ln_rstd", n * sizeof(float), {}, kNorm);
  if (!chunked()) slots.add("logits", bytes_of(n * v), {kLn}, kNoGroup, CKPT_SLOT_CONSUMED);
  slots.add("lse", n * sizeof(float), {chunked() ? uint32_t{kLn} : uint32_t{kLogits}}, kLoss);
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
  desc.forward_scratch_bytes = desc.backward_scratch_bytes = chunked() ? bytes_of(std::min(shape.chunk_rows, n) * v) : 0;
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
    if (mine.loss == nullptr) CKPT_OPS_TRY(keep_float(ops, &head.own_loss));
    if (mine.loss == nullptr) head.shape.loss = head.own_loss;
    return head.build();
  });
}

const float *ckpt_layer_loss(const ckpt_layer *layer) {
  const auto *head = dynamic_cast<const Head *>(layer);
  return head == nullptr ? nullptr : head->shape.loss;
}

ckpt_status ckpt_layer_bind_tied(ckpt_layer *layer, const void *weight, float *weight_grad) {
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
