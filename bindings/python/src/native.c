/* What SWIG's wrappers call: exceptions for statuses, addresses of Python objects. */
#include "native.h"

#include <stdarg.h>
#include <string.h>

#ifndef CKPT_WITHOUT_OPS
#include "ckpt/ops.h"
#endif

/* ---- exceptions ---- */

static PyObject *make_error;                  /* ckpt.errors.make: (status, text) -> exception */
static _Thread_local PyObject *kept_exception; /* raised by a callback of the call into the library in progress on this thread */

/* Positive, so that it comes back unchanged; only the exception that goes with it says what happened. */
enum { EXCEPTION_STATUS = 0x5079 };

static void set_error(ckpt_status status, const char *text) {
  if (!make_error) {
    PyErr_Format(PyExc_RuntimeError, "%s: %s", ckpt_status_name(status), text);
    return;
  }
  PyObject *decoded = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  PyObject *error = decoded ? PyObject_CallFunction(make_error, "iN", (int)status, decoded) : NULL;
  if (!error) return;
  PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_DECREF(error);
}

void ckpt_py_error(ckpt_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  PyObject *text = PyUnicode_FromFormatV(format, list);
  va_end(list);
  const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
  if (utf8) set_error(status, utf8);
  Py_XDECREF(text);
}

ckpt_status ckpt_py_keep_exception(void) {
  PyObject *type = NULL, *value = NULL, *trace = NULL;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  if (kept_exception) Py_XDECREF(value); /* the first one says why */
  else kept_exception = value;
  return EXCEPTION_STATUS;
}

PyObject *ckpt_py_kept(void) {
  PyObject *kept = kept_exception;
  kept_exception = NULL;
  return kept;
}

static int is_layers(const char *function) {
  return strncmp(function, "ckpt_ops_", 9) == 0 || strncmp(function, "ckpt_layer_", 11) == 0 || strncmp(function, "ckpt_gpt_", 9) == 0;
}

void ckpt_py_raise(ckpt_status status, const char *function) {
  PyObject *kept = ckpt_py_kept();
  if (kept && status == EXCEPTION_STATUS) {
    PyErr_SetObject((PyObject *)Py_TYPE(kept), kept);
    Py_DECREF(kept);
    return;
  }
  Py_XDECREF(kept);
#ifndef CKPT_WITHOUT_OPS
  if (is_layers(function)) {
    set_error(status, ckpt_ops_last_error());
    return;
  }
#else
  (void)is_layers;
#endif
  (void)function;
  set_error(status, ckpt_last_error());
}

static PyObject *set_error_maker(PyObject *module, PyObject *maker) {
  (void)module;
  Py_INCREF(maker);
  Py_XSETREF(make_error, maker);
  Py_RETURN_NONE;
}

/* ---- addresses ---- */

static void refuse(PyObject *object, const char *function, const char *argument, const char *expected) {
  PyErr_Format(PyExc_TypeError, "%s: argument %s is %.200s, expected %s", function, argument, Py_TYPE(object)->tp_name, expected);
}

static int from_buffer(PyObject *object, const char *function, const char *argument, const char *formats, Py_buffer *held, void **address) {
  if (PyObject_GetBuffer(object, held, PyBUF_CONTIG_RO | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object, held, PyBUF_FULL_RO) != 0) return -1;
    PyBuffer_Release(held);
    PyErr_Format(PyExc_ValueError, "%s: argument %s is not contiguous, expected an array in C order (numpy.ascontiguousarray makes one)", function,
                 argument);
    return -1;
  }
  const char *format = held->format ? held->format : "B";
  while (*format == '@' || *format == '=' || *format == '<') ++format;
  if (formats && !(strlen(format) == 1 && strchr(formats, *format))) {
    PyErr_Format(PyExc_TypeError, "%s: argument %s has elements of type '%s' (as the struct module names them), expected one of '%s'", function, argument,
                 held->format ? held->format : "B", formats);
    PyBuffer_Release(held);
    return -1;
  }
  *address = held->buf;
  return 0;
}

static int from_cuda(PyObject *interface, const char *function, const char *argument, void **address) {
  PyObject *data = PyMapping_GetItemString(interface, "data");
  PyObject *strides = PyMapping_HasKeyString(interface, "strides") ? PyMapping_GetItemString(interface, "strides") : NULL;
  int failed = !data || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1;
  if (!failed && strides && strides != Py_None) {
    PyErr_Format(PyExc_ValueError, "%s: argument %s has strides, expected an array in C order", function, argument);
    failed = 1;
  }
  if (!failed) *address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
  Py_XDECREF(data);
  Py_XDECREF(strides);
  return failed || PyErr_Occurred() ? -1 : 0;
}

int ckpt_py_pointer(PyObject *object, const char *function, const char *argument, const char *formats, Py_buffer *held, void **address) {
  *address = NULL;
  if (object == Py_None) return 0;
  if (PyLong_Check(object)) {
    *address = PyLong_AsVoidPtr(object);
    return PyErr_Occurred() ? -1 : 0;
  }
  if (held && Py_TYPE(object) == &ckpt_py_view_type) {
    ckpt_py_view *view = (ckpt_py_view *)object;
    if (view->live) return *address = view->data, 0;
    ckpt_py_error(CKPT_ERROR_STALE, "%s: argument %s: %U: its lease is over", function, argument, ckpt_py_view_label(view));
    return -1;
  }
  if (held && PyObject_CheckBuffer(object)) return from_buffer(object, function, argument, formats, held, address);
  PyObject *interface = held ? PyObject_GetAttrString(object, "__cuda_array_interface__") : NULL;
  if (interface) {
    const int status = from_cuda(interface, function, argument, address);
    Py_DECREF(interface);
    return status;
  }
  PyErr_Clear();
  refuse(object, function, argument, held ? "None, an address, an array (buffer protocol or __cuda_array_interface__) or the struct" : "None or an address");
  return -1;
}

int ckpt_py_text(PyObject *object, const char *function, const char *argument, const char **text) {
  *text = NULL;
  if (object == Py_None) return 0;
  Py_ssize_t length = 0;
  if (PyUnicode_Check(object)) *text = PyUnicode_AsUTF8AndSize(object, &length);
  if (PyBytes_Check(object)) *text = PyBytes_AS_STRING(object), length = PyBytes_GET_SIZE(object);
  if (*text && strlen(*text) != (size_t)length)
    return PyErr_Format(PyExc_ValueError, "%s: argument %s is %R, expected a text without a NUL in it", function, argument, object), -1;
  if (*text || PyErr_Occurred()) return *text ? 0 : -1;
  if (PyLong_Check(object)) return (*text = PyLong_AsVoidPtr(object)), PyErr_Occurred() ? -1 : 0;
  refuse(object, function, argument, "str, bytes or None");
  return -1;
}

PyObject *ckpt_py_append(PyObject *result, PyObject *value) {
  if (!value || !result || result == Py_None) {
    Py_XDECREF(result);
    return value;
  }
  if (!PyTuple_Check(result)) return Py_BuildValue("(NN)", result, value);
  PyObject *one = Py_BuildValue("(N)", value), *both = one ? PySequence_Concat(result, one) : NULL;
  Py_DECREF(result);
  Py_XDECREF(one);
  return both;
}

PyObject *ckpt_py_address(const void *address) {
  if (!address) Py_RETURN_NONE;
  return PyLong_FromVoidPtr((void *)address);
}

/* (object, writable, name) -> (address, bytes, shape, format or typestr, device type, keeper): of an array in C order, whichever protocol
 * it has. */
static PyObject *array_info(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *object;
  int writable;
  const char *name;
  if (!PyArg_ParseTuple(args, "Ops", &object, &writable, &name)) return NULL;
  if (!PyObject_CheckBuffer(object) || (Py_TYPE(object) == &ckpt_py_view_type && ((ckpt_py_view *)object)->device_type != 1)) {
    PyObject *interface = PyObject_GetAttrString(object, "__cuda_array_interface__");
    if (!interface) {
      if (PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Format(PyExc_TypeError, "%s is %.200s, expected an array with the buffer protocol or __cuda_array_interface__", name,
                     Py_TYPE(object)->tp_name);
      return NULL;
    }
    return Py_BuildValue("(iN)", 2, interface);
  }
  PyObject *view = PyMemoryView_FromObject(object);
  if (!view) return NULL;
  const Py_buffer *b = PyMemoryView_GET_BUFFER(view);
  if (!PyBuffer_IsContiguous(b, 'C')) {
    Py_DECREF(view);
    return PyErr_Format(PyExc_ValueError, "%s is not contiguous, expected an array in C order (numpy.ascontiguousarray makes one)", name);
  }
  if (writable && b->readonly) {
    Py_DECREF(view);
    return PyErr_Format(PyExc_ValueError, "%s is read-only, expected an array that can be written", name);
  }
  return Py_BuildValue("(iNnN)", 1, PyLong_FromVoidPtr(b->buf), b->len, view);
}

/* For functions that return a pointer. */
static PyObject *raise_last(PyObject *module, PyObject *function) {
  (void)module;
  const char *name = PyUnicode_AsUTF8(function);
  if (name) ckpt_py_raise(ckpt_last_status(), name);
  return NULL;
}

static PyMethodDef functions[] = {
  {"raise_last", raise_last, METH_O, NULL},
  {"set_error_maker", set_error_maker, METH_O, NULL},
  {"array_info", array_info, METH_VARARGS, NULL},
  {NULL, NULL, 0, NULL},
};

int ckpt_py_init(PyObject *module) {
  return PyModule_AddFunctions(module, functions) != 0 || ckpt_py_views_init(module) != 0 || ckpt_py_frames_init(module) != 0 ? -1 : 0;
}
