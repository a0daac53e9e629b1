#include "tool/svg.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "tool/common.h"

namespace ckpt::tool {
namespace {

constexpr double kLeft = 110, kTop = 60, kWidth = 1000, kHeight = 480, kRight = 30, kBottom = 90;
constexpr const char *kColours[] = {"#4e79a7", "#59a14f", "#9c9c9c", "#f28e2b", "#edc948", "#76b7b2"};

std::string escaped(const std::string &text) {
  std::string to;
  for (const char c : text) {
    switch (c) {
      case '&': to += "&amp;"; break;
      case '<': to += "&lt;"; break;
      case '>': to += "&gt;"; break;
      case '"': to += "&quot;"; break;
      case '\'': to += "&#39;"; break;
      default: to += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return to;
}

void add(std::string *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add(std::string *to, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  *to += text;
}

}  // namespace

std::string draw(const Picture &p) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const Rectangle &r : p.rectangles) begin = std::min(begin, r.begin), end = std::max(end, r.end);
  if (begin >= end) begin = 0, end = 1;
  // A limit far above the memory would squeeze it: then the line is at the top, and its label says where it belongs.
  const bool near = p.limit != 0 && p.limit <= std::max<uint64_t>(p.height, 1) * 2;
  const uint64_t top = std::max<uint64_t>({p.height, near ? p.limit : 0, 1});
  const auto x = [&](uint64_t t) { return kLeft + kWidth * static_cast<double>(t - begin) / static_cast<double>(end - begin); };
  const auto y = [&](uint64_t b) { return kTop + kHeight * (1 - static_cast<double>(b) / static_cast<double>(top)); };
  std::string s;
  const double width = kLeft + kWidth + kRight, height = kTop + kHeight + kBottom;
  add(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height, width, height);
  s += "<defs><pattern id=\"again\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"6\" fill=\"#d62728\"/></pattern></defs>\n";
  add(&s, "<rect width=\"%g\" height=\"%g\" fill=\"white\"/>\n", width, height);
  add(&s, "<text x=\"%g\" y=\"28\" font-size=\"16\">", kLeft);
  s += escaped(p.title) + "</text>\n";
  for (int k = 0; k <= 4; ++k) {
    const uint64_t bytes = top / 4 * static_cast<uint64_t>(k) + top % 4 * static_cast<uint64_t>(k) / 4, time = begin + (end - begin) / 4 * static_cast<uint64_t>(k) + (end - begin) % 4 * static_cast<uint64_t>(k) / 4;
    add(&s, "<line x1=\"%g\" x2=\"%g\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#dddddd\"/>\n", kLeft, kLeft + kWidth, y(bytes), y(bytes));
    const std::string label = size_text(bytes);
    add(&s, "<text x=\"%g\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n", kLeft - 8, y(bytes) + 4, label.substr(0, label.find(" (")).c_str());
    add(&s, "<text x=\"%.2f\" y=\"%g\" text-anchor=\"middle\">%llu</text>\n", x(time), kTop + kHeight + 18, static_cast<unsigned long long>(time));
  }
  add(&s, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">", kLeft + kWidth / 2, kTop + kHeight + 38);
  s += escaped(p.time_axis) + "</text>\n";
  add(&s, "<text x=\"18\" y=\"%g\" text-anchor=\"middle\" transform=\"rotate(-90 18 %g)\">memory</text>\n", kTop + kHeight / 2, kTop + kHeight / 2);
  for (const Rectangle &r : p.rectangles) {
    if (r.bytes == 0 || r.end <= r.begin) continue;
    char box[160];
    std::snprintf(box, sizeof box, "x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", x(r.begin), y(r.offset + r.bytes), std::max(x(r.end) - x(r.begin), 0.2), std::max(y(r.offset) - y(r.offset + r.bytes), 0.2));
    add(&s, "<g class=\"%s\"><title>", r.recompute ? "buffer recompute" : "buffer");
    s += escaped(r.name);
    add(&s, ": %llu bytes at %llu, [%llu, %llu)%s</title>", static_cast<unsigned long long>(r.bytes), static_cast<unsigned long long>(r.offset), static_cast<unsigned long long>(r.begin), static_cast<unsigned long long>(r.end),
        r.recompute ? ", recomputed" : "");
    add(&s, "<rect %s fill=\"%s\" fill-opacity=\"0.8\" stroke=\"black\" stroke-width=\"0.3\"/>", box, kColours[r.kind % 6]);
    if (r.recompute) add(&s, "<rect %s fill=\"url(#again)\"/>", box);
    s += "</g>\n";
  }
  if (p.limit != 0) {
    const double at = near ? y(p.limit) : kTop - 4;
    add(&s, "<line class=\"limit\" x1=\"%g\" x2=\"%g\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#d62728\" stroke-width=\"1.5\" stroke-dasharray=\"6 3\"/>\n", kLeft, kLeft + kWidth, at, at);
    add(&s, "<text x=\"%g\" y=\"%.2f\" text-anchor=\"end\" fill=\"#d62728\">", kLeft + kWidth, at - 4);
    s += escaped(p.limit_name + " " + size_text(p.limit)) + (near ? "" : " (above)") + "</text>\n";
  }
  add(&s, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"black\"/>\n", kLeft, kTop, kWidth, kHeight);
  double at = kLeft;
  const auto legend = [&](const char *fill, const std::string &name) {
    add(&s, "<rect x=\"%g\" y=\"%g\" width=\"14\" height=\"14\" fill=\"%s\" stroke=\"black\" stroke-width=\"0.3\"/>", at, kTop + kHeight + 56, fill);
    add(&s, "<text x=\"%g\" y=\"%g\">", at + 20, kTop + kHeight + 68);
    s += escaped(name) + "</text>\n";
    at += 40 + 7.0 * static_cast<double>(name.size());
  };
  for (size_t k = 0; k < p.kinds.size(); ++k) legend(kColours[k % 6], p.kinds[k]);
  if (p.kinds.size() > 1) legend("url(#again)", "recomputed");
  return s + "</svg>\n";
}

}  // namespace ckpt::tool
