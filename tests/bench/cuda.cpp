// Kernels that only move memory, against a copy on the same device in the same run: Philox fills and the layers' element-wise kernels.
// Bytes are those that the mathematics reads and writes; a copy reads and writes its bytes once. Target: 85 % of the copy's bandwidth.
//
//   bench_cuda [DEVICE] [MIB]      default cuda:0 and 512 MiB of elements; needs a GPU (on the CPU double the ratios mean nothing)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ckpt/ckpt.h"
#include "ckpt/ops.h"

namespace {

void must(ckpt_status status, const char *what) {
  if (status == CKPT_OK) return;
  std::fprintf(stderr, "bench_cuda: %s: %s %s\n", what, ckpt_last_error(), ckpt_ops_last_error());
  std::exit(status == CKPT_ERROR_NOT_FOUND ? 77 : 1);
}
#define MUST(call) must((call), #call)

struct Bench {
  ckpt_device *device = nullptr;
  void *stream = nullptr;
  double copy_bandwidth = 0;

  // Seconds of one call: enough calls for 50 ms, the least of five such rounds; the device is waited for at both ends.
  template <class F>
  double seconds(const F &call) const {
    using Clock = std::chrono::steady_clock;
    const auto round = [&](int calls) {
      MUST(ckpt_device_synchronize(device, stream));
      const auto start = Clock::now();
      for (int k = 0; k < calls; ++k) call();
      MUST(ckpt_device_synchronize(device, stream));
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    round(2);
    const double once = round(1);
    const int calls = once > 0.05 ? 1 : static_cast<int>(0.05 / once) + 1;
    double least = round(calls);
    for (int k = 0; k < 4; ++k) {
      const double again = round(calls);
      if (again < least) least = again;
    }
    return least / calls;
  }

  template <class F>
  void row(const char *name, double bytes, const F &call) {
    const double bandwidth = bytes / seconds(call);
    if (copy_bandwidth == 0) copy_bandwidth = bandwidth;
    std::printf("%-44s %9.1f GB/s  %6.3f of the copy's\n", name, bandwidth / 1e9, bandwidth / copy_bandwidth);
  }
};

}  // namespace

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "cuda:0";
  const size_t mib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 512, bytes = mib << 20;
  if (mib == 0) {
    std::fprintf(stderr, "bench_cuda: MIB is \"%s\", expected a number from 1\n", argv[2]);
    return 2;
  }
  Bench b;
  MUST(ckpt_device_open(name, &b.device));
  MUST(ckpt_device_stream_create(b.device, &b.stream));
  ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT;
  arena_desc.capacity_bytes = 3 * bytes + (size_t{1} << 20);
  arena_desc.stream = b.stream;
  ckpt_arena *arena = nullptr;
  MUST(ckpt_arena_create(b.device, &arena_desc, &arena));
  void *x = ckpt_arena_alloc(arena, bytes, 0), *y = ckpt_arena_alloc(arena, bytes, 0), *z = ckpt_arena_alloc(arena, bytes, 0);
  if (z == nullptr) must(ckpt_last_status(), "ckpt_arena_alloc");
  MUST(ckpt_device_fill(b.device, b.stream, x, 0, 3 * bytes));
  ckpt_philox philox = {};
  MUST(ckpt_philox_pack(1, 2, 3, 4, &philox));

  const double n = static_cast<double>(bytes);
  b.row("copy, device to device", 2 * n, [&] { MUST(ckpt_device_copy(b.device, b.stream, y, x, bytes, CKPT_COPY_DEVICE_TO_DEVICE)); });
  // Fills only write: against a copy's bytes, half of which are reads.
  b.row("fill with a byte", n, [&] { MUST(ckpt_device_fill(b.device, b.stream, y, 1, bytes)); });
  b.row("Philox words", n, [&] { MUST(ckpt_device_philox_u32(b.device, b.stream, &philox, 0, bytes / 4, static_cast<uint32_t *>(y))); });
  b.row("Philox uniform", n, [&] { MUST(ckpt_device_philox_uniform(b.device, b.stream, &philox, 0, bytes / 4, static_cast<float *>(y))); });
  b.row("Philox normal", n, [&] { MUST(ckpt_device_philox_normal(b.device, b.stream, &philox, 0, bytes / 4, 0.0f, 1.0f, static_cast<float *>(y))); });
  b.row("Philox masks (bytes)", n / 4, [&] { MUST(ckpt_device_philox_bernoulli(b.device, b.stream, &philox, 0, bytes / 4, 0.9, static_cast<uint8_t *>(y))); });

  const char *const types[] = {"float32", "bfloat16", "float16"};
  for (uint32_t dtype = 0; dtype < 3; ++dtype) {
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.device = b.device;
    desc.stream = b.stream;
    desc.dtype = dtype;
    ckpt_ops *ops = nullptr;
    MUST(ckpt_ops_create(&desc, &ops));
    const size_t count = bytes / (dtype == CKPT_DTYPE_FLOAT32 ? 4 : 2), channels = 1024, rows = count / channels;
    char text[64];
    const auto row = [&](const char *kernel, double moved, const auto &call) {
      std::snprintf(text, sizeof text, "%s, %s", kernel, types[dtype]);
      b.row(text, moved, call);
    };
    row("add", 3 * n, [&] { MUST(ckpt_ops_add(ops, x, y, count, z)); });
    row("dropout", 2 * n, [&] { MUST(ckpt_ops_dropout_forward(ops, x, nullptr, 0.1f, &philox, count, z)); });
    row("dropout with residual", 3 * n, [&] { MUST(ckpt_ops_dropout_forward(ops, x, y, 0.1f, &philox, count, z)); });
    row("gelu forward", 2 * n, [&] { MUST(ckpt_ops_gelu_forward(ops, x, nullptr, rows, channels, z)); });
    row("gelu backward", 3 * n, [&] { MUST(ckpt_ops_gelu_backward(ops, x, nullptr, y, rows, channels, z, 0, nullptr)); });
    ckpt_ops_destroy(ops);
  }
  ckpt_arena_free(arena, x);
  ckpt_arena_free(arena, y);
  ckpt_arena_free(arena, z);
  ckpt_arena_destroy(arena);
  ckpt_device_stream_destroy(b.device, b.stream);
  ckpt_device_close(b.device);
  return 0;
}
