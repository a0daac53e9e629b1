// A transformer block, a head and a whole GPT in double precision, from the pieces of reference.h, over the flat arrays that the
// library's header describes.
#pragma once

#include "reference.h"

namespace reference {

struct Block {
  size_t batch, sequence, channels, heads, hidden;
  Values attention_mask, proj_mask, fc2_mask;  // empty: no dropout

  size_t rows() const { return batch * sequence; }
  size_t parameter_count() const {
    const size_t c = channels, h = hidden;
    return 2 * c + 3 * c * c + 3 * c + c * c + c + 2 * c + h * c + h + c * h + c;
  }

  static void masked(Values *x, const Values &mask) {
    for (size_t k = 0; k < x->size() && !mask.empty(); ++k) (*x)[k] *= mask[k];
  }

  Values forward(const Values &x, const double *parameters) const {
    const auto next = [&](size_t count) {
      const Values out(parameters, parameters + count);
      parameters += count;
      return out;
    };
    const size_t c = channels, n = rows();
    const Values w1 = next(c), b1 = next(c), qkv_w = next(3 * c * c), qkv_b = next(3 * c), proj_w = next(c * c), proj_b = next(c);
    const Values w2 = next(c), b2 = next(c), fc1_w = next(hidden * c), fc1_b = next(hidden), fc2_w = next(c * hidden), fc2_b = next(c);
    const Values qkv = linear(layernorm(x, w1, b1, n, c, 1e-5), qkv_w, qkv_b, n, c, 3 * c);
    const Attention attention{batch, sequence, heads, channels};
    Values branch = linear(attention.out(qkv, attention_mask), proj_w, proj_b, n, c, c);
    masked(&branch, proj_mask);
    Values middle(x);
    for (size_t k = 0; k < middle.size(); ++k) middle[k] += branch[k];
    Values act = linear(layernorm(middle, w2, b2, n, c, 1e-5), fc1_w, fc1_b, n, c, hidden);
    for (double &v : act) v = gelu(v);
    branch = linear(act, fc2_w, fc2_b, n, hidden, c);
    masked(&branch, fc2_mask);
    for (size_t k = 0; k < middle.size(); ++k) middle[k] += branch[k];
    return middle;
  }
};

// The loss of a head with parameters norm weight, norm bias, weight.
inline double head(const Values &x, const double *norm, const double *weight, const std::vector<int32_t> &targets, size_t channels,
                   size_t vocabulary) {
  const Values w(norm, norm + channels), b(norm + channels, norm + 2 * channels), v(weight, weight + vocabulary * channels);
  const size_t rows = targets.size();
  const Values logits = linear(layernorm(x, w, b, rows, channels, 1e-5), v, {}, rows, channels, vocabulary);
  return cross_entropy(logits, targets, vocabulary, -1);
}

struct Gpt {
  size_t layers, heads, channels, sequence, batch, vocabulary;
  bool tied;
  Values embedding_mask;
  std::vector<Block> blocks;  // with their masks

  double loss(const Values &parameters, const std::vector<int32_t> &tokens, const std::vector<int32_t> &targets) const {
    const double *p = parameters.data(), *const table = p, *const positions = p + vocabulary * channels;
    p = positions + sequence * channels;
    Values x(batch * sequence * channels);
    for (size_t k = 0; k < x.size(); ++k) {
      const size_t row = k / channels, c = k % channels;
      x[k] = table[static_cast<size_t>(tokens[row]) * channels + c] + positions[row % sequence * channels + c];
    }
    Block::masked(&x, embedding_mask);
    for (const Block &block : blocks) {
      x = block.forward(x, p);
      p += block.parameter_count();
    }
    return head(x, p, tied ? table : p + 2 * channels, targets, channels, vocabulary);
  }
};

}  // namespace reference
