#include "ops/handle.h"

#include <cstdio>
#include <exception>

namespace {

using namespace ckpt::ops;

constexpr uint32_t kMostThreads = 1024;

ckpt_status threads_of_machine(uint32_t *out_count) noexcept {
  ckpt_device *device = nullptr;
  ckpt_device_info info = {};
  info.struct_size = sizeof info;
  if (const ckpt_status status = ckpt_device_open("cpu", &device)) return fail_as_core(status);
  const ckpt_status status = ckpt_device_get_info(device, &info);
  ckpt_device_close(device);
  if (status != CKPT_OK) return fail_as_core(status);
  *out_count = info.thread_count == 0 ? 1 : info.thread_count < kMostThreads ? info.thread_count : kMostThreads;
  return CKPT_OK;
}

ckpt_status create(uint32_t thread_count, const Kernels &kernels, ckpt_ops **out_ops) noexcept {
  try {
    auto ops = std::make_unique<ckpt_ops>(kernels);
    ops->of_thread.resize(thread_count);
    if (!ops->pool.start(thread_count))
      return fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_create: the system refused to start %u threads", thread_count - 1);
    *out_ops = ops.release();
    return CKPT_OK;
  } catch (const std::exception &) {
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_create: no memory for %u threads", thread_count);
  }
}

}  // namespace

extern "C" {

const char *ckpt_ops_last_error(void) { return last_error(); }

ckpt_status ckpt_ops_create(const ckpt_ops_desc *desc, ckpt_ops **out_ops) {
  if (out_ops == nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: out_ops is NULL, expected an address");
  *out_ops = nullptr;
  ckpt_ops_desc mine = CKPT_OPS_DESC_INIT;
  if (desc != nullptr) CKPT_OPS_TRY(read_struct("ckpt_ops_create", desc, 16, &mine));
  if (mine.thread_count > kMostThreads)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.thread_count is %u, expected at most %u",
                mine.thread_count, kMostThreads);
  if (mine.isa > CKPT_ISA_AVX512)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.isa is %u, expected CKPT_ISA_BEST (0) to CKPT_ISA_AVX512 (3)",
                mine.isa);
  const Kernels *const kernels = kernels_of(mine.isa);
  if (kernels == nullptr)
    return fail(CKPT_ERROR_UNSUPPORTED, "ckpt_ops_create: desc.isa is %u, which this machine or build does not have", mine.isa);
  if (mine.thread_count == 0) CKPT_OPS_TRY(threads_of_machine(&mine.thread_count));
  return create(mine.thread_count, *kernels, out_ops);
}

void ckpt_ops_destroy(ckpt_ops *ops) {
  if (ops != nullptr && ops->references.fetch_sub(1) == 1) delete ops;
}

ckpt_status ckpt_ops_get_info(const ckpt_ops *ops, ckpt_ops_info *out_info) {
  CKPT_OPS_TRY(Check("ckpt_ops_get_info").pointers({{"ops", ops}}).status());
  ckpt_ops_info info = {};
  info.thread_count = ops->pool.thread_count();
  std::snprintf(info.isa, sizeof info.isa, "%s", ops->kernels.isa);
  blas::describe(info.blas, sizeof info.blas);
  return write_struct("ckpt_ops_get_info", info, 88, out_info);
}

}  // extern "C"
