// Single-precision matrix products through CBLAS, one thread each: parallel work is cut into products of fixed shapes by the
// callers, so a product's bits do not depend on the number of threads.
#pragma once

#include <cstddef>

namespace ckpt::ops::blas {

enum class Op { PLAIN, TRANSPOSED };

// c [m, n] = alpha * op(a) [m, k] * op(b) [k, n] + beta * c; row-major, `ld` in floats.
void product(Op a_op, Op b_op, size_t m, size_t n, size_t k, float alpha, const float *a, size_t a_ld, const float *b,
             size_t b_ld, float beta, float *c, size_t c_ld) noexcept;

// Holds the process's BLAS at one thread while at least one hold lives; what it was comes back with the last.
class Hold {
 public:
  Hold() noexcept;
  ~Hold();
  Hold(const Hold &) = delete;
  Hold &operator=(const Hold &) = delete;
};

// "OpenBLAS 0.3.21 ...", at most 63 bytes.
void describe(char *out, size_t bytes) noexcept;

}  // namespace ckpt::ops::blas
