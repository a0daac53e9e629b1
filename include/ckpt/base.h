/* libckpt: status codes, error text, version.
 *
 * Conventions of every header here:
 *   - Functions that can fail return a ckpt_status: 0 is success, negative values are libckpt's (frozen within a major
 *     version), positive values are the user's own, returned from a callback and passed through unchanged.
 *   - Ownership words: *borrowed* (for the call), *retained* (until a named event), *owned* (the caller frees it),
 *     *transferred*. Unless a text says otherwise an argument is borrowed.
 *   - Structs that grow start with struct_size = sizeof the struct as the caller compiled it. Shorter than in the first
 *     release is an error, shorter than the library's is extended with zeros, longer is accepted if the unknown tail is
 *     zero. Zero is the safe value of every field. Out-structs get the smaller of both sizes.
 *   - Functions may be called from any thread; two threads may not use the same object at once unless a text says so.
 *     The *_destroy and *_close functions take NULL, on any thread, in any order, also inside a callback.
 */
#ifndef CKPT_BASE_H
#define CKPT_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(SWIG)
#define CKPT_API __attribute__((visibility("default")))
#else
#define CKPT_API
#endif

#define CKPT_VERSION_MAJOR 0
#define CKPT_VERSION_MINOR 1
#define CKPT_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ckpt_status;

enum {
  CKPT_OK = 0,
  CKPT_ERROR_INVALID_ARGUMENT = -1, /* NULL, out of range, unknown value: the text names argument, value, expectation */
  CKPT_ERROR_STRUCT_SIZE = -2,      /* struct_size (or an element size) that this library cannot read */
  CKPT_ERROR_OUT_OF_MEMORY = -3,    /* the device or the host refused memory */
  CKPT_ERROR_BUDGET = -4,           /* the budget or the arena's capacity is too small: wanted, available, minimum */
  CKPT_ERROR_BUSY = -5,             /* used by another thread, or re-entered from a callback */
  CKPT_ERROR_STALE = -6,            /* a buffer of an earlier recording or of another tape; an object used after reset */
  CKPT_ERROR_STATE = -7,            /* a call out of order: end without begin, backward on nothing */
  CKPT_ERROR_NOT_FILLED = -8,       /* a callback left a wanted slot, output or gradient unasked */
  CKPT_ERROR_CHECK = -9,            /* a check failed: recomputed bytes differ, an input changed, wrong reads, guard bytes */
  CKPT_ERROR_OVERFLOW = -10,        /* sizes, steps or counts beyond what their encoding holds */
  CKPT_ERROR_NOT_FOUND = -11,       /* unknown name, key or device; a pattern that matches nothing */
  CKPT_ERROR_CONFLICT = -12,        /* two demands that exclude each other */
  CKPT_ERROR_DEVICE = -13,          /* the device's own error */
  CKPT_ERROR_CAPTURE = -14,         /* not possible while the stream is captured */
  CKPT_ERROR_UNSUPPORTED = -15,     /* this device or build cannot do it */
  CKPT_ERROR_INVALID_PLAN = -16,    /* a program that breaks a rule of the machine */
  CKPT_ERROR_INTERNAL = -17         /* a fault of libckpt: please report the text */
};

/* This thread's text for its latest failure: one sentence, at most 1023 bytes, UTF-8, never NULL, "" before the first
 * failure. Borrowed; the next failing call on this thread overwrites it. Set only on failure. */
CKPT_API const char *ckpt_last_error(void);

/* The status that belongs to ckpt_last_error(). For functions that return a pointer. */
CKPT_API ckpt_status ckpt_last_status(void);

/* A code's name without prefix, "BUDGET"; "USER" for positive values, "UNKNOWN" for what is not ours. Static text. */
CKPT_API const char *ckpt_status_name(ckpt_status status);

/* Of the library that runs: major * 1000000 + minor * 1000 + patch; and "0.1.0". */
CKPT_API uint32_t ckpt_version(void);
CKPT_API const char *ckpt_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
