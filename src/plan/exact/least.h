// The least memory that any program of the machine takes, for graphs of a few items: every state is tried. The classes leave out
// ways that only matter for the last bytes, such as slots that are made before the backward of the segment behind, where forward
// scratch here and the gradient there do not fit together.
#pragma once

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan::exact {

// Does not depend on costs. Before tighten(), and so with outputs beside inputs, never over them. Empty: too many items, or slots that
// hold their input.
Program least_of_all(const Graph &graph, const GradientMap &gradients);

}  // namespace ckpt::plan::exact
