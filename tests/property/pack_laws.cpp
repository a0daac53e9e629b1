// Laws of packings over random buffers: nothing overlaps, the bound is the live load, the same input gives the same answer,
// more work or a shuffled input never makes a claim wrong.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/pack_check.h"

namespace ckpt::arena {
namespace {

using testing::fault_of;
using testing::largest_load;
using testing::lowest_height;

std::vector<PackBuffer> some_buffers(size_t most) {
  const auto count = *rc::gen::inRange<size_t>(0, most + 1);
  const auto times = *rc::gen::inRange<uint64_t>(1, 60), life = *rc::gen::inRange<uint64_t>(1, 60);
  const auto unit = *rc::gen::element<size_t>(1, 7, 256), sizes = *rc::gen::inRange<size_t>(1, 40);
  std::vector<PackBuffer> buffers;
  for (size_t k = 0; k < count; ++k) {
    const auto begin = *rc::gen::inRange<uint64_t>(0, times);
    buffers.push_back({begin, begin + 1 + *rc::gen::inRange<uint64_t>(0, life), unit * *rc::gen::inRange<size_t>(0, sizes)});
  }
  return buffers;
}

Packing packed(const std::vector<PackBuffer> &buffers, PackLimits limits) {
  Packing p;
  if (pack(buffers, limits, &p)) RC_FAIL(last_error());
  const std::string fault = fault_of(buffers, p);
  if (!fault.empty()) RC_FAIL(fault);
  RC_ASSERT(p.lower_bound == largest_load(buffers));
  RC_ASSERT(p.height >= p.lower_bound);
  if (p.height == p.lower_bound) RC_ASSERT(p.proved);
  return p;
}

constexpr uint64_t kLittle = 2'000'000;

RC_GTEST_PROP(PackLaws, NothingOverlapsAndTheSameComesOutAgain, ()) {
  const std::vector<PackBuffer> buffers = some_buffers(150);
  const Packing first = packed(buffers, {.capacity = 0, .work = kLittle}), second = packed(buffers, {.capacity = 0, .work = kLittle});
  RC_ASSERT(first.offsets == second.offsets);
  RC_ASSERT(first.work == second.work);
}

RC_GTEST_PROP(PackLaws, MoreWorkIsNeverHigher, ()) {
  const std::vector<PackBuffer> buffers = some_buffers(150);
  size_t before = SIZE_MAX;
  for (const uint64_t work : {uint64_t{1}, uint64_t{20'000}, uint64_t{200'000}, kLittle}) {
    const Packing p = packed(buffers, {.capacity = 0, .work = work});
    RC_ASSERT(p.height <= before);
    before = p.height;
  }
}

RC_GTEST_PROP(PackLaws, ClaimsDoNotContradictEachOther, ()) {
  std::vector<PackBuffer> buffers = some_buffers(40);
  const Packing one = packed(buffers, {.capacity = 0, .work = kLittle});
  // Another order of the buffers, times the other way round and stretched: the same problem.
  std::reverse(buffers.begin(), buffers.end());
  for (PackBuffer &b : buffers) b = {1000 - 3 * b.end, 1000 - 3 * b.begin, b.bytes};
  const Packing other = packed(buffers, {.capacity = 0, .work = kLittle});
  if (one.proved) RC_ASSERT(one.height <= other.height);
  if (other.proved) RC_ASSERT(other.height <= one.height);
}

RC_GTEST_PROP(PackLaws, ACapacityIsReachedOrRefused, ()) {
  const std::vector<PackBuffer> buffers = some_buffers(60);
  const Packing best = packed(buffers, {.capacity = 0, .work = kLittle});
  if (best.height == 0) return;
  const size_t capacity = best.height + *rc::gen::inRange<size_t>(0, best.height);
  const Packing enough = packed(buffers, {.capacity = capacity, .work = kLittle});
  RC_ASSERT(!enough.refuted);
  if (best.lower_bound > 1) RC_ASSERT(packed(buffers, {.capacity = best.lower_bound - 1, .work = kLittle}).refuted);
}

RC_GTEST_PROP(PackLaws, ProvedIsAsLowAsTryingAllOffsets, ()) {
  std::vector<PackBuffer> buffers = some_buffers(6);
  for (PackBuffer &b : buffers) b = {b.begin % 6, b.begin % 6 + 1 + b.end % 5, b.bytes % 5};
  const Packing p = packed(buffers, {});
  RC_ASSERT(p.proved);
  RC_ASSERT(p.height == lowest_height(buffers));
}

// A buffer less never makes the lowest height more, as far as both are proved.
RC_GTEST_PROP(PackLaws, LessIsNotMore, ()) {
  std::vector<PackBuffer> buffers = some_buffers(30);
  if (buffers.empty()) return;
  const Packing all = packed(buffers, {.capacity = 0, .work = kLittle});
  buffers.erase(buffers.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(buffers.size())));
  const Packing less = packed(buffers, {.capacity = 0, .work = kLittle});
  if (less.proved) RC_ASSERT(less.height <= all.height);
}

}  // namespace
}  // namespace ckpt::arena
