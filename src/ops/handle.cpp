#include "ops/handle.h"

#include <cstdio>
#include <exception>
#include <new>

#include "ops/cpu/functions.h"

using namespace ckpt::ops;

namespace {

constexpr uint32_t kMostThreads = 1024;
constexpr size_t kKeptBytes = size_t{1} << 16;  // 256 blocks of the arena's alignment; a device gives memory by larger pieces anyway

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

ckpt_status create_on_cpu(const ckpt_ops_desc &desc, ckpt_ops *ops) {
  const Kernels *const kernels = kernels_of(desc.isa);
  if (kernels == nullptr)
    return fail(CKPT_ERROR_UNSUPPORTED, "ckpt_ops_create: desc.isa is %u, which this machine or build does not have", desc.isa);
  if (desc.dtype != CKPT_DTYPE_FLOAT32)
    return fail(CKPT_ERROR_UNSUPPORTED, "ckpt_ops_create: desc.dtype is %s, the CPU computes in float32 alone", dtype_name(desc.dtype));
  if (desc.stream != nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.stream is %p, expected NULL on the CPU", desc.stream);
  uint32_t threads = desc.thread_count;
  if (threads == 0) CKPT_OPS_TRY(threads_of_machine(&threads));
  ops->cpu = std::make_unique<cpu::Context>(*kernels);
  ops->cpu->of_thread.resize(threads);
  if (!ops->cpu->pool.start(threads))
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_create: the system refused to start %u threads", threads - 1);
  ops->table = &cpu::kTable;
  ops->self = ops->cpu.get();
  return CKPT_OK;
}

ckpt_status create_on_device(const ckpt_ops_desc &desc, const ckpt_device_info &info, ckpt_ops *ops) noexcept {
  if (desc.thread_count != 0 || desc.isa != CKPT_ISA_BEST)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.thread_count is %u, desc.isa %u, expected 0 on %s: they are the CPU's",
                desc.thread_count, desc.isa, info.name);
  if (desc.stream == nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.stream is NULL, expected a stream of %s (ckpt_device_stream_create)", info.name);
  void *device = nullptr;
  const auto *table = static_cast<const DeviceOps *>(ckpt_device_interface(desc.device, "ops", &device));
  if (table == nullptr)
    return fail(CKPT_ERROR_UNSUPPORTED, "ckpt_ops_create: the plugin of %s has no layers (no interface \"ops\")", info.name);
  if (table->version != kDeviceOpsVersion)
    return fail(CKPT_ERROR_DEVICE, "ckpt_ops_create: the layers in the plugin of %s are of version %u, expected %u", info.name,
                table->version, kDeviceOpsVersion);
  ckpt_arena_desc arena = CKPT_ARENA_DESC_INIT;
  arena.capacity_bytes = kKeptBytes;
  arena.stream = desc.stream;
  if (const ckpt_status status = ckpt_arena_create(desc.device, &arena, &ops->arena)) return fail_as_core(status);
  if (const ckpt_status status = table->create(device, desc.stream, desc.dtype, &ops->self)) return fail_as_core(status);
  ops->table = table;
  ops->dtype = desc.dtype;
  ops->device_kind = info.kind;
  ops->stream = desc.stream;
  return CKPT_OK;
}

ckpt_status check_desc(const ckpt_ops_desc &desc) noexcept {
  if (desc.thread_count > kMostThreads)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.thread_count is %u, expected at most %u",
                desc.thread_count, kMostThreads);
  if (desc.isa > CKPT_ISA_AVX512)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.isa is %u, expected CKPT_ISA_BEST (0) to CKPT_ISA_AVX512 (3)",
                desc.isa);
  if (desc.dtype > CKPT_DTYPE_FLOAT16)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: desc.dtype is %u, expected CKPT_DTYPE_FLOAT32 (0) to CKPT_DTYPE_FLOAT16 (2)",
                desc.dtype);
  return CKPT_OK;
}

}  // namespace

namespace ckpt::ops {

Status head_fits(const char *function, const ckpt_ops *ops, size_t heads, size_t channels) noexcept {
  const uint32_t most = ops->table->largest_head;
  if (most == 0 || channels / heads <= most) return CKPT_OK;
  return fail(CKPT_ERROR_UNSUPPORTED, "%s: desc.channels is %zu for %zu heads, heads of %zu channels, expected at most %u on this device", function, channels, heads, channels / heads, most);
}

const char *dtype_name(uint32_t dtype) noexcept {
  static constexpr const char *kNames[] = {"float32", "bfloat16", "float16"};
  return dtype < 3 ? kNames[dtype] : "?";
}

Status keep_float(ckpt_ops *ops, float **out) noexcept {
  if (ops->on_host()) {
    *out = new (std::nothrow) float(0.0f);
    return *out != nullptr ? CKPT_OK : fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops: no memory on the host");
  }
  const std::lock_guard<std::mutex> lock(ops->turn);
  *out = static_cast<float *>(ckpt_arena_alloc(ops->arena, sizeof(float), 0));
  return *out != nullptr ? CKPT_OK : fail_as_core(ckpt_last_status());
}

void drop_float(ckpt_ops *ops, float *kept) noexcept {
  if (ops->on_host()) {
    delete kept;
  } else if (kept != nullptr) {
    const std::lock_guard<std::mutex> lock(ops->turn);
    (void)ckpt_arena_free(ops->arena, kept);
  }
}

}  // namespace ckpt::ops

ckpt_ops::ckpt_ops() noexcept = default;

ckpt_ops::~ckpt_ops() {
  if (table != nullptr && table->destroy != nullptr) table->destroy(self);
  ckpt_arena_destroy(arena);
}

extern "C" {

const char *ckpt_ops_last_error(void) { return last_error(); }

ckpt_status ckpt_ops_create(const ckpt_ops_desc *desc, ckpt_ops **out_ops) {
  if (out_ops == nullptr)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_create: out_ops is NULL, expected an address");
  *out_ops = nullptr;
  ckpt_ops_desc mine = CKPT_OPS_DESC_INIT;
  if (desc != nullptr) CKPT_OPS_TRY(read_struct("ckpt_ops_create", desc, 16, &mine));
  CKPT_OPS_TRY(check_desc(mine));
  ckpt_device_info info = {};
  info.struct_size = sizeof info;
  if (mine.device != nullptr)
    if (const ckpt_status status = ckpt_device_get_info(mine.device, &info)) return fail_as_core(status);
  try {
    auto ops = std::make_unique<ckpt_ops>();
    const bool on_cpu = mine.device == nullptr || info.kind == CKPT_DEVICE_KIND_CPU;
    CKPT_OPS_TRY(on_cpu ? create_on_cpu(mine, ops.get()) : create_on_device(mine, info, ops.get()));
    *out_ops = ops.release();
    return CKPT_OK;
  } catch (const std::exception &) {
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_create: no memory on the host");
  }
}

void ckpt_ops_destroy(ckpt_ops *ops) {
  if (ops != nullptr && ops->references.fetch_sub(1) == 1) delete ops;
}

ckpt_status ckpt_ops_get_info(const ckpt_ops *ops, ckpt_ops_info *out_info) {
  CKPT_OPS_TRY(Check("ckpt_ops_get_info").pointers({{"ops", ops}}).status());
  ckpt_ops_info info = {};
  info.thread_count = ops->on_host() ? ops->cpu->pool.thread_count() : 0;
  ops->table->describe(ops->self, info.isa, info.blas);
  info.dtype = ops->dtype;
  info.device_kind = ops->device_kind;
  return write_struct("ckpt_ops_get_info", info, 88, out_info);
}

ckpt_status ckpt_ops_check(ckpt_ops *ops) {
  CKPT_OPS_TRY(Check("ckpt_ops_check").pointers({{"ops", ops}}).status());
  return call(ops, &DeviceOps::check);
}

}  // extern "C"
