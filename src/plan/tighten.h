// The liveness pass that every generated program goes through: what nobody reads later is not kept, what was read for the
// last time is given back right after it, a forward that then makes nothing of use is dropped, and an output takes the place
// of an input that dies in its forward. So a strategy only decides what to keep, and never holds memory for nothing.
#pragma once

#include <span>

#include "plan/machine.h"

namespace ckpt::plan {

// `state`: where the program starts. `retain`: see write_backward.
void tighten(const Graph &graph, const GradientMap &gradients, const LiveState &state, std::span<const Bits> retain, Program *program);

}  // namespace ckpt::plan
