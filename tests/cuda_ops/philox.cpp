// The device's fills and its hash against the CPU's, bit for bit: odd sizes, offsets and alignments, 10^7 values in all.
#include <algorithm>

#include "device/cpu/cpu.h"
#include "plugin.h"

using namespace test;
using device::Fill;

namespace {

constexpr uint64_t kSubsequence = (uint64_t{3} << 36) + 5;
constexpr size_t element_bytes(Fill fill) { return fill == Fill::bernoulli ? 1 : 4; }

std::vector<unsigned char> of_cpu(Fill fill, const ckpt_philox &philox, uint64_t first, size_t count, double a, double b) {
  std::vector<unsigned char> out(count * element_bytes(fill));
  ckpt_status status = CKPT_ERROR_INTERNAL;
  switch (fill) {
    case Fill::u32: status = ckpt_philox_u32(&philox, first, count, reinterpret_cast<uint32_t *>(out.data())); break;
    case Fill::uniform: status = ckpt_philox_uniform(&philox, first, count, reinterpret_cast<float *>(out.data())); break;
    case Fill::normal:
      status = ckpt_philox_normal(&philox, first, count, static_cast<float>(a), static_cast<float>(b), reinterpret_cast<float *>(out.data()));
      break;
    case Fill::bernoulli: status = ckpt_philox_bernoulli(&philox, first, count, a, out.data()); break;
  }
  EXPECT_EQ(status, CKPT_OK);
  return out;
}

void expect_same(Fill fill, const ckpt_philox &philox, const ckpt_philox &host_philox, uint64_t first, size_t count, size_t shift, double a, double b) {
  const Device &d = Device::get();
  const Memory out(count * element_bytes(fill), shift * element_bytes(fill));
  OK(d.table().philox(d.self(), d.stream(), fill, &philox, first, count, a, b, out.data()));
  const auto got = out.read(), expected = of_cpu(fill, host_philox, first, count, a, b);
  const auto [g, e] = std::mismatch(got.begin(), got.end(), expected.begin());
  ASSERT_EQ(g, got.end()) << "fill " << static_cast<int>(fill) << ", offset " << philox.offset << " + " << first << ", " << count
                          << " elements " << shift << " past an alignment: byte " << g - got.begin();
}

constexpr Fill kFills[] = {Fill::u32, Fill::uniform, Fill::normal, Fill::bernoulli};

TEST(Philox, FillsEqualTheCpusOverTenMillionValues) {
  size_t total = 0;
  // 2.5 million each, in three pieces of odd sizes; the middle one begins in a block's third word, the last one at an odd address.
  for (const Fill fill : kFills) {
    const ckpt_philox philox = {0x0123456789ABCDEF, kSubsequence, uint64_t{7} << 48, nullptr};
    const double a = fill == Fill::bernoulli ? 0.1 : 0.25, b = 1.5;
    for (const auto &[first, count, shift] : {std::tuple{uint64_t{0}, size_t{1250003}, size_t{0}}, std::tuple{uint64_t{1250006}, size_t{833331}, size_t{0}},
                                              std::tuple{uint64_t{2083337}, size_t{416673}, size_t{3}}}) {
      expect_same(fill, philox, philox, first, count, shift, a, b);
      total += count;
    }
  }
  EXPECT_GE(total, 10000000u);
}

TEST(Philox, FillsEqualTheCpusAtEverySizeOffsetAndAlignment) {
  for (const Fill fill : kFills)
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, (uint64_t{1} << 34) - 6})
      for (const size_t shift : {0, 1, 2, 3, 7, 15})
        for (const size_t count : {1, 2, 3, 4, 5, 15, 16, 17, 31, 1021}) {
          const ckpt_philox philox = {42, kSubsequence, offset, nullptr};
          expect_same(fill, philox, philox, 5, count, shift, 0.4, 2.0);
          if (HasFatalFailure()) return;
        }
}

TEST(Philox, ProbabilitiesAtTheEnds) {
  const ckpt_philox philox = {42, 7, 0, nullptr};
  for (const double p : {0.0, 0x1p-33, 0x1p-32, 1.0 - 0x1p-32, 1.0 - 0x1p-34, 1.0}) expect_same(Fill::bernoulli, philox, philox, 1, 1003, 1, p, 0.0);
  // Thresholds that are a word of the fill, and one more.
  std::vector<uint32_t> words(40);
  OK(ckpt_philox_u32(&philox, 1, words.size(), words.data()));
  for (const uint32_t word : words)
    for (const double more : {0.0, 1.0}) expect_same(Fill::bernoulli, philox, philox, 1, 40, 1, (word + more) * 0x1p-32, 0.0);
}

TEST(Philox, StepWordIsReadOnTheDevice) {
  const Device &d = Device::get();
  const Memory word(8);
  auto *const at = static_cast<uint64_t *>(word.data());
  const ckpt_philox philox = {42, kSubsequence, 2, at};
  for (const uint64_t step : {uint64_t{0}, uint64_t{77}, uint64_t{1} << 35}) {
    OK(d.table().write_word(d.self(), d.stream(), at, step));
    const ckpt_philox host = {42, kSubsequence, 2, &step};
    for (const Fill fill : kFills) expect_same(fill, philox, host, 0, 259, 1, 0.5, 1.0);
  }
}

TEST(Hash, EqualsTheCpus) {
  const Device &d = Device::get();
  std::vector<unsigned char> text((size_t{6} << 20) + 100);
  uint64_t state = 1;
  for (unsigned char &byte : text) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<unsigned char>(state >> 56);
  }
  // Around stripes, chunks, blocks of chunks, and more chunks than one round of blocks.
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{63}, size_t{64}, size_t{65}, size_t{119}, size_t{4095}, size_t{4096},
                             size_t{4097}, size_t{131071}, size_t{131072}, size_t{131073}, size_t{300000}, (size_t{6} << 20) + 13})
    for (const size_t shift : {0, 1, 8}) {
      if (count > 200000 && shift == 1) continue;  // byte by byte: for small sizes
      const Memory data(count, shift);
      data.write(text.data());
      uint64_t got = 0;
      OK(d.table().hash(d.self(), d.stream(), data.data(), count, &got));
      d.synchronize();
      EXPECT_EQ(got, device::cpu::hash(text.data(), count)) << count << " bytes, " << shift << " past an alignment";
    }
}

TEST(Hash, SeesOneBit) {
  const Device &d = Device::get();
  constexpr size_t kCount = 50000;
  std::vector<unsigned char> text(kCount, 3);
  const Memory data(kCount);
  const auto hashed = [&] {
    data.write(text.data());
    uint64_t got = 0;
    EXPECT_EQ(d.table().hash(d.self(), d.stream(), data.data(), kCount, &got), CKPT_OK) << last_text();
    d.synchronize();
    return got;
  };
  const uint64_t before = hashed();
  for (const size_t at : {size_t{0}, size_t{4095}, size_t{4096}, size_t{30011}, kCount - 1}) {
    text[at] ^= 0x80;
    EXPECT_NE(hashed(), before) << at;
    text[at] ^= 0x80;
  }
  EXPECT_EQ(hashed(), before);
}

}  // namespace
