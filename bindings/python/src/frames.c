/* Frames of the package's hot path: the trampolines that the library calls, and the object that a Python callback gets. A callback
 * runs with the GIL; everything else of the library runs without. */
#include "frames.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static PyObject *collect;      /* gc.collect */
PyObject *ckpt_py_make_philox, *ckpt_py_spec_of;

/* A layer that owns its segment and gives it bound methods is a cycle. */
static int segment_traverse(segment_object *s, visitproc visit, void *arg) {
  Py_VISIT(s->forward);
  Py_VISIT(s->backward);
  Py_VISIT(s->save);
  Py_VISIT(s->restore);
  return 0;
}

static int segment_clear(segment_object *s) {
  Py_CLEAR(s->forward);
  Py_CLEAR(s->backward);
  Py_CLEAR(s->save);
  Py_CLEAR(s->restore);
  return 0;
}

static void segment_dealloc(segment_object *s) {
  PyObject_GC_UnTrack(s);
  ckpt_segment_destroy(s->handle);
  segment_clear(s);
  Py_CLEAR(s->name);
  Py_CLEAR(s->slots);
  Py_CLEAR(s->outputs);
  Py_CLEAR(s->slot_index);
  Py_CLEAR(s->output_index);
  Py_CLEAR(s->memories);
  Py_TYPE(s)->tp_free((PyObject *)s);
}

static void call_dealloc(call_object *c) {
  Py_CLEAR(c->watched);
  Py_CLEAR(c->user);
  Py_CLEAR(c->inputs);
  Py_CLEAR(c->slots);
  Py_CLEAR(c->outputs);
  Py_CLEAR(c->keeper);
  Py_CLEAR(c->segment);
  Py_TYPE(c)->tp_free((PyObject *)c);
}

/* ---- frames ---- */

static frame_object *frame_new(call_object *call, ckpt_frame *handle) {
  frame_object *f = PyObject_New(frame_object, &ckpt_py_frame_type);
  if (!f) return NULL;
  Py_INCREF(call);
  f->handle = handle;
  f->call = call;
  f->views = NULL;
  f->view_count = f->view_room = 0;
  return f;
}

static void drop_views(frame_object *f) {
  for (Py_ssize_t k = 0; k < f->view_count; ++k) {
    f->views[k]->live = 0;
    Py_DECREF(f->views[k]);
  }
  PyMem_Free(f->views);
  f->views = NULL;
  f->view_count = f->view_room = 0;
}

static void frame_dealloc(frame_object *f) {
  drop_views(f);
  Py_CLEAR(f->call);
  Py_TYPE(f)->tp_free((PyObject *)f);
}

static int open_frame(frame_object *f) {
  if (f->handle) return 1;
  ckpt_py_error(CKPT_ERROR_STALE, "a frame of segment '%U' is over: it may be used inside its callback only", f->call->segment->name);
  return 0;
}

/* All leases end with the frame. What outlives its own would read other tensors' bytes without a word, so it is an error of the
 * callback; cycles that only wait for the collector are none. 0, or -1 with an exception. */
static int end_leases(frame_object *f) {
  int lasting = 0;
  for (Py_ssize_t k = 0; k < f->view_count; ++k) lasting |= ckpt_py_view_end(f->views[k], 1);
  if (lasting) {
    PyObject *done = PyObject_CallNoArgs(collect);
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
  }
  for (Py_ssize_t k = 0; lasting && k < f->view_count; ++k)
    if (ckpt_py_view_end(f->views[k], 1)) {
      ckpt_py_error(CKPT_ERROR_STALE,
                    "%U: a view of it outlives its frame: its memory is for other tensors from now on; keep a copy instead, or drop it (del) "
                    "before the callback returns",
                    ckpt_py_view_label(f->views[k]));
      return -1;
    }
  return 0;
}

/* The callback's result (stolen) as a status. */
static ckpt_status finish(frame_object *f, PyObject *result) {
  ckpt_status status = CKPT_OK;
  if (!result) {
    status = ckpt_py_keep_exception();
  } else if (result != Py_None) {
    int beyond = 0;
    const long code = PyLong_Check(result) ? PyLong_AsLongAndOverflow(result, &beyond) : 0;
    if (!PyLong_Check(result))
      PyErr_Format(PyExc_TypeError, "a callback of segment '%U' returned %.200s, expected None or a status (int)", f->call->segment->name,
                   Py_TYPE(result)->tp_name);
    else if (beyond || code != (ckpt_status)code)
      PyErr_Format(PyExc_OverflowError, "a callback of segment '%U' returned %R, expected a status of 32 bits", f->call->segment->name, result);
    else
      status = (ckpt_status)code;
    Py_DECREF(result);
    if (PyErr_Occurred()) status = ckpt_py_keep_exception();
  }
  if (status == CKPT_OK && end_leases(f) != 0) status = ckpt_py_keep_exception();
  f->handle = NULL;
  drop_views(f);
  return status;
}

ckpt_status ckpt_py_run(PyObject *callable, call_object *call, ckpt_frame *handle) {
  frame_object *f = frame_new(call, handle);
  if (!f) return ckpt_py_keep_exception();
  const ckpt_status status = finish(f, PyObject_CallOneArg(callable, (PyObject *)f));
  Py_DECREF(f);
  return status;
}

/* A thread that asks for the GIL while the interpreter goes down is ended by pthread_exit (until Python 3.14, which lets it hang): that cannot
 * pass the library's frames, so it hangs here. */
static void hang(void *unused) {
  (void)unused;
  for (;;) pause();
}

typedef ckpt_status body_fn(void *user, void *argument);

static ckpt_status with_gil(body_fn *body, void *user, void *argument) {
  ckpt_status status;
  pthread_cleanup_push(hang, NULL);
  const PyGILState_STATE state = PyGILState_Ensure();
  status = body(user, argument);
  PyGILState_Release(state);
  pthread_cleanup_pop(0);
  return status;
}

static ckpt_status forward_body(void *user, void *frame) { return ckpt_py_run(((call_object *)user)->segment->forward, user, frame); }
static ckpt_status backward_body(void *user, void *frame) { return ckpt_py_run(((call_object *)user)->segment->backward, user, frame); }

static ckpt_status save_body(void *user, void *memory) {
  const segment_object *s = ((call_object *)user)->segment;
  ckpt_status status = CKPT_OK;
  PyObject *saved = PyObject_CallOneArg(s->save, ((call_object *)user)->user);
  Py_buffer b;
  if (!saved || PyObject_GetBuffer(saved, &b, PyBUF_SIMPLE) != 0) {
    status = ckpt_py_keep_exception();
  } else {
    if ((size_t)b.len != s->state_bytes) {
      PyErr_Format(PyExc_ValueError, "save_state of segment '%U' returned %zd bytes, expected state_bytes, %zu", s->name, b.len, s->state_bytes);
      status = ckpt_py_keep_exception();
    } else {
      memcpy(memory, b.buf, s->state_bytes);
    }
    PyBuffer_Release(&b);
  }
  Py_XDECREF(saved);
  return status;
}

static ckpt_status restore_body(void *user, void *memory) {
  const segment_object *s = ((call_object *)user)->segment;
  PyObject *result = PyObject_CallFunction(s->restore, "Oy#", ((call_object *)user)->user, (const char *)memory, (Py_ssize_t)s->state_bytes);
  const ckpt_status status = result ? CKPT_OK : ckpt_py_keep_exception();
  Py_XDECREF(result);
  return status;
}

static ckpt_status release_body(void *user, void *unused) {
  (void)unused;
  Py_DECREF((PyObject *)user);
  return CKPT_OK;
}

typedef struct {
  uint32_t what, index, is_recompute;
  size_t in_use_bytes;
} trace_event;

static ckpt_status trace_body(void *user, void *argument) {
  const trace_event *e = argument;
  PyObject *result = PyObject_CallFunction(user, "IInN", e->what, e->index, (Py_ssize_t)e->in_use_bytes, PyBool_FromLong((long)e->is_recompute));
  if (!result) PyErr_WriteUnraisable(user);
  Py_XDECREF(result);
  return CKPT_OK;
}

ckpt_status ckpt_py_forward(void *user, ckpt_frame *frame) { return with_gil(forward_body, user, frame); }
ckpt_status ckpt_py_backward(void *user, ckpt_frame *frame) { return with_gil(backward_body, user, frame); }
ckpt_status ckpt_py_save(void *user, void *memory) { return with_gil(save_body, user, memory); }
ckpt_status ckpt_py_restore(void *user, void *memory) { return with_gil(restore_body, user, memory); }
void ckpt_py_release(void *user) { (void)with_gil(release_body, user, NULL); }
void ckpt_py_trace(void *user, uint32_t what, uint32_t index, size_t in_use_bytes, uint32_t is_recompute) {
  trace_event event = {what, index, is_recompute, in_use_bytes};
  (void)with_gil(trace_body, user, &event);
}

/* ---- a frame's questions ---- */

/* A slot's (output's, input's) number from an int or a name. */
static int number_of(frame_object *f, PyObject *key, PyObject *index, Py_ssize_t count, const char *what, uint32_t *out) {
  if (!open_frame(f)) return -1;
  if (index && PyUnicode_Check(key)) {
    PyObject *number = PyDict_GetItemWithError(index, key);
    if (!number) {
      if (!PyErr_Occurred()) ckpt_py_error(CKPT_ERROR_NOT_FOUND, "segment '%U' has no %s '%U'", f->call->segment->name, what, key);
      return -1;
    }
    key = number;
  }
  const Py_ssize_t k = PyLong_Check(key) ? PyLong_AsSsize_t(key) : PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (k == -1 && PyErr_Occurred()) return -1;
  if (k < 0 || k >= count) {
    ckpt_py_error(CKPT_ERROR_INVALID_ARGUMENT, "segment '%U' (number %llu) has no %s %zd, expected below %zd", f->call->segment->name,
                  (unsigned long long)ckpt_frame_index(f->handle), what, k, count);
    return -1;
  }
  *out = (uint32_t)k;
  return 0;
}

static int slot_number(frame_object *f, PyObject *key, uint32_t *out) {
  const segment_object *s = f->call->segment;
  return number_of(f, key, s->slot_index, PyTuple_GET_SIZE(s->slots), "slot", out);
}

/* Outputs and inputs: the first unless told. */
static int output_number(frame_object *f, PyObject *const *args, Py_ssize_t n, uint32_t *out) {
  const segment_object *s = f->call->segment;
  *out = 0;
  if (n > 1) return PyErr_SetString(PyExc_TypeError, "expected at most one argument, an output's number or name"), -1;
  if (n == 0 && PyTuple_GET_SIZE(s->outputs) > 0) return open_frame(f) ? 0 : -1;
  PyObject *zero = n ? args[0] : PyLong_FromLong(0);
  const int status = number_of(f, zero, s->output_index, PyTuple_GET_SIZE(s->outputs), "output", out);
  if (!n) Py_DECREF(zero);
  return status;
}

static int input_number(frame_object *f, PyObject *const *args, Py_ssize_t n, uint32_t *out) {
  *out = 0;
  if (n > 1) return PyErr_SetString(PyExc_TypeError, "expected at most one argument, an input's number"), -1;
  if (n == 0 && f->call->segment->input_count > 0) return open_frame(f) ? 0 : -1;
  PyObject *zero = n ? args[0] : PyLong_FromLong(0);
  const int status = number_of(f, zero, NULL, f->call->segment->input_count, "input", out);
  if (!n) Py_DECREF(zero);
  return status;
}

static PyObject *lend(frame_object *f, void *data, size_t bytes, PyObject *shape, PyObject *dtype, const char *what, PyObject *item, int readonly) {
  if (!data) Py_RETURN_NONE;
  if (f->view_count == f->view_room) {
    const Py_ssize_t room = f->view_room ? 2 * f->view_room : 8;
    ckpt_py_view **views = PyMem_Realloc(f->views, sizeof *views * (size_t)room);
    if (!views) return PyErr_NoMemory();
    f->views = views;
    f->view_room = room;
  }
  ckpt_py_view *v = PyObject_New(ckpt_py_view, &ckpt_py_view_type);
  if (!v) return NULL;
  call_object *c = f->call;
  v->data = data;
  v->bytes = bytes;
  v->dtype = NULL;
  v->label = NULL;
  v->keeper = Py_NewRef(c->keeper);
  v->segment = Py_NewRef(c->segment->name);
  v->item = Py_NewRef(item);
  v->what = what;
  v->number = ckpt_frame_index(f->handle);
  v->stream = ckpt_frame_stream(f->handle);
  v->device_type = c->device_type;
  v->device_index = c->device_index;
  v->readonly = readonly;
  v->live = 1;
  if (shape && shape != Py_None) {
    v->shape = Py_NewRef(shape);
    v->dtype = dtype == Py_None ? NULL : Py_NewRef(dtype);
  } else {
    v->shape = Py_BuildValue("(n)", (Py_ssize_t)bytes);
    if (!v->shape) return Py_DECREF(v), NULL;
  }
  f->views[f->view_count++] = v;
  Py_INCREF(v);
  return ckpt_py_view_array(v);
}

static PyObject *spec_view(frame_object *f, PyObject *specs, uint32_t k, void *data, size_t bytes, const char *what, int readonly) {
  PyObject *spec = PyTuple_GET_ITEM(specs, k); /* (name, bytes, shape, dtype) */
  return lend(f, data, bytes, PyTuple_GET_ITEM(spec, 2), PyTuple_GET_ITEM(spec, 3), what, PyTuple_GET_ITEM(spec, 0), readonly);
}

static PyObject *input_view(frame_object *f, uint32_t k, void *data, size_t bytes, const char *what, int readonly) {
  PyObject *spec = PyTuple_GET_ITEM(f->call->inputs, k), *number = PyLong_FromUnsignedLong(k);
  PyObject *name = number ? PyObject_Str(number) : NULL, *view = NULL;
  const int told = spec != Py_None;
  if (name) view = lend(f, data, bytes, told ? PyTuple_GET_ITEM(spec, 0) : NULL, told ? PyTuple_GET_ITEM(spec, 1) : NULL, what, name, readonly);
  Py_XDECREF(name);
  Py_XDECREF(number);
  return view;
}

static PyObject *frame_needs(frame_object *f, PyObject *key) {
  uint32_t k;
  return slot_number(f, key, &k) == 0 ? PyBool_FromLong(ckpt_frame_needs(f->handle, k)) : NULL;
}

static PyObject *frame_needs_output(frame_object *f, PyObject *const *args, Py_ssize_t n) {
  uint32_t k;
  return output_number(f, args, n, &k) == 0 ? PyBool_FromLong(ckpt_frame_needs_output(f->handle, k)) : NULL;
}

static PyObject *frame_slot(frame_object *f, PyObject *key) {
  uint32_t k;
  if (slot_number(f, key, &k) != 0) return NULL;
  return spec_view(f, f->call->slots, k, ckpt_frame_slot(f->handle, k), ckpt_frame_bytes(f->handle, CKPT_FRAME_SLOT, k), "slot", 0);
}

static PyObject *frame_output(frame_object *f, PyObject *const *args, Py_ssize_t n) {
  uint32_t k;
  if (output_number(f, args, n, &k) != 0) return NULL;
  return spec_view(f, f->call->outputs, k, ckpt_frame_output(f->handle, k), ckpt_frame_bytes(f->handle, CKPT_FRAME_OUTPUT, k), "output", 0);
}

static PyObject *frame_input(frame_object *f, PyObject *const *args, Py_ssize_t n) {
  uint32_t k;
  if (input_number(f, args, n, &k) != 0) return NULL;
  return input_view(f, k, (void *)ckpt_frame_input(f->handle, k), ckpt_frame_bytes(f->handle, CKPT_FRAME_INPUT, k), "input", 1);
}

static PyObject *frame_output_grad(frame_object *f, PyObject *const *args, Py_ssize_t n) {
  uint32_t k;
  if (output_number(f, args, n, &k) != 0) return NULL;
  void *data = (void *)ckpt_frame_output_grad(f->handle, k);
  return spec_view(f, f->call->outputs, k, data, ckpt_frame_bytes(f->handle, CKPT_FRAME_OUTPUT_GRAD, k), "gradient of output", 1);
}

static PyObject *frame_input_grad(frame_object *f, PyObject *const *args, Py_ssize_t n) {
  uint32_t k;
  int accumulate = 0;
  if (input_number(f, args, n, &k) != 0) return NULL;
  void *data = ckpt_frame_input_grad(f->handle, k, &accumulate);
  PyObject *view = input_view(f, k, data, ckpt_frame_bytes(f->handle, CKPT_FRAME_INPUT_GRAD, k), "gradient of input", 0);
  return view ? Py_BuildValue("(NN)", view, PyBool_FromLong(accumulate)) : NULL;
}

static PyObject *frame_scratch(frame_object *f, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"shape", "dtype", NULL};
  PyObject *shape = Py_None, *dtype = Py_None; /* None: the usual one */
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:scratch", names, &shape, &dtype) || !open_frame(f)) return NULL;
  static PyObject *label;
  if (!label && !(label = PyUnicode_FromString("scratch"))) return NULL;
  size_t bytes = ckpt_frame_bytes(f->handle, CKPT_FRAME_SCRATCH, 0);
  PyObject *spec = NULL, *lent = NULL; /* (shape, dtype, bytes) */
  if (shape != Py_None) {
    spec = PyObject_CallFunction(ckpt_py_spec_of, "OOs", shape, dtype, "scratch");
    if (!spec) return NULL;
    const size_t wanted = PyLong_AsSize_t(PyTuple_GET_ITEM(spec, 2));
    if (wanted > bytes) {
      ckpt_py_error(CKPT_ERROR_INVALID_ARGUMENT, "segment '%U' has %zu bytes of scratch here, %zu asked for", f->call->segment->name, bytes, wanted);
      Py_DECREF(spec);
      return NULL;
    }
    bytes = wanted;
  }
  lent = lend(f, ckpt_frame_scratch(f->handle), bytes, spec ? PyTuple_GET_ITEM(spec, 0) : NULL, spec ? PyTuple_GET_ITEM(spec, 1) : NULL, "memory", label, 0);
  Py_XDECREF(spec);
  return lent;
}

static PyObject *frame_random(frame_object *f, PyObject *args) {
  unsigned int site = 0;
  if (!PyArg_ParseTuple(args, "|I:random", &site) || !open_frame(f)) return NULL;
  if (site >= 65536) return ckpt_py_error(CKPT_ERROR_OVERFLOW, "site is %u, expected below 65536", site), NULL;
  ckpt_philox p;
  ckpt_frame_random(f->handle, site, &p);
  return PyObject_CallFunction(ckpt_py_make_philox, "KKK", (unsigned long long)p.seed, (unsigned long long)p.subsequence, (unsigned long long)p.offset);
}

static PyObject *frame_fail(frame_object *f, PyObject *args) {
  int status;
  const char *text = NULL;
  if (!PyArg_ParseTuple(args, "i|z:fail", &status, &text) || !open_frame(f)) return NULL;
  return PyLong_FromLong(ckpt_frame_fail(f->handle, status, text));
}

#define FRAME_FIELD(NAME, EXPRESSION)                         \
  static PyObject *frame_get_##NAME(frame_object *f, void *unused) { \
    (void)unused;                                             \
    return open_frame(f) ? (EXPRESSION) : NULL;               \
  }
FRAME_FIELD(is_recompute, PyBool_FromLong(ckpt_frame_is_recompute(f->handle)))
FRAME_FIELD(is_backward, PyBool_FromLong(ckpt_frame_is_backward(f->handle)))
FRAME_FIELD(is_dry, PyBool_FromLong(ckpt_frame_is_dry(f->handle)))
FRAME_FIELD(index, PyLong_FromUnsignedLongLong(ckpt_frame_index(f->handle)))
FRAME_FIELD(step, PyLong_FromUnsignedLongLong(ckpt_frame_step(f->handle)))
FRAME_FIELD(stream, PyLong_FromVoidPtr(ckpt_frame_stream(f->handle)))
FRAME_FIELD(address, PyLong_FromVoidPtr(f->handle))
FRAME_FIELD(user, Py_NewRef(f->call->user))
static PyObject *frame_get_segment(frame_object *f, void *unused) { (void)unused; return Py_NewRef(f->call->segment->name); }

static PyMethodDef frame_methods[] = {
  {"needs", (PyCFunction)frame_needs, METH_O, "True: compute this slot (number or name) now."},
  {"needs_output", (PyCFunction)(void (*)(void))frame_needs_output, METH_FASTCALL, "True: compute this output (the first unless told) now."},
  {"slot", (PyCFunction)frame_slot, METH_O, "Array of a slot, None where nothing that is needed reads it."},
  {"output", (PyCFunction)(void (*)(void))frame_output, METH_FASTCALL, "Array of an output, or None."},
  {"input", (PyCFunction)(void (*)(void))frame_input, METH_FASTCALL, "Read-only array of an input, or None."},
  {"output_grad", (PyCFunction)(void (*)(void))frame_output_grad, METH_FASTCALL, "Read-only gradient of an output; None: zero, or a root that seeds itself."},
  {"input_grad", (PyCFunction)(void (*)(void))frame_input_grad, METH_FASTCALL, "(array, accumulate): add if accumulate, else write all; (None, False): not wanted."},
  {"scratch", (PyCFunction)(void (*)(void))frame_scratch, METH_VARARGS | METH_KEYWORDS,
   "scratch(shape=None, dtype='float32'): the segment's scratch memory, from its start; as bytes without a shape."},
  {"random", (PyCFunction)frame_random, METH_VARARGS, "random(site=0): the Philox snapshot of this segment, step and site."},
  {"fail", (PyCFunction)frame_fail, METH_VARARGS, "fail(status, text): sets the message; return its result."},
  {NULL, NULL, 0, NULL},
};
static PyGetSetDef frame_fields[] = {
  {"is_recompute", (getter)frame_get_is_recompute, NULL, "True in a replay: do not count, update or log twice.", NULL},
  {"is_backward", (getter)frame_get_is_backward, NULL, "True in a backward.", NULL},
  {"is_dry", (getter)frame_get_is_dry, NULL, "True in a dry recording.", NULL},
  {"index", (getter)frame_get_index, NULL, "This segment's place in the recording.", NULL},
  {"step", (getter)frame_get_step, NULL, "The recording's step.", NULL},
  {"stream", (getter)frame_get_stream, NULL, "The arena's stream, an address; 0 on the CPU.", NULL},
  {"address", (getter)frame_get_address, NULL, "ckpt_frame *, for ckpt.raw.", NULL},
  {"user", (getter)frame_get_user, NULL, "The user object of this call.", NULL},
  {"segment", (getter)frame_get_segment, NULL, "The segment's name.", NULL},
  {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject ckpt_py_segment_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ckpt._raw.Segment", .tp_basicsize = sizeof(segment_object),
                                    .tp_dealloc = (destructor)segment_dealloc, .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                    .tp_traverse = (traverseproc)segment_traverse, .tp_clear = (inquiry)segment_clear};
PyTypeObject ckpt_py_call_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ckpt._raw.Call", .tp_basicsize = sizeof(call_object),
                                 .tp_dealloc = (destructor)call_dealloc, .tp_flags = Py_TPFLAGS_DEFAULT};
PyTypeObject ckpt_py_frame_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ckpt.Frame", .tp_basicsize = sizeof(frame_object),
                                  .tp_dealloc = (destructor)frame_dealloc, .tp_flags = Py_TPFLAGS_DEFAULT, .tp_methods = frame_methods,
                                  .tp_getset = frame_fields, .tp_doc = "One execution of a segment; valid inside its callback."};

int ckpt_py_frames_init(PyObject *module) {
  PyObject *gc = PyImport_ImportModule("gc");
  if (!gc) return -1;
  collect = PyObject_GetAttrString(gc, "collect");
  Py_DECREF(gc);
  if (!collect || PyType_Ready(&ckpt_py_segment_type) != 0 || PyType_Ready(&ckpt_py_call_type) != 0 || PyType_Ready(&ckpt_py_frame_type) != 0) return -1;
  if (PyModule_AddObject(module, "Frame", Py_NewRef((PyObject *)&ckpt_py_frame_type)) != 0) return -1;
  return ckpt_py_segments_init(module);
}
