// Writing programs on demand: what is missing when a backward needs it is made again, and what a policy says is kept. Every
// strategy, every backward of a recording that nobody planned, and every boundary that is brought back go through here.
#pragma once

#include <span>

#include "plan/machine.h"

namespace ckpt::plan {

// What running a stretch of segments again keeps.
enum class Again : uint8_t {
  everything,  // slots and boundaries, until their backward
  boundaries,  // boundaries; slots are filled segment by segment, each right before its backward
  halves,      // the boundaries 1, 2, 4, 8, ... segments before the end, so that each rest is halved: n log n runs in all
  nothing      // each missing boundary is made again each time
};

struct Policy {
  std::vector<Bits> keep_slots;     // per node: of its first run
  std::vector<uint8_t> keep_value;  // per value: beyond its last forward reader
  Again again = Again::boundaries;
  // In place of `again`, where they are not empty (all four are, or none):
  std::vector<uint8_t> again_value;  // per value: kept or made again, it stays until its last backward reader; 0: it goes once read there
  std::vector<Bits> again_slots;     // per node: what a stretch that runs it again keeps, until its backward
  std::vector<Bits> once_slots;      // per node: slots that go when a stretch of the backward pass has run it again
  std::vector<uint8_t> pass_value;   // per value: given back between forward readers that are far apart, and made again
};

// A whole step from LiveState::start. KEEP items are kept and RECOMPUTE slots are not, whatever the policy says; what it keeps
// for nobody goes (tighten.h). OVERFLOW: more than 2^31 actions.
Result<Program> write_step(const Graph &graph, const GradientMap &gradients, const Policy &policy);

// The backward pass from any state in which all first runs are done, whatever is live. `retain`, per node (or empty): items
// that are live at the end too; they must be live now.
Result<Program> write_backward(const Graph &graph, const GradientMap &gradients, const LiveState &state, Again again,
                               std::span<const Bits> retain);

// Brings one dropped boundary back, during the forward pass or before the backward; all that is live stays live, and what was
// made on the way is gone again.
Result<Program> write_make(const Graph &graph, const LiveState &state, uint32_t value);

// How many runs Again::nothing takes with no boundary kept, at most.
uint64_t runs_from_inputs(const Graph &graph);

}  // namespace ckpt::plan
