/* json.h through the shared library, from C99: every function, its errors, and a trace of a tape. */
#include "ckpt/json.h"
#include "../support/abi_plans.h"

static const char TEXT[] =
    "{\"input\": {\"bytes\": 100}, \"segments\": ["
    "{\"name\": \"a\", \"forward_seconds\": 1, \"backward_seconds\": 2, \"output_bytes\": 100, \"slots\": [{\"name\": \"x\", \"bytes\": 300, \"cost_seconds\": 0.5}]},"
    "{\"name\": \"b\", \"forward_seconds\": 1, \"backward_seconds\": 2, \"output_bytes\": 100, \"saved_bytes\": 200}]}";

static ckpt_chain *the_chain(void) {
  ckpt_chain *chain = NULL;
  OK(ckpt_chain_from_json(TEXT, strlen(TEXT), 1, "c.json", &chain));
  return chain;
}

static ckpt_plan *the_plan(const ckpt_chain *chain, uint32_t strategy) {
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  ckpt_plan *plan = NULL;
  desc.strategy = strategy;
  OK(ckpt_plan_create(chain, &desc, &plan));
  return plan;
}

static void chains(void **state) {
  ckpt_chain *chain = the_chain(), *again = NULL, *none = (ckpt_chain *)1;
  char *text = NULL;
  (void)state;
  assert_int_equal(ckpt_chain_segment_count(chain), 2);
  OK(ckpt_chain_to_json(chain, &text));
  OK(ckpt_chain_from_json(text, strlen(text), 0, NULL, &again));
  assert_true(ckpt_chain_hash(again) == ckpt_chain_hash(chain));
  ckpt_chain_destroy(again);
  OK(ckpt_chain_from_json(text, strlen(text), 64, NULL, &again));
  assert_false(ckpt_chain_hash(again) == ckpt_chain_hash(chain));
  ckpt_chain_destroy(again);
  ckpt_text_free(text);
  ckpt_text_free(NULL);
  refused(ckpt_chain_from_json(TEXT, strlen(TEXT) - 1, 1, "c.json", &none), CKPT_ERROR_INVALID_ARGUMENT, "c.json: line 1, column ");
  assert_null(none);
  refused(ckpt_chain_from_json("[]", 2, 1, NULL, &none), CKPT_ERROR_INVALID_ARGUMENT, "chain: the text is an empty list, expected an object");
  refused(ckpt_chain_from_json(NULL, 0, 1, NULL, &none), CKPT_ERROR_INVALID_ARGUMENT, "the text ends");
  refused(ckpt_chain_from_json(NULL, 5, 1, NULL, &none), CKPT_ERROR_INVALID_ARGUMENT, "text is NULL");
  refused(ckpt_chain_from_json(TEXT, strlen(TEXT), 3, NULL, &none), CKPT_ERROR_INVALID_ARGUMENT, "alignment_bytes is 3, expected a power of two");
  refused(ckpt_chain_from_json(TEXT, strlen(TEXT), 1, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_chain is NULL");
  refused(ckpt_chain_to_json(NULL, &text), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  assert_null(text);
  refused(ckpt_chain_to_json(chain, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_text is NULL");
  ckpt_chain_destroy(chain);
}

static void names_that_are_no_text(void **state) {
  ckpt_output output;
  ckpt_chain_segment segment;
  ckpt_chain_desc desc;
  ckpt_chain *chain = NULL;
  char *text = (char *)1;
  (void)state;
  memset(&output, 0, sizeof output);
  memset(&segment, 0, sizeof segment);
  memset(&desc, 0, sizeof desc);
  output.name = "o";
  segment.name = "\xff";
  segment.outputs = &output;
  segment.output_count = 1;
  desc.struct_size = sizeof desc;
  desc.segment_size = sizeof segment;
  desc.slot_size = sizeof(ckpt_slot);
  desc.output_size = sizeof output;
  desc.segments = &segment;
  desc.segment_count = 1;
  OK(ckpt_chain_create(&desc, &chain));
  refused(ckpt_chain_to_json(chain, &text), CKPT_ERROR_INVALID_ARGUMENT, "a name in segment 0 is no UTF-8");
  assert_null(text);
  ckpt_chain_destroy(chain);
}

static void plans(void **state) {
  ckpt_chain *chain = the_chain(), *other = NULL;
  ckpt_plan *plan = the_plan(chain, CKPT_STRATEGY_EVERY_SEGMENT), *again = NULL;
  char *text = NULL, *edited;
  (void)state;
  OK(ckpt_plan_to_json(plan, &text));
  OK(ckpt_plan_from_json(text, strlen(text), "p.json", chain, &again));
  assert_true(ckpt_plan_hash(again) == ckpt_plan_hash(plan));
  ckpt_plan_destroy(again);
  OK(ckpt_chain_from_json(TEXT, strlen(TEXT), 64, NULL, &other));
  refused(ckpt_plan_from_json(text, strlen(text), "p.json", other, &again), CKPT_ERROR_CONFLICT, "p.json: chain_hash is '0x");
  assert_null(again);
  edited = strstr(text, "[\"backward\", 1]");
  assert_non_null(edited);
  edited[13] = '0';
  refused(ckpt_plan_from_json(text, strlen(text), "p.json", chain, &again), CKPT_ERROR_INVALID_PLAN, "p.json: actions: ");
  refused(ckpt_plan_from_json("{}", 2, NULL, chain, &again), CKPT_ERROR_INVALID_ARGUMENT, "plan: actions is missing");
  refused(ckpt_plan_from_json("{\"actions\": [[\"free\", 3]]}", 26, NULL, chain, &again), CKPT_ERROR_INVALID_PLAN, "actions[0][1] is 3, expected a boundary, 0 to 2");
  refused(ckpt_plan_from_json("{}", 2, NULL, NULL, &again), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  refused(ckpt_plan_from_json(NULL, 2, NULL, chain, &again), CKPT_ERROR_INVALID_ARGUMENT, "text is NULL");
  refused(ckpt_plan_from_json("{}", 2, NULL, chain, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_plan is NULL");
  ckpt_text_free(text);
  refused(ckpt_plan_to_json(NULL, &text), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  refused(ckpt_plan_to_json(plan, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_text is NULL");
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(other);
  ckpt_chain_destroy(chain);
}

static void schedules(void **state) {
  static const char GRAPH[] =
      "{\"inputs\": [{\"bytes\": 1}, {\"bytes\": 1}], \"segments\": [{\"name\": \"a\", \"forward_seconds\": 1, \"backward_seconds\": 1, \"slots\": [], "
      "\"inputs\": [0, 1], \"output_bytes\": 1}]}";
  ckpt_chain *chain = the_chain(), *graph = NULL;
  ckpt_plan *plan = the_plan(chain, CKPT_STRATEGY_STORE_ALL), *other;
  ckpt_schedule *loop = NULL;
  ckpt_schedule_action action;
  char *text = NULL;
  (void)state;
  OK(ckpt_plan_to_schedule_json(plan, &text));
  assert_string_equal(text,
                      "[\n"
                      "  {\"action\": \"Forward\", \"n0\": 0, \"n1\": 1, \"write_ics\": false, \"write_adj_deps\": true, \"storage\": \"WORK\"},\n"
                      "  {\"action\": \"Forward\", \"n0\": 1, \"n1\": 2, \"write_ics\": false, \"write_adj_deps\": true, \"storage\": \"WORK\"},\n"
                      "  {\"action\": \"EndForward\"},\n"
                      "  {\"action\": \"Reverse\", \"n1\": 2, \"n0\": 1, \"clear_adj_deps\": true},\n"
                      "  {\"action\": \"Reverse\", \"n1\": 1, \"n0\": 0, \"clear_adj_deps\": true},\n"
                      "  {\"action\": \"EndReverse\", \"exhausted\": true}\n"
                      "]\n");
  ckpt_text_free(text);
  OK(ckpt_chain_from_json(GRAPH, strlen(GRAPH), 1, NULL, &graph));
  other = the_plan(graph, CKPT_STRATEGY_STORE_ALL);
  refused(ckpt_plan_to_schedule_json(other, &text), CKPT_ERROR_UNSUPPORTED, "no chain");
  refused(ckpt_plan_to_schedule_json(NULL, &text), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  OK(ckpt_schedule_revolve(3, 1, &loop));
  OK(ckpt_schedule_to_json(loop, &text));
  assert_non_null(strstr(text, "{\"action\": \"Copy\", \"n\": 0, \"from_storage\": \"RAM\", \"to_storage\": \"WORK\"}"));
  ckpt_text_free(text);
  ckpt_schedule_destroy(loop);
  OK(ckpt_schedule_revolve(3, 1, &loop));
  OK(ckpt_schedule_next(loop, &action));
  OK(ckpt_schedule_next(loop, &action));
  OK(ckpt_schedule_next(loop, &action));
  refused(ckpt_schedule_to_json(loop, &text), CKPT_ERROR_STATE, "has been begun");
  ckpt_schedule_destroy(loop);
  refused(ckpt_schedule_to_json(NULL, &text), CKPT_ERROR_INVALID_ARGUMENT, "schedule is NULL");
  ckpt_plan_destroy(other);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(graph);
  ckpt_chain_destroy(chain);
}

static ckpt_status forward(void *user, ckpt_frame *f) {
  float *slot = ckpt_frame_slot(f, 0), *out = ckpt_frame_output(f, 0);
  (void)user;
  ckpt_frame_input(f, 0);
  if (ckpt_frame_needs(f, 0)) memset(slot, 0, 1000);
  if (ckpt_frame_needs_output(f, 0)) memset(out, 0, 256);
  return CKPT_OK;
}

static ckpt_status backward(void *user, ckpt_frame *f) {
  int accumulate = 0;
  float *grad = ckpt_frame_input_grad(f, 0, &accumulate);
  (void)user;
  if (grad != NULL) memset(grad, 0, 256);
  return CKPT_OK;
}

static uint32_t count(const char *text, const char *part) {
  uint32_t n = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part)) ++n;
  return n;
}

/* A step under every_segment: two first runs, two recomputations, two backwards. */
static void a_step(ckpt_tape *tape, const ckpt_segment *segment) {
  static float x[64];
  ckpt_input_desc input = CKPT_INPUT_DESC_INIT;
  ckpt_call call = CKPT_CALL_INIT;
  ckpt_buffer boundary = 0;
  int i;
  input.data = x;
  input.bytes = sizeof x;
  OK(ckpt_tape_begin(tape, 7, 0));
  OK(ckpt_tape_input(tape, &input, &boundary));
  for (i = 0; i < 2; ++i) {
    call.input_count = 1;
    call.inputs = &boundary;
    OK(ckpt_segment_run(tape, segment, &call, &boundary));
  }
  OK(ckpt_backward(tape, &boundary, NULL, 1, 0));
}

static void traces(void **state) {
  ckpt_slot slot;
  ckpt_output output;
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT;
  ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT;
  ckpt_device *device = NULL;
  ckpt_arena *arena = NULL;
  ckpt_tape *tape = NULL;
  ckpt_segment *segment = NULL;
  ckpt_trace *trace = NULL, *small = NULL, *none = NULL;
  ckpt_chain *chain = NULL;
  char *text = NULL, number[64];
  ckpt_tape_stats stats;
  (void)state;
  memset(&slot, 0, sizeof slot);
  memset(&output, 0, sizeof output);
  slot.name = "s";
  slot.bytes = 1000;
  output.name = "o";
  output.bytes = 256;
  desc.name = "layer";
  desc.forward = forward;
  desc.backward = backward;
  desc.slots = &slot;
  desc.outputs = &output;
  desc.slot_count = desc.output_count = desc.input_count = 1;
  OK(ckpt_segment_create(&desc, &segment));
  OK(ckpt_device_open("cpu", &device));
  arena_desc.capacity_bytes = 1 << 20;
  OK(ckpt_arena_create(device, &arena_desc, &arena));
  tape_desc.arena = arena;
  tape_desc.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  OK(ckpt_tape_create(&tape_desc, &tape));
  a_step(tape, segment);
  OK(ckpt_trace_create(1000, &trace));
  OK(ckpt_trace_create(3, &small));
  OK(ckpt_trace_attach(trace, tape));
  a_step(tape, segment);
  OK(ckpt_tape_chain(tape, 7, &chain));
  OK(ckpt_trace_to_json(trace, chain, &text));
  assert_int_equal(count(text, "\"name\": \"layer\", \"cat\": \"forward\", \"ph\": \"X\""), 2);
  assert_int_equal(count(text, "\"name\": \"layer\", \"cat\": \"recompute\", \"ph\": \"X\""), 2);
  assert_int_equal(count(text, "\"name\": \"layer\", \"cat\": \"backward\", \"ph\": \"X\""), 2);
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  OK(ckpt_tape_get_stats(tape, &stats));
  snprintf(number, sizeof number, "\"args\": {\"bytes\": %lu}", (unsigned long)stats.peak_measured_bytes);
  assert_non_null(strstr(text, number));
  assert_null(strstr(text, "events_lost"));
  ckpt_text_free(text);
  OK(ckpt_trace_attach(small, tape));
  a_step(tape, segment);
  OK(ckpt_trace_to_json(small, NULL, &text));
  assert_non_null(strstr(text, "\"name\": \"segment 0\""));
  assert_non_null(strstr(text, "\"otherData\": {\"events_lost\": "));
  ckpt_text_free(text);
  OK(ckpt_trace_clear(trace));
  OK(ckpt_trace_to_json(trace, NULL, &text));
  assert_int_equal(count(text, "\"ph\": \"X\""), 0);
  ckpt_text_free(text);
  refused(ckpt_trace_create(0, &none), CKPT_ERROR_INVALID_ARGUMENT, "event_limit is 0, expected 1 to 2^28");
  assert_null(none);
  refused(ckpt_trace_create(1, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_trace is NULL");
  refused(ckpt_trace_attach(NULL, tape), CKPT_ERROR_INVALID_ARGUMENT, "trace is NULL");
  refused(ckpt_trace_attach(small, NULL), CKPT_ERROR_INVALID_ARGUMENT, "tape is NULL");
  refused(ckpt_trace_clear(NULL), CKPT_ERROR_INVALID_ARGUMENT, "trace is NULL");
  refused(ckpt_trace_to_json(NULL, NULL, &text), CKPT_ERROR_INVALID_ARGUMENT, "trace is NULL");
  refused(ckpt_trace_to_json(small, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_text is NULL");
  refused(ckpt_plan_to_trace_json(NULL, &text), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  OK(ckpt_tape_set_trace(tape, NULL, NULL));
  ckpt_trace_destroy(trace);
  ckpt_trace_destroy(small);
  ckpt_trace_destroy(NULL);
  ckpt_chain_destroy(chain);
  ckpt_tape_destroy(tape);
  ckpt_segment_destroy(segment);
  ckpt_arena_destroy(arena);
  ckpt_device_close(device);
}

static void trace_of_a_plan(void **state) {
  ckpt_chain *chain = the_chain();
  ckpt_plan *plan = the_plan(chain, CKPT_STRATEGY_EVERY_SEGMENT);
  char *text = NULL;
  (void)state;
  OK(ckpt_plan_to_trace_json(plan, &text));
  assert_non_null(strstr(text, "{\"name\": \"a\", \"cat\": \"forward\", \"ph\": \"X\", \"ts\": 0, \"dur\": 1e+06, \"pid\": 1, \"tid\": 1, \"args\": {\"segment\": 0, \"recompute\": false}}"));
  assert_non_null(strstr(text, "{\"name\": \"b\", \"cat\": \"recompute\", \"ph\": \"X\", \"ts\": 2e+06"));
  ckpt_text_free(text);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains), cmocka_unit_test(names_that_are_no_text), cmocka_unit_test(plans),
      cmocka_unit_test(schedules), cmocka_unit_test(traces), cmocka_unit_test(trace_of_a_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
