// Fails the k-th allocation of this thread for k = 1, 2, ... until the call passes: each failure is OUT_OF_MEMORY with a text, nothing
// leaks (the sanitizers see that), and the next try works.
#include <cstdlib>
#include <functional>
#include <new>

#include "tapes.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // one half of a pair is inlined, the other not
#endif

namespace {

thread_local int64_t allocations_left = -1;  // -1: all succeed

bool refused() { return allocations_left >= 0 && allocations_left-- == 0; }

void *get_or_null(size_t bytes, size_t alignment) noexcept {
  return refused() ? nullptr : std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}
void *get(size_t bytes, size_t alignment) {
  void *data = get_or_null(bytes, alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

void *operator new(size_t bytes) { return get(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void *operator new(size_t bytes, std::align_val_t alignment) { return get(bytes, static_cast<size_t>(alignment)); }
// The sanitizers have their own of these, so they are replaced as well.
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return get_or_null(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void *operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  return get_or_null(bytes, static_cast<size_t>(alignment));
}
void operator delete(void *data) noexcept { std::free(data); }
void operator delete(void *data, size_t) noexcept { std::free(data); }
void operator delete(void *data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void *data, size_t, std::align_val_t) noexcept { std::free(data); }

namespace {

using namespace test;

// How many allocations had to be refused before `call` passed.
int64_t until_it_passes(const std::function<ckpt_status()> &call) {
  for (int64_t k = 0;; ++k) {
    allocations_left = k;
    const ckpt_status status = call();
    allocations_left = -1;
    if (status == CKPT_OK) return k;
    EXPECT_EQ(status, CKPT_ERROR_OUT_OF_MEMORY) << "allocation " << k << ": " << ckpt_ops_last_error();
    EXPECT_NE(std::string(ckpt_ops_last_error()), "");
    if (testing::Test::HasFailure() || k > 10000) return -1;
  }
}

TEST(Faults, Handle) {
  EXPECT_GE(until_it_passes([] {
              ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
              desc.thread_count = 3;
              ckpt_ops *ops = nullptr;
              const ckpt_status status = ckpt_ops_create(&desc, &ops);
              EXPECT_EQ(ops == nullptr, status != CKPT_OK);
              ckpt_ops_destroy(ops);
              return status;
            }),
            3);
}

TEST(Faults, Model) {
  const Ops ops;
  ckpt_gpt_desc desc = CKPT_GPT_DESC_INIT;
  desc.layers = desc.heads = desc.sequence = desc.batch = 2;
  desc.channels = desc.vocabulary = 8;
  EXPECT_GE(until_it_passes([&] {
              ckpt_gpt *gpt = nullptr;
              const ckpt_status status = ckpt_gpt_create(ops, &desc, &gpt);
              EXPECT_EQ(gpt == nullptr, status != CKPT_OK);
              ckpt_gpt_destroy(gpt);
              return status;
            }),
            10);
}

TEST(Faults, WorkSpace) {
  const Floats in = values(600, 1), weight = values(6, 2);
  Floats mean(100), rstd(100, 1.0f), in_grad(600), weight_grad(6), bias_grad(6);
  const Ops ops;
  EXPECT_EQ(until_it_passes([&] {
              return ckpt_ops_layernorm_backward(ops, in.data(), mean.data(), rstd.data(), weight.data(), in.data(), nullptr, 100, 6,
                                                 in_grad.data(), 0, weight_grad.data(), bias_grad.data());
            }),
            1);
  // The work space stays: a second call asks for nothing.
  EXPECT_EQ(until_it_passes([&] {
              return ckpt_ops_layernorm_backward(ops, in.data(), mean.data(), rstd.data(), weight.data(), in.data(), nullptr, 100, 6,
                                                 in_grad.data(), 0, weight_grad.data(), bias_grad.data());
            }),
            0);
}

}  // namespace
