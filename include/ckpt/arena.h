/* libckpt: arenas. An arena is one slab of device memory and a placer that works on offsets alone.
 *
 * The slab has two ends. Requests grow from the low end by default, from the high end with CKPT_ARENA_HIGH; each end is
 * served by best fit among its free blocks (ties: nearest to that end), which coalesce; last-in-first-out traffic moves
 * only the end's frontier. *Height* is what the slab must at least have for the same requests: the furthest low frontier
 * plus the furthest high frontier. It does not depend on the capacity as long as the capacity is not exhausted; then
 * free blocks of the other end are tried before a request fails.
 *
 * One thread at a time uses an arena and all that lives on it (else BUSY). More threads or streams: more arenas. */
#ifndef CKPT_ARENA_H
#define CKPT_ARENA_H

#include "ckpt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckpt_arena ckpt_arena;

/* The caller's allocator for the slab: one call at create, one at the end. alloc returns NULL to refuse. */
typedef void *(*ckpt_alloc_fn)(void *user, size_t bytes, size_t alignment_bytes);
typedef void (*ckpt_free_fn)(void *user, void *data, size_t bytes);
/* Says that `user` (and the slab that came with it) is no longer used. Called once. */
typedef void (*ckpt_release_fn)(void *user);

enum {
  CKPT_ARENA_GUARD = 1, /* a pattern before and after each block, checked when it is freed and by ckpt_arena_check */
  CKPT_ARENA_POISON = 2, /* new and freed blocks are filled with 0xFF bytes: NaN in every float format */
  CKPT_ARENA_PLAIN = 4   /* the slab comes from the device's ordinary allocator (cudaMalloc) instead of mapped pages, which some
                            libraries cannot share between processes; needs a capacity. The CPU has one kind of memory */
};

enum { CKPT_ARENA_HIGH = 1 /* place from the high end */ };

typedef struct ckpt_arena_desc {
  uint32_t struct_size;
  uint32_t flags;          /* CKPT_ARENA_* of the first list */
  size_t capacity_bytes;   /* 0: bounded by the device's memory alone: address space is reserved, and memory comes on use (on CUDA in
                              pieces of 64 MiB, as far as the furthest block reaches; it stays). Else all of it is there at once on
                              CUDA, and nothing grows later */
  size_t alignment_bytes;  /* power of two, at least 64; 0: 256. Each block's size is rounded up to it */
  void *stream;            /* retained: the one stream of all work on this arena (device.h); NULL on the CPU, and only there */
  void *slab;              /* retained: the caller's memory of capacity_bytes (at least 1), aligned; else NULL */
  ckpt_alloc_fn alloc;     /* with `free`: the caller's allocator, asked once for capacity_bytes */
  ckpt_free_fn free;
  void *user;              /* retained for alloc, free and release */
  ckpt_release_fn release; /* called once when slab and user are no longer needed; also when create fails, but for a desc
                              that is refused as such (INVALID_ARGUMENT, STRUCT_SIZE, OVERFLOW): that is not taken */
} ckpt_arena_desc;

#define CKPT_ARENA_DESC_INIT { sizeof(ckpt_arena_desc), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

typedef struct ckpt_arena_stats {
  uint32_t struct_size;
  uint32_t block_count;       /* live blocks */
  size_t in_use_bytes;        /* live blocks, rounded up, guards included */
  size_t peak_in_use_bytes;   /* the most since create or reset: a lower bound of any placement's height */
  size_t height_bytes;        /* address range touched since create or reset: low frontier + high frontier, furthest */
  size_t capacity_bytes;
  size_t largest_free_bytes;  /* the largest request that succeeds now */
  uint64_t alloc_count;       /* successful ones since create */
  uint64_t free_count;
  uint64_t failed_count;
} ckpt_arena_stats;

/* Creates an arena. The device is retained until the arena and all that lives on it are gone. *out_arena is owned.
 * Errors: INVALID_ARGUMENT, STRUCT_SIZE, OUT_OF_MEMORY (with the numbers), OVERFLOW, DEVICE, CAPTURE (the stream is captured). */
CKPT_API ckpt_status ckpt_arena_create(ckpt_device *device, const ckpt_arena_desc *desc, ckpt_arena **out_arena);

/* Drops the caller's count; tapes and blocks keep the arena alive until they are gone. Memory that came from the device goes back when
 * the work on it is done; for the caller's own, `free` and `release` are called while work that was enqueued may still run on it. */
CKPT_API void ckpt_arena_destroy(ckpt_arena *arena);

/* `bytes` of device memory, aligned; zero bytes give a distinct address too. flags: CKPT_ARENA_HIGH. Borrowed: goes back
 * with ckpt_arena_free. NULL on failure: ckpt_last_status() is BUDGET (capacity: wanted, free, largest block), BUSY,
 * INVALID_ARGUMENT, OVERFLOW, or OUT_OF_MEMORY (of the host, whose tables grow when more blocks live than ever before).
 * Never synchronises. With a capacity it never asks the device for memory; without one also OUT_OF_MEMORY of the device, and CAPTURE
 * where memory would have to grow while the stream is captured. */
CKPT_API void *ckpt_arena_alloc(ckpt_arena *arena, size_t bytes, uint32_t flags);

/* Gives a block back. NULL is fine. Errors: INVALID_ARGUMENT (not a live block of this arena: nothing changes), BUSY,
 * CHECK (guard bytes overwritten: the block is freed all the same). */
CKPT_API ckpt_status ckpt_arena_free(ckpt_arena *arena, void *data);

/* With CKPT_ARENA_GUARD: verifies the guards of all live blocks. Error: CHECK, naming block address, size and offset. */
CKPT_API ckpt_status ckpt_arena_check(ckpt_arena *arena);

/* Fills *out_stats; its struct_size must be set. */
CKPT_API ckpt_status ckpt_arena_get_stats(const ckpt_arena *arena, ckpt_arena_stats *out_stats);

/* Starts peak_in_use_bytes and height_bytes anew from what is live now. */
CKPT_API ckpt_status ckpt_arena_reset_stats(ckpt_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
