// The CPU as a device: streams do not exist, all work is done when a function returns.
#pragma once

#include "device/table.h"

namespace ckpt::device::cpu {

const Table &table() noexcept;

// hash.cpp. Any change that is confined to eight aligned bytes changes the result for certain.
uint64_t hash(const void *data, size_t bytes) noexcept;

}  // namespace ckpt::device::cpu
