// The places of a plan that comes from outside.
#pragma once

#include <span>
#include <vector>

#include "plan/layout.h"
#include "plan/make_plan.h"

namespace ckpt::tape {

// Do these offsets hold the blocks: one for each, aligned, nothing over anything that lives? *height: as far as they reach.
bool fit(std::span<const plan::Block> blocks, std::span<const size_t> offsets, size_t alignment, size_t *height);

// The plan's offsets where they fit this step, else new ones; the prediction's height is theirs.
Status take_places(const plan::Graph &graph, const plan::GradientMap &gradients, plan::Planned *plan);

}  // namespace ckpt::tape
