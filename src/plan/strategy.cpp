#include "plan/strategy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "plan/pattern.h"

namespace ckpt::plan {
namespace {

constexpr const char *kNames[] = {"auto", "store_all", "every_segment", "sqrt", "uniform", "block", "full", "selective"};
constexpr const char *kClassNames[] = {"unknown", "rotor", "sigma", "sigma+s+w", "sigma+s+w+d"};  // by CKPT_CLASS_*
constexpr uint32_t kCount = sizeof kNames / sizeof kNames[0];
static_assert(kCount == CKPT_STRATEGY_SELECTIVE + 1);
// Simulating recordings in flight takes time in proportion; no pipeline is deeper.
constexpr uint32_t kMaxInFlight = 4096;

bool takes_k(uint32_t strategy) { return strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK; }

// A pattern with a slash is for "segment/slot", one without for the slot's name.
bool matches_slot(const std::string &pattern, const Shape &shape, uint32_t slot) {
  const std::string &name = shape.item(slot).name;
  return pattern.find('/') == std::string::npos ? matches(pattern, name) : matches(pattern, shape.name() + "/" + name);
}

uint32_t first_match(const std::vector<std::string> &patterns, const Shape &shape, uint32_t slot) {
  for (uint32_t p = 0; p < patterns.size(); ++p)
    if (matches_slot(patterns[p], shape, slot)) return p;
  return kNone;
}

// Each different shape of the graph once, in the order of its first node.
std::vector<const Shape *> shapes_of(const Graph &graph) {
  std::vector<const Shape *> shapes;
  std::set<const Shape *> seen;
  for (const Node &n : graph.nodes)
    if (seen.insert(n.shape).second) shapes.push_back(n.shape);
  return shapes;
}

Status check_contradictions(const Shape &s, const PlanRequest &r) {
  for (uint32_t k = 0; k < s.slot_count(); ++k) {
    const char *slot = s.item(k).name.c_str(), *segment = s.name().c_str();
    const uint32_t keep = first_match(r.keep_patterns, s, k), again = first_match(r.recompute_patterns, s, k);
    if (keep != kNone && again != kNone)
      return fail(CKPT_ERROR_CONFLICT, "slot '%s' of segment '%s' matches keep pattern '%s' and recompute pattern '%s'", slot, segment,
                  r.keep_patterns[keep].c_str(), r.recompute_patterns[again].c_str());
    if (keep != kNone && s.again().has(k))
      return fail(CKPT_ERROR_CONFLICT, "slot '%s' of segment '%s' matches keep pattern '%s', but is marked RECOMPUTE", slot, segment, r.keep_patterns[keep].c_str());
    if (again != kNone && s.keep().has(k))
      return fail(CKPT_ERROR_CONFLICT, "slot '%s' of segment '%s' matches recompute pattern '%s', but %s", slot, segment, r.recompute_patterns[again].c_str(),
                  s.replayable() ? "is marked KEEP" : "the segment has no forward to run again");
  }
  return CKPT_OK;
}

Status check_all_match(const char *list, const std::vector<std::string> &patterns, const std::vector<const Shape *> &shapes) {
  for (const std::string &pattern : patterns) {
    const bool found = std::any_of(shapes.begin(), shapes.end(), [&](const Shape *s) {
      for (uint32_t k = 0; k < s->slot_count(); ++k)
        if (matches_slot(pattern, *s, k)) return true;
      return false;
    });
    if (!found) return fail(CKPT_ERROR_NOT_FOUND, "%s pattern '%s' matches no slot of the %zu kinds of segment", list, pattern.c_str(), shapes.size());
  }
  return CKPT_OK;
}

Status select(const Graph &graph, const PlanRequest &r, std::vector<Bits> *keep) {
  const std::vector<const Shape *> shapes = shapes_of(graph);
  CKPT_TRY(check_all_match("keep", r.keep_patterns, shapes));
  CKPT_TRY(check_all_match("recompute", r.recompute_patterns, shapes));
  std::map<const Shape *, Bits> selected;
  for (const Shape *s : shapes) {
    CKPT_TRY(check_contradictions(*s, r));
    selected[s] = selected_slots(*s, r);
  }
  for (uint32_t i = 0; i < graph.node_count(); ++i) (*keep)[i] = selected[graph.nodes[i].shape];
  return CKPT_OK;
}

}  // namespace

const char *class_name(uint32_t plan_class) noexcept {
  if (plan_class == CKPT_CLASS_DEFAULT) plan_class = CKPT_CLASS_SIGMA_S_W;
  return kClassNames[plan_class <= CKPT_CLASS_SIGMA_S_W_D ? plan_class : 0];
}

Status parse_class(const char *function, const char *text, uint32_t *plan_class) {
  for (uint32_t c = CKPT_CLASS_ROTOR; c <= CKPT_CLASS_SIGMA_S_W_D; ++c)
    if (std::strcmp(text, kClassNames[c]) == 0) {
      *plan_class = c;
      return CKPT_OK;
    }
  return fail(CKPT_ERROR_NOT_FOUND, "%s: unknown class '%s', expected one of rotor, sigma, sigma+s+w, sigma+s+w+d", function, text);
}

const char *strategy_name(uint32_t strategy) noexcept { return strategy < kCount ? kNames[strategy] : "unknown"; }

Status parse_strategy(const char *function, const char *text, uint32_t *strategy, uint32_t *k) {
  const char *colon = std::strchr(text, ':');
  const std::string name(text, colon != nullptr ? static_cast<size_t>(colon - text) : std::strlen(text));
  const auto *found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    std::string known;
    for (uint32_t s = 0; s < kCount; ++s) known += std::string(s == 0 ? "" : ", ") + kNames[s] + (takes_k(s) ? ":K" : "");
    return fail(CKPT_ERROR_NOT_FOUND, "%s: unknown strategy '%s', expected one of %s", function, text, known.c_str());
  }
  const auto which = static_cast<uint32_t>(found - kNames);
  uint32_t number = 0;
  if (takes_k(which)) {
    if (colon == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: '%s': strategy %s needs a number of segments, as in %s:4", function, text, *found, *found);
    const char *end = colon + std::strlen(colon);
    const auto [rest, error] = std::from_chars(colon + 1, end, number);
    if (error != std::errc() || rest != end || number == 0)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: '%s': expected a number of segments from 1 to %u after the colon", function, text, UINT32_MAX);
  } else if (colon != nullptr) {
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: '%s': strategy %s takes no number", function, text, *found);
  }
  *strategy = which;
  *k = number;
  return CKPT_OK;
}

Status check_request(const char *function, const PlanRequest &r) {
  if (r.strategy >= kCount) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: strategy is %u, expected 0 (auto) to %u (%s)", function, r.strategy, kCount - 1, kNames[kCount - 1]);
  const char *name = kNames[r.strategy];
  const char *k = std::strncmp(function, "ckpt_tape", 9) == 0 ? "strategy_k" : "k";  // as the caller's struct calls it
  if (takes_k(r.strategy) && r.k == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is 0, expected at least 1 segment with strategy %s", function, k, name);
  if (!takes_k(r.strategy) && r.k != 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is %u, expected 0 with strategy %s", function, k, r.k, name);
  if (r.in_flight == 0 || r.in_flight > kMaxInFlight)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: in_flight_count is %u, expected 1 to %u", function, r.in_flight, kMaxInFlight);
  const size_t patterns = r.keep_patterns.size() + r.recompute_patterns.size();
  if (r.strategy != CKPT_STRATEGY_SELECTIVE && r.strategy != CKPT_STRATEGY_AUTO && patterns != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %zu patterns are given, expected none with strategy %s", function, patterns, name);
  if (r.plan_class > CKPT_CLASS_SIGMA_S_W_D)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: plan_class is %u, expected 0 (default) to %u (%s)", function, r.plan_class, CKPT_CLASS_SIGMA_S_W_D, class_name(CKPT_CLASS_SIGMA_S_W_D));
  if (r.strategy != CKPT_STRATEGY_AUTO && r.plan_class != CKPT_CLASS_DEFAULT)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: plan_class is %u (%s), expected 0 with strategy %s", function, r.plan_class, class_name(r.plan_class), name);
  if (r.strategy == CKPT_STRATEGY_SELECTIVE && patterns == 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: strategy selective without a pattern, expected keep or recompute patterns", function);
  for (const auto *list : {&r.keep_patterns, &r.recompute_patterns})
    for (const std::string &p : *list)
      if (p.empty()) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: an empty %s pattern", function, list == &r.keep_patterns ? "keep" : "recompute");
  return CKPT_OK;
}

Result<Graph> constrain(const Graph &graph, const PlanRequest &r) {
  using R = Result<Graph>;
  const std::vector<const Shape *> shapes = shapes_of(graph);
  if (const Status bad = check_all_match("keep", r.keep_patterns, shapes); bad) return R::failed(bad);
  if (const Status bad = check_all_match("recompute", r.recompute_patterns, shapes); bad) return R::failed(bad);
  Graph out = graph;
  std::map<const Shape *, const Shape *> marked;
  for (const Shape *s : shapes) {
    if (const Status bad = check_contradictions(*s, r); bad) return R::failed(bad);
    Bits keep, again;
    for (uint32_t k = 0; k < s->slot_count(); ++k) {
      if (first_match(r.keep_patterns, *s, k) != kNone) keep.set(k);
      if (first_match(r.recompute_patterns, *s, k) != kNone) again.set(k);
    }
    Result<Shape> with = s->marked(keep, again);
    if (!with.ok()) return R::failed(with.status());
    out.shapes.push_back(std::make_shared<const Shape>(std::move(*with)));
    marked[s] = out.shapes.back().get();
  }
  for (Node &n : out.nodes) n.shape = marked[n.shape];
  return out;
}

Bits selected_slots(const Shape &shape, const PlanRequest &r) {
  const bool rest_kept = r.keep_patterns.empty() || !r.recompute_patterns.empty();
  Bits keep;
  for (uint32_t k = 0; k < shape.slot_count(); ++k) {
    const bool matched = first_match(r.keep_patterns, shape, k) != kNone;
    if (matched || (rest_kept && shape.needed().has(k) && first_match(r.recompute_patterns, shape, k) == kNone)) keep.set(k);
  }
  return keep;
}

Bits slots_for_all(const Shape &shape) {
  const Bits keep = (shape.needed() - shape.again()) | (shape.keep() & shape.slots());
  // What a RECOMPUTE slot is made from: kept too, or it would be made again.
  const Bits more = shape.closure(shape.needed() & shape.again(), keep | shape.outputs()).todo & shape.slots();
  return keep | (more - shape.again());
}

std::vector<uint8_t> values_across_groups(const Graph &graph, uint32_t k) {
  std::vector<uint8_t> keep(graph.value_count(), 0);
  for (uint32_t i = 0; i < graph.node_count(); ++i)
    for (uint32_t v : graph.inputs_of(i)) {
      const uint32_t producer = graph.values[v].producer;
      if (producer != kNone && producer / k != i / k) keep[v] = 1;
    }
  return keep;
}

uint32_t sqrt_group(uint32_t node_count) {
  auto k = static_cast<uint32_t>(std::sqrt(static_cast<double>(node_count)));
  while (static_cast<uint64_t>(k) * k < node_count) ++k;
  return std::max(k, 1u);
}

Result<Policy> fixed_policy(const Graph &graph, const PlanRequest &r) {
  const uint32_t n = graph.node_count();
  Policy p;
  p.keep_slots.assign(n, Bits{});
  p.keep_value.assign(graph.value_count(), 1);
  p.again = Again::boundaries;
  switch (r.strategy) {
    case CKPT_STRATEGY_EVERY_SEGMENT: break;
    case CKPT_STRATEGY_SQRT:
    case CKPT_STRATEGY_UNIFORM:
      p.keep_value = values_across_groups(graph, r.strategy == CKPT_STRATEGY_SQRT ? sqrt_group(n) : r.k);
      p.again = Again::everything;
      break;
    case CKPT_STRATEGY_FULL:
      p.keep_value.assign(graph.value_count(), 0);
      p.again = Again::nothing;
      break;
    case CKPT_STRATEGY_SELECTIVE:
      if (const Status bad = select(graph, r, &p.keep_slots); bad) return Result<Policy>::failed(bad);
      break;
    default: {  // STORE_ALL, BLOCK
      const uint32_t from = r.strategy == CKPT_STRATEGY_BLOCK ? std::min(r.k, n) : 0;
      for (uint32_t i = from; i < n; ++i) p.keep_slots[i] = slots_for_all(*graph.nodes[i].shape);
      break;
    }
  }
  return p;
}

}  // namespace ckpt::plan
