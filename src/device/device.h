// An open device. Shared: arenas retain it.
#pragma once

#include <string_view>

#include "base/ref.h"
#include "base/status.h"
#include "device/table.h"

namespace ckpt::device {

class Device final : public Counted<Device> {
 public:
  // "cpu", "cuda", "cuda:1".
  static Result<Ref<Device>> open(const char *function, std::string_view name);
  // From a table that outlives the device. `library` (or NULL) is closed after it.
  static Result<Ref<Device>> create(const Table &table, uint32_t kind, uint32_t index, void *library = nullptr);
  ~Device();

  uint32_t kind() const noexcept { return kind_; }
  Status info(ckpt_device_info *out) const { return table_->info(self_, out); }

  // Work goes on after a call returns: time is measured by events, slabs need commit.
  bool asynchronous() const noexcept { return table_->asynchronous != 0; }
  // Another table of the plugin; NULL: none of that name.
  const void *interface(const char *name) const { return interface_ == nullptr ? nullptr : interface_(name); }
  void *self() const noexcept { return self_; }
  const Ranges *ranges() const noexcept { return ranges_; }  // NULL: there are none

  Status reserve(size_t bytes, size_t alignment, uint32_t flags, void **out) const {
    return table_->reserve(self_, bytes, alignment, flags, out);
  }
  void release(void *data, size_t bytes) const { table_->release(self_, data, bytes); }
  Status commit(void *data, size_t bytes) const { return table_->commit(self_, data, bytes); }

  Status host_reserve(size_t bytes, void **out) const { return table_->host_reserve(self_, bytes, out); }
  void host_release(void *data, size_t bytes) const { table_->host_release(self_, data, bytes); }

  Status copy(void *stream, void *to, const void *from, size_t bytes, Copy kind) const {
    return bytes == 0 ? CKPT_OK : table_->copy(self_, stream, to, from, bytes, kind);
  }
  Status fill(void *stream, void *data, uint8_t value, size_t bytes) const {
    return bytes == 0 ? CKPT_OK : table_->fill(self_, stream, data, value, bytes);
  }
  Status hash(void *stream, const void *data, size_t bytes, uint64_t *out) const {
    return table_->hash(self_, stream, data, bytes, out);
  }
  Status philox(void *stream, Fill fill, const ckpt_philox *philox, uint64_t first, size_t count, double a, double b, void *out) const {
    return count == 0 ? CKPT_OK : table_->philox(self_, stream, fill, philox, first, count, a, b, out);
  }
  Status write_word(void *stream, uint64_t *word, uint64_t value) const { return table_->write_word(self_, stream, word, value); }
  Status synchronize(void *stream) const { return table_->synchronize(self_, stream); }

  Status stream_create(void **out) const { return table_->stream_create(self_, out); }
  void stream_destroy(void *stream) const { table_->stream_destroy(self_, stream); }

  Status event_create(void **out) const { return table_->event_create(self_, out); }
  void event_destroy(void *event) const { table_->event_destroy(self_, event); }
  Status event_record(void *event, void *stream) const { return table_->event_record(self_, event, stream); }
  Status event_wait(void *stream, void *event) const { return table_->event_wait(self_, stream, event); }
  Status event_done(void *event, uint32_t *out_done) const { return table_->event_done(self_, event, out_done); }
  Status event_elapsed(void *from, void *to, double *seconds) const { return table_->event_elapsed(self_, from, to, seconds); }

  Status capturing(void *stream, uint32_t *out) const { return table_->capturing(self_, stream, out); }
  Status capture_begin(void *stream) const { return table_->capture_begin(self_, stream); }
  Status capture_end(void *stream, void **out_graph) const { return table_->capture_end(self_, stream, out_graph); }
  Status graph_launch(void *graph, void *stream) const { return table_->graph_launch(self_, graph, stream); }
  void graph_destroy(void *graph) const { table_->graph_destroy(self_, graph); }

 private:
  Device(const Table &table, uint32_t kind, void *library) noexcept : table_(&table), kind_(kind), library_(library) {}

  const Table *table_;
  void *self_ = nullptr;
  uint32_t kind_;
  bool opened_ = false;
  void *library_;
  const void *(*interface_)(const char *name) = nullptr;
  const Ranges *ranges_ = nullptr;
};

}  // namespace ckpt::device
