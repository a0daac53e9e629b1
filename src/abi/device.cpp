#include "ckpt/device.h"

#include "abi/handle.h"
#include "abi/struct_size.h"

namespace {

constexpr size_t kInfoFirst = 96;
static_assert(sizeof(ckpt_device_info) >= kInfoFirst);

}  // namespace

extern "C" {

ckpt_status ckpt_device_open(const char *name, ckpt_device **out_device) {
  if (out_device == nullptr) return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: out_device is NULL, expected an address", __func__);
  *out_device = nullptr;
  if (name == nullptr) return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: name is NULL, expected \"cpu\" or \"cuda:N\"", __func__);
  return ckpt::guarded(__func__, [&, function = __func__]() -> ckpt_status {
    auto device = ckpt::device::Device::open(function, name);
    if (!device.ok()) return device.status();
    *out_device = ckpt::abi::handle(device->leave());
    return CKPT_OK;
  });
}

void ckpt_device_close(ckpt_device *device) {
  if (device != nullptr) ckpt::abi::object(device)->drop();
}

ckpt_status ckpt_device_get_info(const ckpt_device *device, ckpt_device_info *out_info) {
  if (device == nullptr) return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: device is NULL, expected an open device", __func__);
  CKPT_TRY(ckpt::abi::check_out_struct(__func__, "out_info", out_info, kInfoFirst));
  ckpt_device_info info{};
  CKPT_TRY(ckpt::abi::object(device)->info(&info));
  ckpt::abi::write_struct(info, out_info);
  return CKPT_OK;
}

}  // extern "C"
