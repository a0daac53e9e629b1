#include "device/device.h"

#include "device/cpu/cpu.h"
#include "device/loader.h"

namespace ckpt::device {
namespace {

constexpr Host kHost = {[](Status status, const char *text) { return fail_text(status, text); }};

}  // namespace

Result<Ref<Device>> Device::open(const char *function, std::string_view name) {
  Result<Name> parsed = parse_name(function, name);
  if (!parsed.ok()) return Result<Ref<Device>>::failed(parsed.status());
  if (parsed->kind == CKPT_DEVICE_KIND_CPU) return create(cpu::table(), CKPT_DEVICE_KIND_CPU, 0);
  Result<Library> library = load_plugin(function, "cuda");
  if (!library.ok()) return Result<Ref<Device>>::failed(library.status());
  const Plugin &plugin = *library->plugin;
  if (plugin.kind != parsed->kind) {
    const Status status = fail(CKPT_ERROR_DEVICE, "%s: the plugin for \"cuda\" says it is of kind %u, expected %u", function,
                               plugin.kind, parsed->kind);
    unload(library->handle);
    return Result<Ref<Device>>::failed(status);
  }
  Result<Ref<Device>> device = create(plugin.table, parsed->kind, parsed->index, library->handle);
  if (!device.ok()) return device;
  (*device)->interface_ = plugin.interface;
  const auto *ranges = static_cast<const Ranges *>(plugin.interface("ranges"));
  if (ranges != nullptr && ranges->version == kRangesVersion) (*device)->ranges_ = ranges;
  return device;
}

Result<Ref<Device>> Device::create(const Table &table, uint32_t kind, uint32_t index, void *library) {
  auto *raw = new (std::nothrow) Device(table, kind, library);
  if (raw == nullptr) {
    unload(library);
    return Result<Ref<Device>>::failed(fail(CKPT_ERROR_OUT_OF_MEMORY, "device: the host refused %zu bytes", sizeof(Device)));
  }
  auto device = Ref<Device>::adopt(raw);
  if (const Status status = table.open(&kHost, index, &raw->self_)) return Result<Ref<Device>>::failed(status);
  raw->opened_ = true;
  return device;
}

Device::~Device() {
  if (opened_) table_->close(self_);
  unload(library_);
}

}  // namespace ckpt::device
