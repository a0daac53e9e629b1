// revolve, devices, version.
#include <cinttypes>
#include <cstdio>

#include "tool/common.h"

namespace ckpt::tool {
namespace {

struct RevolveOptions {
  uint64_t steps = 0;
  uint32_t snapshots = 0;
  std::string schedule;
  bool json = false, actions = false;
};

const char *kind_name(uint32_t kind) {
  switch (kind) {
    case CKPT_SCHEDULE_STORE: return "store";
    case CKPT_SCHEDULE_RESTORE: return "restore";
    case CKPT_SCHEDULE_ADVANCE: return "advance";
    case CKPT_SCHEDULE_BACKWARD: return "backward";
    default: return "unknown";
  }
}

Schedule begin_schedule(const RevolveOptions &o) {
  ckpt_schedule *made = nullptr;
  check(ckpt_schedule_revolve(o.steps, o.snapshots, &made));
  return Schedule(made);
}

// One at a time: a schedule may have more actions than fit in memory.
template <class F>
void each_action(const RevolveOptions &o, F &&f) {
  const Schedule schedule = begin_schedule(o);
  for (;;) {
    ckpt_schedule_action a;
    check(ckpt_schedule_next(schedule.get(), &a));
    if (a.kind == CKPT_SCHEDULE_DONE) return;
    f(a);
  }
}

int revolve(const RevolveOptions &o) {
  uint64_t extra = 0;
  check(ckpt_revolve_extra_forwards(o.steps, o.snapshots, &extra));
  if (!o.schedule.empty()) {
    char *text = nullptr;
    check(ckpt_schedule_to_json(begin_schedule(o).get(), &text));
    const Text owner(text);
    write_file(o.schedule, text);
  }
  if (o.json) {
    std::printf("{\"steps\":%" PRIu64 ",\"snapshots\":%u,\"extra_forwards\":%" PRIu64 ",\"total_forwards\":%" PRIu64, o.steps, o.snapshots, extra, extra > UINT64_MAX - o.steps ? UINT64_MAX : extra + o.steps);
    if (o.actions) {
      bool any = false;
      std::printf(",\"actions\":[");
      each_action(o, [&](const ckpt_schedule_action &a) {
        std::printf("%s[\"%s\",%" PRIu64 ",%" PRIu64 ",%u]", any ? "," : "", kind_name(a.kind), a.first, a.last, a.snapshot);
        any = true;
      });
      std::printf("]");
    }
    std::printf("}\n");
    return kGood;
  }
  std::printf("steps %" PRIu64 ", snapshots %u: %" PRIu64 " extra forward steps\n", o.steps, o.snapshots, extra);
  if (o.actions)
    each_action(o, [](const ckpt_schedule_action &a) {
      if (a.kind == CKPT_SCHEDULE_STORE || a.kind == CKPT_SCHEDULE_RESTORE) std::printf("%-8s %" PRIu64 " snapshot %u\n", kind_name(a.kind), a.first, a.snapshot);
      else std::printf("%-8s %" PRIu64 " .. %" PRIu64 "\n", kind_name(a.kind), a.first, a.last);
    });
  return kGood;
}

int devices(bool json) {
  Json list = Json::array();
  const auto look = [&](const std::string &name) {
    ckpt_device *made = nullptr;
    const ckpt_status status = ckpt_device_open(name.c_str(), &made);
    if (status == CKPT_ERROR_NOT_FOUND) return false;
    check(status);
    const Device device(made);
    ckpt_device_info info{};
    info.struct_size = sizeof info;
    check(ckpt_device_get_info(device.get(), &info));
    if (json) list.push_back({{"device", name}, {"name", info.name}, {"index", info.index}, {"thread_count", info.thread_count}, {"total_bytes", info.total_bytes}, {"available_bytes", info.available_bytes}});
    else std::printf("%-7s  %s, %s, %s available\n", name.c_str(), info.name, size_text(info.total_bytes).c_str(), size_text(info.available_bytes).c_str());
    return true;
  };
  look("cpu");
  uint32_t count = 0;
  while (look("cuda:" + std::to_string(count))) ++count;
  if (!json && count == 0) std::printf("cuda     none: %s\n", ckpt_last_error());
  if (json) print({{"devices", std::move(list)}});
  return kGood;
}

}  // namespace

void add_revolve(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("revolve", "The optimal schedule of a loop of equal steps (Griewank and Walther)");
  auto o = std::make_shared<RevolveOptions>();
  add_count(c, "--steps", &o->steps, "steps of the loop", 1)->required();
  add_count(c, "--snapshots", &o->snapshots, "states held at once, the first one included")->required();
  c->add_flag("--actions", o->actions, "print the actions too");
  c->add_option("--schedule", o->schedule, "write the actions in checkpoint_schedules' vocabulary to this file");
  c->add_flag("--json", o->json, "one JSON object; with --actions its actions are [kind, first, last, snapshot]");
  c->callback([o, exit_status] { *exit_status = revolve(*o); });
}

void add_devices(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("devices", "The devices that the library can use here");
  auto json = std::make_shared<bool>(false);
  c->add_flag("--json", *json, "one JSON object");
  c->callback([json, exit_status] { *exit_status = devices(*json); });
}

void add_version(CLI::App *app, int *exit_status) {
  CLI::App *c = app->add_subcommand("version", "The library's version");
  auto json = std::make_shared<bool>(false);
  c->add_flag("--json", *json, "one JSON object");
  c->callback([json, exit_status] {
    if (*json) print({{"version", ckpt_version_string()}});
    else std::printf("ckpt %s\n", ckpt_version_string());
    *exit_status = kGood;
  });
}

}  // namespace ckpt::tool
