// Why a plan keeps what it keeps: for each slot and boundary, what the opposite choice for it alone would do.
#pragma once

#include "plan/simulate.h"

namespace ckpt::plan {

class Explainer {
 public:
  // All are borrowed. `program` is valid; `budget` 0: none.
  Explainer(const Graph &graph, const GradientMap &gradients, const Program &program, size_t budget);

  uint32_t size() const { return static_cast<uint32_t>(graph_.item_bytes.size() + graph_.inputs.size()); }
  // Number `k`: the items of node 0, of node 1, ...; then the graph's inputs. One simulation.
  Status explain(uint32_t k, ckpt_explanation *out) const;

 private:
  struct Fate {           // of one item under the program
    uint32_t made = 0;    // how often
    bool stays = false;   // after the forward that makes it first
  };

  void follow();
  Program opposite(uint32_t node, uint32_t item, bool kept) const;
  Status judge(uint32_t node, uint32_t item, bool kept, ckpt_explanation *out) const;

  const Graph &graph_;
  const GradientMap &gradients_;
  const Program &program_;
  const size_t budget_;
  Status status_ = CKPT_OK;
  Simulation now_;
  std::vector<Fate> fates_;         // per Graph::item_bytes
  std::vector<uint32_t> node_of_;   // likewise
};

// A program whose actions may lack what they read: what is missing is made again before them. What is superfluous stays (see
// tighten.h). INVALID_PLAN: something is missing that cannot be made again.
Result<Program> repair(const Graph &graph, const GradientMap &gradients, const Program &program);

}  // namespace ckpt::plan
