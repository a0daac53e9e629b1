// Blocks of device memory that go to the host and come back while the device goes on: one slab of pinned memory, cut into slots of one
// size, a stream for the way out and a stream for the way in. Not used by a tape yet; ready for one.
//
// Five edges keep it right; published offloaders each lacked one. With `compute` as the stream on which blocks are written and read:
//   1. producer -> copy out           put: the copy out waits for what `compute` had been given before
//   2. copy out -> reuse of the block  release: `compute` waits for the copy out; only then may it write over the block
//   3. copy out -> copy in             get: the copy in waits for the slot's copy out (they are on different streams)
//   4. copy in -> consumer             acquire: `compute` waits for the copy in
//   5. copy in -> reuse of the slot    put: a copy out into a slot waits for the slot's latest copy in
// and a sixth that belongs to the block that comes back, not to the slot: the copy in waits for what `compute` had been given before get,
// which may still read or write that block. get is the prefetch and acquire the use: in between, both copies and `compute` overlap.
// Nothing but drain waits on the host; copies count as done by their events, never because a queue is empty. A put or get that fails has
// left no copy on its way.
#pragma once

#include <vector>

#include "device/device.h"

namespace ckpt::device {

class Offloader {
 public:
  // What is left out, for tests: bit k - 1 leaves out edge k.
  struct Faults {
    uint32_t dropped_edges = 0;
  };

  // `slot_count` slots of `slot_bytes` each, all taken now. `compute` stays the caller's and outlives this.
  static Result<Offloader> create(Ref<Device> device, void *compute, uint32_t slot_count, size_t slot_bytes) {
    return create(std::move(device), compute, slot_count, slot_bytes, Faults{});
  }
  static Result<Offloader> create(Ref<Device> device, void *compute, uint32_t slot_count, size_t slot_bytes, Faults faults);
  Offloader(Offloader &&other) noexcept;
  Offloader &operator=(Offloader &&) = delete;
  ~Offloader();  // waits for the copies on its way; what was put and not got is lost

  // Copies the block's `bytes` to a slot, whatever was in it; enqueues only. The block must not be written to or given away before
  // release(slot).
  Status put(uint32_t slot, const void *block, size_t bytes);
  // From here on work that is given to `compute` may write over the block that was put.
  Status release(uint32_t slot);
  // Brings what was put back to `block` (any one of at least that size), as often as wanted; enqueues only. Until acquire(slot) nobody
  // may use the block. The slot may be put to again at once. STATE: nothing is in the slot.
  Status get(uint32_t slot, void *block);
  // Work that is given to `compute` from here on finds there what the slot's latest get has brought. STATE: there was none.
  Status acquire(uint32_t slot);

  // Waits on the host for all copies so far. After a release or acquire that failed, the block may be used once this has succeeded.
  Status drain() const;

  uint32_t slot_count() const noexcept { return static_cast<uint32_t>(slots_.size()); }
  size_t slot_bytes() const noexcept { return slot_bytes_; }
  // 1 where the slot's copies so far are done. Never waits.
  Status idle(uint32_t slot, uint32_t *out) const;

 private:
  struct Slot {
    void *out_done = nullptr;  // events: of the latest copy out, of the latest copy in
    void *in_done = nullptr;
    size_t bytes = 0;
    bool filled = false;   // something was put
    bool fetched = false;  // something was got, once
  };

  Offloader(Ref<Device> device, void *compute, size_t slot_bytes, Faults faults) noexcept
      : device_(std::move(device)), compute_(compute), slot_bytes_(slot_bytes), faults_(faults) {}
  Status make(uint32_t slot_count);
  Status check(const char *function, uint32_t slot) const;
  bool keeps(uint32_t edge) const noexcept { return (faults_.dropped_edges >> (edge - 1) & 1) == 0; }
  Status wait(uint32_t edge, void *stream, void *event) const { return keeps(edge) ? device_->event_wait(stream, event) : CKPT_OK; }
  void *host(uint32_t slot) const noexcept { return static_cast<char *>(slab_) + slot * stride_; }

  Ref<Device> device_;
  void *compute_;
  void *out_ = nullptr, *in_ = nullptr;  // streams
  void *slab_ = nullptr;
  void *produced_ = nullptr, *consumed_ = nullptr;  // events: points of `compute`, used for one wait at a time
  size_t slot_bytes_, stride_ = 0, slab_bytes_ = 0;
  Faults faults_;
  std::vector<Slot> slots_;
};

}  // namespace ckpt::device
