#include "arena/pack.h"

#include <gtest/gtest.h>

#include <random>

#include "arena/pack_exact.h"
#include "support/pack_check.h"

namespace ckpt::arena {
namespace {

using testing::data_folder;
using testing::fault_of;
using testing::largest_load;
using testing::lowest_height;
using testing::read_instance;

Packing packed(const std::vector<PackBuffer> &buffers, PackLimits limits = {}) {
  Packing p;
  EXPECT_EQ(pack(buffers, limits, &p), CKPT_OK) << last_error();
  EXPECT_EQ(fault_of(buffers, p), "");
  EXPECT_GE(p.height, p.lower_bound);
  return p;
}

TEST(pack, nothing_takes_nothing) {
  const Packing p = packed({});
  EXPECT_EQ(p.height, 0u);
  EXPECT_EQ(p.lower_bound, 0u);
  EXPECT_TRUE(p.proved);
  EXPECT_FALSE(p.refuted);
  EXPECT_TRUE(p.offsets.empty());
}

TEST(pack, one_buffer_lies_at_zero) {
  const Packing p = packed({{7, 9, 100}});
  EXPECT_EQ(p.offsets[0], 0u);
  EXPECT_EQ(p.height, 100u);
  EXPECT_TRUE(p.proved);
}

TEST(pack, zero_bytes_take_no_place) {
  const Packing p = packed({{0, 9, 0}, {0, 9, 5}, {3, 4, 0}, {0, 9, 6}});
  EXPECT_EQ(p.height, 11u);
  EXPECT_EQ(p.lower_bound, 11u);
  EXPECT_EQ(packed({{0, 1, 0}, {0, 1, 0}}).height, 0u);
}

TEST(pack, lifetimes_are_half_open) {
  EXPECT_EQ(packed({{0, 5, 8}, {5, 9, 8}}).height, 8u);
  EXPECT_EQ(packed({{0, 6, 8}, {5, 9, 8}}).height, 16u);
}

TEST(pack, equal_lifetimes_are_stacked_without_a_gap) {
  std::vector<PackBuffer> buffers;
  size_t sum = 0;
  for (size_t k = 1; k <= 200; ++k) {
    buffers.push_back({10, 20, k * 3});
    sum += k * 3;
  }
  const Packing p = packed(buffers);
  EXPECT_EQ(p.height, sum);
  EXPECT_TRUE(p.proved);
}

TEST(pack, equal_buffers_are_told_apart) {
  const std::vector<PackBuffer> buffers(50, PackBuffer{0, 1, 64});
  EXPECT_EQ(packed(buffers).height, 50u * 64);
}

TEST(pack, times_at_the_end_of_their_range) {
  const uint64_t last = UINT64_MAX;
  const Packing p = packed({{0, last, 3}, {last - 1, last, 4}, {0, 1, 5}});
  EXPECT_EQ(p.height, 8u);
}

TEST(pack, sizes_near_the_largest) {
  const size_t half = size_t{1} << 62;
  EXPECT_EQ(packed({{0, 2, half}, {1, 3, half - 1}}).height, 2 * half - 1);
  EXPECT_EQ(packed({{0, 1, 2 * half - 1}, {1, 2, 2 * half - 1}}).height, 2 * half - 1);
  // Two units of 2^62 - 1 bytes and a byte: no common divisor.
  EXPECT_EQ(packed({{0, 9, half - 1}, {0, 9, half - 1}, {0, 9, 1}}).height, 2 * half - 1);
}

TEST(pack, a_live_load_beyond_the_largest_is_refused) {
  const size_t half = size_t{1} << 62;
  Packing p;
  const std::vector<PackBuffer> buffers = {{0, 2, half}, {1, 3, half}};
  EXPECT_EQ(pack(buffers, {}, &p), CKPT_ERROR_OVERFLOW);
  EXPECT_NE(std::string(last_error()).find("buffers[1] of 4611686018427387904 bytes"), std::string::npos) << last_error();
  const std::vector<PackBuffer> one = {{0, 2, 2 * half}};
  EXPECT_EQ(pack(one, {}, &p), CKPT_ERROR_OVERFLOW);
  const std::vector<PackBuffer> wraps = {{0, 2, 2 * half - 1}, {0, 2, 3 * half}};
  EXPECT_EQ(pack(wraps, {}, &p), CKPT_ERROR_OVERFLOW);
}

TEST(pack, an_empty_lifetime_is_refused) {
  Packing p;
  for (const PackBuffer bad : {PackBuffer{5, 5, 1}, PackBuffer{6, 5, 1}, PackBuffer{6, 5, 0}}) {
    const std::vector<PackBuffer> buffers = {{0, 1, 1}, bad};
    EXPECT_EQ(pack(buffers, {}, &p), CKPT_ERROR_INVALID_ARGUMENT);
    const std::string want = "buffers[1] ends at 5, expected later than its begin at " + std::to_string(bad.begin);
    EXPECT_NE(std::string(last_error()).find(want), std::string::npos) << last_error();
  }
}

// Live load 6, lowest height 7. Of a million random instances of this size about four are like that.
const std::vector<PackBuffer> kAboveItsLoad = {{0, 5, 4}, {9, 10, 3}, {5, 8, 2}, {5, 6, 3}, {1, 7, 1}, {6, 10, 2}, {7, 8, 2}};

TEST(pack, the_live_load_cannot_always_be_reached) {
  const Packing p = packed(kAboveItsLoad);
  EXPECT_EQ(p.lower_bound, 6u);
  EXPECT_EQ(p.height, 7u);
  EXPECT_TRUE(p.proved);
  EXPECT_FALSE(p.refuted);
  const Packing refuted = packed(kAboveItsLoad, {.capacity = 6, .work = 0});
  EXPECT_EQ(refuted.height, 7u);
  EXPECT_TRUE(refuted.refuted);
  EXPECT_EQ(lowest_height(kAboveItsLoad), 7u);
}

// Any, or near the one above.
std::vector<PackBuffer> small_instance(std::mt19937 &random, size_t count, uint32_t times, uint32_t sizes) {
  if (random() % 2 == 0) {
    std::vector<PackBuffer> buffers = kAboveItsLoad;
    PackBuffer &b = buffers[random() % buffers.size()];
    switch (random() % 4) {
      case 0: b.bytes += 1; break;
      case 1: b.bytes -= b.bytes > 1; break;
      case 2: b.end += 1; break;
      default: b.begin -= b.begin > 0; break;
    }
    if (random() % 2 == 0) std::swap(buffers[random() % buffers.size()], buffers[0]);
    return buffers;
  }
  std::vector<PackBuffer> buffers;
  for (size_t k = 0; k < count; ++k) {
    const uint64_t begin = random() % times;
    buffers.push_back({begin, begin + 1 + random() % (times - begin), 1 + random() % sizes});
  }
  return buffers;
}

TEST(pack, small_ones_are_as_low_as_any) {
  std::mt19937 random(1);
  int above_load = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::vector<PackBuffer> buffers = small_instance(random, 1 + random() % 7, 6, 4);
    const Packing p = packed(buffers);
    ASSERT_TRUE(p.proved);
    ASSERT_EQ(p.lower_bound, largest_load(buffers));
    ASSERT_EQ(p.height, lowest_height(buffers));
    above_load += p.height > p.lower_bound;
  }
  EXPECT_GT(above_load, 0);  // else the exact search was not needed at all
}

// Without the greedy orders before it, at every height from below the load to above the lowest.
TEST(pack, the_exact_search_decides_every_height_as_trying_all_offsets_does) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<PackBuffer> buffers = small_instance(random, 3 + random() % 5, 6, 5);
    PackParts parts;
    ASSERT_EQ(split(buffers, &parts), CKPT_OK);
    for (const PackProblem &problem : parts.parts) {
      std::vector<PackBuffer> own;
      for (size_t k = 0; k < problem.items.size(); ++k) own.push_back({problem.items[k].first, problem.items[k].last, problem.items[k].size});
      const size_t lowest = lowest_height(own);
      ExactSearch search(problem);
      for (uint32_t p = 0; p < ExactSearch::kPreferences; ++p)
        for (const uint32_t seed : {0u, 1u})
          for (size_t height = problem.bound - 1; height <= lowest + 2; ++height) {
            const auto outcome = search.run(height, static_cast<ExactSearch::Preference>(p), seed, 1'000'000'000);
            ASSERT_EQ(outcome, height < lowest ? ExactSearch::Outcome::none : ExactSearch::Outcome::found) << "height " << height << " of " << lowest;
            if (outcome != ExactSearch::Outcome::found) continue;
            Packing found;
            found.offsets = search.offsets();
            for (size_t k = 0; k < own.size(); ++k) found.height = std::max(found.height, found.offsets[k] + own[k].bytes);
            ASSERT_EQ(fault_of(own, found), "");
            ASSERT_LE(found.height, height);
          }
    }
  }
}

TEST(pack, a_capacity_is_low_enough) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const std::vector<PackBuffer> buffers = small_instance(random, 6, 6, 4);
    const size_t lowest = lowest_height(buffers);
    for (size_t capacity = lowest > 2 ? lowest - 2 : 1; capacity <= lowest + 2; ++capacity) {
      const Packing p = packed(buffers, {.capacity = capacity, .work = 0});
      ASSERT_EQ(p.refuted, capacity < lowest);
      if (capacity >= lowest) { ASSERT_LE(p.height, capacity); }
      if (p.proved) { ASSERT_EQ(p.height, lowest); }
    }
  }
}

TEST(pack, parts_of_the_time_axis_do_not_meet) {
  // The first part's lowest height is above its load, and above the load of the others.
  std::vector<PackBuffer> buffers = kAboveItsLoad;
  for (uint64_t k = 0; k < 1000; ++k) buffers.push_back({10 + 3 * k, 12 + 3 * k, 1 + k % 3});
  const Packing p = packed(buffers);
  EXPECT_EQ(p.height, 7u);
  EXPECT_TRUE(p.proved);
}

TEST(pack, work_stops_at_its_limit_and_nothing_is_claimed) {
  std::mt19937 random(4);
  std::vector<PackBuffer> buffers;
  for (int k = 0; k < 300; ++k) {
    const uint64_t begin = random() % 100;
    buffers.push_back({begin, begin + 1 + random() % 40, 1 + random() % 1000});
  }
  size_t before = SIZE_MAX;
  for (const uint64_t work : {uint64_t{1}, uint64_t{100'000}, uint64_t{10'000'000}}) {
    const Packing p = packed(buffers, {.capacity = 0, .work = work});
    EXPECT_LE(p.height, before);
    if (p.height > p.lower_bound) { EXPECT_FALSE(p.proved); }
    EXPECT_LE(p.work, work + 1'000'000);
    before = p.height;
  }
}

// Beyond what the list of placed buffers and the exact search take.
TEST(pack, many_short_buffers) {
  std::mt19937 random(5);
  std::vector<PackBuffer> buffers;
  for (int k = 0; k < 40'000; ++k) {
    const uint64_t begin = random() % 100'000;
    buffers.push_back({begin, begin + 1 + random() % 50, 64 * (1 + random() % 100)});
  }
  Packing p;
  ASSERT_EQ(pack(buffers, {.capacity = 0, .work = 20'000'000}, &p), CKPT_OK);
  // By a sweep over offsets in time: no overlap.
  std::vector<uint32_t> order(buffers.size());
  for (uint32_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return buffers[a].begin < buffers[b].begin; });
  for (size_t x = 0; x < order.size(); ++x)
    for (size_t y = x + 1; y < order.size() && buffers[order[y]].begin < buffers[order[x]].begin + 51; ++y) {
      const uint32_t a = order[x], b = order[y];
      if (!testing::overlap_in_time(buffers[a], buffers[b])) continue;
      ASSERT_TRUE(p.offsets[a] + buffers[a].bytes <= p.offsets[b] || p.offsets[b] + buffers[b].bytes <= p.offsets[a]);
    }
  EXPECT_LT(static_cast<double>(p.height), 1.1 * static_cast<double>(p.lower_bound));
}

// ---- published instances, where they are at hand ----

class Published : public ::testing::TestWithParam<const char *> {};

TEST_P(Published, capacity_is_reached) {
  const std::filesystem::path file = data_folder() / "minimalloc" / (std::string(GetParam()) + ".1048576.csv");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no instance " << file.filename() << " of MiniMalloc's set: CKPT_TEST_DATA names its folder";
  const std::vector<PackBuffer> buffers = read_instance(file);
  ASSERT_GT(buffers.size(), 100u);
  const Packing p = packed(buffers, {.capacity = 1048576, .work = 0});
  EXPECT_LE(p.height, 1048576u);
  EXPECT_EQ(p.lower_bound, largest_load(buffers));
}

INSTANTIATE_TEST_SUITE_P(minimalloc, Published, ::testing::Values("A", "B", "D", "E", "G", "I", "K"), [](const auto &of) { return std::string(of.param); });

class Trace : public ::testing::TestWithParam<const char *> {};

TEST_P(Trace, is_within_a_percent_of_the_live_load) {
  const std::filesystem::path file = data_folder() / "training_traces" / (std::string(GetParam()) + ".csv");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no training trace " << file.filename() << ": CKPT_TEST_DATA names its folder";
  const std::vector<PackBuffer> buffers = read_instance(file);
  ASSERT_GT(buffers.size(), 800u);
  const Packing p = packed(buffers);
  EXPECT_LE(static_cast<double>(p.height), 1.01 * static_cast<double>(p.lower_bound));
}

INSTANTIATE_TEST_SUITE_P(training, Trace, ::testing::Values("resnet50", "G_1"), [](const auto &of) { return std::string(of.param); });

}  // namespace
}  // namespace ckpt::arena
