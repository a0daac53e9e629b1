/* libckpt: chains, plans and schedules as JSON; traces of runs.
 *
 * Texts that come out are owned by the caller: UTF-8, zero-terminated, one JSON value and a line break; ckpt_text_free gives
 * them back. Equal objects give equal texts. Texts that come in are borrowed, need no zero at the end, and may come from
 * anywhere: whatever is wrong with one is refused with one line, "chain.json: segments[3].slots[1].bytes is -1, expected a
 * whole number of bytes, 0 to 2^60": source (the name that the caller gives the text), field, value found, expectation.
 * Refused are also fields that are not listed here, fields that come twice, and lists and objects more than 32 levels deep.
 *
 * Chains
 *
 *   { "input": {"bytes": 4096, "grad_bytes": 4096, "memory": "arena", "grad": "none"},
 *     "output": {"memory": "arena", "grad": "caller", "grad_bytes": 4096},
 *     "segments": [
 *       { "name": "block0",
 *         "forward_seconds": 1.0, "backward_seconds": 2.0,
 *         "output_bytes": 4096,
 *         "slots": [ {"name": "qkv", "bytes": 12288, "cost_seconds": 0.3, "reads": [], "flags": ["transient"]},
 *                    {"name": "act", "bytes": 16384, "cost_seconds": 0.1, "reads": ["qkv"]} ],
 *         "output_reads": ["act"],
 *         "forward_scratch_bytes": 0, "backward_scratch_bytes": 0,
 *         "backward_reads": ["input"] } ] }
 *
 * Required: input with bytes; segments, at least one, each with name (no two alike), forward_seconds, backward_seconds,
 * output_bytes, and slots (may be empty; each with name, bytes, cost_seconds) or saved_bytes. All else has a default:
 *   memory            "arena" (counts) or "caller" (never counts); default arena
 *   grad              input: "none" (default), "arena", "caller"; output: "arena" or "caller" (default)
 *   grad_bytes        of input, output (the last boundary) or a segment (its output); 0 or none: as bytes
 *   reads             names of earlier slots of the segment; default all of them
 *   output_reads      default all slots
 *   flags             any of "transient", "keep", "recompute", "consumed", "cost_given" (see CKPT_SLOT_*); default none
 *   group, alone      see ckpt_slot; default 0 and false
 *   backward_reads    any of "input", "output"; default ["input"]
 *   *_scratch_bytes   default 0
 *   saved_bytes       instead of slots: a segment that is told by what it saves; a forward that computes anything computes
 *                     everything. "whole": true says the same of a segment with slots
 *   saved_holds_input true: what is saved contains the input (CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT); default false
 *   replayable        false: the segment's forward cannot run again; default true
 * Graphs that are no chains have, instead of input, "inputs": a list of such objects with an optional "name"; and in a segment
 *   inputs            the boundaries that it reads: numbers as in plan.h, or names: an input's, "block0" for the first output of
 *                     segment block0, "block0/mask" for the one called mask; or {"boundary": number or name, "flags": any of
 *                     "backward_ignores", "no_grad", "grad_over_output_0"}; default the previous segment's first output
 *   outputs           instead of output_bytes, output_reads, grad_bytes: a list of {"name", "bytes", "grad_bytes", "reads",
 *                     "group", "memory", "cost_seconds" (default: what forward_seconds leaves, the first such output all of it),
 *                     "in_place_input" (number of an input of the segment), "flags": any of "no_grad", "keep",
 *                     "backward_reads", "measured" (cost_seconds was measured, not given), "read_at_end"}
 * What ckpt_chain_to_json needs to tell everything of a recorded chain: "alignment_bytes" (which an alignment in the call goes
 * before), "guard_bytes", "names_repeat": true (segments may have equal names), an input's "before_segment" (it is numbered right
 * before that segment's outputs; default 0), "roots": [{"boundary": n, "grad": false}] (default: each boundary that nobody reads).
 *
 * Plans
 *
 *   { "format": "ckpt-plan", "version": 1, "status": "OPTIMAL", "class": "sigma+s+w", "strategy": "auto", "in_flight_count": 1,
 *     "alignment_bytes": 256, "budget_bytes": ..., "minimum_budget_bytes": ..., "peak_bytes": ..., "arena_bytes": ...,
 *     "held_bytes": ..., "forward_seconds": ..., "backward_seconds": ..., "recompute_seconds": ..., "class_gap_seconds": ...,
 *     "universal_gap_seconds": ..., "chain_hash": "0x0123456789abcdef", "hash": "0x...",
 *     "actions": [ ["forward", 0, ["act"], true], ["free", 0], ["drop", 0, ["act"]], ["backward", 0] ] }
 *
 * A forward has its segment's number, the slots and the outputs that are live afterwards: true (all), false (none) or a list of
 * numbers. Only `actions` is required. What else is there is looked at: hashes, peak_bytes and held_bytes must agree with the
 * actions, arena_bytes and the budget must suffice. Status, class, gaps, seconds and the smallest budget
 * (0: not looked for, see ckpt_plan_summary) are what planning found; a reader finds its own, or has none. */
#ifndef CKPT_JSON_H
#define CKPT_JSON_H

#include "ckpt/plan.h"
#include "ckpt/schedule.h"
#include "ckpt/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives back a text of this header. NULL is fine. */
CKPT_API void ckpt_text_free(char *text);

/* A chain from its text. alignment_bytes: power of two; 0: the text's own, else 256. source_name: what errors call the text (NULL:
 * "chain"). *out_chain is owned. Errors: INVALID_ARGUMENT, CONFLICT, OVERFLOW: one line, as above. */
CKPT_API ckpt_status ckpt_chain_from_json(const char *text, size_t text_bytes, size_t alignment_bytes, const char *source_name,
                                          ckpt_chain **out_chain);
/* Read back it gives a chain of the same hash; costs may differ in their last bit. *out_text is owned.
 * Error: INVALID_ARGUMENT (a name that is no UTF-8). */
CKPT_API ckpt_status ckpt_chain_to_json(const ckpt_chain *chain, char **out_text);

/* A plan from its text, for this chain: verified, predicted and placed anew. source_name: as above (NULL: "plan"). *out_plan is
 * owned. Errors: INVALID_ARGUMENT (the text), INVALID_PLAN (what the verifier refuses, with its text; a slot, segment or boundary
 * that the chain does not have; a peak_bytes, held_bytes or arena_bytes that is not the actions'), CONFLICT (a hash that is not that of these actions and
 * this chain: made for another chain or alignment, or changed), BUDGET (its own budget does not suffice). */
CKPT_API ckpt_status ckpt_plan_from_json(const char *text, size_t text_bytes, const char *source_name, const ckpt_chain *chain,
                                         ckpt_plan **out_plan);
/* Read back it gives a plan of the same hash. *out_text is owned. Error: INVALID_ARGUMENT (a name that is no UTF-8). */
CKPT_API ckpt_status ckpt_plan_to_json(const ckpt_plan *plan, char **out_text);

/* The same actions in the vocabulary of checkpoint_schedules (Dolci, Maddison, Ham, Pallez, Herrmann, JOSS 9 (2024) 6148), whose
 * steps are the segments: [{"action": "Forward", "n0": 0, "n1": 2, "write_ics": true, "write_adj_deps": false, "storage": "RAM"},
 * {"action": "Copy", "n": 0, "from_storage": "RAM", "to_storage": "WORK"}, "Move" likewise, {"action": "Reverse", "n1": 3, "n0": 2,
 * "clear_adj_deps": true}, {"action": "EndForward"}, {"action": "EndReverse", "exhausted": true}]. A restart point is a boundary
 * that stays (RAM), what backward reads is in WORK. A Forward that keeps a part of what backward reads has "slots", their names.
 * *out_text is owned. Errors: UNSUPPORTED (a graph that is no chain), INVALID_ARGUMENT. */
CKPT_API ckpt_status ckpt_plan_to_schedule_json(const ckpt_plan *plan, char **out_text);
/* Likewise of a schedule that has not been begun: it is at its end afterwards. Errors: STATE (begun already), OVERFLOW (more than
 * 2^24 actions). */
CKPT_API ckpt_status ckpt_schedule_to_json(ckpt_schedule *schedule, char **out_text);

/* ---- traces: Chrome's trace events, which Perfetto and chrome://tracing open ---- */

/* The plan's step with its predicted times: an event for each forward, recomputation and backward, on three tracks, and the live
 * bytes as a counter. *out_text is owned. */
CKPT_API ckpt_status ckpt_plan_to_trace_json(const ckpt_plan *plan, char **out_text);

/* Records what a tape does, with times. Each event takes 24 bytes and a read of the clock, some 30 ns; a
 * segment's step has about four. Not for use by two threads at once. */
typedef struct ckpt_trace ckpt_trace;

/* Room for event_limit events (1 to 2^28), taken at once; what comes later is counted, not kept. *out_trace is owned.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
CKPT_API ckpt_status ckpt_trace_create(size_t event_limit, ckpt_trace **out_trace);
/* Neither while a tape that it is attached to lives: end that by ckpt_tape_set_trace(tape, NULL, NULL) or destroy the tape first. */
CKPT_API void ckpt_trace_destroy(ckpt_trace *trace);
/* From now on the tape's events go to `trace`, which is retained until the tape's trace is set anew or the tape is gone. */
CKPT_API ckpt_status ckpt_trace_attach(ckpt_trace *trace, ckpt_tape *tape);
/* Forgets the events so far. */
CKPT_API ckpt_status ckpt_trace_clear(ckpt_trace *trace);
/* Times count from the first event. Names are the segments' of `chain` (ckpt_tape_chain), or numbers if it is NULL. *out_text is
 * owned. */
CKPT_API ckpt_status ckpt_trace_to_json(const ckpt_trace *trace, const ckpt_chain *chain, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
