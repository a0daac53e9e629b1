// What a device is: a table of functions. The CPU's is built in; others come from a plugin, a shared library named
// libckpt_<kind>.so that exports one object, `ckpt_device_plugin`. Its first word is the version of this file: another
// version is refused before anything else of it is read.
//
// Functions run on the caller's thread and return CKPT_OK or a status whose text they set through Host::fail. Work is
// enqueued on `stream` (NULL on the CPU, where it is done on return) and never waits for the device; only synchronize,
// info, reserve and release may.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ckpt/device.h"

namespace ckpt::device {

inline constexpr uint32_t kPluginVersion = 1;

enum class Copy : uint32_t { host_to_device = 0, device_to_host = 1, device_to_device = 2 };

// What a plugin may call.
struct Host {
  ckpt_status (*fail)(ckpt_status status, const char *text);  // sets this thread's text, returns `status`
};

// `self` is what open gave.
struct Table {
  ckpt_status (*open)(const Host *host, uint32_t index, void **out_self);  // NOT_FOUND: no such index
  void (*close)(void *self);
  ckpt_status (*info)(void *self, ckpt_device_info *out);  // fills all but struct_size

  // Address range for a slab; a power of two as alignment. Contents are undefined. *out is NULL on failure.
  ckpt_status (*reserve)(void *self, size_t bytes, size_t alignment, void **out);
  void (*release)(void *self, void *data, size_t bytes);
  // Memory behind part of a slab, ahead of its use; contents stay.
  ckpt_status (*commit)(void *self, void *data, size_t bytes);

  ckpt_status (*copy)(void *self, void *stream, void *to, const void *from, size_t bytes, Copy kind);  // no overlap
  ckpt_status (*fill)(void *self, void *stream, void *data, uint8_t value, size_t bytes);
  // A 64-bit hash of device bytes, the same for any number of threads. *out (the host's) is there after the next
  // synchronize at the latest and must live until then.
  ckpt_status (*hash)(void *self, void *stream, const void *data, size_t bytes, uint64_t *out);
  ckpt_status (*synchronize)(void *self, void *stream);

  // Points in a stream's time. elapsed: both recorded, and synchronized since.
  ckpt_status (*event_create)(void *self, void **out_event);
  void (*event_destroy)(void *self, void *event);
  ckpt_status (*event_record)(void *self, void *event, void *stream);
  ckpt_status (*event_elapsed)(void *self, void *from, void *to, double *out_seconds);
};

struct Plugin {
  uint32_t version;  // kPluginVersion
  uint32_t kind;     // CKPT_DEVICE_KIND_*
  Table table;
};

}  // namespace ckpt::device
