// Places for a tape's plans that come from here and not from the library's packer: largest block first, each at the lowest
// offset that is free for as long as it lives. Also blocks that never share memory, for layouts that placing as one goes
// would never give.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "ckpt/tape.h"
#include "tape/tape.h"

namespace placed {

struct Block {
  size_t bytes;
  uint64_t begin, end;
};

// What a step asks for and gives back, in order.
struct Scribe {
  ckpt::arena::SizeRule rule;
  std::vector<Block> *blocks;
  uint64_t *clock;

  ckpt::arena::BlockId allocate(size_t bytes, ckpt::arena::Side) {
    blocks->push_back({rule.footprint(bytes), (*clock)++, UINT64_MAX});
    return static_cast<ckpt::arena::BlockId>(blocks->size() - 1);
  }
  void free(ckpt::arena::BlockId block) noexcept { (*blocks)[block].end = (*clock)++; }
};

inline std::vector<Block> blocks_of(const ckpt::plan::Graph &graph, const ckpt::plan::GradientMap &gradients, const ckpt::plan::Program &program) {
  std::vector<Block> blocks;
  uint64_t clock = 0;
  using Machine = ckpt::plan::Machine<Scribe>;
  Machine machine(&graph, Scribe{graph.rule, &blocks, &clock});
  EXPECT_EQ(machine.start(gradients), CKPT_OK);
  for (const ckpt::plan::Action &a : program.actions) {
    ckpt::Status status = CKPT_OK;
    Machine::Run run;
    Machine::BackwardRun back;
    switch (a.kind) {
      case ckpt::plan::ActionKind::forward:
        status = machine.begin_forward(a.index, a.want, a.in_place, &run);
        if (!status) machine.end_forward(run);
        break;
      case ckpt::plan::ActionKind::backward:
        status = machine.begin_backward(a.index, a.want, gradients, &back);
        if (!status) machine.end_backward(back);
        break;
      case ckpt::plan::ActionKind::free: status = machine.free_value(a.index); break;
      case ckpt::plan::ActionKind::drop: status = machine.drop(a.index, a.want); break;
    }
    EXPECT_EQ(status, CKPT_OK) << ckpt_last_error();
  }
  machine.release_all();
  return blocks;
}

enum class How { first_fit, apart };

inline std::vector<size_t> offsets_of(const std::vector<Block> &blocks, How how, size_t *height) {
  std::vector<size_t> offsets(blocks.size(), 0), order(blocks.size()), done;
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  if (how == How::first_fit) std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  else std::reverse(order.begin(), order.end());
  *height = 0;
  for (const size_t k : order) {
    std::vector<std::pair<size_t, size_t>> taken;
    for (const size_t j : done)
      if (how == How::apart || (blocks[j].begin < blocks[k].end && blocks[k].begin < blocks[j].end)) taken.push_back({offsets[j], offsets[j] + blocks[j].bytes});
    std::sort(taken.begin(), taken.end());
    for (const auto &[begin, end] : taken) {
      if (offsets[k] + blocks[k].bytes <= begin) break;
      offsets[k] = std::max(offsets[k], end);
    }
    done.push_back(k);
    if (blocks[k].bytes > 0) *height = std::max(*height, offsets[k] + blocks[k].bytes);
  }
  return offsets;
}

// Gives every plan of the tape such places where they fit its budget; returns how many. Between steps.
inline size_t place_plans(ckpt_tape *tape, How how = How::first_fit) {
  size_t count = 0;
  std::vector<ckpt::tape::KnownPtr> all = tape->cache.all();
  for (size_t k = all.size(); k-- > 0;) {  // so that the order of their use stays
    auto known = std::make_shared<ckpt::tape::Known>(*all[k]);
    size_t height = 0;
    if (known->planned) {
      std::vector<size_t> offsets = offsets_of(blocks_of(*known->graph, known->gradients, known->plan.program), how, &height);
      if (height <= tape->budget) {
        known->plan.offsets = std::move(offsets);
        known->plan.prediction.height = height;
        ++count;
      }
    }
    tape->cache.put(known, all[k].get());
  }
  return count;
}

}  // namespace placed
