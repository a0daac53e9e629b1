// The CUDA plugin's tables, asked directly: the one built with the double, or on a machine with a GPU the real one. Its path is
// CKPT_TEST_PLUGIN in the environment, else what the build gave.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "../ops/reference.h"
#include "../ops/values.h"
#include "ckpt/rng.h"
#include "device/table.h"
#include "ops/device_ops.h"

namespace test {

using namespace ckpt;

inline std::string &last_text() {
  thread_local std::string text;
  return text;
}

enum Order { FORWARD, REVERSE, RANDOM };

// The device, one stream of it, and the double's controls where it is the double.
class Device {
 public:
  static Device &get() {
    static Device device;
    return device;
  }
  const device::Table &table() const { return plugin_->table; }
  const ops::DeviceOps &ops() const { return *ops_; }
  void *self() const { return self_; }
  void *stream() const { return stream_; }
  bool doubled() const { return set_order_ != nullptr; }
  void order(Order order, unsigned seed = 1) const {
    if (set_order_ != nullptr) set_order_(order, seed);
  }
  void workers(unsigned count) const {
    if (set_workers_ != nullptr) set_workers_(count);
  }
  // A control of the double (cudasim_control.h); NULL on a GPU.
  template <class F>
  F *control(const char *name) const {
    return reinterpret_cast<F *>(dlsym(library_, name));
  }
  void synchronize() const { EXPECT_EQ(table().synchronize(self_, stream_), CKPT_OK) << last_text(); }

 private:
  Device() {
    const char *path = std::getenv("CKPT_TEST_PLUGIN");
    if (path == nullptr) path = CKPT_CUDA_SIM_PLUGIN;
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) fatal(dlerror());
    plugin_ = static_cast<const device::Plugin *>(dlsym(library_, "ckpt_device_plugin"));
    if (plugin_ == nullptr || plugin_->version != device::kPluginVersion) fatal("no plugin of this version");
    set_order_ = reinterpret_cast<void (*)(int, unsigned)>(dlsym(library_, "cudasim_set_order"));
    set_workers_ = reinterpret_cast<void (*)(unsigned)>(dlsym(library_, "cudasim_set_workers"));
    static const device::Host host = {[](ckpt_status status, const char *text) {
      last_text() = text;
      return status;
    }};
    if (table().open(&host, 0, &self_) != CKPT_OK) fatal(last_text().c_str());
    if (table().stream_create(self_, &stream_) != CKPT_OK) fatal(last_text().c_str());
    ops_ = static_cast<const ops::DeviceOps *>(plugin_->interface("ops"));
    if (ops_ == nullptr || ops_->version != ops::kDeviceOpsVersion) fatal("no operations of this version");
  }
  ~Device() {
    table().stream_destroy(self_, stream_);
    table().close(self_);
  }
  [[noreturn]] static void fatal(const char *text) {
    std::fprintf(stderr, "the CUDA plugin cannot be tested: %s\n", text);
    std::abort();
  }

  void *library_ = nullptr;
  const device::Plugin *plugin_ = nullptr;
  const ops::DeviceOps *ops_ = nullptr;
  void *self_ = nullptr, *stream_ = nullptr;
  void (*set_order_)(int, unsigned) = nullptr;
  void (*set_workers_)(unsigned) = nullptr;
};

#define OK(expression) ASSERT_EQ((expression), CKPT_OK) << test::last_text()

// Device memory with `before` bytes in front, so that what is used begins at that alignment, and guard bytes on both sides.
class Memory {
 public:
  explicit Memory(size_t bytes, size_t before = 0) : bytes_(bytes), before_(before), all_(before + bytes + kGuard) {
    const Device &d = Device::get();
    EXPECT_EQ(d.table().reserve(d.self(), all_, 256, device::kReservePlain, &data_), CKPT_OK) << last_text();
    EXPECT_EQ(d.table().fill(d.self(), d.stream(), data_, kByte, all_), CKPT_OK) << last_text();
  }
  ~Memory() {
    const Device &d = Device::get();
    d.synchronize();
    std::vector<unsigned char> all(all_);
    EXPECT_EQ(d.table().copy(d.self(), d.stream(), all.data(), data_, all_, device::Copy::device_to_host), CKPT_OK) << last_text();
    d.synchronize();
    size_t wrong = 0;
    for (size_t k = 0; k < all_; ++k)
      if (k < before_ || k >= before_ + bytes_) wrong += all[k] != kByte;
    EXPECT_EQ(wrong, 0u) << "bytes outside an array of " << bytes_ << " were written";
    d.table().release(d.self(), data_, all_);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  void *data() const { return static_cast<char *>(data_) + before_; }
  size_t bytes() const { return bytes_; }
  void write(const void *from) const {
    const Device &d = Device::get();
    if (bytes_ == 0) return;
    EXPECT_EQ(d.table().copy(d.self(), d.stream(), data(), from, bytes_, device::Copy::host_to_device), CKPT_OK) << last_text();
    d.synchronize();
  }
  std::vector<unsigned char> read() const {
    const Device &d = Device::get();
    std::vector<unsigned char> out(bytes_);
    if (bytes_ == 0) return out;
    EXPECT_EQ(d.table().copy(d.self(), d.stream(), out.data(), data(), bytes_, device::Copy::device_to_host), CKPT_OK) << last_text();
    d.synchronize();
    return out;
  }

 private:
  static constexpr unsigned char kByte = 0xA5;
  static constexpr size_t kGuard = 64;
  size_t bytes_, before_, all_;
  void *data_ = nullptr;
};

// ---- element types ----

constexpr uint32_t kTypes[] = {ops::kFloat32, ops::kBfloat16, ops::kFloat16};
inline const char *type_name(uint32_t type) { return type == ops::kFloat32 ? "float32" : type == ops::kBfloat16 ? "bfloat16" : "float16"; }
inline size_t type_bytes(uint32_t type) { return type == ops::kFloat32 ? 4 : 2; }
// Half a unit in the last place, relative.
inline double type_epsilon(uint32_t type) { return type == ops::kFloat32 ? 0x1p-24 : type == ops::kBfloat16 ? 0x1p-8 : 0x1p-11; }

inline uint16_t to_16(uint32_t type, float value) {
  uint16_t out = 0;
  if (type == ops::kFloat16) {
    const _Float16 half = static_cast<_Float16>(value);
    std::memcpy(&out, &half, sizeof out);
    return out;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to nearest, ties to even
}
inline float from_16(uint32_t type, uint16_t value) {
  if (type == ops::kFloat16) {
    _Float16 half = 0;
    std::memcpy(&half, &value, sizeof half);
    return static_cast<float>(half);
  }
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float out = 0;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
inline float rounded(uint32_t type, float value) { return type == ops::kFloat32 ? value : from_16(type, to_16(type, value)); }

using reference::Values;

inline Floats rounded(uint32_t type, Floats values) {
  for (float &value : values) value = rounded(type, value);
  return values;
}

// An array of the given element type on the device. `shift`: elements past a 16-byte boundary.
class Array {
 public:
  Array(uint32_t type, size_t count, size_t shift = 0) : type_(type), count_(count), memory_(count * type_bytes(type), shift * type_bytes(type)) {}
  Array(uint32_t type, const Floats &values, size_t shift = 0) : Array(type, values.size(), shift) { write(values); }
  void write(const Floats &values) const {
    ASSERT_EQ(values.size(), count_);
    if (type_ == ops::kFloat32) return memory_.write(values.data());
    std::vector<uint16_t> raw(count_);
    for (size_t k = 0; k < count_; ++k) raw[k] = to_16(type_, values[k]);
    memory_.write(raw.data());
  }
  Floats read() const {
    const auto raw = memory_.read();
    Floats out(count_);
    for (size_t k = 0; k < count_; ++k) {
      uint16_t half = 0;
      if (type_ == ops::kFloat32) {
        std::memcpy(&out[k], &raw[4 * k], 4);
      } else {
        std::memcpy(&half, &raw[2 * k], 2);
        out[k] = from_16(type_, half);
      }
    }
    return out;
  }
  std::vector<unsigned char> bytes() const { return memory_.read(); }
  void *data() const { return memory_.data(); }
  float *floats() const { return static_cast<float *>(memory_.data()); }
  size_t size() const { return count_; }

 private:
  uint32_t type_;
  size_t count_;
  Memory memory_;
};

class Indices {
 public:
  explicit Indices(const std::vector<int32_t> &values) : memory_(values.size() * 4) { memory_.write(values.data()); }
  const int32_t *data() const { return static_cast<const int32_t *>(memory_.data()); }

 private:
  Memory memory_;
};

// A DeviceOps object.
class Ops {
 public:
  explicit Ops(uint32_t type) : type_(type) {
    const Device &d = Device::get();
    EXPECT_EQ(d.ops().create(d.self(), d.stream(), type, &self_), CKPT_OK) << last_text();
  }
  Ops(uint32_t type, void *borrowed) : type_(type), self_(borrowed), borrowed_(true) {}
  ~Ops() {
    if (borrowed_) return;
    Device::get().synchronize();
    Device::get().ops().destroy(self_);
  }
  Ops(const Ops &) = delete;
  Ops &operator=(const Ops &) = delete;
  const ops::DeviceOps *operator->() const { return &Device::get().ops(); }
  operator void *() const { return self_; }
  uint32_t type() const { return type_; }

 private:
  uint32_t type_;
  void *self_ = nullptr;
  bool borrowed_ = false;
};

// |got - expected| <= tolerance * (1 + the largest expected) + half a unit of the type, each element.
inline void expect_near(const Floats &got, const Values &expected, double tolerance, uint32_t type, const std::string &what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double largest = 0.0;
  for (const double e : expected) largest = std::max(largest, std::fabs(e));
  for (size_t k = 0; k < got.size(); ++k)
    ASSERT_LE(std::fabs(static_cast<double>(got[k]) - expected[k]), tolerance * (1.0 + largest) + 1.01 * type_epsilon(type) * std::fabs(expected[k]) + 6e-8)
        << type_name(type) << " " << what << "[" << k << "]: " << got[k] << ", expected " << expected[k];
}

inline Values of(const Floats &values) { return reference::of(values); }

// `run` returns the bytes that an operation wrote. They must be the same in every order of the threads of a block and with two blocks
// at a time (on a GPU: every time).
template <class F>
void expect_repeatable(const F &run) {
  const Device &device = Device::get();
  device.order(FORWARD);
  const std::vector<unsigned char> first = run();
  for (const auto &[order, seed] : {std::pair{REVERSE, 1u}, std::pair{RANDOM, 1u}, std::pair{RANDOM, 2u}}) {
    device.order(order, seed);
    device.workers(seed);
    EXPECT_EQ(run(), first) << "another order of threads (" << order << ", " << seed << ") gave other bits";
  }
  device.order(FORWARD);
  device.workers(1);
}

inline void append(std::vector<unsigned char> *to, const std::vector<unsigned char> &more) { to->insert(to->end(), more.begin(), more.end()); }

}  // namespace test
