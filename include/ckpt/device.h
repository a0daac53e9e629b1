/* libckpt: devices. A device is memory, streams and events of one kind. "cpu" is built in; others are plugins that are
 * loaded by name, so that one build serves machines with and without them.
 *
 * Streams. `void *stream` is the device's own handle: a cudaStream_t of that device on CUDA, whoever made it; NULL on the CPU, where
 * work is done when a call returns. On CUDA work is enqueued and goes on after a call has returned; the legacy default stream (NULL)
 * waits for all others and is refused (INVALID_ARGUMENT). No function here changes the thread's current CUDA device.
 *
 * Errors of every function that takes a device: INVALID_ARGUMENT, DEVICE (the device's own error: the text names the call, the error and
 * its number). An error after which the device cannot be used, such as an illegal address in a kernel, is found by a later call, whose
 * text names it; from then on calls are refused with DEVICE and that name until the process ends. Nothing aborts.
 *
 * Under capture (ckpt_device_capture_begin, or the caller's own cudaStreamBeginCapture) what cannot be part of a graph is refused with
 * CAPTURE, and the capture goes on. */
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

/* Opens a device: "cpu", "cuda" (index 0), "cuda:1". *out_device is owned: close it. Plugins are looked for in the folder that the
 * environment variable CKPT_PLUGIN_PATH names (where it is set), then beside libckpt, then on the loader's path.
 * Errors: INVALID_ARGUMENT (a name that does not parse), NOT_FOUND (no plugin, no driver, or no device of that index: the text says
 * which, and how many there are), DEVICE (a plugin of another version, a driver that is too old, with both numbers), UNSUPPORTED (a
 * device that the plugin's kernels cannot run on, a plugin in a program that is linked statically). */
CKPT_API ckpt_status ckpt_device_open(const char *name, ckpt_device **out_device);

/* Drops the caller's count. Memory goes back when the last arena on the device is gone. NULL is fine. */
CKPT_API void ckpt_device_close(ckpt_device *device);

/* Fills *out_info; its struct_size must be set. Thread-safe. */
CKPT_API ckpt_status ckpt_device_get_info(const ckpt_device *device, ckpt_device_info *out_info);

/* ---- work ---- (thread-safe; in the stream's order) */

/* Waits until all work that was enqueued on `stream` so far is done; of other streams it waits for nothing. Error: CAPTURE. */
CKPT_API ckpt_status ckpt_device_synchronize(ckpt_device *device, void *stream);

enum { CKPT_COPY_HOST_TO_DEVICE = 0, CKPT_COPY_DEVICE_TO_HOST = 1, CKPT_COPY_DEVICE_TO_DEVICE = 2 };

/* Copies `bytes` (0: nothing) that do not overlap; kind: CKPT_COPY_*. Memory is retained until the stream has done it. Host memory of
 * ckpt_device_host_alloc is copied while the host goes on; other host memory may make the call wait for the copy, and is refused under
 * capture (CAPTURE). On the CPU all kinds are the same. */
CKPT_API ckpt_status ckpt_device_copy(ckpt_device *device, void *stream, void *to, const void *from, size_t bytes, uint32_t kind);

/* Sets `bytes` of device memory to `value`. */
CKPT_API ckpt_status ckpt_device_fill(ckpt_device *device, void *stream, void *data, uint8_t value, size_t bytes);

/* A stream that waits for no other. *out_stream is owned; NULL on the CPU. Destroying may wait for its work; NULL is fine. */
CKPT_API ckpt_status ckpt_device_stream_create(ckpt_device *device, void **out_stream);
CKPT_API void ckpt_device_stream_destroy(ckpt_device *device, void *stream);

/* Host memory that the device copies from and to by itself (pinned; on the CPU: any). It is taken from the system at once and is
 * scarce: take one piece for the whole run. *out_data is owned, aligned to 256 at least; freed with the same `bytes`. NULL is fine.
 * Errors: OUT_OF_MEMORY. */
CKPT_API ckpt_status ckpt_device_host_alloc(ckpt_device *device, size_t bytes, void **out_data);
CKPT_API void ckpt_device_host_free(ckpt_device *device, void *data, size_t bytes);

/* ---- graphs: work that is captured once and launched many times (CUDA) ----
 *
 * Between begin and end, work on the stream is not done but noted. A graph names addresses: all memory that the work reads and writes
 * must be there, with the wanted contents, at each launch. Host code in between runs once, at the capture. For a whole step of a tape:
 * ckpt_tape_replay in tape.h. */
typedef struct ckpt_graph ckpt_graph;

/* Begins. Errors: STATE (the stream is being captured already), UNSUPPORTED (CPU). */
CKPT_API ckpt_status ckpt_device_capture_begin(ckpt_device *device, void *stream);

/* Ends, on the thread that began: on another it is refused (CAPTURE), and the capture goes on. Else, whatever is returned, the stream is
 * not captured any longer and can be used. *out_graph is owned; it retains the device. Errors: STATE (it was not), CAPTURE (something
 * illegal has invalidated the capture, a forked stream was not joined), UNSUPPORTED (CPU). */
CKPT_API ckpt_status ckpt_device_capture_end(ckpt_device *device, void *stream, ckpt_graph **out_graph);

/* Enqueues the captured work on `stream`, which need not be the one that it was captured on. Thread-safe for different graphs.
 * Error: CAPTURE. */
CKPT_API ckpt_status ckpt_graph_launch(ckpt_graph *graph, void *stream);

/* Launches that are under way run to their end. NULL is fine. */
CKPT_API void ckpt_graph_destroy(ckpt_graph *graph);

/* For companion libraries such as libckpt_ops, not for applications: the table of functions that a device's plugin has under `name`
 * ("ops"), and the pointer that its functions take as the device. Both live as long as the device is open. The table's layout is
 * between the plugin and the companion library of the same release; its first word is its version. NULL: there is none
 * (NOT_FOUND; the CPU has no plugin). */
CKPT_API const void *ckpt_device_interface(const ckpt_device *device, const char *name, void **out_self);

#ifdef __cplusplus
}
#endif
#endif
