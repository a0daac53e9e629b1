// The interface "ranges": NVTX, where the toolkit has its header. Nothing is linked: the header looks for a profiler by itself.
#pragma once

#include "device/table.h"

namespace ckpt::cuda {

const device::Ranges *ranges();  // NULL: built without

}  // namespace ckpt::cuda
