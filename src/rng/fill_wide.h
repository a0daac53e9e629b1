// The vector fills, written once over a set of lanes. Included by fill_avx2.cpp and fill_avx512.cpp only, *behind* their
// target pragma: every function below must be compiled for that instruction set.
//
// A vector of 64-bit elements holds one counter word of several blocks, in the low halves; the high halves hold whatever
// is left there. So a round is a 32 x 32 -> 64 multiplication (which reads low halves only), a shift and two xors: no
// shuffles. The order of blocks in a vector (L::first_blocks) is the one that makes joining the four words a plain unpack.
#pragma once

#include "rng/fill.h"
#include "rng/normal.h"

namespace ckpt::rng {
namespace {

template <class L>
struct Four {  // the four words of L::kBlocks blocks
  typename L::U word[kWordsPerBlock];
};

// `Chains` vectors at a time, to hide the latency of the multiplications.
template <class L, int Chains>
CKPT_BOTH_SIDES void philox_wide(const Stream &stream, uint64_t block, Four<L> *out) {
  using U = typename L::U;
  const U c2 = L::constant64(stream.subsequence), c3 = L::constant64(stream.subsequence >> 32);
#pragma GCC unroll 4
  for (int k = 0; k < Chains; ++k) {
    const U blocks = L::sum64(L::constant64(block + static_cast<uint64_t>(k) * L::kBlocks), L::first_blocks());
    out[k] = {{blocks, L::high_half(blocks), c2, c3}};
  }
  const U multiplier0 = L::constant64(kMultiplier0), multiplier1 = L::constant64(kMultiplier1);
  uint32_t key0 = static_cast<uint32_t>(stream.seed), key1 = static_cast<uint32_t>(stream.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kRounds; ++round) {
    const U k0 = L::constant64(key0), k1 = L::constant64(key1);
#pragma GCC unroll 4
    for (int k = 0; k < Chains; ++k) {
      U *c = out[k].word;
      const U p0 = L::product(c[0], multiplier0), p1 = L::product(c[2], multiplier1);
      c[0] = L::flip3(L::high_half(p1), c[1], k0);
      c[1] = p1;
      c[2] = L::flip3(L::high_half(p0), c[3], k1);
      c[3] = p0;
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

// Two vectors with the words in order.
template <class L>
CKPT_BOTH_SIDES void in_order(typename L::U first_pair, typename L::U second_pair, typename L::U *low, typename L::U *high) {
  *low = L::unpack_low(first_pair, second_pair);
  *high = L::unpack_high(first_pair, second_pair);
}

template <class L>
struct WriteWords {
  using Element = uint32_t;
  CKPT_BOTH_SIDES void operator()(const Four<L> &x, uint32_t *out) const {
    typename L::U low, high;
    in_order<L>(L::low_halves(x.word[0], x.word[1]), L::low_halves(x.word[2], x.word[3]), &low, &high);
    L::store(out, low);
    L::store(out + L::kWords / 2, high);
  }
};

template <class L>
struct WriteUniform {
  using Element = float;
  CKPT_BOTH_SIDES void operator()(const Four<L> &x, float *out) const {
    typename L::U low, high;
    in_order<L>(L::low_halves(x.word[0], x.word[1]), L::low_halves(x.word[2], x.word[3]), &low, &high);
    const auto scale = L::constant(0x1p-32f), half = L::constant(0x1p-33f);
    L::store(out, L::bits(L::fma(L::from_unsigned(low), scale, half)));
    L::store(out + L::kWords / 2, L::bits(L::fma(L::from_unsigned(high), scale, half)));
  }
};

template <class L>
struct WriteNormal {
  using Element = float;
  float mean, stddev;
  CKPT_BOTH_SIDES void operator()(const Four<L> &x, float *out) const {
    typename L::F sine, cosine;
    box_muller<L>(L::low_halves(x.word[0], x.word[2]), L::low_halves(x.word[1], x.word[3]), &sine, &cosine);
    const auto scale = L::constant(stddev), shift = L::constant(mean);
    const auto s = L::bits(L::fma(scale, sine, shift)), c = L::bits(L::fma(scale, cosine, shift));
    typename L::U low, high;
    in_order<L>(L::low_halves(s, c), L::high_halves(s, c), &low, &high);
    L::store(out, low);
    L::store(out + L::kWords / 2, high);
  }
};

template <class L>
struct WriteBelow {
  using Element = uint8_t;
  uint32_t threshold;
  CKPT_BOTH_SIDES void operator()(const Four<L> &x, uint8_t *out) const {
    typename L::U low, high;
    in_order<L>(L::low_halves(x.word[0], x.word[1]), L::low_halves(x.word[2], x.word[3]), &low, &high);
    L::store_below(out, low, high, threshold);
  }
};

template <class L, int Chains, class Write>
CKPT_BOTH_SIDES void write_at(const Stream &stream, uint64_t block, const Write &write, typename Write::Element *out) {
  Four<L> words[Chains];
  philox_wide<L, Chains>(stream, block, words);
#pragma GCC unroll 4
  for (int k = 0; k < Chains; ++k) write(words[k], out + k * L::kWords);
}

// The ends of a fill: a whole vector of blocks aside, of which `count` elements from `lane` on are taken.
template <class L, class Write>
void write_part(const Stream &stream, uint64_t block, const Write &write, size_t lane, size_t count,
                typename Write::Element *out) {
  alignas(64) typename Write::Element all[L::kWords];
  write_at<L, 1>(stream, block, write, all);
  __builtin_memcpy(out, all + lane, count * sizeof all[0]);
}

template <class L, int Chains, class Write>
CKPT_BOTH_SIDES void fill_whole(const Stream &stream, uint64_t &block, const Write &write, size_t &count,
                                typename Write::Element *&out) {
  constexpr size_t kStep = Chains * L::kWords;
  for (; count >= kStep; count -= kStep, out += kStep, block += kStep / kWordsPerBlock)
    write_at<L, Chains>(stream, block, write, out);
}

template <class L, class Write>
void fill(const Stream &stream, size_t count, typename Write::Element *out, const Write &write) {
  if (count == 0) return;  // `out` may be NULL
  uint64_t block = stream.word / kWordsPerBlock;
  if (const size_t lane = stream.word % kWordsPerBlock; lane != 0) {
    const size_t room = L::kWords - lane, taken = count < room ? count : room;
    write_part<L>(stream, block, write, lane, taken, out);
    block += L::kBlocks;
    out += taken;
    count -= taken;
  }
  fill_whole<L, L::kChains>(stream, block, write, count, out);
  if (L::kChains > 2) fill_whole<L, 2>(stream, block, write, count, out);
  fill_whole<L, 1>(stream, block, write, count, out);
  if (count > 0) write_part<L>(stream, block, write, 0, count, out);
}

template <class L>
void fill_u32(const Stream &stream, size_t count, uint32_t *out) {
  fill<L>(stream, count, out, WriteWords<L>{});
}
template <class L>
void fill_uniform(const Stream &stream, size_t count, float *out) {
  fill<L>(stream, count, out, WriteUniform<L>{});
}
template <class L>
void fill_normal(const Stream &stream, size_t count, float mean, float stddev, float *out) {
  fill<L>(stream, count, out, WriteNormal<L>{mean, stddev});
}
template <class L>
void fill_below(const Stream &stream, size_t count, uint32_t threshold, uint8_t *out) {
  fill<L>(stream, count, out, WriteBelow<L>{threshold});
}

}  // namespace
}  // namespace ckpt::rng
