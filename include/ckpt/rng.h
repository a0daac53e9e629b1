/* libckpt: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC'11).
 *
 * A draw is a pure function of (seed, step, segment, site, element); no state moves, so a replay draws the same.
 * Words are those of cuRAND's Philox4_32_10: curand_init(seed, subsequence, offset) has key = seed (low, high) and
 * counter = (offset / 4 low, high, subsequence low, high); the word is lane offset mod 4. Element e of a fill is word
 * offset + e.
 *
 * Packing (frozen): subsequence = segment * 2^36 + step, offset = site * 2^48 + element, with
 * step < 2^36, segment < 2^28, site < 2^16, element < 2^48. It is injective, and step may be added on the device. */
#ifndef CKPT_RNG_H
#define CKPT_RNG_H

#include "ckpt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A snapshot: a plain value, 32 bytes for ever. The effective subsequence is subsequence + *step_word where step_word is
 * not NULL, modulo 2^64 (device memory that is written before a captured graph is replayed; host memory for the fills
 * below). */
typedef struct ckpt_philox {
  uint64_t seed;
  uint64_t subsequence;
  uint64_t offset;
  const uint64_t *step_word;
} ckpt_philox;

/* Packs (seed, step, segment, site) as above, element 0, step_word NULL. Error: OVERFLOW naming the part and its bound. */
CKPT_API ckpt_status ckpt_philox_pack(uint64_t seed, uint64_t step, uint64_t segment, uint32_t site, ckpt_philox *out_philox);

/* One block: out[0..3] = philox4x32-10(counter[0..3], key[0..1]). */
CKPT_API void ckpt_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Fills of `count` elements, host memory, any alignment that the element type has. Element e depends on the snapshot and
 * first + e alone: a fill cut into pieces equals the whole. `first` is added to the snapshot's offset.
 * Errors: INVALID_ARGUMENT, OVERFLOW (offset + first + count beyond 2^64). Thread-safe. */
CKPT_API ckpt_status ckpt_philox_u32(const ckpt_philox *philox, uint64_t first, size_t count, uint32_t *out_words);

/* float32 uniform in (0, 1]: x * 2^-32 + 2^-33, as cuRAND's; the 128 largest x give exactly 1.0f. */
CKPT_API ckpt_status ckpt_philox_uniform(const ckpt_philox *philox, uint64_t first, size_t count, float *out_values);

/* float32 normal (Box-Muller as cuRAND's: words 2j, 2j+1 of the subsequence give z at 2j (sine part) and 2j+1 (cosine
 * part), so with an odd offset element 0 is a cosine part), scaled: mean + stddev * z in one rounding. The same bits on
 * every machine and vector width; z is within 3.5 units in the last place of the formulas in float32's u and angle, within
 * 2.5e-6 of the exact ones, and agrees with cuRAND's to the rounding of its angle (4e-6), not bit by bit.
 * Error: INVALID_ARGUMENT also for a mean or stddev that is not finite, and for a negative stddev. */
CKPT_API ckpt_status ckpt_philox_normal(const ckpt_philox *philox, uint64_t first, size_t count, float mean, float stddev,
                                        float *out_values);

/* Bytes 0 or 1: 1 with the given probability. Compares integers: 1 iff x < ckpt_philox_threshold(probability). */
CKPT_API ckpt_status ckpt_philox_bernoulli(const ckpt_philox *philox, uint64_t first, size_t count, double probability,
                                           uint8_t *out_bytes);

/* The same fills in device memory, enqueued on `stream` (device.h): the same bits as the host's for the same snapshot, and legal while
 * the stream is captured. out has the alignment of its elements (else INVALID_ARGUMENT); step_word, where there is one, is device memory,
 * aligned to 8, that is read when the work is done. On the CPU they are the functions above. Errors: those above, and of the device. Thread-safe. */
CKPT_API ckpt_status ckpt_device_philox_u32(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first, size_t count,
                                            uint32_t *out_words);
CKPT_API ckpt_status ckpt_device_philox_uniform(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first,
                                                size_t count, float *out_values);
CKPT_API ckpt_status ckpt_device_philox_normal(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first,
                                               size_t count, float mean, float stddev, float *out_values);
CKPT_API ckpt_status ckpt_device_philox_bernoulli(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first,
                                                  size_t count, double probability, uint8_t *out_bytes);

/* The integer threshold of a probability in [0, 1]: round(probability * 2^32), so 0 never and 2^32 always passes.
 * Values outside [0, 1] and NaN give UINT64_MAX. */
CKPT_API uint64_t ckpt_philox_threshold(double probability);

/* Stateful generators, for interplay with cuRAND's and PyTorch's only: position = words drawn so far. */
typedef struct ckpt_rng ckpt_rng;

/* A generator as curand_init(seed, subsequence, offset) makes it. *out_rng is owned. */
CKPT_API ckpt_status ckpt_rng_create(uint64_t seed, uint64_t subsequence, uint64_t offset, ckpt_rng **out_rng);
CKPT_API void ckpt_rng_destroy(ckpt_rng *rng);
/* Snapshot of the present position; restore goes there. A snapshot with a step_word is refused: add the word first. */
CKPT_API ckpt_status ckpt_rng_snapshot(const ckpt_rng *rng, ckpt_philox *out_philox);
CKPT_API ckpt_status ckpt_rng_restore(ckpt_rng *rng, const ckpt_philox *philox);
/* Moves on by `words`, rounded up to a multiple of 4 as PyTorch does when `round_up_to_4` is not 0. Error: OVERFLOW. */
CKPT_API ckpt_status ckpt_rng_advance(ckpt_rng *rng, uint64_t words, uint32_t round_up_to_4);

#ifdef __cplusplus
}
#endif
#endif
