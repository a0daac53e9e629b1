// Threads that do all at once, each with things of its own on the same devices. The first thing that this program does with a tape is done
// on threads: what is made at first use is made there.
#include <algorithm>
#include <atomic>
#include <thread>

#include "words.h"

namespace {

using conformance::target;
using conformance::Words;

constexpr uint64_t kKey = 5, kSeed = 11;
constexpr int kThreads = 3, kTapes = 2;

ckpt_tape *make_tape(ckpt_arena *arena) {
  ckpt_tape_desc desc = CKPT_TAPE_DESC_INIT;
  desc.arena = arena;
  desc.budget_bytes = 1 << 14;
  desc.seed = kSeed;
  desc.strategy = CKPT_STRATEGY_SQRT;
  ckpt_tape *tape = nullptr;
  EXPECT_OK(ckpt_tape_create(&desc, &tape));
  return tape;
}

// From the device's opening to its closing; `order` is the order in which things go.
void live(const std::string &name, uint32_t arena_flags, std::vector<int> order) {
  Words words;
  OK(ckpt_device_open(name.c_str(), &words.device));
  OK(ckpt_device_stream_create(words.device, &words.stream));
  OK(words.make_segment());
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = words.stream;
  desc.capacity_bytes = 1 << 16;
  desc.flags = arena_flags;
  ckpt_arena *arena = nullptr;
  OK(ckpt_arena_create(words.device, &desc, &arena));
  words.block = static_cast<uint8_t *>(ckpt_arena_alloc(arena, words.kBlockBytes, CKPT_ARENA_HIGH));
  ASSERT_NE(words.block, nullptr) << ckpt_last_error();
  std::vector<ckpt_tape *> tapes;
  for (int t = 0; t < kTapes; ++t) tapes.push_back(make_tape(arena));
  for (uint64_t k = 0; k < 2; ++k)
    for (ckpt_tape *tape : tapes) {
      OK(words.step(tape, kKey));
      EXPECT_EQ(words.read(), words.drawn(kSeed, k));
    }
  ckpt_graph *graph = nullptr;
  if (target().cuda) {
    for (ckpt_tape *tape : tapes) OK(ckpt_tape_prepare(tape, kKey));
    OK(ckpt_device_capture_begin(words.device, words.stream));
    for (ckpt_tape *tape : tapes) OK(words.step(tape, kKey));
    OK(ckpt_device_capture_end(words.device, words.stream, &graph));
    for (uint64_t k = 2; k < 4; ++k) {
      for (ckpt_tape *tape : tapes) OK(ckpt_tape_replay(tape));
      OK(ckpt_graph_launch(graph, words.stream));
      EXPECT_EQ(words.read(), words.drawn(kSeed, k));
    }
  }
  for (const int thing : order) {
    switch (thing - kTapes) {
      case 0: ckpt_arena_destroy(arena); break;
      case 1: EXPECT_OK(ckpt_arena_free(arena, words.block)); break;  // a block keeps its arena
      case 2: ckpt_segment_destroy(words.segment); break;
      case 3: ckpt_graph_destroy(graph); break;
      case 4: ckpt_device_close(words.device); break;
      default: ckpt_tape_destroy(tapes[static_cast<size_t>(thing)]);
    }
  }
  ckpt_device_stream_destroy(target().device, words.stream);
}

TEST(Threads, LiveAllAtOnceAndThingsGoInAnyOrder) {
  const std::string before = target().simulated ? target().sim.things() : "";
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      std::vector<int> order;
      for (int thing = 0; thing < kTapes + 5; ++thing) order.push_back(thing);
      for (int k = 0; k < 8; ++k) {
        for (int turn = 0; turn < 97 * (t + 1) + 13 * k; ++turn) std::next_permutation(order.begin(), order.end());
        const bool second = target().simulated && (t + k) % 2 != 0;
        live(second ? "cuda:1" : target().open_name, k % 4 == 0 ? 0 : uint32_t{CKPT_ARENA_PLAIN}, order);
      }
    });
  for (std::thread &thread : threads) thread.join();
  if (target().simulated) {
    EXPECT_EQ(target().sim.things(), before);
  }
}

// A tape and its arena go on another thread while the arena's owner works on another tape of it.
TEST(Threads, ATapeGoesOnAnotherThreadWhileItsArenaIsUsed) {
  const std::string before = target().simulated ? target().sim.things() : "";
  for (int round = 0; round < 8; ++round) {
    Words words{target().device, target().stream};
    OK(words.make_segment());
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.stream = words.stream;
    desc.capacity_bytes = 1 << 16;
    desc.flags = target().cuda ? uint32_t{CKPT_ARENA_PLAIN} : 0;
    ckpt_arena *arena = nullptr;
    OK(ckpt_arena_create(words.device, &desc, &arena));
    words.block = static_cast<uint8_t *>(ckpt_arena_alloc(arena, words.kBlockBytes, CKPT_ARENA_HIGH));
    ckpt_tape *stays = make_tape(arena), *goes = make_tape(arena);
    for (int k = 0; k < 2; ++k) OK(words.step(goes, kKey));
    OK(ckpt_tape_prepare(goes, kKey));
    std::atomic<int> steps{0};
    std::thread other([&] {
      while (steps < round % 4) std::this_thread::yield();
      ckpt_tape_destroy(goes);
      ckpt_arena_destroy(arena);
    });
    for (uint64_t k = 0; k < 6; ++k, ++steps) {
      OK(words.step(stays, kKey));
      EXPECT_EQ(words.read(), words.drawn(kSeed, k));
    }
    other.join();
    OK(words.step(stays, kKey));
    OK(ckpt_arena_free(arena, words.block));  // the block has kept it
    ckpt_tape_destroy(stays);
    ckpt_segment_destroy(words.segment);
    OK(ckpt_device_synchronize(target().device, target().stream));
    if (target().simulated) {
      EXPECT_EQ(target().sim.things(), before) << round;
    }
  }
}

// One tape, several threads: refused as busy, or in the middle of another's step; the next step is right.
TEST(Threads, ATapeIsOneThreadsAtATime) {
  conformance::Memory memory(1 << 16);
  Words words{target().device, target().stream};
  OK(words.make_segment());
  words.block = memory.take<uint8_t>(words.kBlockBytes);
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = words.stream;
  desc.capacity_bytes = 1 << 16;
  ckpt_arena *arena = nullptr;
  OK(ckpt_arena_create(words.device, &desc, &arena));
  ckpt_tape *tape = make_tape(arena);
  std::atomic<int> odd{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const ckpt_status status = words.step(tape, kKey);
        odd += status != CKPT_OK && status != CKPT_ERROR_BUSY && status != CKPT_ERROR_STATE && status != CKPT_ERROR_STALE;
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(odd.load(), 0);
  (void)ckpt_tape_reset(tape);
  OK(ckpt_tape_set_step(tape, 40));
  OK(words.step(tape, kKey));
  EXPECT_EQ(words.read(), words.drawn(kSeed, 40));
  ckpt_tape_destroy(tape);
  ckpt_segment_destroy(words.segment);
  ckpt_arena_destroy(arena);
}

}  // namespace
