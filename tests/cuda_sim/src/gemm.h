// One product of the cuBLASLt double: d = alpha op(a) op(b) + beta c, then the epilogue. Element (row, column) of a matrix lies at
// row * by_row + column * by_column.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace cudasim {

struct Matrix {
  void *data;
  cudaDataType type;
  size_t rows, columns, by_row, by_column, by_batch;
};
struct Product {
  Matrix a, b, c, d;  // a and b as op has made them: m x k, k x n
  size_t batches;
  float alpha, beta;
  bool gelu, gelu_gradient;
  Matrix aux;            // what the GELU gets, or got
  const void *bias;      // [m], or NULL
  void *bias_gradient;   // sums over d's rows' columns, over a's or b's; or NULL
  enum class Of { none, a, b, d } gradient_of;
  cudaDataType bias_type;
  size_t bias_by_batch;
};

size_t size_of(cudaDataType type);  // 0: not one of the three types
void multiply(const Product &product);

}  // namespace cudasim
