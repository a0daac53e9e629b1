/* What SWIG needs to know for the raw module of the Python package. Included by ../ckpt.i.
 *
 * The raw module is the C API as it is: sizes and lifetimes are the caller's business. What differs from C:
 *   - a status that is not 0 raises (ckpt.Error, or the exception that a Python callback raised); ckpt_last_status and
 *     ckpt_frame_fail return it;
 *   - handles, scalars and texts that C writes through an `out_` pointer are returned;
 *   - a pointer may be None, an address (int), an object with the buffer protocol or __cuda_array_interface__, or a struct. Buffers
 *     are checked for element type and contiguity, and are held during the call; what a struct's field points to is not held;
 *   - the GIL is released in every call but frame functions. */

%{
#include "native.h"
%}

%init %{
  if (ckpt_py_init(m) != 0) SWIG_fail_init;
%}
%{
/* The end of a module's init that failed, whatever SWIG's version returns there. */
#define SWIG_fail_init return NULL
%}

%include <stdint.i>

/* ---- no GIL dance where a call takes a few nanoseconds ---- */
%nothread ckpt_frame_needs;
%nothread ckpt_frame_needs_output;
%nothread ckpt_frame_slot;
%nothread ckpt_frame_output;
%nothread ckpt_frame_input;
%nothread ckpt_frame_output_grad;
%nothread ckpt_frame_input_grad;
%nothread ckpt_frame_scratch;
%nothread ckpt_frame_bytes;
%nothread ckpt_frame_random;
%nothread ckpt_frame_is_recompute;
%nothread ckpt_frame_is_backward;
%nothread ckpt_frame_is_dry;
%nothread ckpt_frame_index;
%nothread ckpt_frame_step;
%nothread ckpt_frame_stream;
%nothread ckpt_frame_user;
%nothread ckpt_frame_fail;
%nothread ckpt_last_error;
%nothread ckpt_last_status;
%nothread ckpt_ops_last_error;
%nothread ckpt_status_name;

/* ---- status ---- */
%typemap(out) ckpt_status {
  if ($1 != CKPT_OK) {
    ckpt_py_raise($1, "$symname");
    SWIG_fail;
  }
  $result = SWIG_Py_Void();
}
%typemap(out) ckpt_status ckpt_last_status, ckpt_status ckpt_frame_fail { $result = PyLong_FromLong((long)$1); }

/* ---- pointers in ---- */
%typemap(in) SWIGTYPE * (Py_buffer held = {0}, void *address = NULL) {
  int code = SWIG_ConvertPtr($input, &address, $descriptor, $disown);
  if (!SWIG_IsOK(code) && ckpt_py_pointer($input, "$symname", "$1_name", NULL, &held, &address) != 0) SWIG_fail;
  $1 = ($1_ltype)address;
}
%typemap(freearg) SWIGTYPE * { if (held$argnum.obj) PyBuffer_Release(&held$argnum); }
%typemap(in) void * (Py_buffer held = {0}, void *address = NULL), const void * (Py_buffer held = {0}, void *address = NULL) {
  int code = SWIG_ConvertPtr($input, &address, 0, 0);
  if (!SWIG_IsOK(code) && ckpt_py_pointer($input, "$symname", "$1_name", NULL, &held, &address) != 0) SWIG_fail;
  $1 = ($1_ltype)address;
}
%typemap(freearg) void *, const void * { if (held$argnum.obj) PyBuffer_Release(&held$argnum); }
%typemap(memberin) void *, const void * { $1 = ($1_ltype)$input; }

%define %ckpt_elements(TYPE, FORMATS)
%typemap(in) TYPE * (Py_buffer held = {0}, void *address = NULL), const TYPE * (Py_buffer held = {0}, void *address = NULL), TYPE [ANY] (Py_buffer held = {0}, void *address = NULL), const TYPE [ANY] (Py_buffer held = {0}, void *address = NULL) {
  if (ckpt_py_pointer($input, "$symname", "$1_name", FORMATS, &held, &address) != 0) SWIG_fail;
  $1 = ($1_ltype)address;
}
%typemap(freearg) TYPE *, const TYPE *, TYPE [ANY], const TYPE [ANY] { if (held$argnum.obj) PyBuffer_Release(&held$argnum); }
%typemap(memberin) TYPE *, const TYPE * { $1 = ($1_ltype)$input; }
%typemap(typecheck, precedence=0) TYPE *, const TYPE *, TYPE [ANY], const TYPE [ANY] { $1 = 1; }
%enddef
%ckpt_elements(float, "f")
%ckpt_elements(double, "d")
%ckpt_elements(int32_t, "il")
%ckpt_elements(uint32_t, "IL")
%ckpt_elements(uint64_t, "QLN")
%ckpt_elements(size_t, "QLN")
%ckpt_elements(uint8_t, "B?")
%typemap(out) uint64_t [ANY] {
  $result = PyTuple_New($1_dim0);
  for (size_t k = 0; $result && k < $1_dim0; ++k) PyTuple_SET_ITEM($result, (Py_ssize_t)k, PyLong_FromUnsignedLongLong($1[k]));
}
%typemap(in) ckpt_buffer *, const ckpt_buffer * = uint64_t *;
%typemap(freearg) ckpt_buffer *, const ckpt_buffer * = uint64_t *;

/* A pointer to pointers: an address, or a buffer of addresses. */
%typemap(in) SWIGTYPE *const * (Py_buffer held = {0}, void *address = NULL) {
  if (ckpt_py_pointer($input, "$symname", "$1_name", "QLNP", &held, &address) != 0) SWIG_fail;
  $1 = ($1_ltype)address;
}
%typemap(freearg) SWIGTYPE *const * { if (held$argnum.obj) PyBuffer_Release(&held$argnum); }
%apply SWIGTYPE *const * { const char *const *, const void *const *, void *const * };

/* Texts: those of str (as UTF-8) and bytes live as long as the object does. */
%typemap(in) const char * (const char *text = NULL), char * (const char *text = NULL) {
  if (ckpt_py_text($input, "$symname", "$1_name", &text) != 0) SWIG_fail;
  $1 = ($1_ltype)text;
}
%typemap(freearg) const char *, char * ""
%typemap(memberin) const char * { $1 = $input; }

/* Functions are addresses: ckpt._raw has those that call Python. */
%define %ckpt_function(TYPE)
%typemap(in) TYPE (void *address = NULL) {
  if (ckpt_py_pointer($input, "$symname", "$1_name", "", NULL, &address) != 0) SWIG_fail;
  $1 = ($1_ltype)(uintptr_t)address;
}
%typemap(freearg) TYPE ""
%enddef
%ckpt_function(ckpt_alloc_fn)
%ckpt_function(ckpt_free_fn)
%ckpt_function(ckpt_release_fn)
%ckpt_function(ckpt_segment_fn)
%ckpt_function(ckpt_state_fn)
%ckpt_function(ckpt_trace_fn)

/* ---- what is written through a pointer ---- */
%typemap(in, numinputs=0) SWIGTYPE ** (void *made = NULL) { $1 = ($1_ltype)&made; }
%typemap(argout) SWIGTYPE ** { $result = ckpt_py_append($result, SWIG_NewPointerObj(made$argnum, $*1_descriptor, 0)); }
%typemap(freearg) SWIGTYPE ** ""
%define %ckpt_address(NAME)
%typemap(in, numinputs=0) void **NAME (void *made = NULL) { $1 = &made; }
%typemap(argout) void **NAME { $result = ckpt_py_append($result, ckpt_py_address(made$argnum)); }
%typemap(freearg) void **NAME ""
%enddef
%ckpt_address(out_stream)
%ckpt_address(out_data)
%ckpt_address(out_self)
%typemap(in, numinputs=0) char **out_text (char *made = NULL) { $1 = &made; }
%typemap(argout) char **out_text {
  $result = ckpt_py_append($result, PyUnicode_FromString(made$argnum ? made$argnum : ""));
  ckpt_text_free(made$argnum);
}
%define %ckpt_scalar(TYPE, NAME, MAKE)
%typemap(in, numinputs=0) TYPE *NAME (TYPE made) { made = 0; $1 = &made; }
%typemap(argout) TYPE *NAME { $result = ckpt_py_append($result, MAKE(made$argnum)); }
%typemap(freearg) TYPE *NAME ""
%enddef
%ckpt_scalar(uint32_t, out_strategy, PyLong_FromUnsignedLong)
%ckpt_scalar(uint32_t, out_k, PyLong_FromUnsignedLong)
%ckpt_scalar(uint32_t, out_class, PyLong_FromUnsignedLong)
%ckpt_scalar(uint32_t, out_count, PyLong_FromUnsignedLong)
%ckpt_scalar(size_t, out_bytes, PyLong_FromSize_t)
%ckpt_scalar(size_t, out_peak_bytes, PyLong_FromSize_t)
%ckpt_scalar(uint64_t, out_count, PyLong_FromUnsignedLongLong)
%ckpt_scalar(uint64_t, out_step, PyLong_FromUnsignedLongLong)
%ckpt_scalar(double, out_seconds, PyFloat_FromDouble)
%ckpt_scalar(double, out_recompute_seconds, PyFloat_FromDouble)
%ckpt_scalar(double, out_norm, PyFloat_FromDouble)
%ckpt_scalar(int, out_accumulate, PyLong_FromLong)
%ckpt_scalar(ckpt_buffer, out_buffer, PyLong_FromUnsignedLongLong)
%ckpt_scalar(ckpt_buffer, out_loss, PyLong_FromUnsignedLongLong)
%ckpt_scalar(ckpt_buffer, out_output, PyLong_FromUnsignedLongLong)

/* ---- pointers that are returned are addresses ---- */
%typemap(out) void *, const void * { $result = ckpt_py_address((const void *)$1); }
%typemap(out) float *, const float * { $result = ckpt_py_address((const void *)$1); }

/* A struct knows its size. */
%define %ckpt_sized(TYPE)
%extend TYPE {
  TYPE() {
    TYPE *made = (TYPE *)calloc(1, sizeof *made);
    if (made) made->struct_size = (uint32_t)sizeof *made;
    return made;
  }
}
%enddef
%ckpt_sized(ckpt_arena_desc)
%ckpt_sized(ckpt_arena_stats)
%ckpt_sized(ckpt_device_info)
%ckpt_sized(ckpt_model_desc)
%ckpt_sized(ckpt_layout_desc)
%ckpt_sized(ckpt_hardware_desc)
%ckpt_sized(ckpt_estimate)
%ckpt_sized(ckpt_ops_desc)
%ckpt_sized(ckpt_ops_info)
%ckpt_sized(ckpt_adamw_desc)
%ckpt_sized(ckpt_tensor_info)
%ckpt_sized(ckpt_layer_embedding_desc)
%ckpt_sized(ckpt_layer_block_desc)
%ckpt_sized(ckpt_layer_head_desc)
%ckpt_sized(ckpt_gpt_desc)
%ckpt_sized(ckpt_pack_desc)
%ckpt_sized(ckpt_pack_result)
%ckpt_sized(ckpt_chain_desc)
%ckpt_sized(ckpt_plan_desc)
%ckpt_sized(ckpt_plan_summary)
%ckpt_sized(ckpt_segment_desc)
%ckpt_sized(ckpt_call)
%ckpt_sized(ckpt_tape_desc)
%ckpt_sized(ckpt_input_desc)
%ckpt_sized(ckpt_tape_stats)
