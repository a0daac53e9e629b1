#include "json/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json/writer.h"

namespace ckpt::json {
namespace {

constexpr size_t kMaxDepth = 32, kMaxFields = 256, kShown = 60;

// Receives the parser's events and builds the tree; knows at any time which field is being read.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, const char *source, Value *root) : text_(text), source_(source), root_(root) {}
  Status status() const { return status_; }

  bool null() override { return add(Value{}); }
  bool boolean(bool flag) override {
    Value v;
    v.kind = Value::Kind::boolean;
    v.flag = flag;
    return add(std::move(v));
  }
  bool number_integer(number_integer_t number) override {
    if (number >= 0) return number_unsigned(static_cast<number_unsigned_t>(number));  // -0
    return real(static_cast<double>(number), std::to_string(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    Value v;
    v.kind = Value::Kind::integer;
    v.integer = number;
    v.real = static_cast<double>(number);
    v.text = std::to_string(number);
    return add(std::move(v));
  }
  bool number_float(number_float_t number, const string_t &text) override { return real(number, text); }
  bool string(string_t &text) override {
    Value v;
    v.kind = Value::Kind::string;
    v.text = std::move(text);
    return add(std::move(v));
  }
  bool binary(binary_t &) override { return false; }
  bool start_object(std::size_t) override { return open(Value::Kind::object); }
  bool start_array(std::size_t) override { return open(Value::Kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    std::vector<std::string> &keys = open_.back()->keys;
    for (const std::string &k : keys)
      if (k == name) return stop(path() + ": field " + in_quotes(name) + " comes twice, expected once");
    if (keys.size() == kMaxFields) return stop(path() + ": more than 256 fields, expected at most 256");
    keys.push_back(std::move(name));
    return true;
  }
  bool parse_error(std::size_t position, const std::string &token, const nlohmann::detail::exception &error) override {
    if (status_) return false;
    if (error.id == 406) return stop(path() + " is " + in_quotes(token) + ", expected a number of at most 1.8e308");
    // `position` is behind what was read of the token.
    const size_t end = std::min(position, text_.size());
    size_t line = 1, start = 0;
    for (size_t k = 0; k + 1 < end; ++k)
      if (text_[k] == '\n') ++line, start = k + 1;
    const bool ends = position > text_.size() || token == "<EOF>" || token.empty();
    size_t begin = end > 0 ? end - 1 : 0;
    while (!ends && begin > start && is_word(text_[begin - 1]) && is_word(text_[begin])) --begin;
    const std::string place = "line " + std::to_string(line) + ", column " + std::to_string(begin >= start ? begin - start + 1 : 1) + ": ";
    if (ends) return stop(place + path() + ": the text ends, expected the rest of it");
    size_t stop_at = begin + 1;
    while (stop_at < text_.size() && is_word(text_[begin]) && is_word(text_[stop_at])) ++stop_at;
    return stop(place + path() + ": found " + in_quotes(text_.substr(begin, stop_at - begin)) + ", expected valid JSON (numbers are finite)");
  }

 private:
  static bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.' || c == '_'; }

  bool real(double number, const std::string &text) {
    Value v;
    v.kind = Value::Kind::real;
    v.real = number;
    v.text = text;
    return add(std::move(v));
  }
  bool add(Value &&value) { return place(std::move(value)) != nullptr; }
  Value *place(Value &&value) {
    if (open_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    open_.back()->items.push_back(std::move(value));
    return &open_.back()->items.back();
  }
  bool open(Value::Kind kind) {
    if (open_.size() == kMaxDepth) return stop(path() + ": lists and objects within each other more than 32 levels deep, expected at most 32");
    Value v;
    v.kind = kind;
    open_.push_back(place(std::move(v)));  // stays where it is: its parent grows again only after it is closed
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool stop(const std::string &text) {
    status_ = refuse(CKPT_ERROR_INVALID_ARGUMENT, std::string(source_) + ": " + text);
    return false;
  }
  // Of the value that is being read.
  std::string path() const {
    std::string text;
    for (size_t k = 0; k < open_.size(); ++k) {
      const Value &v = *open_[k];
      const bool last = k + 1 == open_.size();
      if (v.kind == Value::Kind::list) text += "[" + std::to_string(last ? v.items.size() : v.items.size() - 1) + "]";
      else if (!v.keys.empty() && (!last || v.keys.size() > v.items.size())) text += (text.empty() ? "" : ".") + v.keys.back();
    }
    return text.empty() ? "the text" : text;
  }

  std::string_view text_;
  const char *source_;
  Value *root_;
  std::vector<Value *> open_;
  Status status_ = CKPT_OK;
};

}  // namespace

Status parse(std::string_view text, const char *source, Value *out) {
  *out = Value{};
  Builder builder(text, source, out);
  const bool done = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (builder.status()) return builder.status();
  if (!done) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: the text is no JSON", source);
  return CKPT_OK;
}

std::string in_quotes(std::string_view text) {
  size_t n = std::min(text.size(), kShown);
  while (n < text.size() && n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return "'" + std::string(text.substr(0, n)) + (n < text.size() ? "...'" : "'");
}

std::string shown(const Value &v) {
  switch (v.kind) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return v.flag ? "true" : "false";
    case Value::Kind::integer: return v.text;
    case Value::Kind::real: return v.text.size() <= kShown ? v.text : v.text.substr(0, kShown) + "...";
    case Value::Kind::string: return in_quotes(v.text);
    case Value::Kind::list: return v.items.empty() ? "an empty list" : "a list";
    case Value::Kind::object: return "an object";
  }
  return "";
}

Status refuse(Status code, const std::string &text) noexcept {
  char line[1024];
  size_t n = 0;
  const bool plain = !valid_utf8(text);  // then what is beyond ASCII goes too
  for (; n < text.size() && n + 1 < sizeof line; ++n) {
    const auto c = static_cast<unsigned char>(text[n]);
    line[n] = c < 0x20 || c == 0x7f || (plain && c > 0x7f) ? '?' : text[n];
  }
  line[n] = '\0';
  return fail_text(code, line);
}

}  // namespace ckpt::json
