#include <cstdio>

#include "tool/chain_names.h"
#include "tool/common.h"
#include "tool/svg.h"

namespace ckpt::tool {
namespace {

struct Options {
  std::string chain, strategy = "auto", plan_class, output, svg, trace, schedule;
  std::vector<std::string> keep, recompute;
  uint64_t budget = 0, alignment = 0, work_limit = 0;
  uint32_t in_flight = 1, points = 32;
  bool has_budget = false, json = false, curve = false, explain = false;
};

const char *status_name(uint32_t status) { return status == CKPT_PLAN_OPTIMAL ? "OPTIMAL" : "GAP"; }
const char *class_text(uint32_t plan_class) { return plan_class != 0 ? ckpt_class_name(plan_class) : "none"; }

// The desc that the options ask for; the patterns' addresses live in `keep` and `recompute`.
ckpt_plan_desc make_desc(const Options &o, std::vector<const char *> *keep, std::vector<const char *> *recompute) {
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  if (ckpt_strategy_parse(o.strategy.c_str(), &d.strategy, &d.k) != CKPT_OK) bad_input("--strategy is '" + o.strategy.substr(0, 60) + "': " + ckpt_last_error());
  if (!o.plan_class.empty() && ckpt_class_parse(o.plan_class.c_str(), &d.plan_class) != CKPT_OK) bad_input("--class is '" + o.plan_class.substr(0, 60) + "': " + ckpt_last_error());
  for (const std::string &p : o.keep) keep->push_back(p.c_str());
  for (const std::string &p : o.recompute) recompute->push_back(p.c_str());
  d.keep_patterns = keep->data();
  d.keep_pattern_count = static_cast<uint32_t>(keep->size());
  d.recompute_patterns = recompute->data();
  d.recompute_pattern_count = static_cast<uint32_t>(recompute->size());
  d.in_flight_count = o.in_flight;
  d.budget_bytes = o.budget;
  d.work_limit = o.work_limit;
  return d;
}

ckpt_plan_summary summary_of(const ckpt_plan *plan) {
  ckpt_plan_summary s{};
  s.struct_size = sizeof s;
  check(ckpt_plan_get_summary(plan, &s));
  return s;
}

// The plan's file, without what only a file needs, and with what only a run knows.
Json result_of(const ckpt_plan *plan, const ckpt_plan_summary &s, size_t minimum) {
  char *text = nullptr;
  check(ckpt_plan_to_json(plan, &text));
  const Text owner(text);
  Json file = Json::parse(text);
  Json r;
  r["status"] = file["status"];
  r["class"] = file["class"];
  r["budget_bytes"] = file["budget_bytes"];
  r["minimum_budget_bytes"] = minimum;
  for (const char *field : {"peak_bytes", "arena_bytes", "held_bytes", "forward_seconds", "backward_seconds", "recompute_seconds", "class_gap_seconds", "universal_gap_seconds"}) r[field] = file[field];
  r["plan_seconds"] = s.plan_seconds;
  r["hash"] = file["hash"];
  r["actions"] = std::move(file["actions"]);
  return r;
}

const char *because_text(uint32_t because) {
  switch (because) {
    case CKPT_BECAUSE_MARKED: return "marked";
    case CKPT_BECAUSE_UNUSED: return "unused";
    case CKPT_BECAUSE_ALREADY: return "already";
    case CKPT_BECAUSE_FASTER: return "faster";
    case CKPT_BECAUSE_BUDGET: return "budget";
    case CKPT_BECAUSE_NO_GAIN: return "no_gain";
    case CKPT_BECAUSE_SEARCH: return "search";
    default: return "unknown";
  }
}

std::string because_sentence(const ckpt_explanation &e) {
  switch (e.because) {
    case CKPT_BECAUSE_MARKED: return "it is no choice: marked, an input, or the caller's memory";
    case CKPT_BECAUSE_UNUSED: return "nobody reads it after its forward";
    case CKPT_BECAUSE_ALREADY: return "dropping it would not lower the peak";
    case CKPT_BECAUSE_FASTER: return "dropping it would cost " + seconds_text(e.seconds_change);
    case CKPT_BECAUSE_BUDGET: return "keeping it would save " + seconds_text(-e.seconds_change) + ", and lift the peak by " + std::to_string(e.peak_change) + " bytes, above the budget";
    case CKPT_BECAUSE_NO_GAIN: return "keeping it would save no time";
    case CKPT_BECAUSE_SEARCH: return "keeping it would fit and save " + seconds_text(-e.seconds_change) + ", which the search did not find";
    default: return "";
  }
}

std::vector<ckpt_explanation> explain(const ckpt_chain *chain, const ckpt_plan *plan) {
  uint32_t count = 0;
  check(ckpt_plan_explain(chain, plan, 0, 0, sizeof(ckpt_explanation), nullptr, &count));
  std::vector<ckpt_explanation> all(count);
  check(ckpt_plan_explain(chain, plan, 0, count, sizeof(ckpt_explanation), all.data(), nullptr));
  return all;
}

std::string name_of(const ChainNames &names, uint32_t what, uint32_t index, uint32_t item) {
  switch (what) {
    case CKPT_PLACED_SLOT: return names.slot(index, item);
    case CKPT_PLACED_OUTPUT: return names.output(index, item);
    case CKPT_PLACED_INPUT: return "input (boundary " + std::to_string(index) + ")";
    case CKPT_PLACED_GRAD: return "gradient of boundary " + std::to_string(index);
    default: return names.segment(index) + ", scratch";
  }
}

Json explanations_json(const std::vector<ckpt_explanation> &all, const ChainNames &names) {
  Json list = Json::array();
  for (const ckpt_explanation &e : all)
    list.push_back({{"name", name_of(names, e.what, e.index, e.item)}, {"bytes", e.bytes}, {"kept", e.kept != 0}, {"because", because_text(e.because)}, {"seconds_change", e.seconds_change}, {"peak_change", e.peak_change}});
  return list;
}

void print_explanations(const std::vector<ckpt_explanation> &all, const ChainNames &names) {
  for (const ckpt_explanation &e : all)
    std::printf("%-4s  %s, %s: %s\n", e.kept ? "keep" : "drop", name_of(names, e.what, e.index, e.item).c_str(), size_text(e.bytes).c_str(), because_sentence(e).c_str());
}

// "auto: store_all" where auto found that this strategy is the fastest.
std::string strategy_text(const ckpt_plan_summary &s, uint32_t asked) {
  const std::string made = ckpt_strategy_name(s.strategy);
  return asked == s.strategy ? made : ckpt_strategy_name(asked) + (": " + made);
}

void print_summary(const ckpt_plan_summary &s, uint32_t asked, size_t minimum) {
  const double step = s.forward_seconds + s.backward_seconds, percent = step > 0 ? 100 * s.recompute_seconds / step : 0;
  const std::string strategy = strategy_text(s, asked);
  if (asked == CKPT_STRATEGY_AUTO) std::printf("status      %s, class %s, strategy %s\n", status_name(s.status), class_text(s.plan_class), strategy.c_str());
  else std::printf("status      %s, strategy %s\n", status_name(s.status), strategy.c_str());
  std::printf("budget      %s\nminimum     %s\n", s.budget_bytes != 0 ? size_text(s.budget_bytes).c_str() : "none", size_text(minimum).c_str());
  std::printf("peak        %s live, %s arena, %s held after the forward pass\n", size_text(s.peak_bytes).c_str(), size_text(s.arena_bytes).c_str(), size_text(s.held_bytes).c_str());
  std::printf("time        forward %s, backward %s, recompute %s (%.2f %%)\n", seconds_text(s.forward_seconds).c_str(), seconds_text(s.backward_seconds).c_str(), seconds_text(s.recompute_seconds).c_str(), percent);
  std::printf("gap         class %s, universal %s\n", seconds_text(s.class_gap_seconds).c_str(), seconds_text(s.universal_gap_seconds).c_str());
  std::printf("plan        %u actions in %s, hash %s\n", s.action_count, seconds_text(s.plan_seconds).c_str(), hash_text(s.hash).c_str());
}

void write_svg(const Options &o, const ckpt_plan *plan, const ckpt_plan_summary &s, const ChainNames &names) {
  if (s.placement_count == 0 && o.in_flight > 1) bad_input("--svg: with --in-flight above 1 a step places as it goes, expected --in-flight 1");
  std::vector<ckpt_placement> placements(s.placement_count);
  check(ckpt_plan_get_placements(plan, 0, s.placement_count, sizeof(ckpt_placement), placements.data()));
  Picture p;
  p.title = "ckpt plan " + o.chain + ": arena " + size_text(s.arena_bytes) + ", live " + size_text(s.peak_bytes) + ", recomputation " + seconds_text(s.recompute_seconds);
  p.time_axis = "actions of the plan";
  p.kinds = {"slot", "output", "input", "gradient", "scratch"};
  p.height = s.arena_bytes;
  p.limit = s.budget_bytes;
  p.limit_name = "budget";
  for (const ckpt_placement &b : placements) p.rectangles.push_back({b.first_action, b.end_action, b.offset, b.bytes, b.what, b.is_recompute != 0, name_of(names, b.what, b.index, b.item)});
  write_file(o.svg, draw(p));
}

template <class F>
void write_text(const std::string &path, F &&make) {
  char *text = nullptr;
  check(make(&text));
  const Text owner(text);
  write_file(path, text);
}

int curve(const Options &o, const ckpt_chain *chain, const ckpt_plan_desc &desc) {
  std::vector<ckpt_curve_point> points(o.points);
  uint32_t count = 0;
  check(ckpt_plan_curve(chain, &desc, o.points, sizeof(ckpt_curve_point), points.data(), &count));
  points.resize(count);
  if (o.json) {
    Json list = Json::array();
    for (const ckpt_curve_point &p : points)
      list.push_back({{"status", status_name(p.status)}, {"budget_bytes", p.budget_bytes}, {"peak_bytes", p.peak_bytes}, {"seconds", p.seconds}, {"recompute_seconds", p.recompute_seconds},
                      {"class_gap_seconds", p.class_gap_seconds}, {"universal_gap_seconds", p.universal_gap_seconds}});
    print({{"curve", std::move(list)}});
    return kGood;
  }
  std::printf("%-28s  %-14s  %-14s  %s\n", "budget", "step", "recompute", "status");
  for (const ckpt_curve_point &p : points) std::printf("%-28s  %-14s  %-14s  %s\n", size_text(p.budget_bytes).c_str(), seconds_text(p.seconds).c_str(), seconds_text(p.recompute_seconds).c_str(), status_name(p.status));
  return kGood;
}

[[noreturn]] void infeasible(const Options &o, const ckpt_chain *chain, const ckpt_plan_desc &desc) {
  size_t minimum = 0;
  check(ckpt_plan_minimum_budget(chain, &desc, &minimum));
  const uint32_t searched = desc.strategy == CKPT_STRATEGY_AUTO ? (desc.plan_class != 0 ? desc.plan_class : uint32_t{CKPT_CLASS_SIGMA_S_W}) : 0;
  if (o.json) print({{"status", "INFEASIBLE"}, {"class", class_text(searched)}, {"budget_bytes", o.budget}, {"minimum_budget_bytes", minimum}});
  const std::string with = desc.strategy == CKPT_STRATEGY_AUTO ? "" : std::string(" with strategy ") + ckpt_strategy_name(desc.strategy);
  throw Failure(kInfeasible, o.chain + ": --budget is " + std::to_string(o.budget) + " bytes, expected at least " + std::to_string(minimum) + ", the smallest budget that works" + with);
}

int plan(const Options &o) {
  if (o.has_budget && o.budget == 0) bad_input("--budget is 0, expected at least 1 byte (without --budget there is no limit)");
  const std::string text = read_file(o.chain);
  ckpt_chain *made_chain = nullptr;
  check(ckpt_chain_from_json(text.data(), text.size(), o.alignment, o.chain.c_str(), &made_chain));
  const Chain chain(made_chain);
  std::vector<const char *> keep, recompute;
  const ckpt_plan_desc desc = make_desc(o, &keep, &recompute);
  if (o.curve) return curve(o, chain.get(), desc);
  ckpt_plan *made = nullptr;
  const ckpt_status status = ckpt_plan_create(chain.get(), &desc, &made);
  const Plan plan(made);
  if (status == CKPT_ERROR_BUDGET) infeasible(o, chain.get(), desc);
  if (status != CKPT_OK) bad_input(o.chain + ": " + ckpt_last_error());
  const ckpt_plan_summary s = summary_of(plan.get());
  size_t minimum = s.minimum_budget_bytes;
  if (minimum == 0) check(ckpt_plan_minimum_budget(chain.get(), &desc, &minimum));
  const ChainNames names(text);
  if (!o.output.empty()) write_text(o.output, [&](char **to) { return ckpt_plan_to_json(plan.get(), to); });
  if (!o.trace.empty()) write_text(o.trace, [&](char **to) { return ckpt_plan_to_trace_json(plan.get(), to); });
  if (!o.schedule.empty()) write_text(o.schedule, [&](char **to) { return ckpt_plan_to_schedule_json(plan.get(), to); });
  if (!o.svg.empty()) write_svg(o, plan.get(), s, names);
  std::vector<ckpt_explanation> explanations;
  if (o.explain) explanations = explain(chain.get(), plan.get());
  if (o.json) {
    Json result = result_of(plan.get(), s, minimum);
    if (o.explain) result["explanations"] = explanations_json(explanations, names);
    print(result);
    return kGood;
  }
  print_summary(s, desc.strategy, minimum);
  if (o.explain) print_explanations(explanations, names);
  return kGood;
}

}  // namespace

void add_plan(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("plan", "The fastest plan of a chain that fits a budget");
  auto o = std::make_shared<Options>();
  const CLI::Validator named = file_name();
  c->add_option("CHAIN", o->chain, "chain as JSON: see ckpt/json.h")->required();
  CLI::Option *budget = add_size(c, "--budget", &o->budget, "bounds the arena's height; without it there is no limit");
  c->add_option("--strategy", o->strategy, "auto (default), store_all, every_segment, sqrt, uniform:K, block:K, full, selective");
  c->add_option("--class", o->plan_class, "what auto searches: rotor, sigma, sigma+s+w (default), sigma+s+w+d");
  add_size(c, "--alignment", &o->alignment, "of each buffer, a power of two; default the file's, else 256");
  add_count(c, "--work-limit", &o->work_limit, "units of work after which the best plan so far is taken; default about a second");
  add_count(c, "--in-flight", &o->in_flight, "recordings alive at once, as in pipelines; default 1", 1, 4096);
  c->add_option("--keep", o->keep, "selective, auto: pattern of slots to keep; may come several times")->allow_extra_args(false);
  c->add_option("--recompute", o->recompute, "selective, auto: pattern of slots to make again; may come several times")->allow_extra_args(false);
  CLI::Option *curve = c->add_flag("--curve", o->curve, "time over budget, instead of one plan");
  add_count(c, "--points", &o->points, "of the curve, at most; default 32", 1, 4096)->needs(curve);
  CLI::Option *explain = c->add_flag("--explain", o->explain, "why each slot and boundary is kept or not");
  c->add_flag("--json", o->json, "one JSON object");
  CLI::Option *output = c->add_option("-o,--output", o->output, "write the plan to this file, which `ckpt verify` reads")->check(named);
  CLI::Option *svg = c->add_option("--svg", o->svg, "draw memory over the step to this file")->check(named);
  CLI::Option *trace = c->add_option("--trace", o->trace, "write the step as Chrome trace events to this file")->check(named);
  CLI::Option *schedule = c->add_option("--schedule", o->schedule, "write the actions in checkpoint_schedules' vocabulary to this file")->check(named);
  for (CLI::Option *other : {budget, explain, output, svg, trace, schedule}) curve->excludes(other);
  c->callback([o, budget, exit_status] {
    o->has_budget = budget->count() != 0;
    *exit_status = plan(*o);
  });
}

}  // namespace ckpt::tool
