// The programs that AUTO chooses from: families, each a row of policies that keep more and more.
#pragma once

#include <vector>

#include "plan/options.h"
#include "plan/strategy.h"

namespace ckpt::plan {

enum class Order : uint8_t {
  by_rate,   // the steps of keep_order
  from_end,  // whole nodes, the last ones first (these two are ordered: each member keeps more than the one before)
  all_but,   // everything but one slot, the cheapest ones first
  each,      // every combination of slots and boundaries (small graphs)
};

struct Family {
  uint32_t group = 1;  // boundaries across groups of so many nodes are kept; 0: none
  Again again = Again::boundaries;
  Order order = Order::by_rate;
  uint32_t size = 1;   // members
};

constexpr bool ordered(Order order) { return order == Order::by_rate || order == Order::from_end; }

constexpr bool same_row(const Family &a, const Family &b) { return a.group == b.group && a.again == b.again && a.order == b.order; }

class Candidates {
 public:
  Candidates(const Graph &graph, const GradientMap &gradients);

  Policy policy(const Family &family, uint32_t member) const;
  // The fixed strategy that does the same; AUTO where none does.
  uint32_t strategy(const Family &family, uint32_t member, uint32_t *k) const;

  uint32_t size(Order order) const;  // members of a family of that order
  Family family(uint32_t group, Again again, Order order) const { return {group, again, order, size(order)}; }
  // The first member of an ordered family that keeps at least so many bytes more than `member`.
  uint32_t member_above(Order order, uint32_t member, double bytes) const;

 private:
  struct Choice {  // something that may be kept or not
    uint32_t node, slot;  // slot kNone:
    uint32_t value;
  };
  struct Drop {
    uint32_t node, slot;
    size_t bytes;
    double seconds;
  };
  void find_drops();
  void find_choices();
  void sum_bytes();
  std::vector<uint8_t> kept_values(const Family &family) const;

  const Graph &graph_;
  const GradientMap &gradients_;
  std::vector<KeepStep> steps_;
  std::vector<Bits> all_;        // per node: what store_all keeps
  std::vector<Drop> drops_;      // cheapest first, each next one of more bytes
  std::vector<Choice> choices_;  // few, or none
  std::vector<double> bytes_by_rate_, bytes_from_end_;  // per member: kept
};

}  // namespace ckpt::plan
