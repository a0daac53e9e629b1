/* libckpt: devices. A device is memory, streams and events of one kind. "cpu" is built in; others are plugins that are
 * loaded by name, so that one build serves machines with and without them. */
#ifndef CKPT_DEVICE_H
#define CKPT_DEVICE_H

#include "ckpt/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckpt_device ckpt_device;

enum { CKPT_DEVICE_KIND_CPU = 0, CKPT_DEVICE_KIND_CUDA = 1 };

typedef struct ckpt_device_info {
  uint32_t struct_size;
  uint32_t kind;          /* CKPT_DEVICE_KIND_* */
  uint32_t index;         /* "cuda:1" has index 1; 0 on the CPU */
  uint32_t thread_count;  /* CPU: hardware threads this process may use; 0 elsewhere */
  size_t total_bytes;     /* memory of the device */
  size_t available_bytes; /* not in use when asked */
  char name[64];          /* zero-terminated */
} ckpt_device_info;

/* Opens a device: "cpu", "cuda" (index 0), "cuda:1". *out_device is owned: close it.
 * Errors: INVALID_ARGUMENT (a name that does not parse), NOT_FOUND (no such device or no plugin for it), DEVICE. */
CKPT_API ckpt_status ckpt_device_open(const char *name, ckpt_device **out_device);

/* Drops the caller's count. Memory goes back when the last arena on the device is gone. NULL is fine. */
CKPT_API void ckpt_device_close(ckpt_device *device);

/* Fills *out_info; its struct_size must be set. Thread-safe. */
CKPT_API ckpt_status ckpt_device_get_info(const ckpt_device *device, ckpt_device_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
