// The mathematics of the cuBLASLt double: float32 products added up one after the other along k, whatever the machine and the blocking, so
// the bits are the same everywhere. Never built with sanitizers: it would take most of a test's time.
#include "gemm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <vector>

namespace cudasim {
namespace {

typedef float Vector __attribute__((vector_size(32)));
constexpr size_t kRows = 16, kColumns = 4;  // a block: eight vectors of sums

float load(const Matrix &m, size_t batch, size_t row, size_t column) {
  const size_t at = batch * m.by_batch + row * m.by_row + column * m.by_column;
  switch (m.type) {
    case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16 *>(m.data)[at]);
    case CUDA_R_16F: return __half2float(static_cast<const __half *>(m.data)[at]);
    default: return static_cast<const float *>(m.data)[at];
  }
}
void store(const Matrix &m, size_t batch, size_t row, size_t column, float value) {
  const size_t at = batch * m.by_batch + row * m.by_row + column * m.by_column;
  switch (m.type) {
    case CUDA_R_16BF: static_cast<__nv_bfloat16 *>(m.data)[at] = __float2bfloat16(value); break;
    case CUDA_R_16F: static_cast<__half *>(m.data)[at] = __float2half(value); break;
    default: static_cast<float *>(m.data)[at] = value;
  }
}

// a: [k][kRows], b: [k][kColumns], out: [kColumns][kRows].
[[gnu::always_inline]] inline void block_of(const float *a, const float *b, size_t k, float *out) {
  Vector sums[kColumns][2] = {};
  for (size_t l = 0; l < k; ++l) {
    Vector low, high;
    __builtin_memcpy(&low, a + l * kRows, sizeof low);
    __builtin_memcpy(&high, a + l * kRows + 8, sizeof high);
    for (size_t j = 0; j < kColumns; ++j) {
      const float factor = b[l * kColumns + j];
      sums[j][0] += low * factor;
      sums[j][1] += high * factor;
    }
  }
  __builtin_memcpy(out, sums, sizeof sums);
}
[[gnu::target("avx2")]] void block_avx2(const float *a, const float *b, size_t k, float *out) { block_of(a, b, k, out); }
void block_plain(const float *a, const float *b, size_t k, float *out) { block_of(a, b, k, out); }

// The tanh form, as cuBLASLt's.
constexpr float kRoot = 0.7978845608028654f, kCube = 0.044715f;
float gelu(float x) { return 0.5f * x * (1.0f + std::tanh(kRoot * (x + kCube * x * x * x))); }
float gelu_slope(float x) {
  const float t = std::tanh(kRoot * (x + kCube * x * x * x));
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kRoot * (1.0f + 3.0f * kCube * x * x);
}

struct Panels {
  std::vector<float> values;
  size_t width, depth;
  const float *at(size_t panel) const { return values.data() + panel * width * depth; }
};

// get(i, l): padded with zeros to whole panels.
template <class Get>
Panels pack(size_t count, size_t depth, size_t width, Get get) {
  Panels p{std::vector<float>((count + width - 1) / width * width * depth), width, depth};
  for (size_t i = 0; i < count; ++i)
    for (size_t l = 0; l < depth; ++l) p.values[(i / width * depth + l) * width + i % width] = get(i, l);
  return p;
}

void finish(const Product &p, size_t batch, size_t row, size_t column, float sum) {
  float value = p.alpha * sum;
  if (p.beta != 0) value += p.beta * load(p.c, batch, row, column);  // else what is there is not read: it may be NaN
  if (p.bias != nullptr)
    value += load({const_cast<void *>(p.bias), p.bias_type, p.d.rows, 1, 1, 0, p.bias_by_batch}, batch, row, 0);
  if (p.gelu) {
    if (p.aux.data != nullptr) store(p.aux, batch, row, column, value);
    value = gelu(value);
  }
  if (p.gelu_gradient) value *= gelu_slope(load(p.aux, batch, row, column));
  store(p.d, batch, row, column, value);
}

void bias_gradient(const Product &p, size_t batch) {
  const Matrix out{p.bias_gradient, p.bias_type, 0, 1, 1, 0, p.bias_by_batch};
  const Matrix &of = p.gradient_of == Product::Of::a ? p.a : p.gradient_of == Product::Of::b ? p.b : p.d;
  const bool by_columns = p.gradient_of == Product::Of::b;
  for (size_t i = 0; i < (by_columns ? of.columns : of.rows); ++i) {
    float sum = 0;
    for (size_t l = 0; l < (by_columns ? of.rows : of.columns); ++l) sum += by_columns ? load(of, batch, l, i) : load(of, batch, i, l);
    store(out, batch, i, 0, sum);
  }
}

}  // namespace

size_t size_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : type == CUDA_R_16BF || type == CUDA_R_16F ? 2 : 0; }

void multiply(const Product &p) {
  static const auto block = __builtin_cpu_supports("avx2") ? block_avx2 : block_plain;
  const size_t m = p.d.rows, n = p.d.columns, k = p.a.columns;
  for (size_t batch = 0; batch < p.batches; ++batch) {
    const Panels a = pack(m, k, kRows, [&](size_t i, size_t l) { return load(p.a, batch, i, l); });
    const Panels b = pack(n, k, kColumns, [&](size_t j, size_t l) { return load(p.b, batch, l, j); });
    for (size_t j = 0; j < n; j += kColumns)
      for (size_t i = 0; i < m; i += kRows) {
        float sums[kColumns][kRows];
        block(a.at(i / kRows), b.at(j / kColumns), k, sums[0]);
        for (size_t c = 0; c < kColumns && j + c < n; ++c)
          for (size_t r = 0; r < kRows && i + r < m; ++r) finish(p, batch, i + r, j + c, sums[c][r]);
      }
    if (p.gradient_of != Product::Of::none) bias_gradient(p, batch);
  }
}

}  // namespace cudasim
