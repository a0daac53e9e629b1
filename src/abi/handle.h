// A C handle is the address of the object itself; the incomplete struct is never defined.
#pragma once

#include "arena/arena.h"
#include "device/device.h"

namespace ckpt::abi {

inline device::Device *object(ckpt_device *handle) noexcept { return reinterpret_cast<device::Device *>(handle); }
inline const device::Device *object(const ckpt_device *handle) noexcept { return reinterpret_cast<const device::Device *>(handle); }
inline ckpt_device *handle(device::Device *object) noexcept { return reinterpret_cast<ckpt_device *>(object); }

inline arena::Arena *object(ckpt_arena *handle) noexcept { return reinterpret_cast<arena::Arena *>(handle); }
inline const arena::Arena *object(const ckpt_arena *handle) noexcept { return reinterpret_cast<const arena::Arena *>(handle); }
inline ckpt_arena *handle(arena::Arena *object) noexcept { return reinterpret_cast<ckpt_arena *>(object); }

}  // namespace ckpt::abi
