/* Segments and their uses: what the package calls to create one, and to record a use of it. */
#include "frames.h"

/* An array of uint32 from a tuple, or NULL for None; *count its length. */
static uint32_t *numbers(PyObject *tuple, uint32_t *count) {
  *count = 0;
  if (tuple == Py_None) return NULL;
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  uint32_t *out = PyMem_Malloc(sizeof *out * (size_t)(n ? n : 1));
  if (!out) return PyErr_NoMemory(), NULL;
  for (Py_ssize_t k = 0; k < n; ++k) {
    const unsigned long number = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(tuple, k));
    if (number > UINT32_MAX && !PyErr_Occurred()) PyErr_Format(PyExc_OverflowError, "%lu, expected below 2^32", number);
    out[k] = (uint32_t)number;
  }
  *count = (uint32_t)n;
  return out;
}

/* slots: (name, bytes, reads or None, group, cost, flags); outputs: (name, bytes, grad_bytes, reads or None, group, memory, cost, flags,
 * in_place_input). The rest is what a segment_object has. */
static PyObject *segment_create(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *name, *forward, *backward, *slots, *outputs, *input_flags, *save, *restore, *slot_specs, *output_specs, *slot_index, *output_index, *memories;
  Py_ssize_t forward_scratch, backward_scratch, state_bytes;
  if (!PyArg_ParseTuple(args, "UOOO!O!O!nnOOnO!O!O!O!O", &name, &forward, &backward, &PyTuple_Type, &slots, &PyTuple_Type, &outputs, &PyTuple_Type,
                        &input_flags, &forward_scratch, &backward_scratch, &save, &restore, &state_bytes, &PyTuple_Type, &slot_specs,
                        &PyTuple_Type, &output_specs, &PyDict_Type, &slot_index, &PyDict_Type, &output_index, &memories))
    return NULL;
  const Py_ssize_t slot_count = PyTuple_GET_SIZE(slots), output_count = PyTuple_GET_SIZE(outputs);
  segment_object *made = NULL;
  ckpt_slot *s = PyMem_Calloc((size_t)slot_count + 1, sizeof *s);
  ckpt_output *o = PyMem_Calloc((size_t)output_count + 1, sizeof *o);
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  uint32_t *flags = NULL;
  if (!s || !o) {
    PyErr_NoMemory();
    goto out;
  }
  for (Py_ssize_t k = 0; k < slot_count; ++k) {
    PyObject *reads;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(slots, k), "znOIdI", &s[k].name, &s[k].bytes, &reads, &s[k].group, &s[k].cost_seconds, &s[k].flags)) goto out;
    s[k].reads = numbers(reads, &s[k].read_count);
    if (PyErr_Occurred()) goto out;
  }
  for (Py_ssize_t k = 0; k < output_count; ++k) {
    PyObject *reads, *memory;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(outputs, k), "znnOIOdII", &o[k].name, &o[k].bytes, &o[k].grad_bytes, &reads, &o[k].group, &memory,
                          &o[k].cost_seconds, &o[k].flags, &o[k].in_place_input))
      goto out;
    o[k].reads = numbers(reads, &o[k].read_count);
    o[k].memory = memory == Py_None ? NULL : PyLong_AsVoidPtr(memory);
    if (PyErr_Occurred()) goto out;
  }
  flags = numbers(input_flags, &desc.input_count);
  if (!flags || PyErr_Occurred()) goto out;
  if (ckpt_py_text(name, "Segment", "name", &desc.name) != 0) goto out;
  desc.forward = forward == Py_None ? NULL : ckpt_py_forward;
  desc.backward = backward == Py_None ? NULL : ckpt_py_backward;
  desc.slots = s;
  desc.outputs = o;
  desc.slot_count = (uint32_t)slot_count;
  desc.output_count = (uint32_t)output_count;
  desc.input_flags = flags;
  desc.forward_scratch_bytes = (size_t)forward_scratch;
  desc.backward_scratch_bytes = (size_t)backward_scratch;
  desc.save_state = save == Py_None ? NULL : ckpt_py_save;
  desc.restore_state = restore == Py_None ? NULL : ckpt_py_restore;
  desc.state_bytes = (size_t)state_bytes;
  ckpt_segment *handle = NULL;
  const ckpt_status status = ckpt_segment_create(&desc, &handle);
  if (status != CKPT_OK) {
    ckpt_py_raise(status, "ckpt_segment_create");
    goto out;
  }
  made = PyObject_GC_New(segment_object, &ckpt_py_segment_type);
  if (!made) {
    ckpt_segment_destroy(handle);
    goto out;
  }
  made->handle = handle;
  made->name = Py_NewRef(name);
  made->forward = Py_NewRef(forward);
  made->backward = Py_NewRef(backward);
  made->save = Py_NewRef(save);
  made->restore = Py_NewRef(restore);
  made->slots = Py_NewRef(slot_specs);
  made->outputs = Py_NewRef(output_specs);
  made->slot_index = Py_NewRef(slot_index);
  made->output_index = Py_NewRef(output_index);
  made->memories = Py_NewRef(memories);
  made->state_bytes = (size_t)state_bytes;
  made->input_count = (Py_ssize_t)desc.input_count;
  PyObject_GC_Track(made);
out:
  for (Py_ssize_t k = 0; s && k < slot_count; ++k) PyMem_Free((void *)s[k].reads);
  for (Py_ssize_t k = 0; o && k < output_count; ++k) PyMem_Free((void *)o[k].reads);
  PyMem_Free(s);
  PyMem_Free(o);
  PyMem_Free(flags);
  return (PyObject *)made;
}

static size_t *sizes_of(PyObject *specs) {
  const Py_ssize_t n = PyTuple_GET_SIZE(specs);
  size_t *out = PyMem_Malloc(sizeof *out * (size_t)(n ? n : 1));
  if (!out) return PyErr_NoMemory(), NULL;
  for (Py_ssize_t k = 0; k < n; ++k) out[k] = PyLong_AsSize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(specs, k), 1));
  return PyErr_Occurred() ? PyMem_Free(out), NULL : out;
}

/* What a call watches, as C has it; NULL: nothing. */
static ckpt_watch *watch_of(PyObject *watched, uint32_t *count) {
  *count = 0;
  if (watched == Py_None) return NULL;
  const Py_ssize_t n = PyTuple_GET_SIZE(watched);
  ckpt_watch *out = PyMem_Calloc((size_t)n + 1, sizeof *out);
  if (!out) return PyErr_NoMemory(), NULL;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject *one = PyTuple_GET_ITEM(watched, k);
    out[k].name = PyBytes_AS_STRING(PyTuple_GET_ITEM(one, 0));
    out[k].data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(one, 1));
    out[k].bytes = PyLong_AsSize_t(PyTuple_GET_ITEM(one, 2));
  }
  *count = (uint32_t)n;
  return out;
}

/* (tape, segment, buffers, input specs, user, slot specs or None, output specs or None, watch or None, keeper, device type, device index,
 * body or None) -> tuple of the outputs' buffers. body: the segment's code, run between begin and end. */
static PyObject *segment_run(PyObject *module, PyObject *const *args, Py_ssize_t n) {
  (void)module;
  if (n != 12) return PyErr_SetString(PyExc_TypeError, "segment_run takes 12 arguments"), NULL;
  ckpt_tape *tape = PyLong_AsVoidPtr(args[0]);
  if (!tape || Py_TYPE(args[1]) != &ckpt_py_segment_type || !PyTuple_Check(args[2])) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "segment_run: a tape, a segment and a tuple of buffers are expected");
    return NULL;
  }
  segment_object *s = (segment_object *)args[1];
  const Py_ssize_t inputs = PyTuple_GET_SIZE(args[2]), outputs = PyTuple_GET_SIZE(s->outputs);
  if (inputs != s->input_count)
    return PyErr_Format(PyExc_TypeError, "segment '%U' has %zd input(s), %zd given", s->name, s->input_count, inputs), NULL;
  call_object *c = PyObject_New(call_object, &ckpt_py_call_type);
  if (!c) return NULL;
  c->segment = (segment_object *)Py_NewRef(args[1]);
  c->inputs = Py_NewRef(args[3]);
  c->user = Py_NewRef(args[4]);
  c->slots = Py_NewRef(args[5] == Py_None ? s->slots : args[5]);
  c->outputs = Py_NewRef(args[6] == Py_None ? s->outputs : args[6]);
  c->keeper = Py_NewRef(args[8]);
  c->watched = Py_NewRef(args[7]);
  c->device_type = (int)PyLong_AsLong(args[9]);
  c->device_index = (int)PyLong_AsLong(args[10]);
  ckpt_buffer in[16], out[16], *in_all = in, *out_all = out;
  if (inputs > 16) in_all = PyMem_Malloc(sizeof *in_all * (size_t)inputs);
  if (outputs > 16) out_all = PyMem_Malloc(sizeof *out_all * (size_t)outputs);
  ckpt_call call = CKPT_CALL_INIT;
  ckpt_watch *watch = NULL;
  size_t *slot_bytes = NULL, *output_bytes = NULL;
  PyObject *result = NULL;
  if (!in_all || !out_all) {
    PyErr_NoMemory();
    goto out;
  }
  for (Py_ssize_t k = 0; k < inputs; ++k) in_all[k] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(args[2], k));
  if (args[5] != Py_None) slot_bytes = sizes_of(args[5]);
  if (args[6] != Py_None) output_bytes = sizes_of(args[6]);
  watch = watch_of(c->watched, &call.watch_count);
  if (PyErr_Occurred()) goto out;
  call.input_count = (uint32_t)inputs;
  call.inputs = in_all;
  call.slot_bytes = slot_bytes;
  call.output_bytes = output_bytes;
  call.watch = watch;
  call.user = Py_NewRef((PyObject *)c);
  call.release = ckpt_py_release;
  ckpt_status status;
  if (args[11] == Py_None) {
    Py_BEGIN_ALLOW_THREADS
    status = ckpt_segment_run(tape, s->handle, &call, out_all);
    Py_END_ALLOW_THREADS
  } else {
    ckpt_frame *frame = NULL;
    Py_BEGIN_ALLOW_THREADS
    status = ckpt_segment_begin(tape, s->handle, &call, &frame);
    Py_END_ALLOW_THREADS
    if (status == CKPT_OK) {
      const ckpt_status body = ckpt_py_run(args[11], c, frame);
      Py_BEGIN_ALLOW_THREADS
      status = ckpt_segment_end(frame, body, out_all);
      Py_END_ALLOW_THREADS
    }
  }
  if (status != CKPT_OK) {
    ckpt_py_raise(status, "ckpt_segment_run");
    goto out;
  }
  result = PyTuple_New(outputs);
  for (Py_ssize_t k = 0; result && k < outputs; ++k) PyTuple_SET_ITEM(result, k, PyLong_FromUnsignedLongLong(out_all[k]));
out:
  if (in_all != in) PyMem_Free(in_all);
  if (out_all != out) PyMem_Free(out_all);
  PyMem_Free(slot_bytes);
  PyMem_Free(output_bytes);
  PyMem_Free(watch);
  Py_DECREF(c);
  return result;
}

/* A view that no frame ends: (address, bytes, shape, dtype, readonly, keeper, label, device type, device index, stream). */
static PyObject *view_make(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long address, stream;
  Py_ssize_t bytes;
  PyObject *shape, *dtype, *keeper, *label;
  int readonly, device_type, device_index;
  if (!PyArg_ParseTuple(args, "KnO!OpOUiiK", &address, &bytes, &PyTuple_Type, &shape, &dtype, &readonly, &keeper, &label, &device_type, &device_index,
                        &stream))
    return NULL;
  ckpt_py_view *v = PyObject_New(ckpt_py_view, &ckpt_py_view_type);
  if (!v) return NULL;
  v->data = (void *)(uintptr_t)address;
  v->bytes = (size_t)bytes;
  v->shape = Py_NewRef(shape);
  v->dtype = dtype == Py_None ? NULL : Py_NewRef(dtype);
  v->keeper = Py_NewRef(keeper);
  v->label = Py_NewRef(label);
  v->segment = v->item = NULL;
  v->what = "";
  v->number = 0;
  v->stream = (void *)(uintptr_t)stream;
  v->device_type = device_type;
  v->device_index = device_index;
  v->readonly = readonly;
  v->live = 1;
  return (PyObject *)v;
}

/* Ends the leases of a list of views, to which nothing else than the list refers but what was made of them or kept. force not 0: all, and
 * None; else only if nothing is left: the number of the first that is still referred to, or None. */
static PyObject *views_end(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *list;
  int force;
  if (!PyArg_ParseTuple(args, "O!i", &PyList_Type, &list, &force)) return NULL;
  const Py_ssize_t n = PyList_GET_SIZE(list);
  for (Py_ssize_t k = 0; k < n && !force; ++k)
    if (Py_REFCNT(PyList_GET_ITEM(list, k)) > 1) return PyLong_FromSsize_t(k);
  for (Py_ssize_t k = 0; k < n; ++k)
    if (Py_TYPE(PyList_GET_ITEM(list, k)) == &ckpt_py_view_type) ((ckpt_py_view *)PyList_GET_ITEM(list, k))->live = 0;
  Py_RETURN_NONE;
}

static void destroy_arena(PyObject *capsule) {
  ckpt_arena *arena = PyCapsule_GetPointer(capsule, "ckpt_arena");
  Py_BEGIN_ALLOW_THREADS
  ckpt_arena_destroy(arena);
  Py_END_ALLOW_THREADS
}
/* An object that destroys the arena when nobody refers to it any more: arena, tapes and views do. */
static PyObject *arena_keeper(PyObject *module, PyObject *address) {
  (void)module;
  void *arena = PyLong_AsVoidPtr(address);
  return arena ? PyCapsule_New(arena, "ckpt_arena", destroy_arena) : NULL;
}

static PyObject *keep(PyObject *module, PyObject *object) {
  (void)module;
  return PyLong_FromVoidPtr(Py_NewRef(object));
}

static PyObject *set_philox_maker(PyObject *module, PyObject *maker) {
  (void)module;
  Py_XSETREF(ckpt_py_make_philox, Py_NewRef(maker));
  Py_RETURN_NONE;
}

static PyObject *set_spec_of(PyObject *module, PyObject *function) {
  (void)module;
  Py_XSETREF(ckpt_py_spec_of, Py_NewRef(function));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  {"segment_create", segment_create, METH_VARARGS, NULL},
  {"segment_run", (PyCFunction)(void (*)(void))segment_run, METH_FASTCALL, NULL},
  {"view_make", view_make, METH_VARARGS, NULL},
  {"views_end", views_end, METH_VARARGS, NULL},
  {"arena_keeper", arena_keeper, METH_O, NULL},
  {"keep", keep, METH_O, "Address of an object with one more reference: for `user` of a struct whose `release` is ckpt_py_release."},
  {"set_philox_maker", set_philox_maker, METH_O, NULL},
  {"set_spec_of", set_spec_of, METH_O, NULL},
  {NULL, NULL, 0, NULL},
};

int ckpt_py_segments_init(PyObject *module) {
  if (PyModule_AddFunctions(module, functions) != 0) return -1;
  if (PyModule_AddObject(module, "release_object", PyLong_FromVoidPtr((void *)(uintptr_t)ckpt_py_release)) != 0) return -1;
  return PyModule_AddObject(module, "trace_function", PyLong_FromVoidPtr((void *)(uintptr_t)ckpt_py_trace));
}
