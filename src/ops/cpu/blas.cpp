#include "ops/cpu/blas.h"

#include <cstdint>
#include <cstdio>
#include <mutex>

// Declared here, since distributions put their headers in different places; the interface is the standard's (int32 sizes).
extern "C" {
void cblas_sgemm(int order, int a_op, int b_op, int32_t m, int32_t n, int32_t k, float alpha, const float *a, int32_t a_ld,
                 const float *b, int32_t b_ld, float beta, float *c, int32_t c_ld);
#if defined(CKPT_BLAS_OPENBLAS)
int openblas_get_num_threads(void);
void openblas_set_num_threads(int count);
char *openblas_get_config(void);
#elif defined(CKPT_BLAS_BLIS)
int64_t bli_thread_get_num_threads(void);
void bli_thread_set_num_threads(int64_t count);
const char *bli_info_get_version_str(void);
#else
#error "the build names the BLAS: CKPT_BLAS_OPENBLAS or CKPT_BLAS_BLIS"
#endif
}

namespace ckpt::ops::blas {
namespace {

constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;

std::mutex hold_mutex;
int hold_count = 0;
int threads_before = 1;

#if defined(CKPT_BLAS_OPENBLAS)
int threads() noexcept { return openblas_get_num_threads(); }
void set_threads(int count) noexcept { openblas_set_num_threads(count); }
#else
int threads() noexcept { return static_cast<int>(bli_thread_get_num_threads()); }
void set_threads(int count) noexcept { bli_thread_set_num_threads(count); }
#endif

}  // namespace

void product(Op a_op, Op b_op, size_t m, size_t n, size_t k, float alpha, const float *a, size_t a_ld, const float *b,
             size_t b_ld, float beta, float *c, size_t c_ld) noexcept {
  const auto flag = [](Op op) { return op == Op::TRANSPOSED ? kTransposed : kPlain; };
  const auto size = [](size_t value) { return static_cast<int32_t>(value); };
  cblas_sgemm(kRowMajor, flag(a_op), flag(b_op), size(m), size(n), size(k), alpha, a, size(a_ld), b, size(b_ld), beta, c,
              size(c_ld));
}

Hold::Hold() noexcept {
  const std::lock_guard lock(hold_mutex);
  if (hold_count++ > 0) return;
  threads_before = threads();
  set_threads(1);
}

Hold::~Hold() {
  const std::lock_guard lock(hold_mutex);
  if (--hold_count == 0 && threads_before > 1) set_threads(threads_before);
}

void describe(char *out, size_t bytes) noexcept {
#if defined(CKPT_BLAS_OPENBLAS)
  std::snprintf(out, bytes, "%s", openblas_get_config());
#else
  std::snprintf(out, bytes, "BLIS %s", bli_info_get_version_str());
#endif
}

}  // namespace ckpt::ops::blas
