#include "device/cpu/cpu.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

#include "base/checked.h"
#include "base/status.h"
#include "rng/fill.h"
#include "rng/snapshot.h"

namespace ckpt::device::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kWorthHugePages = size_t{16} << 20;  // below it the rounding wastes more than fewer faults win

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// The value of the first line "key ... : value" of a text file of the system, "" where there is none.
void read_line(const char *file, const char *key, char *value, size_t value_bytes) {
  value[0] = '\0';
  std::FILE *f = std::fopen(file, "re");
  if (f == nullptr) return;
  char line[256];
  while (std::fgets(line, sizeof line, f) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) != 0) continue;
    const char *at = std::strchr(line, ':');
    if (at == nullptr) continue;
    at += 1 + std::strspn(at + 1, " \t");
    std::snprintf(value, value_bytes, "%.*s", static_cast<int>(std::strcspn(at, "\n")), at);
    break;
  }
  std::fclose(f);
}

size_t available_bytes(size_t total) {
  char text[64];
  read_line("/proc/meminfo", "MemAvailable", text, sizeof text);
  size_t kib = 0;
  if (std::sscanf(text, "%zu", &kib) == 1) return std::min(total, kib * 1024);
  return std::min(total, static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * page_bytes());
}

uint32_t thread_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Status open(const Host *, uint32_t, void **out_self) {
  *out_self = nullptr;
  return CKPT_OK;
}

void close(void *) {}

Status info(void *, ckpt_device_info *out) {
  out->kind = CKPT_DEVICE_KIND_CPU;
  out->index = 0;
  out->thread_count = thread_count();
  out->total_bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  out->available_bytes = available_bytes(out->total_bytes);
  read_line("/proc/cpuinfo", "model name", out->name, sizeof out->name);
  if (out->name[0] == '\0') std::snprintf(out->name, sizeof out->name, "cpu");
  return CKPT_OK;
}

// Address range alone: NORESERVE, so that a capacity beyond what is free now is no error; pages come on first use. What
// the alignment needs on top is given back at once.
Status reserve(void *, size_t bytes, size_t alignment, uint32_t, void **out) {
  *out = nullptr;
  const bool large = bytes >= kWorthHugePages;
  const size_t align = std::max({alignment, page_bytes(), large ? kHugePage : 0});
  size_t length = 0, span = 0;
  if (round_up_overflows(bytes, page_bytes(), &length) || add_overflows(length, align - page_bytes(), &span))
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "cpu: %zu bytes at alignment %zu exceed the address space", bytes, alignment);
  void *raw = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "cpu: the system refused %zu bytes: %s", bytes, std::strerror(errno));
  auto *begin = static_cast<char *>(raw);
  auto *data = begin + (round_up(reinterpret_cast<uintptr_t>(raw), align) - reinterpret_cast<uintptr_t>(raw));
  if (data > begin) munmap(begin, static_cast<size_t>(data - begin));
  if (char *end = data + length; end < begin + span) munmap(end, static_cast<size_t>(begin + span - end));
  if (large) (void)madvise(data, length, MADV_HUGEPAGE);  // a wish: kernels without it refuse
  *out = data;
  return CKPT_OK;
}

void release(void *, void *data, size_t bytes) { munmap(data, round_up(bytes, page_bytes())); }

Status host_reserve(void *self, size_t bytes, void **out) { return reserve(self, bytes, page_bytes(), 0, out); }

Status commit(void *, void *data, size_t bytes) {
  if (bytes == 0) return CKPT_OK;
  const size_t page = page_bytes();
  auto *const begin = reinterpret_cast<char *>(round_down(reinterpret_cast<uintptr_t>(data), page));
  auto *const end = static_cast<char *>(data) + bytes;
#ifdef MADV_POPULATE_WRITE
  if (madvise(begin, static_cast<size_t>(end - begin), MADV_POPULATE_WRITE) == 0) return CKPT_OK;
  if (errno == ENOMEM || errno == EFAULT)
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "cpu: the system refused %zu bytes of an arena's slab: %s", bytes, std::strerror(errno));
#endif
  // Older kernels: touch each page, leaving what it holds.
  for (auto *at = static_cast<volatile char *>(data); at < end; at += page) *at = *at;
  auto *const last = static_cast<volatile char *>(end - 1);
  *last = *last;
  return CKPT_OK;
}

Status copy(void *, void *, void *to, const void *from, size_t bytes, Copy) {
  std::memcpy(to, from, bytes);
  return CKPT_OK;
}

Status fill(void *, void *, void *data, uint8_t value, size_t bytes) {
  std::memset(data, value, bytes);
  return CKPT_OK;
}

Status hash_of(void *, void *, const void *data, size_t bytes, uint64_t *out) {
  *out = hash(data, bytes);
  return CKPT_OK;
}

Status synchronize(void *, void *) { return CKPT_OK; }

using Clock = std::chrono::steady_clock;

Status event_create(void *, void **out_event) {
  *out_event = new (std::nothrow) Clock::time_point{};
  return *out_event != nullptr ? CKPT_OK : fail(CKPT_ERROR_OUT_OF_MEMORY, "cpu: the host refused memory for an event");
}

void event_destroy(void *, void *event) { delete static_cast<Clock::time_point *>(event); }

Status event_record(void *, void *event, void *) {
  *static_cast<Clock::time_point *>(event) = Clock::now();
  return CKPT_OK;
}

Status event_elapsed(void *, void *from, void *to, double *out_seconds) {
  const auto span = *static_cast<Clock::time_point *>(to) - *static_cast<Clock::time_point *>(from);
  *out_seconds = std::chrono::duration<double>(span).count();
  return CKPT_OK;
}

Status philox(void *, void *, Fill fill, const ckpt_philox *philox, uint64_t first, size_t count, double a, double b, void *out) {
  rng::Stream stream;
  CKPT_TRY(rng::stream_of("cpu: philox", philox, first, count, out, &stream));
  const rng::Fills &fills = rng::best_fills();
  switch (fill) {
    case Fill::u32: fills.u32(stream, count, static_cast<uint32_t *>(out)); return CKPT_OK;
    case Fill::uniform: fills.uniform(stream, count, static_cast<float *>(out)); return CKPT_OK;
    case Fill::normal: fills.normal(stream, count, static_cast<float>(a), static_cast<float>(b), static_cast<float *>(out)); return CKPT_OK;
    case Fill::bernoulli: rng::bernoulli(fills, stream, count, rng::threshold_of(a), static_cast<uint8_t *>(out)); return CKPT_OK;
  }
  return fail(CKPT_ERROR_INTERNAL, "cpu: no fill of kind %u", static_cast<uint32_t>(fill));
}

Status write_word(void *, void *, uint64_t *word, uint64_t value) {
  *word = value;
  return CKPT_OK;
}

// The one stream there is: the caller's thread.
Status stream_create(void *, void **out_stream) {
  *out_stream = nullptr;
  return CKPT_OK;
}
void stream_destroy(void *, void *) {}

Status event_wait(void *, void *, void *) { return CKPT_OK; }
Status event_done(void *, void *, uint32_t *out_done) {
  *out_done = 1;
  return CKPT_OK;
}

Status capturing(void *, void *, uint32_t *out_capturing) {
  *out_capturing = 0;
  return CKPT_OK;
}
Status no_graphs() { return fail(CKPT_ERROR_UNSUPPORTED, "cpu: work on the CPU is done when a call returns, so there is nothing to capture"); }
Status capture_begin(void *, void *) { return no_graphs(); }
Status capture_end(void *, void *, void **out_graph) {
  *out_graph = nullptr;
  return no_graphs();
}
Status graph_launch(void *, void *, void *) { return no_graphs(); }
void graph_destroy(void *, void *) {}

constexpr Table kTable = {
    open, close, info, reserve, release, commit, host_reserve, release, copy, fill, hash_of, philox, write_word, synchronize,
    stream_create, stream_destroy, event_create, event_destroy, event_record, event_wait, event_done, event_elapsed,
    capturing, capture_begin, capture_end, graph_launch, graph_destroy, 0, 0};

}  // namespace

const Table &table() noexcept { return kTable; }

}  // namespace ckpt::device::cpu
