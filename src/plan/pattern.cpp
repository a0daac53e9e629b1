#include "plan/pattern.h"

namespace ckpt::plan {

bool matches(std::string_view pattern, std::string_view text) noexcept {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, resume = 0;  // the latest *, and where the text goes on after what it stands for
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace ckpt::plan
