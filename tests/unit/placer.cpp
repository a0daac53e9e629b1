#include "arena/placer.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ckpt::arena;

TEST(placer, low_grows_up_and_high_grows_down) {
  Placer p(100);
  const BlockId a = p.allocate(10, Side::low), b = p.allocate(20, Side::low);
  const BlockId x = p.allocate(5, Side::high), y = p.allocate(7, Side::high);
  EXPECT_EQ(p.offset(a), 0u);
  EXPECT_EQ(p.offset(b), 10u);
  EXPECT_EQ(p.offset(x), 95u);
  EXPECT_EQ(p.offset(y), 88u);
  EXPECT_EQ(p.offset(y, 1000), 988u);
  EXPECT_EQ(p.low_frontier(), 30u);
  EXPECT_EQ(p.high_frontier(), 12u);
  EXPECT_EQ(p.height(), 42u);
  EXPECT_EQ(p.in_use(), 42u);
  EXPECT_EQ(p.largest_free(), 58u);
}

TEST(placer, best_fit_takes_the_smallest_hole_and_of_equal_ones_the_nearest) {
  for (const Side side : {Side::low, Side::high}) {
    Placer p(1000);
    std::vector<BlockId> b;
    for (size_t bytes : {30u, 1u, 20u, 1u, 20u, 1u, 10u, 1u}) b.push_back(p.allocate(bytes, side));
    for (size_t k = 0; k < b.size(); k += 2) p.free(b[k]);
    // Holes: 30 at 0, 20 at 31, 20 at 52, 10 at 73 (distances from the end).
    const BlockId c = p.allocate(15, side);
    EXPECT_EQ(side == Side::low ? p.offset(c) : 1000 - p.offset(c) - 15, 31u);
    const BlockId d = p.allocate(20, side);
    EXPECT_EQ(side == Side::low ? p.offset(d) : 1000 - p.offset(d) - 20, 52u);
    const BlockId e = p.allocate(31, side);  // no hole is large enough
    EXPECT_EQ(side == Side::low ? p.offset(e) : 1000 - p.offset(e) - 31, 84u);
  }
}

TEST(placer, freeing_the_last_block_retreats_over_the_hole_before_it) {
  Placer p(100);
  const BlockId a = p.allocate(10, Side::low), b = p.allocate(10, Side::low), c = p.allocate(10, Side::low);
  p.free(b);
  EXPECT_EQ(p.low_frontier(), 30u);
  p.free(c);
  EXPECT_EQ(p.low_frontier(), 10u);
  EXPECT_EQ(p.height(), 30u);
  p.free(a);
  EXPECT_TRUE(p.empty());
  EXPECT_EQ(p.low_frontier(), 0u);
  EXPECT_EQ(p.height(), 30u);  // what was touched stays touched
  EXPECT_EQ(p.peak_in_use(), 30u);
  p.reset_peaks();
  EXPECT_EQ(p.height(), 0u);
  EXPECT_EQ(p.peak_in_use(), 0u);
}

TEST(placer, an_exhausted_end_borrows_from_the_other_ends_holes) {
  Placer p(100);
  const BlockId a = p.allocate(40, Side::low), b = p.allocate(60, Side::low);
  EXPECT_EQ(p.allocate(1, Side::high), kNoBlock);
  p.free(a);
  const BlockId c = p.allocate(30, Side::high);
  ASSERT_NE(c, kNoBlock);
  EXPECT_EQ(p.side(c), Side::low);
  EXPECT_EQ(p.offset(c), 0u);
  EXPECT_EQ(p.allocate(11, Side::low), kNoBlock);
  EXPECT_EQ(p.largest_free(), 10u);
  EXPECT_EQ(p.height(), 100u);
  p.free(b);
  p.free(c);
  EXPECT_EQ(p.largest_free(), 100u);
}

TEST(placer, a_refused_request_changes_nothing) {
  Placer p(100);
  const BlockId a = p.allocate(60, Side::low);
  EXPECT_EQ(p.allocate(41, Side::low), kNoBlock);
  EXPECT_EQ(p.allocate(SIZE_MAX, Side::high), kNoBlock);
  EXPECT_EQ(p.allocate(kUnbounded + 1, Side::high), kNoBlock);
  EXPECT_EQ(p.in_use(), 60u);
  EXPECT_EQ(p.height(), 60u);
  EXPECT_EQ(p.block_count(), 1u);
  EXPECT_EQ(p.allocate(40, Side::low), a + 1);
}

TEST(placer, zero_bytes_take_no_range_and_always_fit) {
  Placer p(10);
  const BlockId full = p.allocate(10, Side::low);
  const BlockId a = p.allocate(0, Side::low), b = p.allocate(0, Side::high);
  ASSERT_NE(a, kNoBlock);
  ASSERT_NE(b, kNoBlock);
  EXPECT_NE(a, b);
  EXPECT_EQ(p.offset(b), 0u);
  EXPECT_EQ(p.height(), 10u);
  EXPECT_EQ(p.block_count(), 3u);
  p.free(full);
  EXPECT_EQ(p.low_frontier(), 0u);
  EXPECT_TRUE(p.live(a));
  p.free(a);
  EXPECT_FALSE(p.live(a));
  p.free(b);
  EXPECT_TRUE(p.empty());
}

TEST(placer, sizes_beyond_four_gibibytes) {
  constexpr size_t kTiB = size_t{1} << 40;
  Placer p;
  const BlockId a = p.allocate(3 * kTiB, Side::low), b = p.allocate(5 * kTiB, Side::low);
  p.allocate(kTiB, Side::low);
  p.free(a);
  p.free(b);
  const BlockId c = p.allocate(8 * kTiB, Side::low);
  EXPECT_EQ(p.offset(c), 0u);
  EXPECT_EQ(p.height(), 9 * kTiB);
}

TEST(placer, capacity_may_be_lowered_below_what_is_live) {
  Placer p(100);
  p.allocate(80, Side::low);
  p.set_capacity(50);
  EXPECT_EQ(p.allocate(1, Side::low), kNoBlock);
  EXPECT_EQ(p.largest_free(), 0u);
  p.set_capacity(81);
  EXPECT_NE(p.allocate(1, Side::high), kNoBlock);
}

// Ties among thousands of equal holes are the worst case for a search tree; the answer must still be the nearest.
TEST(placer, many_equal_holes) {
  Placer p;
  std::vector<BlockId> b;
  for (int k = 0; k < 20000; ++k) b.push_back(p.allocate(64, Side::low));
  for (size_t k = 0; k < b.size(); k += 2) p.free(b[(k * 7919) % b.size()]);
  for (size_t k = 0; k < b.size(); k += 2) {
    const BlockId c = p.allocate(64, Side::low);
    ASSERT_EQ(p.offset(c), 64 * k);
  }
  EXPECT_EQ(p.low_frontier(), 64u * 20000);
}

// ---- regions ----

TEST(placer, a_region_takes_the_offsets_as_they_are_named) {
  Placer p(100);
  const uint64_t region = p.open_region(60);
  ASSERT_NE(region, 0u);
  EXPECT_EQ(p.region(), region);
  const BlockId a = p.allocate_at(40, 10), b = p.allocate_at(0, 20), z = p.allocate_at(7, 0);
  EXPECT_EQ(p.offset(a), 40u);
  EXPECT_EQ(p.offset(b), 0u);
  EXPECT_EQ(p.bytes(a), 10u);
  EXPECT_TRUE(p.live(a));
  EXPECT_TRUE(p.live(z));
  EXPECT_EQ(p.in_use(), 30u);
  EXPECT_EQ(p.height(), 50u);
  EXPECT_EQ(p.block_count(), 3u);
  p.free(a);
  EXPECT_FALSE(p.live(a));
  EXPECT_EQ(p.height(), 50u) << "what was touched stays touched";
  EXPECT_EQ(p.in_use(), 20u);
  const BlockId c = p.allocate_at(20, 40);
  EXPECT_EQ(p.height(), 60u);
  EXPECT_EQ(p.peak_in_use(), 60u);
  for (const BlockId block : {b, c, z}) p.free(block);
  EXPECT_TRUE(p.empty());
  EXPECT_EQ(p.region(), region) << "a step may be without any block for a moment";
  EXPECT_EQ(p.offset(p.allocate_at(30, 5)), 30u);
  EXPECT_EQ(p.decision_count(), 0u);
}

TEST(placer, a_region_lies_above_the_low_frontier_and_must_fit) {
  Placer p(100);
  const BlockId below = p.allocate(10, Side::low);
  p.allocate(20, Side::high);
  EXPECT_EQ(p.open_region(71), 0u);
  p.set_limit(90);
  EXPECT_EQ(p.open_region(61), 0u);
  EXPECT_NE(p.open_region(60), 0u);
  EXPECT_EQ(p.open_region(1), 0u) << "one at a time";
  const BlockId a = p.allocate_at(0, 60);
  EXPECT_EQ(p.offset(a), 10u);
  EXPECT_EQ(p.height(), 90u);
  p.free(below);  // nothing moves
  EXPECT_EQ(p.offset(a), 10u);
  EXPECT_EQ(p.region(), 1u);
  p.settle();
  EXPECT_EQ(p.region(), 0u);
  EXPECT_EQ(p.offset(p.allocate(10, Side::low)), 0u) << "the hole below it";
}

TEST(placer, a_request_without_an_offset_settles_the_region) {
  Placer p(100);
  p.open_region(80);
  const BlockId a = p.allocate_at(60, 10), b = p.allocate_at(10, 20), c = p.allocate_at(30, 5);
  EXPECT_EQ(p.largest_free(), 30u);
  const BlockId d = p.allocate(26, Side::low);  // holes: 10 at 0, 25 at 35
  EXPECT_EQ(p.region(), 0u);
  EXPECT_EQ(p.offset(d), 70u);
  EXPECT_EQ(p.offset(p.allocate(12, Side::low)), 35u);
  EXPECT_EQ(p.offset(p.allocate(10, Side::low)), 0u);
  EXPECT_EQ(p.offset(a), 60u);
  EXPECT_EQ(p.offset(b), 10u);
  p.free(b);
  p.free(c);
  EXPECT_EQ(p.offset(p.allocate(25, Side::low)), 10u) << "they coalesce";
  EXPECT_EQ(p.decision_count(), 4u);
  EXPECT_EQ(p.open_region(1), 2u) << "another number than the first one's";
}

TEST(placer, settling_without_blocks_and_without_a_region) {
  Placer p(100);
  p.settle();
  EXPECT_NE(p.open_region(100), 0u);
  p.settle();
  EXPECT_EQ(p.region(), 0u);
  EXPECT_EQ(p.offset(p.allocate(100, Side::high)), 0u);
}

TEST(placer, peaks_start_anew_in_a_region) {
  Placer p(100);
  p.open_region(100);
  const BlockId a = p.allocate_at(0, 10), b = p.allocate_at(50, 10);
  p.free(b);
  p.reset_peaks();
  EXPECT_EQ(p.height(), 10u);
  EXPECT_EQ(p.low_frontier(), 10u);
  EXPECT_EQ(p.peak_in_use(), 10u);
  p.allocate_at(20, 10);
  EXPECT_EQ(p.height(), 30u);
  p.free(a);
  EXPECT_EQ(p.height(), 30u);
  p.clear();
  EXPECT_EQ(p.region(), 0u);
  EXPECT_EQ(p.height(), 0u);
}

TEST(placer, a_copy_settles_by_itself) {
  Placer p(100);
  p.open_region(80);
  const BlockId a = p.allocate_at(20, 10);
  Placer copy = p;
  copy.settle();
  EXPECT_EQ(copy.offset(copy.allocate(20, Side::low)), 0u);
  EXPECT_EQ(copy.offset(a), 20u);
  EXPECT_EQ(p.region(), 1u);
  EXPECT_EQ(p.block_count(), 1u);
  EXPECT_EQ(p.offset(p.allocate_at(0, 5)), 0u);
}

}  // namespace
