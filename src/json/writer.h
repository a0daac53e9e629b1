// JSON out: the same text for the same values on every machine. Numbers are the shortest that read back the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ckpt::json {

class Writer {
 public:
  // `lines`: each entry on a line of its own; else all on one line.
  Writer &object(bool lines = false) { return open('{', '}', lines); }
  Writer &list(bool lines = false) { return open('[', ']', lines); }
  Writer &end();
  Writer &key(std::string_view name);

  Writer &text(std::string_view value);  // valid UTF-8
  Writer &flag(bool value) { return raw(value ? "true" : "false"); }
  Writer &number(uint64_t value) { return raw(std::to_string(value)); }
  Writer &real(double value);            // finite
  Writer &hash(uint64_t value);
  Writer &raw(std::string_view value);   // JSON as it stands

  std::string finish() { return std::move(out_) + "\n"; }

 private:
  struct Level {
    char close;
    bool lines;
    bool any;
  };
  Writer &open(char first, char last, bool lines);
  void before();

  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

bool valid_utf8(std::string_view text);
void append_quoted(std::string *out, std::string_view text);

}  // namespace ckpt::json
