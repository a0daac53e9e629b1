// Block by block, for machines without the vector units that fill_avx2.cpp and fill_avx512.cpp need.
#include <algorithm>

#include "rng/fill.h"
#include "rng/normal.h"

namespace ckpt::rng {
namespace {

// `make(block, out)` writes the four elements of a block.
template <class Element, class Make>
void fill(const Stream &stream, size_t count, Element *out, const Make &make) {
  uint64_t block = stream.word / kWordsPerBlock;
  const auto part = [&](size_t lane, size_t taken) {
    Element four[kWordsPerBlock];
    make(block_at(stream.seed, stream.subsequence, block++), four);
    std::copy_n(four + lane, taken, out);
    out += taken;
    count -= taken;
  };
  const size_t lane = stream.word % kWordsPerBlock;
  if (lane != 0) part(lane, std::min<size_t>(count, kWordsPerBlock - lane));
  for (; count >= kWordsPerBlock; count -= kWordsPerBlock, out += kWordsPerBlock)
    make(block_at(stream.seed, stream.subsequence, block++), out);
  if (count > 0) part(0, count);
}

void fill_u32(const Stream &stream, size_t count, uint32_t *out) {
  fill(stream, count, out, [](const Block &block, uint32_t *four) { std::copy_n(block.word, kWordsPerBlock, four); });
}

void fill_uniform(const Stream &stream, size_t count, float *out) {
  fill(stream, count, out, [](const Block &block, float *four) {
    for (size_t i = 0; i < kWordsPerBlock; ++i) four[i] = uniform_of(block.word[i]);
  });
}

void fill_normal(const Stream &stream, size_t count, float mean, float stddev, float *out) {
  fill(stream, count, out, [=](const Block &block, float *four) {
    for (size_t i = 0; i < kWordsPerBlock; i += 2)
      box_muller<OneLane>(block.word[i], block.word[i + 1], four + i, four + i + 1);
    for (size_t i = 0; i < kWordsPerBlock; ++i) four[i] = OneLane::fma(stddev, four[i], mean);
  });
}

void fill_below(const Stream &stream, size_t count, uint32_t threshold, uint8_t *out) {
  fill(stream, count, out, [=](const Block &block, uint8_t *four) {
    for (size_t i = 0; i < kWordsPerBlock; ++i) four[i] = passes(block.word[i], threshold);
  });
}

}  // namespace

const Fills kScalarFills = {fill_u32, fill_uniform, fill_normal, fill_below};

}  // namespace ckpt::rng
