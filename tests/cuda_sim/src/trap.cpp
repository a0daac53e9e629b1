// A kernel's bad access: the handler makes the interrupted fiber go on in a function that reports the address and leaves the kernel with a
// sticky error. Faults of anything else go to the handler that was there before.
#include <signal.h>
#include <ucontext.h>

#include <cstdlib>
#include <utility>

#include "block.h"

namespace cudasim {
namespace {

CUDASIM_OWN __thread const void *fault_address = nullptr;
CUDASIM_OWN __thread void *signal_stack = nullptr;
struct sigaction before_segv, before_bus;

void after_fault() {
  Runner *r = this_runner();
  char text[256] = "a kernel thread's stack overflowed";
  if (!r->current()->in_guard(fault_address)) {
    Quiet quiet;
    describe_address(fault_address, text, sizeof text);
  }
  r->trap(cudaErrorIllegalAddress, text);
}

void on_fault(int signal_number, siginfo_t *info, void *context) {
  Runner *r = this_runner();
  if (r == nullptr || r->current() == nullptr) {
    sigaction(signal_number, signal_number == SIGBUS ? &before_bus : &before_segv, nullptr);
    return;  // it faults again, and goes there
  }
  fault_address = info->si_addr;
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  greg_t sp = (registers[REG_RSP] - 256) & ~greg_t{15};
  if (r->current()->in_guard(fault_address)) sp = reinterpret_cast<greg_t>(r->current()->stack() + kStack);
  registers[REG_RSP] = sp - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(after_fault);
}

}  // namespace

void catch_faults() {
  // The handler needs a stack of its own: the fiber's may be full.
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {  // else a sanitizer's is there, which it frees itself
    stack.ss_flags = 0;
    stack.ss_size = size_t{64} << 10;
    stack.ss_sp = signal_stack = std::malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
  }
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
  });
}

void forget_faults() {
  if (signal_stack == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  std::free(std::exchange(signal_stack, nullptr));
}

}  // namespace cudasim
