// Exact search: is there a packing of at most this height? Depth first over canonical packings, after Moffitt (ASPLOS 2023).
//
// Take, of all packings within the height, one whose offsets have the least sum: nothing in it can move down. Sorted by
// (offset, rank) each item lies on top of the highest item below it, so the search places items from the bottom up, each at
// its lowest free offset `low`, in ascending (offset, rank). It prunes by
//   sections    whatever is not placed yet in a section starts at the least `low` of these items, and at the offset of the item
//               placed last: with their sum added it must fit
//   dominance   no item goes where another would still fit entirely below
//   blocking    an item that was passed by must have a neighbour, not placed yet, that may take its place, or it could move
//               down; a candidate that has none is placed without trying others
//   twins       equal items keep their order
//   parts       once nothing unplaced crosses a moment, what lies before and after is searched by itself: a part that fails,
//               fails for every packing of the other
#pragma once

#include "arena/pack_problem.h"

namespace ckpt::arena {

class ExactSearch {
 public:
  enum class Outcome : uint8_t { found, none, out_of_work };
  // What ranks items, first to last. Each finds at once what others do not find in hours, so all are tried with little work
  // before one is tried with much; a seed that is not 0 shuffles a rank a little, for more of the same kind.
  enum class Preference : uint8_t {
    load_life,      // in the fullest section, then longest lifetime
    life,           // longest lifetime
    load_area,      // in the fullest section, then largest area
    load_and_life,  // both at once: the load matters more
    life_in_thin    // longest lifetime for the fewest items in one of its sections
  };
  static constexpr uint32_t kPreferences = 5;

  explicit ExactSearch(const PackProblem &problem);

  // found: offsets() has it. `work` is of this call.
  Outcome run(size_t height, Preference preference, uint32_t seed, uint64_t work);

  const std::vector<size_t> &offsets() const noexcept { return offset_; }
  uint64_t work() const noexcept { return work_; }

  // How many entries its tables need: pairs of items that overlap, sections of items.
  static uint64_t table_size(const PackProblem &problem);

 private:
  // Items that are not placed, connected in time: a range of stack_, by rank.
  struct Part {
    size_t begin, end;
    uint32_t first, last;  // sections
  };
  struct Change {  // of low_, or of a section's floor_ and witness_
    uint32_t index, witness;
    size_t value;
  };
  // A part that is being packed: candidates for its next item, and what is left of it once one is placed. Of each stack, how
  // high it was.
  struct Frame {
    Part part;
    size_t first_candidate, next_candidate, end_candidate;
    size_t parts, next_part, end_part;
    size_t lows, floors, placed, stack;
    size_t from = 0;  // what follows is placed from here on, at it from this rank on
    uint32_t rank = 0;
    uint32_t item = UINT32_MAX;  // placed; none
    bool keep_from = false;      // the item is placed out of turn
  };

  void list_members();
  void list_neighbours();
  void find_twins();
  void rank_by(Preference preference, uint32_t seed);
  void reset();
  void enter(const Part &part, size_t from, uint32_t from_rank);
  void leave(bool found);
  bool advance(Frame *f, uint32_t item);
  void retreat(Frame *f);
  void list_candidates(const Part &part, size_t from, uint32_t from_rank);
  bool place(uint32_t item);
  bool put_off(uint32_t item, size_t from, uint32_t from_rank) const;
  bool may_block(uint32_t other, size_t top, size_t from, uint32_t from_rank) const;
  bool blocked(uint32_t item, size_t from, uint32_t from_rank);
  bool all_blocked(const Part &part, size_t from, uint32_t from_rank);
  bool lone_candidate(size_t first, size_t from, uint32_t from_rank);
  bool sections_fit(const Part &part, size_t from);
  bool find_witness(uint32_t section);
  void divide(const Part &part, uint32_t item);
  void divide_at_cuts(const Part &part, uint32_t item);
  void take_back(size_t lows, size_t floors, size_t placed);

  const PackProblem &problem_;
  std::vector<uint32_t> member_begin_, members_;        // items of a section
  std::vector<uint32_t> later_end_;                     // items k + 1 .. later_end_[k] - 1 overlap k in time,
  std::vector<uint32_t> earlier_begin_, earlier_;       // and these before it
  std::vector<uint32_t> twin_;                          // the item before it of the same shape, or itself
  std::vector<uint32_t> rank_, by_rank_;

  size_t height_ = 0;
  std::vector<size_t> low_;         // lowest free offset; kPlaced
  std::vector<size_t> offset_;
  std::vector<size_t> rest_;        // per section: sum of what is not placed
  std::vector<size_t> floor_;       // per section: least low_ of what is not placed
  std::vector<uint32_t> witness_;   // per section: whose
  std::vector<uint32_t> crossing_;  // per section: unplaced items that live in it and in the one before
  std::vector<uint32_t> blocker_;   // found last, likely still one
  std::vector<Change> lows_, floors_;  // to take back
  std::vector<uint32_t> placed_;
  std::vector<uint32_t> stack_, candidates_, part_of_section_;
  std::vector<Part> parts_;
  std::vector<Frame> frames_;
  uint64_t work_ = 0;
};

}  // namespace ckpt::arena
