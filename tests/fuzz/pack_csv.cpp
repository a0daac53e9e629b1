// Traces from any text: refused with one line, or buffers that can be packed.
#include "fuzz/fuzz.h"
#include "tool/trace_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ckpt::tool::TraceCsv trace;
  const std::string wrong = ckpt::tool::read_trace({reinterpret_cast<const char *>(data), size}, "t.csv", &trace);
  if (!wrong.empty()) {
    expect(wrong.compare(0, 7, "t.csv: ") == 0);
    expect(wrong.find('\n') == std::string::npos);
    return 0;
  }
  expect(!trace.buffers.empty() && trace.ids.size() == trace.buffers.size());
  if (trace.buffers.size() > 32) return 0;
  ckpt_pack_desc desc = CKPT_PACK_DESC_INIT;
  desc.buffers = trace.buffers.data();
  desc.buffer_count = trace.buffers.size();
  desc.work_limit = 20000;
  std::vector<size_t> offsets(trace.buffers.size());
  ckpt_pack_result result{};
  result.struct_size = sizeof result;
  if (ckpt_pack(&desc, offsets.data(), &result) != CKPT_OK) return 0;
  for (size_t a = 0; a < offsets.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const ckpt_pack_buffer &x = trace.buffers[a], &y = trace.buffers[b];
      const bool meet = x.lower < y.upper && y.lower < x.upper && x.bytes != 0 && y.bytes != 0;
      expect(!meet || offsets[a] + x.bytes <= offsets[b] || offsets[b] + y.bytes <= offsets[a]);
    }
  return 0;
}
