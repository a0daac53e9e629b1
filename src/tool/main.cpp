// The command `ckpt`. Exit status 0; 1: bad input, one line on stderr; 2: infeasible.
#include <cstdio>

#include "tool/common.h"

namespace {

// One line, whatever the text brings along.
int complain(int exit_status, std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = c == '\n' ? ' ' : '?';
  std::fprintf(stderr, "ckpt: %s\n", text.c_str());
  return exit_status;
}

int run(int argc, char **argv) {
  namespace tool = ckpt::tool;
  CLI::App app{"Spends compute instead of memory: plans of activation checkpointing within a budget in bytes."};
  app.name("ckpt");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("ckpt ") + ckpt_version_string(), "The version of the library");
  int exit_status = tool::kGood;
  tool::add_plan(&app, &exit_status);
  tool::add_pack(&app, &exit_status);
  tool::add_verify(&app, &exit_status);
  tool::add_revolve(&app, &exit_status);
  tool::add_devices(&app, &exit_status);
  tool::add_version(&app, &exit_status);
  tool::add_estimate(&app, &exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError &error) {
    if (app.get_subcommands().empty() && argc > 1)
      return complain(tool::kBadInput, std::string("the first argument is '") + argv[1] + "', expected plan, pack, verify, revolve, devices, version, estimate or --help");
    if (app.get_subcommands().empty()) return complain(tool::kBadInput, "no subcommand, expected plan, pack, verify, revolve, devices, version, estimate or --help");
    for (const std::string &rest : app.get_subcommands().front()->remaining())
      if (rest.size() > 1 && rest.front() == '-') return complain(tool::kBadInput, "unknown option '" + rest + "' of " + app.get_subcommands().front()->get_name() + ", expected one that --help lists");
    return complain(tool::kBadInput, error.what());
  }
  if (std::fflush(stdout) != 0) return complain(tool::kBadInput, "the output cannot be written");
  return exit_status;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const ckpt::tool::Failure &failure) {
    std::fflush(stdout);
    return complain(failure.exit_status, failure.what());
  } catch (const std::bad_alloc &) {
    return complain(ckpt::tool::kBadInput, "the host refused memory");
  } catch (const std::exception &error) {
    return complain(ckpt::tool::kBadInput, error.what());
  }
}
