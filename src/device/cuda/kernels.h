// The device's own kernels, one launcher each. Launchers enqueue on `stream`, never wait, and are legal while it is captured
// (nothing is allocated). They return what cudaGetLastError or the launch said; arguments have been checked.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "device/table.h"

namespace ckpt::cuda {

// *word = value; the value travels as the kernel's argument.
cudaError_t word_launch(cudaStream_t stream, uint64_t *word, uint64_t value);

// device::cpu::hash of device bytes, bit for bit, to *device_out (8 bytes, aligned). `workspace` is device memory of at least
// hash_workspace(bytes), aligned to 256; its contents do not matter. bytes may be 0.
size_t hash_workspace(size_t bytes);
cudaError_t hash_launch(cudaStream_t stream, const void *data, size_t bytes, uint64_t *device_out, void *workspace, size_t workspace_bytes);

// Table::philox. count > 0; `out` has the alignment of its element type and no more. step_word is read on the device.
// u32: uint32_t; uniform, normal: float (a: mean, b: standard deviation); bernoulli: uint8_t 0 or 1 (a: probability in [0, 1],
// threshold round(a * 2^32)). The bits of the host's fills.
cudaError_t philox_launch(cudaStream_t stream, device::Fill fill, const ckpt_philox &philox, uint64_t first, size_t count, double a,
                          double b, void *out);

}  // namespace ckpt::cuda
