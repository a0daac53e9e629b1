#include "arena/arena.h"

#include <algorithm>
#include <bit>
#include <new>
#include <thread>

namespace ckpt::arena {
namespace {

constexpr size_t kDefaultAlignment = 256, kLeastAlignment = 64, kLargestAlignment = size_t{1} << 30;
constexpr uint8_t kGuard = 0xA5, kPoison = 0xFF;

Status validate_sizes(const char *function, const ckpt_arena_desc &d) {
  constexpr uint32_t kKnown = CKPT_ARENA_GUARD | CKPT_ARENA_POISON | CKPT_ARENA_PLAIN;
  if (d.flags & ~kKnown)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.flags is 0x%x, expected a combination of 0x%x", function, d.flags, kKnown);
  if (!is_power_of_two(d.alignment_bytes) || d.alignment_bytes < kLeastAlignment || d.alignment_bytes > kLargestAlignment)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.alignment_bytes is %zu, expected 0 or a power of two from %zu to %zu", function,
                d.alignment_bytes, kLeastAlignment, kLargestAlignment);
  if (d.capacity_bytes > SizeRule::kMaxBytes)
    return fail(CKPT_ERROR_OVERFLOW, "%s: desc.capacity_bytes is %zu, expected at most %zu", function, d.capacity_bytes,
                SizeRule::kMaxBytes);
  return CKPT_OK;
}

Status validate_memory(const char *function, const ckpt_arena_desc &d) {
  if ((d.alloc == nullptr) != (d.free == nullptr))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.%s is NULL, expected alloc and free both or neither", function,
                d.alloc == nullptr ? "alloc" : "free");
  if (d.slab != nullptr && d.alloc != nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.slab and desc.alloc are both given, expected one of them", function);
  if ((d.slab != nullptr || d.alloc != nullptr) && d.capacity_bytes == 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.capacity_bytes is 0, expected at least 1 for the caller's memory", function);
  if ((d.flags & CKPT_ARENA_PLAIN) && (d.slab != nullptr || d.alloc != nullptr))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.flags has CKPT_ARENA_PLAIN, which says where the device's memory comes from, but desc.%s gives the caller's", function,
                d.slab != nullptr ? "slab" : "alloc");
  if ((d.flags & CKPT_ARENA_PLAIN) && d.capacity_bytes == 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.capacity_bytes is 0, expected a capacity with CKPT_ARENA_PLAIN: such memory is taken at once", function);
  if (reinterpret_cast<uintptr_t>(d.slab) % d.alignment_bytes != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.slab is %p, expected a multiple of %zu", function, d.slab, d.alignment_bytes);
  return CKPT_OK;
}

SizeRule rule_of(const ckpt_arena_desc &d) noexcept {
  return {d.alignment_bytes, d.flags & CKPT_ARENA_GUARD ? d.alignment_bytes : 0};
}

Status validate_stream(const char *function, const device::Device &device, void *stream) {
  if (stream != nullptr && device.kind() == CKPT_DEVICE_KIND_CPU)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.stream is %p, expected NULL on the CPU", function, stream);
  if (stream == nullptr && device.asynchronous())
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.stream is NULL, the legacy default stream, which waits for all others; expected a stream of its own (ckpt_device_stream_create)", function);
  return CKPT_OK;
}

Status check_not_captured(const char *function, const device::Device &device, void *stream) {
  if (!device.asynchronous()) return CKPT_OK;
  uint32_t captured = 0;
  CKPT_TRY(device.capturing(stream, &captured));
  if (captured != 0) return fail(CKPT_ERROR_CAPTURE, "%s: desc.stream is being captured: make the arena before", function);
  return CKPT_OK;
}

}  // namespace

Arena::Arena(Slab slab, const ckpt_arena_desc &desc, size_t capacity, bool grows) noexcept
    : checks_((desc.flags & (CKPT_ARENA_GUARD | CKPT_ARENA_POISON)) | (grows ? kGrows : 0)), key_shift_(static_cast<uint32_t>(std::countr_zero(desc.alignment_bytes))), rule_(rule_of(desc)),
      stream_(desc.stream), placer_(capacity), slab_(std::move(slab)) {}

Result<Ref<Arena>> Arena::create(const char *function, Ref<device::Device> device, const ckpt_arena_desc &given) {
  using R = Result<Ref<Arena>>;
  ckpt_arena_desc desc = given;
  if (desc.alignment_bytes == 0) desc.alignment_bytes = kDefaultAlignment;
  if (const Status s = validate_sizes(function, desc)) return R::failed(s);
  if (const Status s = validate_memory(function, desc)) return R::failed(s);
  if (const Status s = validate_stream(function, *device, desc.stream)) return R::failed(s);

  Slab slab(device, desc);  // from here on `release` is owed
  if (const Status s = check_not_captured(function, *device, desc.stream)) return R::failed(s);
  size_t capacity = desc.capacity_bytes;
  if (capacity == 0) {
    ckpt_device_info info{};
    if (const Status s = device->info(&info)) return R::failed(s);
    capacity = info.total_bytes;
  }
  // Whole alignment units only, so that both ends are aligned. A slab of less than one still has an address to give.
  const size_t usable = round_down(capacity, desc.alignment_bytes);
  const bool own = desc.slab == nullptr && desc.alloc == nullptr;
  if (const Status s = slab.take(function, own ? std::max(usable, desc.alignment_bytes) : capacity)) return R::failed(s);
  // A capacity is there from the beginning, so that a budget's memory never grows inside a step; without one it follows the blocks.
  const bool grows = own && device->asynchronous() && desc.capacity_bytes == 0;
  if (own && device->asynchronous() && !grows)
    if (const Status s = device->commit(slab.data(), usable)) return R::failed(s);
  auto *arena = new (std::nothrow) Arena(std::move(slab), desc, usable, grows);
  if (arena == nullptr) return R::failed(fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the host refused %zu bytes", function, sizeof(Arena)));
  return Ref<Arena>::adopt(arena);
}

namespace {

// An address that no other thread has.
const void *this_thread() noexcept {
  thread_local const char here = 0;
  return &here;
}

}  // namespace

// Another thread gives back what was given up: that is no use of the arena, and the owner waits for it. A release callback in
// there that calls in again is refused.
bool Arena::wait_for_burial(uint32_t found) const noexcept {
  while (found == kBurying && buryer_.load(std::memory_order_relaxed) != this_thread()) {
    std::this_thread::yield();
    found = kFree;
    if (busy_.compare_exchange_weak(found, kUsed, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    if (found == kFree) found = kBurying;  // a spurious failure: once more
  }
  return false;
}

void Arena::give_up(Orphan *orphan) const noexcept {
  Orphan *top = orphans_.load(std::memory_order_relaxed);
  do orphan->next_ = top;
  while (!orphans_.compare_exchange_weak(top, orphan));
  bury_if_free();
}

void Arena::bury_if_free() const noexcept {
  uint32_t found = kFree;
  while (orphans_.load() != nullptr && busy_.compare_exchange_strong(found, kBurying)) {
    buryer_.store(this_thread(), std::memory_order_relaxed);
    bury_orphans();
    buryer_.store(nullptr, std::memory_order_relaxed);
    busy_.store(kFree);
  }
}

// The arena outlives this: the caller holds a count.
void Arena::bury_orphans() const noexcept {
  for (Orphan *top = orphans_.exchange(nullptr, std::memory_order_acquire); top != nullptr;) {
    Orphan *next = top->next_;
    top->bury();
    top = next;
  }
}

Status Arena::refuse_busy(const char *function) const noexcept {
  return fail(CKPT_ERROR_BUSY, "%s: the arena is in use by another thread, or by the call whose callback this is", function);
}

Status Arena::refuse(const char *function, size_t bytes) noexcept {
  if (fill_failure_ != CKPT_OK) return std::exchange(fill_failure_, CKPT_OK);
  return fail(CKPT_ERROR_BUDGET,
              "%s: wanted %zu bytes (%zu with alignment and guards); in use %zu, free %zu, largest free block %zu, capacity %zu",
              function, bytes, rule_.footprint(bytes), placer_.in_use(), capacity() - placer_.in_use(), placer_.largest_free(),
              capacity());
}

// ---- guards and poison ----
//
// A block under GUARD: guard | user bytes | padding up to the alignment | guard. The padding has the pattern too, so that
// one byte too many is seen.

BlockId Arena::dress(BlockId block, size_t bytes) {
  if (checks_ & kGrows) {
    fill_failure_ = follow();
    if (fill_failure_ != CKPT_OK) return refused(block);
  }
  if (checks_ & CKPT_ARENA_GUARD) {
    if (user_bytes_.size() <= block) {
      try {
        user_bytes_.resize(std::max<size_t>(block + size_t{1}, 2 * user_bytes_.size()));
      } catch (...) {
        --alloc_count_;
        placer_.free(block);
        throw;
      }
    }
    user_bytes_[block] = bytes;
  }
  fill_failure_ = fill(block, bytes);
  return fill_failure_ == CKPT_OK ? block : refused(block);
}

BlockId Arena::refused(BlockId block) noexcept {
  --alloc_count_;
  ++failed_count_;
  placer_.free(block);
  return kNoBlock;
}

Status Arena::fill(BlockId block, size_t bytes) const {
  auto *const user = static_cast<char *>(pointer(block));
  const size_t guard = rule_.guard_bytes, rounded = placer_.bytes(block) - 2 * guard;
  if (checks_ & CKPT_ARENA_POISON) CKPT_TRY(device().fill(stream_, user, kPoison, rounded));
  if (guard == 0) return CKPT_OK;
  CKPT_TRY(device().fill(stream_, user - guard, kGuard, guard));
  return device().fill(stream_, user + bytes, kGuard, rounded - bytes + guard);
}

Status Arena::undress(const char *function, BlockId block) noexcept {
  Status status = CKPT_OK;
  if (checks_ & CKPT_ARENA_GUARD) status = check_block(function, block);
  if (checks_ & CKPT_ARENA_POISON) {
    auto *const begin = static_cast<char *>(pointer(block)) - rule_.guard_bytes;
    const Status filled = device().fill(stream_, begin, kPoison, placer_.bytes(block));
    if (status == CKPT_OK) status = filled;
  }
  return status;
}

Status Arena::check_range(const char *function, BlockId block, const char *where, const char *begin, size_t bytes) const {
  uint8_t seen[1024];
  for (size_t done = 0; done < bytes;) {
    const size_t part = std::min(bytes - done, sizeof seen);
    CKPT_TRY(device().copy(stream_, seen, begin + done, part, device::Copy::device_to_host));
    CKPT_TRY(device().synchronize(stream_));
    for (size_t k = 0; k < part; ++k)
      if (seen[k] != kGuard)
        return fail(CKPT_ERROR_CHECK, "%s: the guard %s the block at %p (%zu bytes, offset %zu) is overwritten %zu bytes into it",
                    function, where, pointer(block), user_bytes_[block], placer_.offset(block) + rule_.guard_bytes, done + k);
    done += part;
  }
  return CKPT_OK;
}

Status Arena::check_block(const char *function, BlockId block) const {
  const auto *const user = static_cast<const char *>(pointer(block));
  const size_t guard = rule_.guard_bytes, bytes = user_bytes_[block];
  CKPT_TRY(check_range(function, block, "before", user - guard, guard));
  return check_range(function, block, "after", user + bytes, placer_.bytes(block) - guard - bytes);
}

Status Arena::check(const char *function) const {
  if (!(checks_ & CKPT_ARENA_GUARD)) return CKPT_OK;
  for (BlockId block = 0; block < placer_.id_limit(); ++block)
    if (placer_.live(block)) CKPT_TRY(check_block(function, block));
  return CKPT_OK;
}

// ---- the whole ----

Status Arena::commit(size_t low_bytes, size_t high_bytes) {
  const size_t low = std::min(low_bytes, capacity()), high = std::min(high_bytes, capacity() - low);
  if (checks_ & kGrows) return grow(low, high);
  auto *const base = static_cast<char *>(slab_.data());
  CKPT_TRY(device().commit(base, low));
  return device().commit(base + (capacity() - high), high);
}

// Memory behind both ends up to their frontiers, in large pieces where the device has them.
Status Arena::follow() {
  constexpr size_t kPiece = size_t{64} << 20;
  const size_t low = placer_.low_frontier(), high = placer_.high_frontier();
  if (low <= committed_[0] && high <= committed_[1]) return CKPT_OK;
  if (grow(std::min(round_up(low, kPiece), capacity()), std::min(round_up(high, kPiece), capacity())) == CKPT_OK) return CKPT_OK;
  return last_status() == CKPT_ERROR_OUT_OF_MEMORY ? grow(low, high) : last_status();
}

Status Arena::grow(size_t low, size_t high) {
  if (low <= committed_[0] && high <= committed_[1]) return CKPT_OK;
  uint32_t captured = 0;
  CKPT_TRY(device().capturing(stream_, &captured));
  if (captured != 0)
    return fail(CKPT_ERROR_CAPTURE, "ckpt: the arena's memory would have to grow to %zu bytes while its stream is captured: give the arena a capacity, or call ckpt_tape_prepare before", low + high);
  auto *const base = static_cast<char *>(slab_.data());
  if (low > committed_[0]) {
    CKPT_TRY(device().commit(base + committed_[0], low - committed_[0]));
    committed_[0] = low;
  }
  if (high > committed_[1]) {
    CKPT_TRY(device().commit(base + (capacity() - high), high - committed_[1]));
    committed_[1] = high;
  }
  return CKPT_OK;
}

void Arena::reserve(size_t block_count) {
  placer_.reserve(block_count);
  if (checks_ & CKPT_ARENA_GUARD) user_bytes_.resize(std::max(user_bytes_.size(), 2 * block_count + 1));
}

void Arena::stats(ckpt_arena_stats *out) const noexcept {
  const size_t largest = placer_.largest_free(), guards = 2 * rule_.guard_bytes;
  out->block_count = placer_.block_count();
  out->in_use_bytes = placer_.in_use();
  out->peak_in_use_bytes = placer_.peak_in_use();
  out->height_bytes = placer_.height();
  out->capacity_bytes = capacity();
  out->largest_free_bytes = largest > guards ? largest - guards : 0;
  out->alloc_count = alloc_count_;
  out->free_count = free_count_;
  out->failed_count = failed_count_;
}

// ---- by address ----

void *Arena::take(const char *function, size_t bytes, Side side) {
  const Lock lock(*this, function);
  if (lock.status()) return nullptr;
  if (bytes > SizeRule::kMaxBytes) {
    ++failed_count_;
    (void)fail(CKPT_ERROR_OVERFLOW, "%s: bytes is %zu, expected at most %zu", function, bytes, SizeRule::kMaxBytes);
    return nullptr;
  }
  index_.reserve_one();
  const BlockId block = allocate(std::max<size_t>(bytes, 1), side);  // zero bytes: an address of their own
  if (block == kNoBlock) {
    (void)refuse(function, bytes);
    return nullptr;
  }
  void *data = pointer(block);
  index_.insert(key_of(data), block);
  if (index_.size() == 1) retain();
  return data;
}

Status Arena::give(const char *function, void *data) noexcept {
  Status status = CKPT_OK;
  bool last = false;
  {
    const Lock lock(*this, function);
    if (lock.status()) return lock.status();
    const bool aligned = reinterpret_cast<uintptr_t>(data) % rule_.alignment_bytes == 0;
    const BlockId block = aligned ? index_.take(key_of(data)) : kNoBlock;
    if (block == kNoBlock)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: data is %p, expected a live block of this arena", function, data);
    status = free(function, block);
    last = index_.size() == 0;
  }
  if (last) drop();  // may be the end of *this
  return status;
}

}  // namespace ckpt::arena
