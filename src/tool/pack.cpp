#include <cstdio>

#include "tool/common.h"
#include "tool/svg.h"
#include "tool/trace_csv.h"

namespace ckpt::tool {
namespace {

struct Options {
  std::string trace, svg;
  uint64_t capacity = 0, alignment = 1, work_limit = 0;
  bool json = false;
};

void print_json(const TraceCsv &trace, const ckpt_pack_result &result, const std::vector<size_t> &offsets) {
  // By hand: ids may be many, and stay in the file's order.
  std::string text = "{\"lower_bound_bytes\":" + std::to_string(result.lower_bound_bytes) + ",\"height_bytes\":" + std::to_string(result.height_bytes) + ",\"proved\":" + (result.proved ? "true" : "false") + ",\"offsets\":{";
  for (size_t k = 0; k < offsets.size(); ++k)
    text += (k != 0 ? "," : "") + nlohmann::json(trace.ids[k]).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ":" + std::to_string(offsets[k]);
  std::printf("%s}}\n", text.c_str());
}

void write_svg(const Options &o, const TraceCsv &trace, const ckpt_pack_result &result, const std::vector<size_t> &offsets) {
  Picture p;
  p.title = "ckpt pack " + o.trace + ": height " + size_text(result.height_bytes) + ", lower bound " + size_text(result.lower_bound_bytes);
  p.time_axis = "time, as in the trace";
  p.kinds = {"buffer"};
  p.height = result.height_bytes;
  p.limit = o.capacity;
  p.limit_name = "capacity";
  for (size_t k = 0; k < offsets.size(); ++k) p.rectangles.push_back({trace.buffers[k].lower, trace.buffers[k].upper, offsets[k], trace.buffers[k].bytes, 0, false, trace.ids[k]});
  write_file(o.svg, draw(p));
}

int pack(const Options &o) {
  TraceCsv trace;
  if (const std::string wrong = read_trace(read_file(o.trace), o.trace, &trace); !wrong.empty()) bad_input(wrong);
  ckpt_pack_desc desc = CKPT_PACK_DESC_INIT;
  desc.buffers = trace.buffers.data();
  desc.buffer_count = trace.buffers.size();
  desc.alignment_bytes = o.alignment;
  desc.capacity_bytes = o.capacity;
  desc.work_limit = o.work_limit;
  std::vector<size_t> offsets(trace.buffers.size());
  ckpt_pack_result result{};
  result.struct_size = sizeof result;
  const ckpt_status status = ckpt_pack(&desc, offsets.data(), &result);
  if (status != CKPT_OK && status != CKPT_ERROR_BUDGET) bad_input(o.trace + ": " + ckpt_last_error());
  if (!o.svg.empty()) write_svg(o, trace, result, offsets);
  if (o.json) print_json(trace, result, offsets);
  else {
    std::printf("buffers      %zu\nlower bound  %s\nheight       %s%s\n", trace.buffers.size(), size_text(result.lower_bound_bytes).c_str(), size_text(result.height_bytes).c_str(),
                result.proved ? ", proved: no packing is lower" : "");
    std::printf("offset        id\n");
    for (size_t k = 0; k < offsets.size(); ++k) std::printf("%-12zu  %s\n", offsets[k], trace.ids[k].c_str());
  }
  if (status != CKPT_OK)
    throw Failure(kInfeasible, o.trace + ": --capacity is " + std::to_string(o.capacity) + " bytes, expected at least " + std::to_string(result.height_bytes) + ", the lowest height that was found" +
                                   (result.proved ? ", and proved to be the lowest there is" : "; the lower bound is " + std::to_string(result.lower_bound_bytes)));
  return kGood;
}

}  // namespace

void add_pack(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("pack", "Offsets for the buffers of a trace, as low as can be found");
  auto o = std::make_shared<Options>();
  c->add_option("TRACE", o->trace, "CSV file: id,lower,upper,size; a buffer is live in [lower, upper)")->required();
  CLI::Option *capacity = add_size(c, "--capacity", &o->capacity, "a height that is low enough; exit status 2 if none is found");
  add_size(c, "--alignment", &o->alignment, "sizes are rounded up to it; default 1");
  add_count(c, "--work-limit", &o->work_limit, "units of work, a few nanoseconds each; default 6e8");
  c->add_flag("--json", o->json, "one JSON object");
  c->add_option("--svg", o->svg, "draw the packing to this file")->check(file_name());
  c->callback([o, capacity, exit_status] {
    if (capacity->count() != 0 && o->capacity == 0) bad_input("--capacity is 0, expected at least 1 byte (without --capacity the lowest packing is looked for)");
    *exit_status = pack(*o);
  });
}

}  // namespace ckpt::tool
