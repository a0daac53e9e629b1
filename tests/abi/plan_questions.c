/* plan.h through the shared library, from C99: classes, places, curves, explanations, plans from actions, patterns with AUTO. */
#include "../support/abi_plans.h"

static ckpt_plan *plan_of(const ckpt_chain *chain, const ckpt_plan_desc *desc) {
  ckpt_plan *plan = NULL;
  OK(ckpt_plan_create(chain, desc, &plan));
  return plan;
}

static void class_names(void **state) {
  static const char *const names[] = {"rotor", "sigma", "sigma+s+w", "sigma+s+w+d"};
  uint32_t c, got;
  (void)state;
  for (c = 1; c <= 4; ++c) {
    OK(ckpt_class_parse(names[c - 1], &got));
    assert_int_equal(got, c);
    assert_string_equal(ckpt_class_name(c), names[c - 1]);
  }
  assert_string_equal(ckpt_class_name(CKPT_CLASS_DEFAULT), "sigma+s+w");
  assert_string_equal(ckpt_class_name(5), "unknown");
  refused(ckpt_class_parse("tau", &got), CKPT_ERROR_NOT_FOUND, "'tau'");
  refused(ckpt_class_parse(NULL, &got), CKPT_ERROR_INVALID_ARGUMENT, "text is NULL");
  refused(ckpt_class_parse("sigma", NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_class is NULL");
}

static void placements_lie_in_the_arena(void **state) {
  ckpt_chain *chain = chain_of(8);
  ckpt_plan_desc d = request(CKPT_STRATEGY_EVERY_SEGMENT, 0, 0);
  ckpt_plan *plan = plan_of(chain, &d);
  const ckpt_plan_summary s = summary_of(plan);
  ckpt_placement *p = calloc(s.placement_count, sizeof *p);
  uint32_t k;
  size_t height = 0, made = 0;
  (void)state;
  assert_true(s.placement_count > 0);
  OK(ckpt_plan_get_placements(plan, 0, s.placement_count, sizeof *p, p));
  for (k = 0; k < s.placement_count; ++k) {
    assert_true(p[k].first_action < p[k].end_action && p[k].end_action <= s.action_count);
    if (p[k].bytes != 0 && p[k].offset + p[k].bytes > height) height = p[k].offset + p[k].bytes;
    made += p[k].what == CKPT_PLACED_SLOT && p[k].is_recompute;
  }
  assert_int_equal(height, s.arena_bytes);
  assert_int_equal(made, 16); /* two slots of each segment */
  refused(ckpt_plan_get_placements(plan, 1, s.placement_count, sizeof *p, p), CKPT_ERROR_INVALID_ARGUMENT, "range of the plan's");
  refused(ckpt_plan_get_placements(plan, 0, 1, 8, p), CKPT_ERROR_STRUCT_SIZE, "placement_size is 8");
  refused(ckpt_plan_get_placements(plan, 0, 1, sizeof *p, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_placements is NULL");
  refused(ckpt_plan_get_placements(NULL, 0, 1, sizeof *p, p), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  free(p);
  ckpt_plan_destroy(plan);
  d.in_flight_count = 2; /* places as it goes */
  plan = plan_of(chain, &d);
  assert_int_equal(summary_of(plan).placement_count, 0);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

static void curve_from_the_smallest_budget(void **state) {
  enum { POINTS = 12 };
  ckpt_chain *chain = chain_of(10);
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  ckpt_curve_point p[POINTS];
  uint32_t count = 0, k;
  size_t least = 0;
  (void)state;
  OK(ckpt_plan_curve(chain, &d, POINTS, sizeof *p, p, &count));
  OK(ckpt_plan_minimum_budget(chain, &d, &least));
  assert_true(count >= 3 && count <= POINTS);
  assert_int_equal(p[0].budget_bytes, least);
  assert_true(p[count - 1].recompute_seconds == 0);
  for (k = 0; k < count; ++k) {
    ckpt_plan_desc at = request(CKPT_STRATEGY_AUTO, 0, p[k].budget_bytes);
    ckpt_plan *plan = plan_of(chain, &at);
    const ckpt_plan_summary s = summary_of(plan);
    assert_true(s.forward_seconds + s.recompute_seconds + s.backward_seconds <= p[k].seconds + 1e-9);
    assert_true(k == 0 || (p[k].budget_bytes > p[k - 1].budget_bytes && p[k].seconds < p[k - 1].seconds));
    ckpt_plan_destroy(plan);
  }
  d.strategy = CKPT_STRATEGY_SQRT;
  OK(ckpt_plan_curve(chain, &d, POINTS, sizeof *p, p, &count));
  assert_int_equal(count, 1);
  refused(ckpt_plan_curve(chain, &d, 0, sizeof *p, p, &count), CKPT_ERROR_INVALID_ARGUMENT, "capacity is 0");
  refused(ckpt_plan_curve(chain, &d, 1, 8, p, &count), CKPT_ERROR_STRUCT_SIZE, "point_size is 8");
  refused(ckpt_plan_curve(chain, &d, 1, sizeof *p, NULL, &count), CKPT_ERROR_INVALID_ARGUMENT, "out_points is NULL");
  refused(ckpt_plan_curve(NULL, &d, 1, sizeof *p, p, &count), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  refused(ckpt_plan_curve(chain, &d, 1, sizeof *p, p, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_count is NULL");
  ckpt_chain_destroy(chain);
}

static void explanations(void **state) {
  ckpt_chain *chain = chain_of(4), *other = chain_of(5);
  ckpt_plan_desc d = request(CKPT_STRATEGY_STORE_ALL, 0, 0);
  ckpt_plan *plan = plan_of(chain, &d);
  ckpt_explanation e[13];
  uint32_t count = 0;
  (void)state;
  OK(ckpt_plan_explain(chain, plan, 0, 0, sizeof *e, NULL, &count));
  assert_int_equal(count, 13);
  OK(ckpt_plan_explain(chain, plan, 0, count, sizeof *e, e, NULL));
  assert_int_equal(e[1].what, CKPT_PLACED_SLOT);
  assert_int_equal(e[1].item, 1);
  assert_int_equal(e[1].kept, 1);
  assert_int_equal(e[1].because, CKPT_BECAUSE_FASTER);
  assert_true(e[1].seconds_change == 2); /* "b" is made again from "a", which is there */
  assert_int_equal(e[1].peak_change, -300);
  refused(ckpt_plan_explain(chain, plan, 13, 1, sizeof *e, e, NULL), CKPT_ERROR_INVALID_ARGUMENT, "range of 13 items");
  refused(ckpt_plan_explain(other, plan, 0, 1, sizeof *e, e, NULL), CKPT_ERROR_INVALID_ARGUMENT, "another chain");
  refused(ckpt_plan_explain(chain, plan, 0, 1, 8, e, NULL), CKPT_ERROR_STRUCT_SIZE, "explanation_size is 8");
  refused(ckpt_plan_explain(chain, NULL, 0, 1, sizeof *e, e, NULL), CKPT_ERROR_INVALID_ARGUMENT, "plan is NULL");
  refused(ckpt_plan_explain(NULL, plan, 0, 1, sizeof *e, e, NULL), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  refused(ckpt_plan_explain(chain, plan, 0, 1, sizeof *e, NULL, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_explanations is NULL");
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(other);
  ckpt_chain_destroy(chain);
}

static void plans_from_actions(void **state) {
  ckpt_chain *chain = chain_of(6);
  ckpt_plan_desc d = request(CKPT_STRATEGY_SQRT, 0, 0);
  ckpt_plan *plan = plan_of(chain, &d), *copy = NULL;
  const ckpt_plan_summary s = summary_of(plan);
  ckpt_action *actions = calloc(s.action_count, sizeof *actions);
  (void)state;
  OK(ckpt_plan_get_actions(plan, 0, s.action_count, sizeof *actions, actions));
  OK(ckpt_plan_from_actions(chain, actions, s.action_count, sizeof *actions, 0, s.arena_bytes, &copy));
  assert_true(ckpt_plan_hash(plan) != 0 && ckpt_plan_hash(plan) == ckpt_plan_hash(copy) && ckpt_plan_hash(plan) == s.hash);
  assert_int_equal(ckpt_plan_hash(NULL), 0);
  assert_int_equal(summary_of(copy).arena_bytes, s.arena_bytes);
  assert_int_equal(summary_of(copy).peak_bytes, s.peak_bytes);
  ckpt_plan_destroy(copy);
  refused(ckpt_plan_from_actions(chain, actions, s.action_count, sizeof *actions, 0, s.arena_bytes - 1, &copy), CKPT_ERROR_BUDGET, "");
  says_number(s.arena_bytes);
  refused(ckpt_plan_from_actions(chain, actions, s.action_count - 1, sizeof *actions, 0, 0, &copy), CKPT_ERROR_INVALID_PLAN, "");
  refused(ckpt_plan_from_actions(chain, actions, s.action_count, sizeof *actions, 100000, 0, &copy), CKPT_ERROR_INVALID_ARGUMENT, "in_flight_count");
  refused(ckpt_plan_from_actions(NULL, actions, 1, sizeof *actions, 0, 0, &copy), CKPT_ERROR_INVALID_ARGUMENT, "chain is NULL");
  refused(ckpt_plan_from_actions(chain, NULL, 1, sizeof *actions, 0, 0, &copy), CKPT_ERROR_INVALID_ARGUMENT, "actions is NULL");
  refused(ckpt_plan_from_actions(chain, actions, 1, sizeof *actions, 0, 0, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_plan is NULL");
  free(actions);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

static void patterns_bind_auto(void **state) {
  static const char *const keep[] = {"a"}, *const again[] = {"b"}, *const none[] = {"nothing"};
  ckpt_chain *chain = chain_of(4);
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  ckpt_plan *plan = NULL;
  (void)state;
  d.recompute_patterns = again;
  d.recompute_pattern_count = 1;
  plan = plan_of(chain, &d); /* no budget: only "b" is made again, 2 s in each segment but the last, whose backward follows at once */
  assert_true(summary_of(plan).recompute_seconds == 6);
  ckpt_plan_destroy(plan);
  d.recompute_pattern_count = 0;
  d.recompute_patterns = NULL;
  d.keep_patterns = keep;
  d.keep_pattern_count = 1;
  {
    size_t bound = 0, free_to_choose = 0;
    OK(ckpt_plan_minimum_budget(chain, &d, &bound));
    d.keep_pattern_count = 0;
    OK(ckpt_plan_minimum_budget(chain, &d, &free_to_choose));
    assert_true(bound > free_to_choose); /* four kept "a" */
  }
  d.keep_patterns = none;
  d.keep_pattern_count = 1;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_NOT_FOUND, "'nothing' matches no slot");
  d.keep_patterns = NULL;
  d.keep_pattern_count = 0;
  d.plan_class = 9;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "plan_class is 9");
  d.plan_class = CKPT_CLASS_ROTOR;
  d.strategy = CKPT_STRATEGY_SQRT;
  refused(ckpt_plan_create(chain, &d, &plan), CKPT_ERROR_INVALID_ARGUMENT, "expected 0 with strategy sqrt");
  ckpt_chain_destroy(chain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(class_names),
      cmocka_unit_test(placements_lie_in_the_arena),
      cmocka_unit_test(curve_from_the_smallest_budget),
      cmocka_unit_test(explanations),
      cmocka_unit_test(plans_from_actions),
      cmocka_unit_test(patterns_bind_auto),
  };
  return cmocka_run_group_tests_name("plan_questions", tests, NULL, NULL);
}
