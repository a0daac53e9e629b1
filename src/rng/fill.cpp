#include "rng/fill.h"

#include <cstring>

namespace ckpt::rng {

const Fills *fills(Isa isa) noexcept {
#if defined(CKPT_RNG_X86)
  if (isa == Isa::AVX512) {
    const bool there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return there ? &kAvx512Fills : nullptr;
  }
  if (isa == Isa::AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kAvx2Fills : nullptr;
#endif
  return isa == Isa::SCALAR ? &kScalarFills : nullptr;
}

const Fills &best_fills() noexcept {
  static const Fills *const best = [] {
    if (const Fills *found = fills(Isa::AVX512)) return found;
    if (const Fills *found = fills(Isa::AVX2)) return found;
    return &kScalarFills;
  }();
  return *best;
}

void bernoulli(const Fills &fills, const Stream &stream, size_t count, uint64_t threshold, uint8_t *out) noexcept {
  if (count == 0) return;
  if (threshold == 0 || threshold > UINT32_MAX)
    std::memset(out, threshold != 0, count);
  else
    fills.below(stream, count, static_cast<uint32_t>(threshold), out);
}

}  // namespace ckpt::rng
