#include "ops/cpu/kernels.h"

namespace ckpt::ops {

const Kernels &best_kernels() noexcept {
#if defined(CKPT_OPS_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return kAvx512Kernels;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2Kernels;
#endif
  return kGenericKernels;
}

}  // namespace ckpt::ops
