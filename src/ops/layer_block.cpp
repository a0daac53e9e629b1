// The transformer block. Its backward works in the slots of the feed-forward part, which are dead by then (CONSUMED), so that it
// needs next to no memory of its own:
//
//   gelu   d gelu, then d fc1          -> d att_out        -> d ln1
//   ln2    d ln2,  then d res1 (with the residual stream)
//   fc1    d qkv
#include <cmath>
#include <vector>

#include "ops/layer.h"

using namespace ckpt::ops;

namespace {

enum Slot : uint32_t { kLn1, kLn1Mean, kLn1Rstd, kQkv, kAtt, kAttOut, kRes1, kLn2, kLn2Mean, kLn2Rstd, kFc1, kGelu, kSlotCount };
enum Parameter : size_t {
  kLn1Weight, kLn1Bias, kQkvWeight, kQkvBias, kProjWeight, kProjBias,
  kLn2Weight, kLn2Bias, kFc1Weight, kFc1Bias, kFc2Weight, kFc2Bias
};
enum Site : uint32_t { kAttentionSite, kProjSite, kFc2Site };

struct Block final : ckpt_layer {
  using ckpt_layer::ckpt_layer;
  ckpt_layer_block_desc shape = {};
  const char *kind() const noexcept override { return "block"; }
  size_t input_bytes(uint32_t) const noexcept override { return bytes_of(rows() * shape.channels); }

  size_t rows() const noexcept { return shape.batch * shape.sequence; }
  bool tiled() const noexcept { return shape.attention == CKPT_ATTENTION_TILED; }
  bool slots_hold_gradients() const noexcept { return shape.hidden >= 3 * shape.channels; }
  // Backward's scratch: a gradient behind a mask; gradients of qkv and of att_out or ln1, where slots have no room for them.
  size_t masked_bytes() const noexcept { return shape.dropout_probability > 0.0f ? piece_bytes(bytes_of(rows() * shape.channels)) : 0; }
  size_t wide_bytes() const noexcept { return slots_hold_gradients() ? 0 : piece_bytes(bytes_of(3 * rows() * shape.channels)); }
  size_t backward_scratch_bytes() const noexcept {
    return masked_bytes() + wide_bytes() + (slots_hold_gradients() ? 0 : bytes_of(rows() * shape.channels));
  }

  ckpt_status forward(ckpt_frame *frame, bool evaluate) noexcept override;
  ckpt_status backward(ckpt_frame *frame, bool evaluate) noexcept override;
  ckpt_status build();
};

// One execution: pointers, and the two random snapshots of the residual branches.
struct Run {
  const Block &block;
  ckpt_frame *frame;
  float residual_dropout, attention_dropout;
  void *slot[kSlotCount];
  const void *x;
  ckpt_philox philox[3] = {};
  const size_t rows, channels, hidden;

  Run(const Block &b, ckpt_frame *f, bool evaluate) noexcept
      : block(b), frame(f), residual_dropout(evaluate ? 0.0f : b.shape.dropout_probability),
        attention_dropout(evaluate ? 0.0f : b.shape.attention_dropout_probability),
        x(ckpt_frame_input(f, 0)), rows(b.rows()), channels(b.shape.channels), hidden(b.shape.hidden) {
    for (uint32_t k = 0; k < kSlotCount; ++k) slot[k] = ckpt_frame_slot(f, k);
    if (attention_dropout > 0.0f) ckpt_frame_random(f, kAttentionSite, &philox[kAttentionSite]);
    if (residual_dropout > 0.0f) {
      ckpt_frame_random(f, kProjSite, &philox[kProjSite]);
      ckpt_frame_random(f, kFc2Site, &philox[kFc2Site]);
    }
  }

  ckpt_status attention_half() noexcept;
  ckpt_status feed_forward_half() noexcept;
  ckpt_status feed_forward_backward(const void *out_grad, void *scratch) noexcept;
  ckpt_status attention_backward(char *scratch, void *in_grad, uint32_t accumulate) noexcept;
  // out_grad through the dropout of a residual branch: itself where there is none, else in `masked`.
  ckpt_status through_dropout(Site site, const void *grad, void *masked, const void **out) noexcept {
    *out = residual_dropout > 0.0f ? masked : grad;
    if (residual_dropout > 0.0f)
      return ckpt_ops_dropout_backward(block.ops, grad, residual_dropout, &philox[site], rows * channels, masked, 0);
    return CKPT_OK;
  }
  float *statistics(Slot k) const noexcept { return static_cast<float *>(slot[k]); }
  const void *p(Parameter k) const noexcept { return block.parameter(k); }
  float *g(Parameter k) const noexcept { return block.gradient(k); }
};

ckpt_status Run::attention_half() noexcept {
  ckpt_ops *const ops = block.ops;
  const auto &s = block.shape;
  if (ckpt_frame_needs(frame, kLn1))
    CKPT_OPS_TRY(ckpt_ops_layernorm_forward(ops, x, p(kLn1Weight), p(kLn1Bias), rows, channels, s.epsilon, slot[kLn1],
                                            statistics(kLn1Mean), statistics(kLn1Rstd)));
  if (ckpt_frame_needs(frame, kQkv))
    CKPT_OPS_TRY(ckpt_ops_linear_forward(ops, slot[kLn1], p(kQkvWeight), p(kQkvBias), rows, channels, 3 * channels, slot[kQkv]));
  if (ckpt_frame_needs(frame, kAtt)) {
    if (block.tiled())
      CKPT_OPS_TRY(ckpt_ops_attention_tiled_forward(ops, slot[kQkv], s.batch, s.sequence, s.heads, channels, attention_dropout,
                                                    &philox[kAttentionSite], statistics(kAtt), slot[kAttOut]));
    else
      CKPT_OPS_TRY(ckpt_ops_attention_forward(ops, slot[kQkv], s.batch, s.sequence, s.heads, channels, attention_dropout,
                                              &philox[kAttentionSite], slot[kAtt], slot[kAttOut]));
  }
  if (ckpt_frame_needs(frame, kRes1))
    CKPT_OPS_TRY(ckpt_ops_linear_residual_forward(ops, slot[kAttOut], p(kProjWeight), p(kProjBias), x, residual_dropout,
                                                  &philox[kProjSite], rows, channels, channels, slot[kRes1]));
  return CKPT_OK;
}

ckpt_status Run::feed_forward_half() noexcept {
  ckpt_ops *const ops = block.ops;
  void *const out = ckpt_frame_output(frame, 0);
  if (ckpt_frame_needs(frame, kLn2))
    CKPT_OPS_TRY(ckpt_ops_layernorm_forward(ops, slot[kRes1], p(kLn2Weight), p(kLn2Bias), rows, channels, block.shape.epsilon,
                                            slot[kLn2], statistics(kLn2Mean), statistics(kLn2Rstd)));
  if (ckpt_frame_needs(frame, kFc1))
    CKPT_OPS_TRY(ckpt_ops_linear_forward(ops, slot[kLn2], p(kFc1Weight), nullptr, rows, channels, hidden, slot[kFc1]));
  if (ckpt_frame_needs(frame, kGelu))
    CKPT_OPS_TRY(ckpt_ops_gelu_forward(ops, slot[kFc1], p(kFc1Bias), rows, hidden, slot[kGelu]));
  if (ckpt_frame_needs_output(frame, 0))
    CKPT_OPS_TRY(ckpt_ops_linear_residual_forward(ops, slot[kGelu], p(kFc2Weight), p(kFc2Bias), slot[kRes1], residual_dropout,
                                                  &philox[kFc2Site], rows, hidden, channels, out));
  return CKPT_OK;
}

// Leaves the gradient of res1 in slot ln2.
ckpt_status Run::feed_forward_backward(const void *out_grad, void *masked) noexcept {
  ckpt_ops *const ops = block.ops;
  const void *fc2_grad = nullptr;
  void *const gelu_grad = slot[kGelu], *const ln2_grad = slot[kLn2];
  CKPT_OPS_TRY(through_dropout(kFc2Site, out_grad, masked, &fc2_grad));
  // Where a gradient is written over the input, the weight's gradient, which reads that input, comes first.
  CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, slot[kGelu], nullptr, fc2_grad, rows, hidden, channels, nullptr, 0, g(kFc2Weight),
                                        g(kFc2Bias)));
  CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, nullptr, p(kFc2Weight), fc2_grad, rows, hidden, channels, gelu_grad, 0, nullptr, nullptr));
  CKPT_OPS_TRY(ckpt_ops_gelu_backward(ops, slot[kFc1], p(kFc1Bias), gelu_grad, rows, hidden, gelu_grad, 0, g(kFc1Bias)));
  CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, slot[kLn2], nullptr, gelu_grad, rows, channels, hidden, nullptr, 0, g(kFc1Weight), nullptr));
  CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, nullptr, p(kFc1Weight), gelu_grad, rows, channels, hidden, ln2_grad, 0, nullptr, nullptr));
  return ckpt_ops_layernorm_backward(ops, slot[kRes1], statistics(kLn2Mean), statistics(kLn2Rstd), p(kLn2Weight), ln2_grad, out_grad,
                                     rows, channels, ln2_grad, 0, g(kLn2Weight), g(kLn2Bias));
}

ckpt_status Run::attention_backward(char *scratch, void *in_grad, uint32_t accumulate) noexcept {
  ckpt_ops *const ops = block.ops;
  const auto &s = block.shape;
  const bool in_slots = block.slots_hold_gradients();
  void *const res1_grad = slot[kLn2], *const masked = scratch;
  void *const qkv_grad = in_slots ? slot[kFc1] : scratch + block.masked_bytes();
  void *const narrow = in_slots ? slot[kGelu] : scratch + block.masked_bytes() + block.wide_bytes();  // of att_out, then of ln1
  const void *proj_grad = nullptr;
  CKPT_OPS_TRY(through_dropout(kProjSite, res1_grad, masked, &proj_grad));
  CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, slot[kAttOut], p(kProjWeight), proj_grad, rows, channels, channels, narrow, 0,
                                        g(kProjWeight), g(kProjBias)));
  if (block.tiled())
    CKPT_OPS_TRY(ckpt_ops_attention_tiled_backward(ops, slot[kQkv], slot[kAttOut], statistics(kAtt), narrow, s.batch, s.sequence,
                                                   s.heads, channels, attention_dropout, &philox[kAttentionSite], qkv_grad));
  else
    CKPT_OPS_TRY(ckpt_ops_attention_backward(ops, slot[kQkv], slot[kAtt], narrow, s.batch, s.sequence, s.heads, channels,
                                             attention_dropout, &philox[kAttentionSite], qkv_grad));
  CKPT_OPS_TRY(ckpt_ops_linear_backward(ops, slot[kLn1], p(kQkvWeight), qkv_grad, rows, channels, 3 * channels, narrow, 0,
                                        g(kQkvWeight), g(kQkvBias)));
  // The block's own input: where nobody wants its gradient, it goes over what is not needed any more.
  return ckpt_ops_layernorm_backward(ops, x, statistics(kLn1Mean), statistics(kLn1Rstd), p(kLn1Weight), narrow, res1_grad, rows, channels,
                                     in_grad == nullptr ? narrow : in_grad, in_grad == nullptr ? 0 : accumulate, g(kLn1Weight),
                                     g(kLn1Bias));
}

ckpt_status Block::forward(ckpt_frame *frame, bool evaluate) noexcept {
  Run run(*this, frame, evaluate);
  CKPT_FRAME_TRY(frame, run.attention_half());
  CKPT_FRAME_TRY(frame, run.feed_forward_half());
  return CKPT_OK;
}

ckpt_status Block::backward(ckpt_frame *frame, bool evaluate) noexcept {
  Run run(*this, frame, evaluate);
  const void *const out_grad = ckpt_frame_output_grad(frame, 0);
  int accumulate = 0;
  void *const in_grad = ckpt_frame_input_grad(frame, 0, &accumulate);
  auto *scratch = static_cast<char *>(ckpt_frame_scratch(frame));
  if (out_grad == nullptr)
    return frame_failed(frame, fail(CKPT_ERROR_INVALID_ARGUMENT,
                                    "block: its output's gradient is NULL, expected an array: only a head seeds itself"));
  CKPT_FRAME_TRY(frame, run.feed_forward_backward(out_grad, scratch));
  CKPT_FRAME_TRY(frame, run.attention_backward(scratch, in_grad, accumulate != 0));
  return CKPT_OK;
}

ckpt_status Block::build() {
  const size_t c = shape.channels, h = shape.hidden, n = rows();
  add_tensor(ckpt::ops::vector("ln1.weight", c, 1.0f));
  add_tensor(ckpt::ops::vector("ln1.bias", c, 0.0f));
  add_tensor(matrix("qkv.weight", 3 * c, c));
  add_tensor(ckpt::ops::vector("qkv.bias", 3 * c, 0.0f));
  add_tensor(matrix("proj.weight", c, c, shape.residual_stddev));
  add_tensor(ckpt::ops::vector("proj.bias", c, 0.0f));
  add_tensor(ckpt::ops::vector("ln2.weight", c, 1.0f));
  add_tensor(ckpt::ops::vector("ln2.bias", c, 0.0f));
  add_tensor(matrix("fc1.weight", h, c));
  add_tensor(ckpt::ops::vector("fc1.bias", h, 0.0f));
  add_tensor(matrix("fc2.weight", c, h, shape.residual_stddev));
  add_tensor(ckpt::ops::vector("fc2.bias", c, 0.0f));
  enum : uint32_t { kNoGroup, kNorm1, kAttention, kNorm2 };
  Slots slots;
  const size_t statistics = n * sizeof(float), weight_rows = shape.batch * shape.heads * shape.sequence;
  slots.add("ln1", bytes_of(n * c), {}, kNorm1);
  slots.add("ln1_mean", statistics, {}, kNorm1);
  slots.add("ln1_rstd", statistics, {}, kNorm1);
  slots.add("qkv", bytes_of(n * 3 * c), {kLn1});
  if (tiled())
    slots.add("lse", weight_rows * sizeof(float), {kQkv}, kAttention);
  else
    slots.add("att", bytes_of(weight_rows * shape.sequence), {kQkv}, kAttention);
  slots.add("att_out", bytes_of(n * c), {kQkv}, kAttention);
  slots.add("res1", bytes_of(n * c), {kAttOut});
  slots.add("ln2", bytes_of(n * c), {kRes1}, kNorm2, CKPT_SLOT_CONSUMED);
  slots.add("ln2_mean", statistics, {kRes1}, kNorm2);
  slots.add("ln2_rstd", statistics, {kRes1}, kNorm2);
  slots.add("fc1", bytes_of(n * h), {kLn2}, kNoGroup, CKPT_SLOT_CONSUMED);
  slots.add("gelu", bytes_of(n * h), {kFc1}, kNoGroup, CKPT_SLOT_CONSUMED);
  const std::vector<ckpt_slot> list = slots.list();
  const uint32_t out_reads[] = {kRes1, kGelu}, input_flags = CKPT_INPUT_GRAD_OVER_OUTPUT_0;
  ckpt_output output = {};
  output.name = "out";
  output.bytes = bytes_of(n * c);
  output.reads = out_reads;
  output.read_count = 2;
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  desc.slots = list.data();
  desc.slot_count = kSlotCount;
  desc.outputs = &output;
  desc.output_count = 1;
  desc.input_flags = &input_flags;
  desc.input_count = 1;
  desc.backward_scratch_bytes = backward_scratch_bytes();
  return describe(desc);
}

ckpt_status check_numbers(const char *function, const ckpt_layer_block_desc &desc) {
  if (desc.attention != CKPT_ATTENTION_PLAIN && desc.attention != CKPT_ATTENTION_TILED)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.attention is %u, expected CKPT_ATTENTION_PLAIN (0) or _TILED (1)", function,
                desc.attention);
  if (!(desc.epsilon > 0.0f && std::isfinite(desc.epsilon)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.epsilon is %g, expected 0 or more", function, static_cast<double>(desc.epsilon));
  if (!(desc.residual_stddev > 0.0f && std::isfinite(desc.residual_stddev)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.residual_stddev is %g, expected 0 or more", function,
                static_cast<double>(desc.residual_stddev));
  return CKPT_OK;
}

}  // namespace

extern "C" ckpt_status ckpt_layer_block_create(ckpt_ops *ops, const ckpt_layer_block_desc *desc, ckpt_layer **out_layer) {
  constexpr const char *kName = "ckpt_layer_block_create";
  CKPT_OPS_TRY(Check(kName).pointers({{"out_layer", out_layer}}).status());
  *out_layer = nullptr;
  CKPT_OPS_TRY(Check(kName).pointers({{"ops", ops}}).status());
  ckpt_layer_block_desc mine = {};
  CKPT_OPS_TRY(read_struct(kName, desc, 64, &mine));
  if (mine.hidden == 0 && mine.channels <= SIZE_MAX / 4) mine.hidden = 4 * mine.channels;
  if (mine.epsilon == 0.0f) mine.epsilon = kEpsilon;
  if (mine.residual_stddev == 0.0f) mine.residual_stddev = kInitStddev;
  CKPT_OPS_TRY(Check(kName)
                   .sizes({{"desc.heads", mine.heads}, {"desc.batch", mine.batch}, {"desc.sequence", mine.sequence}, {"desc.sequence", mine.sequence}})
                   .sizes({{"desc.batch", mine.batch}, {"desc.sequence", mine.sequence}, {"desc.channels", mine.channels}})
                   .sizes({{"desc.batch", mine.batch}, {"desc.sequence", mine.sequence}, {"3 * desc.channels", 3 * mine.channels}})
                   .sizes({{"desc.batch", mine.batch}, {"desc.sequence", mine.sequence}, {"desc.hidden", mine.hidden}})
                   .sizes({{"desc.channels", mine.channels}, {"desc.hidden", mine.hidden}})
                   .divides({"desc.heads", mine.heads}, {"desc.channels", mine.channels})
                   .probability("desc.dropout_probability", mine.dropout_probability, desc)
                   .probability("desc.attention_dropout_probability", mine.attention_dropout_probability, desc).status());
  CKPT_OPS_TRY(check_numbers(kName, mine));
  CKPT_OPS_TRY(head_fits(kName, ops, mine.heads, mine.channels));
  return make_layer<Block>(kName, ops, out_layer, [&](Block &block) {
    block.shape = mine;
    return block.build();
  });
}
