#include "plan/graph_search_smallest.h"

#include <algorithm>

#include "plan/exact/least.h"
#include "plan/tighten.h"

namespace ckpt::plan {
namespace {

constexpr uint64_t kRunsAtAll = 4'000'000;  // of Again::nothing, if nothing else fits

Graph without_costs(Graph graph) {
  std::fill(graph.item_seconds.begin(), graph.item_seconds.end(), 1.0);
  for (Node &n : graph.nodes) n.backward_seconds = 1;
  return graph;
}

}  // namespace

Smallest::Smallest(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, uint64_t work_limit, const arena::Placer &start)
    : graph_(without_costs(graph)), gradients_(gradients), trial_(graph_, gradients, in_flight, start), rows_(trial_), space_(graph_, gradients), local_(trial_, space_, work_limit) {}

// The least load is the smallest budget where packing reaches it.
Status Smallest::try_all_states(bool *packs) {
  *packs = false;
  if (trial_.in_flight() != 1 || trial_.start().in_use() != 0 || graph_.any_in_place()) return CKPT_OK;
  program_ = exact::least_of_all(graph_, gradients_);
  if (program_.actions.empty()) return CKPT_OK;
  Planned plain, tight;
  Program tightened = program_;
  tighten(graph_, gradients_, LiveState::start(graph_), {}, &tightened);
  CKPT_TRY(predict(graph_, gradients_, {}, trial_.start(), program_, &plain));
  CKPT_TRY(predict(graph_, gradients_, {}, trial_.start(), tightened, &tight));
  const size_t height = std::min(plain.prediction.height, tight.prediction.height);
  if (tight.prediction.height == height) program_ = std::move(tightened);
  *packs = height <= std::min(plain.prediction.peak, tight.prediction.peak);
  return CKPT_OK;
}

Status Smallest::look() {
  bool packs = false;
  CKPT_TRY(try_all_states(&packs));
  if (packs) {
    complete_ = true;
    return CKPT_OK;
  }
  searched_ = true;
  CKPT_TRY(rows_.look_at_corners());
  for (const Point &p : rows_.stairs()) CKPT_TRY(local_.seed(rows_.candidates().policy(p.family, p.member)));
  CKPT_TRY(local_.run());
  const uint64_t runs = runs_from_inputs(graph_);
  complete_ = runs <= Rows::kRunsAtOnce || runs > kRunsAtAll;
  return CKPT_OK;
}

Status Smallest::look_further() {
  complete_ = true;
  return rows_.add({0, Again::nothing, Order::by_rate, 1}, 0);
}

Policy Smallest::policy(uint32_t *strategy, uint32_t *k) const {
  const Point &row = rows_.stairs().back();
  const LocalPoint *local = local_.front().empty() ? nullptr : &local_.front().back();
  if (local != nullptr && local->height < row.height) {
    *strategy = CKPT_STRATEGY_AUTO;
    *k = 0;
    return space_.to_policy(local->choices);
  }
  *strategy = rows_.candidates().strategy(row.family, row.member, k);
  return rows_.candidates().policy(row.family, row.member);
}

}  // namespace ckpt::plan
