// Static shared memory: thread-local variables, filled with NaN before a block so that nothing is left of the block before. No attribute
// can tell them from others (in templates GCC drops sections), so on a thread that runs blocks all thread-local variables of this module,
// a program or a shared library, are taken for shared memory, but for the double's own, which are in a section of theirs.
#include <link.h>

#include "block.h"

extern "C" {
extern char __start_cudasim_own[] __attribute__((visibility("hidden")));
extern char __stop_cudasim_own[] __attribute__((visibility("hidden")));
}

namespace cudasim {
namespace {

constexpr size_t kChunk = 1024, kChunks = 4096;

// The module's thread-local variables in this thread, before and behind the double's own.
struct Place {
  char *begin, *own, *own_end, *end;
  bool used[kChunks];  // by the launch that runs, so far as its first block showed
};
CUDASIM_OWN __thread Place place = {};

int look(dl_phdr_info *info, size_t, void *out) {
  auto *found = static_cast<Place *>(out);
  const uintptr_t code = reinterpret_cast<uintptr_t>(&look);
  const ElfW(Phdr) *tls = nullptr;
  bool mine = false;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const ElfW(Phdr) &p = info->dlpi_phdr[k];
    if (p.p_type == PT_TLS) tls = &p;
    mine = mine || (p.p_type == PT_LOAD && code - info->dlpi_addr - p.p_vaddr < p.p_memsz);
  }
  if (!mine || tls == nullptr || info->dlpi_tls_data == nullptr) return mine;
  const char *image = reinterpret_cast<const char *>(info->dlpi_addr + tls->p_vaddr);
  found->begin = static_cast<char *>(info->dlpi_tls_data);
  found->own = found->begin + (__start_cudasim_own - image);
  found->own_end = found->begin + (__stop_cudasim_own - image);
  found->end = found->begin + tls->p_memsz;
  return 1;
}

bool touched(const char *p, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (p[i] != '\xff') return true;
  return false;
}

// The chunks of [begin, end), of which the first has number `chunk`; returns the number of the next.
size_t poison(Place *p, char *begin, char *end, size_t chunk, bool first_block) {
  for (; begin < end; begin += kChunk, ++chunk) {
    const size_t bytes = std::min(kChunk, static_cast<size_t>(end - begin));
    bool always = true, &used = chunk < kChunks ? p->used[chunk] : always;
    if (!first_block && chunk < kChunks) used = used && touched(begin, bytes);
    if (used || first_block) std::memset(begin, 0xff, bytes);
    if (first_block) used = true;
  }
  return chunk;
}

}  // namespace

// All of it before a launch's first block; then what the first block wrote.
void poison_static_shared(bool first_block) {
  Place &p = place;  // also: this thread has its copies
  if (p.begin == nullptr) dl_iterate_phdr(look, &p);
  if (p.begin == nullptr) std::abort();
  poison(&p, p.own_end, p.end, poison(&p, p.begin, p.own, 0, first_block), first_block);
}

}  // namespace cudasim
