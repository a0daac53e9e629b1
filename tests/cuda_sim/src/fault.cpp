// How an API call begins and ends: counts, injected failures, the sticky error; the controls of cudasim_control.h.
#include <cstdlib>
#include <map>

#include "state.h"

namespace cudasim {
namespace {

struct Settings {
  int devices = 2;
  int driver = CUDART_VERSION;
  size_t memory = size_t{8} << 30;
  bool virtual_memory = true;
};
struct Delay {
  uint64_t in = 0, issued = 0;
  unsigned milliseconds = 0;
};
// Never destroyed: threads of streams may outlive main.
struct State {
  std::mutex lock;
  Settings settings;
  uint64_t calls = 0, fail_in = 0;
  int fail_with = 0;
  std::string fail_name, failed;
  std::map<std::string, uint64_t, std::less<>> calls_of;
  Delay delays[3];
  std::atomic<int> sticky{0};
  std::string report;
  cudasim_live live{};
  std::mutex stats_lock;
  cudasim_stats stats{};
};
State &state() {
  static State *s = new State;
  return *s;
}
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

#ifdef CUDASIM_TSAN
CUDASIM_OWN __thread unsigned quiet_depth = 0;
#endif

cudasim_live &live() { return state().live; }
cudasim_stats &stats() { return state().stats; }
std::mutex &stats_lock() { return state().stats_lock; }

cudaError_t enter(const char *name, unsigned flags) {
  State &s = state();
  {
    std::lock_guard<std::mutex> hold(s.lock);
    ++s.calls;
    ++s.calls_of[name];
    if (s.fail_in > 0 && (s.fail_name.empty() || s.fail_name == name) && --s.fail_in == 0) {
      s.failed = name;
      return static_cast<cudaError_t>(s.fail_with);
    }
    if ((flags & kNoDevice) == 0) {
      if (s.settings.driver < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
      if (s.settings.devices == 0) return cudaErrorNoDevice;
    }
  }
  if (s.sticky != 0) return sticky();
  cudaError_t error = cudaSuccess;
  if ((flags & kUnsafe) != 0) refuse_in_captures(&error);
  return error;
}

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t sticky() { return static_cast<cudaError_t>(state().sticky.load()); }

void set_report(const std::string &text) {
  std::lock_guard<std::mutex> hold(state().lock);
  state().report = text;
}

void set_sticky(cudaError_t error, const std::string &report) {
  if (!report.empty()) set_report(report);
  state().sticky = error;
}

unsigned issue(int what) {
  std::lock_guard<std::mutex> hold(state().lock);
  Delay &d = state().delays[what];
  ++d.issued;
  return d.in > 0 && --d.in == 0 ? d.milliseconds : 0;
}

void sleep_for(unsigned milliseconds) {
  if (milliseconds != 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

int device_count() { return state().settings.devices; }
int driver_version() { return state().settings.driver; }
size_t memory_total() { return state().settings.memory; }
bool virtual_memory() { return state().settings.virtual_memory; }

}  // namespace cudasim

using namespace cudasim;

extern "C" {

void cudasim_reset(void) {
  Quiet quiet;
  cudasim_set_order(CUDASIM_FORWARD, 1);
  wait_all();
  {
    std::lock_guard<std::mutex> hold(memory_lock());
    live().peak_bytes = live().device_bytes;
  }
  State &s = state();
  std::lock_guard<std::mutex> hold(s.lock);
  s.settings = Settings{};
  s.fail_in = 0;
  s.failed.clear();
  for (Delay &d : s.delays) d.in = 0;
  s.sticky = 0;
  s.report.clear();
  last_error = cudaSuccess;
  set_workers(1);
}

void cudasim_fail_call(uint64_t k, int error, const char *name) {
  Quiet quiet;
  State &s = state();
  std::lock_guard<std::mutex> hold(s.lock);
  s.fail_in = k;
  s.fail_with = error;
  s.fail_name = name != nullptr ? name : "";
  s.failed.clear();
}

const char *cudasim_failed_call(void) {
  Quiet quiet;
  static thread_local std::string text;
  std::lock_guard<std::mutex> hold(state().lock);
  return (text = state().failed).c_str();
}

uint64_t cudasim_calls(void) {
  Quiet quiet;
  std::lock_guard<std::mutex> hold(state().lock);
  return state().calls;
}

uint64_t cudasim_calls_of(const char *name) {
  Quiet quiet;
  std::lock_guard<std::mutex> hold(state().lock);
  const auto found = state().calls_of.find(name);
  return found == state().calls_of.end() ? 0 : found->second;
}

void cudasim_delay(int what, uint64_t k, unsigned milliseconds) {
  Quiet quiet;
  std::lock_guard<std::mutex> hold(state().lock);
  state().delays[what].in = k;
  state().delays[what].milliseconds = milliseconds;
}

uint64_t cudasim_issued(int what) {
  Quiet quiet;
  std::lock_guard<std::mutex> hold(state().lock);
  return state().delays[what].issued;
}

void cudasim_set_order(int order, unsigned seed) { set_order(order, seed); }
void cudasim_set_workers(unsigned count) { set_workers(count); }
void cudasim_set_thread_races(int on) { set_thread_races(on); }

void cudasim_set_device_count(int count) { state().settings.devices = count; }
void cudasim_set_memory(size_t total_bytes) { state().settings.memory = total_bytes; }
void cudasim_set_driver_version(int version) { state().settings.driver = version; }
void cudasim_set_virtual_memory(int supported) { state().settings.virtual_memory = supported != 0; }

const char *cudasim_report(void) {
  Quiet quiet;
  static thread_local std::string text;
  std::lock_guard<std::mutex> hold(state().lock);
  return (text = state().report).c_str();
}

int cudasim_sticky(void) { return state().sticky; }

void cudasim_get_live(cudasim_live *out) {
  Quiet quiet;
  std::scoped_lock hold(memory_lock(), streams_lock());
  *out = live();
}

void cudasim_get_stats(cudasim_stats *out) {
  Quiet quiet;
  std::lock_guard<std::mutex> hold(stats_lock());
  *out = stats();
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = sticky() != cudaSuccess ? sticky() : last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return sticky() != cudaSuccess ? sticky() : last_error; }

}  // extern "C"
