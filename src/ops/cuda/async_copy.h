// Copies from global to shared memory that go on while the threads compute (cp.async), in two texts. A thread's copies are put in
// groups by commit; wait<n> returns when all but the n latest groups of this thread have arrived: a barrier makes them everybody's.
#pragma once

#include "ops/cuda/element.h"

namespace ckpt::ops::cuda {

#ifdef CUDASIM

// A copy is done as late as CUDA allows, at the wait for it, and its destination is NaN from the start: whoever waits too little, or
// overwrites what others still read, gets wrong numbers.
class Copies {
 public:
  void vector(void *to, const void *from, bool inside) { push(to, from, inside ? 16 : 0, 16); }
  void word(void *to, const void *from, bool inside) { push(to, from, inside ? 4 : 0, 4); }
  void commit() { ++group_; }
  template <unsigned kLatest>
  void wait() {
    unsigned kept = 0;
    for (unsigned k = 0; k < count_; ++k) {
      const Pending copy = pending_[k];
      if (copy.group + kLatest >= group_) {
        pending_[kept++] = copy;
        continue;
      }
      for (unsigned byte = 0; byte < copy.size; ++byte)  // no memcpy of a size that varies: sanitizers would check it as the host's
        copy.to[byte] = byte < copy.bytes ? copy.from[byte] : static_cast<unsigned char>(0);
    }
    count_ = kept;
  }

 private:
  struct Pending {
    unsigned char *to;
    const unsigned char *from;
    unsigned bytes, size, group;
  };
  void push(void *to, const void *from, unsigned bytes, unsigned size) {
    if (count_ == kMost || reinterpret_cast<uintptr_t>(to) % size != 0 || (bytes != 0 && reinterpret_cast<uintptr_t>(from) % size != 0))
      cudasim::trap(cudaErrorMisalignedAddress, "cp.async: an address that is not aligned, or more copies in flight than the double holds");
    pending_[count_++] = {static_cast<unsigned char *>(to), static_cast<const unsigned char *>(from), bytes, size, group_};
    for (unsigned byte = 0; byte < size; ++byte) static_cast<unsigned char *>(to)[byte] = 0xff;
  }
  static constexpr unsigned kMost = 96;
  Pending pending_[kMost];
  unsigned count_ = 0, group_ = 0;
};

#else

class Copies {
 public:
  // 16 bytes, both addresses aligned to 16; zeros where not `inside` (`from` is then not read).
  CKPT_ON_DEVICE void vector(void *to, const void *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
  }
  // As `vector`, 4 bytes.
  CKPT_ON_DEVICE void word(void *to, const void *from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
  }
  CKPT_ON_DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <unsigned kLatest>
  CKPT_ON_DEVICE void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLatest) : "memory");
  }
};

#endif

}  // namespace ckpt::ops::cuda
