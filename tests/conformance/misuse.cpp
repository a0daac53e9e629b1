// Calls in an order that nobody should make them in, and things that go away while others hold them: refused with a sentence, or as good as
// any other order. Nothing leaks, and the next step is right.
#include <thread>

#include "chain.h"
#include "words.h"

namespace {

using conformance::Chain;
using conformance::ChainOptions;
using conformance::Memory;
using conformance::target;

constexpr uint64_t kKey = 3;

ChainOptions options() {
  ChainOptions o;
  o.segments = 4;
  o.strategy = CKPT_STRATEGY_SQRT;
  return o;
}

class Misuse : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!target().cuda) GTEST_SKIP() << "on the CPU there are no streams and no graphs";
    static const bool warm = [] {  // the layers' work space and descriptions and the hashes', which stay
      ChainOptions o = options();
      o.checks = CKPT_CHECK_DETERMINISM;
      Chain chain(o);
      return chain.step() == CKPT_OK;
    }();
    EXPECT_TRUE(warm) << ckpt_last_error();
    if (target().simulated) before_ = target().sim.things();
  }
  void TearDown() override {
    if (!target().simulated) return;
    EXPECT_OK(ckpt_device_synchronize(target().device, target().stream));
    EXPECT_EQ(target().sim.things(), before_);
    target().sim.reset();
  }
  static ckpt_status begin(void *stream = target().stream) { return ckpt_device_capture_begin(target().device, stream); }
  static ckpt_status end(ckpt_graph **graph, void *stream = target().stream) { return ckpt_device_capture_end(target().device, stream, graph); }
  static void prepare(Chain &chain) {
    OK(chain.step(kKey));
    OK(chain.step(kKey));
    OK(ckpt_tape_prepare(chain.tape, kKey));
  }
  // A captured fill of `block`, launched: the capture that was meddled with works.
  static void finish_and_launch(void *block, size_t bytes) {
    OK(ckpt_device_fill(target().device, target().stream, block, 7, bytes));
    ckpt_graph *graph = nullptr;
    OK(end(&graph));
    OK(ckpt_graph_launch(graph, target().stream));
    EXPECT_EQ(Memory::read(static_cast<uint8_t *>(block), bytes), std::vector<uint8_t>(bytes, 7));
    ckpt_graph_destroy(graph);
  }

 private:
  std::string before_;
};

TEST_F(Misuse, ACaptureThatIsBegunTwiceGoesOn) {
  Memory memory(1 << 16);
  uint8_t *block = memory.take<uint8_t>(100);
  OK(begin());
  REFUSED(begin(), CKPT_ERROR_STATE, "captured already");
  finish_and_launch(block, 100);
}

TEST_F(Misuse, ACaptureThatIsEndedOnAnotherThreadGoesOn) {
  Memory memory(1 << 16);
  uint8_t *block = memory.take<uint8_t>(100);
  OK(begin());
  std::thread([] {
    ckpt_graph *graph = reinterpret_cast<ckpt_graph *>(&graph);
    REFUSED(end(&graph), CKPT_ERROR_CAPTURE, "thread");
    EXPECT_EQ(graph, nullptr);
  }).join();
  finish_and_launch(block, 100);
  ckpt_graph *graph = nullptr;
  REFUSED(end(&graph), CKPT_ERROR_STATE, "not being captured");
}

TEST_F(Misuse, ACaptureThatIsEndedWithoutAPlaceForItsGraphIsEnded) {
  Memory memory(1 << 16);
  uint8_t *block = memory.take<uint8_t>(100);
  OK(begin());
  OK(ckpt_device_fill(target().device, target().stream, block, 7, 100));
  REFUSED(end(nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_graph is NULL");
  OK(begin());
  finish_and_launch(block, 100);
}

// What is done beside a capture, on other streams and with other memory, by the same thread and by others.
TEST_F(Misuse, ACaptureIsLeftAloneByWhatIsDoneBesideIt) {
  Memory memory(1 << 16);
  uint8_t *block = memory.take<uint8_t>(100);
  void *other = nullptr;
  OK(ckpt_device_stream_create(target().device, &other));
  const auto everything = [&] {
    OK(ckpt_device_fill(target().device, other, block, 1, 100));
    OK(ckpt_device_synchronize(target().device, other));
    uint8_t pageable[100];
    OK(ckpt_device_copy(target().device, other, pageable, block, 100, CKPT_COPY_DEVICE_TO_HOST));
    OK(ckpt_device_synchronize(target().device, other));
    EXPECT_EQ(pageable[99], 1);
    for (const uint32_t flags : {0u, uint32_t{CKPT_ARENA_GUARD | CKPT_ARENA_POISON}, uint32_t{CKPT_ARENA_PLAIN}}) {
      ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
      desc.stream = other;
      desc.capacity_bytes = flags == 0 ? 0 : 1 << 20;
      desc.flags = flags;
      ckpt_arena *arena = nullptr;
      OK(ckpt_arena_create(target().device, &desc, &arena));
      void *mine = ckpt_arena_alloc(arena, 1000, 0);
      EXPECT_NE(mine, nullptr) << ckpt_last_error();
      OK(ckpt_device_fill(target().device, other, mine, 2, 1000));
      OK(ckpt_arena_free(arena, mine));
      ckpt_arena_destroy(arena);
    }
    void *stream = nullptr, *pinned = nullptr;
    OK(ckpt_device_stream_create(target().device, &stream));
    ckpt_device_stream_destroy(target().device, stream);
    OK(ckpt_device_host_alloc(target().device, 1000, &pinned));
    ckpt_device_host_free(target().device, pinned, 1000);
    ckpt_device *again = nullptr;
    OK(ckpt_device_open(target().open_name.c_str(), &again));
    ckpt_device_info info{};
    info.struct_size = sizeof info;
    OK(ckpt_device_get_info(again, &info));
    ckpt_device_close(again);
  };
  OK(begin());
  everything();
  finish_and_launch(block, 100);
  OK(begin());
  std::thread(everything).join();
  finish_and_launch(block, 100);
  ckpt_device_stream_destroy(target().device, other);
}

TEST_F(Misuse, StepsOfOtherTapesBesideACapture) {
  void *other = nullptr;
  OK(ckpt_device_stream_create(target().device, &other));
  {
    Memory memory(1 << 16);
    uint8_t *block = memory.take<uint8_t>(100);
    Chain chain(options());
    prepare(chain);
    OK(begin(other));
    for (int k = 0; k < 4; ++k) {
      OK(chain.step(kKey));
      EXPECT_EQ(chain.results().masks, chain.host_masks(chain.stats().step - 1));
    }
    ChainOptions o = options();
    o.arena_flags = CKPT_ARENA_GUARD | CKPT_ARENA_POISON;
    o.checks = CKPT_CHECK_INPUTS | CKPT_CHECK_DETERMINISM;
    {
      Chain checked(o);
      OK(checked.step(kKey));
      OK(checked.step(kKey));
    }
    OK(ckpt_tape_prepare(chain.tape, kKey));
    OK(ckpt_device_fill(target().device, other, block, 9, 100));
    ckpt_graph *graph = nullptr;
    OK(end(&graph, other));
    OK(ckpt_graph_launch(graph, target().stream));
    EXPECT_EQ(Memory::read(block, 100), std::vector<uint8_t>(100, 9));
    ckpt_graph_destroy(graph);
  }
  ckpt_device_stream_destroy(target().device, other);
}

// A tape, and with it its events and its word, goes while a step of another one is captured.
TEST_F(Misuse, ATapeThatGoesDuringACaptureOfAnother) {
  Chain chain(options());
  prepare(chain);
  auto second = std::make_unique<Chain>(options());
  prepare(*second);
  OK(second->step(kKey));  // its events may not be reached yet
  OK(begin());
  OK(chain.step(kKey));
  ckpt_tape_destroy(std::exchange(second->tape, nullptr));
  ckpt_arena_destroy(std::exchange(second->arena, nullptr));
  ckpt_graph *graph = nullptr;
  OK(end(&graph));
  second.reset();
  const uint64_t step = chain.stats().step;
  OK(ckpt_tape_replay(chain.tape));
  OK(ckpt_graph_launch(graph, target().stream));
  EXPECT_EQ(chain.results().masks, chain.host_masks(step));
  ckpt_graph_destroy(graph);
}

// Steps of two tapes in one graph, on one stream: each has its own word.
TEST_F(Misuse, TwoTapesInOneGraph) {
  Chain first(options()), second(options());
  prepare(first);
  prepare(second);
  OK(ckpt_tape_set_step(second.tape, 500));
  OK(begin());
  OK(first.step(kKey));
  OK(second.step(kKey));
  ckpt_graph *graph = nullptr;
  OK(end(&graph));
  for (uint64_t k = 0; k < 3; ++k) {
    OK(ckpt_tape_replay(first.tape));
    OK(ckpt_tape_replay(second.tape));
    OK(ckpt_graph_launch(graph, target().stream));
    EXPECT_EQ(first.results().masks, first.host_masks(2 + k));
    EXPECT_EQ(second.results().masks, second.host_masks(500 + k));
  }
  ckpt_graph_destroy(graph);
}

// The second would draw what the first one draws. The next graph has one again, and a recording does not go on in it.
TEST_F(Misuse, TwoStepsOfATapeInOneGraph) {
  Chain chain(options());
  prepare(chain);
  ckpt_graph *graph = nullptr;
  for (int k = 0; k < 2; ++k) {
    OK(begin());
    OK(chain.step(kKey));
    REFUSED(chain.step(kKey), CKPT_ERROR_CAPTURE, "ckpt_tape_begin", "a whole step of the tape already");
    OK(end(&graph));
    ckpt_graph_destroy(graph);
  }
  OK(begin());
  OK(ckpt_tape_begin(chain.tape, kKey, 0));
  ckpt_buffer buffer = 0;
  OK(chain.forward(chain.options.segments, &buffer));
  OK(end(&graph));
  ckpt_graph_destroy(graph);
  OK(begin());
  const void *grad = chain.root;
  REFUSED(ckpt_backward(chain.tape, &buffer, &grad, 1, 0), CKPT_ERROR_CAPTURE, "not the one that the recording began in");
  OK(chain.step(kKey));
  OK(end(&graph));
  for (uint64_t step = 2; step < 4; ++step) {
    OK(ckpt_tape_replay(chain.tape));
    OK(ckpt_graph_launch(graph, target().stream));
    EXPECT_EQ(chain.results().masks, chain.host_masks(step));
  }
  ckpt_graph_destroy(graph);
}

// The device's count is dropped first, then all the rest that holds it.
TEST_F(Misuse, ADeviceThatIsClosedFirst) {
  ckpt_device *device = nullptr;
  void *stream = nullptr;
  OK(ckpt_device_open(target().open_name.c_str(), &device));
  OK(ckpt_device_stream_create(device, &stream));
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = stream;
  ckpt_arena *arena = nullptr;
  OK(ckpt_arena_create(device, &desc, &arena));
  void *block = ckpt_arena_alloc(arena, 100, 0);
  ckpt_graph *graph = nullptr;
  OK(ckpt_device_capture_begin(device, stream));
  OK(ckpt_device_fill(device, stream, block, 3, 100));
  OK(ckpt_device_capture_end(device, stream, &graph));
  ckpt_device_close(device);
  OK(ckpt_graph_launch(graph, stream));
  OK(ckpt_device_synchronize(target().device, stream));
  OK(ckpt_arena_free(arena, block));
  ckpt_arena_destroy(arena);
  ckpt_graph_destroy(graph);
  ckpt_device_stream_destroy(target().device, stream);
}

// A stream that goes while it is captured takes the capture with it.
TEST_F(Misuse, AStreamThatGoesDuringItsCapture) {
  if (!target().simulated) GTEST_SKIP() << "a handle that is gone may only be given to the double";
  void *stream = nullptr;
  OK(ckpt_device_stream_create(target().device, &stream));
  OK(begin(stream));
  ckpt_device_stream_destroy(target().device, stream);
  Memory memory(1 << 16);
  uint8_t *block = memory.take<uint8_t>(100);
  OK(begin());
  finish_and_launch(block, 100);
}

// Replays without their step, and steps that are not whole.
TEST_F(Misuse, ReplayBeforeAnythingIsCaptured) {
  Chain chain(options());
  REFUSED(ckpt_tape_replay(chain.tape), CKPT_ERROR_STATE, "no whole step");
  REFUSED(ckpt_tape_prepare(chain.tape, kKey), CKPT_ERROR_NOT_FOUND, "3");
  OK(chain.step(kKey));
  OK(begin());
  REFUSED(chain.step(kKey), CKPT_ERROR_CAPTURE, "key 3", "ckpt_tape_prepare");
  ckpt_graph *graph = nullptr;
  OK(end(&graph));
  OK(ckpt_graph_launch(graph, target().stream));  // the fill before the step: a graph like any other
  ckpt_graph_destroy(graph);
  REFUSED(ckpt_tape_replay(chain.tape), CKPT_ERROR_STATE, "no whole step");
  OK(chain.step(kKey));
  EXPECT_EQ(chain.results().masks, chain.host_masks(1));
}

// Memory that is not there yet cannot come while the stream is captured; it can before and after.
TEST_F(Misuse, AnArenaThatWouldGrowDuringACapture) {
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = target().stream;
  ckpt_arena *arena = nullptr, *second = nullptr;
  OK(ckpt_arena_create(target().device, &desc, &arena));
  OK(begin());
  EXPECT_EQ(ckpt_arena_alloc(arena, 100, 0), nullptr);
  REFUSED(ckpt_last_status(), CKPT_ERROR_CAPTURE, "grow", "captured");
  REFUSED(ckpt_arena_create(target().device, &desc, &second), CKPT_ERROR_CAPTURE, "being captured");
  ckpt_graph *graph = nullptr;
  OK(end(&graph));
  ckpt_graph_destroy(graph);
  void *low = ckpt_arena_alloc(arena, 100, 0), *high = ckpt_arena_alloc(arena, 100, CKPT_ARENA_HIGH);
  EXPECT_NE(low, nullptr) << ckpt_last_error();
  EXPECT_NE(high, nullptr) << ckpt_last_error();
  OK(begin());
  void *more = ckpt_arena_alloc(arena, 1 << 20, 0);  // within the piece that is there
  EXPECT_NE(more, nullptr) << ckpt_last_error();
  OK(ckpt_arena_free(arena, more));
  OK(end(&graph));
  ckpt_graph_destroy(graph);
  OK(ckpt_arena_free(arena, low));
  OK(ckpt_arena_free(arena, high));
  ckpt_arena_destroy(arena);
}

// A tape that goes right after its step, which the device has not done yet: again and again, nothing stays.
TEST_F(Misuse, TapesThatGoBeforeTheirStepsAreDone) {
  const auto once = [] {
    Chain chain(options());
    for (int k = 0; k < 3; ++k) {
      if (target().simulated) target().sim.delay(CUDASIM_KERNEL, 5, 5);
      OK(chain.step(kKey));
    }
    OK(ckpt_tape_begin(chain.tape, kKey, 0));
    ckpt_buffer buffer = 0;
    OK(chain.forward(2, &buffer));
    // The rest goes with the tape: a recording in progress, its events, those of the step before.
  };
  for (int k = 0; k < 5; ++k) once();
}

// Steps, preparations, captures, replays and set steps in any order, against a model of what each must do.
class AnyOrder {
 public:
  AnyOrder() {
    EXPECT_OK(words_.make_segment());
    words_.block = memory_.take<uint8_t>(words_.kBlockBytes);
    ckpt_arena_desc a = CKPT_ARENA_DESC_INIT;
    a.stream = words_.stream;
    a.capacity_bytes = 1 << 16;
    a.flags = CKPT_ARENA_PLAIN;
    EXPECT_OK(ckpt_arena_create(words_.device, &a, &arena_));
    ckpt_tape_desc t = CKPT_TAPE_DESC_INIT;
    t.arena = arena_;
    t.seed = kSeed;
    t.strategy = CKPT_STRATEGY_SQRT;
    EXPECT_OK(ckpt_tape_create(&t, &tape_));
  }
  ~AnyOrder() {
    if (captured_) end();
    ckpt_graph_destroy(graph_);
    ckpt_tape_destroy(tape_);
    ckpt_segment_destroy(words_.segment);
    ckpt_arena_destroy(arena_);
    EXPECT_OK(ckpt_device_synchronize(words_.device, words_.stream));
  }
  void act(uint32_t what, uint64_t number) {
    switch (what) {
      case 0: return step();
      case 1:
        EXPECT_EQ(ckpt_tape_prepare(tape_, kKey), captured_ ? CKPT_ERROR_CAPTURE : known_ ? CKPT_OK : CKPT_ERROR_NOT_FOUND) << ckpt_last_error();
        prepared_ = prepared_ || (known_ && !captured_);
        return;
      case 2: return begin();
      case 3: return end();
      case 4:
      case 5: return replay();
      default: EXPECT_OK(ckpt_tape_set_step(tape_, step_ = number));
    }
  }
  int replayed() const { return replayed_; }

 private:
  static constexpr uint64_t kSeed = 11;

  void step() {
    const ckpt_status status = words_.step(tape_, kKey);
    if (!captured_) {
      EXPECT_EQ(status, CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(words_.read(), words_.drawn(kSeed, step_));
      ++step_;
      known_ = true;
    } else if (prepared_ && !inside_) {
      EXPECT_EQ(status, CKPT_OK) << ckpt_last_error();
      inside_ = replayable_ = true;
    } else {
      EXPECT_EQ(status, CKPT_ERROR_CAPTURE) << ckpt_last_error();
      whole_ = false;
    }
  }
  void begin() {
    EXPECT_EQ(ckpt_device_capture_begin(words_.device, words_.stream), captured_ ? CKPT_ERROR_STATE : CKPT_OK) << ckpt_last_error();
    if (captured_) return;
    captured_ = whole_ = true;
    inside_ = false;
  }
  void end() {
    ckpt_graph *made = nullptr;
    EXPECT_EQ(ckpt_device_capture_end(words_.device, words_.stream, &made), captured_ ? CKPT_OK : CKPT_ERROR_STATE) << ckpt_last_error();
    if (!captured_) return;
    captured_ = false;
    ckpt_graph_destroy(graph_);
    graph_ = made;
    if (inside_ && whole_) return;
    ckpt_graph_destroy(graph_);
    graph_ = nullptr;
  }
  void replay() {
    EXPECT_EQ(ckpt_tape_replay(tape_), !replayable_ ? CKPT_ERROR_STATE : captured_ ? CKPT_ERROR_CAPTURE : CKPT_OK) << ckpt_last_error();
    if (!replayable_ || captured_) return;
    if (graph_ != nullptr) {
      EXPECT_OK(ckpt_graph_launch(graph_, words_.stream));
      EXPECT_EQ(words_.read(), words_.drawn(kSeed, step_));
      ++replayed_;
    }
    ++step_;
  }

  Memory memory_{1 << 16};
  conformance::Words words_{target().device, target().stream};
  ckpt_arena *arena_ = nullptr;
  ckpt_tape *tape_ = nullptr;
  ckpt_graph *graph_ = nullptr;
  uint64_t step_ = 0;
  bool known_ = false, prepared_ = false, replayable_ = false;
  bool captured_ = false, inside_ = false, whole_ = false;  // of the capture: under way; has a step; has nothing that was refused
  int replayed_ = 0;
};

TEST_F(Misuse, AnyOrderOfStepsCapturesAndReplays) {
  uint64_t seed = 1;
  const auto number = [&seed] { return (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33; };
  int replayed = 0;
  for (int round = 0; round < 80 && !HasFailure(); ++round) {
    AnyOrder any;
    for (int k = 0; k < 60; ++k) {
      const auto what = static_cast<uint32_t>(number() % 7);
      any.act(what, number() % 1000);
    }
    replayed += any.replayed();
  }
  EXPECT_GT(replayed, 40);
}

// Threads with a tape and a stream each, on one device.
TEST_F(Misuse, ThreadsThatCaptureAtTheSameTime) {
  constexpr int kThreads = 3;
  std::vector<std::thread> threads;
  Memory memory(1 << 16);
  uint8_t *blocks[kThreads];
  for (auto &block : blocks) block = memory.take<uint8_t>(1000);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      void *stream = nullptr;
      OK(ckpt_device_stream_create(target().device, &stream));
      for (int k = 0; k < 20; ++k) {
        const auto value = static_cast<uint8_t>(10 * t + k);
        OK(begin(stream));
        OK(ckpt_device_fill(target().device, stream, blocks[t], value, 1000));
        void *pinned = nullptr;
        OK(ckpt_device_host_alloc(target().device, 1000, &pinned));
        OK(ckpt_device_copy(target().device, stream, pinned, blocks[t], 1000, CKPT_COPY_DEVICE_TO_HOST));
        ckpt_graph *graph = nullptr;
        OK(end(&graph, stream));
        OK(ckpt_graph_launch(graph, stream));
        OK(ckpt_device_synchronize(target().device, stream));
        EXPECT_EQ(static_cast<uint8_t *>(pinned)[999], value);
        ckpt_graph_destroy(graph);
        ckpt_device_host_free(target().device, pinned, 1000);
      }
      ckpt_device_stream_destroy(target().device, stream);
    });
  for (std::thread &t : threads) t.join();
}

}  // namespace
