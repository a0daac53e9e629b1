#include "ckpt/rng.h"

#include <memory>

#include "abi/handle.h"
#include "rng/fill.h"
#include "rng/philox.h"
#include "rng/snapshot.h"

struct ckpt_rng {
  ckpt::rng::Generator generator;
};

namespace {

using ckpt::fail;
using ckpt::device::Fill;
using ckpt::rng::Stream;

ckpt_status null_argument(const char *function, const char *argument) noexcept {
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, argument);
}

ckpt_status device_fill(const char *function, ckpt_device *device, void *stream, Fill fill, const ckpt_philox *philox, uint64_t first, size_t count,
                        double a, double b, void *out) noexcept {
  if (device == nullptr) return null_argument(function, "device");
  uint64_t word = 0;
  CKPT_TRY(ckpt::rng::check_fill(function, philox, first, count, out, &word));
  // A kernel that stores to such an address takes the whole device with it.
  const size_t element = fill == Fill::bernoulli ? 1 : 4;
  if (reinterpret_cast<uintptr_t>(out) % element != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: the output is %p, expected a multiple of %zu", function, out, element);
  if (reinterpret_cast<uintptr_t>(philox->step_word) % alignof(uint64_t) != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: philox.step_word is %p, expected a multiple of %zu", function, static_cast<const void *>(philox->step_word), alignof(uint64_t));
  return ckpt::abi::object(device)->philox(stream, fill, philox, first, count, a, b, out);
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
  CKPT_TRY(ckpt::rng::check_normal("ckpt_philox_normal", mean, stddev));
  ckpt::rng::best_fills().normal(stream, count, mean, stddev, out_values);
  return CKPT_OK;
}

ckpt_status ckpt_philox_bernoulli(const ckpt_philox *philox, uint64_t first, size_t count, double probability,
                                  uint8_t *out_bytes) {
  Stream stream;
  CKPT_TRY(ckpt::rng::stream_of("ckpt_philox_bernoulli", philox, first, count, out_bytes, &stream));
  CKPT_TRY(ckpt::rng::check_probability("ckpt_philox_bernoulli", probability));
  ckpt::rng::bernoulli(ckpt::rng::best_fills(), stream, count, ckpt::rng::threshold_of(probability), out_bytes);
  return CKPT_OK;
}

ckpt_status ckpt_device_philox_u32(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first, size_t count, uint32_t *out_words) {
  return device_fill(__func__, device, stream, Fill::u32, philox, first, count, 0, 0, out_words);
}

ckpt_status ckpt_device_philox_uniform(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first, size_t count, float *out_values) {
  return device_fill(__func__, device, stream, Fill::uniform, philox, first, count, 0, 0, out_values);
}

ckpt_status ckpt_device_philox_normal(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first, size_t count, float mean,
                                      float stddev, float *out_values) {
  CKPT_TRY(ckpt::rng::check_normal(__func__, mean, stddev));
  return device_fill(__func__, device, stream, Fill::normal, philox, first, count, static_cast<double>(mean), static_cast<double>(stddev), out_values);
}

ckpt_status ckpt_device_philox_bernoulli(ckpt_device *device, void *stream, const ckpt_philox *philox, uint64_t first, size_t count,
                                         double probability, uint8_t *out_bytes) {
  CKPT_TRY(ckpt::rng::check_probability(__func__, probability));
  return device_fill(__func__, device, stream, Fill::bernoulli, philox, first, count, probability, 0, out_bytes);
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
