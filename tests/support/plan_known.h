// Chains and programs with the peaks and seconds that another implementation of the machine, in another
// language, found for them; wrong programs with the action at which it refused them; and the least seconds within a budget
// that its brute force found (-1: nothing fits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ckpt/plan.h"

namespace plan_test {

struct KnownSlot {
  size_t bytes;
  double seconds;
  uint32_t flags;
  std::vector<uint32_t> reads;
};
struct KnownSegment {
  double forward_seconds, backward_seconds;  // forward: of the slots and the output together
  size_t output_bytes, forward_scratch, backward_scratch;
  bool reads_input, reads_output, whole;
  std::vector<uint32_t> output_reads;
  std::vector<KnownSlot> slots;
};
// f2[0,1]y: forward of segment 2, slots 0 and 1, and the output (n: without); b2: backward; x2: free; d2[0]: drop.
struct KnownProgram {
  const char *actions;
  size_t peak;
  double seconds, overhead_seconds;  // overhead: beyond each segment's forward and backward once
};
struct KnownLeast {
  size_t budget;
  double seconds;
};
struct KnownChain {
  size_t alignment, input_bytes;
  bool input_of_caller;
  uint8_t input_grad;
  bool output_of_caller, output_grad_in_arena;
  std::vector<KnownSegment> segments;
  std::vector<KnownProgram> programs;
  const char *wrong;
  size_t wrong_at;
  std::vector<KnownLeast> least;
};

inline const std::vector<KnownChain> &known_chains() {
  constexpr uint32_t kTransient = CKPT_SLOT_TRANSIENT, kKeep = CKPT_SLOT_KEEP, kAgain = CKPT_SLOT_RECOMPUTE;
  static const std::vector<KnownChain> chains = {
    // 0
    {256, 256, true, CKPT_GRAD_CALLER, true, true,
     {{3.25, 0.875, 1, 0, 64, true, false, false, {0, 1}, {{256, 1.875, 0, {}}, {300, 0.75, kAgain, {0}}}},
      {3.625, 0.5, 100, 16, 0, false, false, false, {0, 1}, {{7, 1.125, kTransient, {}}, {1, 1.75, kTransient, {}}}},
      {4.125, 1.75, 300, 0, 0, true, false, false, {0, 1, 2}, {{100, 1.875, kTransient, {}}, {100, 0.125, kTransient, {0}}, {256, 0.75, kAgain, {1}}}}},
     {{"f0[0,1]y d0[1] f0[]y f1[0]y f1[]y f1[]y f1[0,1]y f0[0,1]n d0[1] f0[]y f1[]y f2[0,1,2]y d2[2] f1[1]n f0[]y f1[]y f2[2]n b2 b1 x1 f0[0]y f0[0,1]n b0", 2816, 19.5, 5.375},
      {"d1[] f0[0,1]y d0[1] f0[]y f1[0,1]y f0[0,1]n d0[1] f0[]y f1[]y f2[2]y x1 b2 f0[]n b1 f0[0,1]n b0", 2560, 15.625, 1.5},
      {"f0[0]y f0[]y f1[0]y x1 f0[]y f1[]y f2[0,1,2]y b2 b1 f0[0,1]n b0", 2560, 16.25, 2.125}},
     "f0[0,1]y d0[1] f0[]y f1[0]y f1[]y f1[]y f1[0,1]y f0[0,1]n d0[1] f0[]y f1[]y f2[0,1,2]y d2[2] f1[1]n f0[]y f1[]y b2 b1 x1 f0[0]y f0[0,1]n b0", 16,
     {}},
    // 1
    {1, 100, true, CKPT_GRAD_CALLER, false, false,
     {{2.625, 0.625, 64, 0, 1, true, true, false, {0}, {{300, 0.75, kTransient, {}}, {256, 1.125, 0, {0}}}},
      {4.75, 1.125, 64, 0, 0, true, false, false, {}, {{100, 1.5, 0, {}}, {300, 1.625, 0, {0}}}}},
     {{"f0[0]y x1 f0[]y f1[0]y x1 f0[]n x2 f0[]n f0[]y f1[0,1]n b1 d0[] f0[]n f0[1]y b0", 828, 10.625, 1.5},
      {"f0[1]y d0[] f0[]y f1[0]y f1[0]n f0[]y f1[0,1]n b1 b0", 848, 9.125, 0},
      {"f0[1]y f0[]y f1[]y f1[0,1]y b1 f0[1]y b0", 848, 9.125, 0}},
     "f0[0]y x1 f0[]y f1[0]y x1 f0[]n x2 f0[]n f0[]y f1[0,1]n b1 d0[] f0[]n b0 f0[1]y", 13,
     {{636, -1}, {827, 9.125}, {828, 9.125}, {848, 9.125}}},
    // 2
    {1, 7, true, CKPT_GRAD_CALLER, false, false,
     {{2.875, 0.75, 16, 256, 0, false, true, false, {0}, {{40, 1.875, kTransient, {}}}},
      {4.375, 0.125, 0, 0, 100, true, false, false, {0, 1, 2}, {{40, 1.25, kTransient, {}}, {64, 0.375, kTransient, {0}}, {64, 1.125, 0, {0}}}},
      {1.875, 1.25, 7, 40, 0, true, false, false, {0}, {{64, 1.375, kTransient, {}}}}},
     {{"f0[]y f0[]y f1[1]y x1 d0[] x2 d1[1] d2[] d0[] f0[0]y f0[]y f1[]y f2[0]y b2 f0[]y f0[]y x2 d0[0] x1 d0[] f0[]y f1[2]n b1 d0[] b0", 312, 23.75, 12.5},
      {"f0[0]y f0[]y f1[0]y f0[]y f1[]y f2[0]y b2 f0[]y f1[2]n b1 b0", 312, 12.375, 1.125},
      {"f0[]y f0[]y f1[2]y f0[]y f1[]y f2[]y b2 b1 b0", 312, 11.25, 0}},
     "f0[]y f0[]y f1[2]y f0[]y f1[]y b1 f2[]y b2 b1 b0", 5,
     {{234, -1}, {311, -1}, {312, 11.25}}},
    // 3
    {256, 1, false, CKPT_GRAD_NONE, false, true,
     {{0.625, 1.125, 16, 40, 64, false, true, false, {}, {}},
      {1.5, 0.75, 300, 0, 0, true, false, false, {0}, {{16, 0.375, 0, {}}}},
      {3.875, 0.375, 100, 40, 100, false, true, false, {1}, {{256, 1.625, 0, {}}, {1, 0.75, kTransient, {0}}}}},
     {{"d0[] d1[] f0[]y f0[]y f1[0]y f1[]n x1 x2 f0[]y d0[] f0[]n f0[]y f1[]y f2[1]y f2[]n f1[]n d1[] d0[] x1 f0[]y f1[]y f2[0]y b2 b1 b0", 3072, 12.25, 4},
      {"f0[]y f0[]y f1[0]y f2[0,1]y f2[0,1]y x2 b2 f0[]n f0[]y f1[]y x2 d1[] b1 b0", 2560, 9.375, 1.125},
      {"f0[]y f0[]y f1[0]y f0[]y f1[]y f2[0,1]y x2 b2 b1 b0", 2560, 8.25, 0}},
     "f0[]y f0[]y f1[0]y f2[0,1]y f2[0,1]y x2 b2 f0[]n f0[]y f1[]y x2 f2[0,1]y d1[] b1 b0", 11,
     {{2304, 8.25}, {2559, 8.25}, {2560, 8.25}, {3072, 8.25}}},
    // 4
    {64, 300, false, CKPT_GRAD_ARENA, false, true,
     {{2.125, 1.25, 256, 16, 0, false, false, false, {0}, {{100, 1.625, kTransient, {}}}},
      {2.375, 0.375, 100, 0, 0, false, true, false, {0, 1}, {{16, 0, kTransient, {}}, {7, 0.875, 0, {0}}}},
      {1.5, 0.875, 64, 64, 0, true, true, false, {}, {}}},
     {{"f0[]y f0[]y f1[]y f1[]y f0[]y f1[]y f2[]y x2 f1[]n f0[]y f0[]y f1[]y b2 f0[]y f1[1]y b1 b0", 1152, 11.75, 3.25},
      {"d2[] f0[]y f0[]y f1[0,1]y f0[]y f1[]y f2[]y b2 f1[1]y b1 x1 f0[]n d1[] b0", 1216, 8.5, 0},
      {"f0[]y f0[]y f1[0]y f0[]y f1[]y f2[]y b2 f0[]y f1[1]y b1 b0", 1216, 9.375, 0.875}},
     "f0[]y f0[]y f1[]y f1[]y f0[]y f1[]y f2[]y x2 f1[]n f0[]y f0[]y f1[]y b0 f0[]y f1[1]y b1 b2", 12,
     {{912, 8.5}, {1151, 8.5}, {1152, 8.5}, {1216, 8.5}}},
    // 5
    {256, 0, false, CKPT_GRAD_NONE, true, true,
     {{6, 0, 256, 0, 0, true, false, false, {1}, {{1, 1.75, 0, {}}, {40, 1.5, kTransient, {0}}, {100, 1.375, 0, {}}}},
      {2.125, 0, 300, 100, 0, true, false, false, {0, 1, 2}, {{1, 0, kTransient, {}}, {40, 1.375, 0, {0}}, {64, 0.75, kTransient, {1}}}},
      {2.375, 1.25, 7, 0, 0, false, false, false, {0}, {{40, 0.875, kKeep, {}}}}},
     {{"f0[0,1]y d2[] f0[]y f1[0,1]y d1[1] d0[0] f1[0,2]y f0[0,1,2]y f0[]y f1[]y f2[0]y b2 d1[0] f0[]y f1[1]n b1 b0", 3072, 17, 5.25},
      {"f0[2]y f0[]y f1[1]y f0[]y f1[]y f2[0]y x2 b2 d0[2] f1[]y f1[]y f1[2]n b1 f0[0,2]n b0", 2304, 16.375, 4.625},
      {"f0[0,1,2]y f0[]y f1[1,2]y f0[]y f1[]y f2[0]y b2 b1 b0", 3072, 11.75, 0}},
     "f0[0,1,2]y f0[]y f1[1,2]y f0[]y f1[]y f2[0]y b1 b0", 6,
     {}},
    // 6
    {1, 40, false, CKPT_GRAD_ARENA, false, false,
     {{3.5, 1.75, 40, 0, 0, true, true, false, {0, 1}, {{256, 0.75, 0, {}}, {300, 1.75, kAgain, {0}}}},
      {3.375, 1, 1, 0, 0, false, false, false, {0, 1}, {{16, 0.875, 0, {}}, {256, 1.25, 0, {0}}}},
      {1.625, 1.875, 256, 40, 0, true, false, true, {0}, {{300, 0, 0, {}}}}},
     {{"f0[0,1]y f0[]n d0[0] d0[1] f0[]y f1[]y f2[]y f0[]y x2 f0[]y f1[]y f2[0]n b2 f1[]y f0[0,1]n f0[1]n d2[] x2 f0[1]y d0[1] f0[]y f1[0,1]n b1 f0[0,1]n b0", 716, 24.5, 11.375},
      {"f0[0,1]y f0[]y x1 d0[1] f0[]y f1[0]y f0[0,1]n d0[1] f0[]y f1[]y f2[0]y f2[0]y b2 f0[]y f1[0,1]n b1 f0[0,1]y b0", 949, 20.625, 7.5},
      {"f0[0]y f0[]y f1[0,1]y f1[]n f1[]y x2 f0[]y f1[]y f2[0]y b2 b1 f0[0,1]y b0", 1205, 16.125, 3}},
     "b1 f0[0,1]y f0[]y x1 d0[1] f0[]y f1[0]y f0[0,1]n d0[1] f0[]y f1[]y f2[0]y f2[0]y b2 f0[]y f1[0,1]n b1 f0[0,1]y b0", 0,
     {}},
    // 7
    {1, 64, true, CKPT_GRAD_CALLER, false, false,
     {{1, 1, 7, 300, 0, true, false, false, {}, {}},
      {3, 0.75, 256, 0, 0, true, true, false, {0, 1}, {{16, 1.5, kTransient, {}}, {256, 1.5, 0, {}}}}},
     {{"f0[]y x1 f0[]y f1[0]y f1[]y d0[] f1[]n d0[] d1[] f0[]y x1 f0[]y f1[1]y b1 b0", 579, 9.25, 3.5},
      {"f0[]y f1[0]y f0[]y f1[1]y b1 b0", 542, 7.25, 1.5},
      {"f0[]y f0[]y f1[1]y b1 b0", 535, 5.75, 0}},
     "f0[]y b1 f0[]y f1[1]y f1[0]y b0", 1,
     {{434, -1}, {534, -1}, {535, 5.75}, {542, 5.75}, {579, 5.75}}},
    // 8
    {1, 64, true, CKPT_GRAD_NONE, true, false,
     {{0.625, 1.125, 64, 0, 0, false, false, false, {}, {}},
      {1.25, 0.625, 0, 0, 0, true, false, false, {}, {}}},
     {{"d0[] f0[]y f0[]y f0[]n d0[] f0[]n f0[]y f0[]y f1[]y d1[] f1[]n b1 d1[] f0[]n d1[] x1 b0", 128, 3.625, 0},
      {"f0[]y f0[]y f1[]y b1 f0[]y d1[] d0[] x1 b0", 128, 3.625, 0},
      {"f0[]y f1[]y b1 b0", 128, 3.625, 0}},
     "f0[]y b0 f1[]y b1 b0", 1,
     {{96, -1}, {127, -1}, {128, 3.625}}},
    // 9
    {256, 7, true, CKPT_GRAD_ARENA, false, true,
     {{0, 0.25, 300, 0, 16, true, false, false, {}, {}},
      {2.75, 0.5, 0, 0, 0, false, false, false, {0, 1}, {{16, 1.875, 0, {}}, {16, 0.25, 0, {0}}}},
      {1.125, 1.5, 40, 0, 0, false, true, true, {0}, {{0, 0, 0, {}}}}},
     {{"f0[]y x1 f0[]n f0[]y f1[0]y f0[]n f0[]y f1[]y f2[]y d0[] f0[]y x1 f0[]y f1[]y f2[0]y b2 f1[]n d0[] x2 f0[]y f1[0,1]n b1 b0", 1536, 7.5, 1.375},
      {"f0[]y f0[]y x1 f0[]y f0[]y f1[0,1]y x1 f0[]y f1[]y f2[]y f0[]y f1[]y f2[0]y b2 b1 b0", 1536, 7.25, 1.125},
      {"d0[] f0[]y f0[]y f0[]y f1[0,1]y f2[0]y b2 b1 b0", 1536, 6.125, 0}},
     "d0[] f0[]y f0[]y f0[]y f1[0,1]y f2[0]y b2 b0", 7,
     {{1152, -1}, {1535, 6.125}, {1536, 6.125}}},
    // 10
    {1, 16, false, CKPT_GRAD_CALLER, false, false,
     {{0.75, 0.25, 40, 0, 256, false, false, false, {0}, {{7, 0.375, kKeep, {}}}},
      {1, 1.375, 40, 300, 0, false, false, true, {0}, {{1, 0, 0, {}}}},
      {1.625, 0, 16, 0, 0, false, true, true, {0}, {{0, 0, 0, {}}}}},
     {{"f0[0]y f0[]y f1[0]y f0[]y f1[]y f2[]y f0[]n d0[] x2 d2[] f0[]n f1[]n f0[0]y f0[]y f1[]y f2[0]y b2 d1[] d2[] d1[] b1 b0", 420, 7.625, 2.625},
      {"f0[0]y f0[]y f1[0]y f0[]y f1[]y f2[]y f0[]y f1[]y f2[0]y b2 b1 b0", 404, 6.625, 1.625},
      {"f0[0]y f0[]y f1[0]y f0[]y f1[]y f2[0]y b2 x1 b1 b0", 404, 5, 0}},
     "f0[0]y f0[]y f1[0]y f0[]y f1[]y f2[]y f0[]n d0[] b0 d2[] f0[]n f1[]n f0[0]y f0[]y f1[]y f2[0]y b2 d1[] d2[] d1[] b1 x2", 8,
     {}},
    // 11
    {64, 1, true, CKPT_GRAD_ARENA, false, true,
     {{4.5, 0, 300, 0, 0, true, true, false, {0, 1}, {{7, 1.625, kAgain, {}}, {1, 1.5, kTransient, {0}}}},
      {0.625, 1.125, 0, 0, 0, false, true, false, {}, {}},
      {1.875, 1.375, 1, 0, 0, true, false, false, {}, {}}},
     {{"f0[0,1]y d0[0] f0[]y f1[]y f0[]y f1[]y f2[]y f1[]y f0[0]y f0[1]y x1 d1[] d1[] d0[0] f0[]y f1[]y b2 x1 d2[] b1 f0[0]y b0", 832, 17.125, 7.625},
      {"d2[] f0[1]y f0[]n f0[1]y f0[]y f1[]y f0[]y f0[]y f1[]y f2[]y f1[]y b2 b1 d1[] f0[0]y b0", 832, 11.125, 1.625},
      {"f0[]y f0[]y f1[]y f0[]y f1[]y f2[]y b2 b1 f0[0]y b0", 768, 11.125, 1.625}},
     "f0[0,1]y d0[0] f0[]y f1[]y f0[]y f1[]y f2[]y f1[]y f0[0]y f0[1]y x1 d1[] d1[] d0[0] f0[]y f1[]y b2 x1 d2[] b1 b0", 20,
     {}},
    // 12
    {1, 64, false, CKPT_GRAD_ARENA, false, false,
     {{1.375, 1.25, 40, 0, 0, false, false, false, {0}, {{100, 0.625, kTransient, {}}}},
      {0, 1.75, 16, 256, 16, true, false, false, {}, {}},
      {1.75, 1.25, 1, 0, 0, false, false, false, {0}, {{1, 0.625, kTransient, {}}}}},
     {{"d0[] f0[]y f0[]n f1[]y f1[]y f0[]y f1[]y f2[0]y x3 d1[] d1[] f0[]n d2[0] f2[]y f2[0]y f2[0]n f1[]n b2 f0[0]n b1 d2[] b0", 376, 10.375, 3},
      {"f0[0]y f0[]y f0[]y f1[]y d0[] f0[]y f1[]y f2[0]y f2[0]y b2 b1 b0", 476, 7.375, 0},
      {"f0[]y f0[]y f1[]y f2[]y b2 x2 f1[]y x2 f0[]y b1 b0", 392, 7.375, 0}},
     "f0[0]y f0[]y f0[]y f1[]y d0[] f0[]y f1[]y b1 f2[0]y b2 f2[0]y b0", 7,
     {{357, 7.375}, {375, 7.375}, {376, 7.375}, {392, 7.375}, {476, 7.375}}},
    // 13
    {1, 100, true, CKPT_GRAD_CALLER, false, false,
     {{0.125, 1.75, 16, 0, 0, false, true, true, {0}, {{7, 0, 0, {}}}},
      {3.5, 0.5, 7, 0, 0, true, false, false, {0, 1, 2}, {{16, 1.125, kTransient, {}}, {7, 0.25, 0, {0}}, {1, 1.875, 0, {0}}}}},
     {{"d0[] f0[0]y f0[]y f1[1]y f1[0,1]y f0[]y x1 d0[0] f0[]y f1[1,2]n b1 f0[0]y b0", 63, 9.125, 3.25},
      {"f0[0]y f0[]y f0[]y f1[0,1]y d1[0] f0[]y f1[1,2]n b1 x1 f0[0]y b0", 54, 9, 3.125},
      {"f0[]y f0[]y f1[0,1,2]y b1 f0[0]y b0", 63, 6, 0.125}},
     "f0[]y f0[]y b1 f0[0]y b0", 2,
     {{47, 6}, {53, 6}, {54, 5.875}, {63, 5.875}}},
    // 14
    {64, 0, true, CKPT_GRAD_ARENA, false, true,
     {{3, 0.125, 1, 64, 0, true, false, false, {0, 1, 2}, {{7, 1.375, 0, {}}, {40, 0.5, 0, {0}}, {100, 0.875, kTransient, {}}}},
      {1.25, 0.75, 0, 1, 300, false, true, false, {}, {}}},
     {{"f0[0]y d1[] d0[0] f0[]y f1[]y f1[]n x2 f1[]n f0[0]n f0[]y f1[]y b1 f0[]n d1[] d1[] d1[] x1 f0[0,2]y f0[0,1]n b0", 512, 9.875, 4.75},
      {"f0[]y d1[] f0[1,2]y f0[]y f1[]y f1[]n b1 f0[0,1]n b0", 640, 9.25, 4.125},
      {"f0[0,1]y f0[]y f1[]y b1 b0", 576, 5.125, 0}},
     "f1[]y f0[0,1]y f0[]y f1[]y b1 b0", 0,
     {{480, 5.625}, {511, 5.625}, {512, 5.125}, {576, 5.125}, {640, 5.125}}},
    // 15
    {256, 64, false, CKPT_GRAD_ARENA, true, true,
     {{2.375, 0.625, 100, 0, 256, true, false, false, {0}, {{300, 1, kTransient, {}}}},
      {2.5, 0.5, 0, 0, 0, true, true, false, {0, 1}, {{40, 0.75, 0, {}}, {0, 1.25, kTransient, {0}}}},
      {3.25, 1.25, 0, 0, 100, false, true, false, {0}, {{64, 1.5, kTransient, {}}}}},
     {{"f0[]y f0[]y f1[0]y f0[0]n d0[] d0[] f1[0,1]y f1[]y f0[]y f1[]y f2[]y d0[] x2 f0[]y b2 f0[]n x1 f0[]y f1[0]y b1 x1 d0[] f0[]y b0", 1792, 16, 5.5},
      {"f0[0]y x1 f0[]y f1[0,1]y d0[0] f0[]y f1[]y f2[]y b2 b1 b0", 1280, 11.875, 1.375},
      {"f0[]y f0[]y f1[0,1]y f0[]y f1[]y f2[0]y b2 b1 b0", 1280, 10.5, 0}},
     "f0[]y f0[]y f1[0,1]y f0[]y f1[]y b1 b2 f2[0]y b0", 5,
     {{1279, 10.5}, {1280, 10.5}, {1344, 10.5}, {1792, 10.5}}},
    // 16
    {256, 16, false, CKPT_GRAD_ARENA, false, false,
     {{4.125, 1.5, 256, 1, 0, true, false, false, {1, 2}, {{256, 1.125, 0, {}}, {256, 1.375, 0, {0}}, {100, 1.5, kTransient, {0}}}},
      {3.5, 1.375, 1, 0, 0, true, false, false, {0, 1, 2}, {{1, 0.75, kTransient, {}}, {0, 1.875, 0, {}}, {256, 0.75, 0, {0, 1}}}},
      {0.5, 1.25, 256, 0, 0, false, true, false, {}, {}}},
     {{"f0[0,1]y f0[]y f0[]y f1[0,1]y f0[]y f1[]y f2[]y f1[1,2]y d0[1] x3 d1[1] f0[0,1]n f1[1]n f0[]n f1[0,1]n f0[]y f1[]y f2[]y b2 b1 d2[] b0", 2304, 16.75, 4.5},
      {"f0[2]y f0[]y f1[0,1]y f0[]y f1[]y f2[]y x1 x2 f0[0,1,2]y b2 f1[1,2]y b1 b0", 2560, 15.75, 3.5},
      {"f0[0,1,2]y f0[]y f1[1,2]y x1 f2[]y b2 f0[]y b1 b0", 2304, 12.375, 0.125}},
     "f0[0,1,2]y f0[]y f1[1,2]y x1 x1 f2[]y b2 f0[]y b1 b0", 4,
     {{1920, 12.25}, {2303, 12.25}, {2304, 12.25}, {2560, 12.25}}},
    // 17
    {1, 7, false, CKPT_GRAD_NONE, false, true,
     {{0.75, 1.125, 64, 1, 0, true, true, false, {}, {}},
      {2.875, 1.125, 100, 7, 0, true, false, false, {0, 1, 2}, {{256, 1.125, kTransient, {}}, {1, 0.875, 0, {0}}, {100, 0, 0, {0, 1}}}},
      {1.625, 1.625, 16, 40, 16, true, false, false, {0}, {{40, 1.5, kTransient, {}}}}},
     {{"f0[]y d0[] d0[] f0[]y f1[0,1]y f0[]n f0[]y f1[]y f2[0]y d0[] f0[]n x1 f2[]n d1[0] d0[] d0[] f2[]y b2 d2[] f0[]y f1[1,2]n b1 b0", 635, 11, 1.875},
      {"f0[]y f0[]y f1[0,1,2]y f0[]y f1[]y f2[0]y d0[] d0[] f0[]y f1[]n d1[0] d2[] f2[]y b2 b1 b0", 640, 9.125, 0},
      {"f0[]y f0[]y f1[0]y f0[]y f1[]y f2[0]y b2 f0[]y f1[1,2]n b1 b0", 692, 10, 0.875}},
     "f0[]y f0[]y f1[1,2]n f0[]y f1[]y f2[0]y b2 f0[]y f1[0]y b1 b0", 2,
     {{519, -1}, {634, 9.125}, {635, 9.125}, {640, 9.125}, {692, 9.125}}},
    // 18
    {1, 100, false, CKPT_GRAD_CALLER, false, true,
     {{4.125, 1.75, 64, 0, 0, true, false, false, {0, 1, 2}, {{16, 1, 0, {}}, {100, 0.5, 0, {0}}, {300, 0.75, kTransient, {0}}}}},
     {{"f0[0,1,2]y f0[0,1,2]y x1 f0[0,1,2]n d0[0] f0[2]n f0[]n f0[0,1]n b0", 644, 6.875, 1},
      {"f0[1]y f0[0]y f0[0,1,2]n b0", 644, 7.625, 1.75},
      {"f0[0,1]y b0", 644, 5.875, 0}},
     "f0[0,1,2]y b0 f0[0,1,2]y x1 f0[0,1,2]n d0[0] f0[2]n f0[]n f0[0,1]n b0", 2,
     {{483, -1}, {643, -1}, {644, 5.875}}},
    // 19
    {1, 256, true, CKPT_GRAD_ARENA, false, false,
     {{4, 0, 1, 100, 40, true, true, false, {0, 1, 2}, {{1, 1.375, kTransient, {}}, {1, 1.625, kTransient, {}}, {7, 0.75, kTransient, {0, 1}}}},
      {1.75, 1.5, 0, 0, 0, true, true, false, {}, {}},
      {0.625, 1.125, 64, 0, 0, false, false, false, {0, 1}, {{100, 0.125, 0, {}}, {0, 0.375, 0, {0}}}}},
     {{"f0[0,1,2]y d1[] f0[]y f0[]y f1[]y x2 f0[]y f1[]y f2[1]y d0[0] f1[]y f2[]n d1[] x2 x1 f0[]n x3 f0[]y f1[]y f2[0,1]n b2 b1 b0", 306, 14.25, 5.25},
      {"f0[0,2]y f0[]y f1[]y d0[2] f2[]y f2[1]n f0[]y f1[]y f2[0,1]n b2 b1 b0", 299, 9.625, 0.625},
      {"f0[0,1]y f0[]y f1[]y x2 f0[]y f1[]y f2[0,1]y b2 b1 b0", 300, 10.75, 1.75}},
     "f0[0,1]y f0[]y f1[]y x2 f0[]y f1[]y b1 f2[0,1]y b2 b1 b0", 6,
     {{229, -1}, {298, 9}, {299, 9}, {300, 9}, {306, 9}}},
    // 20
    {64, 64, true, CKPT_GRAD_ARENA, false, true,
     {{3.25, 1.875, 40, 0, 0, true, true, false, {}, {{7, 1.375, 0, {}}}},
      {3.125, 0.875, 300, 1, 7, false, true, false, {0, 1, 2}, {{256, 0, 0, {}}, {256, 0.875, 0, {}}, {100, 1.375, 0, {0, 1}}}},
      {1, 0.75, 300, 0, 0, true, true, true, {0}, {{100, 0, 0, {}}}}},
     {{"f0[0]y f0[]y f1[0,1]y d1[0] f0[]y f1[]y f2[0]y f1[]y f2[]y f0[]y d1[1] f2[0]n x1 f0[0]n b2 f0[]y f1[0,1,2]y b1 b0", 1536, 15, 4.125},
      {"f0[0]y f0[]y f1[0,1]y f2[]y f0[]n x1 f0[]n f0[]y f1[]y f2[0]y b2 f0[]y f1[0,1,2]y b1 b0", 2048, 15.125, 4.25},
      {"f0[]y f0[]y f1[0,1,2]y f0[]y f1[]y f2[0]y b2 b1 f0[0]y b0", 2112, 10.875, 0}},
     "b2 f0[]y f0[]y f1[0,1,2]y f0[]y f1[]y f2[0]y b2 b1 f0[0]y b0", 0,
     {{1535, 13.125}, {1536, 13.125}, {1584, 13.125}, {2048, 10.875}, {2112, 10.875}}},
    // 21
    {1, 100, false, CKPT_GRAD_NONE, false, false,
     {{1.875, 1.625, 1, 1, 0, true, true, false, {0, 2}, {{7, 0, kTransient, {}}, {0, 0.125, 0, {0}}, {64, 0.625, kTransient, {1}}}},
      {0.875, 0.5, 256, 0, 0, true, false, false, {0, 1}, {{0, 0, kTransient, {}}, {0, 0.25, kTransient, {0}}}}},
     {{"f0[1,2]y f0[]y f1[0]y x1 x2 f0[]y d1[0] f0[]n f0[0,1]y x1 d0[0] f0[]y b1 b0", 421, 7.125, 2.25},
      {"f0[0,1,2]y f0[]y f1[0]y b1 b0", 429, 4.875, 0},
      {"f0[2]y f1[]y b1 f0[1]y b0", 422, 5, 0.125}},
     "f0[2]y f1[]y b1 b1 f0[1]y b0", 3,
     {{321, -1}, {420, 4.875}, {421, 4.875}, {422, 4.875}, {429, 4.875}}},
  };
  return chains;
}

}  // namespace plan_test
