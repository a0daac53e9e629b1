#include "device/cuda/memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "device/cuda/gpu.h"

namespace ckpt::cuda {
namespace {

constexpr size_t kLargestMapping = size_t{1} << 30;  // a growth of many GiB goes in pieces of this
constexpr size_t kPlainAlignment = 256;              // what cudaMalloc promises

cudaError_t runtime(CUresult result) noexcept { return static_cast<cudaError_t>(result); }
CUdeviceptr address(const char *data) noexcept { return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(data)); }

}  // namespace

ckpt_status Gpu::reserve_plain(Slab *slab, size_t bytes, size_t alignment) {
  size_t span = 0;
  if (add_overflows(bytes, alignment > kPlainAlignment ? alignment : 0, &span))
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%zu bytes at alignment %zu exceed the address space", bytes, alignment);
  CKPT_CUDA(report_memory(cudaMalloc(&slab->plain, span), "cudaMalloc", span));
  slab->data = reinterpret_cast<char *>(round_up(reinterpret_cast<uintptr_t>(slab->plain), alignment));
  slab->bytes = bytes;
  return CKPT_OK;
}

ckpt_status Gpu::reserve_mapped(Slab *slab, size_t bytes, size_t alignment) {
  size_t rounded = 0;
  if (round_up_overflows(bytes, granularity_, &rounded))
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%zu bytes exceed the address space", bytes);
  CKPT_CUDA(bind());
  CUdeviceptr data = 0;
  const size_t wanted = alignment > granularity_ ? alignment : 0;
  CKPT_CUDA(report_memory(runtime(driver_.address_reserve(&data, rounded, wanted, 0, 0)), "cuMemAddressReserve", rounded));
  slab->data = reinterpret_cast<char *>(static_cast<uintptr_t>(data));
  slab->bytes = rounded;
  return CKPT_OK;
}

ckpt_status Gpu::reserve(size_t bytes, size_t alignment, uint32_t flags, void **out) {
  *out = nullptr;
  const OutsideCapture outside;
  auto slab = std::make_unique<Slab>();
  const std::lock_guard<std::mutex> lock(slabs_mutex_);
  const bool plain = (flags & device::kReservePlain) != 0 || granularity_ == 0;
  bytes = std::max<size_t>(bytes, 1);
  // The place in the table is taken first: what the device gives cannot be lost for want of the host's memory.
  const auto place = slabs_.emplace(UINTPTR_MAX, std::move(slab)).first;
  Slab *const made = place->second.get();
  const ckpt_status status = plain ? reserve_plain(made, bytes, alignment) : reserve_mapped(made, bytes, alignment);
  auto node = slabs_.extract(place);
  if (status != CKPT_OK) return status;
  node.key() = reinterpret_cast<uintptr_t>(made->data);
  slabs_.insert(std::move(node));
  *out = made->data;
  return CKPT_OK;
}

// Unmapping waits for nobody, cudaFree waits for all work on the device. So does cudaDeviceSynchronize, but while any stream of the device
// is captured, by whomever, it is refused and ends that capture: it is here for want of memory only.
void Gpu::wait_for_all_work() noexcept {
  void *one = nullptr;
  const bool there = cudaSetDevice(index_) == cudaSuccess && cudaMalloc(&one, 1) == cudaSuccess;
  if (there && cudaFree(one) == cudaSuccess) return;
  (void)cudaGetLastError();
  if (!there && cudaDeviceSynchronize() != cudaSuccess) (void)cudaGetLastError();
}

// Work on the slab may still be running.
void Gpu::release(void *data) noexcept {
  const OutsideCapture outside;
  const std::lock_guard<std::mutex> lock(slabs_mutex_);
  const auto found = slabs_.find(reinterpret_cast<uintptr_t>(data));
  if (found == slabs_.end()) return;
  Slab &slab = *found->second;
  if (slab.plain != nullptr) {
    if (cudaFree(slab.plain) != cudaSuccess) (void)cudaGetLastError();
  } else {
    wait_for_all_work();
    unmap(&slab, 0, slab.bytes);
    (void)driver_.address_free(address(slab.data), slab.bytes);
  }
  slabs_.erase(found);
}

void Gpu::unmap(Slab *slab, size_t begin, size_t end) noexcept {
  for (auto at = slab->mapped.lower_bound(begin); at != slab->mapped.end() && at->first < end; at = slab->mapped.erase(at))
    (void)driver_.unmap(address(slab->data + at->first), at->second - at->first);
}

// Pages behind [begin, end), where there are none, all or none. The memory lives as long as the mapping: its handle is let go of.
ckpt_status Gpu::map_gap(Slab *slab, size_t begin, size_t end) {
  const CUmemAllocationProp properties = mapped_memory(index_);
  ckpt_status status = CKPT_OK;
  for (size_t at = begin; at < end && status == CKPT_OK;) {
    const size_t bytes = std::min(end - at, kLargestMapping);
    const auto place = slab->mapped.emplace(at, at + bytes).first;
    CUmemGenericAllocationHandle memory = 0;
    status = report_memory(runtime(driver_.create(&memory, bytes, &properties, 0)), "cuMemCreate", bytes);
    if (status == CKPT_OK) {
      status = report(runtime(driver_.map(address(slab->data + at), bytes, 0, memory, 0)), "cuMemMap(%zu bytes)", bytes);
      (void)driver_.release(memory);
    }
    if (status != CKPT_OK) slab->mapped.erase(place);
    at += bytes;
  }
  if (status == CKPT_OK) {
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    status = report(runtime(driver_.set_access(address(slab->data + begin), end - begin, &access, 1)), "cuMemSetAccess(%zu bytes)", end - begin);
  }
  if (status != CKPT_OK) unmap(slab, begin, end);
  return status;
}

ckpt_status Gpu::map(Slab *slab, size_t begin, size_t end) {
  std::vector<std::pair<size_t, size_t>> gaps;
  size_t at = begin;
  for (const auto &[first, last] : slab->mapped) {
    if (last <= at) continue;
    if (first >= end) break;
    if (first > at) gaps.emplace_back(at, first);
    at = last;
  }
  if (at < end) gaps.emplace_back(at, end);
  for (size_t k = 0; k < gaps.size(); ++k) {
    const ckpt_status status = map_gap(slab, gaps[k].first, gaps[k].second);
    if (status == CKPT_OK) continue;
    while (k-- > 0) unmap(slab, gaps[k].first, gaps[k].second);
    return status;
  }
  return CKPT_OK;
}

ckpt_status Gpu::commit(void *data, size_t bytes) {
  const OutsideCapture outside;
  const std::lock_guard<std::mutex> lock(slabs_mutex_);
  auto found = slabs_.upper_bound(reinterpret_cast<uintptr_t>(data));
  if (bytes == 0) return CKPT_OK;
  if (found == slabs_.begin()) return fail(CKPT_ERROR_INTERNAL, "commit of %p, which is in no slab of this device", data);
  Slab &slab = *(--found)->second;
  const auto offset = static_cast<size_t>(static_cast<char *>(data) - slab.data);
  if (offset > slab.bytes || bytes > slab.bytes - offset) return fail(CKPT_ERROR_INTERNAL, "commit of %p, which is in no slab of this device", data);
  if (slab.plain != nullptr) return CKPT_OK;
  CKPT_CUDA(bind());
  return map(&slab, round_down(offset, granularity_), std::min(round_up(offset + bytes, granularity_), slab.bytes));
}

ckpt_status Gpu::hash_scratch(size_t bytes, void **out) {
  *out = hash_scratch_;
  if (bytes <= hash_scratch_bytes_) return CKPT_OK;
  const OutsideCapture outside;
  void *larger = nullptr;
  CKPT_CUDA(report_memory(cudaMalloc(&larger, bytes), "cudaMalloc", bytes));
  void *const before = std::exchange(hash_scratch_, larger);
  hash_scratch_bytes_ = bytes;
  *out = larger;
  return before == nullptr ? CKPT_OK : report(cudaFree(before), "cudaFree");
}

}  // namespace ckpt::cuda
