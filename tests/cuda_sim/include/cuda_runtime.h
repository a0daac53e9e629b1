// The CUDA double's front: this folder stands before the toolkit's on g++'s include path. Types, enumerations and prototypes are the
// toolkit's own, so a function of the double with a wrong signature does not compile; this header adds what nvcc builds in.
#pragma once
#ifdef __CUDACC__
#error "the CUDA double is for g++: its folder must not be on nvcc's include path"
#endif
#define CUDASIM 1
// host_defines.h honours earlier definitions of these where nvcc is not at work.
#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
// One copy for each operating-system thread, that is for each running block (poison.cpp).
#define __shared__ thread_local
#include_next <cuda_runtime.h>
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
// No macro __noinline__: it would break the standard library's own __attribute__((__noinline__)).
#undef __cluster_dims__
#define __cluster_dims__(...)
#include "cudasim.h"
#include "cudasim_atomic.h"
#include "cudasim_device.h"
