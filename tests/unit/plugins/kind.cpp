// A device plugin for another kind of device than its name says. Nothing of it may be called.
#include "device/table.h"

extern "C" __attribute__((visibility("default"))) const ckpt::device::Plugin ckpt_device_plugin = {ckpt::device::kPluginVersion, 77, {}, nullptr};
