/* libckpt: offsets for buffers whose lifetimes are known.
 *
 * Buffers that live at the same time must not overlap in memory; the *height*, the highest end of a buffer, should be small.
 * No packing is lower than the largest live load, the *lower bound*. Finding the lowest one is NP-hard (dynamic storage
 * allocation), so ckpt_pack climbs a ladder and stops as soon as the height is the lower bound, or the capacity that was
 * asked for: greedy orders (size, lifetime, area, start, load; first and best fit), local search on the order, exact search
 * (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023).
 *
 * Pure: no clock, no randomness, no device. Effort is counted in work units, so that the same input gives the same offsets on
 * every machine. A plan's own offsets come from here too; call it for buffers that no plan knows. */
#ifndef CKPT_PACK_H
#define CKPT_PACK_H

#include "ckpt/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckpt_pack_buffer {
  uint64_t lower; /* live in [lower, upper): whoever ends at a time does not meet who begins then */
  uint64_t upper; /* greater than lower */
  size_t bytes;   /* 0: takes no place, offset 0 */
} ckpt_pack_buffer;

typedef struct ckpt_pack_desc {
  uint32_t struct_size;
  uint32_t buffer_size;            /* sizeof(ckpt_pack_buffer) */
  const ckpt_pack_buffer *buffers; /* may be NULL with count 0 */
  size_t buffer_count;
  size_t alignment_bytes;          /* sizes are rounded up to it, so every offset is a multiple; power of two; 0: 1 */
  size_t capacity_bytes;           /* a height that is low enough; 0: none, the lowest is looked for */
  uint64_t work_limit;             /* units (a few nanoseconds each) after the first greedy answer; 0: 6e8, a few seconds */
} ckpt_pack_desc;

#define CKPT_PACK_DESC_INIT { sizeof(ckpt_pack_desc), sizeof(ckpt_pack_buffer), NULL, 0, 0, 0, 0 }

typedef struct ckpt_pack_result {
  uint32_t struct_size;
  uint32_t proved;          /* 1: no packing is lower than height_bytes */
  size_t lower_bound_bytes; /* the largest live load, sizes rounded up */
  size_t height_bytes;      /* of these offsets */
  uint64_t work;            /* units spent */
} ckpt_pack_result;

/* Writes out_offsets[k] of buffer k, in the order of the buffers (NULL only with count 0), and fills *out_result (may be NULL;
 * its struct_size must be set).
 * Errors: BUDGET (capacity_bytes was not reached: offsets and result are written all the same, of the lowest packing found; the
 * text has its height, the lower bound, and whether it is proved that none fits), INVALID_ARGUMENT (names buffer, field,
 * value, expectation), STRUCT_SIZE, OVERFLOW (a live load beyond 2^63 bytes), OUT_OF_MEMORY (of the host). */
CKPT_API ckpt_status ckpt_pack(const ckpt_pack_desc *desc, size_t *out_offsets, ckpt_pack_result *out_result);

#ifdef __cplusplus
}
#endif
#endif
