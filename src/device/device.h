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

  Status reserve(size_t bytes, size_t alignment, void **out) const { return table_->reserve(self_, bytes, alignment, out); }
  void release(void *data, size_t bytes) const { table_->release(self_, data, bytes); }
  Status commit(void *data, size_t bytes) const { return table_->commit(self_, data, bytes); }

  Status copy(void *stream, void *to, const void *from, size_t bytes, Copy kind) const {
    return bytes == 0 ? CKPT_OK : table_->copy(self_, stream, to, from, bytes, kind);
  }
  Status fill(void *stream, void *data, uint8_t value, size_t bytes) const {
    return bytes == 0 ? CKPT_OK : table_->fill(self_, stream, data, value, bytes);
  }
  Status hash(void *stream, const void *data, size_t bytes, uint64_t *out) const {
    return table_->hash(self_, stream, data, bytes, out);
  }
  Status synchronize(void *stream) const { return table_->synchronize(self_, stream); }

  Status event_create(void **out) const { return table_->event_create(self_, out); }
  void event_destroy(void *event) const { table_->event_destroy(self_, event); }
  Status event_record(void *event, void *stream) const { return table_->event_record(self_, event, stream); }
  Status event_elapsed(void *from, void *to, double *seconds) const { return table_->event_elapsed(self_, from, to, seconds); }

 private:
  Device(const Table &table, uint32_t kind, void *library) noexcept : table_(&table), kind_(kind), library_(library) {}

  const Table *table_;
  void *self_ = nullptr;
  uint32_t kind_;
  bool opened_ = false;
  void *library_;
};

}  // namespace ckpt::device
