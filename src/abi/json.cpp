#include "ckpt/json.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "json/chain_file.h"
#include "json/plan_file.h"
#include "json/timeline.h"
#include "json/writer.h"

struct ckpt_trace {
  std::vector<ckpt::json::TraceEvent> events;
  size_t limit = 0, lost = 0;
};

namespace {

using ckpt::fail;
using ckpt::guarded;
namespace json = ckpt::json;
namespace plan = ckpt::plan;

constexpr size_t kMaxEvents = size_t{1} << 28, kMaxScheduleActions = size_t{1} << 24;

ckpt_status null_argument(const char *function, const char *argument, const char *expected) noexcept {
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected %s", function, argument, expected);
}

// C gives back texts with free's counterpart here, whatever its own allocator is.
ckpt_status hand_out(const char *function, const std::string &text, char **out) noexcept {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (copy == nullptr) return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the host refused %zu bytes for the text", function, text.size() + 1);
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *out = copy;
  return CKPT_OK;
}

ckpt_status check_names(const char *function, const plan::Graph &graph) noexcept {
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const plan::Shape &s = *graph.nodes[i].shape;
    bool good = true;
    for (uint32_t k = 0; k < s.slot_count(); ++k) good = good && json::valid_utf8(s.item(k).name);
    if (!good) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: a name in segment %u is no UTF-8, expected names that JSON can hold", function, i);
  }
  return CKPT_OK;
}

ckpt_status read_text(const char *function, const char *text, size_t bytes, std::string_view *out) noexcept {
  if (text == nullptr && bytes != 0) return null_argument(function, "text", "a text");
  *out = text != nullptr ? std::string_view(text, bytes) : std::string_view();
  return CKPT_OK;
}

// Does what a file tells of its plan agree with its actions?
ckpt_status check_told(const std::string &source, const json::PlanFile &file, const ckpt_plan &made) {
  const auto hex = [](uint64_t h) {
    char text[24];
    std::snprintf(text, sizeof text, "'0x%016llx'", static_cast<unsigned long long>(h));
    return std::string(text);
  };
  if (file.hash && *file.hash != made.hash())
    return json::refuse(CKPT_ERROR_CONFLICT, source + ": hash is " + hex(*file.hash) + ", expected " + hex(made.hash()) + ", which is that of these actions over this chain (made for another chain or alignment, or changed?)");
  const auto differs = [&](const char *field, size_t told, const char *expected, size_t found) {
    return json::refuse(CKPT_ERROR_INVALID_PLAN, source + ": " + field + " is " + std::to_string(told) + ", expected " + expected + std::to_string(found) + ", which is what the actions take");
  };
  const ckpt::plan::Simulation &found = made.planned.prediction;
  if (file.peak_bytes && *file.peak_bytes != found.peak) return differs("peak_bytes", *file.peak_bytes, "", found.peak);
  if (file.held_bytes && *file.held_bytes != found.held) return differs("held_bytes", *file.held_bytes, "", found.held);
  // Another version may have packed less well.
  if (file.arena_bytes && *file.arena_bytes < found.height) return differs("arena_bytes", *file.arena_bytes, "at least ", found.height);
  return CKPT_OK;
}

void record(void *user, uint32_t what, uint32_t index, size_t bytes, uint32_t is_recompute) {
  auto *trace = static_cast<ckpt_trace *>(user);
  if (trace->events.size() == trace->limit) {
    ++trace->lost;
    return;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  trace->events.push_back({static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()), bytes, index, static_cast<uint16_t>(what), static_cast<uint16_t>(is_recompute != 0)});
}

}  // namespace

extern "C" {

void ckpt_text_free(char *text) { std::free(text); }

ckpt_status ckpt_chain_from_json(const char *text, size_t text_bytes, size_t alignment_bytes, const char *source_name, ckpt_chain **out_chain) {
  if (out_chain == nullptr) return null_argument(__func__, "out_chain", "an address");
  *out_chain = nullptr;
  std::string_view view;
  CKPT_TRY(read_text(__func__, text, text_bytes, &view));
  if (alignment_bytes != 0 && (!ckpt::is_power_of_two(alignment_bytes) || alignment_bytes > ckpt::arena::SizeRule::kMaxBytes))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: alignment_bytes is %zu, expected a power of two up to 2^60, or 0", __func__, alignment_bytes);
  return guarded(__func__, [&]() -> ckpt_status {
    json::ReadChain read;
    CKPT_TRY(json::read_chain(view, source_name != nullptr ? source_name : "chain", alignment_bytes, &read));
    *out_chain = new ckpt_chain(std::make_shared<const plan::Graph>(std::move(read.graph)), std::move(read.roots));
    return CKPT_OK;
  });
}

ckpt_status ckpt_chain_to_json(const ckpt_chain *chain, char **out_text) {
  if (out_text == nullptr) return null_argument(__func__, "out_text", "an address");
  *out_text = nullptr;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    std::string text;
    CKPT_TRY(json::write_chain(fn, *chain->graph, chain->roots, &text));
    return hand_out(fn, text, out_text);
  });
}

ckpt_status ckpt_plan_from_json(const char *text, size_t text_bytes, const char *source_name, const ckpt_chain *chain, ckpt_plan **out_plan) {
  if (out_plan == nullptr) return null_argument(__func__, "out_plan", "an address");
  *out_plan = nullptr;
  if (chain == nullptr) return null_argument(__func__, "chain", "a chain");
  std::string_view view;
  CKPT_TRY(read_text(__func__, text, text_bytes, &view));
  return guarded(__func__, [&]() -> ckpt_status {
    const std::string source = source_name != nullptr ? source_name : "plan";
    json::PlanFile file;
    CKPT_TRY(json::read_plan(view, source.c_str(), *chain->graph, &file));
    ckpt_plan *made = nullptr;
    const ckpt_status status = ckpt_plan_from_actions(chain, file.actions.data(), static_cast<uint32_t>(file.actions.size()), sizeof(ckpt_action), file.in_flight_count, file.budget_bytes, &made);
    std::unique_ptr<ckpt_plan, decltype(&ckpt_plan_destroy)> owner(made, ckpt_plan_destroy);
    if (status) return json::refuse(status, source + (status == CKPT_ERROR_BUDGET ? ": budget_bytes: " : ": actions: ") + ckpt_last_error());
    CKPT_TRY(check_told(source, file, *made));
    *out_plan = owner.release();
    return CKPT_OK;
  });
}

ckpt_status ckpt_plan_to_json(const ckpt_plan *plan, char **out_text) {
  if (out_text == nullptr) return null_argument(__func__, "out_text", "an address");
  *out_text = nullptr;
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    CKPT_TRY(check_names(fn, *plan->graph));
    return hand_out(fn, json::write_plan(*plan), out_text);
  });
}

ckpt_status ckpt_plan_to_schedule_json(const ckpt_plan *plan, char **out_text) {
  if (out_text == nullptr) return null_argument(__func__, "out_text", "an address");
  *out_text = nullptr;
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    CKPT_TRY(check_names(fn, *plan->graph));
    std::string text;
    CKPT_TRY(json::write_schedule(fn, *plan, &text));
    return hand_out(fn, text, out_text);
  });
}

ckpt_status ckpt_schedule_to_json(ckpt_schedule *schedule, char **out_text) {
  if (out_text == nullptr) return null_argument(__func__, "out_text", "an address");
  *out_text = nullptr;
  if (schedule == nullptr) return null_argument(__func__, "schedule", "a schedule");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    std::vector<ckpt_schedule_action> actions;
    uint64_t steps = 0;
    for (;;) {
      ckpt_schedule_action a;
      CKPT_TRY(ckpt_schedule_next(schedule, &a));
      if (a.kind == CKPT_SCHEDULE_DONE) break;
      if (actions.empty() && (a.first != 0 || (a.kind != CKPT_SCHEDULE_STORE && a.last != 1)))
        return fail(CKPT_ERROR_STATE, "%s: the schedule has been begun, expected one whose first action is still to come", fn);
      if (actions.size() == kMaxScheduleActions) return fail(CKPT_ERROR_OVERFLOW, "%s: more than 2^24 actions, expected at most so many", fn);
      if (a.kind == CKPT_SCHEDULE_BACKWARD && steps == 0) steps = a.last;
      actions.push_back(a);
    }
    return hand_out(fn, json::write_schedule(actions, steps), out_text);
  });
}

ckpt_status ckpt_plan_to_trace_json(const ckpt_plan *plan, char **out_text) {
  if (out_text == nullptr) return null_argument(__func__, "out_text", "an address");
  *out_text = nullptr;
  if (plan == nullptr) return null_argument(__func__, "plan", "a plan");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    std::string text;
    CKPT_TRY(json::write_plan_trace(*plan, &text));
    return hand_out(fn, text, out_text);
  });
}

ckpt_status ckpt_trace_create(size_t event_limit, ckpt_trace **out_trace) {
  if (out_trace == nullptr) return null_argument(__func__, "out_trace", "an address");
  *out_trace = nullptr;
  if (event_limit == 0 || event_limit > kMaxEvents) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: event_limit is %zu, expected 1 to 2^28", __func__, event_limit);
  return guarded(__func__, [&]() -> ckpt_status {
    auto trace = std::make_unique<ckpt_trace>();
    trace->events.reserve(event_limit);
    trace->limit = event_limit;
    *out_trace = trace.release();
    return CKPT_OK;
  });
}

void ckpt_trace_destroy(ckpt_trace *trace) { delete trace; }

ckpt_status ckpt_trace_attach(ckpt_trace *trace, ckpt_tape *tape) {
  if (trace == nullptr) return null_argument(__func__, "trace", "a trace");
  if (tape == nullptr) return null_argument(__func__, "tape", "a tape");
  return ckpt_tape_set_trace(tape, record, trace);
}

ckpt_status ckpt_trace_clear(ckpt_trace *trace) {
  if (trace == nullptr) return null_argument(__func__, "trace", "a trace");
  trace->events.clear();
  trace->lost = 0;
  return CKPT_OK;
}

ckpt_status ckpt_trace_to_json(const ckpt_trace *trace, const ckpt_chain *chain, char **out_text) {
  if (out_text == nullptr) return null_argument(__func__, "out_text", "an address");
  *out_text = nullptr;
  if (trace == nullptr) return null_argument(__func__, "trace", "a trace");
  return guarded(__func__, [&, fn = __func__]() -> ckpt_status {
    return hand_out(fn, json::write_trace(trace->events, trace->lost, chain != nullptr ? chain->graph.get() : nullptr), out_text);
  });
}

}  // extern "C"
