/* plan.h through the shared library, from C99: every function, every error. */
#include "../support/abi_plans.h"

static ckpt_action *actions_of(const ckpt_plan *plan, uint32_t *count) {
  ckpt_action *actions;
  *count = summary_of(plan).action_count;
  actions = calloc(*count + 1, sizeof *actions);
  assert_non_null(actions);
  OK(ckpt_plan_get_actions(plan, 0, *count, sizeof *actions, actions));
  return actions;
}

/* The verifier, which shares no code with planner or simulator, finds the same. */
static void check_verified(const ckpt_chain *chain, const ckpt_plan *plan) {
  const ckpt_plan_summary s = summary_of(plan);
  uint32_t count = 0, k, backwards = 0;
  ckpt_action *actions = actions_of(plan, &count);
  size_t peak = 0;
  double seconds = 0, again = 0;
  OK(ckpt_program_verify(chain, actions, count, sizeof *actions, &peak, &seconds, &again));
  assert_int_equal(peak, s.peak_bytes);
  assert_true(s.arena_bytes >= s.peak_bytes);
  assert_true(s.held_bytes <= s.peak_bytes);
  assert_true(seconds == s.forward_seconds + s.backward_seconds + s.recompute_seconds);
  assert_true(again == s.recompute_seconds);
  OK(ckpt_program_verify(chain, actions, count, sizeof *actions, NULL, NULL, NULL));
  for (k = 0; k < count; ++k)
    if (actions[k].kind == CKPT_ACTION_BACKWARD) {
      ++backwards;
      assert_int_equal(actions[k].index, ckpt_chain_segment_count(chain) - backwards);
    }
  assert_int_equal(backwards, ckpt_chain_segment_count(chain));
  free(actions);
}

static void strategy_names(void **state) {
  uint32_t strategy = 9, k = 9;
  (void)state;
  OK(ckpt_strategy_parse("uniform:4", &strategy, &k));
  assert_int_equal(strategy, CKPT_STRATEGY_UNIFORM);
  assert_int_equal(k, 4);
  OK(ckpt_strategy_parse("auto", &strategy, &k));
  assert_int_equal(strategy, CKPT_STRATEGY_AUTO);
  assert_int_equal(k, 0);
  assert_string_equal(ckpt_strategy_name(CKPT_STRATEGY_EVERY_SEGMENT), "every_segment");
  assert_string_equal(ckpt_strategy_name(77), "unknown");
  refused(ckpt_strategy_parse("best", &strategy, &k), CKPT_ERROR_NOT_FOUND, "'best'");
  refused(ckpt_strategy_parse("block", &strategy, &k), CKPT_ERROR_INVALID_ARGUMENT, "block:4");
  refused(ckpt_strategy_parse("sqrt:2", &strategy, &k), CKPT_ERROR_INVALID_ARGUMENT, "takes no number");
  refused(ckpt_strategy_parse(NULL, &strategy, &k), CKPT_ERROR_INVALID_ARGUMENT, "text is NULL");
  refused(ckpt_strategy_parse("auto", NULL, &k), CKPT_ERROR_INVALID_ARGUMENT, "out_strategy is NULL");
  refused(ckpt_strategy_parse("auto", &strategy, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_k is NULL");
}

static void chains(void **state) {
  ckpt_chain *a = chain_of(3), *b = chain_of(3), *c = chain_of(4), *none = a;
  struct builder bad;
  (void)state;
  assert_int_equal(ckpt_chain_segment_count(a), 3);
  assert_int_equal(ckpt_chain_segment_count(NULL), 0);
  assert_true(ckpt_chain_hash(a) == ckpt_chain_hash(b));
  assert_true(ckpt_chain_hash(a) != ckpt_chain_hash(c));
  assert_true(ckpt_chain_hash(NULL) == 0);
  ckpt_chain_destroy(a), ckpt_chain_destroy(b), ckpt_chain_destroy(c), ckpt_chain_destroy(NULL);
  build(&bad, 2);
  refused(ckpt_chain_create(&bad.desc, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_chain is NULL");
  refused(ckpt_chain_create(NULL, &none), CKPT_ERROR_INVALID_ARGUMENT, "desc is NULL");
  assert_null(none);
  bad.segments[1].forward_seconds = 2;
  none = a;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_INVALID_ARGUMENT, "segment 'block': the slots' cost_seconds are 3 together");
  assert_null(none);
  build(&bad, 2);
  bad.desc.segments = NULL;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_INVALID_ARGUMENT, "desc.segments is NULL");
  build(&bad, 2);
  bad.desc.segment_count = 0;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_INVALID_ARGUMENT, "segment_count is 0");
  build(&bad, 2);
  bad.segments[0].slots = NULL;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_INVALID_ARGUMENT, "slots is NULL and slot_count is 2");
  build(&bad, 2);
  bad.segments[1].outputs = NULL;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_INVALID_ARGUMENT, "outputs is NULL and output_count is 1");
  build(&bad, 2);
  bad.segments[1].slot_count = 257;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_INVALID_ARGUMENT, "slot_count is 257");
  build(&bad, 2);
  bad.slots[0].bytes = SIZE_MAX;
  refused(ckpt_chain_create(&bad.desc, &none), CKPT_ERROR_OVERFLOW, "slot 'a': bytes is");
}

static void structs_of_other_sizes(void **state) {
  struct longer_segment { ckpt_chain_segment known; uint64_t unknown; } segments[2];
  struct longer_slot { ckpt_slot known; uint64_t unknown; } slots[2];
  struct longer_desc { ckpt_chain_desc known; uint64_t unknown; } desc;
  struct builder b;
  ckpt_chain *same = chain_of(2), *chain = NULL;
  uint32_t k;
  (void)state;
  build(&b, 2);
  memset(segments, 0, sizeof segments);
  memset(slots, 0, sizeof slots);
  memset(&desc, 0, sizeof desc);
  for (k = 0; k < 2; ++k) {
    slots[k].known = b.slots[k];
    segments[k].known = b.segments[k];
    segments[k].known.slots = &slots[0].known;
  }
  desc.known = b.desc;
  desc.known.struct_size = sizeof desc;
  desc.known.segments = &segments[0].known;
  desc.known.segment_size = sizeof segments[0];
  desc.known.slot_size = sizeof slots[0];
  OK(ckpt_chain_create(&desc.known, &chain));
  assert_true(ckpt_chain_hash(chain) == ckpt_chain_hash(same));
  ckpt_chain_destroy(chain);
  ckpt_chain_destroy(same);
  slots[1].unknown = 1;
  refused(ckpt_chain_create(&desc.known, &chain), CKPT_ERROR_STRUCT_SIZE, "desc.segments[0].slots[1]");
  slots[1].unknown = 0;
  segments[1].unknown = 1;
  refused(ckpt_chain_create(&desc.known, &chain), CKPT_ERROR_STRUCT_SIZE, "desc.segments[1]");
  segments[1].unknown = 0;
  desc.unknown = 1;
  refused(ckpt_chain_create(&desc.known, &chain), CKPT_ERROR_STRUCT_SIZE, "desc has");
  b.desc.struct_size = 0;
  refused(ckpt_chain_create(&b.desc, &chain), CKPT_ERROR_STRUCT_SIZE, "desc is 0 bytes");
  build(&b, 2);
  b.desc.segment_size = 8;
  refused(ckpt_chain_create(&b.desc, &chain), CKPT_ERROR_STRUCT_SIZE, "desc.segments[0] is 8 bytes");
  build(&b, 2);
  b.desc.slot_size = 0;
  refused(ckpt_chain_create(&b.desc, &chain), CKPT_ERROR_STRUCT_SIZE, "desc.segments[0].slots[0] is 0 bytes");
  build(&b, 2);
  b.desc.output_size = 1;
  refused(ckpt_chain_create(&b.desc, &chain), CKPT_ERROR_STRUCT_SIZE, "desc.segments[0].outputs[0] is 1 bytes");
}

static void every_strategy(void **state) {
  static const char *const keep[] = {"b"};
  static const struct { uint32_t strategy, k, forwards; double again; } want[] = {
      {CKPT_STRATEGY_AUTO, 0, 0, 0},
      {CKPT_STRATEGY_STORE_ALL, 0, 0, 0},
      {CKPT_STRATEGY_EVERY_SEGMENT, 0, 10, 30},
      {CKPT_STRATEGY_SQRT, 0, 10, 30 + 7 * 4},
      {CKPT_STRATEGY_UNIFORM, 5, 10, 30 + 8 * 4},
      {CKPT_STRATEGY_BLOCK, 3, 3, 9},
      {CKPT_STRATEGY_FULL, 0, 55, 45 * 7 + 30},
      {CKPT_STRATEGY_SELECTIVE, 0, 10, 10},
  };
  ckpt_chain *chain = chain_of(10);
  size_t k;
  (void)state;
  for (k = 0; k < sizeof want / sizeof want[0]; ++k) {
    ckpt_plan_desc d = request(want[k].strategy, want[k].k, 0);
    ckpt_plan *plan = NULL;
    ckpt_plan_summary s;
    size_t minimum = 0;
    if (want[k].strategy == CKPT_STRATEGY_SELECTIVE) {
      d.keep_patterns = keep;
      d.keep_pattern_count = 1;
    }
    OK(ckpt_plan_create(chain, &d, &plan));
    s = summary_of(plan);
    assert_int_equal(s.strategy, want[k].strategy == CKPT_STRATEGY_AUTO ? CKPT_STRATEGY_STORE_ALL : want[k].strategy);
    assert_int_equal(s.k, want[k].k);
    assert_int_equal(s.recompute_count, want[k].forwards);
    assert_true(s.recompute_seconds == want[k].again);
    assert_true(s.forward_seconds == 70);
    assert_true(s.backward_seconds == 100);
    assert_int_equal(s.budget_bytes, 0);
    assert_true(s.hash != 0);
    check_verified(chain, plan);
    ckpt_plan_destroy(plan);

    OK(ckpt_plan_minimum_budget(chain, &d, &minimum));
    if (want[k].strategy != CKPT_STRATEGY_AUTO) assert_int_equal(minimum, s.arena_bytes);
    d.budget_bytes = minimum;
    OK(ckpt_plan_create(chain, &d, &plan));
    assert_int_equal(summary_of(plan).budget_bytes, minimum);
    assert_true(summary_of(plan).arena_bytes <= minimum);
    check_verified(chain, plan);
    ckpt_plan_destroy(plan);
    d.budget_bytes = minimum - 1;
    assert_int_equal(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_BUDGET);
    assert_null(plan);
    says_number(minimum);
    says_number(minimum - 1);
  }
  ckpt_chain_destroy(chain);
}

/* A smaller budget never predicts less time or a higher peak, and ample memory runs nothing again. */
static void auto_over_budgets(void **state) {
  ckpt_chain *chain = chain_of(12);
  ckpt_plan_desc d = request(CKPT_STRATEGY_AUTO, 0, 0);
  size_t minimum = 0, budget, need, peak = SIZE_MAX;
  double again = -1;
  ckpt_plan *plan = NULL;
  (void)state;
  OK(ckpt_plan_minimum_budget(chain, &d, &minimum));
  OK(ckpt_plan_create(chain, &d, &plan));
  need = summary_of(plan).arena_bytes;
  ckpt_plan_destroy(plan);
  assert_true(minimum < need / 2);
  for (budget = need + 100; budget >= minimum; budget -= 97) {
    ckpt_plan_summary s;
    d.budget_bytes = budget;
    OK(ckpt_plan_create(chain, &d, &plan));
    s = summary_of(plan);
    assert_true(s.arena_bytes <= budget);
    assert_true(s.recompute_seconds >= again);
    assert_true(s.peak_bytes <= peak);
    if (budget >= need) assert_int_equal(s.recompute_count, 0);
    else assert_true(s.recompute_count > 0);
    again = s.recompute_seconds;
    peak = s.peak_bytes;
    check_verified(chain, plan);
    ckpt_plan_destroy(plan);
  }
  /* One byte short: one slot of one segment, the cheaper of both. */
  d.budget_bytes = need - 1;
  OK(ckpt_plan_create(chain, &d, &plan));
  assert_true(summary_of(plan).recompute_seconds == 1);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

static void in_flight(void **state) {
  ckpt_chain *chain = chain_of(5);
  ckpt_plan_desc d = request(CKPT_STRATEGY_STORE_ALL, 0, 0);
  ckpt_plan *one = NULL, *four = NULL;
  (void)state;
  OK(ckpt_plan_create(chain, &d, &one));
  d.in_flight_count = 4;
  OK(ckpt_plan_create(chain, &d, &four));
  assert_int_equal(summary_of(four).held_bytes, summary_of(one).held_bytes);
  assert_true(summary_of(four).arena_bytes >= 3 * summary_of(one).held_bytes + summary_of(one).peak_bytes);
  assert_true(summary_of(four).hash == summary_of(one).hash);
  ckpt_plan_destroy(one);
  ckpt_plan_destroy(four);
  d.in_flight_count = 1000000;
  refused(ckpt_plan_create(chain, &d, &one), CKPT_ERROR_INVALID_ARGUMENT, "in_flight_count is 1000000");
  ckpt_chain_destroy(chain);
}

static void refused_requests(void **state) {
  static const char *const a[] = {"a"}, *const block[] = {"block/*"}, *const nothing[] = {"zz*"}, *const null[] = {NULL};
  ckpt_chain *chain = chain_of(3);
  ckpt_plan_desc d = request(CKPT_STRATEGY_AUTO, 0, 0);
  ckpt_plan *plan = (ckpt_plan *)&d;
  size_t bytes = 7;
  (void)state;
  refused(ckpt_plan_create(NULL, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  assert_null(plan);
  refused(ckpt_plan_create(chain, NULL, &plan), CKPT_ERROR_INVALID_ARGUMENT, "desc is NULL");
  refused(ckpt_plan_create(chain, &d, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_plan is NULL");
  refused(ckpt_plan_minimum_budget(NULL, &d, &bytes), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  assert_int_equal(bytes, 0);
  refused(ckpt_plan_minimum_budget(chain, NULL, &bytes), CKPT_ERROR_INVALID_ARGUMENT, "desc is NULL");
  refused(ckpt_plan_minimum_budget(chain, &d, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_bytes is NULL");
  d.struct_size = 12;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_STRUCT_SIZE, "desc is 12 bytes");
  d = request(99, 0, 0);
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "strategy is 99");
  d = request(CKPT_STRATEGY_UNIFORM, 0, 0);
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "k is 0");
  d = request(CKPT_STRATEGY_SQRT, 4, 0);
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "k is 4");
  d = request(CKPT_STRATEGY_SELECTIVE, 0, 0);
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "without a pattern");
  d.keep_pattern_count = 1;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "desc.keep_patterns is NULL and desc.keep_pattern_count is 1");
  d.keep_patterns = null;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "desc.keep_patterns[0] is NULL");
  d.keep_patterns = nothing;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_NOT_FOUND, "'zz*'");
  refused(ckpt_plan_minimum_budget(chain, &d, &bytes), CKPT_ERROR_NOT_FOUND, "'zz*'");
  d.keep_patterns = a;
  d.recompute_patterns = block;
  d.recompute_pattern_count = 1;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_CONFLICT, "slot 'a' of segment 'block'");
  d.strategy = CKPT_STRATEGY_AUTO;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_CONFLICT, "slot 'a' of segment 'block'");
  d.strategy = CKPT_STRATEGY_FULL;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "expected none with strategy full");
  assert_null(plan);
  ckpt_chain_destroy(chain);
}

static void a_program_too_long_is_refused_at_once(void **state) {
  static ckpt_chain_segment segments[50000];
  struct builder b;
  ckpt_chain *chain = NULL;
  ckpt_plan *plan = NULL;
  ckpt_plan_desc d = request(CKPT_STRATEGY_FULL, 0, 0);
  size_t k;
  (void)state;
  build(&b, 1);
  for (k = 0; k < sizeof segments / sizeof segments[0]; ++k) segments[k] = b.segments[0];
  b.desc.segments = segments;
  b.desc.segment_count = sizeof segments / sizeof segments[0];
  OK(ckpt_chain_create(&b.desc, &chain));
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_OVERFLOW, "2^31");
  d.strategy = CKPT_STRATEGY_SQRT;
  OK(ckpt_plan_create(chain, &d, &plan));
  assert_int_equal(summary_of(plan).recompute_count, 50000);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

static void actions_in_parts_and_strides(void **state) {
  struct longer { ckpt_action known; uint64_t own; } wide[3];
  ckpt_chain *chain = chain_of(4);
  ckpt_plan_desc d = request(CKPT_STRATEGY_EVERY_SEGMENT, 0, 0);
  ckpt_plan *plan = NULL;
  uint32_t count = 0, k;
  ckpt_action *all, one;
  (void)state;
  OK(ckpt_plan_create(chain, &d, &plan));
  ckpt_chain_destroy(chain); /* the plan does not need it */
  all = actions_of(plan, &count);
  assert_true(count > 8);
  assert_int_equal(all[0].kind, CKPT_ACTION_FORWARD);
  assert_int_equal(all[0].index, 0);
  assert_int_equal(all[0].slots[0], 0);
  assert_int_equal(all[0].outputs[0], 1);
  assert_int_equal(all[count - 1].kind, CKPT_ACTION_BACKWARD);
  for (k = 0; k < 3; ++k) wide[k].own = 40 + k;
  OK(ckpt_plan_get_actions(plan, 2, 3, sizeof wide[0], &wide[0].known));
  for (k = 0; k < 3; ++k) {
    assert_memory_equal(&wide[k].known, &all[2 + k], sizeof(ckpt_action));
    assert_int_equal(wide[k].own, 40 + k);
  }
  OK(ckpt_plan_get_actions(plan, count, 0, sizeof one, NULL));
  refused(ckpt_plan_get_actions(plan, count, 1, sizeof one, &one), CKPT_ERROR_INVALID_ARGUMENT, "count is 1");
  refused(ckpt_plan_get_actions(plan, UINT32_MAX, 1, sizeof one, &one), CKPT_ERROR_INVALID_ARGUMENT, "first is 4294967295");
  refused(ckpt_plan_get_actions(plan, 1, UINT32_MAX, sizeof one, &one), CKPT_ERROR_INVALID_ARGUMENT, "count is 4294967295");
  refused(ckpt_plan_get_actions(plan, 0, 1, 8, &one), CKPT_ERROR_STRUCT_SIZE, "action_size is 8");
  refused(ckpt_plan_get_actions(plan, 0, 1, sizeof one, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_actions is NULL");
  refused(ckpt_plan_get_actions(NULL, 0, 1, sizeof one, &one), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  free(all);
  ckpt_plan_destroy(plan);
  ckpt_plan_destroy(NULL);
}

static void summaries_of_other_sizes(void **state) {
  struct longer { ckpt_plan_summary known; uint64_t own; } longer;
  ckpt_chain *chain = chain_of(2);
  ckpt_plan_desc d = request(CKPT_STRATEGY_STORE_ALL, 0, 12345);
  ckpt_plan *plan = NULL;
  (void)state;
  OK(ckpt_plan_create(chain, &d, &plan));
  memset(&longer, 0, sizeof longer);
  longer.known.struct_size = sizeof longer;
  longer.own = 5;
  OK(ckpt_plan_get_summary(plan, &longer.known));
  assert_int_equal(longer.known.struct_size, sizeof longer);
  assert_int_equal(longer.known.budget_bytes, 12345);
  assert_int_equal(longer.own, 5);
  longer.known.struct_size = 0;
  refused(ckpt_plan_get_summary(plan, &longer.known), CKPT_ERROR_STRUCT_SIZE, "out_summary is 0 bytes");
  refused(ckpt_plan_get_summary(plan, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_summary is NULL");
  longer.known.struct_size = sizeof longer.known;
  refused(ckpt_plan_get_summary(NULL, &longer.known), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

static ckpt_action action(uint32_t kind, uint32_t index, uint64_t slots, uint64_t outputs) {
  ckpt_action a;
  memset(&a, 0, sizeof a);
  a.kind = kind;
  a.index = index;
  a.slots[0] = slots;
  a.outputs[0] = outputs;
  return a;
}

/* Two segments by hand, their input (50 bytes) in the arena: bytes at each action, seconds, and the ways to get it wrong. */
static void programs_by_hand(void **state) {
  const ckpt_chain_input input = {50, 0, CKPT_MEMORY_ARENA, CKPT_GRAD_NONE};
  struct builder b;
  ckpt_chain *chain = NULL;
  ckpt_action p[8];
  size_t peak = 0;
  double seconds = 0, again = 0;
  (void)state;
  build(&b, 2);
  b.desc.inputs = &input;
  b.desc.input_count = 1;
  OK(ckpt_chain_create(&b.desc, &chain));
  p[0] = action(CKPT_ACTION_FORWARD, 0, 2, 1);  /* 50 + 400 + 50, then a goes: 400 */
  p[1] = action(CKPT_ACTION_FORWARD, 1, 3, 1);  /* 400 + 450 */
  p[2] = action(CKPT_ACTION_FREE, 2, 0, 0);     /* 800 */
  p[3] = action(CKPT_ACTION_BACKWARD, 1, 0, 0); /* + 50 for the gradient of boundary 1; then 400 and that */
  p[4] = action(CKPT_ACTION_FREE, 1, 0, 0);
  p[5] = action(CKPT_ACTION_FORWARD, 0, 3, 0);  /* a again, 1 s */
  p[6] = action(CKPT_ACTION_BACKWARD, 0, 0, 0);
  OK(ckpt_program_verify(chain, p, 7, sizeof p[0], &peak, &seconds, &again));
  assert_int_equal(peak, 850);
  assert_true(again == 1);
  assert_true(seconds == 2 * 7 + 1 + 2 * 10);

  peak = 1;
  seconds = again = 1;
  refused(ckpt_program_verify(chain, p, 6, sizeof p[0], &peak, &seconds, &again), CKPT_ERROR_INVALID_PLAN, "without backward 0");
  assert_int_equal(peak, 0);
  assert_true(seconds == 0 && again == 0);
  refused(ckpt_program_verify(chain, p + 1, 6, sizeof p[0], &peak, &seconds, &again), CKPT_ERROR_INVALID_PLAN, "action 0: forward 1 before the first run");
  p[5] = action(CKPT_ACTION_DROP, 0, 2, 0);
  refused(ckpt_program_verify(chain, p, 7, sizeof p[0], &peak, &seconds, &again), CKPT_ERROR_INVALID_PLAN, "action 6: backward 0");
  p[5] = action(9, 0, 0, 0);
  refused(ckpt_program_verify(chain, p, 7, sizeof p[0], &peak, &seconds, &again), CKPT_ERROR_INVALID_PLAN, "action 5: kind is 9");
  p[5] = action(CKPT_ACTION_FORWARD, 0, 4, 0);
  refused(ckpt_program_verify(chain, p, 7, sizeof p[0], &peak, &seconds, &again), CKPT_ERROR_INVALID_PLAN, "action 5: a slot that segment 'block'");
  refused(ckpt_program_verify(chain, p, 7, 4, &peak, &seconds, &again), CKPT_ERROR_STRUCT_SIZE, "actions[0] is 4 bytes");
  refused(ckpt_program_verify(chain, NULL, 7, sizeof p[0], NULL, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT, "actions is NULL");
  refused(ckpt_program_verify(NULL, p, 7, sizeof p[0], NULL, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  refused(ckpt_program_verify(chain, NULL, 0, sizeof p[0], NULL, NULL, NULL), CKPT_ERROR_INVALID_PLAN, "before the first run of segment 0");
  ckpt_chain_destroy(chain);
}

/* Residual blocks whose output takes over its input: the program has a free behind each forward, and verifies. */
static void outputs_over_inputs(void **state) {
  const uint32_t ignores = CKPT_INPUT_BACKWARD_IGNORES;
  struct builder b;
  ckpt_chain *chain = NULL, *plain = NULL;
  ckpt_plan *plan = NULL, *apart = NULL;
  ckpt_plan_desc d = request(CKPT_STRATEGY_STORE_ALL, 0, 0);
  uint32_t k;
  (void)state;
  build(&b, 6);
  for (k = 0; k < 6; ++k) {
    b.segments[k].input_count = 1;
    b.segments[k].input_flags = &ignores;
  }
  b.output.bytes = 5000;
  OK(ckpt_chain_create(&b.desc, &plain));
  b.output.in_place_input = 1;
  OK(ckpt_chain_create(&b.desc, &chain));
  OK(ckpt_plan_create(plain, &d, &apart));
  OK(ckpt_plan_create(chain, &d, &plan));
  assert_true(summary_of(plan).peak_bytes < summary_of(apart).peak_bytes);
  check_verified(chain, plan);
  check_verified(plain, apart);
  ckpt_plan_destroy(plan), ckpt_plan_destroy(apart);
  ckpt_chain_destroy(chain), ckpt_chain_destroy(plain);
}

/* Encoder, bottleneck, decoder with skip connections, sizes from 1 KiB to 64 MiB. */
static void u_net(void **state) {
  static const uint32_t in4[] = {4, 3}, in5[] = {5, 2}, in6[] = {6, 1};
  static const size_t bytes[] = {64u << 20, 16u << 20, 1u << 20, 1024, 1u << 20, 16u << 20, 64u << 20};
  struct builder b;
  ckpt_output outputs[7];
  ckpt_slot slots[7];
  ckpt_chain *chain = NULL;
  uint32_t k;
  size_t budget;
  ckpt_plan_desc d = request(CKPT_STRATEGY_AUTO, 0, 0);
  (void)state;
  build(&b, 7);
  for (k = 0; k < 7; ++k) {
    outputs[k] = b.output;
    outputs[k].bytes = bytes[k];
    slots[k] = b.slots[0];
    slots[k].bytes = bytes[k] * 3;
    b.segments[k].outputs = &outputs[k];
    b.segments[k].slots = &slots[k];
    b.segments[k].slot_count = 1;
  }
  b.segments[4].inputs = in4;
  b.segments[5].inputs = in5;
  b.segments[6].inputs = in6;
  b.segments[4].input_count = b.segments[5].input_count = b.segments[6].input_count = 2;
  b.desc.alignment_bytes = 0;
  OK(ckpt_chain_create(&b.desc, &chain));
  for (k = CKPT_STRATEGY_AUTO; k <= CKPT_STRATEGY_FULL; ++k) {
    ckpt_plan *plan = NULL;
    d.strategy = k;
    d.k = k == CKPT_STRATEGY_UNIFORM || k == CKPT_STRATEGY_BLOCK ? 3 : 0;
    d.budget_bytes = 0;
    OK(ckpt_plan_create(chain, &d, &plan));
    check_verified(chain, plan);
    ckpt_plan_destroy(plan);
    OK(ckpt_plan_minimum_budget(chain, &d, &budget));
    assert_int_equal(budget % 256, 0);
    d.budget_bytes = budget + 255; /* rounded down */
    OK(ckpt_plan_create(chain, &d, &plan));
    check_verified(chain, plan);
    ckpt_plan_destroy(plan);
    d.budget_bytes = budget - 1;
    assert_int_equal(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_BUDGET);
  }
  ckpt_chain_destroy(chain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strategy_names),
      cmocka_unit_test(chains),
      cmocka_unit_test(structs_of_other_sizes),
      cmocka_unit_test(every_strategy),
      cmocka_unit_test(auto_over_budgets),
      cmocka_unit_test(in_flight),
      cmocka_unit_test(refused_requests),
      cmocka_unit_test(a_program_too_long_is_refused_at_once),
      cmocka_unit_test(actions_in_parts_and_strides),
      cmocka_unit_test(summaries_of_other_sizes),
      cmocka_unit_test(programs_by_hand),
      cmocka_unit_test(outputs_over_inputs),
      cmocka_unit_test(u_net),
  };
  return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
