// Each call of a training step on the device fails once: the status says what, nothing is lost, the next step is right.
#include "chain.h"
#include "words.h"

namespace {

using conformance::Chain;
using conformance::ChainOptions;
using conformance::Results;
using conformance::target;

constexpr uint64_t kKey = 7;

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!target().simulated) GTEST_SKIP() << "only the double fails when it is asked to";
  }
  void TearDown() override {
    if (target().simulated) target().sim.reset();
  }
  static ChainOptions options() {
    ChainOptions o;
    o.segments = 4;
    o.strategy = CKPT_STRATEGY_SQRT;
    return o;
  }
};

// The k-th call of a whole life: a tape and arena made, a step by bytes, one by costs, one with checks and guards.
TEST_F(Faults, EveryCallOfALifeMayFail) {
  std::vector<Results> wanted;
  {
    Chain chain(options());
    for (int n = 0; n < 2; ++n) {
      OK(chain.step(kKey));
      wanted.push_back(chain.results());
    }
  }
  for (const bool careful : {false, true}) {
    ChainOptions o = options();
    if (careful) {
      o.segments = 4;
      o.checks = CKPT_CHECK_DETERMINISM | CKPT_CHECK_INPUTS;
      o.arena_flags = CKPT_ARENA_GUARD | CKPT_ARENA_POISON;
    }
    Chain chain(o);
    OK(chain.step(kKey));
    OK(chain.step(kKey));
    OK(ckpt_device_synchronize(target().device, target().stream));
    OK(ckpt_tape_prepare(chain.tape, kKey));
    OK(ckpt_device_synchronize(target().device, target().stream));
    const std::string before = target().sim.things();
    uint64_t failures = 0, calls = 0;
    for (uint64_t k = 1;; k += careful && k > 50 ? 7 : 1) {
      ASSERT_LT(k, 20000u);
      OK(ckpt_tape_set_step(chain.tape, 1));
      target().sim.fail_call(k, 1, nullptr);
      const ckpt_status status = chain.step(kKey);
      const std::string call = target().sim.failed_call(), text = ckpt_last_error();
      target().sim.fail_call(0, 0, nullptr);
      OK(ckpt_device_synchronize(target().device, target().stream));
      EXPECT_EQ(target().sim.things(), before) << call;
      EXPECT_EQ(chain.arena_in_use(), 0u) << call;
      if (call.empty()) {
        EXPECT_EQ(status, CKPT_OK) << text;
        EXPECT_EQ(chain.stats().step, 2u);
        calls = k;
        break;
      }
      if (status == CKPT_OK) {  // of giving back, or a mode of this thread
        EXPECT_TRUE(chain.results() == wanted[1]) << call;
        continue;
      }
      ++failures;
      EXPECT_TRUE(status == CKPT_ERROR_DEVICE || status == CKPT_ERROR_OUT_OF_MEMORY) << call << ": " << status << ": " << text;
      EXPECT_NE(text.find("cuda:0: "), std::string::npos) << call << ": " << text;
      EXPECT_EQ(chain.stats().step, 1u) << call << ": a failed step is none";
      OK(chain.step(kKey)) << call;
      ASSERT_TRUE(chain.results() == wanted[1]) << "after " << call;
    }
    EXPECT_GT(failures, 30u);
    std::printf("conformance: %llu calls of a step failed, of about %llu\n", static_cast<unsigned long long>(failures), static_cast<unsigned long long>(calls));
  }
}

TEST_F(Faults, EveryCallOfAFirstStepMayFail) {
  Results wanted;
  {
    Chain chain(options());
    OK(chain.step(kKey));
    wanted = chain.results();
  }
  (void)ckpt_device_synchronize(target().device, target().stream);
  const std::string before = target().sim.things();
  uint64_t failures = 0;
  for (uint64_t k = 1;; k += k > 40 ? 5 : 1) {
    ASSERT_LT(k, 20000u);
    bool done = false;
    {
      Chain chain(options());
      target().sim.fail_call(k, 1, nullptr);
      const ckpt_status status = chain.step(kKey);
      const std::string call = target().sim.failed_call();
      target().sim.fail_call(0, 0, nullptr);
      done = call.empty();
      failures += status != CKPT_OK;
      if (status) {
        OK(chain.step(kKey)) << call;  // a first step again
        EXPECT_EQ(chain.stats().step, 1u);
      }
      ASSERT_TRUE(chain.results() == wanted) << call;
    }
    ASSERT_EQ(target().sim.things(), before);
    if (done) break;
  }
  EXPECT_GT(failures, 20u);
}

// A kernel that faults in the middle of a step: the step fails with its name, and so does all that comes after, until the process ends.
TEST_F(Faults, ALostDeviceEndsTheStepAndRefusesTheNext) {
  ckpt_device *device = nullptr;
  void *stream = nullptr;
  OK(ckpt_device_open("cuda", &device));
  OK(ckpt_device_stream_create(device, &stream));
  const conformance::Target own = target();
  ASSERT_NE(conformance::ops(), nullptr);  // of this process, before the device that is lost
  target().device = device;
  target().stream = stream;
  {
    ChainOptions o = options();
    o.segments = 2;
    Chain chain(o);
    // The layers' handle of this process is on the other device: what is asked for here fails before them, in the gradients' fill.
    OK(ckpt_device_synchronize(device, stream));
    target().sim.fail_call(1, 700, "cudaMemsetAsync");
    REFUSED(chain.step(kKey), CKPT_ERROR_DEVICE, "cudaErrorIllegalAddress (700)", "cudaMemsetAsync");
    REFUSED(ckpt_tape_begin(chain.tape, kKey, 0), CKPT_ERROR_DEVICE, "cudaErrorIllegalAddress (700)", "earlier error", "cudaMemsetAsync");
    ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
    ckpt_buffer buffer = 0;
    in.data = chain.input;
    in.bytes = 16;
    REFUSED(ckpt_tape_input(chain.tape, &in, &buffer), CKPT_ERROR_DEVICE, "earlier error");
    EXPECT_EQ(chain.arena_in_use(), 0u);
    EXPECT_EQ(chain.stats().step, 0u);
    target().sim.reset();
  }
  ckpt_device_stream_destroy(device, stream);
  ckpt_device_close(device);
  target() = own;
  Chain chain(options());  // the other device was not lost
  OK(chain.step(kKey));
}

// A life of its own: device, stream, arena, tape, steps, a captured step, and the end of it all. The first status that was not OK.
ckpt_status life(uint32_t arena_flags) {
  conformance::Words words;
  ckpt_arena *arena = nullptr;
  ckpt_tape *tape = nullptr;
  ckpt_graph *graph = nullptr;
  ckpt_status status = CKPT_OK;
  const auto run = [&](auto &&call) {
    if (status == CKPT_OK) status = call();
  };
  const auto step = [&] { return words.step(tape, kKey); };
  run([&] { return ckpt_device_open(target().open_name.c_str(), &words.device); });
  run([&] { return ckpt_device_stream_create(words.device, &words.stream); });
  run([&] {
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.stream = words.stream;
    desc.flags = arena_flags;
    desc.capacity_bytes = 1 << 16;
    return ckpt_arena_create(words.device, &desc, &arena);
  });
  run([&] {
    words.block = static_cast<uint8_t *>(ckpt_arena_alloc(arena, words.kBlockBytes, CKPT_ARENA_HIGH));
    return words.block != nullptr ? CKPT_OK : ckpt_last_status();
  });
  run([&] { return ckpt_device_fill(words.device, words.stream, words.block, 0, words.kBlockBytes); });
  run([&] { return words.make_segment(); });
  run([&] {
    ckpt_tape_desc desc = CKPT_TAPE_DESC_INIT;
    desc.arena = arena;
    desc.budget_bytes = 1 << 15;
    desc.strategy = CKPT_STRATEGY_SQRT;
    return ckpt_tape_create(&desc, &tape);
  });
  for (int k = 0; k < 2; ++k) run(step);
  if (!(arena_flags & CKPT_ARENA_GUARD)) {
    run([&] { return ckpt_tape_prepare(tape, kKey); });
    bool captured = false;
    run([&] {
      const ckpt_status s = ckpt_device_capture_begin(words.device, words.stream);
      captured = s == CKPT_OK;
      return s;
    });
    run(step);
    if (captured) {
      const ckpt_status ended = ckpt_device_capture_end(words.device, words.stream, &graph);
      run([&] { return ended; });
    }
    run([&] { return ckpt_tape_replay(tape); });
    run([&] { return ckpt_graph_launch(graph, words.stream); });
  }
  run(step);
  run([&] { return ckpt_device_synchronize(words.device, words.stream); });
  run([&] { return ckpt_arena_check(arena); });
  ckpt_graph_destroy(graph);
  ckpt_tape_destroy(tape);
  ckpt_segment_destroy(words.segment);
  if (words.block != nullptr) (void)ckpt_arena_free(arena, words.block);
  ckpt_arena_destroy(arena);
  ckpt_device_stream_destroy(words.device, words.stream);
  ckpt_device_close(words.device);
  return status;
}

// Each of these calls of a life fails once: a status that says so, everything goes in peace, and the next life is as always.
struct Failing {
  int error;
  ckpt_status status;
  uint64_t first, stride;  // of the calls
  const char *name;        // of those that are counted; nullptr: all
};
uint64_t fail_in_lives(uint32_t flags, const Failing &f) {
  const std::string before = target().sim.things();
  uint64_t failures = 0;
  for (uint64_t k = f.first; k < 20000; k += f.stride) {
    target().sim.fail_call(k, f.error, f.name);
    const ckpt_status status = life(flags);
    const std::string call = target().sim.failed_call(), text = ckpt_last_error();
    target().sim.reset();
    EXPECT_EQ(target().sim.things(), before) << "call " << k << ": " << call;
    if (call.empty()) {
      EXPECT_EQ(status, CKPT_OK) << text;
      return failures;
    }
    if (status == CKPT_OK) continue;  // of giving back, or a mode of this thread
    ++failures;
    // What cannot even count the devices knows no more than that.
    EXPECT_EQ(status, call == "cudaGetDeviceCount" ? CKPT_ERROR_DEVICE : f.status) << "call " << k << ": " << call << ": " << text;
    EXPECT_NE(text.find("cuda:0: "), std::string::npos) << call << ": " << text;
    EXPECT_EQ(life(flags), CKPT_OK) << "after " << call << ": " << ckpt_last_error();
    if (::testing::Test::HasFailure()) return failures;
  }
  ADD_FAILURE() << "a life never came to its end";
  return failures;
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 3;  // each call still fails, of one error
#else
constexpr uint64_t kStride = 1;
#endif
constexpr Failing kErrors[] = {
    {2, CKPT_ERROR_OUT_OF_MEMORY, 1, kStride, nullptr}, {700, CKPT_ERROR_DEVICE, 2, kStride, nullptr}, {901, CKPT_ERROR_CAPTURE, 3, kStride, nullptr}};

TEST_F(Faults, ALifeThatEndsAnywhere) {
  OK(life(CKPT_ARENA_PLAIN));
  for (const Failing &f : kErrors) EXPECT_GT(fail_in_lives(CKPT_ARENA_PLAIN, f), 300u / kStride);
}

// Guards and poison make many more calls, which are alike: not every one of each error.
TEST_F(Faults, ALifeWithGuardsThatEndsAnywhere) {
  constexpr uint32_t kFlags = CKPT_ARENA_PLAIN | CKPT_ARENA_GUARD | CKPT_ARENA_POISON;
  OK(life(kFlags));
  for (Failing f : kErrors) {
    f.stride = 7 * kStride;
    EXPECT_GT(fail_in_lives(kFlags, f), 80u / kStride);
  }
}

// Mapped memory costs more time here: only what makes and gives back mappings, and the calls around it.
TEST_F(Faults, ALifeOnMappedMemoryThatEndsAnywhere) {
  OK(life(0));
  for (Failing f : kErrors) {
    f.first = f.stride = 1;
    for (const char *name : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
      f.name = name;
      EXPECT_GT(fail_in_lives(0, f), 0u) << name;
    }
    for (const char *name : {"cuMemRelease", "cuMemUnmap", "cuMemAddressFree", "cudaMalloc", "cudaFree"}) {
      f.name = name;
      (void)fail_in_lives(0, f);
    }
  }
}

}  // namespace
