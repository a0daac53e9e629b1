#include "tool/common.h"

#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ckpt::tool {

void bad_input(const std::string &text) { throw Failure(kBadInput, text); }

void check(ckpt_status status) {
  if (status != CKPT_OK) throw Failure(status == CKPT_ERROR_BUDGET ? kInfeasible : kBadInput, ckpt_last_error());
}

std::string read_file(const std::string &path) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) bad_input(path + ": cannot be read: " + std::strerror(errno));
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> closer(file, std::fclose);
  std::string text;
  char part[65536];
  size_t n = 0;
  while ((n = std::fread(part, 1, sizeof part, file)) > 0) text.append(part, n);
  if (std::ferror(file)) bad_input(path + ": cannot be read: " + std::strerror(errno));
  return text;
}

void write_file(const std::string &path, std::string_view text) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) bad_input(path + ": cannot be written: " + std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) bad_input(path + ": cannot be written: " + std::strerror(errno));
}

uint64_t parse_size(const std::string &option, const std::string &text) {
  const auto wrong = [&]() { bad_input(option + " is '" + text.substr(0, 60) + "', expected a size such as 4096, 512MiB or 1.5GiB, below 2^63 bytes"); };
  size_t digits = 0;
  while (digits < text.size() && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.')) ++digits;
  const std::string unit = text.substr(digits);
  constexpr struct { const char *name; unsigned shift; } kUnits[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto &u : kUnits) {
    if (unit != u.name || digits == 0) continue;
    const char *begin = text.data(), *end = text.data() + digits;
    uint64_t whole = 0;
    if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc{} && read.ptr == end) {
      if (whole >= (uint64_t{1} << 63) >> u.shift) wrong();
      return whole << u.shift;
    }
    double part = 0;
    const auto read = std::from_chars(begin, end, part);
    if (read.ec != std::errc{} || read.ptr != end) wrong();
    part = std::floor(std::ldexp(part, static_cast<int>(u.shift)));
    if (!(part >= 1 && part < 9.2e18)) wrong();  // a part of a byte is no size
    return static_cast<uint64_t>(part);
  }
  wrong();
  return 0;
}

CLI::Validator file_name() {
  return CLI::Validator([](const std::string &text) { return text.empty() ? std::string("is '', expected the name of a file") : std::string(); }, "");
}

CLI::Option *add_size(CLI::App *command, const std::string &name, uint64_t *to, const std::string &about) {
  return command->add_option_function<std::string>(name, [name, to](const std::string &text) { *to = parse_size(name, text); }, about)->type_name("SIZE");
}

uint64_t parse_count(const std::string &option, const std::string &text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < low || value > high)
    bad_input(option + " is '" + text.substr(0, 60) + "', expected a whole number, " + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

std::string size_text(uint64_t bytes) {
  constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  char text[64];
  if (unit == 0) std::snprintf(text, sizeof text, "%" PRIu64 " B", bytes);
  else std::snprintf(text, sizeof text, "%.2f %s (%" PRIu64 ")", std::ceil(value * 100) / 100, kUnits[unit], bytes);  // as a budget it suffices
  return text;
}

std::string seconds_text(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g s", seconds);
  return text;
}

std::string hash_text(uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016" PRIx64, hash);
  return text;
}

void print(const Json &object) { std::printf("%s\n", object.dump().c_str()); }

}  // namespace ckpt::tool
