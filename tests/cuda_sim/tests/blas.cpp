// The cuBLASLt double against plain loops in double precision.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <random>

#include "common.h"

namespace {

#define BLAS(call) ASSERT_EQ((call), CUBLAS_STATUS_SUCCESS) << #call << " " << cudasim_report()

struct Case {
  cudaDataType in, out;
  size_t m, n, k;
  bool ta, tb;
  size_t pad, batches;
  float alpha, beta;
  cublasLtEpilogue_t epilogue;
};

float rounded(float x, cudaDataType type) {
  return type == CUDA_R_16BF ? __bfloat162float(__float2bfloat16(x)) : type == CUDA_R_16F ? __half2float(__float2half(x)) : x;
}
std::vector<char> encoded(const std::vector<float> &values, cudaDataType type) {
  std::vector<char> bytes(values.size() * (type == CUDA_R_32F ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    const __nv_bfloat16 b = __float2bfloat16(values[i]);
    const __half h = __float2half(values[i]);
    if (type == CUDA_R_32F) std::memcpy(&bytes[i * 4], &values[i], 4);
    if (type == CUDA_R_16BF) std::memcpy(&bytes[i * 2], static_cast<const void *>(&b), 2);
    if (type == CUDA_R_16F) std::memcpy(&bytes[i * 2], static_cast<const void *>(&h), 2);
  }
  return bytes;
}
std::vector<float> decoded(const std::vector<char> &bytes, cudaDataType type) {
  std::vector<float> values(bytes.size() / (type == CUDA_R_32F ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    if (type == CUDA_R_32F) {
      std::memcpy(&values[i], &bytes[i * 4], 4);
    } else {
      std::memcpy(&half, &bytes[i * 2], 2);
      values[i] = type == CUDA_R_16BF ? __bfloat162float(__ushort_as_bfloat16(half)) : __half2float(__ushort_as_half(half));
    }
  }
  return values;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

class SimBlas : public Sim {
 protected:
  void check(const Case &c);
};

void SimBlas::check(const Case &c) {
  std::mt19937 random(static_cast<unsigned>(c.m * 131 + c.n * 17 + c.k));
  std::normal_distribution<float> normal;
  const auto values = [&](size_t count, cudaDataType type) {
    std::vector<float> v(count);
    for (float &x : v) x = rounded(normal(random), type);
    return v;
  };
  const size_t ar = c.ta ? c.k : c.m, ac = c.ta ? c.m : c.k, br = c.tb ? c.n : c.k, bc = c.tb ? c.k : c.n;
  const size_t lda = ar + c.pad, ldb = br + c.pad, ldd = c.m + c.pad, aux_ld = (c.m + 7) / 8 * 8;
  const std::vector<float> a = values(lda * ac * c.batches, c.in), b = values(ldb * bc * c.batches, c.in), bias = values(c.m, c.out);
  std::vector<float> d = values(ldd * c.n * c.batches, c.out);
  if (c.beta == 0)  // then it is not read: a NaN there does not spread
    for (size_t at = 0; at < d.size(); ++at)
      if (at % ldd < c.m) d[at] = NAN;
  Device<char> da(encoded(a, c.in)), db(encoded(b, c.in)), dd(encoded(d, c.out)), dbias(encoded(bias, c.out)),
      daux(encoded(std::vector<float>(aux_ld * c.n, -7), c.out)), workspace(1 << 16);
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t la = nullptr, lb = nullptr, ld = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  BLAS(cublasLtCreate(&handle));
  BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t oa = c.ta ? CUBLAS_OP_T : CUBLAS_OP_N, ob = c.tb ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, oa);
  set(CUBLASLT_MATMUL_DESC_TRANSB, ob);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, c.epilogue);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(static_cast<char *>(dbias)));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<const void *>(static_cast<char *>(daux)));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<int64_t>(aux_ld));
  BLAS(cublasLtMatrixLayoutCreate(&la, c.in, ar, ac, static_cast<int64_t>(lda)));
  BLAS(cublasLtMatrixLayoutCreate(&lb, c.in, br, bc, static_cast<int64_t>(ldb)));
  BLAS(cublasLtMatrixLayoutCreate(&ld, c.out, c.m, c.n, static_cast<int64_t>(ldd)));
  const int32_t batches = static_cast<int32_t>(c.batches);
  const auto stride = [&](cublasLtMatrixLayout_t layout, size_t elements) {
    const int64_t offset = static_cast<int64_t>(elements);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset), CUBLAS_STATUS_SUCCESS);
  };
  stride(la, lda * ac);
  stride(lb, ldb * bc);
  stride(ld, ldd * c.n);
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  const uint64_t most = 1 << 16;
  BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  BLAS(cublasLtMatmulAlgoGetHeuristic(handle, operation, la, lb, ld, ld, preference, 1, &result, &found));
  ASSERT_EQ(found, 1);
  BLAS(cublasLtMatmul(handle, operation, &c.alpha, da, la, db, lb, &c.beta, dd, ld, dd, ld, &result.algo, workspace, result.workspaceSize, stream()));
  const std::vector<float> got = decoded(dd.get(), c.out), aux = decoded(daux.get(), c.out);
  const double tolerance = c.out == CUDA_R_32F ? 1e-5 : c.out == CUDA_R_16F ? 1e-3 : 8e-3;
  for (size_t batch = 0; batch < c.batches; ++batch)
    for (size_t j = 0; j < c.n; ++j)
      for (size_t i = 0; i < ldd; ++i) {
        const size_t at = batch * ldd * c.n + j * ldd + i;
        if (i >= c.m) {
          ASSERT_EQ(got[at], d[at]) << "between columns";
          continue;
        }
        double sum = 0, size = 0;
        for (size_t l = 0; l < c.k; ++l) {
          const double x = a[batch * lda * ac + (c.ta ? i * lda + l : l * lda + i)], y = b[batch * ldb * bc + (c.tb ? l * ldb + j : j * ldb + l)];
          sum += x * y;
          size += std::fabs(x * y);
        }
        double value = double{c.alpha} * sum + (c.beta != 0 ? double{c.beta} * double{d[at]} : 0.0);
        if ((c.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += double{bias[i]};
        if ((c.epilogue & 128) != 0) {
          ASSERT_NEAR(aux[j * aux_ld + i], value, tolerance * (1 + size));
        }
        if ((c.epilogue & CUBLASLT_EPILOGUE_GELU) != 0) value = gelu(value);
        ASSERT_NEAR(got[at], value, tolerance * (1 + size)) << i << " " << j;
      }
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  for (const cublasLtMatrixLayout_t layout : {la, lb, ld}) BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasLtMatmulDescDestroy(operation));
  BLAS(cublasLtDestroy(handle));
  EXPECT_EQ(live().blas_objects, 0u);
}

TEST_F(SimBlas, products_are_those_of_plain_loops) {
  for (const cudaDataType in : {CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        SCOPED_TRACE(testing::Message() << in << ta << tb);
        check({in, in, 33, 7, 19, ta, tb, 3, 1, 1, 0, CUBLASLT_EPILOGUE_DEFAULT});
        check({in, CUDA_R_32F, 16, 4, 64, ta, tb, 0, 2, 0.5f, 2, CUBLASLT_EPILOGUE_DEFAULT});
        check({in, in, 5, 9, 1, ta, tb, 1, 1, 1, 0, CUBLASLT_EPILOGUE_BIAS});
      }
}

TEST_F(SimBlas, epilogues) {
  for (const cublasLtEpilogue_t epilogue : {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS})
    check({CUDA_R_32F, CUDA_R_32F, 17, 6, 12, true, false, 0, 1, 1, 0, epilogue});
}

}  // namespace
