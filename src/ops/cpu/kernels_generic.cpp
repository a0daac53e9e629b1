#define CKPT_OPS_LANES 4
#define CKPT_OPS_ISA "generic"
#define CKPT_OPS_TABLE kGenericKernels
#include "ops/cpu/wide_table.h"
