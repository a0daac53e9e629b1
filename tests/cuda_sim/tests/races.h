// Reports of ThreadSanitizer, counted instead of ending the test; none where it is not there.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

#ifdef __SANITIZE_THREAD__
constexpr bool kFindsRaces = true;
inline std::atomic<int> race_reports{0};
extern "C" {
__attribute__((visibility("default"))) void __tsan_on_report(void *) { ++race_reports; }
// A report is what a test wants, so it does not fail the program, and the same one comes again.
__attribute__((visibility("default"))) const char *__tsan_default_options() { return "exitcode=0:suppress_equal_stacks=0:suppress_equal_addresses=0"; }
}
// Reports while f runs.
template <class F>
int races(F f) {
  const int before = race_reports;
  f();
  return race_reports - before;
}
#else
constexpr bool kFindsRaces = false;
template <class F>
int races(F f) {
  f();
  return 0;
}
#endif
