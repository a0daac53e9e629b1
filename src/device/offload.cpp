#include "device/offload.h"

#include <utility>

#include "base/checked.h"

namespace ckpt::device {
namespace {

constexpr size_t kSlotAlignment = 256;

}  // namespace

Result<Offloader> Offloader::create(Ref<Device> device, void *compute, uint32_t slot_count, size_t slot_bytes, Faults faults) {
  using R = Result<Offloader>;
  if (slot_count == 0) return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "offload: slot_count is 0, expected at least 1"));
  if (slot_bytes == 0) return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "offload: slot_bytes is 0, expected at least 1"));
  Offloader made(std::move(device), compute, slot_bytes, faults);
  if (const Status status = made.make(slot_count); status) return R::failed(status);
  return R(std::move(made));
}

Status Offloader::make(uint32_t slot_count) {
  if (round_up_overflows(slot_bytes_, kSlotAlignment, &stride_) || mul_overflows(stride_, size_t{slot_count}, &slab_bytes_))
    return fail(CKPT_ERROR_OVERFLOW, "offload: %u slots of %zu bytes", slot_count, slot_bytes_);
  slots_.resize(slot_count);
  CKPT_TRY(device_->host_reserve(slab_bytes_, &slab_));
  CKPT_TRY(device_->stream_create(&out_));
  CKPT_TRY(device_->stream_create(&in_));
  CKPT_TRY(device_->event_create(&produced_));
  CKPT_TRY(device_->event_create(&consumed_));
  for (Slot &slot : slots_) {
    CKPT_TRY(device_->event_create(&slot.out_done));
    CKPT_TRY(device_->event_create(&slot.in_done));
  }
  return CKPT_OK;
}

Offloader::Offloader(Offloader &&other) noexcept
    : device_(std::move(other.device_)), compute_(other.compute_), out_(std::exchange(other.out_, nullptr)), in_(std::exchange(other.in_, nullptr)),
      slab_(std::exchange(other.slab_, nullptr)), produced_(std::exchange(other.produced_, nullptr)), consumed_(std::exchange(other.consumed_, nullptr)),
      slot_bytes_(other.slot_bytes_), stride_(other.stride_), slab_bytes_(other.slab_bytes_), faults_(other.faults_), slots_(std::move(other.slots_)) {
  other.slots_.clear();
}

Offloader::~Offloader() {
  if (!device_) return;
  // A device that fails here has lost its work; the memory goes back all the same.
  if (out_ != nullptr) (void)device_->synchronize(out_);
  if (in_ != nullptr) (void)device_->synchronize(in_);
  for (const Slot &slot : slots_) {
    if (slot.out_done != nullptr) device_->event_destroy(slot.out_done);
    if (slot.in_done != nullptr) device_->event_destroy(slot.in_done);
  }
  if (produced_ != nullptr) device_->event_destroy(produced_);
  if (consumed_ != nullptr) device_->event_destroy(consumed_);
  if (out_ != nullptr) device_->stream_destroy(out_);
  if (in_ != nullptr) device_->stream_destroy(in_);
  if (slab_ != nullptr) device_->host_release(slab_, slab_bytes_);
}

Status Offloader::check(const char *function, uint32_t slot) const {
  if (slot < slot_count()) return CKPT_OK;
  return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: slot is %u, expected below %u", function, slot, slot_count());
}

Status Offloader::put(uint32_t slot, const void *block, size_t bytes) {
  CKPT_TRY(check("offload put", slot));
  if (bytes > slot_bytes_) return fail(CKPT_ERROR_INVALID_ARGUMENT, "offload put: bytes is %zu, expected at most the slots' %zu", bytes, slot_bytes_);
  Slot &s = slots_[slot];
  s.filled = false;  // until all of it is enqueued
  CKPT_TRY(device_->event_record(produced_, compute_));
  CKPT_TRY(wait(1, out_, produced_));
  if (s.fetched) CKPT_TRY(wait(5, out_, s.in_done));
  CKPT_TRY(device_->copy(out_, host(slot), block, bytes, Copy::device_to_host));
  if (const Status status = device_->event_record(s.out_done, out_); status) {
    (void)device_->synchronize(out_);  // nobody could wait for this copy otherwise
    return status;
  }
  s.bytes = bytes;
  s.filled = true;
  return CKPT_OK;
}

Status Offloader::release(uint32_t slot) {
  CKPT_TRY(check("offload release", slot));
  if (!slots_[slot].filled) return fail(CKPT_ERROR_STATE, "offload release: nothing is in slot %u", slot);
  return wait(2, compute_, slots_[slot].out_done);
}

Status Offloader::get(uint32_t slot, void *block) {
  CKPT_TRY(check("offload get", slot));
  Slot &s = slots_[slot];
  if (!s.filled) return fail(CKPT_ERROR_STATE, "offload get: nothing is in slot %u", slot);
  CKPT_TRY(device_->event_record(consumed_, compute_));
  CKPT_TRY(wait(6, in_, consumed_));
  CKPT_TRY(wait(3, in_, s.out_done));
  s.fetched = true;  // from here on a put must wait for this copy, whatever fails below
  CKPT_TRY(device_->copy(in_, block, host(slot), s.bytes, Copy::host_to_device));
  if (const Status status = device_->event_record(s.in_done, in_); status) {
    (void)device_->synchronize(in_);  // nobody could wait for this copy otherwise
    return status;
  }
  return CKPT_OK;
}

Status Offloader::acquire(uint32_t slot) {
  CKPT_TRY(check("offload acquire", slot));
  if (!slots_[slot].fetched) return fail(CKPT_ERROR_STATE, "offload acquire: nothing was got from slot %u", slot);
  return wait(4, compute_, slots_[slot].in_done);
}

Status Offloader::drain() const {
  const Status out = device_->synchronize(out_), in = device_->synchronize(in_);
  return out ? out : in;
}

Status Offloader::idle(uint32_t slot, uint32_t *out) const {
  *out = 0;
  CKPT_TRY(check("offload idle", slot));
  const Slot &s = slots_[slot];
  uint32_t done = 1;
  if (s.filled) CKPT_TRY(device_->event_done(s.out_done, &done));
  if (done != 0 && s.fetched) CKPT_TRY(device_->event_done(s.in_done, &done));
  *out = done;
  return CKPT_OK;
}

}  // namespace ckpt::device
