// The second half's search space: a policy as a list of small choices, and the moves between policies.
//
// Each slot is kept from its first run, kept so until its segment is run again for somebody else, kept where a stretch is run
// again, or made right before its backward; each boundary is kept, kept until a backward has read it, kept where it is made again,
// or made again each time; and those that are read far apart in the forward pass may be given
// back in between. A move sets one choice, two of them (graphs of few choices), or those of a window of neighbouring nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/generate.h"

namespace ckpt::plan {

using Choice = uint8_t;
using Choices = std::vector<Choice>;

// Of boundaries with kPass added.
inline constexpr Choice kKept = 0, kKeptAgain = 1, kMadeAgain = 2, kKeptOnce = 3, kPass = 4;

class ChoiceSpace {
 public:
  ChoiceSpace(const Graph &graph, const GradientMap &gradients);

  size_t size() const { return what_.size(); }
  Choices from_policy(const Policy &policy) const;
  Policy to_policy(const Choices &choices) const;

  uint32_t move_count() const { return static_cast<uint32_t>(single_.size() + windows_.size()) + pairs_; }
  // False: the move changes nothing.
  bool move(uint32_t number, Choices *choices) const;

 private:
  struct What {
    uint32_t node, slot;  // slot kNone: a boundary
    uint32_t value;
    uint32_t last;        // boundaries: the last node that reads it
  };
  struct Single {
    uint32_t at;
    Choice to;
  };
  struct Window {
    uint32_t from, to;    // nodes
    Choice slots, values; // kNothing: stays as it is
  };
  static constexpr Choice kNothing = 255;

  void find_choices();
  void find_moves();
  bool set(uint32_t at, Choice to, Choices *choices) const;

  const Graph &graph_;
  const GradientMap &gradients_;
  std::vector<What> what_;          // in the order of the nodes
  std::vector<uint32_t> first_of_;  // per node: into what_
  std::vector<Bits> always_;        // per node: slots that are no choice and are kept
  std::vector<Single> single_;
  std::vector<Window> windows_;
  uint32_t pairs_ = 0;
};

}  // namespace ckpt::plan
