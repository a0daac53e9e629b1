// ckpt_buffer: tape (12 bits), generation of the recording (24), index + 1 (28), so that 0 is no boundary and a stale or
// foreign one is found out.
#pragma once

#include <cstdint>

namespace ckpt::tape {

inline constexpr uint32_t kHandleTapeMask = (1u << 12) - 1, kHandleGenerationMask = (1u << 24) - 1;
inline constexpr uint32_t kHandleIndexBits = 28, kMaxValues = (1u << kHandleIndexBits) - 1;

struct HandleParts {
  uint32_t tape, generation, index;
};

constexpr uint64_t pack_handle(uint32_t tape, uint32_t generation, uint32_t index) {
  return uint64_t{tape & kHandleTapeMask} << 52 | uint64_t{generation & kHandleGenerationMask} << kHandleIndexBits | (index + 1);
}

constexpr HandleParts unpack_handle(uint64_t handle) {
  return {static_cast<uint32_t>(handle >> 52), static_cast<uint32_t>(handle >> kHandleIndexBits) & kHandleGenerationMask,
          (static_cast<uint32_t>(handle) & kMaxValues) - 1};
}

}  // namespace ckpt::tape
