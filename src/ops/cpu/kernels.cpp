#include "ops/cpu/kernels.h"

#include "ckpt/ops.h"

namespace ckpt::ops {
namespace {

#if defined(CKPT_OPS_X86)
bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
bool has_avx2() noexcept { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

const Kernels *kernels_of(uint32_t isa) noexcept {
#if defined(CKPT_OPS_X86)
  if ((isa == CKPT_ISA_BEST || isa == CKPT_ISA_AVX512) && has_avx512()) return &kAvx512Kernels;
  if ((isa == CKPT_ISA_BEST || isa == CKPT_ISA_AVX2) && has_avx2()) return &kAvx2Kernels;
#endif
  return isa == CKPT_ISA_BEST || isa == CKPT_ISA_GENERIC ? &kGenericKernels : nullptr;
}

}  // namespace ckpt::ops
