// What every test of packings needs: is a packing one, how low can any be (by trying all offsets), instances from files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "arena/pack.h"
#include "support/pack_csv.h"

namespace ckpt::arena::testing {

inline bool overlap_in_time(const PackBuffer &a, const PackBuffer &b) { return a.begin < b.end && b.begin < a.end; }

// Empty, or what is wrong.
inline std::string fault_of(const std::vector<PackBuffer> &buffers, const Packing &p) {
  if (p.offsets.size() != buffers.size()) return "offsets for " + std::to_string(p.offsets.size()) + " buffers";
  size_t height = 0;
  for (size_t k = 0; k < buffers.size(); ++k) {
    const size_t end = p.offsets[k] + buffers[k].bytes;
    if (end < p.offsets[k]) return "buffer " + std::to_string(k) + " wraps around";
    if (buffers[k].bytes == 0 && p.offsets[k] != 0) return "buffer " + std::to_string(k) + " of zero bytes is not at 0";
    height = std::max(height, end);
    for (size_t j = 0; j < k; ++j) {
      const bool apart = end <= p.offsets[j] || p.offsets[j] + buffers[j].bytes <= p.offsets[k];
      if (buffers[j].bytes != 0 && buffers[k].bytes != 0 && !apart && overlap_in_time(buffers[j], buffers[k]))
        return "buffers " + std::to_string(j) + " and " + std::to_string(k) + " overlap";
    }
  }
  if (height != p.height) return "height " + std::to_string(height) + " is reported as " + std::to_string(p.height);
  return "";
}

// At any begin, since loads grow only there.
inline size_t largest_load(const std::vector<PackBuffer> &buffers) {
  size_t most = 0;
  for (const PackBuffer &at : buffers) {
    size_t load = 0;
    for (const PackBuffer &b : buffers)
      if (b.begin <= at.begin && at.begin < b.end) load += b.bytes;
    most = std::max(most, load);
  }
  return most;
}

// Every buffer at every offset.
inline bool fits_below(const std::vector<PackBuffer> &buffers, size_t height, std::vector<size_t> *offsets) {
  const size_t k = offsets->size();
  if (k == buffers.size()) return true;
  for (size_t at = 0; at + buffers[k].bytes <= height; ++at) {
    bool free = true;
    for (size_t j = 0; j < k && free; ++j)
      free = !overlap_in_time(buffers[j], buffers[k]) || (*offsets)[j] + buffers[j].bytes <= at || at + buffers[k].bytes <= (*offsets)[j];
    if (!free) continue;
    offsets->push_back(at);
    if (fits_below(buffers, height, offsets)) return true;
    offsets->pop_back();
  }
  return false;
}

inline size_t lowest_height(const std::vector<PackBuffer> &buffers) {
  for (size_t height = largest_load(buffers);; ++height) {
    std::vector<size_t> offsets;
    if (fits_below(buffers, height, &offsets)) return height;
  }
}

// The folder of instances that are not part of this tree: CKPT_TEST_DATA, or beside the source tree. May not exist.
inline std::filesystem::path data_folder() {
  if (const char *given = std::getenv("CKPT_TEST_DATA"); given != nullptr) return given;
  return std::filesystem::path(CKPT_TEST_DIR) / ".." / ".." / "shared" / "data";
}

inline std::vector<PackBuffer> read_instance(const std::filesystem::path &file) { return ckpt::testing::read_buffers<PackBuffer>(file); }

}  // namespace ckpt::arena::testing
