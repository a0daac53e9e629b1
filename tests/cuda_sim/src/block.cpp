// Threads of a block as fibers of one operating-system thread. A fiber runs thread after thread until one blocks; only then another fiber
// is taken, so kernels without barriers do not change fibers at all. Where ThreadSanitizer is to know the threads, each has a
// fiber, and only barriers and collectives draw edges between them.
#include "block.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

CUDASIM_OWN __thread uint3 threadIdx;
CUDASIM_OWN __thread uint3 blockIdx;
CUDASIM_OWN __thread uint3 blockDim;
CUDASIM_OWN __thread uint3 gridDim;

namespace cudasim {
namespace {

constexpr size_t kShared = size_t{228} << 10, kPage = 4096;

struct Settings {
  std::atomic<int> order{CUDASIM_FORWARD};
  std::atomic<unsigned> seed{1}, workers{1};
  std::atomic<bool> known{std::getenv("CUDASIM_THREADS") != nullptr && std::strcmp(std::getenv("CUDASIM_THREADS"), "1") == 0};
};
Settings &settings() {
  static Settings *s = new Settings;
  return *s;
}

CUDASIM_OWN __thread Runner *runner = nullptr;

// Runners that no thread has now. Not kept under ThreadSanitizer: for it two threads that use one stack after the other are a race.
struct Pool {
  std::mutex lock;
  std::vector<Runner *> free;
};
Pool &pool() {
  static Pool *p = new Pool;
  return *p;
}

}  // namespace

Runner *this_runner() { return runner; }
void set_order(int order, unsigned seed) { settings().order = order, settings().seed = seed; }
void set_workers(unsigned count) { settings().workers = count == 0 ? 1 : count; }
void set_thread_races(int on) { settings().known = on != 0; }

void leave_thread() {
  forget_faults();
  if (runner == nullptr) return;
#ifdef CUDASIM_TSAN
  delete runner;
#else
  std::lock_guard<std::mutex> hold(pool().lock);
  pool().free.push_back(runner);
#endif
  runner = nullptr;
}

Runner::~Runner() {
  while (all_.size() != 0) destroy_fiber(all_.pop_back());
  for (Warp &w : warps_)
    for (unsigned i = 0; i < w.count; ++i) delete w.groups[i];
  if (shared_map_ != nullptr) munmap(shared_map_, kShared + kPage);
}

Fiber *Runner::fresh() {
  if (idle_.size() != 0) return idle_.pop_back();
  Fiber *f = make_fiber();
  restart(f, entry, known_);
  all_.push(f);
  return f;
}

// The next fiber to run; nullptr: none can. New threads first, so that all reach the barrier before one goes on.
Fiber *Runner::pick() {
  if (next_ < threads_) return fresh();
  if (ready_.size() == 0) return nullptr;
  if (order_ == CUDASIM_FORWARD) return ready_.pop_front();
  if (order_ == CUDASIM_RANDOM) {
    random_ = random_ * 1664525u + 1013904223u;
    std::swap(ready_.at((random_ >> 8) % ready_.size()), ready_.back());
  }
  return ready_.pop_back();
}

void Runner::set_ids(unsigned thread) const {
  const unsigned x = launch_->block.x, y = launch_->block.y;
  threadIdx = {thread % x, thread / x % y, thread / (x * y)};
}

void Runner::go(Fiber *from, Fiber *to, bool leaving) {
  ++switches_;
  current_ = to;
  change(&home_, from, to, known_, leaving);
  if (from != nullptr) {
    current_ = from;
    set_ids(from->thread);
  }
}

void Runner::block_here() {
  Fiber *me = current_, *next = pick();
  if (next != me) go(me, next);
}

void Runner::release_barrier() {
  while (at_barrier_.size() != 0) ready_.push(at_barrier_.pop_front());
  counts_[(++barrier_turn_ + 1) % 3] = 0;
}

unsigned Runner::barrier(bool predicate) {
  edge_release(&barrier_edge_);
  const unsigned turn = barrier_turn_ % 3;
  counts_[turn] += predicate;
  if (at_barrier_.size() + 1 == threads_ - ended_) {  // the last one goes straight on
    release_barrier();
  } else {
    at_barrier_.push(current_);
    block_here();
  }
  edge_acquire(&barrier_edge_);
  return counts_[turn];
}

Group *Runner::group(Warp &warp, unsigned mask) {
  for (unsigned i = 0; i < warp.count; ++i)
    if (warp.groups[i]->mask == mask) return warp.groups[i];
  if (warp.count == 16) trap(cudaErrorLaunchFailure, "more than 16 different masks in one warp");
  Group *g = new Group;
  g->mask = mask;
  return warp.groups[warp.count++] = g;
}

// Lanes that have ended count as arrived.
bool Runner::complete(Warp &warp, Group *g, const Fiber *except) {
  if (g->arrived == 0 || (g->arrived & g->mask & warp.live) != (g->mask & warp.live)) return false;
  for (unsigned i = 0; i < 32; ++i)
    if ((g->arrived >> i & 1) && g->waiting[i] != except) ready_.push(g->waiting[i]);
  g->arrived = 0;
  ++g->turn;
  ++collectives_;
  return true;
}

const uint64_t *Runner::warp_sync(unsigned mask, uint64_t value) {
  Fiber *me = current_;
  const unsigned self = me->thread & 31;
  if ((mask >> self & 1) == 0) trap(cudaErrorLaunchFailure, "warp collective called by a lane outside its mask");
  Warp &w = warps_[me->thread / 32];
  Group *g = group(w, mask);
  edge_release(g);
  uint64_t *slots = g->slots[g->turn & 1];
  slots[self] = value;
  g->waiting[self] = me;
  g->arrived |= 1u << self;
  if (!complete(w, g, me)) block_here();
  edge_acquire(g);
  return slots;
}

void Runner::end_thread(unsigned thread) {
  ++ended_;
  edge_release(&end_edge_);
  Warp &w = warps_[thread / 32];
  w.live &= ~(1u << (thread & 31));
  for (unsigned i = 0; i < w.count; ++i) complete(w, w.groups[i], nullptr);
  // The hardware's barrier counts the threads that are left.
  if (at_barrier_.size() != 0 && at_barrier_.size() == threads_ - ended_) release_barrier();
}

void Runner::entry() {
  arrived(&runner->home_);
  runner->body();
}

void Runner::body() {
  for (;;) {
    while (next_ < threads_) {
      const unsigned k = next_++, thread = order_ == CUDASIM_REVERSE ? threads_ - 1 - k : k;
      current_->thread = thread;
      set_ids(thread);
      edge_acquire(&start_edge_);
      launch_->kernel.invoke(launch_->function, launch_->arguments.get());
      end_thread(thread);
      if (known_) break;
    }
    Fiber *me = current_, *next = pick();  // before it is idle itself
    idle_.push(me);
    go(me, next);
    current_ = me;
  }
}

void Runner::trap(cudaError_t error, const char *what) {
  std::snprintf(error_text_, sizeof error_text_, "%s [block (%u,%u,%u) thread (%u,%u,%u)]", what, blockIdx.x, blockIdx.y, blockIdx.z,
                threadIdx.x, threadIdx.y, threadIdx.z);
  error_ = error;
  edge_release(&end_edge_);
  go(current_, nullptr, true);
  std::abort();
}

// After an error every fiber begins anew.
void Runner::abandon() {
  edge_acquire(&barrier_edge_);
  for (Warp &w : warps_)
    for (unsigned i = 0; i < w.count; ++i) {
      edge_acquire(w.groups[i]);
      w.groups[i]->arrived = 0;
    }
  ready_.clear();
  at_barrier_.clear();
  idle_.clear();
  for (unsigned i = 0; i < all_.size(); ++i) {
    restart(all_.at(i), entry, known_);
    idle_.push(all_.at(i));
  }
}

// Dynamic shared memory ends at a page without access, and begins as NaN.
void Runner::prepare_shared(size_t bytes) {
  if (bytes == 0) return;
  if (shared_map_ == nullptr) {
    shared_map_ = static_cast<char *>(mmap(nullptr, kShared + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(shared_map_ + kShared, kPage, PROT_NONE);
  }
  const size_t rounded = (bytes + 15) & ~size_t{15};
  shared_ = shared_map_ + kShared - rounded;
  std::memset(shared_, 0xff, rounded);
}

void Runner::begin_grid(bool known, int order, unsigned seed) {
  if (known != known_) {
    known_ = known;
    abandon();
  }
  order_ = order;
  random_ = seed;
  home_.bytes = 0;
}

cudaError_t Runner::run(const Launch &launch, uint3 block) {
  launch_ = &launch;
  blockIdx = block;
  blockDim = {launch.block.x, launch.block.y, launch.block.z};
  gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
  threads_ = launch.block.x * launch.block.y * launch.block.z;
  next_ = ended_ = 0;
  error_ = cudaSuccess;
  for (unsigned w = 0; w * 32 < threads_; ++w) warps_[w].live = threads_ - w * 32 >= 32 ? ~0u : (1u << (threads_ - w * 32)) - 1;
  prepare_shared(launch.shared);
  edge_release(&start_edge_);
  while (ended_ < threads_ && error_ == cudaSuccess) {
    Fiber *f = pick();
    if (f == nullptr) {  // the device would hang
      error_ = cudaErrorLaunchTimeout;
      std::snprintf(error_text_, sizeof error_text_,
                    "deadlock: %u thread(s) at __syncthreads, %u ended, the rest in warp collectives that never complete", at_barrier_.size(),
                    ended_);
      break;
    }
    go(nullptr, f);
    current_ = nullptr;
  }
  edge_acquire(&end_edge_);
  if (error_ != cudaSuccess) {
    abandon();
    set_report(error_text_);
  }
  std::lock_guard<std::mutex> hold(stats_lock());
  stats().switches += std::exchange(switches_, 0);
  stats().collectives += std::exchange(collectives_, 0);
  ++stats().blocks;
  stats().threads += threads_;
  return error_;
}

namespace {

cudaError_t run_some(const Launch &launch, std::atomic<uint64_t> *next, uint64_t total, unsigned worker) {
  Quiet quiet;
  if (runner == nullptr) {
    std::lock_guard<std::mutex> hold(pool().lock);
    if (!pool().free.empty()) {
      runner = pool().free.back();
      pool().free.pop_back();
    } else {
      runner = new Runner;
    }
  }
  catch_faults();
  runner->begin_grid(settings().known, settings().order, settings().seed + worker);
  for (bool first = true;; first = false) {
    const uint64_t i = next->fetch_add(1, std::memory_order_relaxed);
    if (i >= total) return cudaSuccess;
    const uint3 block = {static_cast<unsigned>(i % launch.grid.x), static_cast<unsigned>(i / launch.grid.x % launch.grid.y),
                         static_cast<unsigned>(i / (uint64_t{launch.grid.x} * launch.grid.y))};
    poison_static_shared(first);
    Loud loud;
    if (const cudaError_t error = runner->run(launch, block); error != cudaSuccess) {
      *next = total;
      return error;
    }
  }
}

}  // namespace

cudaError_t run_grid(const Launch &launch) {
  std::atomic<uint64_t> next{0};
  std::atomic<int> error{cudaSuccess};
  const uint64_t total = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  std::vector<std::thread> helpers;
  {
    Loud loud;  // a grid is ordered after what came before it, and before what follows, whoever runs its blocks
    for (unsigned i = 1; i < settings().workers && i < total; ++i)
      helpers.emplace_back([&, i] {
        if (const cudaError_t failed = run_some(launch, &next, total, i); failed != cudaSuccess) error = failed;
        Quiet quiet;
        leave_thread();
      });
  }
  const cudaError_t mine = run_some(launch, &next, total, 0);
  {
    Loud loud;
    for (std::thread &t : helpers) t.join();
  }
  {
    std::lock_guard<std::mutex> hold(stats_lock());
    ++stats().kernels;
  }
  return mine != cudaSuccess ? mine : static_cast<cudaError_t>(error.load());
}

// ---- what kernels call

unsigned lane() { return runner->lane(); }
unsigned active_lanes() { return runner->active(); }
void *dyn_shared() { return runner->shared(); }
void barrier() { runner->barrier(false); }
unsigned barrier_count(bool predicate) { return runner->barrier(predicate); }
const uint64_t *warp_sync(unsigned mask, uint64_t value) { return runner->warp_sync(mask, value); }
void trap(cudaError_t error, const char *what) { runner->trap(error, what); }

}  // namespace cudasim
