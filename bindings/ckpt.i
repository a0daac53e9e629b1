/* The one interface file of libckpt's bindings. SWIG reads the public headers through it: `swig -python` makes the raw module
 * of the Python package, `swig -xml` feeds generate.py, which writes the raw layers of Julia and Rust. A header of include/ckpt that is not
 * named here is refused by generate.py. */
%module raw

%{
#include "ckpt/ckpt.h"
#ifndef CKPT_WITHOUT_OPS
#include "ckpt/ops.h"
#endif
%}

#ifdef SWIGPYTHON
%include "python/python.i"
#endif

%include "ckpt/base.h"
%include "ckpt/device.h"
%include "ckpt/arena.h"
%include "ckpt/plan.h"
%include "ckpt/rng.h"
%include "ckpt/schedule.h"
%include "ckpt/tape.h"
%include "ckpt/json.h"
%include "ckpt/pack.h"
%include "ckpt/estimate.h"
#ifndef CKPT_WITHOUT_OPS /* a Python package that is built where there is no CBLAS */
%include "ckpt/ops.h"
#endif
