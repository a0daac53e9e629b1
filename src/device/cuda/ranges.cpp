#include "device/cuda/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define CKPT_CUDA_HAS_NVTX 1
#endif

namespace ckpt::cuda {

const device::Ranges *ranges() {
#ifdef CKPT_CUDA_HAS_NVTX
  // Here, once: else the first ranges of several threads would look for the profiler, and read what one of them writes.
  static const bool looked = (nvtxInitialize(nullptr), true);
  (void)looked;
  static constexpr device::Ranges kRanges = {device::kRangesVersion, 0, [](const char *name) { (void)nvtxRangePushA(name); },
                                             [] { (void)nvtxRangePop(); }};
  return &kRanges;
#else
  return nullptr;
#endif
}

}  // namespace ckpt::cuda
