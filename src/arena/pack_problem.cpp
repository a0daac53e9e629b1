#include "arena/pack_problem.h"

#include <numeric>

#include "base/checked.h"

namespace ckpt::arena {
namespace {

Status check(std::span<const PackBuffer> buffers, std::vector<uint32_t> *used, size_t *unit) {
  if (buffers.size() > kMaxPackBuffers)
    return fail(CKPT_ERROR_OVERFLOW, "pack: %zu buffers, expected at most %zu", buffers.size(), kMaxPackBuffers);
  size_t divisor = 0;
  for (size_t k = 0; k < buffers.size(); ++k) {
    const PackBuffer &b = buffers[k];
    if (b.begin >= b.end)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "pack: buffers[%zu] ends at %llu, expected later than its begin at %llu", k,
                  static_cast<unsigned long long>(b.end), static_cast<unsigned long long>(b.begin));
    if (b.bytes == 0) continue;
    used->push_back(static_cast<uint32_t>(k));
    divisor = std::gcd(divisor, b.bytes);
  }
  *unit = divisor == 0 ? 1 : divisor;
  return CKPT_OK;
}

// Programs often come sorted by time.
template <class Time>
void sort_by(std::vector<uint32_t> *order, Time time) {
  const auto before = [&](uint32_t a, uint32_t b) { return time(a) != time(b) ? time(a) < time(b) : a < b; };
  if (!std::is_sorted(order->begin(), order->end(), before)) std::sort(order->begin(), order->end(), before);
}

// Walks begins and ends in time; ends come first, since lifetimes are half open.
class Splitter {
 public:
  Splitter(std::span<const PackBuffer> buffers, PackParts *out) : buffers_(buffers), out_(*out), item_of_(buffers.size()) {}

  Status run(const std::vector<uint32_t> &by_begin, const std::vector<uint32_t> &by_end) {
    size_t ended = 0;
    bool between = true;  // an end since the last begin: the next begin opens a section
    for (const uint32_t k : by_begin) {
      for (; buffers_[by_end[ended]].end <= buffers_[k].begin; ++ended, between = true) end(by_end[ended]);
      if (live_ == 0) out_.parts.emplace_back();
      if (between) part().load.push_back(0);
      between = false;
      CKPT_TRY(begin(k));
    }
    for (; ended < by_end.size(); ++ended) end(by_end[ended]);
    return CKPT_OK;
  }

 private:
  PackProblem &part() { return out_.parts.back(); }

  Status begin(uint32_t k) {
    const size_t size = buffers_[k].bytes / out_.unit;
    if (add_overflows(load_, size, &load_) || load_ > kMaxPackBytes / out_.unit)
      return fail(CKPT_ERROR_OVERFLOW, "pack: buffers[%u] of %zu bytes brings the live load beyond %zu bytes, the most that can be packed", k,
                  buffers_[k].bytes, kMaxPackBytes);
    ++live_;
    PackProblem &p = part();
    p.load.back() = load_;
    p.bound = std::max(p.bound, load_);
    item_of_[k] = static_cast<uint32_t>(p.items.size());
    p.items.push_back({static_cast<uint32_t>(p.load.size() - 1), 0, size});
    p.buffers.push_back(k);
    p.lives.push_back(static_cast<double>(buffers_[k].end - buffers_[k].begin));
    return CKPT_OK;
  }

  void end(uint32_t k) {
    PackItem &item = part().items[item_of_[k]];
    item.last = static_cast<uint32_t>(part().load.size());
    load_ -= item.size;
    --live_;
  }

  std::span<const PackBuffer> buffers_;
  PackParts &out_;
  std::vector<uint32_t> item_of_;  // per buffer
  size_t load_ = 0;
  uint32_t live_ = 0;
};

}  // namespace

Status split(std::span<const PackBuffer> buffers, PackParts *out) {
  std::vector<uint32_t> by_begin;
  CKPT_TRY(check(buffers, &by_begin, &out->unit));
  std::vector<uint32_t> by_end = by_begin;
  sort_by(&by_begin, [&](uint32_t k) { return buffers[k].begin; });
  sort_by(&by_end, [&](uint32_t k) { return buffers[k].end; });
  CKPT_TRY(Splitter(buffers, out).run(by_begin, by_end));
  std::stable_sort(out->parts.begin(), out->parts.end(), [](const PackProblem &a, const PackProblem &b) { return a.bound > b.bound; });
  if (!out->parts.empty()) out->bound = out->parts.front().bound;
  return CKPT_OK;
}

}  // namespace ckpt::arena
