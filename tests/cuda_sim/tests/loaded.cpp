// The double in a library that is loaded while the program runs: its thread-local shared memory lies elsewhere in each thread.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

TEST(SimLoaded, shared_memory_begins_as_nan) {
  void *module = dlopen(CUDASIM_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(module, nullptr) << dlerror();
  const auto leftovers = reinterpret_cast<int (*)()>(dlsym(module, "cudasim_module_leftovers"));
  ASSERT_NE(leftovers, nullptr);
  EXPECT_EQ(leftovers(), 0);
  int elsewhere = -1;
  std::thread([&] { elsewhere = leftovers(); }).join();
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(leftovers(), 0);
  dlclose(module);  // its threads stay
}

}  // namespace
