// Traces of buffers: a line `id,lower,upper,size`, then one line for each buffer, live in [lower, upper).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ckpt/pack.h"

namespace ckpt::tool {

struct TraceCsv {
  std::vector<std::string> ids;
  std::vector<ckpt_pack_buffer> buffers;
};

// "" on success; else one line: file, line and field, value, expectation. Columns may come in any order.
std::string read_trace(std::string_view text, const std::string &source, TraceCsv *out);

}  // namespace ckpt::tool
