/* What a test may ask of the CUDA double, beside the CUDA API itself: failures, delays, orders, counts. C functions, exported by the
 * libckpt_cuda.so that is built with the double; a test that loads it finds them with dlsym. All of them are thread-safe. */
#ifndef CUDASIM_CONTROL_H
#define CUDASIM_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDASIM_API __attribute__((visibility("default")))

/* Waits for all streams; forgets failures, delays, sticky error, report; settings are the first ones again. What is live stays. */
CUDASIM_API void cudasim_reset(void);

/* The k-th call from now (1: the next) returns `error`, a cudaError_t, and does nothing; a call that gives something back (a free, a
 * destroy) returns it and does its work. name: counts calls of that function only ("cudaMalloc", "cuMemMap", "cublasLtMatmul"); NULL: of
 * any. k 0: none. Driver functions and cuBLASLt return their own code for it. */
CUDASIM_API void cudasim_fail_call(uint64_t k, int error, const char *name);
CUDASIM_API const char *cudasim_failed_call(void); /* the function that failed so; "" where none has since fail_call */
CUDASIM_API uint64_t cudasim_calls(void);          /* calls so far that can fail so */
CUDASIM_API uint64_t cudasim_calls_of(const char *name);

enum { CUDASIM_COPY = 0, CUDASIM_EVENT = 1, CUDASIM_KERNEL = 2 };
/* The k-th asynchronous copy, event record, kernel (or matrix product) that is issued from now on takes so much longer; captured, every
 * replay of it does. k 0: none. */
CUDASIM_API void cudasim_delay(int what, uint64_t k, unsigned milliseconds);
CUDASIM_API uint64_t cudasim_issued(int what); /* so far */

enum { CUDASIM_FORWARD = 0, CUDASIM_REVERSE = 1, CUDASIM_RANDOM = 2 };
/* In which order the threads of a block run between barriers. */
CUDASIM_API void cudasim_set_order(int order, unsigned seed);
/* Operating-system threads that share the blocks of one grid; 1 at first. */
CUDASIM_API void cudasim_set_workers(unsigned count);
/* Under ThreadSanitizer: 1 makes every thread of a block known to it, so that it finds races in shared memory; for small grids and
 * blocks. 0 at first, or 1 where the environment has CUDASIM_THREADS=1. Elsewhere nothing. */
CUDASIM_API void cudasim_set_thread_races(int on);

CUDASIM_API void cudasim_set_device_count(int count);     /* 2 at first; 0: cudaErrorNoDevice */
CUDASIM_API void cudasim_set_memory(size_t total_bytes);  /* of each device; 8 GiB at first */
CUDASIM_API void cudasim_set_driver_version(int version); /* 0: no driver; older than the run-time: cudaErrorInsufficientDriver */
CUDASIM_API void cudasim_set_virtual_memory(int supported);

/* Text of the latest error on the device: what, which block and thread, which allocation. "" where there was none. */
CUDASIM_API const char *cudasim_report(void);
CUDASIM_API int cudasim_sticky(void); /* the sticky error, 0: none */

typedef struct cudasim_live {
  uint64_t allocations;  /* cudaMalloc */
  uint64_t pinned;       /* cudaMallocHost, cudaHostAlloc */
  uint64_t reservations; /* cuMemAddressReserve */
  uint64_t handles;      /* cuMemCreate that is not released, or still mapped */
  uint64_t mappings;     /* cuMemMap */
  uint64_t streams, events, graphs, graph_execs, blas_objects;
  uint64_t device_bytes; /* behind allocations and handles */
  uint64_t peak_bytes;   /* the most of it since the last reset */
} cudasim_live;
CUDASIM_API void cudasim_get_live(cudasim_live *out);

typedef struct cudasim_stats {
  uint64_t kernels, blocks, threads, switches, collectives, copies, copied_bytes, graph_launches;
} cudasim_stats;
CUDASIM_API void cudasim_get_stats(cudasim_stats *out); /* so far */

#ifdef __cplusplus
}
#endif
#endif
