// A fixed set of up to 256 small numbers: slots and outputs of one segment.
#pragma once

#include <bit>
#include <cstdint>

namespace ckpt {

class Bits {
 public:
  static constexpr uint32_t kCapacity = 256, kWords = 4;

  constexpr Bits() = default;
  static constexpr Bits one(uint32_t k) { Bits b; b.set(k); return b; }
  static constexpr Bits first(uint32_t count) {  // {0 .. count-1}
    Bits b;
    for (uint32_t w = 0; w < kWords; ++w) {
      const uint32_t from = w * 64;
      b.word_[w] = count >= from + 64 ? ~uint64_t{0} : count > from ? (uint64_t{1} << (count - from)) - 1 : 0;
    }
    return b;
  }
  static constexpr Bits range(uint32_t begin, uint32_t end) { return first(end) - first(begin); }

  constexpr bool has(uint32_t k) const { return word_[k / 64] >> (k % 64) & 1; }
  constexpr void set(uint32_t k) { word_[k / 64] |= uint64_t{1} << (k % 64); }
  constexpr void clear(uint32_t k) { word_[k / 64] &= ~(uint64_t{1} << (k % 64)); }
  constexpr bool empty() const { return (word_[0] | word_[1] | word_[2] | word_[3]) == 0; }
  constexpr uint32_t count() const {
    uint32_t n = 0;
    for (auto w : word_) n += static_cast<uint32_t>(std::popcount(w));
    return n;
  }
  constexpr bool contains(const Bits &o) const { return (o - *this).empty(); }
  constexpr bool operator==(const Bits &) const = default;
  constexpr Bits operator|(const Bits &o) const { Bits r; for (uint32_t w = 0; w < kWords; ++w) r.word_[w] = word_[w] | o.word_[w]; return r; }
  constexpr Bits operator&(const Bits &o) const { Bits r; for (uint32_t w = 0; w < kWords; ++w) r.word_[w] = word_[w] & o.word_[w]; return r; }
  constexpr Bits operator-(const Bits &o) const { Bits r; for (uint32_t w = 0; w < kWords; ++w) r.word_[w] = word_[w] & ~o.word_[w]; return r; }
  constexpr Bits &operator|=(const Bits &o) { return *this = *this | o; }
  constexpr Bits &operator&=(const Bits &o) { return *this = *this & o; }
  constexpr Bits &operator-=(const Bits &o) { return *this = *this - o; }
  constexpr uint64_t word(uint32_t w) const { return word_[w]; }
  constexpr void set_word(uint32_t w, uint64_t value) { word_[w] = value; }

  // Ascending.
  template <class F>
  constexpr void each(F &&f) const {
    for (uint32_t w = 0; w < kWords; ++w)
      for (uint64_t rest = word_[w]; rest != 0; rest &= rest - 1) f(w * 64 + static_cast<uint32_t>(std::countr_zero(rest)));
  }
  // Descending.
  template <class F>
  constexpr void each_down(F &&f) const {
    for (uint32_t w = kWords; w-- > 0;)
      for (uint64_t rest = word_[w]; rest != 0;) {
        const uint32_t k = 63 - static_cast<uint32_t>(std::countl_zero(rest));
        rest &= ~(uint64_t{1} << k);
        f(w * 64 + k);
      }
  }

 private:
  uint64_t word_[kWords] = {0, 0, 0, 0};
};

}  // namespace ckpt
