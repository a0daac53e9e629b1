// One pass over flat arrays: dropout with bias and residual, sums, normal values, conversions between types.
//
//   out = residual + mask(in + bias)      forward; the mask is drawn where it is used
//   in_grad (+)= mask(out_grad)           backward, the same mask from the same snapshot
//
// A thread takes as many elements as 16 bytes of the context's type hold (4 or 8), and one Philox block for each four of them. Arrays
// that do not begin at 16-byte boundaries, and the last elements, go one by one with the same arithmetic: the same bits.
#include "ops/cuda/element.h"
#include "ops/cuda/table.h"

#include <type_traits>

namespace ckpt::ops::cuda {
namespace {

constexpr unsigned kBlock = kElementBlock;

// out = residual + mask(in + bias), bias[element mod columns]. Vectors only where columns are a multiple of their lanes: none crosses rows.
template <class T>
struct Chain {
  const T *in, *bias, *residual;
  size_t count, columns;
  T *out;
};

template <bool kBias, bool kMask, bool kResidual>
CKPT_ON_DEVICE float chained(float in, float bias, uint32_t word, const Dropout &dropout, float residual) {
  float value = in;
  if (kBias) value = sum(value, bias);
  if (kMask) value = masked(value, word, dropout);
  if (kResidual) value = sum(residual, value);
  return value;
}

template <class T, bool kBias, bool kMask, bool kResidual>
__global__ void __launch_bounds__(kBlock) chain(Chain<T> c, Dropout dropout, size_t vectors) {
  constexpr unsigned kN = kLanes<T>;
  const Words4 words(kMask ? dropout.philox : ckpt_philox{});
  each<kN>(c.count, vectors, [&](uint64_t at) {
    const Floats<kN> in = load_vector(c.in + at);
    Floats<kN> bias = {}, residual = {}, out;
    uint32_t word[kN] = {};
    if (kBias) bias = load_vector(c.bias + at % c.columns);
    if (kResidual) residual = load_vector(c.residual + at);
    if (kMask) words.of(at, word);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) out.at[k] = chained<kBias, kMask, kResidual>(in.at[k], bias.at[k], word[k], dropout, residual.at[k]);
    store_vector(c.out + at, out);
  }, [&](uint64_t at) {
    const float bias = kBias ? as_float(c.bias[at % c.columns]) : 0.0f, residual = kResidual ? as_float(c.residual[at]) : 0.0f;
    const uint32_t word = kMask ? words.one(at) : 0;
    c.out[at] = rounded<T>(chained<kBias, kMask, kResidual>(as_float(c.in[at]), bias, word, dropout, residual));
  });
}

template <class T, bool kAccumulate>
__global__ void __launch_bounds__(kBlock) mask_gradient(const T *grad, Dropout dropout, bool masks, size_t count, size_t vectors, T *out) {
  constexpr unsigned kN = kLanes<T>;
  const Words4 words(dropout.philox);
  each<kN>(count, vectors, [&](uint64_t at) {
    Floats<kN> value = load_vector(grad + at);
    if (masks) {
      uint32_t word[kN];
      words.of(at, word);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) value.at[k] = masked(value.at[k], word[k], dropout);
    }
    if (kAccumulate) {
      const Floats<kN> before = load_vector(out + at);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) value.at[k] = sum(before.at[k], value.at[k]);
    }
    store_vector(out + at, value);
  }, [&](uint64_t at) {
    float value = as_float(grad[at]);
    if (masks) value = masked(value, words.one(at), dropout);
    out[at] = rounded<T>(kAccumulate ? sum(as_float(out[at]), value) : value);
  });
}

template <class T>
__global__ void __launch_bounds__(kBlock) add_arrays(const T *a, const T *b, size_t count, size_t vectors, T *out) {
  constexpr unsigned kN = kLanes<T>;
  each<kN>(count, vectors, [&](uint64_t at) {
    Floats<kN> x = load_vector(a + at);
    const Floats<kN> y = load_vector(b + at);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) x.at[k] = sum(x.at[k], y.at[k]);
    store_vector(out + at, x);
  }, [&](uint64_t at) { out[at] = rounded<T>(sum(as_float(a[at]), as_float(b[at]))); });
}

template <class To, class From>
__global__ void __launch_bounds__(kBlock) convert(const From *in, size_t count, size_t vectors, To *out) {
  constexpr unsigned kN = kLanes<To> > kLanes<From> ? kLanes<To> : kLanes<From>;
  each<kN>(count, vectors, [&](uint64_t at) {
    if constexpr (std::is_same_v<To, float>) {
      store_floats<kN>(out + at, load_vector(in + at));
    } else {
      store_vector(out + at, load_floats<kN>(in + at));
    }
  }, [&](uint64_t at) { out[at] = rounded<To>(as_float(in[at])); });
}

// Four normal values of a block: pairs are those of even words, whatever the fill's first element.
CKPT_ON_DEVICE Floats<4> normals(const rng::Block &block, float mean, float stddev) {
  Floats<4> out;
  rng::box_muller<rng::OneLane>(block.word[0], block.word[1], &out.at[0], &out.at[1]);
  rng::box_muller<rng::OneLane>(block.word[2], block.word[3], &out.at[2], &out.at[3]);
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) out.at[k] = fused(stddev, out.at[k], mean);
  return out;
}

// A thread makes a block and stores those of its values that the array has: initialisation, done once.
template <class T>
__global__ void __launch_bounds__(kBlock) normal_values(ckpt_philox philox, float mean, float stddev, size_t count, T *out) {
  const Words4 words(philox);
  const unsigned lane = static_cast<unsigned>(philox.offset % 4);
  for (uint64_t k = thread_of_grid(); k * 4 < count + lane; k += threads_of_grid()) {
    const Floats<4> values = normals(rng::block_at(words.seed, words.subsequence, words.offset / 4 + k), mean, stddev);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      if (const uint64_t element = 4 * k + i; element >= lane && element - lane < count) out[element - lane] = rounded<T>(values.at[i]);
  }
}

template <class T, bool kBias, bool kMask>
auto chain_with(bool residual) {
  return residual ? chain<T, kBias, kMask, true> : chain<T, kBias, kMask, false>;
}

template <class T>
auto chain_of(bool bias, bool mask, bool residual) {
  if (bias) return mask ? chain_with<T, true, true>(residual) : chain_with<T, true, false>(residual);
  return mask ? chain_with<T, false, true>(residual) : chain_with<T, false, false>(residual);
}

ckpt_status run_chain(Context &context, const char *name, const void *in, const void *bias, const void *residual, float probability,
                      const ckpt_philox *philox, size_t count, size_t columns, void *out) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const Chain<T> c = {static_cast<const T *>(in), static_cast<const T *>(bias), static_cast<const T *>(residual), count, columns,
                        static_cast<T *>(out)};
    const bool mask = probability != 0.0f;
    const Dropout dropout = mask ? dropout_of(probability, *philox) : Dropout{};
    const Cut cut = aligned16(c.in, c.bias, c.residual, c.out) && (bias == nullptr || columns % kLanes<T> == 0)
                        ? cut_vectors(context, count, kLanes<T>)
                        : cut_singly(context, count);
    return launch(context, name, chain_of<T>(bias != nullptr, mask, residual != nullptr), cut.blocks, kBlock, 0, c, dropout, cut.vectors);
  });
}

}  // namespace

ckpt_status dropout_forward(Context &context, const void *in, const void *residual, float probability, const ckpt_philox *philox,
                            size_t count, void *out) {
  return run_chain(context, "dropout_forward", in, nullptr, residual, probability, philox, count, count, out);
}

ckpt_status bias_dropout_residual(Context &context, const void *in, const void *bias, const void *residual, float probability,
                                  const ckpt_philox *philox, size_t rows, size_t columns, void *out) {
  return run_chain(context, "bias_dropout_residual", in, bias, residual, probability, philox, rows * columns, columns, out);
}

ckpt_status dropout_backward(Context &context, const void *out_grad, float probability, const ckpt_philox *philox, size_t count,
                             void *in_grad, uint32_t accumulate) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const auto *const grad = static_cast<const T *>(out_grad);
    auto *const out = static_cast<T *>(in_grad);
    const bool masks = probability != 0.0f;
    const Dropout dropout = masks ? dropout_of(probability, *philox) : Dropout{};
    const Cut cut = cut_of<kLanes<T>>(context, count, grad, out);
    return launch(context, "dropout_backward", accumulate != 0 ? mask_gradient<T, true> : mask_gradient<T, false>, cut.blocks, kBlock, 0,
                  grad, dropout, masks, count, cut.vectors, out);
  });
}

ckpt_status add(Context &context, const void *a, const void *b, size_t count, void *out) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const auto *const x = static_cast<const T *>(a), *const y = static_cast<const T *>(b);
    auto *const to = static_cast<T *>(out);
    const Cut cut = cut_of<kLanes<T>>(context, count, x, y, to);
    return launch(context, "add", add_arrays<T>, cut.blocks, kBlock, 0, x, y, count, cut.vectors, to);
  });
}

ckpt_status normal(Context &context, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    return launch(context, "normal", normal_values<T>, context.blocks(count / 4 + 2, kBlock), kBlock, 0, *philox, mean, stddev,
                  count, static_cast<T *>(out));
  });
}

ckpt_status from_float(Context &context, const float *in, size_t count, void *out) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    auto *const to = static_cast<T *>(out);
    const Cut cut = cut_of<kLanes<T>>(context, count, in, to);
    return launch(context, "from_float", convert<T, float>, cut.blocks, kBlock, 0, in, count, cut.vectors, to);
  });
}

ckpt_status to_float(Context &context, const void *in, size_t count, float *out) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const auto *const from = static_cast<const T *>(in);
    const Cut cut = cut_of<kLanes<T>>(context, count, from, out);
    return launch(context, "to_float", convert<float, T>, cut.blocks, kBlock, 0, from, count, cut.vectors, out);
  });
}

}  // namespace ckpt::ops::cuda
