// Traces of buffers as the published instances have them: columns id,lower,upper,size behind one line of names.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ckpt::testing {

// Buffer: an aggregate that begins with lower, upper and bytes.
template <class Buffer>
std::vector<Buffer> read_buffers(const std::filesystem::path &file) {
  std::vector<Buffer> buffers;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    unsigned long long lower = 0, upper = 0, size = 0;
    if (std::sscanf(line.c_str(), "%*[^,],%llu,%llu,%llu", &lower, &upper, &size) == 3) buffers.push_back({lower, upper, static_cast<size_t>(size)});
  }
  return buffers;
}

}  // namespace ckpt::testing
