// What a device is: a table of functions. The CPU's is built in; others come from a plugin, a shared library named
// libckpt_<kind>.so that exports one object, `ckpt_device_plugin`. Its first word is the version of this file: another
// version is refused before anything else of it is read.
//
// Functions run on the caller's thread and return CKPT_OK or a status whose text they set through Host::fail. Work is
// enqueued on `stream` (NULL on the CPU, where it is done on return) and never waits for the device; only open, close, info,
// reserve, release, commit, host_reserve, host_release, stream_destroy, synchronize, and hash and elapsed as their text says, may.
// While a stream is captured, what cannot be part of a graph is refused with CKPT_ERROR_CAPTURE and leaves the capture intact.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ckpt/device.h"
#include "ckpt/rng.h"

namespace ckpt::device {

inline constexpr uint32_t kPluginVersion = 2;

enum class Copy : uint32_t { host_to_device = 0, device_to_host = 1, device_to_device = 2 };
enum class Fill : uint32_t { u32 = 0, uniform = 1, normal = 2, bernoulli = 3 };

enum : uint32_t {
  kReservePlain = 1  // memory of the device's ordinary allocator, all of it at once, instead of mapped pages
};

// What a plugin may call.
struct Host {
  ckpt_status (*fail)(ckpt_status status, const char *text);  // sets this thread's text, returns `status`
};

// `self` is what open gave.
struct Table {
  ckpt_status (*open)(const Host *host, uint32_t index, void **out_self);  // NOT_FOUND: no such index
  void (*close)(void *self);
  ckpt_status (*info)(void *self, ckpt_device_info *out);  // fills all but struct_size

  // Address range for a slab; a power of two as alignment. Contents are undefined. *out is NULL on failure. Memory is behind
  // it only where commit has been (but with kReservePlain, and on the CPU, where pages come on use).
  ckpt_status (*reserve)(void *self, size_t bytes, size_t alignment, uint32_t flags, void **out);
  void (*release)(void *self, void *data, size_t bytes);
  // Memory behind part of a slab, ahead of its use; contents stay. Whole or nothing. `data` lies in a slab of reserve.
  ckpt_status (*commit)(void *self, void *data, size_t bytes);
  // Host memory that asynchronous copies may use (pinned).
  ckpt_status (*host_reserve)(void *self, size_t bytes, void **out);
  void (*host_release)(void *self, void *data, size_t bytes);

  ckpt_status (*copy)(void *self, void *stream, void *to, const void *from, size_t bytes, Copy kind);  // no overlap
  ckpt_status (*fill)(void *self, void *stream, void *data, uint8_t value, size_t bytes);
  // A 64-bit hash of device bytes: the CPU's, bit for bit. *out (the host's) is there after the next synchronize at the
  // latest and must live until then.
  ckpt_status (*hash)(void *self, void *stream, const void *data, size_t bytes, uint64_t *out);
  // The elements first ... first + count - 1 of a snapshot, in device memory. a, b: mean and standard deviation of `normal`;
  // a: probability of `bernoulli`. Arguments are checked before they come here; step_word is device memory.
  ckpt_status (*philox)(void *self, void *stream, Fill fill, const ckpt_philox *philox, uint64_t first, size_t count, double a,
                        double b, void *out);
  // *word = value, in the stream's order; the value is taken at once.
  ckpt_status (*write_word)(void *self, void *stream, uint64_t *word, uint64_t value);
  ckpt_status (*synchronize)(void *self, void *stream);

  ckpt_status (*stream_create)(void *self, void **out_stream);
  void (*stream_destroy)(void *self, void *stream);

  // Points in a stream's time.
  ckpt_status (*event_create)(void *self, void **out_event);
  void (*event_destroy)(void *self, void *event);
  ckpt_status (*event_record)(void *self, void *event, void *stream);
  ckpt_status (*event_wait)(void *self, void *stream, void *event);       // what follows on the stream waits for the event
  ckpt_status (*event_done)(void *self, void *event, uint32_t *out_done);  // 1: reached. Never waits
  ckpt_status (*event_elapsed)(void *self, void *from, void *to, double *out_seconds);  // both reached

  // Graphs. capturing: 0, or while the stream is captured, by whomever, a number that no other capture has.
  ckpt_status (*capturing)(void *self, void *stream, uint32_t *out_capturing);
  ckpt_status (*capture_begin)(void *self, void *stream);
  ckpt_status (*capture_end)(void *self, void *stream, void **out_graph);  // NULL on failure; over either way, but on another thread than begin's
  ckpt_status (*graph_launch)(void *self, void *graph, void *stream);
  void (*graph_destroy)(void *self, void *graph);

  // 1: work on a stream goes on after a call returns, so time is measured by events and slabs need commit.
  uint32_t asynchronous;
  uint32_t reserved;
};

// Names for stretches of the calling thread's time, which profilers show: a plugin's interface "ranges". Pushes and pops nest.
struct Ranges {
  uint32_t version;  // kRangesVersion
  uint32_t reserved;
  void (*push)(const char *name);  // copied
  void (*pop)();
};
inline constexpr uint32_t kRangesVersion = 1;

struct Plugin {
  uint32_t version;  // kPluginVersion
  uint32_t kind;     // CKPT_DEVICE_KIND_*
  Table table;
  // Further tables of the same plugin, by name ("ops": ckpt::ops::DeviceOps); NULL: none of that name.
  const void *(*interface)(const char *name);
};

}  // namespace ckpt::device
