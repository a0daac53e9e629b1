// A device as the C ABI shows it: copies, fills, random fills, arenas, streams, graphs; on every target the same.
#include <atomic>
#include <thread>

#include "target.h"

namespace {

using conformance::Memory;
using conformance::target;

std::vector<uint8_t> pattern(size_t bytes, unsigned seed) {
  std::vector<uint8_t> p(bytes);
  for (size_t k = 0; k < bytes; ++k) p[k] = static_cast<uint8_t>((k * 2654435761u + seed) >> 13);
  return p;
}

TEST(Device, CopiesAreExactAtAnyOffsetAndSize) {
  Memory memory(1 << 20);
  const auto source = pattern(70000, 1);
  uint8_t *a = memory.put(source);
  auto *b = memory.take<uint8_t>(source.size());
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{3}, size_t{16}, size_t{255}})
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{4096}, size_t{65535}}) {
      OK(ckpt_device_fill(target().device, target().stream, b, 0xCD, source.size()));
      OK(ckpt_device_copy(target().device, target().stream, b + 2 * offset, a + offset, bytes, CKPT_COPY_DEVICE_TO_DEVICE));
      const auto seen = Memory::read(b, source.size());
      for (size_t k = 0; k < seen.size(); ++k)
        ASSERT_EQ(seen[k], k >= 2 * offset && k < 2 * offset + bytes ? source[k - offset] : 0xCD) << offset << " " << bytes << " " << k;
    }
}

TEST(Device, PinnedMemoryIsCopiedBothWays) {
  void *pinned = nullptr;
  OK(ckpt_device_host_alloc(target().device, 10000, &pinned));
  ASSERT_NE(pinned, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned) % 256, 0u);
  const auto source = pattern(10000, 2);
  std::memcpy(pinned, source.data(), source.size());
  Memory memory(1 << 20);
  auto *device = memory.take<uint8_t>(10000);
  OK(ckpt_device_copy(target().device, target().stream, device, pinned, 10000, CKPT_COPY_HOST_TO_DEVICE));
  OK(ckpt_device_synchronize(target().device, target().stream));
  std::memset(pinned, 0, 10000);
  OK(ckpt_device_copy(target().device, target().stream, pinned, device, 10000, CKPT_COPY_DEVICE_TO_HOST));
  OK(ckpt_device_synchronize(target().device, target().stream));
  EXPECT_EQ(std::memcmp(pinned, source.data(), source.size()), 0);
  ckpt_device_host_free(target().device, pinned, 10000);
}

// Philox on the device equals the host's, bit by bit, at odd sizes, offsets and alignments, with and without a word on the device.
TEST(Device, RandomFillsHaveTheHostsBits) {
  Memory memory(8 << 20);
  constexpr size_t kMost = 70001;
  auto *device = memory.take<uint32_t>(kMost + 16);
  const uint64_t step = 0x123456789ull;
  uint64_t *word = memory.put(std::vector<uint64_t>{step});
  size_t checked = 0;
  for (const size_t count : {size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{1023}, size_t{kMost}})
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{6}, (uint64_t{1} << 48) + 3, (uint64_t{1} << 34) - 1})
      for (const size_t shift : {size_t{0}, size_t{1}, size_t{3}})
        for (const bool with_word : {false, true}) {
          if (count == kMost && shift == 1) continue;
          const uint64_t first = offset & 5;
          const ckpt_philox there{0xDEADBEEFCAFEull, 77, offset, with_word ? word : nullptr}, here{0xDEADBEEFCAFEull, 77, offset, with_word ? &step : nullptr};
          uint32_t *out = device + shift;
          std::vector<uint32_t> words(count);
          std::vector<float> values(count);
          std::vector<uint8_t> bytes(count);
          OK(ckpt_philox_u32(&here, first, count, words.data()));
          OK(ckpt_device_philox_u32(target().device, target().stream, &there, first, count, out));
          ASSERT_EQ(Memory::read(out, count), words) << count << " " << offset << " " << shift;
          OK(ckpt_philox_uniform(&here, first, count, values.data()));
          OK(ckpt_device_philox_uniform(target().device, target().stream, &there, first, count, reinterpret_cast<float *>(out)));
          ASSERT_EQ(Memory::read(reinterpret_cast<float *>(out), count), values);
          OK(ckpt_philox_normal(&here, first, count, 0.5f, 1.75f, values.data()));
          OK(ckpt_device_philox_normal(target().device, target().stream, &there, first, count, 0.5f, 1.75f, reinterpret_cast<float *>(out)));
          ASSERT_EQ(Memory::read(reinterpret_cast<float *>(out), count), values) << count << " " << offset << " " << shift;
          uint8_t *mask = reinterpret_cast<uint8_t *>(device) + shift;
          for (const double p : {0.0, 0.1, 1.0}) {
            OK(ckpt_philox_bernoulli(&here, first, count, p, bytes.data()));
            OK(ckpt_device_philox_bernoulli(target().device, target().stream, &there, first, count, p, mask));
            ASSERT_EQ(Memory::read(mask, count), bytes);
          }
          checked += count;
        }
  EXPECT_GT(checked, 500000u);
}

// A kernel that meets such an address takes the device with it.
TEST(Device, RandomFillsRefuseAnAddressThatIsNotAligned) {
  Memory memory(1 << 16);
  auto *bytes = memory.take<uint8_t>(256);
  auto *words = reinterpret_cast<uint32_t *>(bytes + 2);
  auto *values = reinterpret_cast<float *>(bytes + 1);
  const ckpt_philox p{1, 2, 3, nullptr}, odd{1, 2, 3, reinterpret_cast<const uint64_t *>(bytes + 4)};
  REFUSED(ckpt_device_philox_u32(target().device, target().stream, &p, 0, 8, words), CKPT_ERROR_INVALID_ARGUMENT, "ckpt_device_philox_u32: the output is", "a multiple of 4");
  REFUSED(ckpt_device_philox_uniform(target().device, target().stream, &p, 0, 8, values), CKPT_ERROR_INVALID_ARGUMENT, "the output is", "a multiple of 4");
  REFUSED(ckpt_device_philox_normal(target().device, target().stream, &p, 0, 8, 0, 1, values), CKPT_ERROR_INVALID_ARGUMENT, "the output is", "a multiple of 4");
  REFUSED(ckpt_device_philox_bernoulli(target().device, target().stream, &odd, 0, 8, 0.5, bytes), CKPT_ERROR_INVALID_ARGUMENT, "step_word is", "a multiple of 8");
  OK(ckpt_device_philox_bernoulli(target().device, target().stream, &p, 0, 8, 0.5, bytes + 1));
  OK(ckpt_device_synchronize(target().device, target().stream));
}

TEST(Device, RandomFillsStayWithinTheirBounds) {
  Memory memory(1 << 20, CKPT_ARENA_GUARD);
  for (const size_t count : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}, size_t{1025}}) {
    auto *out = static_cast<uint32_t *>(ckpt_arena_alloc(memory.arena(), 4 * count, 0));
    ASSERT_NE(out, nullptr);
    const ckpt_philox p{1, 2, 3, nullptr};
    OK(ckpt_device_philox_u32(target().device, target().stream, &p, 0, count, out));
    OK(ckpt_device_philox_bernoulli(target().device, target().stream, &p, 0, 4 * count, 0.5, reinterpret_cast<uint8_t *>(out)));
    OK(ckpt_arena_check(memory.arena()));
    OK(ckpt_arena_free(memory.arena(), out));
  }
}

TEST(Device, AnArenasGuardsAndPoisonAreOnTheDevice) {
  Memory memory(1 << 20, CKPT_ARENA_GUARD | CKPT_ARENA_POISON);
  auto *block = static_cast<uint8_t *>(ckpt_arena_alloc(memory.arena(), 1000, 0));
  ASSERT_NE(block, nullptr) << ckpt_last_error();
  for (const uint8_t b : Memory::read(block, 1000)) ASSERT_EQ(b, 0xFF);
  OK(ckpt_arena_check(memory.arena()));
  OK(ckpt_device_fill(target().device, target().stream, block + 1000, 1, 1));
  REFUSED(ckpt_arena_check(memory.arena()), CKPT_ERROR_CHECK, "after the block", "0 bytes into it");
  REFUSED(ckpt_arena_free(memory.arena(), block), CKPT_ERROR_CHECK, "overwritten");
}

TEST(Device, ArenasWithoutCapacityGrowAndWithOneDoNot) {
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = target().stream;
  ckpt_arena *arena = nullptr;
  OK(ckpt_arena_create(target().device, &desc, &arena));
  const uint64_t live_before = target().simulated ? target().sim.live().device_bytes : 0;
  std::vector<void *> blocks;
  for (int k = 0; k < 6; ++k) {
    void *block = ckpt_arena_alloc(arena, size_t{30} << 20, k % 2 ? uint32_t{CKPT_ARENA_HIGH} : 0u);
    ASSERT_NE(block, nullptr) << ckpt_last_error();
    blocks.push_back(block);
    OK(ckpt_device_fill(target().device, target().stream, block, static_cast<uint8_t>(k), size_t{30} << 20));
  }
  for (int k = 0; k < 6; ++k) {
    const auto seen = Memory::read(static_cast<uint8_t *>(blocks[static_cast<size_t>(k)]) + (30 << 20) - 5, 5);
    EXPECT_EQ(seen, std::vector<uint8_t>(5, static_cast<uint8_t>(k)));
  }
  // 90 MiB at each end, in pieces of 64.
  if (target().simulated) {
    EXPECT_EQ(target().sim.live().device_bytes - live_before, uint64_t{256} << 20);
  }
  for (void *block : blocks) OK(ckpt_arena_free(arena, block));
  void *again = ckpt_arena_alloc(arena, size_t{100} << 20, 0);
  ASSERT_NE(again, nullptr);
  if (target().simulated) {
    EXPECT_EQ(target().sim.live().device_bytes - live_before, uint64_t{256} << 20);
  }
  OK(ckpt_arena_free(arena, again));
  ckpt_arena_destroy(arena);

  Memory fixed(10 << 20);
  const uint64_t fixed_live = target().simulated ? target().sim.live().device_bytes : 0;
  fixed.take<char>(9 << 20);
  if (target().simulated) {
    EXPECT_EQ(target().sim.live().device_bytes, fixed_live);
  }
}

TEST(Device, PlainMemoryServesAnArenaToo) {
  for (const size_t alignment : {size_t{256}, size_t{1} << 20}) {
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.capacity_bytes = 4 << 20;
    desc.alignment_bytes = alignment;
    desc.flags = CKPT_ARENA_PLAIN;
    desc.stream = target().stream;
    const uint64_t before = target().simulated ? target().sim.live().allocations : 0;
    ckpt_arena *arena = nullptr;
    OK(ckpt_arena_create(target().device, &desc, &arena));
    if (target().simulated) {
      EXPECT_EQ(target().sim.live().allocations, before + 1);
    }
    auto *block = static_cast<uint8_t *>(ckpt_arena_alloc(arena, 3 << 20, 0));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    OK(ckpt_device_fill(target().device, target().stream, block, 9, 3 << 20));
    EXPECT_EQ(Memory::read(block + (3 << 20) - 2, 2), std::vector<uint8_t>(2, 9));
    OK(ckpt_arena_free(arena, block));
    ckpt_arena_destroy(arena);
  }
}

// The caller's own memory: a slab, or an allocator that is asked once.
TEST(Device, TheCallersMemoryServesAnArenaToo) {
  Memory memory(4 << 20);
  struct User {
    Memory *memory;
    int allocated = 0, freed = 0, released = 0;
  } user{&memory};
  for (const bool slab : {false, true}) {
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.capacity_bytes = 1 << 20;
    desc.stream = target().stream;
    desc.flags = CKPT_ARENA_GUARD;
    desc.user = &user;
    desc.release = [](void *u) { ++static_cast<User *>(u)->released; };
    if (slab) {
      desc.slab = memory.take<char>(1 << 20);
    } else {
      desc.alloc = [](void *u, size_t bytes, size_t) -> void * {
        ++static_cast<User *>(u)->allocated;
        return static_cast<User *>(u)->memory->take<char>(bytes);
      };
      desc.free = [](void *u, void *, size_t) { ++static_cast<User *>(u)->freed; };
    }
    ckpt_arena *arena = nullptr;
    OK(ckpt_arena_create(target().device, &desc, &arena));
    auto *block = static_cast<uint8_t *>(ckpt_arena_alloc(arena, 5000, 0));
    ASSERT_NE(block, nullptr);
    OK(ckpt_device_fill(target().device, target().stream, block, 7, 5000));
    EXPECT_EQ(Memory::read(block, 5000), std::vector<uint8_t>(5000, 7));
    OK(ckpt_arena_free(arena, block));
    ckpt_arena_destroy(arena);
    EXPECT_EQ(user.released, slab ? 2 : 1);
    EXPECT_EQ(user.allocated, 1);
    EXPECT_EQ(user.freed, 1);
  }
}

TEST(Device, AnArenaMayAskForALargeAlignment) {
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.capacity_bytes = size_t{24} << 20;
  desc.alignment_bytes = size_t{8} << 20;
  desc.stream = target().stream;
  ckpt_arena *arena = nullptr;
  OK(ckpt_arena_create(target().device, &desc, &arena));
  std::vector<void *> blocks;
  for (int k = 0; k < 3; ++k) {
    blocks.push_back(ckpt_arena_alloc(arena, 100, 0));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % desc.alignment_bytes, 0u);
  }
  OK(ckpt_device_fill(target().device, target().stream, blocks[2], 1, size_t{8} << 20));
  OK(ckpt_device_synchronize(target().device, target().stream));
  for (void *block : blocks) OK(ckpt_arena_free(arena, block));
  ckpt_arena_destroy(arena);
}

// One device, several threads, each with a stream and an arena of its own.
TEST(Device, ThreadsShareADevice) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([t, &wrong] {
      ckpt_device *device = target().device;
      void *stream = nullptr;
      ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
      ckpt_arena *arena = nullptr;
      wrong += ckpt_device_stream_create(device, &stream) != CKPT_OK;
      desc.stream = stream;
      for (int n = 0; n < 5; ++n) {
        desc.capacity_bytes = n % 2 == 0 ? size_t{1} << 20 : 0;
        wrong += ckpt_arena_create(device, &desc, &arena) != CKPT_OK;
        auto *out = static_cast<uint32_t *>(ckpt_arena_alloc(arena, 40000, 0));
        const ckpt_philox p{t, 2, 3, nullptr};
        std::vector<uint32_t> seen(10000), wanted(10000);
        wrong += ckpt_device_philox_u32(device, stream, &p, 0, 10000, out) != CKPT_OK;
        wrong += ckpt_device_copy(device, stream, seen.data(), out, 40000, CKPT_COPY_DEVICE_TO_HOST) != CKPT_OK;
        wrong += ckpt_device_synchronize(device, stream) != CKPT_OK;
        wrong += ckpt_philox_u32(&p, 0, 10000, wanted.data()) != CKPT_OK;
        wrong += seen != wanted;
        wrong += ckpt_arena_free(arena, out) != CKPT_OK;
        ckpt_arena_destroy(arena);
      }
      ckpt_device_stream_destroy(device, stream);
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Device, StreamsAreTheCallersToMake) {
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.capacity_bytes = 4096;
  ckpt_arena *arena = nullptr;
  if (!target().cuda) {
    OK(ckpt_arena_create(target().device, &desc, &arena));
    ckpt_arena_destroy(arena);
    return;
  }
  REFUSED(ckpt_arena_create(target().device, &desc, &arena), CKPT_ERROR_INVALID_ARGUMENT, "desc.stream is NULL", "default stream", "ckpt_device_stream_create");
  EXPECT_EQ(arena, nullptr);
  Memory memory(4096);
  auto *data = memory.take<uint8_t>(16);
  REFUSED(ckpt_device_fill(target().device, nullptr, data, 1, 16), CKPT_ERROR_INVALID_ARGUMENT, "cuda:0", "default stream");
  REFUSED(ckpt_device_synchronize(target().device, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "default stream");
  const ckpt_philox p{1, 2, 3, nullptr};
  REFUSED(ckpt_device_philox_u32(target().device, nullptr, &p, 0, 4, reinterpret_cast<uint32_t *>(data)), CKPT_ERROR_INVALID_ARGUMENT, "default stream");
}

TEST(Device, AGraphDoesItsWorkAtEachLaunch) {
  ckpt_graph *graph = nullptr;
  if (!target().cuda) {
    REFUSED(ckpt_device_capture_begin(target().device, nullptr), CKPT_ERROR_UNSUPPORTED, "capture");
    return;
  }
  Memory memory(1 << 20);
  uint64_t *word = memory.put(std::vector<uint64_t>{0});
  auto *out = memory.take<uint32_t>(100);
  auto *copy = memory.take<uint32_t>(100);
  OK(ckpt_device_fill(target().device, target().stream, copy, 0, 400));
  const ckpt_philox p{5, 6, 7, word};
  OK(ckpt_device_capture_begin(target().device, target().stream));
  OK(ckpt_device_philox_u32(target().device, target().stream, &p, 0, 100, out));
  OK(ckpt_device_copy(target().device, target().stream, copy, out, 400, CKPT_COPY_DEVICE_TO_DEVICE));
  OK(ckpt_device_capture_end(target().device, target().stream, &graph));
  EXPECT_EQ(Memory::read(copy, 100), std::vector<uint32_t>(100, 0u)) << "captured work was done";
  for (uint64_t step = 3; step < 6; ++step) {
    Memory::write(word, std::vector<uint64_t>{step});
    OK(ckpt_graph_launch(graph, target().stream));
    std::vector<uint32_t> wanted(100);
    const ckpt_philox host{5, 6 + step, 7, nullptr};
    OK(ckpt_philox_u32(&host, 0, 100, wanted.data()));
    EXPECT_EQ(Memory::read(copy, 100), wanted);
  }
  ckpt_graph_destroy(graph);
}

TEST(Device, WhatAGraphCannotHoldIsRefusedAndTheCaptureGoesOn) {
  if (!target().cuda) GTEST_SKIP() << "there are no graphs on the CPU";
  Memory memory(1 << 20);
  auto *out = memory.take<uint32_t>(100);
  OK(ckpt_device_fill(target().device, target().stream, out, 0, 400));
  std::vector<uint32_t> host(100);
  ckpt_graph *graph = nullptr;
  ckpt_arena *arena = nullptr;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = target().stream;
  desc.capacity_bytes = 4096;
  const ckpt_philox p{5, 6, 7, nullptr};
  REFUSED(ckpt_device_capture_end(target().device, target().stream, &graph), CKPT_ERROR_STATE, "not being captured");
  OK(ckpt_device_capture_begin(target().device, target().stream));
  REFUSED(ckpt_device_capture_begin(target().device, target().stream), CKPT_ERROR_STATE, "captured already");
  REFUSED(ckpt_device_synchronize(target().device, target().stream), CKPT_ERROR_CAPTURE, "being captured");
  REFUSED(ckpt_device_copy(target().device, target().stream, host.data(), out, 400, CKPT_COPY_DEVICE_TO_HOST), CKPT_ERROR_CAPTURE, "pinned");
  REFUSED(ckpt_device_copy(target().device, target().stream, out, host.data(), 400, CKPT_COPY_HOST_TO_DEVICE), CKPT_ERROR_CAPTURE, "pinned");
  REFUSED(ckpt_arena_create(target().device, &desc, &arena), CKPT_ERROR_CAPTURE, "desc.stream is being captured");
  // Other streams, memory and events are no part of the capture.
  void *other = nullptr, *pinned = nullptr;
  OK(ckpt_device_stream_create(target().device, &other));
  OK(ckpt_device_host_alloc(target().device, 400, &pinned));
  desc.stream = other;
  OK(ckpt_arena_create(target().device, &desc, &arena));
  ckpt_arena_destroy(arena);
  OK(ckpt_device_philox_u32(target().device, target().stream, &p, 0, 100, out));
  OK(ckpt_device_copy(target().device, target().stream, pinned, out, 400, CKPT_COPY_DEVICE_TO_HOST));
  OK(ckpt_device_capture_end(target().device, target().stream, &graph));
  OK(ckpt_graph_launch(graph, target().stream));
  OK(ckpt_device_synchronize(target().device, target().stream));
  OK(ckpt_philox_u32(&p, 0, 100, host.data()));
  EXPECT_EQ(std::memcmp(pinned, host.data(), 400), 0);
  ckpt_graph_destroy(graph);
  ckpt_device_stream_destroy(target().device, other);
  ckpt_device_host_free(target().device, pinned, 400);
}

TEST(Device, AnArenaThatWouldHaveToGrowIsRefusedUnderCapture) {
  if (!target().cuda) GTEST_SKIP() << "there are no graphs on the CPU";
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = target().stream;
  ckpt_arena *arena = nullptr;
  ckpt_graph *graph = nullptr;
  OK(ckpt_arena_create(target().device, &desc, &arena));
  void *first = ckpt_arena_alloc(arena, 1000, 0);
  ASSERT_NE(first, nullptr);
  OK(ckpt_device_capture_begin(target().device, target().stream));
  void *there = ckpt_arena_alloc(arena, 1 << 20, 0);
  EXPECT_NE(there, nullptr) << ckpt_last_error();
  EXPECT_EQ(ckpt_arena_alloc(arena, 100 << 20, 0), nullptr);
  REFUSED(ckpt_last_status(), CKPT_ERROR_CAPTURE, "grow", "capacity");
  OK(ckpt_device_capture_end(target().device, target().stream, &graph));
  ckpt_graph_destroy(graph);
  void *later = ckpt_arena_alloc(arena, 100 << 20, 0);
  EXPECT_NE(later, nullptr) << ckpt_last_error();
  for (void *block : {first, there, later}) OK(ckpt_arena_free(arena, block));
  ckpt_arena_destroy(arena);
}

TEST(Device, OtherKindsAreRefused) {
  uint8_t data[4];
  REFUSED(ckpt_device_copy(target().device, target().stream, data, data + 2, 2, 3), CKPT_ERROR_INVALID_ARGUMENT, "kind is 3");
  void *self = nullptr;
  EXPECT_EQ(ckpt_device_interface(target().device, "nothing", &self), nullptr);
  EXPECT_EQ(ckpt_last_status(), CKPT_ERROR_NOT_FOUND);
  EXPECT_EQ(ckpt_device_interface(target().device, "ops", &self) != nullptr, target().cuda);
  EXPECT_EQ(self != nullptr, target().cuda);
}

}  // namespace
