// A fiber: a stack of its own on the operating-system thread that made it, and which it never leaves.
#pragma once

#include <cstddef>

namespace cudasim {

#if defined(CUDASIM_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = size_t{256} << 10;
#else
constexpr size_t kStack = size_t{64} << 10;
#endif
constexpr size_t kGuard = size_t{64} << 10;  // below it, without access: larger than a frame

struct Fiber {
  void *sp = nullptr;
  char *memory = nullptr;  // the guard, then the stack
  unsigned thread = 0;
  void *tsan = nullptr, *asan = nullptr;

  char *stack() const { return memory + kGuard; }
  bool in_guard(const void *p) const { return p >= memory && p < stack(); }
};

// Where the scheduler goes on, between fibers.
struct Home {
  void *sp = nullptr;
  void *tsan = nullptr, *asan = nullptr;
  const void *stack = nullptr;
  size_t bytes = 0;
};

Fiber *make_fiber();
void destroy_fiber(Fiber *fiber);
// The fiber begins with `entry` at its next turn, whatever it was doing. known: to ThreadSanitizer.
void restart(Fiber *fiber, void (*entry)(), bool known);
// nullptr: the home. leaving: `from` never goes on.
void change(Home *home, Fiber *from, Fiber *to, bool known, bool leaving = false);
// The first thing on a new fiber.
void arrived(Home *home);

}  // namespace cudasim
