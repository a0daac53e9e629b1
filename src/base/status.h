// Status codes and this thread's error text. Internal functions return ckpt_status (or Result<T>); the text is written
// where the failure is found, with the numbers that only that place knows.
#pragma once

#include <cstdarg>
#include <optional>
#include <utility>

#include "ckpt/base.h"

namespace ckpt {

using Status = ckpt_status;

// Writes this thread's text and returns `code`. Never allocates; texts longer than the buffer are cut at a character.
[[nodiscard]] Status fail(Status code, const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));

// Records a status that carries the user's own text or none (a callback's).
[[nodiscard]] Status fail_text(Status code, const char *text) noexcept;

const char *last_error() noexcept;
Status last_status() noexcept;

// A value, or the status of a failure whose text is set.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  // From the return value of fail(); must not be CKPT_OK.
  static Result failed(Status status) { Result r; r.status_ = status; return r; }
  bool ok() const noexcept { return status_ == CKPT_OK; }
  Status status() const noexcept { return status_; }
  T &operator*() noexcept { return *value_; }
  const T &operator*() const noexcept { return *value_; }
  T *operator->() noexcept { return &*value_; }

 private:
  Result() = default;
  std::optional<T> value_;
  Status status_ = CKPT_OK;
};

// Runs `body` (returning Status) and turns whatever it throws into a status. The one place where exceptions stop; each
// extern "C" function that can throw is written with it.
template <class F>
Status guarded(const char *function, F &&body) noexcept;

Status caught(const char *function) noexcept;  // inside a catch block: status of the exception in flight

template <class F>
Status guarded(const char *function, F &&body) noexcept {
  try {
    return body();
  } catch (...) {
    return caught(function);
  }
}

}  // namespace ckpt

#define CKPT_TRY(expression)                                            \
  do {                                                                  \
    if (const ::ckpt::Status try_status_ = (expression); try_status_)   \
      return try_status_;                                               \
  } while (0)
