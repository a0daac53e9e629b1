// Where the layers' laws are tested: the CPU, and CUDA where a plugin is found (the double's, by CKPT_PLUGIN_PATH, or a GPU's), in each
// element type that the place has.
#pragma once

#include <cstdlib>
#include <memory>

#include "common.h"

namespace test {

struct Place {
  const char *device;
  uint32_t dtype;
};
inline std::ostream &operator<<(std::ostream &out, const Place &place) {
  static constexpr const char *kTypes[] = {"float32", "bfloat16", "float16"};
  return out << place.device << "_" << kTypes[place.dtype];
}
inline constexpr Place kPlaces[] = {{"cpu", CKPT_DTYPE_FLOAT32}, {"cuda", CKPT_DTYPE_FLOAT32}, {"cuda", CKPT_DTYPE_BFLOAT16}, {"cuda", CKPT_DTYPE_FLOAT16}};

// Half a unit in the last place of the element type, relative.
inline double rounding(uint32_t dtype) { return dtype == CKPT_DTYPE_FLOAT32 ? 0x1p-24 : dtype == CKPT_DTYPE_BFLOAT16 ? 0x1p-8 : 0x1p-11; }

class OnPlace : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    const Place place = GetParam();
    const ckpt_status status = ckpt_device_open(place.device, &device);
    if (status == CKPT_ERROR_NOT_FOUND && std::getenv("CKPT_PLUGIN_PATH") == nullptr) GTEST_SKIP() << ckpt_last_error();
    ASSERT_EQ(status, CKPT_OK) << ckpt_last_error();
    ASSERT_EQ(ckpt_device_stream_create(device, &stream), CKPT_OK) << ckpt_last_error();
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.dtype = place.dtype;
    desc.device = device;
    desc.stream = stream;
    OK(ckpt_ops_create(&desc, &ops));
    arena = make_arena();
  }
  void TearDown() override {
    for (void *block : blocks) EXPECT_EQ(ckpt_arena_free(arena, block), CKPT_OK) << ckpt_last_error();
    ckpt_arena_destroy(arena);
    ckpt_ops_destroy(ops);
    if (device != nullptr) {
      ckpt_device_stream_destroy(device, stream);
    }
    ckpt_device_close(device);
  }

  ckpt_arena *make_arena(size_t capacity = size_t{1} << 24) const {
    ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
    desc.capacity_bytes = capacity;
    desc.stream = stream;
    ckpt_arena *out = nullptr;
    EXPECT_EQ(ckpt_arena_create(device, &desc, &out), CKPT_OK) << ckpt_last_error();
    return out;
  }
  bool on_cpu() const { return std::string(GetParam().device) == "cpu"; }
  uint32_t dtype() const { return GetParam().dtype; }

  // Memory of the place, given back at the end.
  template <class T>
  T *take(size_t count) const {
    auto *out = static_cast<T *>(ckpt_arena_alloc(arena, count * sizeof(T), 0));
    EXPECT_NE(out, nullptr) << ckpt_last_error();
    blocks.push_back(out);
    return out;
  }
  template <class T>
  void put(T *to, const std::vector<T> &from) const {
    EXPECT_EQ(ckpt_device_copy(device, stream, to, from.data(), from.size() * sizeof(T), CKPT_COPY_HOST_TO_DEVICE), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(ckpt_device_synchronize(device, stream), CKPT_OK) << ckpt_last_error();
  }
  template <class T>
  T *put(const std::vector<T> &from) const {
    T *const out = take<T>(from.size());
    put(out, from);
    return out;
  }
  template <class T>
  std::vector<T> get(const T *from, size_t count) const {
    std::vector<T> out(count);
    EXPECT_EQ(ckpt_device_copy(device, stream, out.data(), from, count * sizeof(T), CKPT_COPY_DEVICE_TO_HOST), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(ckpt_device_synchronize(device, stream), CKPT_OK) << ckpt_last_error();
    return out;
  }
  // Elements of the handle's type, and back.
  void put_elements(void *to, const Floats &from) const {
    float *const wide = put(from);
    EXPECT_EQ(ckpt_ops_from_float(ops, wide, from.size(), to), CKPT_OK) << ckpt_ops_last_error();
  }
  Floats get_elements(const void *from, size_t count) const {
    float *const wide = take<float>(count);
    EXPECT_EQ(ckpt_ops_to_float(ops, from, count, wide), CKPT_OK) << ckpt_ops_last_error();
    return get(wide, count);
  }

  ckpt_device *device = nullptr;
  void *stream = nullptr;
  ckpt_ops *ops = nullptr;
  ckpt_arena *arena = nullptr;  // of what the tests take, not of tapes
  mutable std::vector<void *> blocks;
};

}  // namespace test
