#include "ops/cpu/pool.h"

#include <system_error>

namespace ckpt::ops {
namespace {

// How often a waiting thread looks before it sleeps: some 30 microseconds, about what waking one costs.
constexpr int kLooks = 1500;

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

template <class Done>
bool spin(const Done &done) noexcept {
  for (int k = 0; k < kLooks; ++k) {
    if (done()) return true;
    relax();
  }
  return false;
}

}  // namespace

bool Pool::start(unsigned thread_count) noexcept {
  try {
    threads_.reserve(thread_count - 1);
    for (unsigned k = 1; k < thread_count; ++k) threads_.emplace_back([this, k] { work(k); });
  } catch (const std::exception &) {
    stop();
    return false;
  }
  return true;
}

Pool::~Pool() { stop(); }

void Pool::stop() noexcept {
  ending_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread &thread : threads_) thread.join();
  threads_.clear();
}

void Pool::claim(unsigned thread) noexcept {
  for (size_t task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) fn_(body_, task, thread);
}

void Pool::fork_join(size_t count, const void *body, TaskFn fn) noexcept {
  count_ = count;
  body_ = body;
  fn_ = fn;
  next_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen);  // publishes the loop
  generation_.fetch_add(1);
  generation_.notify_all();
  claim(0);
  gate_.fetch_and(~kOpen);  // who is not in stays out
  if (spin([&] { return gate_.load() == 0; })) return;
  for (uint32_t inside; (inside = gate_.load()) != 0;) gate_.wait(inside);
}

void Pool::work(unsigned thread) noexcept {
  uint32_t seen = 0;
  for (;;) {
    if (!spin([&] { return generation_.load() != seen; })) generation_.wait(seen);
    const uint32_t now = generation_.load();
    if (now == seen) continue;
    seen = now;
    if (ending_.load()) return;
    uint32_t gate = gate_.load();
    while ((gate & kOpen) != 0 && !gate_.compare_exchange_weak(gate, gate + 1)) {
    }
    if ((gate & kOpen) == 0) continue;
    claim(thread);
    if (gate_.fetch_sub(1) == 1) gate_.notify_one();
  }
}

}  // namespace ckpt::ops
