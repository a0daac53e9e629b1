// A device's slabs. Mapped: address space first, pages behind it as they are committed; plain: cudaMalloc's.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>

namespace ckpt::cuda {

struct Slab {
  char *data = nullptr;   // what the caller got
  void *plain = nullptr;  // what cudaMalloc gave; NULL: mapped
  size_t bytes = 0;       // mapped: whole pages
  std::map<size_t, size_t> mapped;  // begin to end of each mapping, offsets from data: they are unmapped as they were mapped
};

inline CUmemAllocationProp mapped_memory(int index) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = index;
  return properties;
}

}  // namespace ckpt::cuda
