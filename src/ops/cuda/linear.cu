// Products with weights, by cuBLASLt, accumulated in float32 (true float32 products for float32, no TF32).
//
// cuBLASLt counts by columns: a row-major matrix is its transpose, so a product is asked for as its transpose, with the operands swapped.
//
// Bits: an algorithm is chosen once for a product's kind and shape and kept (with what describes it) as long as the context lives, and only
// from those that add up partial sums in a fixed order. The choice may depend on nothing else: all are told that operands lie on 16 bytes, and an
// operand that does not goes through a copy in the workspace that does.
#include <cublasLt.h>

#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <tuple>

#include "ops/cuda/element.h"
#include "ops/cuda/table.h"

namespace ckpt::ops::cuda {

namespace {

enum class Kind : uint32_t { forward, forward_bias, in_grad, weight_grad };

constexpr uint32_t kAlignment = 16;
// NVIDIA's recommendation for Hopper; only what a chosen algorithm needs is ever allocated.
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;

// d [m, n] = op(a) op(b) (+ bias [m]) + beta d, by columns. The inner dimension of each is its leading one.
struct Product {
  Kind kind;
  size_t m, n, k;
  bool transposed_a() const { return kind == Kind::forward || kind == Kind::forward_bias; }
  bool transposed_b() const { return kind == Kind::weight_grad; }
  size_t rows_a() const { return transposed_a() ? k : m; }
  size_t columns_a() const { return transposed_a() ? m : k; }
  size_t rows_b() const { return transposed_b() ? n : k; }
  size_t columns_b() const { return transposed_b() ? k : n; }
  auto key() const { return std::make_tuple(kind, m, n, k); }
  const char *name() const {
    constexpr const char *kNames[] = {"in * weight^T", "in * weight^T + bias", "out_grad * weight", "out_grad^T * in"};
    return kNames[static_cast<uint32_t>(kind)];
  }
};

template <auto kDestroy>
struct Destroy {
  template <class T>
  void operator()(T *object) const noexcept {
    (void)kDestroy(object);
  }
};
template <class T, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<kDestroy>>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

struct Plan {
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace = 0;
  bool offered = false;  // cuBLASLt has an algorithm for it
};

}  // namespace

struct Blas {
  Owned<cublasLtHandle_t, cublasLtDestroy> handle;
  std::map<decltype(Product{}.key()), std::unique_ptr<Plan>> plans;
};

namespace {

ckpt_status report(Context &context, cublasStatus_t status, const char *call, const Product &product) noexcept {
  if (status == CUBLAS_STATUS_SUCCESS) return CKPT_OK;
  // The device's own error says more, and is remembered where it loses the device.
  CKPT_CUDA(context.gpu.report(cudaGetLastError(), "%s (%s, %zu x %zu x %zu)", call, product.name(), product.m, product.n, product.k));
  const ckpt_status code = status == CUBLAS_STATUS_ALLOC_FAILED ? CKPT_ERROR_OUT_OF_MEMORY : CKPT_ERROR_DEVICE;
  return context.gpu.fail(code, "%s (%s, %zu x %zu x %zu): %s (%d)", call, product.name(), product.m, product.n, product.k,
                          cublasLtGetStatusName(status), static_cast<int>(status));
}

cublasStatus_t layout(cudaDataType type, size_t rows, size_t columns, Layout *out) noexcept {
  cublasLtMatrixLayout_t made = nullptr;
  const cublasStatus_t status = cublasLtMatrixLayoutCreate(&made, type, rows, columns, static_cast<int64_t>(rows));
  out->reset(made);
  return status;
}

template <class T>
cublasStatus_t set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T &value) noexcept {
  return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
}
template <class T>
cublasStatus_t set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T &value) noexcept {
  return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
}

cudaDataType data_type(uint32_t dtype) noexcept {
  return dtype == kFloat32 ? CUDA_R_32F : dtype == kBfloat16 ? CUDA_R_16BF : CUDA_R_16F;
}

// The first of these that is not a success.
#define CKPT_BLAS(expression)                                                               \
  do {                                                                                      \
    if (const cublasStatus_t blas_status_ = (expression); blas_status_ != CUBLAS_STATUS_SUCCESS) \
      return blas_status_;                                                                  \
  } while (0)

cublasStatus_t describe(uint32_t dtype, const Product &p, const void *bias, Plan *plan) noexcept {
  const cudaDataType type = data_type(dtype);
  cublasLtMatmulDesc_t operation = nullptr;
  CKPT_BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  plan->operation.reset(operation);
  const cublasOperation_t of_a = p.transposed_a() ? CUBLAS_OP_T : CUBLAS_OP_N, of_b = p.transposed_b() ? CUBLAS_OP_T : CUBLAS_OP_N;
  CKPT_BLAS(set(operation, CUBLASLT_MATMUL_DESC_TRANSA, of_a));
  CKPT_BLAS(set(operation, CUBLASLT_MATMUL_DESC_TRANSB, of_b));
  if (p.kind == Kind::forward_bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    CKPT_BLAS(set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    CKPT_BLAS(set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  }
  CKPT_BLAS(layout(type, p.rows_a(), p.columns_a(), &plan->a));
  CKPT_BLAS(layout(type, p.rows_b(), p.columns_b(), &plan->b));
  return layout(p.kind == Kind::weight_grad ? CUDA_R_32F : type, p.m, p.n, &plan->d);
}

// The best algorithm by cuBLASLt's own estimate among those that are the same in every run.
cublasStatus_t choose(cublasLtHandle_t handle, Plan *plan) noexcept {
  cublasLtMatmulPreference_t made = nullptr;
  CKPT_BLAS(cublasLtMatmulPreferenceCreate(&made));
  const Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(made);
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // or none
  CKPT_BLAS(set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace));
  CKPT_BLAS(set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    CKPT_BLAS(set(made, attribute, kAlignment));
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, plan->operation.get(), plan->a.get(), plan->b.get(), plan->d.get(),
                                                               plan->d.get(), made, 1, &result, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return CUBLAS_STATUS_SUCCESS;
  CKPT_BLAS(status);
  if (found == 0 || result.state != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_SUCCESS;
  plan->algorithm = result.algo;
  plan->workspace = result.workspaceSize;
  plan->offered = true;
  return CUBLAS_STATUS_SUCCESS;
}

// What was chosen when the product's kind and shape came for the first time. `bias`: any address that such a product may have.
ckpt_status plan_of(Context &context, const Product &product, const void *bias, Plan **out) noexcept {
  auto &plans = context.blas->plans;
  if (const auto found = plans.find(product.key()); found != plans.end()) {
    *out = found->second.get();
    return CKPT_OK;
  }
  constexpr const char *kChoosing =
      "ckpt_ops_linear: an algorithm is chosen for each new shape, which a step that ran before it was captured would have done; it";
  CKPT_CUDA(context.gpu.check_not_captured(context.stream, kChoosing));
  try {
    auto plan = std::make_unique<Plan>();
    CKPT_CUDA(report(context, describe(context.dtype, product, bias, plan.get()), "cublasLt descriptors", product));
    CKPT_CUDA(report(context, choose(context.blas->handle.get(), plan.get()), "cublasLtMatmulAlgoGetHeuristic", product));
    *out = plan.get();
    plans.emplace(product.key(), std::move(plan));
  } catch (const std::bad_alloc &) {
    return context.gpu.fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_linear: the host refused memory for the description of a product");
  }
  return CKPT_OK;
}

// An operand on 16 bytes: itself, or a part of the workspace.
struct Operand {
  void *given;
  size_t bytes, part = 0;
  bool copied = false;

  Operand(const void *data, size_t size) : given(const_cast<void *>(data)), bytes(size) {}
  void add_to(Parts *parts) noexcept {
    copied = reinterpret_cast<uintptr_t>(given) % kAlignment != 0;
    if (copied) part = parts->add<unsigned char>(bytes);
  }
  void *at(const Parts &parts) const noexcept { return copied ? parts.at<void>(part) : given; }
  ckpt_status copy_in(Context &context, const Parts &parts) const noexcept { return copy(context, at(parts), given); }
  ckpt_status copy_out(Context &context, const Parts &parts) const noexcept { return copy(context, given, at(parts)); }

 private:
  ckpt_status copy(Context &context, void *to, const void *from) const noexcept {
    if (copied) CKPT_CUDA_CALL(context, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context.stream));
    return CKPT_OK;
  }
};

// Runs a product that cuBLASLt offers. d NULL: the product is left in the workspace, at *out_d.
ckpt_status multiply(Context &context, const Product &product, Plan &plan, const void *a, const void *b, const void *bias, float beta, void *d,
                     void **out_d) noexcept {
  const size_t size = size_of(context.dtype), d_size = product.kind == Kind::weight_grad ? sizeof(float) : size;
  Operand of_a(a, product.m * product.k * size), of_b(b, product.n * product.k * size), of_bias(bias, product.m * size),
      of_d(d, product.m * product.n * d_size);
  Parts parts;
  for (Operand *operand : {&of_a, &of_b, &of_bias, &of_d}) operand->add_to(&parts);
  const size_t scratch = parts.add<unsigned char>(plan.workspace), aside = parts.add<unsigned char>(d == nullptr ? of_d.bytes : 0);
  CKPT_CUDA(parts.take(context));
  CKPT_CUDA(of_a.copy_in(context, parts));
  CKPT_CUDA(of_b.copy_in(context, parts));
  CKPT_CUDA(of_bias.copy_in(context, parts));
  if (beta != 0.0f) CKPT_CUDA(of_d.copy_in(context, parts));
  void *const to = d == nullptr ? parts.at<void>(aside) : of_d.at(parts);
  if (product.kind == Kind::forward_bias)
    CKPT_CUDA(report(context, set(plan.operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(of_bias.at(parts))),
                     "cublasLtMatmulDescSetAttribute", product));
  const float alpha = 1.0f;
  CKPT_CUDA(report(context,
                   cublasLtMatmul(context.blas->handle.get(), plan.operation.get(), &alpha, of_a.at(parts), plan.a.get(), of_b.at(parts),
                                  plan.b.get(), &beta, to, plan.d.get(), to, plan.d.get(), &plan.algorithm,
                                  plan.workspace == 0 ? nullptr : parts.at<void>(scratch), plan.workspace, context.stream),
                   "cublasLtMatmul", product));
  if (out_d != nullptr) *out_d = to;
  return of_d.copy_out(context, parts);
}

ckpt_status multiply(Context &context, const Product &product, const void *a, const void *b, float beta, void *d, void **out_d = nullptr) noexcept {
  Plan *plan = nullptr;
  CKPT_CUDA(plan_of(context, product, nullptr, &plan));
  if (!plan->offered)
    return context.gpu.fail(CKPT_ERROR_UNSUPPORTED, "ckpt_ops_linear: cuBLASLt has no algorithm for %s, %zu x %zu x %zu", product.name(), product.m,
                            product.n, product.k);
  return multiply(context, product, *plan, a, b, nullptr, beta, d, out_d);
}

}  // namespace

ckpt_status blas_create(Context &context, Blas **out) noexcept {
  *out = nullptr;
  std::unique_ptr<Blas> blas(new (std::nothrow) Blas);
  if (blas == nullptr) return context.gpu.fail(CKPT_ERROR_OUT_OF_MEMORY, "ckpt_ops_create: the host refused %zu bytes", sizeof(Blas));
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = cublasLtCreate(&handle);
  blas->handle.reset(handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    CKPT_CUDA(context.gpu.report(cudaGetLastError(), "cublasLtCreate"));
    return context.gpu.fail(status == CUBLAS_STATUS_ALLOC_FAILED ? CKPT_ERROR_OUT_OF_MEMORY : CKPT_ERROR_DEVICE, "cublasLtCreate: %s (%d)",
                            cublasLtGetStatusName(status), static_cast<int>(status));
  }
  *out = blas.release();
  return CKPT_OK;
}

void blas_destroy(Blas *blas) noexcept { delete blas; }

void blas_name(const Blas *, char name[64]) noexcept {
  const size_t version = cublasLtGetVersion();
  (void)std::snprintf(name, 64, "cublasLt %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

ckpt_status linear_forward(Context &context, const void *in, const void *weight, const void *bias, size_t rows, size_t inputs,
                           size_t outputs, void *out) {
  const Product plain{Kind::forward, outputs, rows, inputs};
  if (bias == nullptr) return multiply(context, plain, weight, in, 0.0f, out);
  const Product with_bias{Kind::forward_bias, outputs, rows, inputs};
  Plan *plan = nullptr;
  CKPT_CUDA(plan_of(context, with_bias, context.words, &plan));
  if (plan->offered) return multiply(context, with_bias, *plan, weight, in, bias, 0.0f, out, nullptr);
  CKPT_CUDA(multiply(context, plain, weight, in, 0.0f, out));
  return bias_dropout_residual(context, out, bias, nullptr, 0.0f, nullptr, rows, outputs, out);
}

ckpt_status linear_residual_forward(Context &context, const void *in, const void *weight, const void *bias, const void *residual,
                                    float dropout_probability, const ckpt_philox *philox, size_t rows, size_t inputs, size_t outputs,
                                    void *out) {
  // Rounded to the context's type on its way, wherever it lies.
  void *product = nullptr;
  CKPT_CUDA(multiply(context, {Kind::forward, outputs, rows, inputs}, weight, in, 0.0f, residual == out ? nullptr : out, &product));
  return bias_dropout_residual(context, residual == out ? product : out, bias, residual, dropout_probability, philox, rows, outputs, out);
}

ckpt_status linear_backward(Context &context, const void *in, const void *weight, const void *out_grad, size_t rows, size_t inputs,
                            size_t outputs, void *in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad) {
  if (weight_grad != nullptr) CKPT_CUDA(multiply(context, {Kind::weight_grad, inputs, outputs, rows}, in, out_grad, 1.0f, weight_grad));
  if (in_grad != nullptr)
    CKPT_CUDA(multiply(context, {Kind::in_grad, inputs, rows, outputs}, weight, out_grad, accumulate != 0 ? 1.0f : 0.0f, in_grad));
  return bias_grad == nullptr ? CKPT_OK : column_sums(context, out_grad, rows, outputs, bias_grad);
}

}  // namespace ckpt::ops::cuda
