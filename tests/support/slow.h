// Sweeps are shorter where each step is many times slower.
#pragma once

#include <cstdint>

namespace plan_test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr uint32_t kSlow = 4;
#else
inline constexpr uint32_t kSlow = 1;
#endif

}  // namespace plan_test
