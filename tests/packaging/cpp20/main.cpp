// A program outside the tree: C++20, the installed headers alone. Exit status 0 if the library does what its headers say.
#include <ckpt/ckpt.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

namespace {

struct Close {
  void operator()(ckpt_device *device) const { ckpt_device_close(device); }
  void operator()(ckpt_arena *arena) const { ckpt_arena_destroy(arena); }
};

bool fail(const char *what) {
  std::printf("%s: %s\n", what, ckpt_last_error());
  return false;
}

bool philox_draws_its_known_answer() {
  const ckpt_philox snapshot{0, 0, 0, nullptr};
  std::array<uint32_t, 4> words{};
  if (ckpt_philox_u32(&snapshot, 0, words.size(), words.data()) != CKPT_OK) return fail("ckpt_philox_u32");
  const std::array<uint32_t, 4> known{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  return words == known || fail("philox: wrong words");
}

bool arena_gives_and_refuses() {
  ckpt_device *opened = nullptr;
  if (ckpt_device_open("cpu", &opened) != CKPT_OK) return fail("ckpt_device_open");
  const std::unique_ptr<ckpt_device, Close> device(opened);
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.capacity_bytes = 4096;
  ckpt_arena *created = nullptr;
  if (ckpt_arena_create(device.get(), &desc, &created) != CKPT_OK) return fail("ckpt_arena_create");
  const std::unique_ptr<ckpt_arena, Close> arena(created);
  if (ckpt_arena_alloc(arena.get(), 4096, 0) == nullptr) return fail("ckpt_arena_alloc within the capacity");
  if (ckpt_arena_alloc(arena.get(), 1, 0) != nullptr) return fail("ckpt_arena_alloc beyond the capacity succeeded");
  return ckpt_last_status() == CKPT_ERROR_BUDGET || fail("ckpt_last_status");
}

}  // namespace

int main() {
  if (std::string_view(ckpt_version_string()) != "0.1.0") return 1;
  if (!philox_draws_its_known_answer() || !arena_gives_and_refuses()) return 1;
  std::printf("ckpt %s works\n", ckpt_version_string());
}
