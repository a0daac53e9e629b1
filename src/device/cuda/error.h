// Failures of CUDA calls as statuses with a text.
//
// These are for code that runs inside an entry point, where a Scope (gpu.h) says which device it works on; with a Gpu at hand its
// own functions say the same.
#pragma once

#include <cuda_runtime.h>

#include "device/table.h"

namespace ckpt::cuda {

// What libckpt gave with the latest open.
void set_host(const device::Host *host) noexcept;

// Sets this thread's text, which begins with the device's name ("cuda:0: ..."), and returns `status`.
ckpt_status fail(ckpt_status status, const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));

// What a failed call returned, `call` being its name or its text. OUT_OF_MEMORY says what is free; CAPTURE: illegal while a stream is
// captured; else DEVICE. An error after which the device cannot be used (an illegal address, say) is remembered: later calls are
// refused with its name. CKPT_OK for cudaSuccess.
ckpt_status fail_call(cudaError_t error, const char *call) noexcept;

// Errors after which every call on the device's context fails.
bool loses_the_device(cudaError_t error) noexcept;

}  // namespace ckpt::cuda
