#include "ckpt/device.h"

#include <memory>
#include <new>

#include "abi/handle.h"
#include "abi/struct_size.h"

namespace {

constexpr size_t kInfoFirst = 96;
static_assert(sizeof(ckpt_device_info) >= kInfoFirst);

using ckpt::abi::object;

ckpt_status null_argument(const char *function, const char *name, const char *expected) {
  return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL, expected %s", function, name, expected);
}
ckpt_status no_device(const char *function) { return null_argument(function, "device", "an open device"); }

}  // namespace

struct ckpt_graph {
  ckpt::Ref<ckpt::device::Device> device;
  void *graph;
};

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

ckpt_status ckpt_device_synchronize(ckpt_device *device, void *stream) {
  if (device == nullptr) return no_device(__func__);
  return object(device)->synchronize(stream);
}

ckpt_status ckpt_device_copy(ckpt_device *device, void *stream, void *to, const void *from, size_t bytes, uint32_t kind) {
  if (device == nullptr) return no_device(__func__);
  if (kind > CKPT_COPY_DEVICE_TO_DEVICE)
    return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: kind is %u, expected CKPT_COPY_HOST_TO_DEVICE (0), _DEVICE_TO_HOST (1) or _DEVICE_TO_DEVICE (2)", __func__, kind);
  if (bytes > 0 && (to == nullptr || from == nullptr)) return null_argument(__func__, to == nullptr ? "to" : "from", "memory of `bytes` bytes");
  return object(device)->copy(stream, to, from, bytes, static_cast<ckpt::device::Copy>(kind));
}

ckpt_status ckpt_device_fill(ckpt_device *device, void *stream, void *data, uint8_t value, size_t bytes) {
  if (device == nullptr) return no_device(__func__);
  if (bytes > 0 && data == nullptr) return null_argument(__func__, "data", "memory of `bytes` bytes");
  return object(device)->fill(stream, data, value, bytes);
}

ckpt_status ckpt_device_stream_create(ckpt_device *device, void **out_stream) {
  if (out_stream == nullptr) return null_argument(__func__, "out_stream", "an address");
  *out_stream = nullptr;
  if (device == nullptr) return no_device(__func__);
  return object(device)->stream_create(out_stream);
}

void ckpt_device_stream_destroy(ckpt_device *device, void *stream) {
  if (device != nullptr && stream != nullptr) object(device)->stream_destroy(stream);
}

ckpt_status ckpt_device_host_alloc(ckpt_device *device, size_t bytes, void **out_data) {
  if (out_data == nullptr) return null_argument(__func__, "out_data", "an address");
  *out_data = nullptr;
  if (device == nullptr) return no_device(__func__);
  if (bytes == 0) return ckpt::fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: bytes is 0, expected at least 1", __func__);
  return object(device)->host_reserve(bytes, out_data);
}

void ckpt_device_host_free(ckpt_device *device, void *data, size_t bytes) {
  if (device != nullptr && data != nullptr) object(device)->host_release(data, bytes);
}

ckpt_status ckpt_device_capture_begin(ckpt_device *device, void *stream) {
  if (device == nullptr) return no_device(__func__);
  return object(device)->capture_begin(stream);
}

ckpt_status ckpt_device_capture_end(ckpt_device *device, void *stream, ckpt_graph **out_graph) {
  if (out_graph != nullptr) *out_graph = nullptr;
  if (device == nullptr) return no_device(__func__);
  if (out_graph == nullptr) {  // ended in any case, here too
    void *nobodys = nullptr;
    if (object(device)->capture_end(stream, &nobodys) == CKPT_OK) object(device)->graph_destroy(nobodys);
    return null_argument(__func__, "out_graph", "an address");
  }
  auto graph = std::unique_ptr<ckpt_graph>(new (std::nothrow) ckpt_graph{ckpt::Ref<ckpt::device::Device>::share(object(device)), nullptr});
  void *captured = nullptr;  // the capture ends in any case
  const ckpt_status status = object(device)->capture_end(stream, &captured);
  if (status) return status;
  if (graph == nullptr) {
    object(device)->graph_destroy(captured);
    return ckpt::fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: the host refused %zu bytes", __func__, sizeof(ckpt_graph));
  }
  graph->graph = captured;
  *out_graph = graph.release();
  return CKPT_OK;
}

ckpt_status ckpt_graph_launch(ckpt_graph *graph, void *stream) {
  if (graph == nullptr) return null_argument(__func__, "graph", "a graph");
  return graph->device->graph_launch(graph->graph, stream);
}

void ckpt_graph_destroy(ckpt_graph *graph) {
  if (graph == nullptr) return;
  graph->device->graph_destroy(graph->graph);
  delete graph;
}

const void *ckpt_device_interface(const ckpt_device *device, const char *name, void **out_self) {
  if (out_self != nullptr) *out_self = nullptr;
  if (device == nullptr || name == nullptr || out_self == nullptr) {
    (void)null_argument(__func__, device == nullptr ? "device" : name == nullptr ? "name" : "out_self", "a value");
    return nullptr;
  }
  const void *table = object(device)->interface(name);
  if (table != nullptr) *out_self = object(device)->self();
  else (void)ckpt::fail(CKPT_ERROR_NOT_FOUND, "%s: this device has no table named \"%.64s\"", __func__, name);
  return table;
}

}  // extern "C"
