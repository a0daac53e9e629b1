// Memory over time as an SVG: each buffer a rectangle, lifetime by place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ckpt::tool {

struct Rectangle {
  uint64_t begin = 0, end = 0;  // along the time axis
  uint64_t offset = 0, bytes = 0;
  uint32_t kind = 0;            // index of Picture::kinds
  bool recompute = false;       // hatched
  std::string name;
};

struct Picture {
  std::string title, time_axis;
  std::vector<std::string> kinds;  // at most 6
  std::vector<Rectangle> rectangles;
  uint64_t height = 0;             // of the packing
  uint64_t limit = 0;              // budget or capacity; 0: no line
  std::string limit_name;
};

// Self-contained; names are escaped.
std::string draw(const Picture &picture);

}  // namespace ckpt::tool
