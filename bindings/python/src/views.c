/* Views: borrowed device memory as Python sees it. A view lends its memory through the buffer protocol (CPU), DLPack and
 * __cuda_array_interface__, never by a copy. Whatever is made from it (an array, a memoryview, a tensor) refers to the view, so the
 * view's reference count says whether something outlives the lease; after it every use of the view itself raises. */
#include "native.h"

#include <stddef.h>
#include <string.h>

static PyObject *ndarray_type; /* numpy.ndarray */
static PyObject *bytes_dtype;  /* numpy.dtype("uint8") */

/* ---- leases ---- */

PyObject *ckpt_py_view_label(ckpt_py_view *v) {
  if (!v->label) v->label = PyUnicode_FromFormat("segment '%U' (number %llu): %s '%U'", v->segment, v->number, v->what, v->item);
  if (!v->label) {
    PyErr_Clear();
    v->label = PyUnicode_FromString("a view");
  }
  return v->label;
}

static int alive(ckpt_py_view *v) {
  if (v->live) return 1;
  ckpt_py_error(CKPT_ERROR_STALE, "%U: this view's lease is over: its memory may hold something else by now; copy what is needed later", ckpt_py_view_label(v));
  return 0;
}

int ckpt_py_view_end(ckpt_py_view *v, Py_ssize_t own) {
  v->live = 0;
  return Py_REFCNT(v) > own;
}

static void view_dealloc(ckpt_py_view *v) {
  Py_CLEAR(v->shape);
  Py_CLEAR(v->dtype);
  Py_CLEAR(v->label);
  Py_CLEAR(v->segment);
  Py_CLEAR(v->item);
  Py_CLEAR(v->keeper);
  Py_TYPE(v)->tp_free((PyObject *)v);
}

/* ---- the buffer protocol ---- */

static int view_getbuffer(ckpt_py_view *v, Py_buffer *buffer, int flags) {
  buffer->obj = NULL;
  if (!alive(v)) return -1;
  if (v->device_type != 1) {
    PyErr_Format(PyExc_BufferError, "%U is memory of a CUDA device: use DLPack or __cuda_array_interface__", ckpt_py_view_label(v));
    return -1;
  }
  return PyBuffer_FillInfo(buffer, (PyObject *)v, v->data, (Py_ssize_t)v->bytes, v->readonly, flags);
}

static PyBufferProcs view_buffer = {(getbufferproc)view_getbuffer, NULL};

PyObject *ckpt_py_view_array(ckpt_py_view *v) {
  if (v->device_type != 1) return (PyObject *)v;
  PyObject *arguments[] = {NULL, v->shape, v->dtype ? v->dtype : bytes_dtype, (PyObject *)v};
  PyObject *array = PyObject_Vectorcall(ndarray_type, arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
  Py_DECREF(v);
  return array;
}

/* ---- DLPack (its version 1 structures, written down from the specification) ---- */

typedef struct {
  void *data;
  int32_t device_type, device_id;
  int32_t dimensions;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct dl_versioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct dl_versioned *);
  uint64_t flags; /* bit 0: read-only */
  dl_tensor tensor;
} dl_versioned;

static void release_context(void *view) {
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF((PyObject *)view);
  PyGILState_Release(state);
}
static void delete_managed(dl_managed *m) {
  release_context(m->context);
  PyMem_RawFree(m->tensor.shape);
  PyMem_RawFree(m);
}
static void delete_versioned(dl_versioned *m) {
  release_context(m->context);
  PyMem_RawFree(m->tensor.shape);
  PyMem_RawFree(m);
}
static void drop_managed(PyObject *capsule) {
  dl_managed *m = PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
  if (m) m->deleter(m);
}
static void drop_versioned(PyObject *capsule) {
  dl_versioned *m = PyCapsule_IsValid(capsule, "dltensor_versioned") ? PyCapsule_GetPointer(capsule, "dltensor_versioned") : NULL;
  if (m) m->deleter(m);
}

static int fill_dtype(ckpt_py_view *v, dl_tensor *t) {
  t->lanes = 1;
  t->code = 1;
  t->bits = 8;
  if (!v->dtype) return 0;
  PyObject *kind = PyObject_GetAttrString(v->dtype, "kind"), *size = PyObject_GetAttrString(v->dtype, "itemsize");
  PyObject *name = PyObject_GetAttrString(v->dtype, "name");
  int failed = !kind || !size || !name;
  if (!failed) {
    const char letter = PyUnicode_AsUTF8(kind)[0];
    const char *at = strchr("iuf", letter);
    t->bits = (uint8_t)(8 * PyLong_AsLong(size));
    if (strcmp(PyUnicode_AsUTF8(name), "bfloat16") == 0) t->code = 4;
    else if (letter == 'c') t->code = 5;
    else if (letter == 'b') t->code = 6;
    else if (at) t->code = (uint8_t)(at - "iuf");
    else failed = 1, PyErr_Format(PyExc_BufferError, "%U: DLPack has no element type for %R", ckpt_py_view_label(v), v->dtype);
  }
  Py_XDECREF(kind);
  Py_XDECREF(size);
  Py_XDECREF(name);
  return failed ? -1 : 0;
}

static int fill_tensor(ckpt_py_view *v, dl_tensor *t) {
  const Py_ssize_t n = PyTuple_GET_SIZE(v->shape);
  memset(t, 0, sizeof *t);
  t->data = v->data;
  t->device_type = v->device_type;
  t->device_id = v->device_index;
  t->dimensions = (int32_t)n;
  if (fill_dtype(v, t) != 0) return -1;
  t->shape = PyMem_RawMalloc(sizeof(int64_t) * 2 * (size_t)(n ? n : 1));
  if (!t->shape) return PyErr_NoMemory(), -1;
  t->strides = t->shape + n;
  int64_t stride = 1;
  for (Py_ssize_t k = n; k-- > 0;) {
    t->shape[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(v->shape, k));
    t->strides[k] = stride;
    stride *= t->shape[k];
  }
  return 0;
}

/* The consumer's stream must be the arena's: this library has one stream an arena, and waits for no other here. */
static int check_stream(ckpt_py_view *v, PyObject *stream) {
  if (v->device_type != 2 || !stream) return 0;
  const long long asked = stream == Py_None ? 1 : PyLong_AsLongLong(stream);
  if (asked == -1 && PyErr_Occurred()) return -1;
  const long long mine = v->stream ? (long long)(intptr_t)v->stream : 1;
  if (asked == -1 || asked == mine) return 0;
  PyErr_Format(PyExc_BufferError, "%U: asked for on stream %lld, but its work is on stream %lld: make that stream current (frame.stream)", ckpt_py_view_label(v),
               asked, mine);
  return -1;
}

static PyObject *view_dlpack(ckpt_py_view *v, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = NULL, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy) || !alive(v)) return NULL;
  if (copy == Py_True) return PyErr_SetString(PyExc_BufferError, "a view lends its memory: copy=True cannot be done here"), NULL;
  if (device != Py_None) {
    int type = 0, index = 0;
    if (!PyArg_ParseTuple(device, "ii;dl_device", &type, &index)) return NULL;
    if (type != v->device_type || index != v->device_index)
      return PyErr_Format(PyExc_BufferError, "%U is on DLPack device (%d, %d), not (%d, %d)", ckpt_py_view_label(v), v->device_type, v->device_index, type, index);
  }
  if (check_stream(v, stream) != 0) return NULL;
  int major = 0, minor = 0;
  if (version != Py_None && !PyArg_ParseTuple(version, "ii;max_version", &major, &minor)) return NULL;
  dl_tensor t;
  if (fill_tensor(v, &t) != 0) return PyMem_RawFree(t.shape), NULL;
  PyObject *capsule = NULL;
  if (major >= 1) {
    dl_versioned *m = PyMem_RawMalloc(sizeof *m);
    if (m) *m = (dl_versioned){1, 0, v, delete_versioned, v->readonly ? 1u : 0u, t};
    if (m && !(capsule = PyCapsule_New(m, "dltensor_versioned", drop_versioned))) PyMem_RawFree(m);
  } else {
    dl_managed *m = PyMem_RawMalloc(sizeof *m);
    if (m) *m = (dl_managed){t, v, delete_managed};
    if (m && !(capsule = PyCapsule_New(m, "dltensor", drop_managed))) PyMem_RawFree(m);
  }
  if (!capsule) return PyMem_RawFree(t.shape), PyErr_Occurred() ? NULL : PyErr_NoMemory();
  Py_INCREF(v);
  return capsule;
}

static PyObject *view_dlpack_device(ckpt_py_view *v, PyObject *unused) {
  (void)unused;
  return Py_BuildValue("(ii)", v->device_type, v->device_index);
}

/* ---- __cuda_array_interface__ ---- */

static PyObject *view_cuda(ckpt_py_view *v, void *unused) {
  (void)unused;
  if (v->device_type != 2) return PyErr_SetString(PyExc_AttributeError, "__cuda_array_interface__: this memory is not on a CUDA device"), NULL;
  if (!alive(v)) return NULL;
  PyObject *text = PyObject_GetAttrString(v->dtype ? v->dtype : bytes_dtype, "str");
  if (!text) return NULL;
  const unsigned long long stream = v->stream ? (unsigned long long)(uintptr_t)v->stream : 1;
  return Py_BuildValue("{s:O,s:N,s:(NN),s:O,s:i,s:K}", "shape", v->shape, "typestr", text, "data", PyLong_FromVoidPtr(v->data),
                       PyBool_FromLong(v->readonly), "strides", Py_None, "version", 3, "stream", stream);
}

/* ---- the rest ---- */

static PyObject *view_get_address(ckpt_py_view *v, void *unused) {
  (void)unused;
  return alive(v) ? PyLong_FromVoidPtr(v->data) : NULL;
}
static PyObject *view_get_live(ckpt_py_view *v, void *unused) { (void)unused; return PyBool_FromLong(v->live); }
static PyObject *view_get_bytes(ckpt_py_view *v, void *unused) { (void)unused; return PyLong_FromSize_t(v->bytes); }
static PyObject *view_get_readonly(ckpt_py_view *v, void *unused) { (void)unused; return PyBool_FromLong(v->readonly); }
static PyObject *view_get_shape(ckpt_py_view *v, void *unused) { (void)unused; return Py_INCREF(v->shape), v->shape; }
static PyObject *view_get_label(ckpt_py_view *v, void *unused) { (void)unused; PyObject *label = ckpt_py_view_label(v); return Py_INCREF(label), label; }
static PyObject *view_get_dtype(ckpt_py_view *v, void *unused) {
  (void)unused;
  PyObject *dtype = v->dtype ? v->dtype : bytes_dtype;
  return Py_INCREF(dtype), dtype;
}
static PyObject *view_repr(ckpt_py_view *v) {
  return PyUnicode_FromFormat("<ckpt.View of %U, %zu bytes%s>", ckpt_py_view_label(v), v->bytes, v->live ? "" : ", lease over");
}
static PyObject *view_numpy(ckpt_py_view *v, PyObject *unused) {
  (void)unused;
  if (!alive(v)) return NULL;
  if (v->device_type != 1) return PyErr_Format(PyExc_BufferError, "%U is memory of a CUDA device: no NumPy array of it", ckpt_py_view_label(v));
  Py_INCREF(v);
  return ckpt_py_view_array(v);
}

static PyMethodDef view_methods[] = {
  {"__dlpack__", (PyCFunction)(void (*)(void))view_dlpack, METH_VARARGS | METH_KEYWORDS, "A DLPack capsule of this memory; nothing is copied."},
  {"__dlpack_device__", (PyCFunction)view_dlpack_device, METH_NOARGS, "(DLPack device type, index)."},
  {"numpy", (PyCFunction)view_numpy, METH_NOARGS, "The NumPy array of this memory (CPU)."},
  {NULL, NULL, 0, NULL},
};
static PyGetSetDef view_fields[] = {
  {"__cuda_array_interface__", (getter)view_cuda, NULL, "As CuPy, PyTorch and Numba read it; CUDA memory alone.", NULL},
  {"address", (getter)view_get_address, NULL, "Where the memory is, on its device.", NULL},
  {"live", (getter)view_get_live, NULL, "False when the lease is over.", NULL},
  {"nbytes", (getter)view_get_bytes, NULL, "Size in bytes.", NULL},
  {"readonly", (getter)view_get_readonly, NULL, "True where nothing may be written.", NULL},
  {"shape", (getter)view_get_shape, NULL, "As it was declared; (nbytes,) for plain bytes.", NULL},
  {"dtype", (getter)view_get_dtype, NULL, "numpy.dtype; uint8 for plain bytes.", NULL},
  {"label", (getter)view_get_label, NULL, "What this memory is: segment and slot.", NULL},
  {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject ckpt_py_view_type = {
  PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ckpt.View",
  .tp_basicsize = sizeof(ckpt_py_view),
  .tp_dealloc = (destructor)view_dealloc,
  .tp_repr = (reprfunc)view_repr,
  .tp_as_buffer = &view_buffer,
  .tp_flags = Py_TPFLAGS_DEFAULT,
  .tp_doc = "Borrowed memory of an arena: buffer protocol on the CPU, DLPack, __cuda_array_interface__. Zero copy; every use after its lease raises.",
  .tp_methods = view_methods,
  .tp_getset = view_fields,
};

int ckpt_py_views_init(PyObject *module) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (!numpy) return -1;
  ndarray_type = PyObject_GetAttrString(numpy, "ndarray");
  bytes_dtype = PyObject_CallMethod(numpy, "dtype", "s", "uint8");
  Py_DECREF(numpy);
  if (!ndarray_type || !bytes_dtype || PyType_Ready(&ckpt_py_view_type) != 0) return -1;
  Py_INCREF(&ckpt_py_view_type);
  return PyModule_AddObject(module, "View", (PyObject *)&ckpt_py_view_type);
}
