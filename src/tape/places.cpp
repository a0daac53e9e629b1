#include "tape/places.h"

#include <algorithm>
#include <map>
#include <queue>

namespace ckpt::tape {

bool fit(std::span<const plan::Block> blocks, std::span<const size_t> offsets, size_t alignment, size_t *height) {
  *height = 0;
  if (offsets.size() != blocks.size()) return false;
  std::map<size_t, size_t> live;  // begin to end
  using End = std::pair<uint32_t, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;  // (action, begin)
  for (size_t k = 0; k < blocks.size(); ++k) {  // in the order in which they are taken
    const plan::Block &b = blocks[k];
    if (b.bytes == 0) continue;
    const size_t begin = offsets[k];
    if (begin % alignment != 0 || begin > arena::kUnbounded || b.bytes > arena::kUnbounded) return false;
    for (; !ends.empty() && ends.top().first <= b.first_action; ends.pop()) live.erase(ends.top().second);
    const auto next = live.lower_bound(begin);
    if (next != live.end() && next->first < begin + b.bytes) return false;
    if (next != live.begin() && std::prev(next)->second > begin) return false;
    live.emplace_hint(next, begin, begin + b.bytes);
    ends.push({std::max(b.end_action, b.first_action + 1), begin});
    *height = std::max(*height, begin + b.bytes);
  }
  return true;
}

Status take_places(const plan::Graph &graph, const plan::GradientMap &gradients, plan::Planned *plan) {
  std::vector<plan::Block> blocks;
  CKPT_TRY(plan::list_blocks(graph, gradients, plan->program, &blocks));
  size_t height = 0;
  if (!fit(blocks, plan->offsets, graph.rule.alignment_bytes, &height)) {
    plan::Layout layout;
    CKPT_TRY(plan::make_layout(blocks, &layout));
    plan->offsets = std::move(layout.offsets);
    height = layout.height;
  }
  plan->prediction.height = height;
  return CKPT_OK;
}

}  // namespace ckpt::tape
