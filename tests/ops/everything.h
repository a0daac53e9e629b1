// Every kernel once, on shapes of several tasks and odd sizes, with all results.
#pragma once

#include "common.h"

namespace test {

// An array that starts `shift` floats after an aligned address.
class Shifted {
 public:
  Shifted(const Floats &from, size_t shift) : memory_(from.size() + 64), shift_(shift) { std::copy(from.begin(), from.end(), data()); size_ = from.size(); }
  float *data() { return memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) / 4 % 16) % 16 + shift_; }
  Floats copy() { return Floats(data(), data() + size_); }

 private:
  Floats memory_;
  size_t shift_, size_ = 0;
};

// Runs everything once and gives all results.
inline std::vector<Floats> everything(ckpt_ops *ops, size_t shift) {
  constexpr size_t kBatch = 3, kSequence = 171, kRows = kBatch * kSequence, kChannels = 60, kHeads = 3, kHidden = 700, kVocabulary = 50;
  const ckpt_philox p = philox();
  std::vector<Floats> results;
  const auto in = [&](size_t count, uint64_t seed) { return Shifted(values(count, seed), shift); };
  const auto out = [&](size_t count) { return Shifted(Floats(count, 0.25f), shift); };
  Shifted x = in(kRows * kChannels, 1), wide = in(kRows * kHidden, 2), weight = in(kHidden * kChannels, 3), bias = in(kHidden, 4);
  Shifted norm_weight = in(kChannels, 5), norm_bias = in(kChannels, 6), qkv = in(kRows * 3 * kChannels, 7), logits = in(kRows * kVocabulary, 8);
  const std::vector<int32_t> tokens = indices(kRows, 9, kVocabulary);
  const auto keep = [&](std::initializer_list<Shifted *> list) {
    for (Shifted *one : list) results.push_back(one->copy());
  };
  const auto ok = [](ckpt_status status) { ASSERT_EQ(status, CKPT_OK) << ckpt_ops_last_error(); };
  {
    Shifted y = out(kRows * kHidden), dx = out(kRows * kChannels), dw = out(kHidden * kChannels), db = out(kHidden), z = out(kRows * kChannels);
    ok(ckpt_ops_linear_forward(ops, x.data(), weight.data(), bias.data(), kRows, kChannels, kHidden, y.data()));
    ok(ckpt_ops_linear_backward(ops, x.data(), weight.data(), wide.data(), kRows, kChannels, kHidden, dx.data(), 1, dw.data(), db.data()));
    ok(ckpt_ops_linear_residual_forward(ops, wide.data(), weight.data(), nullptr, x.data(), 0.2f, &p, kRows, kHidden, kChannels, z.data()));
    keep({&y, &dx, &dw, &db, &z});
  }
  {
    Shifted y = out(kRows * kChannels), mean = out(kRows), rstd = out(kRows), dx = out(kRows * kChannels), dw = out(kChannels), db = out(kChannels);
    ok(ckpt_ops_layernorm_forward(ops, x.data(), norm_weight.data(), norm_bias.data(), kRows, kChannels, 1e-5f, y.data(), mean.data(), rstd.data()));
    ok(ckpt_ops_layernorm_backward(ops, x.data(), mean.data(), rstd.data(), norm_weight.data(), y.data(), x.data(), kRows, kChannels, dx.data(),
                                   1, dw.data(), db.data()));
    keep({&y, &mean, &rstd, &dx, &dw, &db});
  }
  {
    Shifted y = out(kRows * kHidden), dx = out(kRows * kHidden), db = out(kHidden);
    ok(ckpt_ops_gelu_forward(ops, wide.data(), bias.data(), kRows, kHidden, y.data()));
    ok(ckpt_ops_gelu_backward(ops, wide.data(), bias.data(), y.data(), kRows, kHidden, dx.data(), 0, db.data()));
    keep({&y, &dx, &db});
  }
  for (const float probability : {0.0f, 0.1f}) {
    Shifted w = out(kBatch * kHeads * kSequence * kSequence), lse = out(kBatch * kHeads * kSequence), y = out(kRows * kChannels), z = out(kRows * kChannels);
    Shifted dy = out(kRows * 3 * kChannels), dz = out(kRows * 3 * kChannels);
    ok(ckpt_ops_attention_forward(ops, qkv.data(), kBatch, kSequence, kHeads, kChannels, probability, &p, w.data(), y.data()));
    ok(ckpt_ops_attention_backward(ops, qkv.data(), w.data(), x.data(), kBatch, kSequence, kHeads, kChannels, probability, &p, dy.data()));
    ok(ckpt_ops_attention_tiled_forward(ops, qkv.data(), kBatch, kSequence, kHeads, kChannels, probability, &p, lse.data(), z.data()));
    ok(ckpt_ops_attention_tiled_backward(ops, qkv.data(), z.data(), lse.data(), x.data(), kBatch, kSequence, kHeads, kChannels, probability, &p, dz.data()));
    keep({&w, &lse, &y, &z, &dy, &dz});
  }
  {
    Shifted lse = out(kRows), loss = out(1), grad = out(kRows * kVocabulary), embedded = out(kRows * kChannels), dt = out(kVocabulary * kChannels), dp = out(kSequence * kChannels);
    ok(ckpt_ops_cross_entropy_forward(ops, logits.data(), tokens.data(), kRows, kVocabulary, 7, lse.data(), loss.data()));
    ok(ckpt_ops_cross_entropy_backward(ops, logits.data(), tokens.data(), lse.data(), kRows, kVocabulary, 7, 1.0f, grad.data()));
    ok(ckpt_ops_embedding_forward(ops, tokens.data(), logits.data(), x.data(), kBatch, kSequence, kChannels, kVocabulary, embedded.data()));
    ok(ckpt_ops_embedding_backward(ops, tokens.data(), x.data(), kBatch, kSequence, kChannels, kVocabulary, dt.data(), dp.data()));
    keep({&lse, &loss, &grad, &embedded, &dt, &dp});
  }
  {
    Shifted y = out(kRows * kHidden), dx = out(kRows * kHidden), m = out(kRows * kHidden), v = out(kRows * kHidden), drawn = out(kRows * kHidden);
    double norm = 0.0;
    ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
    desc.learning_rate = 0.1f;
    desc.step = 3;
    ok(ckpt_ops_dropout_forward(ops, wide.data(), wide.data(), 0.1f, &p, kRows * kHidden, y.data()));
    ok(ckpt_ops_dropout_backward(ops, wide.data(), 0.1f, &p, kRows * kHidden, dx.data(), 1));
    ok(ckpt_ops_norm(ops, wide.data(), kRows * kHidden, &norm));
    ok(ckpt_ops_normal(ops, &p, 0.0f, 1.0f, kRows * kHidden, drawn.data()));
    ok(ckpt_ops_adamw(ops, &desc, kRows * kHidden, wide.data(), y.data(), m.data(), v.data()));
    keep({&y, &dx, &m, &v, &drawn});
    Floats bits(2);
    std::memcpy(bits.data(), &norm, sizeof norm);
    results.push_back(bits);
  }
  return results;
}

}  // namespace test
