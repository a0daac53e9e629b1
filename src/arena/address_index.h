// From a block's address to its id: open addressing with linear probing, at most half full, deletion by shifting back (no
// tombstones, so it never degrades). A hash by multiplication spreads consecutive addresses well.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "arena/placer.h"

namespace ckpt::arena {

class AddressIndex {
 public:
  // Makes room for one insert. The only function that may throw.
  void reserve_one() {
    if (2 * (count_ + 1) > entries_.size()) grow();
  }

  // After reserve_one; `key` is not there yet.
  void insert(uint64_t key, BlockId block) noexcept {
    size_t at = home(key);
    while (entries_[at].block != kNoBlock) at = next(at);
    entries_[at] = {key, block};
    ++count_;
  }

  // The block of `key`, which is removed; kNoBlock if there is none.
  BlockId take(uint64_t key) noexcept {
    if (count_ == 0) return kNoBlock;
    size_t at = home(key);
    while (entries_[at].key != key || entries_[at].block == kNoBlock) {
      if (entries_[at].block == kNoBlock) return kNoBlock;
      at = next(at);
    }
    const BlockId block = entries_[at].block;
    for (size_t from = next(at); entries_[from].block != kNoBlock; from = next(from)) {
      // Whoever sits at or beyond its home as seen from the hole may move into it.
      const size_t mask = entries_.size() - 1;
      if (((from - home(entries_[from].key)) & mask) < ((from - at) & mask)) continue;
      entries_[at] = entries_[from];
      at = from;
    }
    entries_[at].block = kNoBlock;
    --count_;
    return block;
  }

  size_t size() const noexcept { return count_; }

 private:
  struct Entry {
    uint64_t key = 0;
    BlockId block = kNoBlock;
  };

  size_t home(uint64_t key) const noexcept { return static_cast<size_t>(key * 0x9E3779B97F4A7C15 >> shift_); }
  size_t next(size_t at) const noexcept { return (at + 1) & (entries_.size() - 1); }

  void grow() {
    std::vector<Entry> larger(entries_.empty() ? 64 : 2 * entries_.size());
    entries_.swap(larger);
    shift_ = 64 - static_cast<uint32_t>(std::countr_zero(entries_.size()));
    count_ = 0;
    for (const Entry &e : larger)
      if (e.block != kNoBlock) insert(e.key, e.block);
  }

  std::vector<Entry> entries_;  // a power of two
  uint32_t shift_ = 64;
  size_t count_ = 0;
};

}  // namespace ckpt::arena
