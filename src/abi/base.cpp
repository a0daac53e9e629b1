#include "base/status.h"
#include "ckpt/base.h"

#define CKPT_TEXT_OF(x) #x
#define CKPT_TEXT(x) CKPT_TEXT_OF(x)

extern "C" {

const char *ckpt_last_error(void) { return ckpt::last_error(); }
ckpt_status ckpt_last_status(void) { return ckpt::last_status(); }

const char *ckpt_status_name(ckpt_status status) {
  if (status > 0) return "USER";
  static constexpr const char *kNames[] = {"OK", "INVALID_ARGUMENT", "STRUCT_SIZE", "OUT_OF_MEMORY", "BUDGET", "BUSY",
                                           "STALE", "STATE", "NOT_FILLED", "CHECK", "OVERFLOW", "NOT_FOUND", "CONFLICT",
                                           "DEVICE", "CAPTURE", "UNSUPPORTED", "INVALID_PLAN", "INTERNAL"};
  constexpr int64_t kCount = sizeof kNames / sizeof kNames[0];
  const int64_t index = -static_cast<int64_t>(status);
  return index < kCount ? kNames[index] : "UNKNOWN";
}

uint32_t ckpt_version(void) { return CKPT_VERSION_MAJOR * 1000000 + CKPT_VERSION_MINOR * 1000 + CKPT_VERSION_PATCH; }

const char *ckpt_version_string(void) {
  return CKPT_TEXT(CKPT_VERSION_MAJOR) "." CKPT_TEXT(CKPT_VERSION_MINOR) "." CKPT_TEXT(CKPT_VERSION_PATCH);
}

}  // extern "C"
