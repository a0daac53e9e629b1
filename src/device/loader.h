// Devices that are not built in.
#pragma once

#include <string_view>

#include "base/status.h"
#include "device/table.h"

namespace ckpt::device {

struct Name {
  uint32_t kind;
  uint32_t index;
};

// "cpu", "cuda", "cuda:17"; nothing else: no spaces, signs or leading zeros.
Result<Name> parse_name(const char *function, std::string_view name);

struct Library {
  void *handle;  // for unload
  const Plugin *plugin;
};

// Loads the plugin of a kind ("cuda"): from the folder CKPT_PLUGIN_PATH of the environment where that is set; else beside this
// library, then on the loader's search path. NOT_FOUND: there is none;
// DEVICE: there is one that cannot be used.
Result<Library> load_plugin(const char *function, const char *kind);
// The same from a given file.
Result<Library> load_plugin_file(const char *function, const char *kind, const char *path);
void unload(void *handle) noexcept;

}  // namespace ckpt::device
