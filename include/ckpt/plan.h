/* libckpt: chains, strategies, programs and plans.
 *
 * A *chain* (or graph) is the cost model of one recording: segments with slots, boundaries, sizes and seconds. A *program*
 * is a list of actions over it. A *plan* is a program with its predicted peak (bytes, exact), arena height and time.
 * Every strategy is only a way to write a program. Planners are pure: no clock, no device, no randomness; the same input
 * gives the same plan on every machine.
 *
 * The machine (what each action does) is described in src/plan/machine.h. */
#ifndef CKPT_PLAN_H
#define CKPT_PLAN_H

#include "ckpt/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckpt_chain ckpt_chain; /* immutable once created; may be shared between threads */
typedef struct ckpt_plan ckpt_plan;   /* likewise */

/* ---- what a segment is made of (used by tape.h too) ---- */

/* A slot: an intermediate of a segment. Zero is the safe case: read by backward, computed from everything before it. */
enum {
  CKPT_SLOT_TRANSIENT = 1,   /* backward does not read it */
  CKPT_SLOT_KEEP = 2,        /* made once, in the first run, and kept until its backward (router choice, collective) */
  CKPT_SLOT_RECOMPUTE = 4,   /* never kept: made again right before its backward */
  CKPT_SLOT_COST_GIVEN = 8,  /* cost_seconds holds; else it is measured */
  CKPT_SLOT_CONSUMED = 16,   /* its own backward may overwrite it */
  CKPT_SLOT_ALONE = 32       /* a group member that can also be made by itself, at cost_seconds, when its reads are there */
};

typedef struct ckpt_slot {
  const char *name;      /* unique in its segment, not empty; copied */
  size_t bytes;          /* may be 0 */
  const uint32_t *reads; /* earlier slots it is computed from, beside the inputs; NULL: every earlier slot; not NULL with count 0: none */
  uint32_t read_count;
  uint32_t group;        /* 0: by itself; equal numbers: one kernel makes all members, so one needed means all needed */
  double cost_seconds;   /* a group's cost is the sum of its members', ALONE ones left out */
  uint32_t flags;        /* CKPT_SLOT_* */
  uint32_t reserved;     /* 0 */
} ckpt_slot;

enum {
  CKPT_OUTPUT_NO_GRAD = 1,        /* has no gradient (indices, metrics) */
  CKPT_OUTPUT_KEEP = 2,           /* made once and kept until its segment's backward */
  CKPT_OUTPUT_BACKWARD_READS = 4, /* its own segment's backward reads it */
  CKPT_OUTPUT_COST_GIVEN = 8      /* cost_seconds holds; else it is measured */
};

typedef struct ckpt_output {
  const char *name;          /* unique in its segment, not empty; copied */
  size_t bytes;
  size_t grad_bytes;         /* 0: as bytes */
  const uint32_t *reads;     /* slots it is computed from: as in ckpt_slot, NULL: every slot */
  uint32_t read_count;
  uint32_t group;            /* a group may hold slots and outputs */
  void *memory;              /* retained: the caller's memory (loss, logits): never counted, always there; NULL: arena */
  double cost_seconds;       /* of its own work; with CKPT_OUTPUT_COST_GIVEN, else measured (chains: what forward_seconds leaves) */
  uint32_t flags;            /* CKPT_OUTPUT_* */
  uint32_t in_place_input;   /* 0: no; k + 1: may be placed over input k when nobody reads that again */
} ckpt_output;

enum {
  CKPT_INPUT_BACKWARD_IGNORES = 1,   /* this segment's backward does not read the input's data */
  CKPT_INPUT_NO_GRAD = 2,            /* this segment gives the input no gradient */
  CKPT_INPUT_GRAD_OVER_OUTPUT_0 = 4  /* its gradient may be placed over output 0's gradient (residual stream) */
};

/* ---- strategies ---- */

enum {
  CKPT_STRATEGY_AUTO = 0,          /* the fastest program found that fits the budget */
  CKPT_STRATEGY_STORE_ALL = 1,     /* recomputes only what is marked RECOMPUTE */
  CKPT_STRATEGY_EVERY_SEGMENT = 2, /* keeps boundaries, no slots */
  CKPT_STRATEGY_SQRT = 3,          /* groups of about sqrt(n) segments (Chen, Xu, Zhang, Guestrin 2016, arXiv 1604.06174) */
  CKPT_STRATEGY_UNIFORM = 4,       /* groups of k segments: keeps each group's inputs, runs a whole group again */
  CKPT_STRATEGY_BLOCK = 5,         /* the first k segments keep boundaries only, the others everything */
  CKPT_STRATEGY_FULL = 6,          /* keeps the graph's inputs only; each backward runs its past again */
  CKPT_STRATEGY_SELECTIVE = 7      /* keeps or recomputes slots by name pattern */
};

/* "auto", "store_all", "every_segment", "sqrt", "uniform:4", "block:4", "full", "selective".
 * Errors: NOT_FOUND (unknown name: the text lists the known ones), INVALID_ARGUMENT (k missing, 0, or given where none belongs). */
CKPT_API ckpt_status ckpt_strategy_parse(const char *text, uint32_t *out_strategy, uint32_t *out_k);
/* Static text, "store_all"; "unknown" for other values. */
CKPT_API const char *ckpt_strategy_name(uint32_t strategy);

/* ---- chains by hand ---- */

enum { CKPT_MEMORY_ARENA = 0, CKPT_MEMORY_CALLER = 1 }; /* counts; or never counts and is always there */
enum { CKPT_GRAD_NONE = 0, CKPT_GRAD_ARENA = 1, CKPT_GRAD_CALLER = 2 };
enum {
  CKPT_CHAIN_SEGMENT_WHOLE = 1,            /* a forward that computes anything computes everything, for forward_seconds */
  CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT = 2 /* the first slot's bytes contain the first input (frameworks that own their memory):
                                              its bytes count once, and it stays as long as that slot does */
};

typedef struct ckpt_chain_segment {
  const char *name;               /* copied */
  double forward_seconds;         /* outputs cost forward_seconds minus the slots' costs, the first output all of it */
  double backward_seconds;
  const ckpt_slot *slots;         /* COST_GIVEN is implied */
  const ckpt_output *outputs;     /* at least one */
  const uint32_t *inputs;         /* boundary numbers; NULL: the previous segment's first output, or boundary 0 */
  const uint32_t *input_flags;    /* CKPT_INPUT_*, input_count of them; NULL: all 0 */
  uint32_t slot_count;
  uint32_t output_count;
  uint32_t input_count;           /* 0 with inputs NULL: one */
  uint32_t flags;                 /* CKPT_CHAIN_SEGMENT_* */
  size_t forward_scratch_bytes;
  size_t backward_scratch_bytes;
} ckpt_chain_segment;

typedef struct ckpt_chain_input {
  size_t bytes;
  size_t grad_bytes;  /* 0: as bytes */
  uint32_t memory;    /* CKPT_MEMORY_* */
  uint32_t grad;      /* CKPT_GRAD_* */
} ckpt_chain_input;

/* Boundaries are numbered: the chain's inputs 0 .. input_count-1, then the outputs of segment 0, of segment 1, ...
 * A boundary that no segment reads is an output of the chain; output_grad says where its gradient is: ARENA (counts from
 * the start, as planning papers have it) or CALLER (never counts). */
typedef struct ckpt_chain_desc {
  uint32_t struct_size;
  uint32_t segment_size;          /* sizeof(ckpt_chain_segment) */
  uint32_t slot_size;             /* sizeof(ckpt_slot) */
  uint32_t output_size;           /* sizeof(ckpt_output) */
  const ckpt_chain_input *inputs; /* NULL with count 0: one input of 0 bytes in the caller's memory without gradient */
  const ckpt_chain_segment *segments;
  uint32_t input_count;
  uint32_t segment_count;         /* at least 1 */
  uint32_t output_grad;           /* CKPT_GRAD_ARENA or CKPT_GRAD_CALLER (also for 0) */
  uint32_t flags;                 /* 0 */
  size_t alignment_bytes;         /* every size is rounded up to it; power of two; 0: 256 */
} ckpt_chain_desc;

/* Copies and validates. *out_chain is owned. Errors: INVALID_ARGUMENT (names segment, slot, field, value), STRUCT_SIZE,
 * OVERFLOW. */
CKPT_API ckpt_status ckpt_chain_create(const ckpt_chain_desc *desc, ckpt_chain **out_chain);
CKPT_API void ckpt_chain_destroy(ckpt_chain *chain);
/* Structure and sizes, not seconds, as 64 bits; the same on every machine. 0 for NULL. */
CKPT_API uint64_t ckpt_chain_hash(const ckpt_chain *chain);
CKPT_API uint32_t ckpt_chain_segment_count(const ckpt_chain *chain);

/* ---- plans ---- */

/* AUTO on a chain is optimal in a class of programs: which kinds of moves the search knows. Each class contains the ones
 * before it. Names: "rotor", "sigma", "sigma+s+w", "sigma+s+w+d". Graphs that are no chains, and chains of more than 4000 segments, have no class:
 * the best of a search. */
enum {
  CKPT_CLASS_DEFAULT = 0,     /* SIGMA_S_W; where slots, boundaries and inputs are 14 at most, budgets below its smallest too, of any program */
  CKPT_CLASS_ROTOR = 1,       /* a segment is stored, or its input is (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019) */
  CKPT_CLASS_SIGMA = 2,       /* and: what a segment stored stays while its input goes, and comes back on the way to others */
  CKPT_CLASS_SIGMA_S_W = 3,   /* and: slots made once for all runs, and outputs made again from slots that were kept */
  CKPT_CLASS_SIGMA_S_W_D = 4  /* and: boundaries given back late, when a later stretch runs their segment (slow: short chains) */
};
/* Errors: NOT_FOUND (the text lists the known ones). */
CKPT_API ckpt_status ckpt_class_parse(const char *text, uint32_t *out_class);
/* Static text; "unknown" for other values. */
CKPT_API const char *ckpt_class_name(uint32_t plan_class);

enum {
  CKPT_PLAN_OPTIMAL = 0, /* proved: no program of the class is faster (costs count in ticks of at most 0.1 % of a segment) */
  CKPT_PLAN_GAP = 1      /* the best found; class_gap_seconds and universal_gap_seconds say how far from the best it can be */
};

typedef struct ckpt_plan_desc {
  uint32_t struct_size;
  uint32_t strategy;                      /* CKPT_STRATEGY_* */
  uint32_t k;                             /* UNIFORM, BLOCK: at least 1 and required; else 0 */
  uint32_t in_flight_count;               /* recordings in flight at once; 0: 1 */
  const char *const *keep_patterns;       /* SELECTIVE: globs (* and ?) on a slot's name, or on "segment/slot". AUTO: those slots
                                             count as marked KEEP (RECOMPUTE), the others are its choice */
  const char *const *recompute_patterns;  /* a pattern that matches nothing: NOT_FOUND; a slot that both match: CONFLICT */
  uint32_t keep_pattern_count;            /* SELECTIVE: slots that no pattern matches: recomputed if only keep patterns are given, */
  uint32_t recompute_pattern_count;       /* else kept */
  size_t budget_bytes;                    /* bounds the arena's height; 0: none */
  uint64_t work_limit;                    /* AUTO: units of work (about 10 ns each) after which the best so far is taken; 0: the
                                             default, about a second. Counted, not timed: the same plan on every machine. If
                                             there is no plan by then (just above the smallest budget of a long chain), a slow one
                                             that fits is taken */
  uint32_t plan_class;                    /* CKPT_CLASS_*; AUTO on chains */
  uint32_t reserved;                      /* 0 */
} ckpt_plan_desc;

#define CKPT_PLAN_DESC_INIT { sizeof(ckpt_plan_desc), 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0 }

/* Plans. *out_plan is owned and independent of the chain. Errors: BUDGET (the text has the smallest budget that works, and
 * ckpt_plan_minimum_budget gives it), INVALID_ARGUMENT, NOT_FOUND, CONFLICT, OVERFLOW (a program of more than 2^31 actions). */
CKPT_API ckpt_status ckpt_plan_create(const ckpt_chain *chain, const ckpt_plan_desc *desc, ckpt_plan **out_plan);
CKPT_API void ckpt_plan_destroy(ckpt_plan *plan);

/* The smallest budget_bytes that ckpt_plan_create accepts for this desc (its budget is not looked at). AUTO on a chain: what the
 * program of the smallest live load takes, or one of little more that packs better; where that has more than 1,000,000 actions
 * (some thousand equal segments), the next one that has fewer. */
CKPT_API ckpt_status ckpt_plan_minimum_budget(const ckpt_chain *chain, const ckpt_plan_desc *desc, size_t *out_bytes);

typedef struct ckpt_plan_summary {
  uint32_t struct_size;
  uint32_t strategy;         /* what AUTO chose: the nearest fixed strategy, or CKPT_STRATEGY_AUTO for a program of its own */
  uint32_t k;
  uint32_t action_count;
  uint64_t hash;             /* of the actions and the chain's hash: equal plans on two machines have equal hashes */
  size_t budget_bytes;
  size_t peak_bytes;         /* live load */
  size_t arena_bytes;        /* height after placement: what the budget bounds */
  size_t held_bytes;         /* live at the end of forward */
  double forward_seconds;    /* first runs */
  double backward_seconds;
  double recompute_seconds;  /* forward work after the first runs: made again, or put off until a backward needs it */
  uint64_t recompute_count;  /* forward actions beyond the first of their segment */
  size_t minimum_budget_bytes;   /* the smallest budget that works for this request, as ckpt_plan_minimum_budget says; 0: not looked for
                                    (AUTO, a budget far above it, and looking would take longer than the plan did) */
  double class_gap_seconds;      /* no program of the class is faster by more than this */
  double universal_gap_seconds;  /* no program at all is faster by more than this */
  double plan_seconds;           /* wall time that planning took: the only value that differs from run to run */
  uint64_t work;                 /* units of work that it took */
  uint32_t status;               /* CKPT_PLAN_* */
  uint32_t plan_class;           /* CKPT_CLASS_* that was searched; 0: none (a fixed strategy, a graph that is no chain) */
  uint32_t placement_count;      /* see ckpt_plan_get_placements */
  uint32_t reserved;
} ckpt_plan_summary;

/* Fills *out_summary; its struct_size must be set. */
CKPT_API ckpt_status ckpt_plan_get_summary(const ckpt_plan *plan, ckpt_plan_summary *out_summary);

/* Of actions and chain: equal plans on two machines have equal hashes. 0 for NULL. */
CKPT_API uint64_t ckpt_plan_hash(const ckpt_plan *plan);

enum { CKPT_ACTION_FORWARD = 0, CKPT_ACTION_BACKWARD = 1, CKPT_ACTION_FREE = 2, CKPT_ACTION_DROP = 3 };
enum { CKPT_PLAN_MASK_WORDS = 4 };

/* One action. FORWARD: what is live of segment `index` afterwards: slots, and outputs asked for; BACKWARD; FREE: boundary
 * `index`; DROP: those slots of segment `index`. Masks: bit k of word k / 64. A FREE of an input right behind the FORWARD
 * that made an output with in_place_input over it (equal sizes in the arena, not KEEP, not the caller's, named once, not
 * read by the user at the end of the forward pass): the output is placed over that input. */
typedef struct ckpt_action {
  uint32_t kind;
  uint32_t index;
  uint64_t slots[CKPT_PLAN_MASK_WORDS];
  uint64_t outputs[CKPT_PLAN_MASK_WORDS];
} ckpt_action;

/* Copies actions first .. first + count - 1 into out_actions, whose elements are action_size bytes apart. */
CKPT_API ckpt_status ckpt_plan_get_actions(const ckpt_plan *plan, uint32_t first, uint32_t count, uint32_t action_size,
                                           ckpt_action *out_actions);

/* A plan from a program of any origin (a file, another rank, one's own planner): verified, predicted and placed like any other.
 * budget_bytes: 0: none. *out_plan is owned. Errors: INVALID_PLAN (names action, rule and what was found), BUDGET,
 * INVALID_ARGUMENT. */
CKPT_API ckpt_status ckpt_plan_from_actions(const ckpt_chain *chain, const ckpt_action *actions, uint32_t action_count,
                                            uint32_t action_size, uint32_t in_flight_count, size_t budget_bytes, ckpt_plan **out_plan);

enum {
  CKPT_PLACED_SLOT = 0, CKPT_PLACED_OUTPUT = 1, CKPT_PLACED_INPUT = 2, CKPT_PLACED_GRAD = 3, CKPT_PLACED_SCRATCH = 4
};

/* One block of memory of a plan's step: what lives in it, when, and where in the arena. */
typedef struct ckpt_placement {
  uint32_t what;         /* CKPT_PLACED_* */
  uint32_t index;        /* SLOT, OUTPUT, SCRATCH: segment; INPUT, GRAD: boundary */
  uint32_t item;         /* SLOT, OUTPUT: which; else 0 */
  uint32_t is_recompute; /* 1: made by a forward beyond its segment's first */
  uint32_t first_action; /* live from the begin of this action (those that are there from the start: 0) */
  uint32_t end_action;   /* until the begin of this one (action_count: until the end) */
  size_t bytes;          /* in the arena: rounded up, guards included */
  size_t offset;
} ckpt_placement;

/* Copies placements first .. first + count - 1, in the order in which a step takes them. One recording's; with several in flight
 * (in_flight_count > 1) a step places as it goes, and there are none. */
CKPT_API ckpt_status ckpt_plan_get_placements(const ckpt_plan *plan, uint32_t first, uint32_t count, uint32_t placement_size,
                                              ckpt_placement *out_placements);

/* ---- questions ---- */

typedef struct ckpt_curve_point {
  size_t budget_bytes;           /* the smallest budget that gives this plan: its arena_bytes, but not less than the smallest of all */
  size_t peak_bytes;
  double seconds;                /* forward, recomputation and backward */
  double recompute_seconds;
  double class_gap_seconds;
  double universal_gap_seconds;
  uint32_t status;               /* CKPT_PLAN_* */
  uint32_t reserved;
} ckpt_curve_point;

/* Time over budget: at most `capacity` plans from the smallest budget (of more than 200 segments: from near it, as its
 * last bytes take the longest to plan for) up to the first that makes nothing twice, each faster than the one before, spread
 * where the curve is steep. Uses the desc's strategy, class, patterns, in-flight count and work limit (for
 * each point); its budget is not looked at. A fixed strategy has one point. *out_count: how many were written. */
CKPT_API ckpt_status ckpt_plan_curve(const ckpt_chain *chain, const ckpt_plan_desc *desc, uint32_t capacity, uint32_t point_size,
                                     ckpt_curve_point *out_points, uint32_t *out_count);

enum {
  CKPT_BECAUSE_MARKED = 0,   /* no choice: KEEP or RECOMPUTE, a segment that cannot run again, an input, the caller's memory */
  CKPT_BECAUSE_UNUSED = 1,   /* not kept: nobody reads it after its forward */
  CKPT_BECAUSE_ALREADY = 2,  /* kept: dropping it saves no byte of the peak */
  CKPT_BECAUSE_FASTER = 3,   /* kept: dropping it would cost seconds_change */
  CKPT_BECAUSE_BUDGET = 4,   /* not kept: keeping it would take the arena above the budget */
  CKPT_BECAUSE_NO_GAIN = 5,  /* not kept: keeping it fits, and saves no time */
  CKPT_BECAUSE_SEARCH = 6    /* not kept, though keeping it fits and saves time: the search stopped early, or does not know this move */
};

/* One slot or boundary under a plan, and what the opposite choice for it alone would do, everything else kept as it is (what then
 * is missing is made again). */
typedef struct ckpt_explanation {
  uint32_t what;          /* CKPT_PLACED_SLOT, _OUTPUT (a segment's) or _INPUT (a chain's) */
  uint32_t index;         /* segment; INPUT: boundary */
  uint32_t item;
  uint32_t kept;          /* 1: made once, and there until its last reader is done; 0: given back, made again or never read again */
  uint32_t because;       /* CKPT_BECAUSE_* */
  uint32_t reserved;
  size_t bytes;           /* in the arena */
  double seconds_change;  /* of the step under the opposite choice; 0 where there is none */
  int64_t peak_change;    /* of the live load under the opposite choice, in bytes */
} ckpt_explanation;

/* Explains items first .. first + count - 1: for each segment its slots, then its outputs; then the chain's inputs. One simulation
 * per item. *out_count (may be NULL): how many items there are. Errors: INVALID_ARGUMENT (range, a plan of another chain). */
CKPT_API ckpt_status ckpt_plan_explain(const ckpt_chain *chain, const ckpt_plan *plan, uint32_t first, uint32_t count,
                                       uint32_t explanation_size, ckpt_explanation *out_explanations, uint32_t *out_count);

/* Checks a program against every rule of the machine, with code that shares nothing with planner or interpreter, and gives
 * peak and seconds. Error: INVALID_PLAN (names action, rule and what was found). out_* may be NULL. */
CKPT_API ckpt_status ckpt_program_verify(const ckpt_chain *chain, const ckpt_action *actions, uint32_t action_count,
                                         uint32_t action_size, size_t *out_peak_bytes, double *out_seconds,
                                         double *out_recompute_seconds);

#ifdef __cplusplus
}
#endif
#endif
