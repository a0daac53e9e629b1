/* libckpt: spend compute instead of memory, within a budget in bytes. Includes all of the core; the layers are ckpt/ops.h. */
#ifndef CKPT_CKPT_H
#define CKPT_CKPT_H

#include "ckpt/arena.h"
#include "ckpt/base.h"
#include "ckpt/device.h"
#include "ckpt/estimate.h"
#include "ckpt/json.h"
#include "ckpt/pack.h"
#include "ckpt/plan.h"
#include "ckpt/rng.h"
#include "ckpt/schedule.h"
#include "ckpt/tape.h"

#endif
