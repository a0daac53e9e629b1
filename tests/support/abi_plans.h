/* What the C tests of chains and plans share: checks that name the text of an error, a chain of equal segments. */
#ifndef CKPT_TESTS_ABI_PLANS_H
#define CKPT_TESTS_ABI_PLANS_H

#include "ckpt/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK(call)                                                                     \
  do {                                                                               \
    if ((call) != CKPT_OK) fail_msg("%s: %s", #call, ckpt_last_error());             \
  } while (0)

static inline void refused(ckpt_status got, ckpt_status want, const char *part) {
  assert_int_equal(got, want);
  if (strstr(ckpt_last_error(), part) == NULL) fail_msg("\"%s\" does not say \"%s\"", ckpt_last_error(), part);
}

static inline void says_number(size_t number) {
  char text[32];
  snprintf(text, sizeof text, "%lu", (unsigned long)number);
  if (strstr(ckpt_last_error(), text) == NULL) fail_msg("\"%s\" does not say %s", ckpt_last_error(), text);
}

enum { MOST = 64 };

/* n equal segments: slots "a" (100 bytes, 1 s) and "b" (300 bytes, 2 s), an output of 50 bytes in 4 s; backward 10 s. */
struct builder {
  ckpt_chain_desc desc;
  ckpt_chain_segment segments[MOST];
  ckpt_slot slots[2];
  ckpt_output output;
};

static inline void build(struct builder *b, uint32_t n) {
  uint32_t i;
  memset(b, 0, sizeof *b);
  b->slots[0].name = "a", b->slots[0].bytes = 100, b->slots[0].cost_seconds = 1;
  b->slots[1].name = "b", b->slots[1].bytes = 300, b->slots[1].cost_seconds = 2;
  b->output.name = "out";
  b->output.bytes = 50;
  for (i = 0; i < n; ++i) {
    b->segments[i].name = "block";
    b->segments[i].forward_seconds = 7;
    b->segments[i].backward_seconds = 10;
    b->segments[i].slots = b->slots;
    b->segments[i].slot_count = 2;
    b->segments[i].outputs = &b->output;
    b->segments[i].output_count = 1;
  }
  b->desc.struct_size = sizeof b->desc;
  b->desc.segment_size = sizeof(ckpt_chain_segment);
  b->desc.slot_size = sizeof(ckpt_slot);
  b->desc.output_size = sizeof(ckpt_output);
  b->desc.segments = b->segments;
  b->desc.segment_count = n;
  b->desc.alignment_bytes = 1;
}

static inline ckpt_chain *chain_of(uint32_t n) {
  struct builder b;
  ckpt_chain *chain = NULL;
  build(&b, n);
  OK(ckpt_chain_create(&b.desc, &chain));
  return chain;
}

static inline ckpt_plan_desc request(uint32_t strategy, uint32_t k, size_t budget) {
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  d.strategy = strategy;
  d.k = k;
  d.budget_bytes = budget;
  return d;
}

static inline ckpt_plan_summary summary_of(const ckpt_plan *plan) {
  ckpt_plan_summary s;
  memset(&s, 0xEE, sizeof s);
  s.struct_size = sizeof s;
  OK(ckpt_plan_get_summary(plan, &s));
  return s;
}

#endif
