#include "device/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string>

namespace ckpt::device {
namespace {

constexpr uint32_t kLargestIndex = 65535;
constexpr const char *kSymbol = "ckpt_device_plugin";

// The folder of the file that this code was loaded from, with its slash; "" if the system does not say.
std::string own_folder() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void *>(&kSymbol), &where) == 0 || where.dli_fname == nullptr) return "";
  const std::string file = where.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash + 1);
}

// A program without a loader of its own cannot take in libraries that share the C library with it: it may crash. (The first object
// that the system lists is the program.)
bool is_static_program() {
  int with_loader = 1;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *out) {
        int found = 0;
        for (size_t k = 0; k < info->dlpi_phnum; ++k) found |= info->dlpi_phdr[k].p_type == PT_INTERP;
        *static_cast<int *>(out) = found;
        return 1;
      },
      &with_loader);
  return with_loader == 0;
}

// The loader's text for its latest failure.
std::string loader_text() {
  const char *text = dlerror();
  return text != nullptr ? text : "unknown reason";
}

}  // namespace

Result<Name> parse_name(const char *function, std::string_view name) {
  if (name == "cpu") return Name{CKPT_DEVICE_KIND_CPU, 0};
  if (name == "cuda") return Name{CKPT_DEVICE_KIND_CUDA, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (name.starts_with(kPrefix)) {
    const std::string_view digits = name.substr(kPrefix.size());
    uint32_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool canonical = digits.size() == 1 || (digits.size() > 1 && digits[0] != '0');
    if (canonical && error == std::errc{} && end == digits.data() + digits.size() && index <= kLargestIndex)
      return Name{CKPT_DEVICE_KIND_CUDA, index};
  }
  return Result<Name>::failed(fail(CKPT_ERROR_INVALID_ARGUMENT,
                                   "%s: name is \"%.*s\", expected \"cpu\", \"cuda\" or \"cuda:N\" with N from 0 to %u", function,
                                   static_cast<int>(name.size() < 64 ? name.size() : 64), name.data(), kLargestIndex));
}

Result<Library> load_plugin_file(const char *function, const char *kind, const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Result<Library>::failed(
        fail(CKPT_ERROR_DEVICE, "%s: the plugin for \"%s\" does not load: %s", function, kind, loader_text().c_str()));
  const auto *plugin = static_cast<const Plugin *>(dlsym(handle, kSymbol));
  Status status = CKPT_OK;
  if (plugin == nullptr)
    status = fail(CKPT_ERROR_DEVICE, "%s: %s is no device plugin: it does not export %s", function, path, kSymbol);
  else if (plugin->version != kPluginVersion)
    status = fail(CKPT_ERROR_DEVICE, "%s: the plugin %s has version %u, expected %u: install the one that came with this library",
                  function, path, plugin->version, kPluginVersion);
  if (status == CKPT_OK) return Library{handle, plugin};
  dlclose(handle);
  return Result<Library>::failed(status);
}

Result<Library> load_plugin(const char *function, const char *kind) {
  const std::string file = std::string("libckpt_") + kind + ".so";
  if (is_static_program())
    return Result<Library>::failed(fail(CKPT_ERROR_UNSUPPORTED, "%s: a program that is linked statically can't load %s, the plugin for \"%s\"", function, file.c_str(), kind));
  // A folder that is named is meant: there, or nowhere. (Not for programs that run with more rights than their user.)
  if (const char *folder = secure_getenv("CKPT_PLUGIN_PATH"); folder != nullptr && folder[0] != '\0') {
    const std::string named = std::string(folder) + "/" + file;
    if (access(named.c_str(), F_OK) == 0) return load_plugin_file(function, kind, named.c_str());
    return Result<Library>::failed(fail(CKPT_ERROR_NOT_FOUND, "%s: there is no plugin for \"%s\" in CKPT_PLUGIN_PATH: no %s", function, kind, named.c_str()));
  }
  const std::string beside = own_folder() + file;
  if (beside != file && access(beside.c_str(), F_OK) == 0) return load_plugin_file(function, kind, beside.c_str());
  // A missing file and a missing dependency of a present file give the same kind of failure; the text names the culprit.
  if (void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); handle == nullptr) {
    const std::string text = loader_text();
    if (text.starts_with(file + ": cannot open"))
      return Result<Library>::failed(
          fail(CKPT_ERROR_NOT_FOUND, "%s: there is no plugin for \"%s\": %s is neither beside libckpt nor on the library path",
               function, kind, file.c_str()));
    return Result<Library>::failed(
        fail(CKPT_ERROR_DEVICE, "%s: the plugin for \"%s\" does not load: %s", function, kind, text.c_str()));
  } else {
    Result<Library> library = load_plugin_file(function, kind, file.c_str());
    dlclose(handle);  // the other count stays
    return library;
  }
}

void unload(void *handle) noexcept {
  if (handle != nullptr) dlclose(handle);
}

}  // namespace ckpt::device
