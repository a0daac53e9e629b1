// What all parts of the double share: how an API call begins, injected faults, the sticky error, the report; streams' queues and captures.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../include/cudasim_control.h"
#include "tsan.h"

namespace cudasim {

// ---- fault.cpp
enum : unsigned {
  kUnsafe = 1,     // refused while a capture is on, and ends it
  kGivesBack = 2,  // does its work whatever it returns
  kNoDevice = 4    // works without a device
};
// Counts the call; its injected, sticky or capture error. 0: go on.
cudaError_t enter(const char *name, unsigned flags = 0);
cudaError_t keep(cudaError_t error);  // becomes the thread's last error
cudaError_t sticky();
void set_sticky(cudaError_t error, const std::string &report);
void set_report(const std::string &text);
unsigned issue(int what);  // counts an operation for cudasim_delay: its delay
void sleep_for(unsigned milliseconds);
cudasim_live &live();  // under memory_lock, or streams_lock for streams, events, graphs
cudasim_stats &stats();
std::mutex &stats_lock();
int device_count();
int current_device();  // this thread's
int driver_version();
size_t memory_total();
bool virtual_memory();

// A call that may fail before it has done anything.
#define CUDASIM_ENTER(...)                                                                     \
  Quiet quiet_;                                                                                \
  if (const cudaError_t entered_ = enter(__func__ __VA_OPT__(, ) __VA_ARGS__); entered_ != cudaSuccess) return keep(entered_)
// One that gives back: `entered` is what it returns in the end.
#define CUDASIM_GIVE_BACK(flags) \
  Quiet quiet_;                  \
  const cudaError_t entered = enter(__func__, kGivesBack | (flags))

// ---- memory.cpp, virtual.cpp
enum class Where { outside, inside, bad };  // bad: of the double, and freed, beyond the end, or without access
Where where_is(const void *data, size_t bytes);
void describe_address(const void *data, char *out, size_t bytes);  // no strings: the fiber that asks is abandoned
std::mutex &memory_lock();
bool charge(size_t bytes);  // under memory_lock: device memory taken; false: not that much left
void refund(size_t bytes);
Where where_in_reservations(const void *data, size_t bytes);             // under memory_lock
bool describe_reservation(const void *data, char *out, size_t bytes);    // under memory_lock
void *driver_function(const char *name);  // nullptr: none of that name

// ---- stream.cpp, graph.cpp
struct Op {
  std::function<cudaError_t()> run;
  bool always = false;  // runs in a broken context too: records, so that nobody waits for ever
};
struct Record {
  std::mutex lock;
  std::condition_variable done_at;
  bool done = false;
  std::chrono::steady_clock::time_point time;
};
using RecordP = std::shared_ptr<Record>;
void finish(const RecordP &record, unsigned delay);
void wait_for(const RecordP &record);

// A captured step of one lane (the lane of a stream): an operation, or a record, or a wait for a record, both by number.
struct Step {
  Op op;
  int record = -1, wait = -1;
};
struct Graph {
  std::vector<std::vector<Step>> lanes;  // lane 0 is the origin's
  int records = 0;
};
using Clock = std::vector<size_t>;  // how much of each lane
struct Capture {
  Graph graph;
  std::vector<Clock> seen;  // of each lane: what it is ordered after
  cudaStreamCaptureMode mode{};
  cudaStream_t origin = nullptr;
  std::thread::id thread;
  unsigned long long id = 0;
  bool broken = false, over = false;
};
using CaptureP = std::shared_ptr<Capture>;

cudaError_t enqueue(cudaStream_t stream, Op op);  // eager or captured
bool is_legacy(cudaStream_t stream);
bool is_capturing(cudaStream_t stream);  // a live capture, broken or not
cudaError_t check_stream(cudaStream_t stream);
cudaError_t check_current(cudaStream_t stream);  // and that it is of the thread's device, which kernels need
cudaError_t wait_stream(cudaStream_t stream);
cudaError_t wait_all();
void refuse_in_captures(cudaError_t *error);  // breaks what an unsafe call breaks; *error: its code, or as it was
std::shared_ptr<CUstream_st> make_stream(bool blocking, bool counted);

// ---- launch.cpp, block.cpp
struct Launch {
  const void *function;
  Kernel kernel;
  std::shared_ptr<void> arguments;
  dim3 grid, block;
  size_t shared;
};
cudaError_t run_grid(const Launch &launch);
void leave_thread();  // gives back what this thread has for kernels
void set_order(int order, unsigned seed);
void set_workers(unsigned count);
void set_thread_races(int on);

}  // namespace cudasim

struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
  std::mutex lock;
  std::condition_variable work, idle;
  std::deque<std::pair<std::unique_ptr<char>, cudasim::Op>> queue;
  unsigned long issued = 0, done = 0;
  bool stop = false, blocking = true, counted = true;
  int priority = 0;
  int device = cudasim::current_device();
  cudasim::CaptureP capture;  // under streams_lock
  size_t lane = 0;
  char edge = 0;

  void push(cudasim::Op op);
  void wait(unsigned long ticket);
  bool ready();
  void loop();
};
struct CUevent_st {
  cudasim::RecordP record;  // the latest
  cudasim::CaptureP capture;  // where the latest was captured
  int number = -1;
  int device = cudasim::current_device();
  cudasim::Clock clock;
  bool timing = true;
};
namespace cudasim {
// The streams of a graph's lanes but the first; they end with the last replay.
struct Lanes {
  std::vector<std::shared_ptr<CUstream_st>> streams;
  ~Lanes();
};
}  // namespace cudasim
struct CUgraph_st {
  std::shared_ptr<const cudasim::Graph> graph;
};
struct CUgraphExec_st {
  std::shared_ptr<const cudasim::Graph> graph;
  std::shared_ptr<const cudasim::Lanes> lanes;
};

namespace cudasim {
std::mutex &streams_lock();
// What handles are live; nullptr or unknown: cudaErrorInvalidResourceHandle.
bool known(cudaEvent_t event);
}  // namespace cudasim
