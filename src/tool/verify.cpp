#include <cstdio>

#include "tool/common.h"

namespace ckpt::tool {
namespace {

struct Options {
  std::string plan, chain;
  uint64_t alignment = 0;
  bool json = false;
};

// Where nobody says for which alignment a plan was made, its hash does: the default first, then powers of two.
std::vector<size_t> alignments(const Options &o, const std::string &text) {
  if (o.alignment != 0) return {o.alignment};
  const nlohmann::json plan = nlohmann::json::parse(text, nullptr, false);
  if (plan.is_object() && plan.contains("alignment_bytes") && plan["alignment_bytes"].is_number_unsigned()) {
    const auto bytes = plan["alignment_bytes"].get<size_t>();
    if (bytes != 0 && (bytes & (bytes - 1)) == 0 && bytes <= size_t{1} << 60) return {bytes};
  }
  std::vector<size_t> all = {0};
  for (size_t bytes = 1; bytes <= 65536; bytes *= 2) all.push_back(bytes);
  return all;
}

int verify(const Options &o) {
  const std::string plan_text = read_file(o.plan), chain_text = read_file(o.chain);
  std::string first_refusal;
  for (const size_t alignment : alignments(o, plan_text)) {
    ckpt_chain *made_chain = nullptr;
    if (ckpt_chain_from_json(chain_text.data(), chain_text.size(), alignment, o.chain.c_str(), &made_chain) != CKPT_OK) bad_input(ckpt_last_error());
    const Chain chain(made_chain);
    ckpt_plan *made = nullptr;
    const ckpt_status status = ckpt_plan_from_json(plan_text.data(), plan_text.size(), o.plan.c_str(), chain.get(), &made);
    const Plan plan(made);
    if (status != CKPT_OK) {
      if (first_refusal.empty()) first_refusal = ckpt_last_error();
      // Another alignment changes the hash, and whether the plan keeps its own budget; nothing else.
      if (status == CKPT_ERROR_CONFLICT || status == CKPT_ERROR_BUDGET) continue;
      bad_input(ckpt_last_error());
    }
    ckpt_plan_summary s{};
    s.struct_size = sizeof s;
    check(ckpt_plan_get_summary(plan.get(), &s));
    if (o.json)
      print({{"valid", true}, {"peak_bytes", s.peak_bytes}, {"arena_bytes", s.arena_bytes}, {"held_bytes", s.held_bytes}, {"forward_seconds", s.forward_seconds}, {"backward_seconds", s.backward_seconds},
             {"recompute_seconds", s.recompute_seconds}, {"hash", hash_text(s.hash)}, {"action_count", s.action_count}});
    else
      std::printf("valid: %u actions, %s live, %s arena, recompute %s, hash %s\n", s.action_count, size_text(s.peak_bytes).c_str(), size_text(s.arena_bytes).c_str(), seconds_text(s.recompute_seconds).c_str(),
                  hash_text(s.hash).c_str());
    return kGood;
  }
  bad_input(first_refusal);
}

}  // namespace

void add_verify(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("verify", "Checks a plan against its chain");
  auto o = std::make_shared<Options>();
  c->add_option("PLAN", o->plan, "plan file, or what `ckpt plan --json` printed")->required();
  c->add_option("CHAIN", o->chain, "chain as JSON")->required();
  add_size(c, "--alignment", &o->alignment, "of each buffer; default the one that the plan was made for");
  c->add_flag("--json", o->json, "one JSON object");
  c->callback([o, exit_status] { *exit_status = verify(*o); });
}

}  // namespace ckpt::tool
