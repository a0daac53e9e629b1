// Allocations. Each has pages of its own between two without access; the end, rounded up to 256 bytes, lies on the second. What is left
// over on both sides is filled with a pattern that the free checks; contents begin as NaN. Freed ranges lose their access and are never
// used again.
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <map>

#include "streams.h"

namespace cudasim {
namespace {

constexpr size_t kPage = 4096, kRound = 256;
constexpr size_t kFilled = size_t{64} << 20;  // larger allocations begin as zeros, and take memory as it is touched
constexpr unsigned char kPattern = 0xA5;

struct Allocation {
  char *map;
  size_t map_bytes;
  char *data;
  size_t bytes;
  bool pinned, live;
  unsigned number;
};
struct Memory {
  std::mutex lock;
  std::map<const char *, Allocation> all;  // by the map's begin; freed ones stay
  unsigned numbers = 0;
  size_t used = 0;
};
Memory &memory() {
  static Memory *m = new Memory;
  return *m;
}

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// The allocation, live or not, whose pages hold p.
Allocation *find(const void *p) {
  const char *at = static_cast<const char *>(p);
  auto it = memory().all.upper_bound(at);
  if (it == memory().all.begin()) return nullptr;
  Allocation &a = (--it)->second;
  return at < a.map + a.map_bytes ? &a : nullptr;
}

cudaError_t allocate(void **out, size_t bytes, bool pinned) {
  if (out == nullptr) return cudaErrorInvalidValue;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > memory_total()) return cudaErrorMemoryAllocation;
  const size_t range = rounded(bytes, kRound), pages = rounded(range, kPage);
  std::lock_guard<std::mutex> hold(memory().lock);
  if (!pinned && !charge(bytes)) return cudaErrorMemoryAllocation;
  void *map = mmap(nullptr, pages + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    if (!pinned) refund(bytes);
    return cudaErrorMemoryAllocation;
  }
  char *begin = static_cast<char *>(map), *data = begin + kPage + pages - range;
  mprotect(begin, kPage, PROT_NONE);
  mprotect(data + range, kPage, PROT_NONE);
  std::memset(begin + kPage, kPattern, pages - range);
  if (bytes <= kFilled) std::memset(data, 0xff, bytes);
  std::memset(data + bytes, kPattern, range - bytes);
  memory().all[begin] = {begin, pages + 2 * kPage, data, bytes, pinned, true, ++memory().numbers};
  ++(pinned ? live().pinned : live().allocations);
  *out = data;
  return cudaSuccess;
}

// The first byte of what is left over that was written; nullptr: none.
const char *overrun(const Allocation &a) {
  for (const char *p = a.map + kPage; p < a.map + a.map_bytes - kPage; ++p) {
    if (p == a.data) p += a.bytes;
    if (p == a.map + a.map_bytes - kPage) break;
    if (static_cast<unsigned char>(*p) != kPattern) return p;
  }
  return nullptr;
}

cudaError_t give_back(void *p, bool pinned) {
  if (p == nullptr) return cudaSuccess;
  std::lock_guard<std::mutex> hold(memory().lock);
  Allocation *a = find(p);
  if (a == nullptr || !a->live || a->data != p || a->pinned != pinned) return cudaErrorInvalidValue;
  if (const char *written = overrun(*a); written != nullptr) {
    char text[160];
    std::snprintf(text, sizeof text, "write outside of allocation #%u of %zu bytes, at offset %td", a->number, a->bytes, written - a->data);
    set_sticky(cudaErrorIllegalAddress, text);
  }
  a->live = false;
  --(pinned ? live().pinned : live().allocations);
  if (!pinned) refund(a->bytes);
  mprotect(a->map, a->map_bytes, PROT_NONE);
  madvise(a->map, a->map_bytes, MADV_DONTNEED);
  return cudaSuccess;
}

}  // namespace

std::mutex &memory_lock() { return memory().lock; }

bool charge(size_t bytes) {
  if (bytes > memory_total() || memory().used > memory_total() - bytes) return false;
  memory().used += bytes;
  live().device_bytes = memory().used;
  if (live().peak_bytes < memory().used) live().peak_bytes = memory().used;
  return true;
}

void refund(size_t bytes) { live().device_bytes = memory().used -= bytes; }

Where where_is(const void *data, size_t bytes) {
  std::lock_guard<std::mutex> hold(memory().lock);
  const Allocation *a = find(data);
  if (a == nullptr) return where_in_reservations(data, bytes);
  const char *at = static_cast<const char *>(data);
  return a->live && at >= a->data && at <= a->data + a->bytes && bytes <= static_cast<size_t>(a->data + a->bytes - at) ? Where::inside
                                                                                                                    : Where::bad;
}

bool device_range(const void *data, size_t bytes) {
  Quiet quiet;
  return where_is(data, bytes) == Where::inside;
}

void describe_address(const void *data, char *out, size_t bytes) {
  std::lock_guard<std::mutex> hold(memory().lock);
  const Allocation *a = find(data);
  if (a != nullptr)
    std::snprintf(out, bytes, "illegal address %p: %s %s allocation #%u of %zu bytes, offset %td", data,
                  a->live ? "beyond" : "use after free of", a->pinned ? "pinned" : "device", a->number, a->bytes,
                  static_cast<const char *>(data) - a->data);
  else if (!describe_reservation(data, out, bytes))
    std::snprintf(out, bytes, "illegal address %p, in no allocation", data);
}

}  // namespace cudasim

using namespace cudasim;

extern "C" {

cudaError_t cudaMalloc(void **out, size_t bytes) {
  CUDASIM_ENTER(kUnsafe);
  return keep(allocate(out, bytes, false));
}
cudaError_t cudaMallocHost(void **out, size_t bytes) {
  CUDASIM_ENTER(kUnsafe);
  return keep(allocate(out, bytes, true));
}
// What the toolkit's C++ cudaMallocHost calls.
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned) {
  CUDASIM_ENTER(kUnsafe);
  return keep(allocate(out, bytes, true));
}
cudaError_t cudaFree(void *data) {
  CUDASIM_GIVE_BACK(kUnsafe);
  // Not while a capture refuses it: the memory stays, as on the device.
  if (entered == cudaErrorStreamCaptureUnsupported) return keep(entered);
  if (data != nullptr) drain(false);  // an implementation waits, but nothing promises it
  const cudaError_t error = give_back(data, false);
  return keep(entered != cudaSuccess ? entered : error);
}
cudaError_t cudaFreeHost(void *data) {
  CUDASIM_GIVE_BACK(kUnsafe);
  if (entered == cudaErrorStreamCaptureUnsupported) return keep(entered);
  if (data != nullptr) drain(false);  // an implementation waits, but nothing promises it
  const cudaError_t error = give_back(data, true);
  return keep(entered != cudaSuccess ? entered : error);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  CUDASIM_ENTER();
  std::lock_guard<std::mutex> hold(memory().lock);
  *total = memory_total();
  *free_bytes = memory().used < *total ? *total - memory().used : 0;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *data) {
  CUDASIM_ENTER();
  *out = {};
  std::lock_guard<std::mutex> hold(memory().lock);
  const Allocation *a = find(data);
  const bool mapped = a == nullptr && where_in_reservations(data, 1) == Where::inside;
  void *p = const_cast<void *>(data);
  if (mapped || (a != nullptr && a->live)) {
    out->type = a != nullptr && a->pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    out->devicePointer = p;
    out->hostPointer = out->type == cudaMemoryTypeHost ? p : nullptr;
  } else {
    out->type = cudaMemoryTypeUnregistered;
    out->hostPointer = p;
  }
  return cudaSuccess;
}

}  // extern "C"
