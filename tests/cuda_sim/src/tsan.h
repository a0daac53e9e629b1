// What ThreadSanitizer is told. The double's own sources are not instrumented: their state is handed around by rules that the tool cannot
// see. Its locks are hidden (Quiet), and the edges that CUDA promises are told one by one: a call -> its operation; an operation ->
// whoever waits for its stream; a recorded event -> who waits for it. So a missing event is a race in every run, whatever the timing.
#pragma once

#include <cstddef>

// A thread-local variable of the double itself: the others of the module are taken for shared memory of kernels (poison.cpp).
#define CUDASIM_OWN __attribute__((section("cudasim_own")))

#ifdef CUDASIM_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_read_range(void *address, unsigned long bytes);
void __tsan_write_range(void *address, unsigned long bytes);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#endif

namespace cudasim {

#ifdef CUDASIM_TSAN
extern __thread unsigned quiet_depth;
inline void quiet_begin() {
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
inline void quiet_end() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}
// Nothing in this scope draws an edge or is an access.
struct Quiet {
  Quiet() {
    if (quiet_depth++ == 0) quiet_begin();
  }
  ~Quiet() {
    if (--quiet_depth == 0) quiet_end();
  }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;
};
// The user's code inside a quiet scope.
struct Loud {
  unsigned depth = quiet_depth;
  Loud() {
    quiet_depth = 0;
    if (depth != 0) quiet_end();
  }
  ~Loud() {
    if (depth != 0) quiet_begin();
    quiet_depth = depth;
  }
  Loud(const Loud &) = delete;
  Loud &operator=(const Loud &) = delete;
};
inline void edge_release(const void *p) {
  Loud loud;
  __tsan_release(const_cast<void *>(p));
}
inline void edge_acquire(const void *p) {
  Loud loud;
  __tsan_acquire(const_cast<void *>(p));
}
inline void note_access(const void *p, size_t bytes, bool write) {
  if (bytes == 0) return;
  Loud loud;
  if (write)
    __tsan_write_range(const_cast<void *>(p), bytes);
  else
    __tsan_read_range(const_cast<void *>(p), bytes);
}
#else
struct Quiet {
  Quiet() {}
  ~Quiet() {}
};
struct Loud {
  Loud() {}
  ~Loud() {}
};
inline void edge_release(const void *) {}
inline void edge_acquire(const void *) {}
inline void note_access(const void *, size_t, bool) {}
#endif

}  // namespace cudasim
