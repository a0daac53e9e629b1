/* The part of the raw module that is written by hand: what SWIG's wrappers call, and the types and functions that the package's hot
 * path is made of (frames, views, calls into Python). */
#ifndef CKPT_PYTHON_NATIVE_H
#define CKPT_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ckpt/ckpt.h"

#if PY_VERSION_HEX < 0x03090000
#error "Python 3.9 or later is needed"
#endif

#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(void *object) { return Py_INCREF((PyObject *)object), (PyObject *)object; }
#endif

/* Adds types and functions to the module. 0, or -1 with an exception set. */
int ckpt_py_init(PyObject *module);

/* Sets the exception for a status that is not 0: what a Python callback raised, or ckpt.Error with the library's text. `function`
 * says whose text: that of the core or that of the layers. */
void ckpt_py_raise(ckpt_status status, const char *function);

/* The address in `object`: None, int, View, buffer, __cuda_array_interface__. formats: the struct-module codes that a buffer's
 * elements may have, NULL: any; "": no buffer at all. held: what PyBuffer_Release takes when the address is no longer used. */
int ckpt_py_pointer(PyObject *object, const char *function, const char *argument, const char *formats, Py_buffer *held, void **address);

/* The text in a str or bytes object, borrowed from it. None: NULL. */
int ckpt_py_text(PyObject *object, const char *function, const char *argument, const char **text);

/* value, (result, value) or (..., value). Takes over both references. */
PyObject *ckpt_py_append(PyObject *result, PyObject *value);

/* An int, or None for NULL. */
PyObject *ckpt_py_address(const void *address);

/* ---- views: views.c ---- */

/* Memory that is borrowed for a while. When the lease is over, `live` is 0 and every use raises. */
typedef struct {
  PyObject_HEAD
  void *data;
  size_t bytes;
  PyObject *shape;   /* tuple of int */
  PyObject *dtype;   /* numpy.dtype, or NULL: bytes */
  PyObject *keeper;  /* keeps the memory mapped */
  PyObject *label;   /* what this memory is, or NULL: made from the next four when somebody asks */
  PyObject *segment; /* its name */
  PyObject *item;    /* name of the slot, number of the input */
  const char *what;  /* "slot" */
  unsigned long long number; /* of the segment in its recording */
  void *stream;
  int device_type;   /* as in DLPack: 1 CPU, 2 CUDA */
  int device_index;
  int readonly;
  int live;
} ckpt_py_view;

extern PyTypeObject ckpt_py_view_type;

/* The NumPy array of a view on the CPU, or the view itself elsewhere. Takes over the reference. */
PyObject *ckpt_py_view_array(ckpt_py_view *view);
/* "segment 'layer' (number 3): slot 'pre'"; borrowed. */
PyObject *ckpt_py_view_label(ckpt_py_view *view);
/* The lease is over. 1 if something outside still refers to the view, `own` references left out. */
int ckpt_py_view_end(ckpt_py_view *view, Py_ssize_t own);
int ckpt_py_views_init(PyObject *module);

/* ---- frames and calls: frames.c ---- */
int ckpt_py_frames_init(PyObject *module);

/* ckpt.errors: (status, text) -> exception. Sets it. */
void ckpt_py_error(ckpt_status status, const char *format, ...);
/* Keeps the exception that is set for the call into the library that is in progress; gives the status to return to it. */
ckpt_status ckpt_py_keep_exception(void);
/* The exception that is kept, cleared; NULL: none. */
PyObject *ckpt_py_kept(void);

#endif
