/* Planning alone: no tape, no arena, nothing runs. For frameworks that own their memory, and for "does it fit?".
 *
 *   plan                          a chain of 12 blocks that this program describes
 *   plan CHAIN.json [BYTES]       a chain of yours (see ckpt/json.h), under a budget
 *
 * Prints time over budget, then the plan for one budget: what it keeps and what it makes again, and why. */
#include <ckpt/ckpt.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 8, SHOWN = 12 };

static int complain(void) {
  fprintf(stderr, "plan: %s\n", ckpt_last_error());
  return 1;
}

/* Twelve blocks: a wide slot that is cheap to make again, a narrow one that is not. */
static char *describe(void) {
  static char text[8192];
  size_t used = 0;
  used += (size_t)snprintf(text, sizeof text, "{\"input\": {\"bytes\": 1048576}, \"segments\": [");
  for (int k = 0; k < 12; ++k)
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "%s{\"name\": \"block%d\", \"forward_seconds\": 0.010, \"backward_seconds\": 0.020, \"output_bytes\": 1048576,"
                             " \"slots\": [{\"name\": \"mix\", \"bytes\": 2097152, \"cost_seconds\": 0.006, \"reads\": []},"
                             " {\"name\": \"gelu\", \"bytes\": 4194304, \"cost_seconds\": 0.001}]}",
                             k > 0 ? ", " : "", k);
  snprintf(text + used, sizeof text - used, "]}");
  return text;
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = NULL;
  size_t used = 0, got = 1;
  while (got > 0) {
    char *more = realloc(text, used + 65537);
    if (more == NULL) break;
    text = more;
    got = fread(text + used, 1, 65536, file);
    used += got;
  }
  const int failed = ferror(file);
  fclose(file);
  if (text != NULL) text[used] = 0;
  if (!failed) return text;
  free(text);
  return NULL;
}

static int print_curve(const ckpt_chain *chain, size_t *middle) {
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  ckpt_curve_point points[POINTS];
  uint32_t count = 0;
  if (ckpt_plan_curve(chain, &desc, POINTS, sizeof *points, points, &count) != CKPT_OK) return complain();
  printf("%14s %12s %14s\n", "budget", "step (s)", "made again (s)");
  for (uint32_t k = 0; k < count; ++k) printf("%14zu %12.4f %14.4f\n", points[k].budget_bytes, points[k].seconds, points[k].recompute_seconds);
  *middle = points[count / 2].budget_bytes;
  return 0;
}

static int print_plan(const ckpt_chain *chain, size_t budget) {
  static const char *const because[] = {"no choice", "nobody reads it later", "dropping it saves nothing", "dropping it costs time", "the budget", "no gain", "not found"};
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  ckpt_plan *plan = NULL;
  desc.budget_bytes = budget;
  if (ckpt_plan_create(chain, &desc, &plan) != CKPT_OK) return complain(); /* the text has the smallest budget */
  ckpt_plan_summary s = {0};
  s.struct_size = sizeof s;
  ckpt_explanation e[SHOWN];
  uint32_t items = 0;
  int failed = ckpt_plan_get_summary(plan, &s) != CKPT_OK || ckpt_plan_explain(chain, plan, 0, 0, sizeof *e, NULL, &items) != CKPT_OK;
  const uint32_t shown = items < SHOWN ? items : SHOWN;
  if (!failed) failed = ckpt_plan_explain(chain, plan, 0, shown, sizeof *e, e, NULL) != CKPT_OK;
  if (!failed) {
    printf("\nbudget %zu: %s in class %s, arena %zu, live load %zu, %.4f s again, %u actions\n", budget, s.status == CKPT_PLAN_OPTIMAL ? "optimal" : "best found",
           ckpt_class_name(s.plan_class), s.arena_bytes, s.peak_bytes, s.recompute_seconds, s.action_count);
    for (uint32_t k = 0; k < shown; ++k)
      printf("  segment %u, %s %u: %-8s (%s; else %+.4f s, %+lld bytes at the peak)\n", e[k].index, e[k].what == CKPT_PLACED_SLOT ? "slot  " : "output", e[k].item,
             e[k].kept ? "kept" : "not kept", because[e[k].because], e[k].seconds_change, (long long)e[k].peak_change);
  }
  ckpt_plan_destroy(plan);
  return failed ? complain() : 0;
}

/* A whole number of bytes; 0 after a complaint. */
static size_t read_bytes(const char *text) {
  char *end = NULL;
  errno = 0;
  const unsigned long long bytes = strtoull(text, &end, 10);
  if (text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && bytes > 0) return (size_t)bytes;
  fprintf(stderr, "plan: BYTES is '%s', expected a whole number, 1 or more\n", text);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 3) return fprintf(stderr, "plan: '%s': expected CHAIN.json and BYTES at most\n", argv[3]), 1;
  const size_t given = argc > 2 ? read_bytes(argv[2]) : 0;
  if (argc > 2 && given == 0) return 1;
  char *text = argc > 1 ? read_file(argv[1]) : describe();
  if (text == NULL) return fprintf(stderr, "plan: cannot read %s\n", argv[1]), 1;
  ckpt_chain *chain = NULL;
  size_t budget = 0;
  int failed = ckpt_chain_from_json(text, strlen(text), 0, argc > 1 ? argv[1] : "blocks", &chain) != CKPT_OK ? complain() : 0;
  if (!failed) failed = print_curve(chain, &budget);
  if (!failed) failed = print_plan(chain, argc > 2 ? given : budget);
  ckpt_chain_destroy(chain);
  if (argc > 1) free(text);
  return failed;
}
