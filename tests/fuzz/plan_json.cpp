// Plans from any text, for a fixed chain: refused with one line, or a plan that its own text gives again.
#include "fuzz/fuzz.h"

namespace {

constexpr char kChain[] =
    R"({"input":{"bytes":7},"output":{"grad":"arena"},"segments":[
    {"name":"a","forward_seconds":2,"backward_seconds":1,"output_bytes":3,"slots":[{"name":"x","bytes":5,"cost_seconds":1},{"name":"y","bytes":4,"cost_seconds":1,"flags":["transient"]}]},
    {"name":"b","forward_seconds":2,"backward_seconds":1,"output_bytes":2,"saved_bytes":6},
    {"name":"c","forward_seconds":2,"backward_seconds":1,"slots":[],"inputs":["b","a"],"outputs":[{"name":"o","bytes":3},{"name":"p","bytes":1,"in_place_input":0}]}]})";

ckpt_chain *the_chain() {
  ckpt_chain *chain = nullptr;
  expect(ckpt_chain_from_json(kChain, sizeof kChain - 1, 1, "chain", &chain) == CKPT_OK);
  return chain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static ckpt_chain *const chain = the_chain();
  ckpt_plan *plan = nullptr;
  const ckpt_status status = ckpt_plan_from_json(reinterpret_cast<const char *>(data), size, "p.json", chain, &plan);
  if (status != CKPT_OK) {
    expect(plan == nullptr);
    expect_one_line("p.json: ");
    return 0;
  }
  char *text = nullptr, *events = nullptr;
  expect(ckpt_plan_to_json(plan, &text) == CKPT_OK);
  ckpt_plan *again = nullptr;
  expect(ckpt_plan_from_json(text, std::strlen(text), "again", chain, &again) == CKPT_OK);
  expect(ckpt_plan_hash(again) == ckpt_plan_hash(plan));
  expect(ckpt_plan_to_trace_json(plan, &events) == CKPT_OK);
  ckpt_text_free(events);
  ckpt_plan_destroy(again);
  ckpt_text_free(text);
  ckpt_plan_destroy(plan);
  return 0;
}
