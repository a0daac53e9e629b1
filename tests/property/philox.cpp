// A fill cut into pieces equals the whole, wherever it is cut; packing is injective.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>
#include <vector>

#include "ckpt/rng.h"

namespace {

rc::Gen<ckpt_philox> snapshots() {
  return rc::gen::apply(
      [](uint64_t seed, uint64_t subsequence, uint64_t offset) {
        return ckpt_philox{seed, subsequence, offset >> 1, nullptr};
      },
      rc::gen::arbitrary<uint64_t>(), rc::gen::arbitrary<uint64_t>(), rc::gen::arbitrary<uint64_t>());
}

template <class T, class Fill>
void expect_pieces_equal_whole(const Fill &fill) {
  const ckpt_philox philox = *snapshots();
  const uint64_t first = *rc::gen::inRange<uint64_t>(0, uint64_t{1} << 40);
  const auto lengths = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 400));
  size_t count = 0;
  for (const size_t length : lengths) count += length;
  std::vector<T> whole(count), pieces(count);
  RC_ASSERT(fill(&philox, first, count, whole.data()) == CKPT_OK);
  size_t at = 0;
  for (const size_t length : lengths) {
    RC_ASSERT(fill(&philox, first + at, length, pieces.data() + at) == CKPT_OK);
    at += length;
  }
  RC_ASSERT(whole == pieces);
  // `first` and the snapshot's offset are one sum.
  ckpt_philox moved = philox;
  moved.offset += first;
  RC_ASSERT(fill(&moved, 0, count, pieces.data()) == CKPT_OK);
  RC_ASSERT(whole == pieces);
}

RC_GTEST_PROP(Philox, PiecesOfWordsEqualTheWhole, ()) { expect_pieces_equal_whole<uint32_t>(ckpt_philox_u32); }
RC_GTEST_PROP(Philox, PiecesOfUniformsEqualTheWhole, ()) { expect_pieces_equal_whole<float>(ckpt_philox_uniform); }
RC_GTEST_PROP(Philox, PiecesOfNormalsEqualTheWhole, ()) {
  expect_pieces_equal_whole<float>([](const ckpt_philox *philox, uint64_t first, size_t count, float *out) {
    return ckpt_philox_normal(philox, first, count, 1.0f, 2.0f, out);
  });
}
RC_GTEST_PROP(Philox, PiecesOfMasksEqualTheWhole, ()) {
  const double probability = *rc::gen::element(0.0, 0.1, 0.5, 0.9, 1.0);
  expect_pieces_equal_whole<uint8_t>([=](const ckpt_philox *philox, uint64_t first, size_t count, uint8_t *out) {
    return ckpt_philox_bernoulli(philox, first, count, probability, out);
  });
}

RC_GTEST_PROP(Philox, PackingIsInjectiveAndStepsAddUp, ()) {
  using Parts = std::tuple<uint64_t, uint64_t, uint32_t>;
  const auto parts = rc::gen::tuple(rc::gen::inRange<uint64_t>(0, uint64_t{1} << 36),
                                    rc::gen::inRange<uint64_t>(0, uint64_t{1} << 28), rc::gen::inRange<uint32_t>(0, 1u << 16));
  const Parts a = *parts, b = *parts;
  ckpt_philox pa, pb;
  RC_ASSERT(ckpt_philox_pack(1, std::get<0>(a), std::get<1>(a), std::get<2>(a), &pa) == CKPT_OK);
  RC_ASSERT(ckpt_philox_pack(1, std::get<0>(b), std::get<1>(b), std::get<2>(b), &pb) == CKPT_OK);
  RC_ASSERT((a == b) == (pa.subsequence == pb.subsequence && pa.offset == pb.offset));
  // The step through a step word is the step packed.
  ckpt_philox zero;
  RC_ASSERT(ckpt_philox_pack(1, 0, std::get<1>(a), std::get<2>(a), &zero) == CKPT_OK);
  const uint64_t step = std::get<0>(a);
  zero.step_word = &step;
  std::vector<uint32_t> packed(37), added(37);
  RC_ASSERT(ckpt_philox_u32(&pa, 3, 37, packed.data()) == CKPT_OK);
  RC_ASSERT(ckpt_philox_u32(&zero, 3, 37, added.data()) == CKPT_OK);
  RC_ASSERT(packed == added);
}

// No two elements of one snapshot's range, and no two snapshots, share a counter: a sample of words has no repeats beyond
// what chance gives (64 draws of 32 bits: a repeat in 1 of 2 million runs, so blocks of 128 bits are compared).
RC_GTEST_PROP(Philox, NeighbouringPartsDrawDifferentBlocks, ()) {
  const uint64_t step = *rc::gen::inRange<uint64_t>(0, 1000000), segment = *rc::gen::inRange<uint64_t>(0, 1000);
  std::vector<std::vector<uint32_t>> blocks;
  for (const uint64_t ds : {0, 1})
    for (const uint64_t dg : {0, 1})
      for (const uint32_t site : {0u, 1u}) {
        ckpt_philox philox;
        RC_ASSERT(ckpt_philox_pack(5, step + ds, segment + dg, site, &philox) == CKPT_OK);
        std::vector<uint32_t> words(8);
        RC_ASSERT(ckpt_philox_u32(&philox, 0, 8, words.data()) == CKPT_OK);
        blocks.emplace_back(words.begin(), words.begin() + 4);
        blocks.emplace_back(words.begin() + 4, words.end());
      }
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t k = 0; k < i; ++k) RC_ASSERT(blocks[i] != blocks[k]);
}

}  // namespace
