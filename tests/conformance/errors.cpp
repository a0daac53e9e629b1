// What goes wrong with a device: a status and a sentence each, nothing lost, nothing aborted. Most of it only the double can be asked for.
#include "target.h"

namespace {

using conformance::Memory;
using conformance::target;

class Errors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!target().simulated) GTEST_SKIP() << "only the double fails when it is asked to";
  }
  void TearDown() override {
    if (target().simulated) target().sim.reset();
  }
  static ckpt_status open(const char *name) {
    ckpt_device *device = reinterpret_cast<ckpt_device *>(&device);
    const ckpt_status status = ckpt_device_open(name, &device);
    EXPECT_EQ(device == nullptr, status != CKPT_OK);
    ckpt_device_close(device);
    return status;
  }
};

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kIllegalAddress = 700, kLaunchFailure = 719;

TEST_F(Errors, NoDriver) {
  target().sim.set_driver_version(0);
  REFUSED(open("cuda"), CKPT_ERROR_NOT_FOUND, "cuda:0", "no NVIDIA driver");
}

TEST_F(Errors, ADriverThatIsTooOld) {
  target().sim.set_driver_version(11040);
  REFUSED(open("cuda"), CKPT_ERROR_DEVICE, "cuda:0", "too old", "CUDA 11.4", "built with");
}

TEST_F(Errors, NoSuchDevice) {
  REFUSED(open("cuda:2"), CKPT_ERROR_NOT_FOUND, "cuda:2", "no such device", "shows 2");
  EXPECT_OK(open("cuda:1"));
  target().sim.set_device_count(0);
  REFUSED(open("cuda"), CKPT_ERROR_NOT_FOUND, "cuda:0", "no such device", "shows 0");
}

TEST_F(Errors, EveryCallOfAnOpenMayFail) {
  const std::string before = target().sim.things();
  int failed = 0;
  for (uint64_t k = 1;; ++k) {
    ASSERT_LT(k, 100u);
    target().sim.fail_call(k, 999, nullptr);
    const ckpt_status status = open("cuda");
    const std::string call = target().sim.failed_call();
    target().sim.fail_call(0, 0, nullptr);
    ASSERT_EQ(target().sim.things(), before) << call;
    if (call.empty()) {
      EXPECT_EQ(status, CKPT_OK);
      break;
    }
    // Without one of the driver's functions the device has plain memory; a failed restore of the caller's device is nobody's business.
    if (call == "cudaGetDriverEntryPointByVersion" || status == CKPT_OK) continue;
    ++failed;
    EXPECT_EQ(status, CKPT_ERROR_DEVICE) << call;
    EXPECT_NE(std::strstr(ckpt_last_error(), call.c_str()), nullptr) << ckpt_last_error();
  }
  EXPECT_GE(failed, 4);
  OK(open("cuda"));
}

TEST_F(Errors, OutOfMemorySaysTheNumbers) {
  const std::string before = target().sim.things();
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = target().stream;
  desc.capacity_bytes = size_t{3} << 30;
  target().sim.set_memory(size_t{2} << 30);
  for (const uint32_t flags : {0u, uint32_t{CKPT_ARENA_PLAIN}}) {
    desc.flags = flags;
    ckpt_arena *arena = reinterpret_cast<ckpt_arena *>(&arena);
    // 2 GiB are mapped in pieces before the last one is refused.
    REFUSED(ckpt_arena_create(target().device, &desc, &arena), CKPT_ERROR_OUT_OF_MEMORY, "cuda:0", "refused", "free", "total 2147483648");
    EXPECT_EQ(arena, nullptr);
    EXPECT_EQ(target().sim.things(), before);
  }
  desc.flags = 0;
  desc.capacity_bytes = 0;
  ckpt_arena *arena = nullptr;
  OK(ckpt_arena_create(target().device, &desc, &arena));
  std::vector<void *> blocks;
  for (;;) {
    void *block = ckpt_arena_alloc(arena, size_t{500} << 20, 0);
    if (block == nullptr) break;
    blocks.push_back(block);
    ASSERT_LE(blocks.size(), 4u);
  }
  EXPECT_EQ(blocks.size(), 4u);
  EXPECT_EQ(ckpt_last_status(), CKPT_ERROR_BUDGET);  // the arena's bound is the device's memory
  for (void *block : blocks) OK(ckpt_arena_free(arena, block));
  ckpt_arena_destroy(arena);
  // Memory that others took meanwhile.
  OK(ckpt_arena_create(target().device, &desc, &arena));
  target().sim.set_memory(size_t{1} << 30);
  void *fits = ckpt_arena_alloc(arena, (size_t{1} << 30) - (size_t{2} << 20), 0);  // no room for a whole piece of 64 MiB more
  EXPECT_NE(fits, nullptr) << ckpt_last_error();
  EXPECT_EQ(ckpt_arena_alloc(arena, size_t{100} << 20, 0), nullptr);
  REFUSED(ckpt_last_status(), CKPT_ERROR_OUT_OF_MEMORY, "cuMemCreate", "refused", "total 1073741824");
  OK(ckpt_arena_free(arena, fits));
  ckpt_arena_destroy(arena);
  EXPECT_EQ(target().sim.things(), before);
}

TEST_F(Errors, ADeviceWithoutMappedPagesHasPlainMemory) {
  target().sim.set_virtual_memory(0);
  ckpt_device *device = nullptr;
  OK(ckpt_device_open("cuda", &device));
  void *stream = nullptr;
  OK(ckpt_device_stream_create(device, &stream));
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.stream = stream;
  desc.capacity_bytes = 1 << 20;
  ckpt_arena *arena = nullptr;
  const uint64_t before = target().sim.live().allocations;
  OK(ckpt_arena_create(device, &desc, &arena));
  EXPECT_EQ(target().sim.live().allocations, before + 1);
  void *block = ckpt_arena_alloc(arena, 1 << 19, 0);
  OK(ckpt_device_fill(device, stream, block, 1, 1 << 19));
  OK(ckpt_device_synchronize(device, stream));
  OK(ckpt_arena_free(arena, block));
  ckpt_arena_destroy(arena);
  ckpt_device_stream_destroy(device, stream);
  ckpt_device_close(device);
}

// A whole life, each of its calls failed once.
TEST_F(Errors, EveryCallOfALifeMayFail) {
  const auto life = [](std::string *step) -> ckpt_status {
    ckpt_device *device = target().device;
    void *stream = nullptr, *pinned = nullptr;
    ckpt_arena *arena = nullptr;
    ckpt_graph *graph = nullptr;
    const ckpt_philox p{1, 2, 3, nullptr};
    ckpt_status status = CKPT_OK;
    const auto run = [&](const char *what, auto &&call) {
      if (status != CKPT_OK) return;
      *step = what;
      status = call();
    };
    run("stream", [&] { return ckpt_device_stream_create(device, &stream); });
    run("pinned", [&] { return ckpt_device_host_alloc(device, 4096, &pinned); });
    for (const uint32_t flags : {uint32_t{CKPT_ARENA_GUARD | CKPT_ARENA_POISON}, uint32_t{CKPT_ARENA_PLAIN}}) {
      void *block = nullptr;
      run("arena", [&] {
        ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
        desc.stream = stream;
        desc.capacity_bytes = 1 << 20;
        desc.flags = flags;
        return ckpt_arena_create(device, &desc, &arena);
      });
      run("alloc", [&] { return (block = ckpt_arena_alloc(arena, 4096, 0)) != nullptr ? CKPT_OK : ckpt_last_status(); });
      run("philox", [&] { return ckpt_device_philox_u32(device, stream, &p, 0, 1024, static_cast<uint32_t *>(block)); });
      run("copy", [&] { return ckpt_device_copy(device, stream, pinned, block, 4096, CKPT_COPY_DEVICE_TO_HOST); });
      run("fill", [&] { return ckpt_device_fill(device, stream, block, 1, 100); });
      run("synchronize", [&] { return ckpt_device_synchronize(device, stream); });
      if (block != nullptr) {
        const ckpt_status freed = ckpt_arena_free(arena, block);
        run("free", [&] { return freed; });
      }
      ckpt_arena_destroy(arena);
      arena = nullptr;
    }
    bool captured = false;
    run("capture", [&] {
      const ckpt_status s = ckpt_device_capture_begin(device, stream);
      captured = s == CKPT_OK;
      return s;
    });
    run("captured copy", [&] { return ckpt_device_copy(device, stream, pinned, pinned, 0, CKPT_COPY_DEVICE_TO_DEVICE); });
    if (captured) {
      const ckpt_status ended = ckpt_device_capture_end(device, stream, &graph);
      run("capture end", [&] { return ended; });
    }
    run("launch", [&] { return ckpt_graph_launch(graph, stream); });
    run("synchronize", [&] { return ckpt_device_synchronize(device, stream); });
    ckpt_graph_destroy(graph);
    ckpt_device_host_free(device, pinned, 4096);
    ckpt_device_stream_destroy(device, stream);
    return status;
  };
  std::string step;
  ASSERT_EQ(life(&step), CKPT_OK) << step << ckpt_last_error();
  const std::string before = target().sim.things();
  uint64_t failures = 0;
  for (uint64_t k = 1;; ++k) {
    ASSERT_LT(k, 1000u);
    target().sim.fail_call(k, kInvalidValue, nullptr);
    const ckpt_status status = life(&step);
    const std::string call = target().sim.failed_call();
    target().sim.fail_call(0, 0, nullptr);
    // A capture that could not be ended is still one.
    ASSERT_EQ(target().sim.things(), before) << "after " << call << " failed at " << step;
    if (call.empty()) {
      EXPECT_EQ(status, CKPT_OK) << step << ": " << ckpt_last_error();
      break;
    }
    if (status == CKPT_OK) continue;  // giving back, or a mode of this thread: nobody is told
    ++failures;
    EXPECT_TRUE(status == CKPT_ERROR_DEVICE || status == CKPT_ERROR_OUT_OF_MEMORY) << call << " at " << step << ": " << status;
    EXPECT_NE(std::string(ckpt_last_error()).find("cuda:0: "), std::string::npos) << ckpt_last_error();
    ASSERT_EQ(life(&step), CKPT_OK) << "after " << call << " failed: " << step << ": " << ckpt_last_error();
  }
  EXPECT_GE(failures, 25u);
}

// A sticky error is found by the next call that meets it, named, and from then on everything is refused with its name.
TEST_F(Errors, ALostDeviceRefusesEverythingByName) {
  for (const int error : {kIllegalAddress, kLaunchFailure}) {
    const char *name = error == kIllegalAddress ? "cudaErrorIllegalAddress (700)" : "cudaErrorLaunchFailure (719)";
    const std::string before = target().sim.things();
    ckpt_device *device = nullptr;
    void *stream = nullptr, *other = nullptr;
    OK(ckpt_device_open("cuda", &device));
    OK(ckpt_device_stream_create(device, &stream));
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.stream = stream;
    desc.capacity_bytes = 1 << 20;
    ckpt_arena *arena = nullptr;
    OK(ckpt_arena_create(device, &desc, &arena));
    void *block = ckpt_arena_alloc(arena, 4096, 0);
    target().sim.fail_call(1, error, "cudaStreamSynchronize");
    REFUSED(ckpt_device_synchronize(device, stream), CKPT_ERROR_DEVICE, "cuda:0", name, "cudaStreamSynchronize", "lost");
    ckpt_device_info info{};
    info.struct_size = sizeof info;
    const ckpt_philox p{1, 2, 3, nullptr};
    ckpt_graph *graph = nullptr;
    REFUSED(ckpt_device_fill(device, stream, block, 0, 4096), CKPT_ERROR_DEVICE, name, "lost by an earlier error", "found by cudaStreamSynchronize");
    REFUSED(ckpt_device_philox_u32(device, stream, &p, 0, 100, static_cast<uint32_t *>(block)), CKPT_ERROR_DEVICE, name, "earlier error");
    REFUSED(ckpt_device_synchronize(device, stream), CKPT_ERROR_DEVICE, name, "earlier error");
    REFUSED(ckpt_device_get_info(device, &info), CKPT_ERROR_DEVICE, name, "earlier error");
    REFUSED(ckpt_device_stream_create(device, &other), CKPT_ERROR_DEVICE, name, "earlier error");
    REFUSED(ckpt_device_capture_begin(device, stream), CKPT_ERROR_DEVICE, name, "earlier error");
    REFUSED(ckpt_device_capture_end(device, stream, &graph), CKPT_ERROR_DEVICE, name, "earlier error");
    ckpt_arena *second = nullptr;
    REFUSED(ckpt_arena_create(device, &desc, &second), CKPT_ERROR_DEVICE, name, "earlier error");
    EXPECT_EQ(ckpt_arena_free(arena, block), CKPT_OK);  // host tables
    ckpt_arena_destroy(arena);
    target().sim.reset();  // the process is started anew
    ckpt_device_stream_destroy(device, stream);
    ckpt_device_close(device);
    (void)before;
  }
  OK(open("cuda"));
}

// The caller's current device is the caller's.
TEST_F(Errors, TheCallersDeviceComesBack) {
  ckpt_device *device = nullptr;
  OK(ckpt_device_open("cuda:1", &device));
  void *stream = nullptr;
  OK(ckpt_device_stream_create(device, &stream));
  const uint64_t before = target().sim.calls_of("cudaSetDevice");
  OK(ckpt_device_synchronize(device, stream));
  EXPECT_EQ(target().sim.calls_of("cudaSetDevice"), before + 2) << "to the device and back";
  ckpt_device_info info{};
  info.struct_size = sizeof info;
  OK(ckpt_device_get_info(device, &info));
  EXPECT_EQ(info.index, 1u);
  ckpt_device_stream_destroy(device, stream);
  ckpt_device_close(device);
}

}  // namespace
