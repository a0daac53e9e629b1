// An arena binds a placer to a slab of device memory. The tape works with block ids, the C ABI with addresses.
#pragma once

#include <atomic>
#include <vector>

#include "arena/address_index.h"
#include "arena/placer.h"
#include "arena/size_rule.h"
#include "arena/slab.h"
#include "base/ref.h"

namespace ckpt::arena {

// Something on an arena that was given up while the arena was in use (a host's finaliser on another thread, a destroy inside
// a callback): its memory goes back at the owner's next call.
class Orphan {
 public:
  virtual void bury() noexcept = 0;  // the arena is entered; may delete *this
 protected:
  ~Orphan() = default;
 private:
  friend class Arena;
  Orphan *next_ = nullptr;
};

// Shared: whoever works on an arena retains it; so do the blocks that were taken by address.
class Arena final : public Counted<Arena> {
 public:
  // Validates `desc`; from then on its `release` is called once, at the end or when something fails.
  static Result<Ref<Arena>> create(const char *function, Ref<device::Device> device, const ckpt_arena_desc &desc);
  ~Arena() = default;

  // One thread at a time, and no second call from inside a callback: BUSY. Everything below but take and give is called
  // between the two (see Lock).
  Status enter(const char *function) const noexcept {
    uint32_t found = kFree;
    if (!busy_.compare_exchange_strong(found, kUsed, std::memory_order_acquire, std::memory_order_relaxed) && !wait_for_burial(found)) return refuse_busy(function);
    if (orphans_.load(std::memory_order_relaxed) != nullptr) bury_orphans();
    return CKPT_OK;
  }
  // Who gives something up first puts it down and then tries the arena; who leaves first frees the arena and then looks. In
  // one total order of these (hence no weaker orders), one of the two finds the other's: nothing waits for a next call.
  void leave() const noexcept {
    busy_.store(kFree);
    if (orphans_.load() != nullptr) bury_if_free();
  }
  // Buries it now if the arena is free, else when its owner leaves. Any thread.
  void give_up(Orphan *orphan) const noexcept;

  const device::Device &device() const noexcept { return slab_.device(); }
  void *stream() const noexcept { return stream_; }
  const SizeRule &size_rule() const noexcept { return rule_; }
  // What is live now: a simulation starts from a copy.
  const Placer &placer() const noexcept { return placer_; }
  size_t capacity() const noexcept { return placer_.capacity(); }
  // Bounds the height below the capacity, until set again (a tape's budget, for the time of its calls).
  void set_limit(size_t limit) noexcept { placer_.set_limit(limit); }

  bool guarded() const noexcept { return (checks_ & CKPT_ARENA_GUARD) != 0; }

  // `bytes` as the user counts them, at most SizeRule::kMaxBytes. kNoBlock: no room (or the device failed to fill with POISON or
  // GUARD, or to give memory), and refuse() says why. May throw std::bad_alloc: nothing has changed.
  BlockId allocate(size_t bytes, Side side) {
    const BlockId block = placer_.allocate(rule_.footprint(bytes), side);
    if (block == kNoBlock) {
      ++failed_count_;
      return kNoBlock;
    }
    ++alloc_count_;
    return checks_ == 0 ? block : dress(block, bytes);
  }
  // A plan's own places (see Placer): kNoBlock only where the device failed to fill or to give memory.
  uint64_t open_region(size_t height) noexcept { return placer_.open_region(height); }
  BlockId allocate_at(size_t offset, size_t bytes) {
    const BlockId block = placer_.allocate_at(offset, rule_.footprint(bytes));
    ++alloc_count_;
    return checks_ == 0 ? block : dress(block, bytes);
  }
  void settle() { placer_.settle(); }
  Status refuse(const char *function, size_t bytes) noexcept;
  // CHECK: a guard was overwritten; the block is freed all the same.
  Status free(const char *function, BlockId block) noexcept {
    ++free_count_;
    const Status status = checks_ == 0 ? CKPT_OK : undress(function, block);
    placer_.free(block);
    return status;
  }
  // Aligned and never NULL, also for zero bytes.
  void *pointer(BlockId block) const noexcept {
    return static_cast<char *>(slab_.data()) + placer_.offset(block) + rule_.guard_bytes;
  }

  // The guards of all live blocks.
  Status check(const char *function) const;
  // Memory behind the ends of the slab, as far as they will be used, ahead of time.
  Status commit(size_t low_bytes, size_t high_bytes);
  void reserve(size_t block_count);  // host tables for so many blocks at once
  void stats(ckpt_arena_stats *out) const noexcept;  // all but struct_size
  void reset_stats() noexcept { placer_.reset_peaks(); }

  // By address; these enter and leave by themselves. A live block keeps the arena alive.
  void *take(const char *function, size_t bytes, Side side);
  Status give(const char *function, void *data) noexcept;

 private:
  Arena(Slab slab, const ckpt_arena_desc &desc, size_t capacity, bool grows) noexcept;

  Status refuse_busy(const char *function) const noexcept;
  void bury_orphans() const noexcept;
  void bury_if_free() const noexcept;
  bool wait_for_burial(uint32_t found) const noexcept;
  BlockId dress(BlockId block, size_t bytes);
  BlockId refused(BlockId block) noexcept;
  Status follow();
  Status grow(size_t low, size_t high);
  Status fill(BlockId block, size_t bytes) const;
  Status undress(const char *function, BlockId block) noexcept;
  Status check_block(const char *function, BlockId block) const;
  Status check_range(const char *function, BlockId block, const char *where, const char *begin, size_t bytes) const;
  uint64_t key_of(const void *data) const noexcept {
    return (reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(slab_.data())) >> key_shift_;
  }

  static constexpr uint32_t kGrows = 1u << 31;
  static constexpr uint32_t kFree = 0, kUsed = 1, kBurying = 2;
  mutable std::atomic<uint32_t> busy_{kFree};
  mutable std::atomic<const void *> buryer_{nullptr};  // names the thread that buries
  mutable std::atomic<Orphan *> orphans_{nullptr};  // a stack
  uint32_t checks_;     // CKPT_ARENA_GUARD, CKPT_ARENA_POISON, kGrows: what allocate has to do beside placing
  uint32_t key_shift_;  // log2 of the alignment
  SizeRule rule_;
  void *stream_;
  Placer placer_;
  AddressIndex index_;              // blocks taken by address
  std::vector<size_t> user_bytes_;  // by block id, with GUARD
  uint64_t alloc_count_ = 0, free_count_ = 0, failed_count_ = 0;
  Status fill_failure_ = CKPT_OK;  // of the allocate that has just failed
  size_t committed_[2] = {0, 0};   // with kGrows: memory is behind so much of the low end, of the high end
  Slab slab_;
};

// An arena that is entered for a scope.
class Lock {
 public:
  Lock(const Arena &arena, const char *function) noexcept : arena_(&arena), status_(arena.enter(function)) {}
  Lock(const Lock &) = delete;
  Lock &operator=(const Lock &) = delete;
  ~Lock() { if (status_ == CKPT_OK) arena_->leave(); }
  Status status() const noexcept { return status_; }

 private:
  const Arena *arena_;
  Status status_;
};

}  // namespace ckpt::arena
