/* libckpt: segments, tapes, recordings, frames.
 *
 * A *segment* is a piece of the forward pass that can be replayed: a forward and a backward callback, a fixed list of
 * slots, inputs and outputs. A *tape* records segments and runs them in reverse (ckpt_backward) within one budget. A
 * *boundary* is a tensor that passes between segments, named by a ckpt_buffer, never by a pointer. A *frame* is one
 * execution of a segment; the callback asks it for everything. One forward function serves the first run, a full and a
 * partial recomputation:
 *
 *   static ckpt_status mlp_forward(void *user, ckpt_frame *f) {
 *     const float *x = ckpt_frame_input(f, 0);
 *     float *pre = ckpt_frame_slot(f, PRE), *act = ckpt_frame_slot(f, ACT), *out = ckpt_frame_output(f, 0);
 *     if (ckpt_frame_needs(f, PRE)) linear(pre, x, ...);
 *     if (ckpt_frame_needs(f, ACT)) gelu(act, pre, ...);
 *     if (ckpt_frame_needs_output(f, 0)) linear(out, act, ...);
 *     return CKPT_OK;
 *   }
 *
 * Rules. (1) A wanted slot, output or input gradient that a callback never asked for (by its pointer) fails the frame by
 * name. (2) A slot's work is enqueued between its `needs` and the next `needs` of the frame: that is how its cost is
 * measured. (3) Everything a frame may need is taken before its callback runs, so frame functions cannot fail. (4) A
 * callback may call its own frame's functions, pure plan and philox functions, and other arenas; the same tape or arena
 * answers BUSY, except in code between begin and end, which may use the tape's read-only functions. (5) No callback may
 * throw or longjmp. All callbacks run on the thread that called the library. */
#ifndef CKPT_TAPE_H
#define CKPT_TAPE_H

#include "ckpt/arena.h"
#include "ckpt/plan.h"
#include "ckpt/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckpt_tape ckpt_tape;
typedef struct ckpt_segment ckpt_segment;     /* immutable, validated and hashed once; counted by the recordings that use it */
typedef struct ckpt_recording ckpt_recording; /* one finished forward pass, detached from its tape */
typedef struct ckpt_frame ckpt_frame;
typedef uint64_t ckpt_buffer; /* tape, generation, index: a stale or foreign one is an error, never a wrong tensor; 0: none */

typedef ckpt_status (*ckpt_segment_fn)(void *user, ckpt_frame *frame);
typedef ckpt_status (*ckpt_state_fn)(void *user, void *state); /* save: fill state; restore: read it */

/* ---- segments ---- */

typedef struct ckpt_segment_desc {
  uint32_t struct_size;
  uint32_t slot_size;            /* sizeof(ckpt_slot) */
  uint32_t output_size;          /* sizeof(ckpt_output) */
  uint32_t flags;                /* 0 */
  const char *name;              /* copied; need not be unique */
  ckpt_segment_fn forward;       /* NULL: cannot be replayed: all its slots and outputs count as KEEP */
  ckpt_segment_fn backward;      /* NULL: only for a segment that no gradient passes through */
  const ckpt_slot *slots;        /* all arrays are copied */
  const ckpt_output *outputs;
  const uint32_t *input_flags;   /* NULL: all 0 */
  uint32_t slot_count;           /* slots + outputs at most 256 */
  uint32_t output_count;
  uint32_t input_count;
  uint32_t reserved;             /* 0 */
  size_t forward_scratch_bytes;  /* arena memory during a forward, resp. backward, nothing remembered */
  size_t backward_scratch_bytes;
  ckpt_state_fn save_state;      /* host state that forward reads and moves (a generator of the host's): saved before the */
  ckpt_state_fn restore_state;   /* first run; restored before each replay and set back to what it was after it */
  size_t state_bytes;            /* > 0 exactly if both functions are given */
} ckpt_segment_desc;

#define CKPT_SEGMENT_DESC_INIT { sizeof(ckpt_segment_desc), sizeof(ckpt_slot), sizeof(ckpt_output), 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, 0 }

/* Copies, validates, hashes. *out_segment is owned; thread-safe to use from several tapes.
 * Errors: INVALID_ARGUMENT (names segment, slot and field), STRUCT_SIZE, CONFLICT, OVERFLOW. */
CKPT_API ckpt_status ckpt_segment_create(const ckpt_segment_desc *desc, ckpt_segment **out_segment);
CKPT_API void ckpt_segment_destroy(ckpt_segment *segment);

/* Memory that a segment reads beside its inputs (weights): hashed under CKPT_CHECK_INPUTS. */
typedef struct ckpt_watch {
  const char *name;  /* retained until the recording is done with it */
  const void *data;
  size_t bytes;
} ckpt_watch;

/* What differs from one use of a segment to the next. */
typedef struct ckpt_call {
  uint32_t struct_size;
  uint32_t input_count;        /* as in the segment */
  void *user;                  /* retained until the recording is done with it; then released, once, on the caller's thread */
  ckpt_release_fn release;     /* NULL: nothing to release. Also called when begin fails */
  const ckpt_buffer *inputs;
  const size_t *slot_bytes;    /* NULL: as in the segment */
  const size_t *output_bytes;  /* NULL: as in the segment; a gradient's size follows its output's unless grad_bytes was given */
  const ckpt_watch *watch;     /* copied */
  uint32_t watch_count;
  uint32_t reserved;           /* 0 */
} ckpt_call;

#define CKPT_CALL_INIT { sizeof(ckpt_call), 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/* ---- tapes ---- */

enum {
  CKPT_CHECK_DETERMINISM = 1, /* recomputed slots and outputs are hashed against the first run */
  CKPT_CHECK_RECOMPUTE = 2,   /* after each first run every planned partial recomputation is replayed with everything
                                 undeclared poisoned: finds wrong `reads` */
  CKPT_CHECK_INPUTS = 4       /* the caller's inputs and watched memory are hashed when recorded and at each use */
};
/* AUTO: costs are measured in the first two real steps of a recording, and the plan is made again after each of them (on CUDA: as soon as
 * a later recording begins when the device is done with that step; nothing waits for it). With strategy
 * AUTO every 32nd step after those is measured too (an item's cost is the median of the latest three). When more than 10 % of the
 * forward time has moved from some items to others, a plan is made by the costs of now, before the next step begins and never inside
 * one, and taken if it is predicted to save more than 2 % of the step; if not, the next measurement waits twice as long, up to 1024
 * steps. NEVER: a plan stays, for callbacks that contain a collective: ranks that measure must not come to differ. An adopted plan
 * stays in any case (ckpt_tape_adopt). */
enum { CKPT_REPLAN_AUTO = 0, CKPT_REPLAN_NEVER = 1 };

typedef struct ckpt_tape_desc {
  uint32_t struct_size;
  uint32_t checks;                        /* CKPT_CHECK_* */
  ckpt_arena *arena;                      /* retained */
  size_t budget_bytes;                    /* bounds the arena's height; 0: the arena's capacity */
  uint64_t seed;                          /* of ckpt_frame_random */
  uint32_t strategy;                      /* CKPT_STRATEGY_* */
  uint32_t strategy_k;
  const char *const *keep_patterns;       /* SELECTIVE: see ckpt_plan_desc; copied */
  const char *const *recompute_patterns;
  uint32_t keep_pattern_count;
  uint32_t recompute_pattern_count;
  uint32_t in_flight_count;               /* recordings alive at once (pipelines); 0: 1 */
  uint32_t replan;                        /* CKPT_REPLAN_NEVER: a plan, once made or adopted, stays until a larger recording */
} ckpt_tape_desc;

#define CKPT_TAPE_DESC_INIT { sizeof(ckpt_tape_desc), 0, NULL, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0 }

/* *out_tape is owned. Errors: INVALID_ARGUMENT (names field, value and what was expected), STRUCT_SIZE. */
CKPT_API ckpt_status ckpt_tape_create(const ckpt_tape_desc *desc, ckpt_tape **out_tape);
/* Abandons what is recorded. Inside a callback or between begin and end: as soon as that frame is over. */
CKPT_API void ckpt_tape_destroy(ckpt_tape *tape);

/* Random draws of the recording to come use `step`. It moves on by one when a backward succeeds or a recording is
 * detached, never on reset or failure. Errors: STATE (while something is recorded), OVERFLOW (2^36 or more). */
CKPT_API ckpt_status ckpt_tape_set_step(ckpt_tape *tape, uint64_t step);
CKPT_API ckpt_status ckpt_tape_get_step(const ckpt_tape *tape, uint64_t *out_step);

/* ---- recording ---- */

enum { CKPT_TAPE_DRY = 1, CKPT_TAPE_NO_BACKWARD = 2 };

/* Starts a recording; optional: the first input or segment starts one with key 0. `key` says which plan to expect (0:
 * unknown, the longest matching prefix). DRY: nothing runs, `needs` answers 0, no memory is taken; ckpt_backward on it, with gradients for the same
 * roots as the real step will have, makes
 * the plan, or refuses it (BUDGET) with the smallest budget, and ends it; ckpt_tape_reset ends it without. NO_BACKWARD: only a forward pass: nothing is kept for a
 * backward, boundaries go when their last reader is done (ckpt_tape_release) or with the recording (ckpt_tape_reset).
 * Errors: STATE (something is recorded already), BUDGET (the known plan for `key` cannot be kept), CAPTURE (see ckpt_tape_replay). */
CKPT_API ckpt_status ckpt_tape_begin(ckpt_tape *tape, uint64_t key, uint32_t flags);

enum { CKPT_TAPE_INPUT_ACCUMULATE = 1 }; /* add to grad instead of writing it */

typedef struct ckpt_input_desc {
  uint32_t struct_size;
  uint32_t flags;     /* CKPT_TAPE_INPUT_ACCUMULATE */
  const void *data;   /* retained: unchanged until the recording ends; NULL only in a dry recording or with bytes 0 */
  size_t bytes;
  void *grad;         /* retained; NULL: no gradient wanted. Zeros where nothing contributes */
  size_t grad_bytes;  /* 0: as bytes */
} ckpt_input_desc;

#define CKPT_INPUT_DESC_INIT { sizeof(ckpt_input_desc), 0, NULL, 0, NULL, 0 }

/* Names the caller's memory as an input of the recording, which starts if there is none. Errors: INVALID_ARGUMENT,
 * STRUCT_SIZE, STATE. */
CKPT_API ckpt_status ckpt_tape_input(ckpt_tape *tape, const ckpt_input_desc *desc, ckpt_buffer *out_buffer);

/* Begins a segment: takes its memory and gives the frame to the code that follows. *out_frame is valid until
 * ckpt_segment_end. Errors: STATE (begin inside begin), STALE, INVALID_ARGUMENT, BUDGET (an unknown recording that cannot
 * go on: wanted, available, lower bound), and what a callback that had to run again returns. After an error of memory or
 * of a callback the recording is gone. */
CKPT_API ckpt_status ckpt_segment_begin(ckpt_tape *tape, const ckpt_segment *segment, const ckpt_call *call,
                                        ckpt_frame **out_frame);

/* Ends it. status 0: the segment's outputs are written to out_outputs (output_count of the segment; NULL if it has none).
 * Other: the segment is abandoned and so is the recording; that status is returned. */
CKPT_API ckpt_status ckpt_segment_end(ckpt_frame *frame, ckpt_status status, ckpt_buffer *out_outputs);

/* begin, the segment's forward, end. */
CKPT_API ckpt_status ckpt_segment_run(ckpt_tape *tape, const ckpt_segment *segment, const ckpt_call *call,
                                      ckpt_buffer *out_outputs);

/* No later segment names this boundary, and nobody will read it. */
CKPT_API ckpt_status ckpt_tape_release(ckpt_tape *tape, ckpt_buffer buffer);

/* The data of a boundary, brought back if need be and held until ckpt_tape_release or backward. *out_data is borrowed.
 * Errors: STALE, STATE, and where it has to be made again what ckpt_segment_begin returns then: after an error of memory or
 * of a callback the recording is gone. */
CKPT_API ckpt_status ckpt_tape_read(ckpt_tape *tape, ckpt_buffer buffer, const void **out_data);

/* Drops what is recorded; nothing on nothing. The step stays. */
CKPT_API ckpt_status ckpt_tape_reset(ckpt_tape *tape);

enum { CKPT_BACKWARD_RETAIN = 1 }; /* the recording stays for another backward */

/* Runs the recording in reverse from `outputs`. output_grads[k] (borrowed) is the gradient of outputs[k]; an entry, or the
 * whole array, may be NULL: that root's segment seeds itself (ckpt_frame_output_grad gives NULL). Segments that no gradient
 * reaches are skipped and counted. On success the recording is gone (but with RETAIN) and the step moves on by one.
 * Errors: STATE (nothing recorded, begin without end), STALE, INVALID_ARGUMENT, BUDGET, NOT_FILLED, CHECK, and a callback's
 * own status. After a failure the recording is gone, the arena empty, the step as before; stats.backward_done says how many
 * segments' backwards had run. */
CKPT_API ckpt_status ckpt_backward(ckpt_tape *tape, const ckpt_buffer *outputs, const void *const *output_grads,
                                   uint32_t output_count, uint32_t flags);

/* Takes the finished forward pass off the tape, which is free for the next one. *out_recording is owned. */
CKPT_API ckpt_status ckpt_tape_detach(ckpt_tape *tape, ckpt_recording **out_recording);
CKPT_API ckpt_status ckpt_recording_backward(ckpt_recording *recording, const ckpt_buffer *outputs,
                                             const void *const *output_grads, uint32_t output_count, uint32_t flags);
CKPT_API ckpt_status ckpt_recording_read(ckpt_recording *recording, ckpt_buffer buffer, const void **out_data);
CKPT_API void ckpt_recording_destroy(ckpt_recording *recording);

/* ---- plans of a tape ---- */

/* The cost model of a known recording, with the costs measured so far. *out_chain is owned. Error: NOT_FOUND (key unknown). */
CKPT_API ckpt_status ckpt_tape_chain(ckpt_tape *tape, uint64_t key, ckpt_chain **out_chain);
/* The plan in use for a known recording. *out_plan is owned. */
CKPT_API ckpt_status ckpt_tape_plan(ckpt_tape *tape, uint64_t key, ckpt_plan **out_plan);
/* Uses this plan for `key` from the next recording on, and keeps it until a larger recording comes by this key. One plan for all
 * ranks: each records dry; rank 0 makes a plan (ckpt_tape_chain, ckpt_plan_create with the tapes' budget and in_flight_count) and
 * sends it; all adopt it and compare ckpt_plan_hash. Its places are taken where they fit this tape's arena, else chosen anew, by the
 * same rules on every rank. Errors: NOT_FOUND, INVALID_PLAN (made for another structure, or refused by the verifier), BUDGET, STATE
 * (a recording is in progress). */
CKPT_API ckpt_status ckpt_tape_adopt(ckpt_tape *tape, uint64_t key, const ckpt_plan *plan);
/* Does beforehand all that a step with this key would have to do but for the work itself: plan, commit of arena memory,
 * tables; on CUDA it waits for the arena's stream, so that the costs of the steps so far are in the plan, and takes the device's word
 * for captured steps. The plan that it finds is the one that a capture uses, until the next prepare or adopt for this key.
 * Errors: NOT_FOUND, BUDGET, OUT_OF_MEMORY, CAPTURE (the stream is being captured). */
CKPT_API ckpt_status ckpt_tape_prepare(ckpt_tape *tape, uint64_t key);

/* ---- a whole step as a graph (CUDA) ----
 *
 * One step (begin, segments, ckpt_backward, and the optimiser if it is on the stream) is captured, and then launched again and again
 * without its host work:
 *
 *   two or three steps as always, by ckpt_tape_begin(tape, key, 0)      costs are measured, kernels and libraries are loaded
 *   ckpt_tape_prepare(tape, key)
 *   ckpt_device_capture_begin(device, stream)                           the arena's stream; or the caller's own capture
 *   the same step by the same key: begin, segments, backward
 *   ckpt_device_capture_end(device, stream, &graph)
 *   for each further step:
 *     write the next batch into the memory that the step reads (on the same stream)
 *     ckpt_tape_replay(tape); ckpt_graph_launch(graph, stream)
 *
 * The captured step itself does no work and the tape's step stays: the first replay is that step. ckpt_tape_replay writes the tape's
 * step into a word of the device, on the arena's stream, and moves the step on by one: ckpt_frame_random gives snapshots with that word
 * (step_word) while a step is captured, so replay k draws what the step would have drawn that it stands for, and steps with and without
 * the graph may alternate. Launch on the arena's stream, or order the launch behind it by an event.
 *
 * Rules. A graph names addresses. Inputs, gradients, weights and the outputs' own memory stay where they are. Arena, tape and all that was
 * taken from the arena before stay as long as the graph is launched; of what is taken later, only recordings may share the arena with
 * it: a block of ckpt_arena_alloc that was not there at the capture can lie where the graph writes. Callbacks run once, at the capture:
 * ckpt_frame_step, sizes and whatever else comes from the host is frozen.
 *
 * What a graph cannot hold is refused with CAPTURE when a recording begins or goes on while the stream is captured, and the recording is
 * gone: no plan that was prepared for the key, a begin without key or with flags, checks, an arena with CKPT_ARENA_GUARD, recordings in
 * flight, host state (save_state), a step that leaves its plan in any way, a recording of which only a part is captured, a second step of
 * the same tape in one graph (ckpt_tape_replay stands for one). The capture itself goes on and has to be ended (and its graph thrown away).
 * Nothing is measured while a step is captured.
 *
 * Error: STATE (no whole step of this tape was captured, or a recording is in progress), CAPTURE (the stream is captured), OVERFLOW. */
CKPT_API ckpt_status ckpt_tape_replay(ckpt_tape *tape);

typedef struct ckpt_tape_stats {
  uint32_t struct_size;
  uint32_t strategy;              /* of the plan in use (see ckpt_plan_summary) */
  uint32_t strategy_k;
  uint32_t planned;               /* 1: the latest step ran a plan from begin to end; 0: it was unknown, or departed from it */
  uint64_t step;
  uint64_t segment_count;         /* latest recording: segments recorded */
  uint64_t forward_count;         /* forward callbacks (or begin/end pairs) of first runs */
  uint64_t recompute_count;       /* forward callbacks beyond the first, those that make one slot again too */
  uint64_t backward_done;         /* backward callbacks that succeeded */
  uint64_t skipped_count;         /* segments without a gradient */
  uint64_t thinned_count;         /* things dropped because an unknown recording ran short */
  uint64_t plan_count;            /* plans made since create */
  uint64_t plan_hit_count;        /* recordings that found their plan, since create */
  size_t budget_bytes;
  size_t peak_predicted_bytes;    /* live load; 0 where there was no plan */
  size_t peak_measured_bytes;
  size_t arena_predicted_bytes;   /* height */
  size_t arena_measured_bytes;
  size_t held_bytes;              /* measured at the end of forward */
  size_t minimum_budget_bytes;    /* of the tape's strategy, for the latest plan or refusal; 0: not known */
  double recompute_seconds;       /* latest step, measured: forward callbacks beyond the first. On CUDA these three are measured on the
                                     device without waiting for it, and are 0 until a later recording begins when the step is done */
  double forward_seconds;         /* first runs, where costs were measured (else 0) */
  double backward_seconds;        /* likewise */
  double predicted_recompute_seconds;
} ckpt_tape_stats;

/* Fills *out_stats; its struct_size must be set. */
CKPT_API ckpt_status ckpt_tape_get_stats(const ckpt_tape *tape, ckpt_tape_stats *out_stats);

/* Called at each change of memory with the live load after it, for timelines. what: action kind of CKPT_ACTION_*; index: segment
 * or boundary. Not called inside frames' own code. */
typedef void (*ckpt_trace_fn)(void *user, uint32_t what, uint32_t index, size_t in_use_bytes, uint32_t is_recompute);
/* NULL ends it. `user` is retained until then or until the tape is gone. */
CKPT_API ckpt_status ckpt_tape_set_trace(ckpt_tape *tape, ckpt_trace_fn trace, void *user);

/* ---- frames: only inside the segment's code; they cannot fail ---- */

/* 1: compute this slot (output) now. 0: it is there already, nobody will read it, or the recording is dry. */
CKPT_API int ckpt_frame_needs(ckpt_frame *frame, uint32_t slot);
CKPT_API int ckpt_frame_needs_output(ckpt_frame *frame, uint32_t output);

/* Device pointers, aligned to the arena's alignment. What `needs` asks for has one, and so has what that is computed from.
 * Anything else may be NULL: in a replay most of a segment is, so work only where `needs` says so. NULL too in a dry recording,
 * and for a number out of range, which also fails the frame. Zero bytes have an address. */
CKPT_API void *ckpt_frame_slot(ckpt_frame *frame, uint32_t slot);
CKPT_API void *ckpt_frame_output(ckpt_frame *frame, uint32_t output);
CKPT_API const void *ckpt_frame_input(ckpt_frame *frame, uint32_t input);
/* Backward: NULL means zero (or: a root that seeds itself). */
CKPT_API const void *ckpt_frame_output_grad(ckpt_frame *frame, uint32_t output);
/* Backward: NULL: not wanted. *out_accumulate 1: add to what is there; 0: write all of it. With GRAD_OVER_OUTPUT_0 the
 * pointer may equal the output's gradient. */
CKPT_API void *ckpt_frame_input_grad(ckpt_frame *frame, uint32_t input, int *out_accumulate);
/* NULL, and of no bytes, in the forward of a segment that has neither slots nor outputs: it computes nothing that a plan counts. */
CKPT_API void *ckpt_frame_scratch(ckpt_frame *frame);

enum {
  CKPT_FRAME_SLOT = 0, CKPT_FRAME_OUTPUT = 1, CKPT_FRAME_INPUT = 2, CKPT_FRAME_OUTPUT_GRAD = 3, CKPT_FRAME_INPUT_GRAD = 4,
  CKPT_FRAME_SCRATCH = 5
};
/* Sizes as recorded, not rounded; 0 for what is out of range. */
CKPT_API size_t ckpt_frame_bytes(const ckpt_frame *frame, uint32_t what, uint32_t k);

/* The snapshot for draws of this segment in this step; `site` (< 65536) is a number of the callback's choice. The same in
 * first run, recompute and backward. Out of range: fails the frame. While the step is captured its subsequence has no step, and
 * step_word names the device's word with it (ckpt_tape_replay): kernels add *step_word where it is not NULL. */
CKPT_API void ckpt_frame_random(ckpt_frame *frame, uint32_t site, ckpt_philox *out_philox);

/* What this frame is. The step is the recording's; stream and user are those of the arena and of the segment's call. */
CKPT_API int ckpt_frame_is_recompute(const ckpt_frame *frame); /* 1: a replay: do not count, update or log twice */
CKPT_API int ckpt_frame_is_backward(const ckpt_frame *frame);
CKPT_API int ckpt_frame_is_dry(const ckpt_frame *frame);
CKPT_API uint64_t ckpt_frame_index(const ckpt_frame *frame);   /* this segment's place in the recording: the loop index */
CKPT_API uint64_t ckpt_frame_step(const ckpt_frame *frame);
CKPT_API void *ckpt_frame_stream(const ckpt_frame *frame);
CKPT_API void *ckpt_frame_user(const ckpt_frame *frame);

/* Sets the message that goes with a failing status; returns status: return ckpt_frame_fail(f, 7, "cublas 13"); */
CKPT_API ckpt_status ckpt_frame_fail(ckpt_frame *frame, ckpt_status status, const char *text);

#ifdef __cplusplus
}
#endif
#endif
