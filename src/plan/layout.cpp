#include "plan/layout.h"

#include <algorithm>

#include "arena/pack.h"
#include "plan/machine.h"

namespace ckpt::plan {
namespace {

// The first greedy order reaches the lower bound on nearly every program of ours; a plan does not wait for more than a moment.
constexpr uint64_t kPackWork = 20'000'000;

// A backend that writes down what it is asked for. Ids are the blocks' numbers.
struct Scribe {
  arena::SizeRule rule;
  std::vector<Block> *blocks;
  uint32_t *end;  // what is freed now lives to the begin of this action

  BlockId allocate(size_t bytes, Side) {
    Block b;
    b.bytes = rule.footprint(bytes);
    blocks->push_back(b);
    return static_cast<BlockId>(blocks->size() - 1);
  }
  void free(BlockId block) noexcept { (*blocks)[block].end_action = *end; }
};

class Recorder {
 public:
  Recorder(const Graph &graph, const GradientMap &gradients, std::vector<Block> *blocks)
      : graph_(graph), gradients_(gradients), blocks_(blocks), machine_(&graph, Scribe{graph.rule, blocks, &end_}) {}

  Status run(const Program &program) {
    CKPT_TRY(machine_.start(gradients_));
    for (uint32_t k = 0; k < graph_.inputs.size(); ++k) name(machine_.value_block(graph_.inputs[k]), CKPT_PLACED_INPUT, graph_.inputs[k], 0);
    for (const Root &r : gradients_.roots) name(machine_.grad_block(r.value), CKPT_PLACED_GRAD, r.value, 0);
    for (action_ = 0; action_ < program.actions.size(); ++action_) CKPT_TRY(perform(program.actions[action_]));
    end_ = static_cast<uint32_t>(program.actions.size());
    machine_.release_all();
    return CKPT_OK;
  }

 private:
  void name(BlockId id, uint32_t what, uint32_t index, uint32_t item) {
    if (id == kNoBlock) return;
    Block &b = (*blocks_)[id];
    b.what = what;
    b.index = index;
    b.item = item;
    b.first_action = action_;
  }
  Status perform(const Action &a);

  const Graph &graph_;
  const GradientMap &gradients_;
  std::vector<Block> *blocks_;
  uint32_t action_ = 0, end_ = 0;
  Machine<Scribe> machine_;
};

Status Recorder::perform(const Action &a) {
  switch (a.kind) {
    case ActionKind::forward: {
      Machine<Scribe>::Run run;
      end_ = action_ + 1;
      CKPT_TRY(machine_.begin_forward(a.index, a.want, a.in_place, &run));
      const uint32_t slots = graph_.nodes[a.index].shape->slot_count();
      run.fresh.each([&](uint32_t k) {
        const BlockId id = machine_.item_block(a.index, k);
        name(id, k < slots ? CKPT_PLACED_SLOT : CKPT_PLACED_OUTPUT, a.index, k < slots ? k : k - slots);
        (*blocks_)[id].is_recompute = !run.first;
      });
      name(run.scratch, CKPT_PLACED_SCRATCH, a.index, 0);
      machine_.end_forward(run);
      return CKPT_OK;
    }
    case ActionKind::backward: {
      Machine<Scribe>::BackwardRun run;
      end_ = action_ + 1;
      const size_t before = blocks_->size();
      CKPT_TRY(machine_.begin_backward(a.index, a.want, gradients_, &run));
      for (uint32_t v : graph_.inputs_of(a.index))
        if (const BlockId id = machine_.grad_block(v); id != kNoBlock && id >= before) name(id, CKPT_PLACED_GRAD, v, 0);
      name(run.scratch, CKPT_PLACED_SCRATCH, a.index, 0);
      machine_.end_backward(run);
      return CKPT_OK;
    }
    case ActionKind::free: end_ = action_; return machine_.free_value(a.index);
    case ActionKind::drop: end_ = action_; return machine_.drop(a.index, a.want);
  }
  return fail(CKPT_ERROR_INVALID_PLAN, "an action of unknown kind %u", static_cast<unsigned>(a.kind));
}

}  // namespace

Status list_blocks(const Graph &graph, const GradientMap &gradients, const Program &program, std::vector<Block> *out) {
  out->clear();
  return Recorder(graph, gradients, out).run(program);
}

Status make_layout(const std::vector<Block> &blocks, Layout *out) {
  *out = Layout{};
  std::vector<arena::PackBuffer> buffers(blocks.size());
  for (size_t k = 0; k < blocks.size(); ++k) buffers[k] = {blocks[k].first_action, std::max(blocks[k].end_action, blocks[k].first_action + 1), blocks[k].bytes};
  arena::Packing packing;
  arena::PackLimits limits;
  limits.work = kPackWork;
  CKPT_TRY(arena::pack(buffers, limits, &packing));
  out->offsets = std::move(packing.offsets);
  out->height = packing.height;
  out->lower_bound = packing.lower_bound;
  return CKPT_OK;
}

}  // namespace ckpt::plan
