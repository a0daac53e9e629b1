#include "json/cursor.h"
#include "json/plan_file.h"
#include "plan/strategy.h"

namespace ckpt::json {
namespace {

// The names of slots, in a list, as a mask. `what`: "slot".
Status read_slots(const Cursor &at, const plan::Shape &shape, uint64_t *mask) {
  const std::string expected = "the name of a slot of segment " + in_quotes(shape.name());
  CKPT_TRY(at.list(0, "a list of names of slots"));
  for (size_t k = 0; k < at.size(); ++k) {
    const Cursor name = at.at(k);
    uint32_t found = plan::kNone;
    for (uint32_t s = 0; s < shape.slot_count() && name.is(Value::Kind::string); ++s)
      if (shape.item(s).name == name.value().text) found = s;
    if (found == plan::kNone) return name.wrong(expected, CKPT_ERROR_INVALID_PLAN);
    if (mask[found / 64] >> (found % 64) & 1) return name.wrong("each slot once", CKPT_ERROR_INVALID_PLAN);
    mask[found / 64] |= uint64_t{1} << (found % 64);
  }
  return CKPT_OK;
}

Status read_outputs(const Cursor &at, const plan::Shape &shape, uint64_t *mask) {
  const uint32_t count = shape.output_count();
  if (at.is(Value::Kind::boolean)) {
    for (uint32_t k = 0; at.value().flag && k < count; ++k) mask[k / 64] |= uint64_t{1} << (k % 64);
    return CKPT_OK;
  }
  CKPT_TRY(at.list(0, "true, false or a list of numbers of outputs"));
  for (size_t k = 0; k < at.size(); ++k) {
    uint64_t output = 0;
    CKPT_TRY(at.at(k).number(0, count == 0 ? 0 : count - 1, &output));
    if (count == 0 || (mask[output / 64] >> (output % 64) & 1)) return at.at(k).wrong("each of its outputs once", CKPT_ERROR_INVALID_PLAN);
    mask[output / 64] |= uint64_t{1} << (output % 64);
  }
  return CKPT_OK;
}

Status read_action(const Cursor &at, const plan::Graph &graph, ckpt_action *to) {
  constexpr const char *kExpected = "[\"forward\", segment, [slots], outputs], [\"backward\", segment], [\"free\", boundary] or [\"drop\", segment, [slots]]";
  CKPT_TRY(at.list(2, kExpected));
  CKPT_TRY(at.at(size_t{0}).choice({"forward", "backward", "free", "drop"}, &to->kind));
  constexpr size_t kLengths[] = {4, 2, 2, 3};
  if (at.size() != kLengths[to->kind]) return at.wrong(kExpected);
  const bool boundary = to->kind == CKPT_ACTION_FREE;
  const uint32_t limit = boundary ? graph.value_count() : graph.node_count();
  const Cursor number = at.at(size_t{1});
  uint64_t index = 0;
  if (!number.is(Value::Kind::integer) || number.value().integer >= limit)
    return number.wrong((boundary ? "a boundary, 0 to " : "a segment, 0 to ") + std::to_string(limit - 1), CKPT_ERROR_INVALID_PLAN);
  index = number.value().integer;
  to->index = static_cast<uint32_t>(index);
  if (boundary) return CKPT_OK;
  const plan::Shape &shape = *graph.nodes[index].shape;
  if (to->kind != CKPT_ACTION_BACKWARD) CKPT_TRY(read_slots(at.at(size_t{2}), shape, to->slots));
  if (to->kind == CKPT_ACTION_FORWARD) CKPT_TRY(read_outputs(at.at(size_t{3}), shape, to->outputs));
  return CKPT_OK;
}

// Of all that there is: one thing has up to 2^60 bytes.
Status total(const Cursor &at, size_t *out) {
  uint64_t bytes = 0;
  if (at.number(0, SIZE_MAX, &bytes)) return at.wrong("a whole number of bytes, 0 to 2^64 - 1");
  *out = bytes;
  return CKPT_OK;
}

// What the library finds out by itself; here only its type is looked at.
Status check_told(const Cursor &root) {
  uint32_t choice = 0;
  if (const Cursor c = root.at("format"); c.there()) CKPT_TRY(c.choice({"ckpt-plan"}, &choice));
  uint64_t version = 0;
  if (const Cursor c = root.at("version"); c.there()) CKPT_TRY(c.number(1, 1, &version));
  if (const Cursor c = root.at("status"); c.there()) CKPT_TRY(c.choice({"OPTIMAL", "GAP"}, &choice));
  for (const char *field : {"class", "strategy"}) {
    std::string name;
    if (const Cursor c = root.at(field); c.there()) CKPT_TRY(c.text("a name", &name));
  }
  for (const char *field : {"minimum_budget_bytes", "alignment_bytes"}) {
    size_t bytes = 0;
    if (const Cursor c = root.at(field); c.there()) CKPT_TRY(total(c, &bytes));
  }
  for (const char *field : {"forward_seconds", "backward_seconds", "recompute_seconds", "class_gap_seconds", "universal_gap_seconds", "plan_seconds"}) {
    double seconds = 0;
    if (const Cursor c = root.at(field); c.there() && !c.is(Value::Kind::null)) CKPT_TRY(c.seconds(&seconds));
  }
  return CKPT_OK;
}

}  // namespace

Status read_plan(std::string_view text, const char *source, const plan::Graph &graph, PlanFile *out) {
  *out = PlanFile{};
  Value value;
  CKPT_TRY(parse(text, source, &value));
  const Cursor root(source, value);
  CKPT_TRY(root.object({"format", "version", "status", "class", "strategy", "in_flight_count", "alignment_bytes", "budget_bytes", "minimum_budget_bytes", "peak_bytes", "arena_bytes", "held_bytes",
                        "forward_seconds", "backward_seconds", "recompute_seconds", "class_gap_seconds", "universal_gap_seconds", "plan_seconds", "chain_hash", "hash", "actions"}));
  CKPT_TRY(check_told(root));
  if (const Cursor c = root.at("chain_hash"); c.there()) CKPT_TRY(c.hash(&out->chain_hash.emplace()));
  if (const Cursor c = root.at("hash"); c.there()) CKPT_TRY(c.hash(&out->hash.emplace()));
  if (const Cursor c = root.at("peak_bytes"); c.there()) CKPT_TRY(total(c, &out->peak_bytes.emplace()));
  if (const Cursor c = root.at("held_bytes"); c.there()) CKPT_TRY(total(c, &out->held_bytes.emplace()));
  if (const Cursor c = root.at("arena_bytes"); c.there()) CKPT_TRY(total(c, &out->arena_bytes.emplace()));
  if (const Cursor c = root.at("budget_bytes"); c.there() && !c.is(Value::Kind::null)) CKPT_TRY(total(c, &out->budget_bytes));
  if (const Cursor c = root.at("in_flight_count"); c.there()) {
    uint64_t count = 1;
    CKPT_TRY(c.number(1, 1u << 16, &count));
    out->in_flight_count = static_cast<uint32_t>(count);
  }
  if (out->chain_hash && *out->chain_hash != graph.hash()) {
    char expected[128];
    std::snprintf(expected, sizeof expected, "\"0x%016llx\": the plan was made for another chain, or another alignment", static_cast<unsigned long long>(graph.hash()));
    return root.at("chain_hash").wrong(expected, CKPT_ERROR_CONFLICT);
  }
  const Cursor actions = root.at("actions");
  CKPT_TRY(actions.list(1, "a list of actions"));
  if (actions.size() > (size_t{1} << 31)) return actions.wrong("at most 2^31 actions");
  for (size_t k = 0; k < actions.size(); ++k) {
    ckpt_action action{};
    CKPT_TRY(read_action(actions.at(k), graph, &action));
    out->actions.push_back(action);
  }
  return CKPT_OK;
}

}  // namespace ckpt::json
