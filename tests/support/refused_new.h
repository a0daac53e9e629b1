// operator new that the test can make fail: all forms of it end in `refuse`. Included once, by the one file of a fault test.
// Sanitizers see malloc and free below.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr int64_t kNever = INT64_MAX;
int64_t g_left = kNever;  // requests until the one that fails
bool g_inside = false;    // requests count: in the library, not in a callback or in the test

bool refuse() { return g_inside && g_left != kNever && g_left-- == 0; }

}  // namespace

void *operator new(size_t bytes) {
  void *p = refuse() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return refuse() ? nullptr : std::malloc(bytes != 0 ? bytes : 1); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { std::free(p); }
