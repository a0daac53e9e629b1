#include "estimate/stage.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <string>

#include "base/checked.h"
#include "plan/chain.h"

namespace ckpt::estimate {
namespace {

constexpr uint64_t kMaxInFlight = 4096;  // what a plan takes

double number(uint64_t x) { return static_cast<double>(x); }

// One rank under one policy.
class Rank {
 public:
  Rank(const char *function, const Request &request, uint32_t policy, uint64_t rank) : fn_(function), request_(request), policy_(policy), rank_(rank) {}

  Status run(size_t budget, ckpt_estimate *out);

 private:
  bool interleaved() const { return request_.layout.chunks > 1; }
  Status count(ckpt_estimate *out);
  Status plan(size_t budget, ckpt_estimate *out);
  Status time(ckpt_estimate *out) const;
  plan::PlanRequest plan_request(size_t budget) const;
  Status total(const char *what, uint64_t each, uint64_t times, uint64_t more, uint64_t *to) const;

  const char *fn_;
  const Request &request_;
  const uint32_t policy_;
  const uint64_t rank_;
  Pieces pieces_;
  Span span_;                   // what is planned: the rank's layers; of an interleaved rank one chunk, without what is outside
  uint64_t inside_bytes_ = 0;   // of span_ beyond its layers, for one micro-batch
  double recompute_flops_ = 0, recompute_seconds_ = 0;  // of span_
};

Status Rank::total(const char *what, uint64_t each, uint64_t times, uint64_t more, uint64_t *to) const {
  uint64_t product = 0;
  if (mul_overflows(each, times, &product) || add_overflows(product, more, to))
    return fail(CKPT_ERROR_OVERFLOW, "%s: %s: %" PRIu64 " bytes times %" PRIu64 " are more than 2^64", fn_, what, each, times);
  return CKPT_OK;
}

// How many micro-batches wait between the embedding and its backward when the most chunks are in flight: groups of `pipeline`
// micro-batches go through each chunk in turn.
uint64_t embeddings_in_flight(const Request &request) {
  const Layout &l = request.layout;
  const uint64_t chunks = request.in_flight(0), round = l.pipeline * l.chunks;
  return l.pipeline == 1 ? 1 : chunks / round * l.pipeline + std::min(chunks % round, l.pipeline);
}

Status Rank::count(ckpt_estimate *out) {
  CKPT_TRY(count_pieces(fn_, request_, &pieces_));
  const Layout &l = request_.layout;
  out->chunk_layers = request_.chunk_layers();
  out->in_flight = request_.in_flight(rank_);
  if (out->in_flight > kMaxInFlight)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: layout.pipeline is %" PRIu64 " and layout.virtual_pipeline %" PRIu64 ": rank %" PRIu64 " has %" PRIu64 " chunks in flight, expected at most %" PRIu64, fn_,
                l.pipeline, l.chunks, rank_, out->in_flight, kMaxInFlight);
  out->layers_in_flight = out->chunk_layers * out->in_flight;
  out->layer_bytes = pieces_.layer_bytes(policy_);
  const bool has_head = rank_ + 1 == l.pipeline && request_.model.vocabulary != 0;
  if (rank_ == 0) CKPT_TRY(total("embedding", pieces_.embedding_bytes(), embeddings_in_flight(request_), 0, &out->outside_bytes));
  if (has_head) CKPT_TRY(total("head", pieces_.head_bytes(), 1, out->outside_bytes, &out->outside_bytes));
  CKPT_TRY(total("layers", out->layer_bytes, out->layers_in_flight, out->outside_bytes, &out->activation_bytes));
  span_ = span_of(request_, rank_, 0);
  if (interleaved()) span_.embedding = span_.head = false;
  inside_bytes_ = (span_.embedding ? pieces_.embedding_bytes() : 0) + (span_.head ? pieces_.head_bytes() : 0);
  return CKPT_OK;
}

plan::PlanRequest Rank::plan_request(size_t budget) const {
  plan::PlanRequest r;
  r.in_flight = static_cast<uint32_t>(request_.in_flight(rank_));
  r.budget = budget;
  if (policy_ == CKPT_RECOMPUTE_OPTIMAL) return r;
  r.strategy = CKPT_STRATEGY_STORE_ALL;
  for (const Piece &p : pieces_.layer.slots)
    if (!kept(policy_, p)) r.recompute_patterns.push_back(std::string("layer*/") + p.name);
  if (!r.recompute_patterns.empty()) r.strategy = CKPT_STRATEGY_SELECTIVE;
  return r;
}

Status Rank::plan(size_t budget, ckpt_estimate *out) {
  const Result<plan::Graph> graph = make_graph(fn_, request_, pieces_, span_, Cost::seconds, 1);
  if (!graph.ok()) return graph.status();
  const std::vector<plan::Root> roots = plan::default_roots(*graph);
  const plan::GradientMap gradients = plan::derive_gradients(*graph, roots);
  const uint64_t outside = interleaved() ? out->outside_bytes : 0;
  const plan::PlanRequest request = plan_request(budget == 0 ? 0 : budget > outside ? budget - outside : 1);
  plan::Planned planned;
  const Status status = plan::make_plan(*graph, gradients, request, arena::Placer(), &planned);
  if (policy_ == CKPT_RECOMPUTE_OPTIMAL) {
    size_t minimum = planned.minimum_budget;
    if (minimum == 0 && status == CKPT_OK) CKPT_TRY(plan::find_minimum_budget(*graph, gradients, request, arena::Placer(), &minimum));
    out->minimum_budget_bytes = minimum + outside;
  }
  if (status == CKPT_ERROR_BUDGET)
    return fail(status, "%s: policy optimal on rank %" PRIu64 ": no plan keeps the budget of %zu bytes; the smallest that works is %" PRIu64, fn_, rank_, budget, out->minimum_budget_bytes);
  CKPT_TRY(status);
  const plan::Simulation &s = planned.prediction;
  CKPT_TRY(total("plan", s.held, out->in_flight - 1, s.peak + outside, &out->peak_bytes));
  out->arena_bytes = s.height + outside;
  if (policy_ == CKPT_RECOMPUTE_OPTIMAL) {
    CKPT_TRY(total("plan", s.held, out->in_flight, outside, &out->activation_bytes));
    const uint64_t layers = s.held > inside_bytes_ ? s.held - inside_bytes_ : 0;
    out->layer_bytes = (layers + out->chunk_layers - 1) / out->chunk_layers;
  }
  recompute_seconds_ = s.recompute_seconds;
  // The same program over the same graph, costs counted in products.
  const Result<plan::Graph> flops = make_graph(fn_, request_, pieces_, span_, Cost::flops, 1);
  if (!flops.ok()) return flops.status();
  plan::Simulation counted;
  CKPT_TRY(plan::simulate_step(*flops, gradients, planned.program, arena::Placer(), &counted));
  recompute_flops_ = counted.recompute_seconds * kFlopUnit;
  return CKPT_OK;
}

Status Rank::time(ckpt_estimate *out) const {
  const Layout &l = request_.layout;
  const Hardware &hardware = request_.hardware;
  const double steps = number(l.micro_batches), chunks = number(l.chunks), layers = number(out->chunk_layers) * chunks;
  const bool has_head = rank_ + 1 == l.pipeline && request_.model.vocabulary != 0;
  const double layer_flops = pieces_.layer.flops();
  out->forward_flops = steps * (layers * layer_flops + (has_head ? pieces_.head.flops() : 0));
  out->backward_flops = 2 * out->forward_flops;
  out->recompute_flops = steps * chunks * recompute_flops_;
  out->replay_flops = policy_ == CKPT_RECOMPUTE_OPTIMAL ? out->recompute_flops : steps * layers * pieces_.replay_flops(policy_);
  out->model_flops = 3 * steps * model_forward_flops(request_.model);
  if (!hardware.given) return CKPT_OK;
  const double embedding = rank_ == 0 ? seconds(hardware, pieces_.embedding) : 0, head = has_head ? seconds(hardware, pieces_.head) : 0;
  out->forward_seconds = steps * (layers * seconds(hardware, pieces_.layer) + embedding + head);
  out->backward_seconds = 2 * out->forward_seconds;
  out->recompute_seconds = steps * chunks * recompute_seconds_;
  const double layer_seconds = (3 * layer_flops + out->replay_flops / (steps * layers)) / hardware.flops_per_second;
  out->offload_bytes_per_second = number(out->layer_bytes) / layer_seconds;
  return CKPT_OK;
}

Status Rank::run(size_t budget, ckpt_estimate *out) {
  CKPT_TRY(count(out));
  CKPT_TRY(plan(budget, out));
  return time(out);
}

}  // namespace

Status estimate_rank(const char *function, const Request &request, uint32_t policy, uint64_t rank, size_t budget_bytes, ckpt_estimate *out) {
  *out = ckpt_estimate{};
  out->policy = policy;
  if (policy > CKPT_RECOMPUTE_OPTIMAL)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: policy is %u, expected CKPT_RECOMPUTE_* (0 to %d)", function, policy, CKPT_RECOMPUTE_OPTIMAL);
  if (rank >= request.layout.pipeline)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: rank is %" PRIu64 ", expected one below layout.pipeline, which is %" PRIu64, function, rank, request.layout.pipeline);
  if (budget_bytes != 0 && policy != CKPT_RECOMPUTE_OPTIMAL)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: budget_bytes is %zu with a fixed policy, expected 0", function, budget_bytes);
  return Rank(function, request, policy, rank).run(budget_bytes, out);
}

}  // namespace ckpt::estimate
