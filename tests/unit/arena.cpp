#include "arena/arena.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "device/cpu/cpu.h"

namespace {

using namespace ckpt;
using namespace ckpt::arena;

Ref<device::Device> cpu() { return *device::Device::open("test", "cpu"); }

ckpt_arena_desc desc_of(size_t capacity, uint32_t flags = 0, size_t alignment = 64) {
  ckpt_arena_desc d = CKPT_ARENA_DESC_INIT;
  d.capacity_bytes = capacity;
  d.flags = flags;
  d.alignment_bytes = alignment;
  return d;
}

Ref<Arena> arena_of(const ckpt_arena_desc &d) {
  auto a = Arena::create("test", cpu(), d);
  EXPECT_TRUE(a.ok()) << last_error();
  return *a;
}

char *bytes_of(Arena &a, BlockId block) { return static_cast<char *>(a.pointer(block)); }

std::string last() { return last_error(); }

TEST(size_rule, rounds_up_and_adds_guards) {
  EXPECT_EQ((SizeRule{256, 0}.footprint(0)), 0u);
  EXPECT_EQ((SizeRule{256, 0}.footprint(1)), 256u);
  EXPECT_EQ((SizeRule{256, 0}.footprint(256)), 256u);
  EXPECT_EQ((SizeRule{64, 64}.footprint(0)), 128u);
  EXPECT_EQ((SizeRule{64, 64}.footprint(65)), 256u);
  EXPECT_EQ((SizeRule{1, 0}.footprint(7)), 7u);
}

TEST(arena, places_what_its_size_rule_says) {
  auto a = arena_of(desc_of(4096));
  const BlockId x = a->allocate(100, Side::low), y = a->allocate(1, Side::high), z = a->allocate(0, Side::low);
  EXPECT_EQ(a->placer().in_use(), a->size_rule().footprint(100) + a->size_rule().footprint(1));
  EXPECT_EQ(bytes_of(*a, y) - bytes_of(*a, x), 4096 - 64);
  EXPECT_NE(a->pointer(z), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a->pointer(z)) % 64, 0u);
  std::memset(a->pointer(x), 1, 100);
  for (BlockId b : {x, y, z}) EXPECT_EQ(a->free("test", b), CKPT_OK);
}

TEST(arena, a_refusal_names_the_numbers) {
  auto a = arena_of(desc_of(1024));
  a->allocate(512, Side::low);
  EXPECT_EQ(a->allocate(600, Side::low), kNoBlock);
  EXPECT_EQ(a->refuse("ckpt_x", 600), CKPT_ERROR_BUDGET);
  EXPECT_EQ(last(), "ckpt_x: wanted 600 bytes (640 with alignment and guards); in use 512, free 512, largest free block 512, capacity 1024");
}

TEST(arena, the_largest_free_block_is_exact) {
  for (const uint32_t flags : {0u, uint32_t{CKPT_ARENA_GUARD}}) {
    auto a = arena_of(desc_of(8192, flags));
    a->allocate(1000, Side::low);
    ckpt_arena_stats s{};
    a->stats(&s);
    EXPECT_EQ(a->allocate(s.largest_free_bytes + 1, Side::low), kNoBlock);
    EXPECT_NE(a->allocate(s.largest_free_bytes, Side::low), kNoBlock);
    a->stats(&s);
    EXPECT_EQ(s.largest_free_bytes, 0u);
    EXPECT_EQ(s.failed_count, 1u);
    EXPECT_EQ(s.alloc_count, 2u);
  }
}

TEST(arena, capacity_is_rounded_down) {
  auto a = arena_of(desc_of(1000, 0, 256));
  EXPECT_EQ(a->capacity(), 768u);
  alignas(64) char small[10];
  auto d = desc_of(sizeof small);
  d.slab = small;
  auto b = arena_of(d);
  EXPECT_EQ(b->capacity(), 0u);
  EXPECT_EQ(b->allocate(1, Side::low), kNoBlock);
  EXPECT_EQ(b->pointer(b->allocate(0, Side::high)), small);
}

TEST(arena, capacity_zero_is_the_machines_memory) {
  ckpt_device_info info{};
  ASSERT_EQ(cpu()->info(&info), CKPT_OK);
  auto a = arena_of(desc_of(0, 0, 256));
  EXPECT_EQ(a->capacity(), info.total_bytes / 256 * 256);
  char *p = bytes_of(*a, a->allocate(1 << 20, Side::high));
  std::memset(p, 1, 1 << 20);  // pages come on use
}

TEST(arena, alignments_above_a_page) {
  auto a = arena_of(desc_of(size_t{4} << 21, 0, size_t{1} << 21));
  for (int k = 0; k < 4; ++k)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a->pointer(a->allocate(1, k % 2 ? Side::high : Side::low))) % (1u << 21), 0u);
  EXPECT_EQ(a->allocate(1, Side::low), kNoBlock);
}

// Every single byte of both guards, and the padding between the user's bytes and the second one.
TEST(arena, guards_see_each_byte_around_a_block) {
  auto a = arena_of(desc_of(1 << 16, CKPT_ARENA_GUARD));
  for (const size_t bytes : {0u, 1u, 63u, 64u, 100u}) {
    const size_t behind = round_up(bytes, 64) - bytes + 64;
    for (size_t k = 0; k < 64 + behind; ++k) {
      const BlockId other = a->allocate(10, Side::low), b = a->allocate(bytes, Side::low);
      std::memset(a->pointer(b), 0, bytes);
      EXPECT_EQ(a->check("test"), CKPT_OK);
      bytes_of(*a, b)[k < 64 ? static_cast<std::ptrdiff_t>(k) - 64 : static_cast<std::ptrdiff_t>(bytes + k - 64)] = 0;
      EXPECT_EQ(a->check("test"), CKPT_ERROR_CHECK);
      EXPECT_EQ(a->free("ckpt_free", b), CKPT_ERROR_CHECK);
      EXPECT_NE(last().find(k < 64 ? "ckpt_free: the guard before the block at" : "ckpt_free: the guard after the block at"),
                std::string::npos);
      EXPECT_NE(last().find("(" + std::to_string(bytes) + " bytes, offset 256)"), std::string::npos) << last();
      EXPECT_EQ(a->check("test"), CKPT_OK);  // freed all the same
      EXPECT_EQ(a->free("test", other), CKPT_OK);
    }
  }
  EXPECT_TRUE(a->placer().empty());
}

TEST(arena, poison_on_both_ways) {
  auto a = arena_of(desc_of(4096, CKPT_ARENA_POISON));
  const BlockId b = a->allocate(100, Side::low);
  auto *p = reinterpret_cast<unsigned char *>(bytes_of(*a, b));
  for (int k = 0; k < 128; ++k) EXPECT_EQ(p[k], 0xFF);
  float as_float = 0;
  std::memcpy(&as_float, p, sizeof as_float);
  EXPECT_NE(as_float, as_float);
  std::memset(p, 0, 128);
  EXPECT_EQ(a->free("test", b), CKPT_OK);
  for (int k = 0; k < 128; ++k) EXPECT_EQ(p[k], 0xFF);
}

TEST(arena, guard_and_poison_together) {
  auto a = arena_of(desc_of(4096, CKPT_ARENA_POISON | CKPT_ARENA_GUARD));
  const BlockId b = a->allocate(3, Side::low);
  EXPECT_EQ(bytes_of(*a, b)[2], char(0xFF));
  EXPECT_NE(bytes_of(*a, b)[3], char(0xFF));
  EXPECT_EQ(a->free("test", b), CKPT_OK);
}

TEST(arena, a_second_thread_and_a_reentry_are_busy) {
  auto a = arena_of(desc_of(4096));
  {
    const Lock lock(*a, "test");
    ASSERT_EQ(lock.status(), CKPT_OK);
    EXPECT_EQ(a->take("ckpt_take", 10, Side::low), nullptr);
    EXPECT_EQ(last_status(), CKPT_ERROR_BUSY);
    EXPECT_EQ(last().rfind("ckpt_take: the arena is in use", 0), 0u);
    std::thread([&] { EXPECT_EQ(Lock(*a, "test").status(), CKPT_ERROR_BUSY); }).join();
    EXPECT_EQ(Lock(*a, "test").status(), CKPT_ERROR_BUSY);  // a refused lock does not unlock
    EXPECT_EQ(Lock(*a, "test").status(), CKPT_ERROR_BUSY);
  }
  EXPECT_EQ(Lock(*a, "test").status(), CKPT_OK);
}

// Threads that meet either get their turn or BUSY, and nothing is lost.
TEST(arena, colliding_threads_lose_nothing) {
  auto a = arena_of(desc_of(1 << 20));
  auto work = [&] {
    for (int k = 0; k < 20000; ++k)
      if (void *p = a->take("test", 64, Side::low)) {
        static_cast<char *>(p)[0] = 1;
        while (a->give("test", p) == CKPT_ERROR_BUSY) std::this_thread::yield();
      } else {
        EXPECT_EQ(last_status(), CKPT_ERROR_BUSY);
      }
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  EXPECT_TRUE(a->placer().empty());
}

struct Owner {
  int allocs = 0, frees = 0, releases = 0;
  bool refuse = false;
  size_t skew = 0;
  void *memory = nullptr;

  ckpt_arena_desc desc(size_t capacity) {
    auto d = desc_of(capacity);
    d.user = this;
    d.alloc = [](void *user, size_t bytes, size_t alignment) -> void * {
      auto *o = static_cast<Owner *>(user);
      ++o->allocs;
      if (o->refuse) return nullptr;
      o->memory = std::aligned_alloc(alignment, round_up(bytes + o->skew, alignment));
      return static_cast<char *>(o->memory) + o->skew;
    };
    d.free = [](void *user, void *data, size_t) {
      auto *o = static_cast<Owner *>(user);
      EXPECT_EQ(o->releases, 0);  // free first, then release
      EXPECT_EQ(data, static_cast<char *>(o->memory) + o->skew);
      ++o->frees;
      std::free(o->memory);
    };
    d.release = [](void *user) { ++static_cast<Owner *>(user)->releases; };
    return d;
  }
};

TEST(arena, the_callers_allocator_is_asked_once) {
  Owner o;
  {
    auto a = arena_of(o.desc(1 << 16));
    std::memset(a->pointer(a->allocate(1 << 16, Side::low)), 1, 1 << 16);
    EXPECT_EQ(o.allocs, 1);
    EXPECT_EQ(o.frees, 0);
  }
  EXPECT_EQ(o.frees, 1);
  EXPECT_EQ(o.releases, 1);
}

TEST(arena, release_is_called_once_when_create_fails_after_validation) {
  Owner refusing;
  refusing.refuse = true;
  EXPECT_EQ(Arena::create("ckpt_x", cpu(), refusing.desc(1000)).status(), CKPT_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(last(), "ckpt_x: the caller's alloc refused 1000 bytes at alignment 64");
  EXPECT_EQ(refusing.frees, 0);
  EXPECT_EQ(refusing.releases, 1);

  Owner skewed;
  skewed.skew = 8;
  EXPECT_EQ(Arena::create("ckpt_x", cpu(), skewed.desc(1000)).status(), CKPT_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(last().find("for 1000 bytes, expected a multiple of 64"), std::string::npos);
  EXPECT_EQ(skewed.frees, 1);
  EXPECT_EQ(skewed.releases, 1);

  Owner invalid;
  auto d = invalid.desc(1000);
  d.alignment_bytes = 65;
  EXPECT_EQ(Arena::create("ckpt_x", cpu(), d).status(), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(invalid.releases, 0);  // never taken
}

TEST(arena, live_blocks_keep_it_alive) {
  Owner o;
  auto a = arena_of(o.desc(1 << 16));
  Arena *raw = a.get();
  void *p = raw->take("test", 100, Side::low), *q = raw->take("test", 100, Side::high);
  a = Ref<Arena>();
  EXPECT_EQ(o.releases, 0);
  std::memset(q, 1, 100);
  EXPECT_EQ(raw->give("test", p), CKPT_OK);
  EXPECT_EQ(o.releases, 0);
  EXPECT_EQ(raw->give("test", q), CKPT_OK);
  EXPECT_EQ(o.releases, 1);
}

TEST(arena, commit_keeps_what_is_there) {
  auto a = arena_of(desc_of(1 << 20));
  const BlockId x = a->allocate(1000, Side::low), y = a->allocate(1000, Side::high);
  std::memset(a->pointer(x), 5, 1000);
  std::memset(a->pointer(y), 6, 1000);
  EXPECT_EQ(a->commit(300000, 70001), CKPT_OK);
  EXPECT_EQ(a->commit(SIZE_MAX, SIZE_MAX), CKPT_OK);
  EXPECT_EQ(bytes_of(*a, x)[999], 5);
  EXPECT_EQ(bytes_of(*a, y)[0], 6);
}

RC_GTEST_PROP(address_index, agrees_with_a_map, ()) {
  AddressIndex index;
  std::map<uint64_t, BlockId> model;
  BlockId next = 0;
  const auto stride = *rc::gen::element<uint64_t>(1, 64, uint64_t{1} << 40, 0x9E3779B97F4A7C15);
  for (const auto &[insert, k] : *rc::gen::arbitrary<std::vector<std::pair<bool, uint8_t>>>()) {
    const uint64_t key = k * stride;
    if (insert && !model.count(key)) {
      index.reserve_one();
      index.insert(key, next);
      model[key] = next++;
    } else {
      const auto it = model.find(key);
      RC_ASSERT(index.take(key) == (it == model.end() ? kNoBlock : it->second));
      if (it != model.end()) model.erase(it);
    }
    RC_ASSERT(index.size() == model.size());
  }
  for (const auto &[key, block] : model) RC_ASSERT(index.take(key) == block);
}

}  // namespace
