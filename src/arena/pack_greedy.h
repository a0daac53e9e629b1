// Greedy packing: items are placed one after the other, in some order, each at the lowest offset where it fits (first fit), or
// into the smallest gap that holds it (best fit), between those that are placed already and live at the same time.
#pragma once

#include "arena/pack_problem.h"

namespace ckpt::arena {

enum class Fit : uint8_t { first, best };

class PackEngine {
 public:
  explicit PackEngine(const PackProblem &problem);

  // Places all items in this order. SIZE_MAX: the height would be more than `limit`, and *offsets is unfinished.
  size_t fit(std::span<const uint32_t> order, Fit fit, size_t limit, std::vector<size_t> *offsets);

  // Items that overlap this one in time, itself included.
  uint32_t neighbours(uint32_t item) const { return begun_[problem_.items[item].last - 1] - ended_[problem_.items[item].first]; }
  uint64_t work() const noexcept { return work_; }
  void count(uint64_t work) noexcept { work_ += work; }  // done around it

 private:
  struct Placed {
    size_t begin, end;  // offsets
    uint32_t first, last;
  };

  // Keeps all placed items in one list by offset: quick for few items, and for those that meet most others.
  static constexpr size_t kMostListed = 32768;

  bool scan_list(size_t placed, uint32_t item) const;
  size_t place(std::span<const Placed> by_offset, const PackItem &item, Fit fit);
  std::span<const Placed> overlapping(uint32_t item);
  void mark(uint32_t item);

  const PackProblem &problem_;
  std::vector<uint32_t> begun_, ended_;  // per section: items that begin in it or before; that end before it
  std::vector<Placed> list_;             // placed items by offset
  // Items come by their first section: a tree over them with the latest `last` of what is placed finds those that overlap.
  std::vector<uint32_t> tree_;
  size_t leaves_ = 1;
  std::vector<size_t> offsets_;
  std::vector<uint32_t> nodes_;
  std::vector<Placed> found_;
  uint64_t work_ = 0;
};

// As a run without a plan would place them: in the order of their lifetimes, each given back before what comes later is taken.
// Nearly free, and enough for nested lifetimes and for buffers that all live together. Does nothing where it finds no room.
void pack_online(const PackProblem &problem, PackAnswer *best, std::vector<uint32_t> *order);

// The portfolio, until `goal` is reached or `work` is spent (the first one always runs). Also gives the order of the best one.
void pack_greedy(const PackProblem &problem, PackEngine &engine, size_t goal, uint64_t work, PackAnswer *best, std::vector<uint32_t> *best_order);

}  // namespace ckpt::arena
