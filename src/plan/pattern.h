// Names by pattern, as a shell has them: * stands for any text (also none), ? for one character.
#pragma once

#include <string_view>

namespace ckpt::plan {

// In time proportional to the product of both lengths, at worst.
bool matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace ckpt::plan
