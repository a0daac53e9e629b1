// What one kind of segment is made of: its slots and outputs ("items": slots first, then outputs), who reads what, which
// are made together. Immutable; many nodes of a graph share one. Knows no sizes of a particular use (see graph.h).
#pragma once

#include <string>
#include <vector>

#include "base/bits.h"
#include "base/status.h"
#include "ckpt/plan.h"

namespace ckpt::plan {

struct Item {
  std::string name;
  size_t bytes = 0;
  size_t grad_bytes = 0;     // outputs; 0: as bytes
  double cost_seconds = 0;
  Bits reads;                // slots
  uint32_t group = 0;
  uint32_t flags = 0;        // CKPT_SLOT_* or CKPT_OUTPUT_*
  uint32_t in_place_input = 0;
  bool caller_memory = false;  // outputs: never counted, always there
};

// What a forward computes: `todo` (their `needs` is 1; live members of a group are made again in place), of which `alone`
// are made by themselves instead of by their group's kernel.
struct Closure {
  Bits todo, alone;
};

class Shape {
 public:
  // Validates: names, reads of earlier slots only, flags, groups, contradictions, slots that nobody reads. `what` begins
  // the error text ("segment 'block3'").
  static Result<Shape> create(std::string name, std::vector<Item> slots, std::vector<Item> outputs,
                              std::vector<uint32_t> input_flags, size_t forward_scratch, size_t backward_scratch,
                              bool replayable, bool whole, bool saved_holds_input = false);
  // The same with more slots marked KEEP and RECOMPUTE (a group's members together). CONFLICT: a slot that is marked otherwise.
  Result<Shape> marked(const Bits &keep, const Bits &again) const;

  const std::string &name() const { return name_; }
  uint32_t slot_count() const { return slot_count_; }
  uint32_t output_count() const { return static_cast<uint32_t>(items_.size()) - slot_count_; }
  uint32_t item_count() const { return static_cast<uint32_t>(items_.size()); }
  uint32_t input_count() const { return static_cast<uint32_t>(input_flags_.size()); }
  const Item &item(uint32_t k) const { return items_[k]; }
  uint32_t input_flags(uint32_t k) const { return input_flags_[k]; }
  bool backward_reads_input(uint32_t k) const { return !(input_flags_[k] & CKPT_INPUT_BACKWARD_IGNORES); }
  size_t forward_scratch() const { return forward_scratch_; }
  size_t backward_scratch() const { return backward_scratch_; }
  bool replayable() const { return replayable_; }
  bool whole() const { return whole_; }
  bool saved_holds_input() const { return saved_holds_input_; }  // input 0 stays as long as slot 0

  Bits slots() const { return Bits::first(slot_count_); }
  Bits outputs() const { return Bits::range(slot_count_, item_count()); }
  Bits all() const { return Bits::first(item_count()); }
  Bits needed() const { return needed_; }               // slots that backward reads
  Bits backward_outputs() const { return backward_outputs_; }  // outputs that backward reads
  Bits keep() const { return keep_; }                   // items made once (where it cannot be replayed: all that is not TRANSIENT)
  Bits again() const { return again_; }                 // slots marked RECOMPUTE
  Bits consumed() const { return consumed_; }
  Bits caller() const { return caller_; }               // outputs in the caller's memory

  // What must be computed so that `want` is live when `live` is already. Transitive over reads and groups.
  Closure closure(const Bits &want, const Bits &live) const;

  uint64_t hash() const { return hash_; }               // structure, names and default sizes; not costs
  uint64_t structure_hash() const { return structure_hash_; }  // structure and names alone

 private:
  Status validate() const;
  void derive();
  Status check_order() const;
  Status check_read_by_someone() const;
  Bits simple_closure(uint64_t open, uint64_t live) const;

  std::string name_;
  std::vector<Item> items_;
  std::vector<uint32_t> input_flags_;
  std::vector<Bits> group_of_;  // per item: its group's members, or itself
  std::vector<uint64_t> reads_; // per item; empty where there are groups or more than 64 items
  uint32_t slot_count_ = 0;
  size_t forward_scratch_ = 0, backward_scratch_ = 0;
  bool replayable_ = true, whole_ = false, saved_holds_input_ = false, simple_ = false;
  Bits needed_, backward_outputs_, keep_, again_, consumed_, caller_;
  uint64_t hash_ = 0, structure_hash_ = 0;
};

// FNV-1a over 64-bit words and bytes: stable on every machine.
class Hasher {
 public:
  Hasher &add(uint64_t word) {
    for (int k = 0; k < 8; ++k) byte(static_cast<uint8_t>(word >> (8 * k)));
    return *this;
  }
  Hasher &add(const std::string &text) {
    add(text.size());
    for (char c : text) byte(static_cast<uint8_t>(c));
    return *this;
  }
  uint64_t value() const { return h_; }

 private:
  void byte(uint8_t b) { h_ = (h_ ^ b) * 0x100000001b3ull; }
  uint64_t h_ = 0xcbf29ce484222325ull;
};

}  // namespace ckpt::plan
