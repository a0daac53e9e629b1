#include <cinttypes>
#include <cstdio>

#include "tool/common.h"

namespace ckpt::tool {
namespace {

struct Options {
  ckpt_model_desc model = CKPT_MODEL_DESC_INIT;
  ckpt_layout_desc layout = CKPT_LAYOUT_DESC_INIT;
  ckpt_hardware_desc hardware = CKPT_HARDWARE_DESC_INIT;
  std::string dtype = "bf16", activation = "gelu", attention = "plain", dropout, chain;
  bool sequence_parallel = false, json = false;
  uint64_t budget = 0, rank = 0, chunk = 0, alignment = 0;
  bool has_rank = false, has_budget = false;
};

void complete(Options *o) {
  constexpr struct { const char *name; uint32_t bytes; } kTypes[] = {{"fp8", 1}, {"bf16", 2}, {"fp16", 2}, {"fp32", 4}, {"fp64", 8}};
  for (const auto &t : kTypes)
    if (o->dtype == t.name) o->model.element_bytes = t.bytes;
  o->model.activation = o->activation == "swiglu" ? CKPT_MODEL_SWIGLU : CKPT_MODEL_GELU;
  o->model.attention = o->attention == "flash" ? CKPT_MODEL_FLASH_ATTENTION : CKPT_MODEL_PLAIN_ATTENTION;
  // As the models are that have it: GPT's blocks drop out, the gated ones do not.
  if (o->dropout.empty()) o->dropout = o->activation == "gelu" ? "on" : "off";
  if (o->dropout == "on") o->model.flags |= CKPT_MODEL_DROPOUT;
  if (o->sequence_parallel) o->layout.flags |= CKPT_LAYOUT_SEQUENCE_PARALLEL;
  if (o->has_budget && o->budget == 0) bad_input("--budget is 0, expected at least 1 byte (without --budget there is no limit)");
}

const ckpt_hardware_desc *hardware_of(const Options &o) { return o.hardware.flops_per_second > 0 ? &o.hardware : nullptr; }

Json json_of(const ckpt_estimate &e) {
  Json j = {{"policy", ckpt_recompute_name(e.policy)}, {"layer_bytes", e.layer_bytes}, {"layers_in_flight", e.layers_in_flight}, {"in_flight", e.in_flight}, {"outside_bytes", e.outside_bytes},
            {"activation_bytes", e.activation_bytes}, {"peak_bytes", e.peak_bytes}, {"arena_bytes", e.arena_bytes}, {"forward_flops", e.forward_flops}, {"backward_flops", e.backward_flops},
            {"recompute_flops", e.recompute_flops}, {"replay_flops", e.replay_flops}, {"model_flops", e.model_flops}, {"forward_seconds", e.forward_seconds}, {"backward_seconds", e.backward_seconds},
            {"recompute_seconds", e.recompute_seconds}, {"offload_bytes_per_second", e.offload_bytes_per_second}};
  if (e.policy == CKPT_RECOMPUTE_OPTIMAL) j["minimum_budget_bytes"] = e.minimum_budget_bytes;
  return j;
}

std::string row(const ckpt_estimate &e, bool seconds) {
  const double flops = e.forward_flops + e.backward_flops, step = e.forward_seconds + e.backward_seconds;
  char text[256];
  const int n = std::snprintf(text, sizeof text, "  %-13s  %-30s  %-30s  %6.2f %%", ckpt_recompute_name(e.policy), size_text(e.activation_bytes).c_str(), size_text(e.peak_bytes).c_str(), flops > 0 ? 100 * e.recompute_flops / flops : 0);
  if (seconds) std::snprintf(text + n, sizeof text - static_cast<size_t>(n), "  %6.2f %% of %s", step > 0 ? 100 * e.recompute_seconds / step : 0, seconds_text(step).c_str());
  return std::string(text) + "\n";
}

void write_chain(const Options &o) {
  ckpt_chain *made = nullptr;
  check(ckpt_estimate_chain(&o.model, &o.layout, hardware_of(o), o.rank, o.chunk, o.alignment, &made));
  const Chain chain(made);
  char *text = nullptr;
  check(ckpt_chain_to_json(chain.get(), &text));
  const Text owner(text);
  write_file(o.chain, text);
}

// Of one rank and policy. Infeasible: the smallest budget, in *out.
ckpt_status ask(const Options &o, uint32_t policy, uint64_t rank, ckpt_estimate *out) {
  *out = ckpt_estimate{};
  out->struct_size = sizeof *out;
  return ckpt_estimate_rank(&o.model, &o.layout, hardware_of(o), policy, rank, policy == CKPT_RECOMPUTE_OPTIMAL ? o.budget : 0, out);
}

int estimate(const Options &o) {
  const uint64_t ranks = o.layout.pipeline != 0 ? o.layout.pipeline : 1;
  const uint64_t first = o.has_rank ? o.rank : 0, last = o.has_rank ? o.rank : ranks - 1;
  std::string refusal, table;
  Json list = Json::array();
  for (uint64_t rank = first; rank <= last; ++rank) {
    Json policies = Json::array();
    char heading[160];
    std::snprintf(heading, sizeof heading, "rank %" PRIu64 "\n  %-13s  %-30s  %-30s  %s\n", rank, "policy", "held", "peak", hardware_of(o) != nullptr ? "extra FLOPs, time" : "extra FLOPs");
    table += heading;
    for (uint32_t policy = CKPT_RECOMPUTE_NONE; policy <= CKPT_RECOMPUTE_OPTIMAL; ++policy) {
      if (policy == CKPT_RECOMPUTE_OPTIMAL && !o.has_budget) continue;
      ckpt_estimate e;
      const ckpt_status status = ask(o, policy, rank, &e);
      if (status == CKPT_ERROR_BUDGET) {
        refusal = "rank " + std::to_string(rank) + ": --budget is " + std::to_string(o.budget) + " bytes, expected at least " + std::to_string(e.minimum_budget_bytes) + ", the smallest budget that works";
        if (o.json) policies.push_back({{"policy", "optimal"}, {"status", "INFEASIBLE"}, {"budget_bytes", o.budget}, {"minimum_budget_bytes", e.minimum_budget_bytes}});
        continue;
      }
      check(status);
      if (o.json) policies.push_back(json_of(e));
      else table += row(e, hardware_of(o) != nullptr);
    }
    list.push_back({{"rank", rank}, {"policies", std::move(policies)}});
  }
  if (!o.chain.empty()) write_chain(o);
  if (o.json) print({{"ranks", std::move(list)}});
  else std::fputs(table.c_str(), stdout);
  if (!refusal.empty()) throw Failure(kInfeasible, refusal);
  return kGood;
}

}  // namespace

void add_estimate(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("estimate", "Activation memory of a transformer's ranks, from its shape and layout");
  auto o = std::make_shared<Options>();
  ckpt_model_desc &m = o->model;
  m.micro_batch = 1;
  ckpt_layout_desc &l = o->layout;
  add_count(c, "--layers", &m.layers, "layers of the model")->required();
  add_count(c, "--hidden", &m.hidden, "hidden size")->required();
  add_count(c, "--heads", &m.heads, "attention heads")->required();
  add_count(c, "--kv-heads", &m.kv_heads, "key and value heads; default as many as heads");
  add_count(c, "--head-size", &m.head_size, "default hidden / heads");
  add_count(c, "--ffn", &m.ffn, "width of the feed-forward; default 4 * hidden");
  add_count(c, "--seq,--sequence", &m.sequence, "sequence length")->required();
  add_count(c, "--batch,--micro-batch", &m.micro_batch, "sequences of a micro-batch; default 1");
  add_count(c, "--vocab,--vocabulary", &m.vocabulary, "default 0: no head");
  c->add_option("--dtype", o->dtype, "of activations; default bf16")->check(CLI::IsMember({"fp8", "bf16", "fp16", "fp32", "fp64"}));
  c->add_option("--activation", o->activation, "default gelu")->check(CLI::IsMember({"gelu", "swiglu"}));
  c->add_option("--attention", o->attention, "default plain")->check(CLI::IsMember({"plain", "flash"}));
  c->add_option("--dropout", o->dropout, "default on with gelu, off with swiglu")->check(CLI::IsMember({"on", "off"}));
  add_count(c, "--tensor-parallel", &l.tensor_parallel, "ranks that share each layer; default 1");
  c->add_flag("--sequence-parallel", o->sequence_parallel, "norms, dropout and block inputs are cut over the tensor ranks");
  add_count(c, "--context-parallel", &l.context_parallel, "ranks that share the sequence; default 1");
  add_count(c, "--pipeline-parallel", &l.pipeline, "stages; default 1");
  add_count(c, "--virtual-pipeline", &l.virtual_pipeline, "chunks of layers per rank; default 1");
  add_count(c, "--micro-batches", &l.micro_batches, "of one step; default as many as fill the pipeline");
  CLI::Option *flops = c->add_option("--flops", o->hardware.flops_per_second, "FLOP/s that a rank achieves: times are estimated");
  CLI::Option *bandwidth = c->add_option("--bandwidth", o->hardware.bytes_per_second, "bytes/s of its memory");
  flops->needs(bandwidth);
  bandwidth->needs(flops);
  CLI::Option *budget = add_size(c, "--budget", &o->budget, "of a rank: adds the optimal plan");
  CLI::Option *rank = add_count(c, "--rank", &o->rank, "of the pipeline; default all");
  CLI::Option *chain = c->add_option("--chain", o->chain, "write the chain of one chunk of layers, which `ckpt plan` takes, to this file (of --rank, default 0)");
  add_count(c, "--chunk", &o->chunk, "of --chain; default 0")->needs(chain);
  add_size(c, "--alignment", &o->alignment, "of the chain's buffers; default 256")->needs(chain);
  c->add_flag("--json", o->json, "one JSON object");
  c->callback([o, flops, rank, budget, exit_status] {
    o->has_rank = rank->count() != 0;
    o->has_budget = budget->count() != 0;
    if (flops->count() != 0 && !(o->hardware.flops_per_second > 0)) bad_input("--flops is not above 0, expected a number of FLOP/s");
    complete(o.get());
    *exit_status = estimate(*o);
  });
}

}  // namespace ckpt::tool
