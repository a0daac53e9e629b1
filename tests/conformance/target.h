// The device that a run of the conformance suite is about. The environment says which one is meant (CKPT_TEST_TARGET: cpu, cuda_sim, cuda);
// the suite opens it, proves that it got that one, and says so. Where cuda is meant and there is no GPU, all is skipped.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../cuda_sim/include/cudasim_control.h"
#include "ckpt/ckpt.h"

#define OK(call) ASSERT_EQ((call), CKPT_OK) << ckpt_last_error()
#define EXPECT_OK(call) EXPECT_EQ((call), CKPT_OK) << ckpt_last_error()
// Fails with this status and a text that has these words.
#define REFUSED(call, status, ...) conformance::refused((call), status, #call, {__VA_ARGS__})

namespace conformance {

inline void refused(ckpt_status got, ckpt_status wanted, const char *call, const std::vector<const char *> &words) {
  EXPECT_EQ(got, wanted) << call << ": " << ckpt_last_error();
  for (const char *word : words) EXPECT_NE(std::strstr(ckpt_last_error(), word), nullptr) << call << ": \"" << ckpt_last_error() << "\" does not say \"" << word << "\"";
}

// The double's controls, where the plugin is the double.
struct Sim {
  decltype(&cudasim_reset) reset = nullptr;
  decltype(&cudasim_fail_call) fail_call = nullptr;
  decltype(&cudasim_failed_call) failed_call = nullptr;
  decltype(&cudasim_calls_of) calls_of = nullptr;
  decltype(&cudasim_delay) delay = nullptr;
  decltype(&cudasim_issued) issued = nullptr;
  decltype(&cudasim_set_device_count) set_device_count = nullptr;
  decltype(&cudasim_set_memory) set_memory = nullptr;
  decltype(&cudasim_set_driver_version) set_driver_version = nullptr;
  decltype(&cudasim_set_virtual_memory) set_virtual_memory = nullptr;
  decltype(&cudasim_get_live) get_live = nullptr;

  bool load(const std::string &file) {
    void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    const auto find = [&](const char *name, auto *out) {
      *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(library != nullptr ? dlsym(library, name) : nullptr);
      return *out != nullptr;
    };
    return find("cudasim_reset", &reset) && find("cudasim_fail_call", &fail_call) && find("cudasim_failed_call", &failed_call) && find("cudasim_calls_of", &calls_of) &&
           find("cudasim_delay", &delay) && find("cudasim_issued", &issued) && find("cudasim_set_device_count", &set_device_count) &&
           find("cudasim_set_memory", &set_memory) && find("cudasim_set_driver_version", &set_driver_version) &&
           find("cudasim_set_virtual_memory", &set_virtual_memory) && find("cudasim_get_live", &get_live);
  }
  cudasim_live live() const {
    cudasim_live l{};
    get_live(&l);
    return l;
  }
  // What a leak would be seen by.
  std::string things() const {
    const cudasim_live l = live();
    return "allocations " + std::to_string(l.allocations) + " pinned " + std::to_string(l.pinned) + " reservations " + std::to_string(l.reservations) + " handles " +
           std::to_string(l.handles) + " mappings " + std::to_string(l.mappings) + " streams " + std::to_string(l.streams) + " events " + std::to_string(l.events) +
           " graphs " + std::to_string(l.graphs + l.graph_execs) + " blas " + std::to_string(l.blas_objects) + " bytes " + std::to_string(l.device_bytes);
  }
};

struct Target {
  std::string name = "cpu";      // what is meant
  std::string open_name = "cpu";
  ckpt_device *device = nullptr;
  void *stream = nullptr;
  bool cuda = false;
  bool simulated = false;
  Sim sim;

  // Device memory with these contents; freed with the arena.
  ckpt_arena *arena = nullptr;
};

inline Target &target() {
  static Target t;
  return t;
}

class Environment : public ::testing::Environment {
 public:
  void SetUp() override {
    Target &t = target();
    if (const char *wanted = std::getenv("CKPT_TEST_TARGET")) t.name = wanted;
    ASSERT_TRUE(t.name == "cpu" || t.name == "cuda_sim" || t.name == "cuda") << "CKPT_TEST_TARGET is " << t.name;
    t.cuda = t.name != "cpu";
    t.open_name = t.cuda ? "cuda" : "cpu";
    // Another than the thread's first device: each call must find its way there.
    if (const char *index = std::getenv("CKPT_TEST_INDEX"); index != nullptr && t.cuda) t.open_name += std::string(":") + index;
    const ckpt_status status = ckpt_device_open(t.open_name.c_str(), &t.device);
    const std::string text = status != CKPT_OK ? ckpt_last_error() : "";
    const bool no_gpu = text.find("no NVIDIA driver") != std::string::npos || text.find("no such device") != std::string::npos;
    if (t.name == "cuda" && no_gpu) GTEST_SKIP() << text;
    ASSERT_EQ(status, CKPT_OK) << ckpt_last_error();
    ckpt_device_info info{};
    info.struct_size = sizeof info;
    OK(ckpt_device_get_info(t.device, &info));
    ASSERT_EQ(info.kind, t.cuda ? CKPT_DEVICE_KIND_CUDA : CKPT_DEVICE_KIND_CPU);
    if (t.cuda) {
      const char *folder = std::getenv("CKPT_PLUGIN_PATH");
      t.simulated = folder != nullptr && t.sim.load(std::string(folder) + "/libckpt_cuda.so");
      ASSERT_EQ(t.simulated, t.name == "cuda_sim") << "meant " << t.name << ", but the plugin is " << (t.simulated ? "the double" : "the real one");
    }
    OK(ckpt_device_stream_create(t.device, &t.stream));
    std::printf("conformance: runs on %s: \"%s\", %zu bytes\n", t.name.c_str(), info.name, info.total_bytes);
  }
  void TearDown() override {
    Target &t = target();
    ckpt_device_stream_destroy(t.device, t.stream);
    ckpt_device_close(t.device);
    t.device = nullptr;
  }
};
inline ::testing::Environment *const g_environment = ::testing::AddGlobalTestEnvironment(new Environment);

// An arena on the target, and copies between host vectors and its blocks. Reads wait for the stream.
class Memory {
 public:
  explicit Memory(size_t bytes, uint32_t flags = 0) {
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.capacity_bytes = bytes;
    desc.flags = flags;
    desc.stream = target().stream;
    EXPECT_OK(ckpt_arena_create(target().device, &desc, &arena_));
  }
  ~Memory() {
    for (void *block : blocks_) EXPECT_OK(ckpt_arena_free(arena_, block));
    ckpt_arena_destroy(arena_);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ckpt_arena *arena() const { return arena_; }

  template <class T>
  T *take(size_t count) {
    void *block = ckpt_arena_alloc(arena_, count * sizeof(T), CKPT_ARENA_HIGH);
    EXPECT_NE(block, nullptr) << ckpt_last_error();
    if (block != nullptr) blocks_.push_back(block);
    return static_cast<T *>(block);
  }
  template <class T>
  T *put(const std::vector<T> &values) {
    T *block = take<T>(values.size());
    write(block, values);
    return block;
  }
  template <class T>
  static void write(T *to, const std::vector<T> &values) {
    EXPECT_OK(ckpt_device_copy(target().device, target().stream, to, values.data(), values.size() * sizeof(T), CKPT_COPY_HOST_TO_DEVICE));
    EXPECT_OK(ckpt_device_synchronize(target().device, target().stream));
  }
  template <class T>
  static std::vector<T> read(const T *from, size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(ckpt_device_copy(target().device, target().stream, values.data(), from, count * sizeof(T), CKPT_COPY_DEVICE_TO_HOST));
    EXPECT_OK(ckpt_device_synchronize(target().device, target().stream));
    return values;
  }

 private:
  ckpt_arena *arena_ = nullptr;
  std::vector<void *> blocks_;
};

}  // namespace conformance
