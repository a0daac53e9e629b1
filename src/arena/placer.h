// Placement on offsets alone: no memory is touched. The same placer serves a live arena, a plan and a trace on paper, so a
// simulated height equals a measured one by construction. Copyable: a simulation starts from a copy of the live state.
//
// Two ends. The low end grows up from 0, the high end down from the top; high offsets are kept as distances from the top,
// so that nothing depends on the capacity until it is exhausted. A request is served, in this order, by
//   1. best fit among its end's free blocks (smallest sufficient one, ties: nearest to that end),
//   2. its end's frontier, if low frontier + high frontier + bytes <= capacity,
//   3. best fit among the other end's free blocks (the block then belongs to that end),
// else it fails and nothing changes. Freed blocks coalesce; one that touches the frontier dissolves into it. Height is the
// furthest low frontier + the furthest high frontier. Law: requests that reach height H without a bound get the same
// places in every capacity >= H, since at no moment do both frontiers and the request exceed H.
//
// *Regions.* A plan that has chosen all its places beforehand opens a region above the low frontier and names an offset for
// each block: nothing is looked for, and no holes are kept. The first request without an offset settles the region: holes
// are found from what lives in it, and from then on it is like everything else at the low end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ckpt::arena {

enum class Side : uint8_t { low, high };
using BlockId = uint32_t;
inline constexpr BlockId kNoBlock = UINT32_MAX;
inline constexpr size_t kUnbounded = std::numeric_limits<size_t>::max() / 4;

// Sizes are taken as they come: the caller rounds them up to its alignment (size_rule.h). A zero-byte block takes no
// address range, is always placed, and has offset 0.
//
// Ids are small indices. Equal histories since the placer was last empty give equal ids, so a copy and its original that
// see the same requests agree in ids too. Only allocate, allocate_at, settle and reserve may throw (std::bad_alloc: nothing
// changes), and only when more blocks exist at once than ever before.
class Placer {
 public:
  explicit Placer(size_t capacity = kUnbounded) noexcept : capacity_(capacity) {}

  BlockId allocate(size_t bytes, Side side);
  void free(BlockId block) noexcept;  // must be live

  // Opens a region of `height` bytes at the low frontier and gives its number, which no other region of this placer (or of a
  // copy made before) has. 0: it does not fit below capacity and limit, or there is one already.
  uint64_t open_region(size_t height) noexcept;
  uint64_t region() const noexcept { return region_; }  // the open one; 0: none
  // At `offset` from the region's begin; the caller sees to it that nothing lives there, and that it is in the region.
  BlockId allocate_at(size_t offset, size_t bytes);
  // Ends the region; what lives in it stays where it is. Nothing on nothing.
  void settle();
  // How often a place has been looked for since the placer was made.
  uint64_t decision_count() const noexcept { return decision_count_; }

  bool live(BlockId block) const noexcept { return block < nodes_.size() && nodes_[block].state >= State::live; }
  size_t bytes(BlockId block) const noexcept { return nodes_[block].bytes; }
  // The end that the block belongs to: after step 3 above not the one that was asked for.
  Side side(BlockId block) const noexcept { return nodes_[block].side; }
  // From the low end, in a slab of `capacity`.
  size_t offset(BlockId block, size_t capacity) const noexcept {
    const Node &n = nodes_[block];
    return n.side == Side::low || n.bytes == 0 ? n.distance : capacity - n.distance - n.bytes;
  }
  size_t offset(BlockId block) const noexcept { return offset(block, capacity_); }

  size_t capacity() const noexcept { return capacity_; }
  // Live blocks of the high end keep their distance from the top, so their offsets move with it.
  void set_capacity(size_t capacity) noexcept { capacity_ = capacity; }
  // Frontiers do not move beyond this together; a budget below the capacity. Places do not depend on it.
  size_t limit() const noexcept { return limit_; }
  void set_limit(size_t limit) noexcept { limit_ = limit; }

  size_t in_use() const noexcept { return in_use_; }
  size_t peak_in_use() const noexcept { return peak_in_use_; }
  size_t height() const noexcept { return end_[0].furthest + end_[1].furthest; }
  // In a region: as far as it was used since it was opened.
  size_t low_frontier() const noexcept { return region_ == 0 ? end_[0].frontier : std::max(end_[0].frontier, placed_end_); }
  size_t high_frontier() const noexcept { return end_[1].frontier; }
  size_t largest_free() const noexcept;  // the largest request that succeeds now, from either end
  uint32_t block_count() const noexcept { return live_count_; }  // zero-byte blocks included
  BlockId id_limit() const noexcept { return static_cast<BlockId>(nodes_.size()); }  // above all live ids
  bool empty() const noexcept { return live_count_ == 0; }

  void reset_peaks() noexcept;       // from what is live now
  void clear() noexcept;             // as new, but keeps capacity and storage
  void reserve(size_t block_count);  // so many blocks at once never ask the host for memory

 private:
  enum class State : uint8_t { pooled, free, live, placed };

  // A range [distance, distance + bytes) measured from its end; live or free, or a node in the pool. Placed: live in the
  // region, without neighbours.
  struct Node {
    size_t distance;
    size_t bytes;
    BlockId prev, next;   // neighbours by distance; next also links the pool
    BlockId left, right;  // free: children in the bin's tree
    Side side;
    State state;
  };

  // Free blocks by size class, 32 classes an octave; classes are disjoint and ascending. In each a treap by (bytes,
  // distance): nearly always one or two nodes, and still O(log n) when thousands of blocks have the same size.
  static constexpr uint32_t kSplit = 5, kBins = (63 - kSplit) << kSplit, kWords = kBins / 64;

  struct End {
    size_t frontier = 0;
    size_t furthest = 0;
    BlockId last = kNoBlock;   // the block at the frontier: always live
    uint32_t words = 0;        // which of `bins` are not 0
    std::array<uint64_t, kWords> bins{};
    std::array<BlockId, kBins> root;  // meaningful where the bit is set; copies and resets touch nothing else
    End() noexcept {}
    End(const End &other) noexcept { *this = other; }
    End &operator=(const End &other) noexcept;
    ~End() = default;
  };

  static uint32_t bin_of(size_t bytes) noexcept;
  bool before(BlockId a, BlockId b) const noexcept;
  BlockId best_fit(const End &end, size_t bytes) const noexcept;
  void insert_free(End &end, BlockId block) noexcept;
  void erase_free(End &end, BlockId block) noexcept;
  size_t largest_free(const End &end) const noexcept;

  BlockId make_node();
  void drop_node(BlockId block) noexcept;
  BlockId take_from(End &end, BlockId hole, size_t bytes);
  BlockId push(End &end, size_t bytes, Side side);
  void merge_with_next(BlockId block) noexcept;
  BlockId counted(BlockId block) noexcept;
  void append(BlockId block) noexcept;
  void forget_blocks() noexcept;
  End &end_of(Side side) noexcept { return end_[static_cast<size_t>(side)]; }

  size_t capacity_;
  size_t limit_ = kUnbounded;
  size_t in_use_ = 0;
  size_t peak_in_use_ = 0;
  uint32_t live_count_ = 0;
  uint32_t placed_count_ = 0;
  uint64_t region_ = 0, region_count_ = 0, decision_count_ = 0;
  size_t region_begin_ = 0, placed_end_ = 0;  // distances from the low end
  BlockId pool_ = kNoBlock;
  std::vector<Node> nodes_;
  End end_[2];
};

}  // namespace ckpt::arena
