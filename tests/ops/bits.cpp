// One set of bits: for every number of threads, for every alignment, and each time; and every instruction set is right.
#include <dlfcn.h>

#include <thread>

#include "everything.h"

using namespace test;

namespace {

void expect_same(const std::vector<Floats> &a, const std::vector<Floats> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(same_bits(a[k], b[k])) << "result " << k;
}

TEST(Bits, DoNotDependOnThreads) {
  const Ops one(1);
  const std::vector<Floats> expected = everything(one, 0);
  for (const uint32_t threads : {2u, 3u, 5u}) {
    SCOPED_TRACE(threads);
    const Ops ops(threads);
    expect_same(everything(ops, 0), expected);
  }
}

TEST(Bits, DoNotDependOnAlignment) {
  const Ops ops(2);
  const std::vector<Floats> expected = everything(ops, 0);
  for (const size_t shift : {1u, 3u, 8u}) {
    SCOPED_TRACE(shift);
    expect_same(everything(ops, shift), expected);
  }
}

// The best set is compared with the reference elsewhere; the others must agree with it but for rounding.
TEST(Isa, AllAgree) {
  const Ops best;
  const std::vector<Floats> expected = everything(best, 0);
  for (const uint32_t isa : {CKPT_ISA_GENERIC, CKPT_ISA_AVX2, CKPT_ISA_AVX512}) {
    SCOPED_TRACE(isa);
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.isa = isa;
    ckpt_ops *probe = nullptr;
    if (ckpt_ops_create(&desc, &probe) == CKPT_ERROR_UNSUPPORTED) continue;
    ckpt_ops_destroy(probe);
    const Ops one(1, isa), three(3, isa);
    const std::vector<Floats> got = everything(one, 0);
    expect_same(everything(three, 1), got);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k + 1 < got.size(); ++k)  // the last is a double's bits
      expect_near(got[k], reference::of(expected[k]), 1e-5, "result " + std::to_string(k));
  }
}

TEST(Bits, RepeatEachTime) {
  const Ops ops(3);
  const std::vector<Floats> expected = everything(ops, 0);
  for (int k = 0; k < 3; ++k) expect_same(everything(ops, 0), expected);
}

TEST(Threads, CallsIntoOneHandleTakeTurns) {
  const Ops ops(3);
  const std::vector<Floats> expected = everything(ops, 0);
  std::vector<Floats> there, here;
  std::thread other([&] { there = everything(ops, 0); });
  here = everything(ops, 0);
  other.join();
  expect_same(here, expected);
  expect_same(there, expected);
}

TEST(Threads, HandlesComeAndGo) {
  const Floats in = values(100000, 1);
  Floats out(in.size());
  for (int k = 0; k < 50; ++k) {
    const Ops ops(4);
    OK(ckpt_ops_add(ops, in.data(), in.data(), in.size(), out.data()));
    ASSERT_EQ(out[77777], 2.0f * in[77777]);
  }
}

// Many short loops with pauses between: threads fall asleep and are woken again.
TEST(Threads, ShortLoopsAndSleep) {
  const Ops ops(3);
  Floats a(200000, 0.0f);
  const Floats one(a.size(), 1.0f);
  for (int k = 1; k <= 300; ++k) {
    OK(ckpt_ops_add(ops, a.data(), one.data(), a.size(), a.data()));
    if (k % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(a, Floats(a.size(), 300.0f));
}

// The BLAS is held at one thread while a handle lives, and gets back what it had.
TEST(Threads, BlasIsHeldAtOne) {
  const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (count == nullptr || set == nullptr) GTEST_SKIP() << "the BLAS is not OpenBLAS";
  set(2);
  {
    const Ops first(1);
    EXPECT_EQ(count(), 1);
    { const Ops second(2); }
    EXPECT_EQ(count(), 1);
  }
  EXPECT_EQ(count(), 2);
}

TEST(Threads, AllOfTheMachineByDefault) {
  ckpt_ops *ops = nullptr;
  OK(ckpt_ops_create(nullptr, &ops));
  ckpt_ops_info info = {};
  info.struct_size = sizeof info;
  OK(ckpt_ops_get_info(ops, &info));
  EXPECT_GE(info.thread_count, 1u);
  EXPECT_NE(std::string(info.isa), "");
  EXPECT_NE(std::string(info.blas), "");
  ckpt_ops_destroy(ops);
}

}  // namespace
