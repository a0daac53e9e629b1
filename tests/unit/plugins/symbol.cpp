// A device plugin that needs a function which no library has.
#include "device/table.h"

extern "C" void ckpt_no_library_has_this(void *);

namespace {

constexpr ckpt::device::Plugin plugin() {
  ckpt::device::Plugin p{};
  p.version = ckpt::device::kPluginVersion;
  p.kind = CKPT_DEVICE_KIND_CUDA;
  p.table.close = ckpt_no_library_has_this;
  return p;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ckpt::device::Plugin ckpt_device_plugin = plugin();
