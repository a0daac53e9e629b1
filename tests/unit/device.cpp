#include "device/device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "device/cpu/cpu.h"
#include "device/hash.h"
#include "device/loader.h"

namespace {

using namespace ckpt;
using namespace ckpt::device;

std::string last() { return last_error(); }

TEST(device_name, parses_strictly) {
  struct Case {
    const char *text;
    uint32_t kind, index;
  };
  for (const Case &c : {Case{"cpu", CKPT_DEVICE_KIND_CPU, 0}, Case{"cuda", CKPT_DEVICE_KIND_CUDA, 0},
                        Case{"cuda:0", CKPT_DEVICE_KIND_CUDA, 0}, Case{"cuda:17", CKPT_DEVICE_KIND_CUDA, 17},
                        Case{"cuda:65535", CKPT_DEVICE_KIND_CUDA, 65535}}) {
    auto name = parse_name("f", c.text);
    ASSERT_TRUE(name.ok()) << c.text;
    EXPECT_EQ(name->kind, c.kind);
    EXPECT_EQ(name->index, c.index);
  }
  for (const char *text : {"", "cp", "cpu:0", "cpu ", " cpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1 ", "cuda:01",
                           "cuda:00", "cuda:1x", "cuda:65536", "cuda:99999999999999999999", "cuda1", "hip", "cuda:0x1"}) {
    EXPECT_EQ(parse_name("f", text).status(), CKPT_ERROR_INVALID_ARGUMENT) << text;
    EXPECT_NE(last().find("f: name is \"" + std::string(text) + "\", expected \"cpu\", \"cuda\" or \"cuda:N\""), std::string::npos);
  }
}

TEST(device_loader, refuses_what_is_no_plugin) {
  unsetenv("CKPT_PLUGIN_PATH");
  EXPECT_EQ(load_plugin("f", "nonesuch").status(), CKPT_ERROR_NOT_FOUND);
  EXPECT_EQ(last(), "f: there is no plugin for \"nonesuch\": libckpt_nonesuch.so is neither beside libckpt nor on the library path");
  EXPECT_EQ(load_plugin_file("f", "m", "libm.so.6").status(), CKPT_ERROR_DEVICE);
  EXPECT_EQ(last(), "f: libm.so.6 is no device plugin: it does not export ckpt_device_plugin");
  const std::string path = testing::TempDir() + "libckpt_garbage.so";
  std::FILE *f = std::fopen(path.c_str(), "w");
  ASSERT_NE(f, nullptr);
  std::fputs("not an object file", f);
  std::fclose(f);
  EXPECT_EQ(load_plugin_file("f", "garbage", path.c_str()).status(), CKPT_ERROR_DEVICE);
  EXPECT_EQ(last().rfind("f: the plugin for \"garbage\" does not load: ", 0), 0u) << last();
  std::remove(path.c_str());
}

// What is found is no library, so that the text says where it was found.
std::string found(const char *kind) {
  EXPECT_EQ(load_plugin("f", kind).status(), CKPT_ERROR_DEVICE);
  return last();
}

// A folder that the environment names is meant: there, or nowhere. Else beside the library (here: this program).
TEST(device_loader, looks_in_the_named_folder_or_beside_itself) {
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libckpt_order.so";
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("ckpt_plugins_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::filesystem::path named = folder / "libckpt_order.so";
  const auto write = [](const std::filesystem::path &path) { std::ofstream(path) << "not an object file"; };
  write(beside);
  unsetenv("CKPT_PLUGIN_PATH");
  EXPECT_EQ(found("order").find(folder.string()), std::string::npos) << last();
  setenv("CKPT_PLUGIN_PATH", folder.c_str(), 1);
  EXPECT_EQ(load_plugin("f", "order").status(), CKPT_ERROR_NOT_FOUND);
  EXPECT_EQ(last(), "f: there is no plugin for \"order\" in CKPT_PLUGIN_PATH: no " + named.string());
  write(named);
  EXPECT_NE(found("order").find(named.string()), std::string::npos) << last();
  setenv("CKPT_PLUGIN_PATH", "", 1);
  EXPECT_EQ(found("order").find(folder.string()), std::string::npos) << last();
  unsetenv("CKPT_PLUGIN_PATH");
  std::filesystem::remove(beside);
  std::filesystem::remove_all(folder);
}

// Files that are there, but cannot be used: said of the file, not that there is none.
TEST(device_loader, says_what_is_wrong_with_a_plugin) {
  struct Case {
    const char *folder;
    std::vector<std::string> words;
  };
  for (const Case &c : {Case{"version", {"version/libckpt_cuda.so has version " + std::to_string(kPluginVersion + 1), "expected " + std::to_string(kPluginVersion)}},
                        Case{"kind", {"of kind 77, expected 1"}},
                        Case{"symbol", {"does not load: ", "symbol/libckpt_cuda.so: undefined symbol: ckpt_no_library_has_this"}}}) {
    setenv("CKPT_PLUGIN_PATH", (std::string(CKPT_PLUGINS "/") + c.folder).c_str(), 1);
    for (int twice = 0; twice < 2; ++twice) {
      EXPECT_EQ(Device::open("f", "cuda:3").status(), CKPT_ERROR_DEVICE) << c.folder;
      for (const std::string &word : c.words) EXPECT_NE(last().find(word), std::string::npos) << last() << " does not say " << word;
    }
  }
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("ckpt_unusable_" + std::to_string(getpid())), file = folder / "libckpt_cuda.so";
  std::filesystem::create_directory(folder);
  setenv("CKPT_PLUGIN_PATH", folder.c_str(), 1);
  std::ofstream(file) << "";
  EXPECT_NE(found("cuda").find("file too short"), std::string::npos) << last();
  std::filesystem::permissions(file, std::filesystem::perms::none);  // a privileged user reads it all the same
  EXPECT_NE(found("cuda").find(file.string()), std::string::npos) << last();
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_NE(found("cuda").find("directory"), std::string::npos) << last();
  std::filesystem::remove(file);
  std::filesystem::create_symlink("nowhere", file);
  EXPECT_EQ(load_plugin("f", "cuda").status(), CKPT_ERROR_NOT_FOUND);
  std::filesystem::remove_all(folder);
  for (const std::string &odd : {std::string("/dev/null"), std::string("."), std::string("/nowhere:") + CKPT_PLUGINS "/version", std::string(5000, 'x'), std::string(" ")}) {
    setenv("CKPT_PLUGIN_PATH", odd.c_str(), 1);
    EXPECT_EQ(load_plugin("f", "cuda").status(), CKPT_ERROR_NOT_FOUND) << odd;
    EXPECT_NE(last().find("CKPT_PLUGIN_PATH: no " + odd.substr(0, 100)), std::string::npos) << last();
  }
  unsetenv("CKPT_PLUGIN_PATH");
}

// A table whose open fails must not be closed.
TEST(device, a_failed_open_is_passed_on) {
  static Table table = cpu::table();
  table.open = [](const Host *host, uint32_t, void **) { return host->fail(CKPT_ERROR_NOT_FOUND, "no device 3"); };
  table.close = [](void *) { ADD_FAILURE() << "closed what was never opened"; };
  EXPECT_EQ(Device::create(table, CKPT_DEVICE_KIND_CUDA, 3).status(), CKPT_ERROR_NOT_FOUND);
  EXPECT_EQ(last(), "no device 3");
}

TEST(device, is_closed_once_with_its_last_count) {
  static int closed = 0;
  static Table table = cpu::table();
  table.open = [](const Host *, uint32_t index, void **out) {
    *out = reinterpret_cast<void *>(uintptr_t{index} + 100);
    return Status{CKPT_OK};
  };
  table.close = [](void *self) { closed += self == reinterpret_cast<void *>(uintptr_t{107}); };
  auto device = *Device::create(table, CKPT_DEVICE_KIND_CUDA, 7);
  auto second = device;
  device = Ref<Device>();
  EXPECT_EQ(closed, 0);
  second = Ref<Device>();
  EXPECT_EQ(closed, 1);
}

TEST(cpu_device, describes_the_machine) {
  auto device = *Device::open("f", "cpu");
  ckpt_device_info info{};
  ASSERT_EQ(device->info(&info), CKPT_OK);
  EXPECT_EQ(info.kind, uint32_t{CKPT_DEVICE_KIND_CPU});
  EXPECT_GE(info.thread_count, 1u);
  EXPECT_GT(info.total_bytes, size_t{64} << 20);
  EXPECT_LE(info.available_bytes, info.total_bytes);
  EXPECT_GT(info.available_bytes, 0u);
  EXPECT_GT(std::strlen(info.name), 0u);
  EXPECT_LT(std::strlen(info.name), sizeof info.name);
}

TEST(cpu_device, reserves_at_any_alignment) {
  auto device = *Device::open("f", "cpu");
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{12345}, size_t{40} << 20})
    for (const size_t alignment : {size_t{64}, size_t{4096}, size_t{1} << 16, size_t{1} << 24}) {
      void *data = nullptr;
      ASSERT_EQ(device->reserve(bytes, alignment, 0, &data), CKPT_OK);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
      static_cast<char *>(data)[0] = 1;
      static_cast<char *>(data)[bytes - 1] = 1;
      device->release(data, bytes);
    }
}

TEST(cpu_device, refuses_more_than_the_address_space) {
  auto device = *Device::open("f", "cpu");
  void *data = &data;
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 4096, size_t{1} << 60}) {
    EXPECT_EQ(device->reserve(bytes, 64, 0, &data), CKPT_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(data, nullptr);
    EXPECT_NE(last().find(std::to_string(bytes) + " bytes"), std::string::npos) << last();
  }
}

TEST(cpu_device, copies_fills_and_measures) {
  auto device = *Device::open("f", "cpu");
  std::vector<unsigned char> a(1000), b(1000);
  void *from = nullptr, *to = nullptr;
  ASSERT_EQ(device->event_create(&from), CKPT_OK);
  ASSERT_EQ(device->event_create(&to), CKPT_OK);
  ASSERT_EQ(device->event_record(from, nullptr), CKPT_OK);
  EXPECT_EQ(device->fill(nullptr, a.data(), 7, 999), CKPT_OK);
  EXPECT_EQ(device->copy(nullptr, b.data(), a.data(), 1000, Copy::device_to_device), CKPT_OK);
  EXPECT_EQ(device->fill(nullptr, nullptr, 7, 0), CKPT_OK);
  EXPECT_EQ(device->copy(nullptr, nullptr, nullptr, 0, Copy::host_to_device), CKPT_OK);
  ASSERT_EQ(device->event_record(to, nullptr), CKPT_OK);
  EXPECT_EQ(device->synchronize(nullptr), CKPT_OK);
  double seconds = -1;
  EXPECT_EQ(device->event_elapsed(from, to, &seconds), CKPT_OK);
  EXPECT_GE(seconds, 0);
  device->event_destroy(from);
  device->event_destroy(to);
  EXPECT_EQ(b[998], 7);
  EXPECT_EQ(b[999], 0);
}

uint64_t hash_of(const std::vector<unsigned char> &v) { return cpu::hash(v.data(), v.size()); }

TEST(cpu_hash, ignores_alignment) {
  std::vector<unsigned char> text(1000), shifted(1008);
  for (size_t k = 0; k < text.size(); ++k) text[k] = static_cast<unsigned char>(k * 7 + 3);
  for (size_t shift = 0; shift < 8; ++shift) {
    std::memcpy(shifted.data() + shift, text.data(), text.size());
    EXPECT_EQ(cpu::hash(shifted.data() + shift, text.size()), hash_of(text)) << shift;
  }
}

TEST(cpu_hash, sees_every_bit_and_every_length) {
  std::set<uint64_t> seen;
  std::vector<unsigned char> data(200, 0x55);
  seen.insert(hash_of(data));
  size_t count = 1;
  for (size_t k = 0; k < data.size(); ++k)
    for (int bit = 0; bit < 8; ++bit, ++count) {
      data[k] ^= static_cast<unsigned char>(1 << bit);
      seen.insert(hash_of(data));
      data[k] ^= static_cast<unsigned char>(1 << bit);
    }
  for (size_t n = 0; n < 200; ++n, ++count) seen.insert(cpu::hash(data.data(), n));
  EXPECT_EQ(seen.size(), count);
  seen.clear();
  const std::vector<unsigned char> zeros(300);
  for (size_t n = 0; n <= 300; ++n) seen.insert(cpu::hash(zeros.data(), n));
  EXPECT_EQ(seen.size(), 301u);
}

// Two flipped bits in words that meet in one lane: what a weak step lets cancel.
TEST(cpu_hash, no_two_bits_cancel) {
  uint64_t x[24] = {1, 2, 3};
  const uint64_t before = cpu::hash(x, sizeof x);
  const auto flip = [&](uint32_t k) { x[k / 64] ^= uint64_t{1} << k % 64; };
  for (const uint32_t word : {0u, 3u, 8u})
    for (uint32_t a = 64 * word; a < 64 * (word + 1); ++a)
      for (uint32_t b = 64 * (word + 8); b < 64 * (word + 9); ++b) {
        flip(a);
        flip(b);
        ASSERT_NE(cpu::hash(x, sizeof x), before) << a << " " << b;
        flip(a);
        flip(b);
      }
}

// What recomputation goes wrong with: swapped words, two flipped signs, in every distance.
TEST(cpu_hash, sees_pairs_of_changes) {
  std::vector<double> x(128);
  for (size_t k = 0; k < x.size(); ++k) x[k] = 1.0 + static_cast<double>(k);
  const size_t bytes = x.size() * sizeof x[0];
  std::set<uint64_t> seen = {cpu::hash(x.data(), bytes)};
  size_t count = 1;
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = i + 1; k < x.size(); ++k, count += 2) {
      x[i] = -x[i];
      x[k] = -x[k];
      seen.insert(cpu::hash(x.data(), bytes));
      x[i] = -x[i];
      x[k] = -x[k];
      std::swap(x[i], x[k]);
      seen.insert(cpu::hash(x.data(), bytes));
      std::swap(x[i], x[k]);
    }
  EXPECT_EQ(seen.size(), count);
}

// Chunks are added up with their places mixed in: equal chunks that change places or numbers, and bits in two chunks, show.
TEST(cpu_hash, knows_the_places_of_chunks) {
  constexpr size_t kWords = device::hash::kChunk / 8, kChunks = 5;
  std::vector<uint64_t> x(kChunks * kWords);
  for (size_t k = 0; k < x.size(); ++k) x[k] = k / kWords;
  std::set<uint64_t> seen = {cpu::hash(x.data(), x.size() * 8)};
  size_t count = 1;
  for (size_t i = 0; i < kChunks; ++i)
    for (size_t k = i + 1; k < kChunks; ++k, count += 2) {
      std::swap_ranges(&x[i * kWords], &x[i * kWords] + kWords, &x[k * kWords]);
      seen.insert(cpu::hash(x.data(), x.size() * 8));
      std::swap_ranges(&x[i * kWords], &x[i * kWords] + kWords, &x[k * kWords]);
      x[i * kWords] ^= 1;
      x[k * kWords] ^= 1;
      seen.insert(cpu::hash(x.data(), x.size() * 8));
      x[i * kWords] ^= 1;
      x[k * kWords] ^= 1;
    }
  const std::vector<uint64_t> zeros(kChunks * kWords);
  for (size_t n = 0; n <= kChunks; ++n, ++count) seen.insert(cpu::hash(zeros.data(), n * kWords * 8));
  EXPECT_EQ(seen.size(), count);
}

// A changed low bit reaches about half of the result's bits.
TEST(cpu_hash, mixes) {
  std::vector<unsigned char> data(4096, 1);
  const uint64_t before = hash_of(data);
  int flipped = 0;
  for (size_t k = 0; k < data.size(); ++k) {
    data[k] ^= 1;
    flipped += __builtin_popcountll(before ^ hash_of(data));
    data[k] ^= 1;
  }
  EXPECT_NEAR(flipped / 4096.0, 32.0, 0.5);
}

}  // namespace
