// A pool of threads for short parallel loops. Tasks are numbered and claimed one by one; what a task computes depends on its
// number alone, never on the thread that claims it, so results do not depend on the number of threads. The caller works too,
// and waits only for threads that have joined the loop: one that the system keeps from running delays nobody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ckpt::ops {

class Pool {
 public:
  using TaskFn = void (*)(const void *body, size_t task, unsigned thread);

  Pool() = default;
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  // Once, before the first run. False: the system gave no thread (those that were started end).
  bool start(unsigned thread_count) noexcept;
  unsigned thread_count() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }

  // body(task, thread) for task in [0, count), thread < thread_count(). One caller at a time.
  template <class Body>
  void run(size_t count, const Body &body) noexcept {
    if (count <= 1 || threads_.empty()) {
      for (size_t task = 0; task < count; ++task) body(task, 0u);
      return;
    }
    fork_join(count, &body, [](const void *b, size_t task, unsigned thread) {
      (*static_cast<const Body *>(b))(task, thread);
    });
  }

 private:
  void fork_join(size_t count, const void *body, TaskFn fn) noexcept;
  void work(unsigned thread) noexcept;
  void claim(unsigned thread) noexcept;
  void stop() noexcept;

  static constexpr uint32_t kOpen = 1u << 31;  // threads may join the loop; the lower bits count those that have

  std::vector<std::thread> threads_;
  alignas(64) std::atomic<uint32_t> generation_{0};  // moves on with each loop
  alignas(64) std::atomic<uint32_t> gate_{0};
  alignas(64) std::atomic<size_t> next_{0};
  alignas(64) size_t count_ = 0;  // the loop: written while the gate is shut and nobody is in
  const void *body_ = nullptr;
  TaskFn fn_ = nullptr;
  std::atomic<bool> ending_{false};
};

}  // namespace ckpt::ops
