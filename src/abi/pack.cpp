#include "ckpt/pack.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "abi/struct_size.h"
#include "arena/pack.h"
#include "base/checked.h"

namespace {

using ckpt::fail;

// Sizes in the first release.
constexpr size_t kDescFirst = 48, kBufferFirst = 24, kResultFirst = 32;
static_assert(sizeof(ckpt_pack_desc) >= kDescFirst && sizeof(ckpt_pack_buffer) >= kBufferFirst && sizeof(ckpt_pack_result) >= kResultFirst);

ckpt_status read_buffers(const char *fn, const ckpt_pack_desc &desc, size_t alignment, std::vector<ckpt::arena::PackBuffer> *to) {
  if (desc.buffer_size > SIZE_MAX / std::max<size_t>(desc.buffer_count, 1))
    return fail(CKPT_ERROR_OVERFLOW, "%s: desc.buffer_count is %zu, whose array of %u bytes each does not fit in memory", fn, desc.buffer_count, desc.buffer_size);
  to->reserve(std::min<size_t>(desc.buffer_count, size_t{1} << 20));
  for (size_t k = 0; k < desc.buffer_count; ++k) {
    char what[48];
    std::snprintf(what, sizeof what, "desc.buffers[%zu]", k);
    ckpt_pack_buffer b;
    CKPT_TRY(ckpt::abi::read_element(fn, what, desc.buffers, desc.buffer_size, kBufferFirst, k, &b));
    if (b.upper <= b.lower)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s.upper is %llu, expected more than lower (%llu)", fn, what,
                  static_cast<unsigned long long>(b.upper), static_cast<unsigned long long>(b.lower));
    size_t bytes = 0;
    if (ckpt::round_up_overflows(b.bytes, alignment, &bytes))
      return fail(CKPT_ERROR_OVERFLOW, "%s: %s.bytes is %zu, expected a size that can be rounded up to the alignment of %zu", fn, what, b.bytes, alignment);
    to->push_back({b.lower, b.upper, bytes});
  }
  return CKPT_OK;
}

}  // namespace

extern "C" {

ckpt_status ckpt_pack(const ckpt_pack_desc *desc, size_t *out_offsets, ckpt_pack_result *out_result) {
  ckpt_pack_desc ours;
  CKPT_TRY(ckpt::abi::read_struct(__func__, "desc", desc, kDescFirst, &ours));
  if (out_result != nullptr) CKPT_TRY(ckpt::abi::check_out_struct(__func__, "out_result", out_result, kResultFirst));
  if (ours.buffer_count != 0 && ours.buffers == nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.buffers is NULL and desc.buffer_count is %zu, expected an array", __func__, ours.buffer_count);
  if (ours.buffer_count != 0 && out_offsets == nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: out_offsets is NULL and desc.buffer_count is %zu, expected an array", __func__, ours.buffer_count);
  const size_t alignment = ours.alignment_bytes == 0 ? 1 : ours.alignment_bytes;
  if (!ckpt::is_power_of_two(alignment))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.alignment_bytes is %zu, expected a power of two, or 0 for 1", __func__, alignment);
  return ckpt::guarded(__func__, [&, function = __func__]() -> ckpt_status {
    std::vector<ckpt::arena::PackBuffer> buffers;
    CKPT_TRY(read_buffers(function, ours, alignment, &buffers));
    ckpt::arena::Packing packing;
    CKPT_TRY(ckpt::arena::pack(buffers, {ours.capacity_bytes, ours.work_limit}, &packing));
    std::copy(packing.offsets.begin(), packing.offsets.end(), out_offsets);
    ckpt_pack_result result{};
    result.proved = packing.proved ? 1 : 0;
    result.lower_bound_bytes = packing.lower_bound;
    result.height_bytes = packing.height;
    result.work = packing.work;
    if (out_result != nullptr) ckpt::abi::write_struct(result, out_result);
    if (ours.capacity_bytes == 0 || packing.height <= ours.capacity_bytes) return CKPT_OK;
    return fail(CKPT_ERROR_BUDGET, "%s: %zu buffers do not fit in desc.capacity_bytes of %zu: the lowest packing found takes %zu, the lower bound is %zu; %s",
                function, ours.buffer_count, ours.capacity_bytes, packing.height, packing.lower_bound,
                packing.refuted ? "it is proved that none fits" : "whether one fits is not known, the work limit was reached");
  });
}

}  // extern "C"
