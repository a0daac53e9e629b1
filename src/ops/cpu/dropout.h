// Dropout whose mask is never stored: the words of any piece of it come from the snapshot when they are needed.
#pragma once

#include "ckpt/rng.h"
#include "ops/cpu/kernels.h"
#include "ops/status.h"

namespace ckpt::ops {

class Dropout {
 public:
  static constexpr size_t kPieceWords = 1024;  // of a mask at a time: 4 KiB, which stay in the first cache

  // Arguments are checked already, and the snapshot has room for the mask.
  Dropout(float probability, const ckpt_philox *philox) noexcept {
    if (probability == 0.0f) return;
    const double keep = 1.0 - static_cast<double>(probability);
    philox_ = philox;
    last_ = static_cast<uint32_t>(ckpt_philox_threshold(keep) - 1);
    scale_ = static_cast<float>(1.0 / keep);
  }
  bool active() const noexcept { return philox_ != nullptr; }

  // Elements first .. first + count of the mask; `words` has room for count and holds them.
  Mask piece(uint64_t first, size_t count, uint32_t *words) const noexcept {
    if (!active()) return {nullptr, 0, 1.0f};
    (void)ckpt_philox_u32(philox_, first, count, words);
    return {words, last_, scale_};
  }

  // body(offset, count, mask) over pieces of elements first .. first + total.
  template <class Body>
  void pieces(uint64_t first, size_t total, const Body &body) const noexcept {
    if (!active()) return body(size_t{0}, total, Mask{nullptr, 0, 1.0f});
    alignas(64) uint32_t words[kPieceWords];
    for (size_t done = 0; done < total; done += kPieceWords) {
      const size_t count = total - done < kPieceWords ? total - done : kPieceWords;
      body(done, count, piece(first + done, count, words));
    }
  }

 private:
  const ckpt_philox *philox_ = nullptr;
  uint32_t last_ = 0;
  float scale_ = 1.0f;
};

}  // namespace ckpt::ops
