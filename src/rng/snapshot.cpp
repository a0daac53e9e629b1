#include "rng/snapshot.h"

#include <cinttypes>
#include <cmath>

#include "base/checked.h"

namespace ckpt::rng {
namespace {

Status too_large(const char *part, uint64_t value, int bits) noexcept {
  return fail(CKPT_ERROR_OVERFLOW, "ckpt_philox_pack: %s is %" PRIu64 ", expected less than 2^%d = %" PRIu64, part, value,
              bits, uint64_t{1} << bits);
}

}  // namespace

Status pack(uint64_t seed, uint64_t step, uint64_t segment, uint32_t site, ckpt_philox *out) noexcept {
  if (out == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_philox_pack: out_philox is NULL");
  if (step >> kStepBits != 0) return too_large("step", step, kStepBits);
  if (segment >> kSegmentBits != 0) return too_large("segment", segment, kSegmentBits);
  if (site >> kSiteBits != 0) return too_large("site", site, kSiteBits);
  *out = packed(seed, step, segment, site);
  return CKPT_OK;
}

uint64_t threshold_of(double probability) noexcept {
  if (!(probability >= 0.0 && probability <= 1.0)) return UINT64_MAX;
  return static_cast<uint64_t>(std::round(probability * 0x1p32));
}

Status check_fill(const char *function, const ckpt_philox *philox, uint64_t first, size_t count, const void *out, uint64_t *word) noexcept {
  if (philox == nullptr) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: philox is NULL", function);
  if (out == nullptr && count > 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: the output is NULL and count is %zu", function, count);
  if (add_overflows(philox->offset, first, word) || (count > 0 && count - 1 > UINT64_MAX - *word))
    return fail(CKPT_ERROR_OVERFLOW, "%s: offset %" PRIu64 " + first %" PRIu64 " + count %zu is beyond 2^64", function,
                philox->offset, first, count);
  return CKPT_OK;
}

Status check_normal(const char *function, float mean, float stddev) noexcept {
  if (!std::isfinite(mean)) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: mean is %g, expected a finite number", function, static_cast<double>(mean));
  if (!std::isfinite(stddev) || stddev < 0.0f)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: stddev is %g, expected a finite number of at least 0", function, static_cast<double>(stddev));
  return CKPT_OK;
}

Status check_probability(const char *function, double probability) noexcept {
  if (threshold_of(probability) != UINT64_MAX) return CKPT_OK;
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: probability is %g, expected 0 to 1", function, probability);
}

Status stream_of(const char *function, const ckpt_philox *philox, uint64_t first, size_t count, const void *out,
                 Stream *stream) noexcept {
  uint64_t word = 0;
  CKPT_TRY(check_fill(function, philox, first, count, out, &word));
  const uint64_t step = philox->step_word != nullptr ? *philox->step_word : 0;
  *stream = {philox->seed, philox->subsequence + step, word};
  return CKPT_OK;
}

Status Generator::restore(const ckpt_philox &philox) noexcept {
  if (philox.step_word != nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT,
                "ckpt_rng_restore: the snapshot has a step_word, expected NULL: add the word to subsequence first");
  *this = Generator(philox.seed, philox.subsequence, philox.offset);
  return CKPT_OK;
}

Status Generator::advance(uint64_t words, bool round_up_to_4) noexcept {
  uint64_t step = words, position = 0;
  const bool overflow = round_up_to_4 && round_up_overflows(words, size_t{4}, &step);
  if (overflow || add_overflows(position_, step, &position))
    return fail(CKPT_ERROR_OVERFLOW, "ckpt_rng_advance: position %" PRIu64 " + %" PRIu64 " words%s is beyond 2^64 - 1",
                position_, words, round_up_to_4 ? ", rounded up to a multiple of 4," : "");
  position_ = position;
  return CKPT_OK;
}

}  // namespace ckpt::rng
