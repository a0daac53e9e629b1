// Virtual memory: the driver's reservations, handles and mappings, with the driver's rules. One file in memory stands for the device's
// memory, so that a handle's contents outlive its mapping.
#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "streams.h"

namespace cudasim {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;
constexpr size_t kFilled = size_t{64} << 20;

struct Mapping {
  size_t bytes;
  CUmemGenericAllocationHandle handle;
  bool access;
};
struct Reservation {
  size_t bytes;
  bool live;
  std::map<size_t, Mapping> mappings;  // by offset
};
struct Handle {
  size_t bytes, offset;  // in the file
  unsigned mapped;
  bool released;
};
struct Virtual {
  std::map<char *, Reservation> reservations;  // freed ones stay, without access
  std::map<CUmemGenericAllocationHandle, Handle> handles;
  CUmemGenericAllocationHandle next = 1;
  size_t file_bytes = 0;
  int file = -1;
};
Virtual &all() {
  static Virtual *v = new Virtual;
  return *v;
}

CUresult code(cudaError_t error) { return static_cast<CUresult>(error); }  // the same numbers since CUDA 10.1
bool whole(size_t bytes) { return bytes != 0 && bytes % kGranularity == 0; }
char *pointer(CUdeviceptr p) { return reinterpret_cast<char *>(p); }

std::pair<char *const, Reservation> *find(const void *p) {
  char *at = static_cast<char *>(const_cast<void *>(p));
  auto it = all().reservations.upper_bound(at);
  if (it == all().reservations.begin()) return nullptr;
  --it;
  return at < it->first + it->second.bytes ? &*it : nullptr;
}

// The mappings that make up [p, p + bytes) exactly; false where there is a hole or a part of one.
bool whole_mappings(CUdeviceptr p, size_t bytes, std::pair<char *const, Reservation> **out) {
  auto *r = find(pointer(p));
  if (r == nullptr || !r->second.live || bytes == 0) return false;
  size_t at = static_cast<size_t>(pointer(p) - r->first);
  for (const size_t end = at + bytes; at < end;) {
    const auto m = r->second.mappings.find(at);
    if (m == r->second.mappings.end() || m->second.bytes > end - at) return false;
    at += m->second.bytes;
  }
  *out = r;
  return true;
}

void drop(CUmemGenericAllocationHandle id) {
  const Handle &h = all().handles.at(id);
  if (!h.released || h.mapped != 0) return;
  fallocate(all().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(h.offset), static_cast<off_t>(h.bytes));
  refund(h.bytes);
  --live().handles;
  all().handles.erase(id);
}

#define DRIVER_ENTER(flags) \
  Quiet quiet;              \
  if (const cudaError_t entered = enter(__func__, flags); entered != cudaSuccess) return code(entered); \
  std::lock_guard<std::mutex> hold(memory_lock())
#define DRIVER_GIVE_BACK(flags)                                                     \
  Quiet quiet;                                                                      \
  const CUresult entered = code(enter(__func__, kGivesBack | (flags)));            \
  if (entered == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return entered;             \
  std::lock_guard<std::mutex> hold(memory_lock())

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags) {
  DRIVER_ENTER(0);
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      prop->location.id < 0 || prop->location.id >= device_count())
    return CUDA_ERROR_INVALID_VALUE;
  *out = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long flags) {
  DRIVER_ENTER(kUnsafe);
  if (!whole(bytes) || flags != 0 || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > size_t{1} << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  if (alignment < kGranularity) alignment = kGranularity;
  void *map = mmap(nullptr, bytes + alignment + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char *begin = static_cast<char *>(map);  // the rest stays without access: pages that guard both ends
  begin += (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  all().reservations[begin] = {bytes, true, {}};
  ++live().reservations;
  *out = reinterpret_cast<CUdeviceptr>(begin);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes) {
  DRIVER_GIVE_BACK(kUnsafe);
  const auto r = all().reservations.find(pointer(p));
  if (r == all().reservations.end() || !r->second.live || r->second.bytes != bytes || !r->second.mappings.empty())
    return CUDA_ERROR_INVALID_VALUE;
  r->second.live = false;
  --live().reservations;
  return entered;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags) {
  DRIVER_ENTER(kUnsafe);
  if (!whole(bytes) || flags != 0 || prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.id < 0 || prop->location.id >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  if (!charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (all().file < 0) all().file = memfd_create("cudasim", MFD_CLOEXEC);
  if (all().file < 0 || ftruncate(all().file, static_cast<off_t>(all().file_bytes + bytes)) != 0) {
    refund(bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (bytes <= kFilled) {
    void *map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all().file, static_cast<off_t>(all().file_bytes));
    if (map != MAP_FAILED) {
      std::memset(map, 0xff, bytes);
      munmap(map, bytes);
    }
  }
  all().handles[*out = all().next++] = {bytes, all().file_bytes, 0, false};
  all().file_bytes += bytes;
  ++live().handles;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle id) {
  DRIVER_GIVE_BACK(0);
  const auto h = all().handles.find(id);
  if (h == all().handles.end() || h->second.released) return CUDA_ERROR_INVALID_VALUE;
  h->second.released = true;
  drop(id);
  return entered;
}

CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle id, unsigned long long flags) {
  DRIVER_ENTER(kUnsafe);
  auto *r = find(pointer(p));
  const auto h = all().handles.find(id);
  if (r == nullptr || !r->second.live || h == all().handles.end() || h->second.released || flags != 0 || offset != 0 || !whole(bytes) ||
      bytes != h->second.bytes)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t at = static_cast<size_t>(pointer(p) - r->first);
  if (at % kGranularity != 0 || bytes > r->second.bytes - at) return CUDA_ERROR_INVALID_VALUE;
  auto next = r->second.mappings.lower_bound(at);
  if (next != r->second.mappings.end() && next->first < at + bytes) return CUDA_ERROR_INVALID_VALUE;  // taken
  if (next != r->second.mappings.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at) return CUDA_ERROR_INVALID_VALUE;
  if (mmap(pointer(p), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, all().file, static_cast<off_t>(h->second.offset)) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  r->second.mappings[at] = {bytes, id, false};
  ++h->second.mapped;
  ++live().mappings;
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr p, size_t bytes) {
  {
    Quiet quiet;
    drain(false);  // an implementation may wait, but nothing promises it
  }
  DRIVER_GIVE_BACK(kUnsafe);
  std::pair<char *const, Reservation> *r = nullptr;
  if (!whole_mappings(p, bytes, &r)) return CUDA_ERROR_INVALID_VALUE;
  mmap(pointer(p), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (size_t at = static_cast<size_t>(pointer(p) - r->first), end = at + bytes; at < end;) {
    const Mapping m = r->second.mappings.at(at);
    r->second.mappings.erase(at);
    --all().handles.at(m.handle).mapped;
    --live().mappings;
    drop(m.handle);
    at += m.bytes;
  }
  return entered;
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t count) {
  DRIVER_ENTER(kUnsafe);
  std::pair<char *const, Reservation> *r = nullptr;
  if (desc == nullptr || count == 0 || !whole_mappings(p, bytes, &r)) return CUDA_ERROR_INVALID_VALUE;
  bool access = false;
  for (size_t k = 0; k < count; ++k) {
    if (desc[k].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (desc[k].location.id < 0 || desc[k].location.id >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
    access = access || desc[k].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  mprotect(pointer(p), bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
  for (size_t at = static_cast<size_t>(pointer(p) - r->first), end = at + bytes; at < end;) {
    Mapping &m = r->second.mappings.at(at);
    m.access = access;
    at += m.bytes;
  }
  return CUDA_SUCCESS;
}

}  // namespace

Where where_in_reservations(const void *data, size_t bytes) {
  auto *r = find(data);
  if (r == nullptr) return Where::outside;
  size_t at = static_cast<size_t>(static_cast<const char *>(data) - r->first);
  if (!r->second.live || bytes > r->second.bytes - at) return Where::bad;
  for (const size_t end = at + (bytes == 0 ? 1 : bytes); at < end;) {
    auto m = r->second.mappings.upper_bound(at);
    if (m == r->second.mappings.begin()) return Where::bad;
    --m;
    if (at >= m->first + m->second.bytes || !m->second.access) return Where::bad;
    at = m->first + m->second.bytes;
  }
  return Where::inside;
}

bool describe_reservation(const void *data, char *out, size_t bytes) {
  auto *r = find(data);
  if (r == nullptr) return false;
  const size_t at = static_cast<size_t>(static_cast<const char *>(data) - r->first);
  auto m = r->second.mappings.upper_bound(at);
  const bool mapped = m != r->second.mappings.begin() && at < std::prev(m)->first + std::prev(m)->second.bytes;
  std::snprintf(out, bytes, "illegal address %p: offset %zu of a %sreservation of %zu bytes, %s", data, at,
                r->second.live ? "" : "freed ", r->second.bytes, mapped ? "mapped without access" : "not mapped");
  return true;
}

void *driver_function(const char *name) {
  if (!virtual_memory()) return nullptr;
  const struct {
    const char *name;
    void *function;
  } functions[] = {
#define CUDASIM_FUNCTION(f) {#f, reinterpret_cast<void *>(static_cast<decltype(&::f)>(f))}
      CUDASIM_FUNCTION(cuMemGetAllocationGranularity), CUDASIM_FUNCTION(cuMemAddressReserve), CUDASIM_FUNCTION(cuMemAddressFree),
      CUDASIM_FUNCTION(cuMemCreate),                   CUDASIM_FUNCTION(cuMemRelease),        CUDASIM_FUNCTION(cuMemMap),
      CUDASIM_FUNCTION(cuMemUnmap),                    CUDASIM_FUNCTION(cuMemSetAccess),
#undef CUDASIM_FUNCTION
  };
  for (const auto &f : functions)
    if (std::strcmp(f.name, name) == 0) return f.function;
  return nullptr;
}

}  // namespace cudasim
