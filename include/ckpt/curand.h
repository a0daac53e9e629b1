/* libckpt: to and from cuRAND's Philox4_32_10. A C++17 header, for g++ and for nvcc (host and device), and the only one that needs
 * something else: cuRAND's curand_kernel.h on the include path. All of it is inline. Words and positions count modulo 2^64.
 *
 *   - A state of the device API is a place in a sequence: a snapshot (ckpt_philox) or a generator (ckpt_rng) takes it over, and
 *     hands one back that goes on with the very next word. What is taken over are words: a normal value that curand_normal made and
 *     put aside is none, so take over after an even number of them.
 *   - A generator of the host API (CURAND_RNG_PSEUDO_PHILOX4_32_10 in its default order) gives element p from
 *     block = p / 4, subsequence = block mod 65536, word block / 65536 * 4 + p mod 4 of that subsequence. Its snapshot is (seed, p). */
#ifndef CKPT_CURAND_H
#define CKPT_CURAND_H

#include "ckpt/rng.h"

#ifndef __cplusplus
#error "ckpt/curand.h is a C++ header, as cuRAND's curand_kernel.h is"
#endif

#include <curand_kernel.h>

#if defined(__CUDACC__)
#define CKPT_CURAND_INLINE static inline __host__ __device__
#else
#define CKPT_CURAND_INLINE static inline
#endif

/* Where `state` stands: element 0 of the snapshot is the word that curand(state) gives next. `state` does not move. */
CKPT_CURAND_INLINE ckpt_philox ckpt_philox_from_curand(const curandStatePhilox4_32_10_t *state) {
  ckpt_philox philox = {};
  philox.seed = static_cast<uint64_t>(state->key.y) << 32 | state->key.x;
  philox.subsequence = static_cast<uint64_t>(state->ctr.w) << 32 | state->ctr.z;
  philox.offset = (static_cast<uint64_t>(state->ctr.y) << 32 | state->ctr.x) * 4 + state->STATE;
  return philox;
}

/* *state becomes curand_init(seed, subsequence, offset + first): it gives the words of the elements first, first + 1, ... A step_word is
 * read, where the function runs. */
CKPT_CURAND_INLINE void ckpt_philox_to_curand(const ckpt_philox *philox, uint64_t first, curandStatePhilox4_32_10_t *state) {
  const uint64_t step = philox->step_word != nullptr ? *philox->step_word : 0;
  const uint64_t subsequence = philox->subsequence + step, word = philox->offset + first;
#if defined(__CUDA_ARCH__)
  curand_init(philox->seed, subsequence, word, state);
#else
  /* With nvcc, curand_init is not there for the host. */
  const uint32_t key[2] = {static_cast<uint32_t>(philox->seed), static_cast<uint32_t>(philox->seed >> 32)};
  const uint64_t block = word / 4;
  const uint32_t counter[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(subsequence),
                               static_cast<uint32_t>(subsequence >> 32)};
  uint32_t words[4];
  ckpt_philox_block(counter, key, words);
  *state = curandStatePhilox4_32_10_t();
  state->key = make_uint2(key[0], key[1]);
  state->ctr = make_uint4(counter[0], counter[1], counter[2], counter[3]);
  state->output = make_uint4(words[0], words[1], words[2], words[3]);
  state->STATE = static_cast<unsigned>(word % 4);
#endif
}

/* A generator that goes on where `state` stands. *out_rng is owned. Errors: as ckpt_rng_create. */
static inline ckpt_status ckpt_rng_from_curand(const curandStatePhilox4_32_10_t *state, ckpt_rng **out_rng) {
  const ckpt_philox philox = ckpt_philox_from_curand(state);
  return ckpt_rng_create(philox.seed, philox.subsequence, philox.offset, out_rng);
}

/* *state goes on where `rng` stands; `rng` does not move. Errors: as ckpt_rng_snapshot; *state is then all zeros. */
static inline ckpt_status ckpt_rng_to_curand(const ckpt_rng *rng, curandStatePhilox4_32_10_t *state) {
  *state = curandStatePhilox4_32_10_t();
  ckpt_philox philox = {};
  const ckpt_status status = ckpt_rng_snapshot(rng, &philox);
  if (status == CKPT_OK) ckpt_philox_to_curand(&philox, 0, state);
  return status;
}

/* A snapshot of a host API generator: the seed that curandSetPseudoRandomGeneratorSeed was given, and the offset that
 * curandSetGeneratorOffset was given (else 0) plus the elements made since. A plain value. */
struct ckpt_curand_host {
  uint64_t seed;
  uint64_t position;
};

enum { CKPT_CURAND_HOST_SUBSEQUENCES = 65536 };

/* The snapshot whose element 0 is the word of element `first` from the position on; elements 1, 2, ... of it are what follows in the same
 * block of four only. */
CKPT_CURAND_INLINE ckpt_philox ckpt_philox_from_curand_host(ckpt_curand_host generator, uint64_t first) {
  const uint64_t element = generator.position + first, block = element / 4;
  ckpt_philox philox = {};
  philox.seed = generator.seed;
  philox.subsequence = block % CKPT_CURAND_HOST_SUBSEQUENCES;
  philox.offset = block / CKPT_CURAND_HOST_SUBSEQUENCES * 4 + element % 4;
  return philox;
}

/* What curandGenerate gives for the elements first ... first + count - 1 from the position on. Host memory. */
static inline void ckpt_curand_host_u32(ckpt_curand_host generator, uint64_t first, size_t count, uint32_t *out_words) {
  const uint32_t key[2] = {static_cast<uint32_t>(generator.seed), static_cast<uint32_t>(generator.seed >> 32)};
  for (size_t done = 0; done < count;) {
    const ckpt_philox at = ckpt_philox_from_curand_host(generator, first + done);
    const uint64_t block = at.offset / 4;
    const uint32_t counter[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(at.subsequence), 0};
    uint32_t words[4];
    ckpt_philox_block(counter, key, words);
    for (uint64_t lane = at.offset % 4; lane < 4 && done < count; ++lane, ++done) out_words[done] = words[lane];
  }
}

/* The same as float32 in (0, 1]: what curandGenerateUniform gives. */
static inline void ckpt_curand_host_uniform(ckpt_curand_host generator, uint64_t first, size_t count, float *out_values) {
  for (size_t done = 0; done < count;) {
    uint32_t words[4];
    const size_t room = 4 - (generator.position + first + done) % 4, taken = count - done < room ? count - done : room;
    ckpt_curand_host_u32(generator, first + done, taken, words);
    for (size_t k = 0; k < taken; ++k) out_values[done + k] = static_cast<float>(words[k]) * 0x1p-32f + 0x1p-33f;
    done += taken;
  }
}

#endif
