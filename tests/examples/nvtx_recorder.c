/* What a profiler gives to NVTX, in small: writes the name of each range to the file named by NVTX_RECORDER_FILE, indented by how deep
 * it is nested. Loaded by NVTX itself, through NVTX_INJECTION64_PATH. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *file;
static int depth;

static int NVTX_API push(const char *name) {
  fprintf(file, "%*s%s\n", depth, "", name);
  fflush(file);
  return depth++;
}
static int NVTX_API pop(void) { return --depth; }

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const NvtxExportTableCallbacks *callbacks = (const NvtxExportTableCallbacks *)tables(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable core = NULL;
  unsigned size = 0;
  const char *path = getenv("NVTX_RECORDER_FILE");
  file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL || callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size)) return 0;
  *core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *core[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
