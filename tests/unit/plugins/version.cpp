// A device plugin of another version, of which nothing but that is there.
#include "device/table.h"

extern "C" __attribute__((visibility("default"))) const uint32_t ckpt_device_plugin = ckpt::device::kPluginVersion + 1;
