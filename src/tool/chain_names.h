// What segments and slots of a chain file are called. For a text that the library has accepted.
#pragma once

#include <string>
#include <vector>

namespace ckpt::tool {

struct SegmentNames {
  std::string name;
  std::vector<std::string> slots, outputs;
};

class ChainNames {
 public:
  explicit ChainNames(const std::string &text);
  std::string segment(uint32_t i) const { return segments_.at(i).name; }
  std::string slot(uint32_t i, uint32_t k) const { return segments_.at(i).name + "/" + segments_.at(i).slots.at(k); }
  std::string output(uint32_t i, uint32_t k) const { return segments_.at(i).name + "/" + segments_.at(i).outputs.at(k); }

 private:
  std::vector<SegmentNames> segments_;
};

}  // namespace ckpt::tool
