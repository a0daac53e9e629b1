#define CKPT_OPS_LANES 16
#define CKPT_OPS_ISA "avx512"
#define CKPT_OPS_TABLE kAvx512Kernels
#include "ops/cpu/wide_table.h"
