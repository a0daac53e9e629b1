// cuBLASLt: descriptors, one algorithm for everything that NVIDIA's tables offer for float32 accumulation, and the product on a stream.
#include <cublasLt.h>

#include <map>
#include <set>

#include "gemm.h"
#include "state.h"

namespace {

struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t ld, stride = 0;
  int32_t order = CUBLASLT_ORDER_COL, batches = 1;
};
struct Operation {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t bias_stride = 0, aux_ld = 0, aux_stride = 0;
  int32_t bias_type = -1, aux_type = -1, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
// What cublasLtMatmulAlgo_t holds.
struct Algorithm {
  uint64_t magic, workspace;
  uint32_t alignment[4];
};
constexpr uint64_t kMagic = 0x63756461676f6c61, kWorkspace = 4096;

}  // namespace

struct cublasLtContext {};

namespace cudasim {
namespace {

struct Objects {
  std::mutex lock;
  std::set<const void *> all;
};
Objects &objects() {
  static Objects *o = new Objects;
  return *o;
}

cublasStatus_t status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation: return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice: return CUBLAS_STATUS_NOT_INITIALIZED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

template <class T, class Handle>
cublasStatus_t create(Handle *out, T *object) {
  *out = reinterpret_cast<Handle>(object);
  std::lock_guard<std::mutex> hold(objects().lock);
  objects().all.insert(object);
  std::lock_guard<std::mutex> counts(memory_lock());
  ++live().blas_objects;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class Handle>
cublasStatus_t destroy(Handle handle, cudaError_t entered) {
  if (handle == nullptr) return status_of(entered);
  {
    std::lock_guard<std::mutex> hold(objects().lock);
    if (objects().all.erase(handle) == 0) return CUBLAS_STATUS_INVALID_VALUE;
    std::lock_guard<std::mutex> counts(memory_lock());
    --live().blas_objects;
  }
  delete reinterpret_cast<T *>(handle);
  return status_of(entered);
}
template <class T, class Handle>
T *get(Handle handle) {
  std::lock_guard<std::mutex> hold(objects().lock);
  return objects().all.contains(handle) ? reinterpret_cast<T *>(const_cast<std::remove_const_t<std::remove_pointer_t<Handle>> *>(handle)) : nullptr;
}
// Copies an attribute of the field's size.
template <class T>
cublasStatus_t take(T *field, const void *value, size_t bytes) {
  if (value == nullptr || bytes != sizeof *field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(field, value, sizeof *field);
  return CUBLAS_STATUS_SUCCESS;
}

Matrix matrix(const Layout &l, const void *data, bool transposed) {
  const bool by_row = l.order == CUBLASLT_ORDER_ROW;
  const size_t ld = static_cast<size_t>(l.ld);
  Matrix m{const_cast<void *>(data), l.type, l.rows, l.columns, by_row ? ld : 1, by_row ? 1 : ld, static_cast<size_t>(l.stride)};
  if (transposed) {
    std::swap(m.rows, m.columns);
    std::swap(m.by_row, m.by_column);
  }
  return m;
}

bool wants(const Operation &o, uint32_t bit) { return (o.epilogue & bit) == bit && o.epilogue != CUBLASLT_EPILOGUE_DEFAULT; }

cublasStatus_t describe(const Operation *o, const Layout *a, const Layout *b, const Layout *c, const Layout *d, Product *out) {
  if (o == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (o->scale != CUDA_R_32F || o->pointer_mode != CUBLASLT_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (o->compute != CUBLAS_COMPUTE_32F && o->compute != CUBLAS_COMPUTE_32F_PEDANTIC && o->compute != CUBLAS_COMPUTE_32F_FAST_TF32)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (size_of(a->type) == 0 || a->type != b->type || c->type != d->type || (d->type != CUDA_R_32F && d->type != a->type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const Layout *l : {a, b, c, d}) {
    if (l->order != CUBLASLT_ORDER_COL && l->order != CUBLASLT_ORDER_ROW) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (l->ld < static_cast<int64_t>(l->order == CUBLASLT_ORDER_COL ? l->rows : l->columns) || l->batches != d->batches || l->batches < 1)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const int32_t t : {o->transpose_a, o->transpose_b})
    if (t != CUBLAS_OP_N && t != CUBLAS_OP_T && t != CUBLAS_OP_C) return CUBLAS_STATUS_INVALID_VALUE;
  *out = {};
  out->a = matrix(*a, nullptr, o->transpose_a != CUBLAS_OP_N);
  out->b = matrix(*b, nullptr, o->transpose_b != CUBLAS_OP_N);
  out->c = matrix(*c, nullptr, false);
  out->d = matrix(*d, nullptr, false);
  out->batches = static_cast<size_t>(d->batches);
  if (out->a.rows != out->d.rows || out->a.columns != out->b.rows || out->b.columns != out->d.columns || out->c.rows != out->d.rows ||
      out->c.columns != out->d.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  constexpr uint32_t kGelu = CUBLASLT_EPILOGUE_GELU, kBias = CUBLASLT_EPILOGUE_BIAS, kAux = 128, kSlope = 64, kGradient = 16;
  switch (o->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB: break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (o->epilogue != CUBLASLT_EPILOGUE_DEFAULT && d->order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
  out->gelu = wants(*o, kGelu);
  out->gelu_gradient = wants(*o, kSlope);
  out->bias_type = o->bias_type < 0 ? d->type : static_cast<cudaDataType>(o->bias_type);
  out->bias_by_batch = static_cast<size_t>(o->bias_stride);
  if (wants(*o, kBias)) {
    if (o->bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    out->bias = o->bias;
  }
  out->gradient_of = wants(*o, kGradient) && out->gelu_gradient ? Product::Of::d
                     : o->epilogue == CUBLASLT_EPILOGUE_BGRADA   ? Product::Of::a
                     : o->epilogue == CUBLASLT_EPILOGUE_BGRADB   ? Product::Of::b
                                                                 : Product::Of::none;
  if (out->gradient_of != Product::Of::none && (out->bias_gradient = o->bias) == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (wants(*o, kAux)) {
    if (o->aux == nullptr || o->aux_ld % 8 != 0 || o->aux_ld < static_cast<int64_t>(d->rows)) return CUBLAS_STATUS_INVALID_VALUE;
    out->aux = {o->aux, o->aux_type < 0 ? d->type : static_cast<cudaDataType>(o->aux_type), d->rows, d->columns, 1,
                static_cast<size_t>(o->aux_ld), static_cast<size_t>(o->aux_stride)};
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Each run of elements that lie side by side. f(data, bytes): false ends it.
template <class F>
bool each_run(const Matrix &m, size_t batches, F f) {
  if (m.data == nullptr || m.rows == 0 || m.columns == 0) return true;
  const bool by_row = m.by_column == 1 && m.by_row != 1;
  const size_t runs = by_row ? m.rows : m.columns, length = by_row ? m.columns : m.rows, stride = by_row ? m.by_row : m.by_column;
  for (size_t batch = 0; batch < batches; ++batch)
    for (size_t k = 0; k < runs; ++k)
      if (!f(static_cast<const char *>(m.data) + (batch * m.by_batch + k * stride) * size_of(m.type), length * size_of(m.type))) return false;
  return true;
}

Matrix bias_matrix(const Product &p, const void *data) {
  const size_t count = p.gradient_of == Product::Of::b ? p.b.columns : p.d.rows;
  return {const_cast<void *>(data), p.bias_type, count, 1, 1, count, p.bias_by_batch};
}

cudaError_t run(const Product &p, const void *workspace, size_t workspace_bytes) {
  struct Access {
    Matrix matrix;
    const char *name;
    bool write;
  };
  std::vector<Access> all = {{p.a, "a", false}, {p.b, "b", false}, {p.d, "d", true}, {p.aux, "aux", p.gelu}};
  if (p.beta != 0) all.push_back({p.c, "c", false});
  all.push_back({bias_matrix(p, p.bias), "bias", false});
  all.push_back({bias_matrix(p, p.bias_gradient), "bias gradient", true});
  for (const Access &a : all)
    if (!each_run(a.matrix, p.batches, [](const char *data, size_t bytes) { return device_range(data, bytes); })) {
      set_report(std::string("cublasLtMatmul: ") + a.name + " lies outside of its allocation");
      return cudaErrorIllegalAddress;
    }
  if (workspace_bytes != 0 && !device_range(workspace, workspace_bytes)) {
    set_report("cublasLtMatmul: the workspace lies outside of its allocation");
    return cudaErrorIllegalAddress;
  }
  for (const Access &a : all)
    each_run(a.matrix, p.batches, [&](const char *data, size_t bytes) { return note_access(data, bytes, a.write), true; });
  note_access(workspace, workspace_bytes, true);
  if (workspace_bytes != 0) std::memset(const_cast<void *>(workspace), 0xff, workspace_bytes);  // nobody may rely on what is there
  multiply(p);
  return cudaSuccess;
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

#define BLAS_ENTER(...) \
  Quiet quiet_;         \
  if (const cudaError_t entered_ = enter(__func__ __VA_OPT__(, ) __VA_ARGS__); entered_ != cudaSuccess) return status_of(keep(entered_))
#define BLAS_GIVE_BACK() \
  Quiet quiet_;          \
  const cudaError_t entered = enter(__func__, kGivesBack)

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
  BLAS_ENTER(kUnsafe);
  return create(out, new cublasLtContext);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  BLAS_GIVE_BACK();
  return destroy<cublasLtContext>(handle, entered);
}
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "unknown";
  }
}
const char *cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
  BLAS_ENTER();
  return create(out, new Operation{compute, scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  BLAS_GIVE_BACK();
  return destroy<Operation>(desc, entered);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t bytes) {
  BLAS_ENTER();
  auto *o = get<Operation>(desc);
  if (o == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(&o->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(&o->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(&o->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(&o->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return take(&o->bias_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return take(&o->bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(&o->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(&o->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return take(&o->aux_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return take(&o->aux_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return take(&o->pointer_mode, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  BLAS_ENTER();
  return create(out, new Layout{type, rows, columns, ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  BLAS_GIVE_BACK();
  return destroy<Layout>(layout, entered);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes) {
  BLAS_ENTER();
  auto *l = get<Layout>(layout);
  if (l == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return take(&l->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return take(&l->order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return take(&l->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return take(&l->columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD: return take(&l->ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(&l->batches, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(&l->stride, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  BLAS_ENTER();
  return create(out, new Preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  BLAS_GIVE_BACK();
  return destroy<Preference>(preference, entered);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  BLAS_ENTER();
  auto *p = get<Preference>(preference);
  if (p == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  uint32_t ignored = 0;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(&p->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(&p->alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(&p->alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(&p->alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(&p->alignment[3], value, bytes);
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(&ignored, value, bytes);  // there is one algorithm, without partial sums
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
                                              int *out_count) {
  BLAS_ENTER();
  const auto *p = get<Preference>(preference);
  if (get<cublasLtContext>(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (p == nullptr || wanted <= 0 || results == nullptr || out_count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *out_count = 0;
  Product product;
  if (const cublasStatus_t status = describe(get<Operation>(operation), get<Layout>(a), get<Layout>(b), get<Layout>(c), get<Layout>(d), &product);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  results[0] = {};
  const uint64_t workspace = p->workspace >= kWorkspace ? kWorkspace : 0;
  const Algorithm algorithm{kMagic, workspace, {p->alignment[0], p->alignment[1], p->alignment[2], p->alignment[3]}};
  static_assert(sizeof algorithm <= sizeof results[0].algo);
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *out_count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
  BLAS_ENTER();
  if (get<cublasLtContext>(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Product p;
  if (const cublasStatus_t status = describe(get<Operation>(operation), get<Layout>(a_layout), get<Layout>(b_layout), get<Layout>(c_layout),
                                             get<Layout>(d_layout), &p);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  std::memcpy(&p.alpha, alpha, sizeof p.alpha);
  std::memcpy(&p.beta, beta, sizeof p.beta);
  p.a.data = const_cast<void *>(a);
  p.b.data = const_cast<void *>(b);
  p.c.data = const_cast<void *>(c);
  p.d.data = d;
  if (a == nullptr || b == nullptr || d == nullptr || (p.beta != 0 && c == nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm algorithm{kMagic, 0, {1, 1, 1, 1}};
  if (algo != nullptr) std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.magic != kMagic || workspace_bytes < algorithm.workspace || reinterpret_cast<uintptr_t>(workspace) % 16 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const void *operands[] = {a, b, p.beta != 0 ? c : d, d};
  for (int k = 0; k < 4; ++k)
    if (reinterpret_cast<uintptr_t>(operands[k]) % algorithm.alignment[k] != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (const cudaError_t error = check_current(stream); error != cudaSuccess) return status_of(keep(error));
  const unsigned delay = issue(CUDASIM_KERNEL);
  return status_of(keep(enqueue(stream, {[=, needed = algorithm.workspace] {
                                           sleep_for(delay);
                                           return run(p, workspace, needed);
                                         }})));
}

}  // extern "C"
