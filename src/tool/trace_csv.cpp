#include "tool/trace_csv.h"

#include <charconv>
#include <unordered_set>

#include "tool/common.h"

namespace ckpt::tool {
namespace {

constexpr const char *kColumns[] = {"id", "lower", "upper", "size"};
enum { kId = 0, kLower = 1, kUpper = 2, kSize = 3, kColumnCount = 4 };

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  return s;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

bool is_utf8(const std::string &text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error &) {
    return false;
  }
}

std::string shown(std::string_view field) { return "'" + std::string(field.substr(0, 60)) + (field.size() > 60 ? "...'" : "'"); }

// Which field of a line is which column.
std::string read_header(const std::vector<std::string_view> &fields, const std::string &where, size_t (&column)[kColumnCount]) {
  for (size_t c = 0; c < kColumnCount; ++c) {
    column[c] = fields.size();
    for (size_t k = 0; k < fields.size(); ++k)
      if (fields[k] == kColumns[c]) column[c] = k;
    if (column[c] == fields.size()) return where + "column " + kColumns[c] + " is missing, expected id,lower,upper,size";
  }
  if (fields.size() == kColumnCount) return "";
  for (const std::string_view field : fields) {
    bool known = false;
    for (const char *name : kColumns) known |= field == name;
    if (!known) return where + "unknown column " + shown(field) + ", expected id,lower,upper,size";
  }
  return where + std::to_string(fields.size()) + " columns, expected id,lower,upper,size, each once";
}

}  // namespace

std::string read_trace(std::string_view text, const std::string &source, TraceCsv *out) {
  *out = TraceCsv{};
  size_t column[kColumnCount] = {};
  bool header = false;
  std::unordered_set<std::string> seen;
  size_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.empty()) continue;
    const std::string where = source + ": line " + std::to_string(number) + ": ";
    const std::vector<std::string_view> fields = fields_of(line);
    if (!header) {
      if (std::string wrong = read_header(fields, where, column); !wrong.empty()) return wrong;
      header = true;
      continue;
    }
    if (fields.size() != kColumnCount) return where + std::to_string(fields.size()) + " fields, expected 4: id,lower,upper,size";
    const std::string id(fields[column[kId]]);
    if (id.empty()) return where + "id is '', expected a name";
    if (!is_utf8(id)) return where + "id is not UTF-8, expected a name";
    if (!seen.insert(id).second) return where + "id is " + shown(id) + ", expected one that no other buffer has";
    uint64_t values[kColumnCount] = {};
    for (size_t c = kLower; c < kColumnCount; ++c) {
      const std::string_view f = fields[column[c]];
      const auto read = std::from_chars(f.data(), f.data() + f.size(), values[c]);
      if (read.ec != std::errc{} || read.ptr != f.data() + f.size() || (c == kSize && values[c] > (uint64_t{1} << 60)))
        return where + kColumns[c] + " is " + shown(f) + ", expected a whole number, 0 to " + (c == kSize ? "2^60" : "2^64 - 1");
    }
    if (values[kUpper] <= values[kLower]) return where + "upper is " + std::to_string(values[kUpper]) + ", expected more than lower, which is " + std::to_string(values[kLower]);
    out->ids.push_back(id);
    out->buffers.push_back({values[kLower], values[kUpper], values[kSize]});
  }
  if (!header) return source + ": the file is empty, expected a line id,lower,upper,size and a line for each buffer";
  if (out->buffers.empty()) return source + ": no buffer, expected at least one line after id,lower,upper,size";
  return "";
}

}  // namespace ckpt::tool
