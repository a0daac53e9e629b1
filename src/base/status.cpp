#include "base/status.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace ckpt {
namespace {

constexpr size_t kTextBytes = 1024;
thread_local char t_text[kTextBytes] = "";
thread_local Status t_status = CKPT_OK;

// A text that fills the buffer may end inside a UTF-8 character: cut back to its start.
void cut_at_character() noexcept {
  size_t n = std::strlen(t_text);
  if (n < kTextBytes - 1) return;
  size_t start = n;
  while (start > 0 && (static_cast<unsigned char>(t_text[start - 1]) & 0xC0) == 0x80) --start;
  if (start == 0) return;
  const auto lead = static_cast<unsigned char>(t_text[start - 1]);
  const size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (n - (start - 1) < want) t_text[start - 1] = '\0';
}

}  // namespace

Status fail(Status code, const char *format, ...) noexcept {
  // Formatted aside first: an argument may be the text itself.
  char text[kTextBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return fail_text(code, text);
}

Status fail_text(Status code, const char *text) noexcept {
  if (text == nullptr) text = "";
  const size_t n = std::strlen(text) < kTextBytes - 1 ? std::strlen(text) : kTextBytes - 1;
  std::memmove(t_text, text, n);
  t_text[n] = '\0';
  cut_at_character();
  t_status = code;
  return code;
}

const char *last_error() noexcept { return t_text; }
Status last_status() noexcept { return t_status; }

Status caught(const char *function) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the host refused memory", function);
  } catch (const std::exception &e) {
    return fail(CKPT_ERROR_INTERNAL, "%s: %s", function, e.what());
  } catch (...) {
    return fail(CKPT_ERROR_INTERNAL, "%s: unknown exception", function);
  }
}

}  // namespace ckpt
