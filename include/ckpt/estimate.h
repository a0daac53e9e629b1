/* libckpt: the activation memory of a transformer before anybody trains it: from a model's shape and a layout over ranks, the
 * bytes that each rank holds, what recomputing them costs, and the chain that ckpt_plan_create takes.
 *
 * Formulas: Korthikanti, Casper, Lym, McAfee, Andersch, Shoeybi, Catanzaro, "Reducing Activation Recomputation in Large
 * Transformer Models" (2022, arXiv 2205.05198), for pre-norm blocks; the same count for gated feed-forward, grouped-query and
 * flash attention. Counted is what backward reads: inputs of products, norms and activations, masks of dropout (one byte an
 * element), attention weights or, with flash attention, a float32 log-sum-exp per row. Weights, gradients of weights,
 * optimizer states and communication buffers are not activations.
 *
 * Pure, thread-safe. */
#ifndef CKPT_ESTIMATE_H
#define CKPT_ESTIMATE_H

#include "ckpt/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CKPT_MODEL_GELU = 0, CKPT_MODEL_SWIGLU = 1 };          /* SWIGLU: a gated feed-forward of three matrices */
enum { CKPT_MODEL_PLAIN_ATTENTION = 0, CKPT_MODEL_FLASH_ATTENTION = 1 };
enum { CKPT_MODEL_DROPOUT = 1 };                              /* after embedding, attention weights, projection, feed-forward */

typedef struct ckpt_model_desc {
  uint32_t struct_size;
  uint32_t activation;     /* CKPT_MODEL_GELU or _SWIGLU */
  uint32_t attention;      /* CKPT_MODEL_PLAIN_ATTENTION or _FLASH_ATTENTION (draws its dropout again: stores no mask) */
  uint32_t flags;          /* CKPT_MODEL_DROPOUT */
  uint32_t element_bytes;  /* of an activation: 1, 2, 4 or 8; 0: 2 */
  uint32_t reserved;       /* 0 */
  uint64_t layers;         /* at most 8192 */
  uint64_t hidden;
  uint64_t heads;
  uint64_t kv_heads;       /* divides heads; 0: heads */
  uint64_t head_size;      /* 0: hidden / heads, which must then divide */
  uint64_t ffn;            /* width of the feed-forward; 0: 4 * hidden */
  uint64_t sequence;
  uint64_t micro_batch;
  uint64_t vocabulary;     /* 0: no head: the last stage ends with the last layer */
} ckpt_model_desc;

#define CKPT_MODEL_DESC_INIT { sizeof(ckpt_model_desc), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

enum { CKPT_LAYOUT_SEQUENCE_PARALLEL = 1 }; /* norms, dropout and block inputs are cut along the sequence over the tensor ranks */

/* Counts: 0 is 1. */
typedef struct ckpt_layout_desc {
  uint32_t struct_size;
  uint32_t flags;            /* CKPT_LAYOUT_SEQUENCE_PARALLEL */
  uint64_t tensor_parallel;  /* divides heads, ffn and vocabulary; divides kv_heads or is a multiple (then they are replicated) */
  uint64_t context_parallel; /* divides sequence: each rank has its part of it */
  uint64_t pipeline;         /* stages; times virtual_pipeline it divides layers */
  uint64_t virtual_pipeline; /* chunks of layers per rank (interleaved schedule); more than 1: pipeline is at least 2, and
                                micro_batches a multiple of it */
  uint64_t micro_batches;    /* of one step, per data-parallel rank; 0: as many as fill the pipeline */
} ckpt_layout_desc;

#define CKPT_LAYOUT_DESC_INIT { sizeof(ckpt_layout_desc), 0, 0, 0, 0, 0, 0 }

/* What one rank achieves, not what its data sheet says. Both are needed: products are timed by the first, what only moves
 * bytes by the second, whichever is longer. */
typedef struct ckpt_hardware_desc {
  uint32_t struct_size;
  uint32_t reserved;       /* 0 */
  double flops_per_second;
  double bytes_per_second; /* of the device's memory */
} ckpt_hardware_desc;

#define CKPT_HARDWARE_DESC_INIT { sizeof(ckpt_hardware_desc), 0, 0, 0 }

enum {
  CKPT_RECOMPUTE_NONE = 0,
  CKPT_RECOMPUTE_ATTENTION = 1,    /* selective: attention weights (plain), log-sum-exp (flash); Q, K and V stay */
  CKPT_RECOMPUTE_FEED_FORWARD = 2, /* selective: what lies between the feed-forward's input and its last product */
  CKPT_RECOMPUTE_FULL = 3,         /* each layer's input is kept */
  CKPT_RECOMPUTE_OPTIMAL = 4       /* the plan that CKPT_STRATEGY_AUTO makes for a budget */
};
/* Static text: "none", "attention", "feed_forward", "full", "optimal"; "unknown" for other values. */
CKPT_API const char *ckpt_recompute_name(uint32_t policy);

typedef struct ckpt_estimate {
  uint32_t struct_size;
  uint32_t policy;                 /* CKPT_RECOMPUTE_* */
  uint64_t layer_bytes;            /* kept of one layer of one micro-batch, its input included; OPTIMAL: the mean, rounded up */
  uint64_t chunk_layers;           /* layers that run as one: layers / (pipeline * virtual_pipeline) */
  uint64_t in_flight;              /* chunks in flight on this rank, at most 4096. No pipeline: 1. 1F1B: min(micro_batches, pipeline - rank).
                                      Interleaved: min(micro_batches * v, 2 (pipeline - rank - 1) + (v - 1) pipeline + 1) */
  uint64_t layers_in_flight;       /* chunk_layers * in_flight */
  uint64_t outside_bytes;          /* beyond the layers, all in flight: first stage: the embedding's dropout mask; last stage: the
                                      final norm's and the output product's input, float32 logits */
  uint64_t activation_bytes;       /* held by this rank: layer_bytes * layers_in_flight + outside_bytes (OPTIMAL: what the plan holds) */
  uint64_t peak_bytes;             /* the most that lives in the rank's arena: with what a recomputation needs, and with gradients
                                      of activations */
  uint64_t arena_bytes;            /* height of the arena: what a budget bounds */
  uint64_t minimum_budget_bytes;   /* OPTIMAL: the smallest budget that works; else 0 */
  double forward_flops;            /* of this rank, one step: all its layers (and head) and micro-batches */
  double backward_flops;           /* twice that */
  double recompute_flops;          /* beyond both: what libckpt runs again: no product whose output nobody reads */
  double replay_flops;             /* by engines that run whole pieces again: a layer, the attention, the feed-forward */
  double model_flops;              /* of all ranks, one step, nothing recomputed */
  double forward_seconds;          /* of this rank, one step; without hardware these are 0 */
  double backward_seconds;
  double recompute_seconds;
  double offload_bytes_per_second; /* the bandwidth, one way, that would move all that is kept off the device in the time of a step
                                      (and back in the next); 0 without hardware */
} ckpt_estimate;

/* Of one rank of the pipeline (0 .. pipeline - 1). hardware may be NULL. budget_bytes: OPTIMAL alone: the rank's, for all that is
 * in flight; 0: none; else it must be 0. out_estimate->struct_size must be set. Sizes are counted to the byte (an arena rounds
 * each buffer up). Without hardware OPTIMAL weighs costs as on a device of 3.12e14 FLOP/s and 2e12 bytes/s.
 * Errors: INVALID_ARGUMENT (names field, value, expectation), STRUCT_SIZE, OVERFLOW (a size beyond what is counted with), BUDGET
 * (as ckpt_plan_create; out_estimate->minimum_budget_bytes is set). */
CKPT_API ckpt_status ckpt_estimate_rank(const ckpt_model_desc *model, const ckpt_layout_desc *layout,
                                        const ckpt_hardware_desc *hardware, uint32_t policy, uint64_t rank, size_t budget_bytes,
                                        ckpt_estimate *out_estimate);

/* The chain of one chunk of layers (0 .. virtual_pipeline - 1) of one rank, one micro-batch: segment "embedding" on the first,
 * "layer<number>" for each layer, "head" on the last. Plan it with in_flight_count = in_flight. Its sizes add up to what
 * ckpt_estimate_rank counts. A stage's input counts in the arena, its output is the caller's (the next stage's) memory. hardware NULL:
 * as above. alignment_bytes: 0: 256. *out_chain is owned. Errors as above. */
CKPT_API ckpt_status ckpt_estimate_chain(const ckpt_model_desc *model, const ckpt_layout_desc *layout,
                                         const ckpt_hardware_desc *hardware, uint64_t rank, uint64_t chunk, size_t alignment_bytes,
                                         ckpt_chain **out_chain);

#ifdef __cplusplus
}
#endif
#endif
