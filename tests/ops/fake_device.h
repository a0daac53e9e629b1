// A device for the tests of the layers: its memory is a mapping that nobody can touch but the functions of its table, so that host code
// that reads or writes device memory faults. The table's functions compute with a handle on the CPU: elements are made float32, the
// C function of the same name is called, and what it wrote is rounded to the element type.
//
// It stands in for libckpt's answers about one open device: the program defines functions of libckpt, and libckpt_ops finds those first.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>

#include <map>

#include "../../src/ops/device_ops.h"
#include "common.h"

namespace test::fake {

using ckpt::ops::DeviceAdamw;
using ckpt::ops::DeviceOps;

constexpr size_t kMemoryBytes = size_t{1} << 22;  // small: each call changes the protection of all of it
inline ckpt_device *device = nullptr;  // the one that is taken for a fake; NULL: none
inline char stream_of_device;
inline void *const stream = &stream_of_device;
inline std::map<std::string, int> calls;  // of each function of the table, by name
inline bool has_layers = true;
inline ckpt_status refuse = CKPT_OK;      // what every function returns, before it does anything

inline float round_to(uint32_t dtype, float value) {
  if (dtype == CKPT_DTYPE_FLOAT16) return static_cast<float>(static_cast<_Float16>(value));
  if (dtype != CKPT_DTYPE_BFLOAT16) return value;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (!std::isnan(value)) bits += 0x7FFFu + (bits >> 16 & 1u);
  bits &= 0xFFFF0000u;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline size_t element_bytes(uint32_t dtype) { return dtype == CKPT_DTYPE_FLOAT32 ? 4 : 2; }
inline float load(uint32_t dtype, const void *from, size_t k) {
  if (dtype == CKPT_DTYPE_FLOAT32) return static_cast<const float *>(from)[k];
  if (dtype == CKPT_DTYPE_FLOAT16) return static_cast<float>(static_cast<const _Float16 *>(from)[k]);
  const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(from)[k]) << 16;
  float value = 0.0f;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline void store(uint32_t dtype, void *to, size_t k, float value) {
  uint32_t bits = 0;
  if (dtype == CKPT_DTYPE_FLOAT32) static_cast<float *>(to)[k] = value;
  if (dtype == CKPT_DTYPE_FLOAT16) static_cast<_Float16 *>(to)[k] = static_cast<_Float16>(value);
  if (dtype != CKPT_DTYPE_BFLOAT16) return;
  value = round_to(dtype, value);
  std::memcpy(&bits, &value, sizeof bits);
  static_cast<uint16_t *>(to)[k] = static_cast<uint16_t>(bits >> 16);
}

// The device's memory, handed out from the front and never taken back.
class Memory {
 public:
  static Memory &of_device() {
    static Memory memory;
    return memory;
  }
  void *take(size_t bytes) {
    char *const out = base_ + used_;
    used_ += (bytes + 255) / 256 * 256;
    EXPECT_LE(used_, kMemoryBytes);
    return out;
  }
  void open() { EXPECT_EQ(mprotect(base_, kMemoryBytes, PROT_READ | PROT_WRITE), 0); }
  void close() { EXPECT_EQ(mprotect(base_, kMemoryBytes, PROT_NONE), 0); }
  void forget() {
    used_ = 0;
    open();
    std::memset(base_, 0xFF, kMemoryBytes);
    close();
  }

 private:
  Memory() : base_(static_cast<char *>(mmap(nullptr, kMemoryBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    EXPECT_NE(static_cast<void *>(base_), MAP_FAILED);
  }
  char *base_;
  size_t used_ = 0;
};

struct Context {
  uint32_t dtype = 0;
  ckpt_ops *cpu = nullptr;
  double loss_sum = 0.0;
  size_t loss_rows = 0;
  float loss_scale = NAN, clip_scale = NAN;
  bool in_loss = false;
};

// A call of a table's function: the memory is open while it lives.
class Call {
 public:
  Call(void *self, const char *name) : context(*static_cast<Context *>(self)) {
    ++calls[name];
    Memory::of_device().open();
  }
  ~Call() { Memory::of_device().close(); }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  Context &context;
  uint32_t dtype() const { return context.dtype; }
};

// Elements of an argument as float32; NULL stays NULL.
class In {
 public:
  In(const Call &call, const void *from, size_t count) : null_(from == nullptr), values_(null_ ? 0 : count) {
    for (size_t k = 0; k < values_.size(); ++k) values_[k] = load(call.dtype(), from, k);
  }
  operator const float *() const { return null_ ? nullptr : values_.data(); }

 private:
  bool null_;
  Floats values_;
};
class Out {
 public:
  Out(const Call &call, void *to, size_t count) : call_(call), to_(to), values_(to == nullptr ? 0 : count) {
    for (size_t k = 0; k < values_.size(); ++k) values_[k] = load(call.dtype(), to, k);
  }
  ~Out() {
    for (size_t k = 0; k < values_.size(); ++k) store(call_.dtype(), to_, k, values_[k]);
  }
  Out(const Out &) = delete;
  Out &operator=(const Out &) = delete;
  operator float *() { return to_ == nullptr ? nullptr : values_.data(); }

 private:
  const Call &call_;
  void *to_;
  Floats values_;
};

#define CKPT_FAKE(name)              \
  if (refuse != CKPT_OK) return refuse; \
  Call call(self, #name);            \
  [[maybe_unused]] ckpt_ops *const cpu = call.context.cpu

inline ckpt_status create(void *self, void *at, uint32_t dtype, void **out_self) {
  if (refuse != CKPT_OK) return refuse;
  EXPECT_EQ(self, static_cast<void *>(device));
  EXPECT_EQ(at, stream);
  ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
  desc.thread_count = 1;
  auto *context = new Context;
  context->dtype = dtype;
  EXPECT_EQ(ckpt_ops_create(&desc, &context->cpu), CKPT_OK);
  *out_self = context;
  return CKPT_OK;
}
inline void destroy(void *self) {
  auto *context = static_cast<Context *>(self);
  ckpt_ops_destroy(context->cpu);
  ++calls["destroy"];
  delete context;
}
inline void describe(void *, char isa[16], char blas[64]) {
  std::snprintf(isa, 16, "fake");
  std::snprintf(blas, 64, "none");
}
inline ckpt_status check(void *self) {
  CKPT_FAKE(check);
  return CKPT_OK;
}

inline ckpt_status embedding_forward(void *self, const int32_t *tokens, const void *token_table, const void *position_table, size_t batch,
                                     size_t sequence, size_t channels, size_t vocabulary, void *out) {
  CKPT_FAKE(embedding_forward);
  const In table(call, token_table, vocabulary * channels), positions(call, position_table, sequence * channels);
  Out to(call, out, batch * sequence * channels);
  return ckpt_ops_embedding_forward(cpu, tokens, table, positions, batch, sequence, channels, vocabulary, to);
}
inline ckpt_status embedding_backward(void *self, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence, size_t channels,
                                      size_t vocabulary, float *token_grad, float *position_grad) {
  CKPT_FAKE(embedding_backward);
  const In grad(call, out_grad, batch * sequence * channels);
  return ckpt_ops_embedding_backward(cpu, tokens, grad, batch, sequence, channels, vocabulary, token_grad, position_grad);
}
inline ckpt_status linear_forward(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t inputs, size_t outputs,
                                  void *out) {
  CKPT_FAKE(linear_forward);
  const In x(call, in, rows * inputs), w(call, weight, outputs * inputs), b(call, bias, outputs);
  Out y(call, out, rows * outputs);
  return ckpt_ops_linear_forward(cpu, x, w, b, rows, inputs, outputs, y);
}
inline ckpt_status linear_residual_forward(void *self, const void *in, const void *weight, const void *bias, const void *residual, float p,
                                           const ckpt_philox *philox, size_t rows, size_t inputs, size_t outputs, void *out) {
  CKPT_FAKE(linear_residual_forward);
  const In x(call, in, rows * inputs), w(call, weight, outputs * inputs), b(call, bias, outputs), r(call, residual, rows * outputs);
  Out y(call, out, rows * outputs);
  return ckpt_ops_linear_residual_forward(cpu, x, w, b, r, p, philox, rows, inputs, outputs, y);
}
inline ckpt_status linear_backward(void *self, const void *in, const void *weight, const void *out_grad, size_t rows, size_t inputs,
                                   size_t outputs, void *in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad) {
  CKPT_FAKE(linear_backward);
  const In x(call, in, rows * inputs), w(call, weight, outputs * inputs), grad(call, out_grad, rows * outputs);
  Out dx(call, in_grad, rows * inputs);
  return ckpt_ops_linear_backward(cpu, x, w, grad, rows, inputs, outputs, dx, accumulate, weight_grad, bias_grad);
}
inline ckpt_status layernorm_forward(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                                     float epsilon, void *out, float *mean, float *rstd) {
  CKPT_FAKE(layernorm_forward);
  const In x(call, in, rows * channels), w(call, weight, channels), b(call, bias, channels);
  Out y(call, out, rows * channels);
  return ckpt_ops_layernorm_forward(cpu, x, w, b, rows, channels, epsilon, y, mean, rstd);
}
inline ckpt_status layernorm_backward(void *self, const void *in, const float *mean, const float *rstd, const void *weight,
                                      const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                                      uint32_t accumulate, float *weight_grad, float *bias_grad) {
  CKPT_FAKE(layernorm_backward);
  const In x(call, in, rows * channels), w(call, weight, channels), grad(call, out_grad, rows * channels), r(call, residual_grad, rows * channels);
  Out dx(call, in_grad, rows * channels);
  return ckpt_ops_layernorm_backward(cpu, x, mean, rstd, w, grad, r, rows, channels, dx, accumulate, weight_grad, bias_grad);
}
inline ckpt_status gelu_forward(void *self, const void *in, const void *bias, size_t rows, size_t columns, void *out) {
  CKPT_FAKE(gelu_forward);
  const In x(call, in, rows * columns), b(call, bias, columns);
  Out y(call, out, rows * columns);
  return ckpt_ops_gelu_forward(cpu, x, b, rows, columns, y);
}
inline ckpt_status gelu_backward(void *self, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns, void *in_grad,
                                 uint32_t accumulate, float *bias_grad) {
  CKPT_FAKE(gelu_backward);
  const In x(call, in, rows * columns), b(call, bias, columns), grad(call, out_grad, rows * columns);
  Out dx(call, in_grad, rows * columns);
  return ckpt_ops_gelu_backward(cpu, x, b, grad, rows, columns, dx, accumulate, bias_grad);
}
inline ckpt_status attention_forward(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels, float p,
                                     const ckpt_philox *philox, void *weights, void *out) {
  CKPT_FAKE(attention_forward);
  const In x(call, qkv, batch * sequence * 3 * channels);
  Out w(call, weights, batch * heads * sequence * sequence), y(call, out, batch * sequence * channels);
  return ckpt_ops_attention_forward(cpu, x, batch, sequence, heads, channels, p, philox, w, y);
}
inline ckpt_status attention_backward(void *self, const void *qkv, const void *weights, const void *out_grad, size_t batch, size_t sequence,
                                      size_t heads, size_t channels, float p, const ckpt_philox *philox, void *qkv_grad) {
  CKPT_FAKE(attention_backward);
  const In x(call, qkv, batch * sequence * 3 * channels), w(call, weights, batch * heads * sequence * sequence);
  const In grad(call, out_grad, batch * sequence * channels);
  Out dx(call, qkv_grad, batch * sequence * 3 * channels);
  return ckpt_ops_attention_backward(cpu, x, w, grad, batch, sequence, heads, channels, p, philox, dx);
}
inline ckpt_status attention_tiled_forward(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels, float p,
                                           const ckpt_philox *philox, float *lse, void *out) {
  CKPT_FAKE(attention_tiled_forward);
  const In x(call, qkv, batch * sequence * 3 * channels);
  Out y(call, out, batch * sequence * channels);
  return ckpt_ops_attention_tiled_forward(cpu, x, batch, sequence, heads, channels, p, philox, lse, y);
}
inline ckpt_status attention_tiled_backward(void *self, const void *qkv, const void *out, const float *lse, const void *out_grad, size_t batch,
                                            size_t sequence, size_t heads, size_t channels, float p, const ckpt_philox *philox, void *qkv_grad) {
  CKPT_FAKE(attention_tiled_backward);
  const In x(call, qkv, batch * sequence * 3 * channels), y(call, out, batch * sequence * channels), grad(call, out_grad, batch * sequence * channels);
  Out dx(call, qkv_grad, batch * sequence * 3 * channels);
  return ckpt_ops_attention_tiled_backward(cpu, x, y, lse, grad, batch, sequence, heads, channels, p, philox, dx);
}
inline ckpt_status dropout_forward(void *self, const void *in, const void *residual, float p, const ckpt_philox *philox, size_t count, void *out) {
  CKPT_FAKE(dropout_forward);
  const In x(call, in, count), r(call, residual, count);
  Out y(call, out, count);
  return ckpt_ops_dropout_forward(cpu, x, r, p, philox, count, y);
}
inline ckpt_status dropout_backward(void *self, const void *out_grad, float p, const ckpt_philox *philox, size_t count, void *in_grad,
                                    uint32_t accumulate) {
  CKPT_FAKE(dropout_backward);
  const In grad(call, out_grad, count);
  Out dx(call, in_grad, count);
  return ckpt_ops_dropout_backward(cpu, grad, p, philox, count, dx, accumulate);
}
inline ckpt_status add(void *self, const void *a, const void *b, size_t count, void *out) {
  CKPT_FAKE(add);
  const In x(call, a, count), y(call, b, count);
  Out z(call, out, count);
  return ckpt_ops_add(cpu, x, y, count, z);
}

inline ckpt_status loss_begin(void *self, const int32_t *, size_t, size_t, int32_t) {
  CKPT_FAKE(loss_begin);
  call.context.loss_sum = 0.0;
  call.context.loss_rows = 0;
  call.context.in_loss = true;
  return CKPT_OK;
}
inline ckpt_status loss_add(void *self, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignored, float *lse) {
  CKPT_FAKE(loss_add);
  EXPECT_TRUE(call.context.in_loss);
  const In x(call, logits, rows * vocabulary);
  float mean = 0.0f;
  const ckpt_status status = ckpt_ops_cross_entropy_forward(cpu, x, targets, rows, vocabulary, ignored, lse, &mean);
  for (size_t row = 0; row < rows; ++row) {
    if (targets[row] == ignored) continue;
    call.context.loss_sum += static_cast<double>(lse[row]) - static_cast<double>(x[row * vocabulary + static_cast<size_t>(targets[row])]);
    ++call.context.loss_rows;
  }
  return status;
}
inline ckpt_status loss_end(void *self, float *out_loss) {
  CKPT_FAKE(loss_end);
  EXPECT_TRUE(call.context.in_loss);
  call.context.in_loss = false;
  *out_loss = call.context.loss_rows == 0 ? 0.0f : static_cast<float>(call.context.loss_sum / static_cast<double>(call.context.loss_rows));
  return CKPT_OK;
}
inline ckpt_status loss_scale(void *self, const int32_t *targets, size_t rows, size_t, int32_t ignored, const float *device_grad, float host_grad) {
  CKPT_FAKE(loss_scale);
  size_t counted = 0;
  for (size_t row = 0; row < rows; ++row) counted += targets[row] != ignored;
  call.context.loss_scale = counted == 0 ? 0.0f : (device_grad == nullptr ? host_grad : *device_grad) / static_cast<float>(counted);
  return CKPT_OK;
}
inline ckpt_status loss_gradient(void *self, const void *logits, const int32_t *targets, const float *lse, size_t rows, size_t vocabulary,
                                 int32_t ignored, void *logits_grad) {
  CKPT_FAKE(loss_gradient);
  const In x(call, logits, rows * vocabulary);
  Out dx(call, logits_grad, rows * vocabulary);
  ckpt_status status = CKPT_OK;
  for (size_t row = 0; row < rows && status == CKPT_OK; ++row)  // one row's mean is its own loss, so the factor is exact
    status = ckpt_ops_cross_entropy_backward(cpu, x + row * vocabulary, targets + row, lse + row, 1, vocabulary, ignored,
                                             call.context.loss_scale, dx + row * vocabulary);
  return status;
}

inline ckpt_status norm(void *self, const float *values, size_t count, double *out_norm) {
  CKPT_FAKE(norm);
  return ckpt_ops_norm(cpu, values, count, out_norm);
}
inline ckpt_status clip(void *self, const float *grads, size_t count, float grad_scale, float max_norm, double *out_norm) {
  CKPT_FAKE(clip);
  double length = 0.0;
  const ckpt_status status = ckpt_ops_norm(cpu, grads, count, &length);
  length *= std::fabs(static_cast<double>(grad_scale));
  call.context.clip_scale = max_norm > 0.0f && length > static_cast<double>(max_norm) ? static_cast<float>(static_cast<double>(max_norm) / length) : 1.0f;
  if (out_norm != nullptr) *out_norm = length;
  return status;
}
inline ckpt_status adamw(void *self, const DeviceAdamw *s, size_t count, const float *grads, void *parameters, float *master, float *first,
                         float *second) {
  CKPT_FAKE(adamw);
  EXPECT_EQ(master == nullptr, call.dtype() == CKPT_DTYPE_FLOAT32);
  for (size_t k = 0; k < count; ++k) {
    const float g = grads[k] * s->grad_scale * (s->clip != 0 ? call.context.clip_scale : 1.0f);
    first[k] = s->beta1 * first[k] + (1.0f - s->beta1) * g;
    second[k] = s->beta2 * second[k] + (1.0f - s->beta2) * g * g;
    const float before = master != nullptr ? master[k] : static_cast<const float *>(parameters)[k];
    const float after = before * s->decay - s->step_size * first[k] / (std::sqrt(second[k]) * s->second_moment_scale + s->epsilon);
    if (master != nullptr) master[k] = after;
    store(call.dtype(), parameters, k, after);
  }
  return CKPT_OK;
}
inline ckpt_status normal(void *self, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out) {
  CKPT_FAKE(normal);
  Out y(call, out, count);
  return ckpt_ops_normal(cpu, philox, mean, stddev, count, y);
}
inline ckpt_status from_float(void *self, const float *in, size_t count, void *out) {
  CKPT_FAKE(from_float);
  for (size_t k = 0; k < count; ++k) store(call.dtype(), out, k, in[k]);
  return CKPT_OK;
}
inline ckpt_status to_float(void *self, const void *in, size_t count, float *out) {
  CKPT_FAKE(to_float);
  for (size_t k = 0; k < count; ++k) out[k] = load(call.dtype(), in, k);
  return CKPT_OK;
}
#undef CKPT_FAKE

inline DeviceOps table = {
    ckpt::ops::kDeviceOpsVersion, 0, create, destroy, describe, check, embedding_forward, embedding_backward, linear_forward,
    linear_residual_forward, linear_backward, layernorm_forward, layernorm_backward, gelu_forward, gelu_backward, attention_forward,
    attention_backward, attention_tiled_forward, attention_tiled_backward, dropout_forward, dropout_backward, add, loss_begin, loss_add,
    loss_end, loss_scale, loss_gradient, norm, clip, adamw, normal, from_float, to_float};

template <class F>
F original(const char *name, F) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace test::fake

// What libckpt_ops asks libckpt about the device; defined here, once in the program that includes this.
extern "C" {

const void *ckpt_device_interface(const ckpt_device *device, const char *name, void **out_self) {
  using namespace test;
  if (device != fake::device || device == nullptr) return fake::original("ckpt_device_interface", &ckpt_device_interface)(device, name, out_self);
  EXPECT_STREQ(name, "ops");
  *out_self = fake::device;
  return fake::has_layers ? &fake::table : nullptr;
}

ckpt_status ckpt_device_get_info(const ckpt_device *device, ckpt_device_info *out_info) {
  using namespace test;
  const ckpt_status status = fake::original("ckpt_device_get_info", &ckpt_device_get_info)(device, out_info);
  if (status == CKPT_OK && device == fake::device) {
    out_info->kind = CKPT_DEVICE_KIND_CUDA;
    std::snprintf(out_info->name, sizeof out_info->name, "Fake GPU");
  }
  return status;
}

// An arena with the fake's stream lies in the fake's memory.
ckpt_status ckpt_arena_create(ckpt_device *device, const ckpt_arena_desc *desc, ckpt_arena **out_arena) {
  using namespace test;
  const auto create = fake::original("ckpt_arena_create", &ckpt_arena_create);
  if (desc->stream != fake::stream) return create(device, desc, out_arena);
  ckpt_arena_desc mine = *desc;
  mine.stream = nullptr;
  mine.slab = fake::Memory::of_device().take(desc->capacity_bytes);
  return create(device, &mine, out_arena);
}

void *ckpt_frame_stream(const ckpt_frame *frame) {
  using namespace test;
  return fake::device == nullptr ? fake::original("ckpt_frame_stream", &ckpt_frame_stream)(frame) : fake::stream;
}

}  // extern "C"
