#define CKPT_OPS_LANES 8
#define CKPT_OPS_ISA "avx2"
#define CKPT_OPS_TABLE kAvx2Kernels
#include "ops/cpu/wide_table.h"
