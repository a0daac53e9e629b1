/* What frames.c and segments.c share. */
#ifndef CKPT_PYTHON_FRAMES_H
#define CKPT_PYTHON_FRAMES_H

#include "native.h"

typedef struct {
  PyObject_HEAD
  ckpt_segment *handle;
  PyObject *name;
  PyObject *forward, *backward, *save, *restore; /* callables or None */
  PyObject *slots, *outputs;                     /* tuples of (name, bytes, shape or None, dtype or None) */
  PyObject *slot_index, *output_index;           /* name -> number */
  PyObject *memories;                            /* keeps the caller's memory of outputs */
  size_t state_bytes;
  Py_ssize_t input_count;
} segment_object;

/* One use of a segment: the `user` of its ckpt_call, released by the recording. */
typedef struct {
  PyObject_HEAD
  segment_object *segment;
  PyObject *user;
  PyObject *inputs;         /* tuple of (shape, dtype) or None, one an input */
  PyObject *slots, *outputs; /* as the segment's, or with the sizes of this call */
  PyObject *keeper;
  PyObject *watched; /* tuple of (name as bytes, address, bytes, keeper), or None */
  int device_type, device_index;
} call_object;

typedef struct {
  PyObject_HEAD
  ckpt_frame *handle; /* NULL when the frame is over */
  call_object *call;
  ckpt_py_view **views;
  Py_ssize_t view_count, view_room;
} frame_object;

extern PyTypeObject ckpt_py_segment_type, ckpt_py_call_type, ckpt_py_frame_type;
extern PyObject *ckpt_py_make_philox; /* (seed, subsequence, offset) -> ckpt.Philox */
extern PyObject *ckpt_py_spec_of;     /* ckpt.memory.spec_of: (shape, dtype, name) -> (shape, dtype, bytes) */

/* The trampolines: `user` is a call_object, or what release_object gives back. */
ckpt_status ckpt_py_forward(void *user, ckpt_frame *frame);
ckpt_status ckpt_py_backward(void *user, ckpt_frame *frame);
ckpt_status ckpt_py_save(void *user, void *memory);
ckpt_status ckpt_py_restore(void *user, void *memory);
void ckpt_py_release(void *user);
void ckpt_py_trace(void *user, uint32_t what, uint32_t index, size_t in_use_bytes, uint32_t is_recompute);
/* Runs callable(frame) as a callback is run. */
ckpt_status ckpt_py_run(PyObject *callable, call_object *call, ckpt_frame *frame);
int ckpt_py_segments_init(PyObject *module);

#endif
