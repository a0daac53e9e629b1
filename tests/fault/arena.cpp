// Fails the k-th request for memory, the host's or the device's, for k = 0, 1, 2, ... until a whole life of an arena
// passes. Each failure must be a status with a text, and leave nothing behind (the sanitizers count).
#include <gtest/gtest.h>

#include <vector>

#include "abi/handle.h"
#include "ckpt/arena.h"
#include "device/cpu/cpu.h"
#include "../support/refused_new.h"

namespace {

int64_t g_reserved = 0;  // device slabs alive
int64_t g_opened = 0;
const bool g_all_count = g_inside = true;  // callbacks there are few, and they ask for nothing

using ckpt::device::Device;
using ckpt::device::Host;
using ckpt::device::Table;
namespace cpu = ckpt::device::cpu;

const Table &faulty() {
  static Table table = cpu::table();
  table.open = [](const Host *host, uint32_t, void **out) -> ckpt_status {
    *out = nullptr;
    if (refuse()) return host->fail(CKPT_ERROR_DEVICE, "injected");
    ++g_opened;
    return CKPT_OK;
  };
  table.close = [](void *) { --g_opened; };
  table.reserve = [](void *self, size_t bytes, size_t alignment, uint32_t flags, void **out) -> ckpt_status {
    *out = nullptr;
    if (refuse()) return ckpt::fail(CKPT_ERROR_OUT_OF_MEMORY, "injected");
    const auto status = cpu::table().reserve(self, bytes, alignment, flags, out);
    if (status == CKPT_OK) ++g_reserved;
    return status;
  };
  table.release = [](void *self, void *data, size_t bytes) {
    --g_reserved;
    cpu::table().release(self, data, bytes);
  };
  table.fill = [](void *self, void *stream, void *data, uint8_t value, size_t bytes) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().fill(self, stream, data, value, bytes);
  };
  table.copy = [](void *self, void *stream, void *to, const void *from, size_t bytes, ckpt::device::Copy kind) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().copy(self, stream, to, from, bytes, kind);
  };
  table.info = [](void *self, ckpt_device_info *out) {
    return refuse() ? ckpt::fail(CKPT_ERROR_DEVICE, "injected") : cpu::table().info(self, out);
  };
  return table;
}

void release(void *user) { ++*static_cast<int *>(user); }

ckpt_arena_stats stats_of(const ckpt_arena *arena) {
  ckpt_arena_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_EQ(ckpt_arena_get_stats(arena, &stats), CKPT_OK);
  return stats;
}

// Open, create, 100 blocks, all freed. True if nothing failed.
bool life(uint32_t flags, size_t capacity) {
  auto opened = Device::create(faulty(), CKPT_DEVICE_KIND_CPU, 0);
  if (!opened.ok()) return false;
  ckpt_device *device = ckpt::abi::handle(opened->leave());
  int released = 0;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.capacity_bytes = capacity;
  desc.flags = flags;
  desc.user = &released;
  desc.release = release;
  ckpt_arena *arena = nullptr;
  bool passed = ckpt_arena_create(device, &desc, &arena) == CKPT_OK;
  EXPECT_EQ(passed, arena != nullptr);
  ckpt_device_close(device);
  if (!passed) {
    EXPECT_EQ(released, 1);
    return false;
  }
  void *block[100] = {};
  int live = 0;
  while (passed && live < 100) {
    const ckpt_arena_stats before = stats_of(arena);
    block[live] = ckpt_arena_alloc(arena, static_cast<size_t>(live) * 10, live % 3 ? 0u : uint32_t{CKPT_ARENA_HIGH});
    passed = block[live] != nullptr;
    if (passed) {
      ++live;
      continue;
    }
    const ckpt_arena_stats after = stats_of(arena);
    EXPECT_EQ(before.in_use_bytes, after.in_use_bytes);
    EXPECT_EQ(before.block_count, after.block_count);
    EXPECT_EQ(before.alloc_count, after.alloc_count);
    EXPECT_TRUE(ckpt_last_status() == CKPT_ERROR_OUT_OF_MEMORY || ckpt_last_status() == CKPT_ERROR_DEVICE) << ckpt_last_error();
    // It was one fault: the next request is served.
    void *again = ckpt_arena_alloc(arena, 10, 0);
    EXPECT_NE(again, nullptr);
    EXPECT_EQ(ckpt_arena_free(arena, again), CKPT_OK);
  }
  for (int k = 0; k < live; ++k)
    if (ckpt_arena_free(arena, block[k]) != CKPT_OK) {
      EXPECT_EQ(ckpt_last_status(), CKPT_ERROR_DEVICE);
      passed = false;
    }
  EXPECT_EQ(stats_of(arena).block_count, 0u);
  EXPECT_EQ(released, 0);
  ckpt_arena_destroy(arena);
  EXPECT_EQ(released, 1);
  return passed;
}

void fail_each(uint32_t flags, size_t capacity, int64_t at_least) {
  for (int64_t k = 0;; ++k) {
    ASSERT_LT(k, 10000);
    g_left = k;
    const bool passed = life(flags, capacity);
    const bool reached = g_left == kNever || g_left < 0;
    g_left = kNever;
    ASSERT_EQ(g_reserved, 0) << k;
    ASSERT_EQ(g_opened, 0) << k;
    ASSERT_EQ(passed, !reached) << k;
    if (passed) {
      EXPECT_GE(k, at_least);
      return;
    }
  }
}

TEST(arena_fault, every_request_may_fail) { fail_each(0, 1 << 20, 10); }
TEST(arena_fault, every_request_may_fail_without_a_capacity) { fail_each(0, 0, 11); }
TEST(arena_fault, every_request_may_fail_with_guards_and_poison) { fail_each(CKPT_ARENA_GUARD | CKPT_ARENA_POISON, 1 << 20, 500); }

}  // namespace
