#include "ckpt/rng.h"

#include <cmath>
#include <memory>

#include "rng/fill.h"
#include "rng/philox.h"
#include "rng/snapshot.h"

struct ckpt_rng {
  ckpt::rng::Generator generator;
};

namespace {

using ckpt::fail;
using ckpt::rng::Stream;

ckpt_status null_argument(const char *function, const char *argument) noexcept {
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, argument);
}

}  // namespace

extern "C" {

ckpt_status ckpt_philox_pack(uint64_t seed, uint64_t step, uint64_t segment, uint32_t site, ckpt_philox *out_philox) {
  return ckpt::rng::pack(seed, step, segment, site, out_philox);
}

void ckpt_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  const ckpt::rng::Block block = ckpt::rng::philox({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
  for (int i = 0; i < 4; ++i) out[i] = block.word[i];
}

ckpt_status ckpt_philox_u32(const ckpt_philox *philox, uint64_t first, size_t count, uint32_t *out_words) {
  Stream stream;
  CKPT_TRY(ckpt::rng::stream_of("ckpt_philox_u32", philox, first, count, out_words, &stream));
  ckpt::rng::best_fills().u32(stream, count, out_words);
  return CKPT_OK;
}

ckpt_status ckpt_philox_uniform(const ckpt_philox *philox, uint64_t first, size_t count, float *out_values) {
  Stream stream;
  CKPT_TRY(ckpt::rng::stream_of("ckpt_philox_uniform", philox, first, count, out_values, &stream));
  ckpt::rng::best_fills().uniform(stream, count, out_values);
  return CKPT_OK;
}

ckpt_status ckpt_philox_normal(const ckpt_philox *philox, uint64_t first, size_t count, float mean, float stddev,
                               float *out_values) {
  Stream stream;
  CKPT_TRY(ckpt::rng::stream_of("ckpt_philox_normal", philox, first, count, out_values, &stream));
  if (!std::isfinite(mean))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_philox_normal: mean is %g, expected a finite number",
                static_cast<double>(mean));
  if (!std::isfinite(stddev) || stddev < 0.0f)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_philox_normal: stddev is %g, expected a finite number of at least 0",
                static_cast<double>(stddev));
  ckpt::rng::best_fills().normal(stream, count, mean, stddev, out_values);
  return CKPT_OK;
}

ckpt_status ckpt_philox_bernoulli(const ckpt_philox *philox, uint64_t first, size_t count, double probability,
                                  uint8_t *out_bytes) {
  Stream stream;
  CKPT_TRY(ckpt::rng::stream_of("ckpt_philox_bernoulli", philox, first, count, out_bytes, &stream));
  const uint64_t threshold = ckpt::rng::threshold_of(probability);
  if (threshold == UINT64_MAX)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_philox_bernoulli: probability is %g, expected 0 to 1", probability);
  ckpt::rng::bernoulli(ckpt::rng::best_fills(), stream, count, threshold, out_bytes);
  return CKPT_OK;
}

uint64_t ckpt_philox_threshold(double probability) { return ckpt::rng::threshold_of(probability); }

ckpt_status ckpt_rng_create(uint64_t seed, uint64_t subsequence, uint64_t offset, ckpt_rng **out_rng) {
  if (out_rng == nullptr) return null_argument("ckpt_rng_create", "out_rng");
  *out_rng = nullptr;
  return ckpt::guarded("ckpt_rng_create", [&] {
    *out_rng = std::make_unique<ckpt_rng>(ckpt_rng{{seed, subsequence, offset}}).release();
    return CKPT_OK;
  });
}

void ckpt_rng_destroy(ckpt_rng *rng) { delete rng; }

ckpt_status ckpt_rng_snapshot(const ckpt_rng *rng, ckpt_philox *out_philox) {
  if (rng == nullptr) return null_argument("ckpt_rng_snapshot", "rng");
  if (out_philox == nullptr) return null_argument("ckpt_rng_snapshot", "out_philox");
  *out_philox = rng->generator.snapshot();
  return CKPT_OK;
}

ckpt_status ckpt_rng_restore(ckpt_rng *rng, const ckpt_philox *philox) {
  if (rng == nullptr) return null_argument("ckpt_rng_restore", "rng");
  if (philox == nullptr) return null_argument("ckpt_rng_restore", "philox");
  return rng->generator.restore(*philox);
}

ckpt_status ckpt_rng_advance(ckpt_rng *rng, uint64_t words, uint32_t round_up_to_4) {
  if (rng == nullptr) return null_argument("ckpt_rng_advance", "rng");
  return rng->generator.advance(words, round_up_to_4 != 0);
}

}  // extern "C"
