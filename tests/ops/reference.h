// The layers again, in double precision, one element at a time, written for reading: what the kernels are compared with. Gradients
// are checked against central differences of these functions, and against the formulas worked out here by hand.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace reference {

using Values = std::vector<double>;

inline Values of(const std::vector<float> &from) { return Values(from.begin(), from.end()); }

// d sum(out_grad * f(x)) / dx by central differences.
inline Values differences(const std::function<Values(const Values &)> &f, Values x, const Values &out_grad, double step = 1e-5) {
  Values grad(x.size());
  const auto weighted = [&] {
    const Values out = f(x);
    double sum = 0.0;
    for (size_t k = 0; k < out.size(); ++k) sum += out[k] * out_grad[k];
    return sum;
  };
  for (size_t k = 0; k < x.size(); ++k) {
    const double at = x[k];
    x[k] = at + step;
    const double above = weighted();
    x[k] = at - step;
    const double below = weighted();
    x[k] = at;
    grad[k] = (above - below) / (2.0 * step);
  }
  return grad;
}

inline Values linear(const Values &in, const Values &weight, const Values &bias, size_t rows, size_t inputs, size_t outputs) {
  Values out(rows * outputs);
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0.0 : bias[o];
      for (size_t i = 0; i < inputs; ++i) sum += in[r * inputs + i] * weight[o * inputs + i];
      out[r * outputs + o] = sum;
    }
  return out;
}

struct LinearGradients {
  Values in, weight, bias;
};
inline LinearGradients linear_backward(const Values &in, const Values &weight, const Values &out_grad, size_t rows, size_t inputs,
                                       size_t outputs) {
  LinearGradients g{Values(rows * inputs), Values(outputs * inputs), Values(outputs)};
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < outputs; ++o) {
      const double d = out_grad[r * outputs + o];
      g.bias[o] += d;
      for (size_t i = 0; i < inputs; ++i) {
        g.in[r * inputs + i] += d * weight[o * inputs + i];
        g.weight[o * inputs + i] += d * in[r * inputs + i];
      }
    }
  return g;
}

inline Values layernorm(const Values &in, const Values &weight, const Values &bias, size_t rows, size_t channels, double epsilon) {
  Values out(in.size());
  for (size_t r = 0; r < rows; ++r) {
    const double *x = &in[r * channels];
    double mean = 0.0, variance = 0.0;
    for (size_t c = 0; c < channels; ++c) mean += x[c] / static_cast<double>(channels);
    for (size_t c = 0; c < channels; ++c) variance += (x[c] - mean) * (x[c] - mean) / static_cast<double>(channels);
    for (size_t c = 0; c < channels; ++c) out[r * channels + c] = (x[c] - mean) / std::sqrt(variance + epsilon) * weight[c] + bias[c];
  }
  return out;
}

inline double gelu(double x) { return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x))); }
inline double gelu_slope(double x) {
  const double c = std::sqrt(2.0 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * 0.044715 * x * x);
}

struct Attention {
  size_t batch, sequence, heads, channels;
  size_t size() const { return channels / heads; }
  size_t at(size_t b, size_t t, size_t part, size_t h, size_t i) const {
    return ((b * sequence + t) * 3 + part) * channels + h * size() + i;
  }
  size_t out_at(size_t b, size_t t, size_t h, size_t i) const { return (b * sequence + t) * channels + h * size() + i; }
  size_t weight_at(size_t b, size_t h, size_t t, size_t s) const { return ((b * heads + h) * sequence + t) * sequence + s; }

  Values weights(const Values &qkv) const {
    Values w(batch * heads * sequence * sequence);
    for (size_t b = 0; b < batch; ++b)
      for (size_t h = 0; h < heads; ++h)
        for (size_t t = 0; t < sequence; ++t) {
          double sum = 0.0;
          for (size_t s = 0; s <= t; ++s) {
            double dot = 0.0;
            for (size_t i = 0; i < size(); ++i) dot += qkv[at(b, t, 0, h, i)] * qkv[at(b, s, 1, h, i)];
            sum += w[weight_at(b, h, t, s)] = std::exp(dot / std::sqrt(static_cast<double>(size())));
          }
          for (size_t s = 0; s <= t; ++s) w[weight_at(b, h, t, s)] /= sum;
        }
    return w;
  }

  // `mask` is what each weight is multiplied by (0 or 1 / (1 - p)); empty: 1.
  Values out(const Values &qkv, const Values &mask) const {
    const Values w = weights(qkv);
    Values result(batch * sequence * channels);
    for (size_t b = 0; b < batch; ++b)
      for (size_t h = 0; h < heads; ++h)
        for (size_t t = 0; t < sequence; ++t)
          for (size_t s = 0; s <= t; ++s) {
            const size_t k = weight_at(b, h, t, s);
            for (size_t i = 0; i < size(); ++i)
              result[out_at(b, t, h, i)] += w[k] * (mask.empty() ? 1.0 : mask[k]) * qkv[at(b, s, 2, h, i)];
          }
    return result;
  }

  Values backward(const Values &qkv, const Values &mask, const Values &out_grad) const {
    const Values w = weights(qkv);
    const double scale = 1.0 / std::sqrt(static_cast<double>(size()));
    Values grad(qkv.size());
    for (size_t b = 0; b < batch; ++b)
      for (size_t h = 0; h < heads; ++h)
        for (size_t t = 0; t < sequence; ++t) {
          Values weight_grad(t + 1);
          double mean = 0.0;
          for (size_t s = 0; s <= t; ++s) {
            const size_t k = weight_at(b, h, t, s);
            const double m = mask.empty() ? 1.0 : mask[k];
            for (size_t i = 0; i < size(); ++i) {
              weight_grad[s] += m * out_grad[out_at(b, t, h, i)] * qkv[at(b, s, 2, h, i)];
              grad[at(b, s, 2, h, i)] += m * w[k] * out_grad[out_at(b, t, h, i)];
            }
            mean += w[k] * weight_grad[s];
          }
          for (size_t s = 0; s <= t; ++s) {
            const double score_grad = w[weight_at(b, h, t, s)] * (weight_grad[s] - mean) * scale;
            for (size_t i = 0; i < size(); ++i) {
              grad[at(b, t, 0, h, i)] += score_grad * qkv[at(b, s, 1, h, i)];
              grad[at(b, s, 1, h, i)] += score_grad * qkv[at(b, t, 0, h, i)];
            }
          }
        }
    return grad;
  }
};

inline double cross_entropy(const Values &logits, const std::vector<int32_t> &targets, size_t vocabulary, int32_t ignored) {
  double sum = 0.0;
  size_t counted = 0;
  for (size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] == ignored) continue;
    double all = 0.0;
    for (size_t v = 0; v < vocabulary; ++v) all += std::exp(logits[r * vocabulary + v]);
    sum += std::log(all) - logits[r * vocabulary + static_cast<size_t>(targets[r])];
    ++counted;
  }
  return counted == 0 ? 0.0 : sum / static_cast<double>(counted);
}

}  // namespace reference
