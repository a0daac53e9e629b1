// The block that runs on this operating-system thread.
#pragma once

#include "fiber.h"
#include "state.h"

namespace cudasim {

// Fixed arrays in all that fibers touch: a vector's growth calls functions that ThreadSanitizer intercepts even from code that is not
// instrumented.
struct Ring {
  Fiber *all[2048];
  unsigned first = 0, end = 0;
  unsigned size() const { return end - first; }
  void push(Fiber *f) { all[end++ & 2047] = f; }
  Fiber *&at(unsigned i) { return all[(first + i) & 2047]; }
  Fiber *&back() { return all[(end - 1) & 2047]; }
  Fiber *pop_front() { return all[first++ & 2047]; }
  Fiber *pop_back() { return all[--end & 2047]; }
  void clear() { first = end = 0; }
};

// The lanes of a warp that meet with one mask.
struct Group {
  unsigned mask = 0, arrived = 0, turn = 0;
  uint64_t slots[2][32];
  Fiber *waiting[32];
};
struct Warp {
  unsigned live = 0, count = 0;
  Group *groups[16];
};

class Runner {
 public:
  ~Runner();
  cudaError_t run(const Launch &launch, uint3 block);
  unsigned lane() const { return current_->thread & 31; }
  unsigned active() const { return warps_[current_->thread / 32].live; }
  void *shared() const { return shared_; }
  Fiber *current() const { return current_; }
  unsigned barrier(bool predicate);
  const uint64_t *warp_sync(unsigned mask, uint64_t value);
  [[noreturn]] void trap(cudaError_t error, const char *what);
  void begin_grid(bool known, int order, unsigned seed);

 private:
  Fiber *fresh();
  Fiber *pick();
  void go(Fiber *from, Fiber *to, bool leaving = false);
  void block_here();
  void set_ids(unsigned thread) const;
  void release_barrier();
  Group *group(Warp &warp, unsigned mask);
  bool complete(Warp &warp, Group *group, const Fiber *except);
  void body();
  void end_thread(unsigned thread);
  void abandon();
  static void entry();
  void prepare_shared(size_t bytes);

  const Launch *launch_ = nullptr;
  Ring all_, idle_, ready_, at_barrier_;  // at most 1024 threads a block, so they never overflow
  Warp warps_[32];
  Home home_;
  Fiber *current_ = nullptr;
  unsigned threads_ = 0, next_ = 0, ended_ = 0, random_ = 1;
  unsigned barrier_turn_ = 0, counts_[3] = {};
  int order_ = CUDASIM_FORWARD;
  bool known_ = false;
  cudaError_t error_ = cudaSuccess;
  char error_text_[400] = "";
  char *shared_map_ = nullptr, *shared_ = nullptr;
  char start_edge_ = 0, end_edge_ = 0, barrier_edge_ = 0;
  uint64_t switches_ = 0, collectives_ = 0;
};

Runner *this_runner();  // nullptr outside of kernels
void catch_faults();    // faults of this thread's kernels become traps
void forget_faults();   // at the thread's end
void poison_static_shared(bool first_block);

}  // namespace cudasim
