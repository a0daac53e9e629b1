#include "fiber.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "tsan.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "the CUDA double changes fibers and handles faults on x86-64 only"
#endif

extern "C" void cudasim_change(void **save, void *load);
asm(R"(.text
.globl cudasim_change
.hidden cudasim_change
.type cudasim_change,@function
cudasim_change:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size cudasim_change,.-cudasim_change
)");

namespace cudasim {

Fiber *make_fiber() {
  void *map = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  mprotect(map, kGuard, PROT_NONE);
  auto *fiber = new Fiber;
  fiber->memory = static_cast<char *>(map);
  return fiber;
}

void destroy_fiber(Fiber *fiber) {
#ifdef CUDASIM_TSAN
  if (fiber->tsan != nullptr) __tsan_destroy_fiber(fiber->tsan);
#endif
  munmap(fiber->memory, kGuard + kStack);
  delete fiber;
}

void restart(Fiber *fiber, void (*entry)(), [[maybe_unused]] bool known) {
  void **sp = reinterpret_cast<void **>(fiber->stack() + kStack);
  *--sp = nullptr;  // in place of a return address: the stack of a function that was called is 8 off a multiple of 16
  *--sp = reinterpret_cast<void *>(entry);
  sp -= 6;
  std::memset(sp, 0, 6 * sizeof *sp);
  fiber->sp = sp;
  fiber->asan = nullptr;
#ifdef __SANITIZE_ADDRESS__
  // What an abandoned body left poisoned.
  __asan_unpoison_memory_region(fiber->stack(), kStack);
#endif
#ifdef CUDASIM_TSAN
  if (fiber->tsan != nullptr) __tsan_destroy_fiber(fiber->tsan);
  fiber->tsan = known ? __tsan_create_fiber(0) : nullptr;
#endif
}

void change(Home *home, Fiber *from, Fiber *to, [[maybe_unused]] bool known, [[maybe_unused]] bool leaving) {
#ifdef CUDASIM_TSAN
  if (known) {
    if (from == nullptr) home->tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to != nullptr ? to->tsan : home->tsan, 1);  // 1: draws no edge
  }
#endif
#ifdef __SANITIZE_ADDRESS__
  void **fake = leaving ? nullptr : from != nullptr ? &from->asan : &home->asan;
  __sanitizer_start_switch_fiber(fake, to != nullptr ? to->stack() : home->stack, to != nullptr ? kStack : home->bytes);
#endif
  cudasim_change(from != nullptr ? &from->sp : &home->sp, to != nullptr ? to->sp : home->sp);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(from != nullptr ? from->asan : home->asan, nullptr, nullptr);
#endif
}

void arrived([[maybe_unused]] Home *home) {
#ifdef __SANITIZE_ADDRESS__
  const void *stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
  if (home->bytes == 0) home->stack = stack, home->bytes = bytes;  // the first fiber of a run comes from the thread's own stack
#endif
}

}  // namespace cudasim
