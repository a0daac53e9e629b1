#include "tool/chain_names.h"

#include "tool/common.h"

namespace ckpt::tool {

ChainNames::ChainNames(const std::string &text) {
  const nlohmann::json chain = nlohmann::json::parse(text);
  for (const nlohmann::json &s : chain.at("segments")) {
    SegmentNames names;
    names.name = s.at("name").get<std::string>();
    if (s.contains("saved_bytes")) names.slots.push_back("saved");
    else
      for (const nlohmann::json &slot : s.at("slots")) names.slots.push_back(slot.at("name").get<std::string>());
    if (s.contains("outputs"))
      for (const nlohmann::json &output : s.at("outputs")) names.outputs.push_back(output.at("name").get<std::string>());
    else
      names.outputs.push_back("output");
    segments_.push_back(std::move(names));
  }
}

}  // namespace ckpt::tool
