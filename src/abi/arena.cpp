#include "ckpt/arena.h"

#include "abi/handle.h"
#include "abi/struct_size.h"

namespace {

using ckpt::abi::object;
using ckpt::arena::Lock;
using ckpt::arena::Side;

constexpr size_t kDescFirst = 72, kStatsFirst = 72;
static_assert(sizeof(ckpt_arena_desc) >= kDescFirst && sizeof(ckpt_arena_stats) >= kStatsFirst);

ckpt_status no_arena(const char *function) {
  return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: arena is NULL, expected an arena", function);
}

}  // namespace

extern "C" {

ckpt_status ckpt_arena_create(ckpt_device *device, const ckpt_arena_desc *desc, ckpt_arena **out_arena) {
  if (out_arena == nullptr) return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: out_arena is NULL, expected an address", __func__);
  *out_arena = nullptr;
  if (device == nullptr) return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: device is NULL, expected an open device", __func__);
  ckpt_arena_desc ours;
  CKPT_TRY(ckpt::abi::read_struct(__func__, "desc", desc, kDescFirst, &ours));
  return ckpt::guarded(__func__, [&, function = __func__]() -> ckpt_status {
    auto arena = ckpt::arena::Arena::create(function, ckpt::Ref<ckpt::device::Device>::share(object(device)), ours);
    if (!arena.ok()) return arena.status();
    *out_arena = ckpt::abi::handle(arena->leave());
    return CKPT_OK;
  });
}

void ckpt_arena_destroy(ckpt_arena *arena) {
  if (arena != nullptr) object(arena)->drop();
}

void *ckpt_arena_alloc(ckpt_arena *arena, size_t bytes, uint32_t flags) {
  if (arena == nullptr) return static_cast<void>(no_arena(__func__)), nullptr;
  if (flags & ~uint32_t{CKPT_ARENA_HIGH}) {
    (void)ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: flags is 0x%x, expected 0 or CKPT_ARENA_HIGH (0x%x)", __func__, flags,
                     unsigned{CKPT_ARENA_HIGH});
    return nullptr;
  }
  try {
    return object(arena)->take(__func__, bytes, flags & CKPT_ARENA_HIGH ? Side::high : Side::low);
  } catch (...) {
    (void)ckpt::caught(__func__);
    return nullptr;
  }
}

ckpt_status ckpt_arena_free(ckpt_arena *arena, void *data) {
  if (arena == nullptr) return no_arena(__func__);
  return data == nullptr ? CKPT_OK : object(arena)->give(__func__, data);
}

ckpt_status ckpt_arena_check(ckpt_arena *arena) {
  if (arena == nullptr) return no_arena(__func__);
  const Lock lock(*object(arena), __func__);
  CKPT_TRY(lock.status());
  return object(arena)->check(__func__);
}

ckpt_status ckpt_arena_get_stats(const ckpt_arena *arena, ckpt_arena_stats *out_stats) {
  if (arena == nullptr) return no_arena(__func__);
  CKPT_TRY(ckpt::abi::check_out_struct(__func__, "out_stats", out_stats, kStatsFirst));
  const Lock lock(*object(arena), __func__);
  CKPT_TRY(lock.status());
  ckpt_arena_stats stats{};
  object(arena)->stats(&stats);
  ckpt::abi::write_struct(stats, out_stats);
  return CKPT_OK;
}

ckpt_status ckpt_arena_reset_stats(ckpt_arena *arena) {
  if (arena == nullptr) return no_arena(__func__);
  const Lock lock(*object(arena), __func__);
  CKPT_TRY(lock.status());
  object(arena)->reset_stats();
  return CKPT_OK;
}

}  // extern "C"
