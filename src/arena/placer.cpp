#include "arena/placer.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/assert.h"

namespace ckpt::arena {
namespace {

// Treap priorities: an odd multiplier permutes the ids, so no two are equal and no state is needed.
constexpr uint32_t priority(BlockId block) { return block * 2654435769u; }

constexpr uint64_t bit(uint32_t k) { return uint64_t{1} << (k % 64); }

}  // namespace

// ---- free blocks of one end, by size ----

Placer::End &Placer::End::operator=(const End &other) noexcept {
  frontier = other.frontier;
  furthest = other.furthest;
  last = other.last;
  words = other.words;
  bins = other.bins;
  for (uint32_t some = words; some != 0; some &= some - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(some));
    for (uint64_t rest = bins[word]; rest != 0; rest &= rest - 1) {
      const uint32_t bin = word * 64 + static_cast<uint32_t>(std::countr_zero(rest));
      root[bin] = other.root[bin];
    }
  }
  return *this;
}

uint32_t Placer::bin_of(size_t bytes) noexcept {
  const auto log2 = static_cast<uint32_t>(std::bit_width(bytes)) - 1;
  if (log2 < kSplit) return static_cast<uint32_t>(bytes);
  constexpr uint32_t kMask = (1u << kSplit) - 1;
  return (log2 - kSplit + 1) << kSplit | (static_cast<uint32_t>(bytes >> (log2 - kSplit)) & kMask);
}

bool Placer::before(BlockId a, BlockId b) const noexcept {
  const Node &x = nodes_[a], &y = nodes_[b];
  return x.bytes != y.bytes ? x.bytes < y.bytes : x.distance < y.distance;
}

BlockId Placer::best_fit(const End &end, size_t bytes) const noexcept {
  if (end.words == 0) return kNoBlock;
  const uint32_t bin = bin_of(bytes);
  uint32_t word = bin / 64;
  uint64_t rest = end.bins[word];
  if (rest & bit(bin)) {
    BlockId best = kNoBlock;
    for (BlockId at = end.root[bin]; at != kNoBlock;) {
      const Node &n = nodes_[at];
      if (n.bytes >= bytes) best = at;
      at = n.bytes >= bytes ? n.left : n.right;
    }
    if (best != kNoBlock) return best;
  }
  rest &= ~uint64_t{0} << (bin % 64) << 1;  // two shifts: each below 64
  if (rest == 0) {
    const uint32_t words = end.words & ~((2u << word) - 1);
    if (words == 0) return kNoBlock;
    word = static_cast<uint32_t>(std::countr_zero(words));
    rest = end.bins[word];
  }
  BlockId at = end.root[word * 64 + static_cast<uint32_t>(std::countr_zero(rest))];
  while (nodes_[at].left != kNoBlock) at = nodes_[at].left;
  return at;
}

size_t Placer::largest_free(const End &end) const noexcept {
  if (end.words == 0) return 0;
  const uint32_t word = static_cast<uint32_t>(std::bit_width(end.words)) - 1;
  const uint32_t bin = word * 64 + static_cast<uint32_t>(std::bit_width(end.bins[word])) - 1;
  BlockId at = end.root[bin];
  while (nodes_[at].right != kNoBlock) at = nodes_[at].right;
  return nodes_[at].bytes;
}

void Placer::insert_free(End &end, BlockId block) noexcept {
  Node &n = nodes_[block];
  n.state = State::free;
  n.left = n.right = kNoBlock;
  const uint32_t bin = bin_of(n.bytes);
  if (!(end.bins[bin / 64] & bit(bin))) {
    end.bins[bin / 64] |= bit(bin);
    end.words |= 1u << bin / 64;
    end.root[bin] = block;
    return;
  }
  BlockId *at = &end.root[bin];
  while (*at != kNoBlock && priority(*at) > priority(block)) at = before(block, *at) ? &nodes_[*at].left : &nodes_[*at].right;
  // What hung here is split around the new node.
  BlockId rest = *at, *smaller = &n.left, *larger = &n.right;
  *at = block;
  while (rest != kNoBlock) {
    if (before(rest, block)) {
      *smaller = rest;
      smaller = &nodes_[rest].right;
      rest = *smaller;
    } else {
      *larger = rest;
      larger = &nodes_[rest].left;
      rest = *larger;
    }
  }
  *smaller = *larger = kNoBlock;
}

void Placer::erase_free(End &end, BlockId block) noexcept {
  const Node &n = nodes_[block];
  const uint32_t bin = bin_of(n.bytes);
  BlockId *at = &end.root[bin];
  while (*at != block) at = before(block, *at) ? &nodes_[*at].left : &nodes_[*at].right;
  BlockId a = n.left, b = n.right;
  while (a != kNoBlock && b != kNoBlock) {
    if (priority(a) > priority(b)) {
      *at = a;
      at = &nodes_[a].right;
      a = *at;
    } else {
      *at = b;
      at = &nodes_[b].left;
      b = *at;
    }
  }
  *at = a != kNoBlock ? a : b;
  if (end.root[bin] != kNoBlock) return;
  end.bins[bin / 64] &= ~bit(bin);
  if (end.bins[bin / 64] == 0) end.words &= ~(1u << bin / 64);
}

// ---- nodes ----

BlockId Placer::make_node() {
  if (pool_ != kNoBlock) {
    const BlockId block = pool_;
    pool_ = nodes_[block].next;
    return block;
  }
  nodes_.push_back(Node{});
  return static_cast<BlockId>(nodes_.size() - 1);
}

void Placer::drop_node(BlockId block) noexcept {
  nodes_[block].state = State::pooled;
  nodes_[block].next = pool_;
  pool_ = block;
}

// ---- requests ----

BlockId Placer::counted(BlockId block) noexcept {
  in_use_ += nodes_[block].bytes;
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  ++live_count_;
  return block;
}

// The part of a hole that is nearest to its end.
BlockId Placer::take_from(End &end, BlockId hole, size_t bytes) {
  if (nodes_[hole].bytes == bytes) {
    erase_free(end, hole);
    nodes_[hole].state = State::live;
    return hole;
  }
  const BlockId block = make_node();  // may throw, so first
  erase_free(end, hole);
  Node &n = nodes_[block], &h = nodes_[hole];
  n = Node{h.distance, bytes, h.prev, hole, kNoBlock, kNoBlock, h.side, State::live};
  if (n.prev != kNoBlock) nodes_[n.prev].next = block;
  h.prev = block;
  h.distance += bytes;
  h.bytes -= bytes;
  insert_free(end, hole);
  return block;
}

BlockId Placer::push(End &end, size_t bytes, Side side) {
  const BlockId block = make_node();
  nodes_[block] = Node{end.frontier, bytes, end.last, kNoBlock, kNoBlock, kNoBlock, side, State::live};
  if (end.last != kNoBlock) nodes_[end.last].next = block;
  end.last = block;
  end.frontier += bytes;
  end.furthest = std::max(end.furthest, end.frontier);
  return block;
}

BlockId Placer::allocate(size_t bytes, Side side) {
  if (bytes == 0) {
    const BlockId block = make_node();
    nodes_[block] = Node{0, 0, kNoBlock, kNoBlock, kNoBlock, kNoBlock, side, State::live};
    return counted(block);
  }
  if (bytes > kUnbounded) return kNoBlock;  // below it, sums of three sizes do not wrap
  if (region_ != 0) settle();
  ++decision_count_;
  End &own = end_of(side);
  if (const BlockId hole = best_fit(own, bytes); hole != kNoBlock) return counted(take_from(own, hole, bytes));
  if (end_[0].frontier + end_[1].frontier + bytes <= std::min(capacity_, limit_)) return counted(push(own, bytes, side));
  End &other = end_of(side == Side::low ? Side::high : Side::low);
  if (const BlockId hole = best_fit(other, bytes); hole != kNoBlock) return counted(take_from(other, hole, bytes));
  return kNoBlock;
}

void Placer::merge_with_next(BlockId block) noexcept {
  Node &n = nodes_[block];
  const BlockId gone = n.next;
  n.bytes += nodes_[gone].bytes;
  n.next = nodes_[gone].next;
  if (n.next != kNoBlock) nodes_[n.next].prev = block;
  drop_node(gone);
}

void Placer::free(BlockId block) noexcept {
  CKPT_ASSERT(live(block));
  Node &n = nodes_[block];
  in_use_ -= n.bytes;
  if (n.state == State::placed) --placed_count_;
  if (--live_count_ == 0) return forget_blocks();  // nothing but this block was there: holes never outlive the block behind them
  if (n.state == State::placed || n.bytes == 0) return drop_node(block);
  End &end = end_of(n.side);
  const BlockId prev = n.prev, next = n.next;
  const bool hole_before = prev != kNoBlock && nodes_[prev].state == State::free;
  if (hole_before) erase_free(end, prev);
  if (block == end.last) {
    end.frontier = hole_before ? nodes_[prev].distance : n.distance;
    end.last = hole_before ? nodes_[prev].prev : prev;
    if (end.last != kNoBlock) nodes_[end.last].next = kNoBlock;
    drop_node(block);
    if (hole_before) drop_node(prev);
    return;
  }
  if (nodes_[next].state == State::free) {
    erase_free(end, next);
    merge_with_next(block);
  }
  if (hole_before) merge_with_next(prev);
  insert_free(end, hole_before ? prev : block);
}

// ---- regions ----

uint64_t Placer::open_region(size_t height) noexcept {
  const size_t taken = end_[0].frontier + end_[1].frontier, bound = std::min(capacity_, limit_);
  if (region_ != 0 || taken > bound || height > bound - taken) return 0;
  region_begin_ = placed_end_ = end_[0].frontier;
  return region_ = ++region_count_;
}

BlockId Placer::allocate_at(size_t offset, size_t bytes) {
  CKPT_ASSERT(region_ != 0);
  const BlockId block = make_node();
  const size_t distance = region_begin_ + offset;
  if (bytes == 0) {
    nodes_[block] = Node{0, 0, kNoBlock, kNoBlock, kNoBlock, kNoBlock, Side::low, State::live};
    return counted(block);
  }
  nodes_[block] = Node{distance, bytes, kNoBlock, kNoBlock, kNoBlock, kNoBlock, Side::low, State::placed};
  ++placed_count_;
  placed_end_ = std::max(placed_end_, distance + bytes);
  end_[0].furthest = std::max(end_[0].furthest, distance + bytes);
  return counted(block);
}

// The next block of the low end, with the hole before it. There is room for the hole's node.
void Placer::append(BlockId block) noexcept {
  End &low = end_[0];
  const size_t distance = nodes_[block].distance;
  CKPT_ASSERT(distance >= low.frontier);
  BlockId before = low.last;
  if (distance > low.frontier) {
    const BlockId hole = make_node();
    nodes_[hole] = Node{low.frontier, distance - low.frontier, before, block, kNoBlock, kNoBlock, Side::low, State::free};
    insert_free(low, hole);
    if (before != kNoBlock) nodes_[before].next = hole;
    before = hole;
  } else if (before != kNoBlock) {
    nodes_[before].next = block;
  }
  nodes_[block].prev = before;
  nodes_[block].state = State::live;
  low.last = block;
  low.frontier = distance + nodes_[block].bytes;
}

void Placer::settle() {
  if (placed_count_ > 0) {
    std::vector<BlockId> placed;
    placed.reserve(placed_count_);
    nodes_.reserve(nodes_.size() + placed_count_);  // at most one hole before each; from here on nothing throws
    for (BlockId block = 0; block < id_limit(); ++block)
      if (nodes_[block].state == State::placed) placed.push_back(block);
    std::sort(placed.begin(), placed.end(), [this](BlockId a, BlockId b) { return nodes_[a].distance < nodes_[b].distance; });
    for (const BlockId block : placed) append(block);
  }
  placed_count_ = 0;
  region_ = 0;
}

// ---- the whole ----

size_t Placer::largest_free() const noexcept {
  if (placed_count_ > 0) {
    try {
      Placer settled = *this;
      settled.settle();
      return settled.largest_free();
    } catch (const std::bad_alloc &) {  // what is free for certain
      const size_t used = std::max(end_[0].frontier, placed_end_) + end_[1].frontier;
      return used < capacity_ ? std::min(capacity_ - used, kUnbounded) : 0;
    }
  }
  const size_t taken = end_[0].frontier + end_[1].frontier;
  const size_t gap = taken < capacity_ ? capacity_ - taken : 0;
  return std::max({std::min(gap, kUnbounded), largest_free(end_[0]), largest_free(end_[1])});
}

void Placer::reset_peaks() noexcept {
  peak_in_use_ = in_use_;
  for (End &end : end_) end.furthest = end.frontier;
  if (region_ == 0) return;
  placed_end_ = 0;
  if (placed_count_ > 0)
    for (const Node &n : nodes_)
      if (n.state == State::placed) placed_end_ = std::max(placed_end_, n.distance + n.bytes);
  end_[0].furthest = std::max(end_[0].furthest, placed_end_);
}

// The last block is gone. Peaks stay, and so does the region.
void Placer::forget_blocks() noexcept {
  in_use_ = 0;
  live_count_ = placed_count_ = 0;
  pool_ = kNoBlock;
  nodes_.clear();
  for (End &end : end_) {
    end.frontier = 0;
    end.last = kNoBlock;
    if (end.words != 0) end.bins.fill(0);
    end.words = 0;
  }
}

void Placer::clear() noexcept {
  forget_blocks();
  peak_in_use_ = 0;
  for (End &end : end_) end.furthest = 0;
  region_ = 0;
}

void Placer::reserve(size_t block_count) { nodes_.reserve(2 * block_count + 1); }  // at most one hole before each block

}  // namespace ckpt::arena
