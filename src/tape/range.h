// A segment's name over the time of one of its callbacks, for profilers, on devices that have such ranges.
#pragma once

#include <cstdio>
#include <string>

#include "device/device.h"

namespace ckpt::tape {

class Range {
 public:
  // `what`: appended to the name.
  Range(const device::Device &device, const std::string &segment, const char *what) noexcept : ranges_(device.ranges()) {
    if (ranges_ == nullptr) return;
    char name[128];
    (void)std::snprintf(name, sizeof name, "%.96s%s", segment.c_str(), what);
    ranges_->push(name);
  }
  ~Range() {
    if (ranges_ != nullptr) ranges_->pop();
  }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

 private:
  const device::Ranges *ranges_;
};

}  // namespace ckpt::tape
