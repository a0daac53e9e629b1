// What a forward computes, against the least solution found by trying all.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "support/plan_random.h"

namespace {

using namespace plan_test;

// A solution is a set of items and a set of groups whose kernel runs. Solutions of one question are closed under
// intersection, so one of them lies in all others.
struct Solution {
  uint32_t items, kernels;
  bool operator==(const Solution &) const = default;
};

uint32_t mask(const Bits &b) { return static_cast<uint32_t>(b.word(0)); }

bool solves(const Shape &s, uint32_t want, uint32_t live, const Solution &x) {
  if (want & ~live & ~x.items) return false;
  for (uint32_t k = 0; k < s.item_count(); ++k) {
    const uint32_t group = s.item(k).group, reads = mask(s.item(k).reads);
    const bool made = x.items >> k & 1, by_kernel = group != 0 && (x.kernels >> group & 1);
    uint32_t members = 0;
    for (uint32_t m = 0; m < s.item_count(); ++m)
      if (group != 0 && s.item(m).group == group) members |= 1u << m;
    if (by_kernel && (members & ~x.items)) return false;             // a kernel makes its whole group
    if (by_kernel && (reads & ~members & ~live & ~x.items)) return false;
    if (!made || by_kernel) continue;
    if (group == 0 && (reads & ~live & ~x.items)) return false;
    if (group != 0 && (!(s.item(k).flags & CKPT_SLOT_ALONE) || k >= s.slot_count() || (reads & ~live))) return false;
  }
  return true;
}

Solution least(const Shape &s, uint32_t want, uint32_t live) {
  uint32_t groups = 0;
  for (uint32_t k = 0; k < s.item_count(); ++k)
    if (s.item(k).group != 0) groups = std::max(groups, s.item(k).group);
  Solution best{~0u, ~0u};
  for (uint32_t kernels = 0; kernels < 2u << groups; kernels += 2)
    for (uint32_t items = 0; items < 1u << s.item_count(); ++items)
      if (solves(s, want, live, {items, kernels})) best = {best.items & items, best.kernels & kernels};
  return best;
}

std::string check(const Shape &s, uint32_t want, uint32_t live) {
  Bits w, l;
  w.set_word(0, want);
  l.set_word(0, live);
  const Closure got = s.closure(w, l);
  const Solution expected = least(s, want, live);
  if (!solves(s, want, live, expected)) return "the oracle's own solution is none";
  uint32_t alone = 0;
  for (uint32_t k = 0; k < s.item_count(); ++k)
    if ((expected.items >> k & 1) && s.item(k).group != 0 && !(expected.kernels >> s.item(k).group & 1)) alone |= 1u << k;
  if (mask(got.todo) == expected.items && mask(got.alone) == alone) return "";
  char text[200];
  std::snprintf(text, sizeof text, "want %x live %x: computes %x (alone %x), least is %x (alone %x)", want, live, mask(got.todo), mask(got.alone), expected.items, alone);
  return text;
}

RC_GTEST_PROP(ShapeClosure, IsTheLeastSet, ()) {
  Genes genes(*rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 4096)));
  RandomGraphLimits limits;
  limits.nodes = 1;
  limits.slots = 6;
  limits.not_replayable = false;
  const RandomGraph r = random_graph(&genes, limits);
  const Shape &s = *r.graph.nodes[0].shape;
  for (uint32_t trial = 0; trial < 4; ++trial) {
    const uint32_t want = *rc::gen::inRange<uint32_t>(0, 1u << s.item_count()), live = *rc::gen::inRange<uint32_t>(0, 1u << s.item_count());
    const std::string found = check(s, want, live);
    if (!found.empty()) RC_FAIL(found);
  }
}

// All questions about some shapes of a few items, most of them with groups and members that can be made alone.
TEST(ShapeClosure, AllQuestionsAboutSmallShapes) {
  uint32_t grouped = 0, alone = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Genes genes = Genes::endless(seed);
    RandomGraphLimits limits;
    limits.nodes = 1;
    limits.slots = 3;
    const RandomGraph r = random_graph(&genes, limits);
    const Shape &s = *r.graph.nodes[0].shape;
    for (uint32_t want = 0; want < 1u << s.item_count(); ++want)
      for (uint32_t live = 0; live < 1u << s.item_count(); ++live) ASSERT_EQ(check(s, want, live), "") << "seed " << seed;
    for (uint32_t k = 0; k < s.item_count(); ++k) {
      grouped += s.item(k).group != 0;
      alone += k < s.slot_count() && (s.item(k).flags & CKPT_SLOT_ALONE);
    }
  }
  EXPECT_GT(grouped, 100u);
  EXPECT_GT(alone, 30u);
}

Item item(const char *name, std::vector<uint32_t> reads, uint32_t group = 0, uint32_t flags = 0) {
  Item it;
  it.name = name;
  it.group = group;
  it.flags = flags;
  for (uint32_t r : reads) it.reads.set(r);
  return it;
}

// Attention: one kernel makes values and statistics; the mask can be made by itself, from its seed.
TEST(ShapeClosure, AMemberAloneOrByItsKernel) {
  auto s = Shape::create("attention", {item("qkv", {}), item("stats", {0}, 1), item("seed", {}), item("mask", {2}, 1, CKPT_SLOT_ALONE)}, {item("out", {0}, 1)}, {0}, 0, 0, true, false);
  ASSERT_TRUE(s.ok()) << last_error();
  const auto made = [&](uint32_t want, uint32_t live) {
    Bits w, l;
    w.set_word(0, want);
    l.set_word(0, live);
    const Closure c = s->closure(w, l);
    return std::pair(mask(c.todo), mask(c.alone));
  };
  EXPECT_EQ(made(8, 4), std::pair(8u, 8u));      // its seed is there
  EXPECT_EQ(made(8, 0), std::pair(31u, 0u));     // it is not: the kernel, and all that it reads
  EXPECT_EQ(made(8 | 2, 4), std::pair(27u, 0u)); // the kernel runs anyway
  EXPECT_EQ(made(16, 1 | 4), std::pair(26u, 0u));
  EXPECT_EQ(made(16, 1 | 2 | 4 | 8), std::pair(26u, 0u));  // live members are made again in place
  EXPECT_EQ(made(1 | 8, 4), std::pair(9u, 8u));
}

// Beyond one word, and with reads in long rows.
TEST(ShapeClosure, ManyItems) {
  std::vector<Item> slots;
  for (uint32_t k = 0; k < 250; ++k) {
    Item it;
    it.name = "s" + std::to_string(k);
    if (k >= 2) it.reads.set(k - 2);
    slots.push_back(it);
  }
  Item out;
  out.name = "o";
  out.reads.set(249);
  auto s = Shape::create("long", slots, {out}, {0}, 0, 0, true, false);
  ASSERT_TRUE(s.ok()) << last_error();
  Bits expected = Bits::one(250);
  for (uint32_t k = 101; k < 250; k += 2) expected.set(k);
  EXPECT_EQ(s->closure(Bits::one(250), Bits::one(99)).todo, expected);
  EXPECT_EQ(s->closure(Bits::one(250), Bits::one(100)).todo.count(), 126u);
  EXPECT_TRUE(s->closure(Bits::one(7), Bits::one(7)).todo.empty());
}

}  // namespace
