// A program: a list of actions over a graph. Every strategy is only a way to write one.
#pragma once

#include <vector>

#include "base/bits.h"
#include "ckpt/plan.h"

namespace ckpt::plan {

enum class ActionKind : uint8_t { forward = CKPT_ACTION_FORWARD, backward = CKPT_ACTION_BACKWARD, free = CKPT_ACTION_FREE, drop = CKPT_ACTION_DROP };

struct Action {
  ActionKind kind = ActionKind::forward;
  uint32_t index = 0;  // node; free: value
  Bits want;           // forward: items live afterwards; backward: items that stay (retained recordings); drop: slots
  Bits in_place;       // forward: outputs that take over the block of the input that they name, which is gone afterwards
  bool operator==(const Action &) const = default;
};

struct Program {
  std::vector<Action> actions;
};

}  // namespace ckpt::plan
