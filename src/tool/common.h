// What the subcommands of `ckpt` share. The command uses the library through its public C ABI alone.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "ckpt/ckpt.h"

namespace ckpt::tool {

using Json = nlohmann::ordered_json;

// Exit statuses.
enum { kGood = 0, kBadInput = 1, kInfeasible = 2 };

// Ends the command with one line on stderr.
struct Failure : std::runtime_error {
  Failure(int code, const std::string &text) : std::runtime_error(text), exit_status(code) {}
  int exit_status;
};
[[noreturn]] void bad_input(const std::string &text);
// For what a call of the library returned: nothing on success.
void check(ckpt_status status);

template <class T, void (*Destroy)(T *)>
struct Destroyer {
  void operator()(T *object) const { Destroy(object); }
};
using Chain = std::unique_ptr<ckpt_chain, Destroyer<ckpt_chain, ckpt_chain_destroy>>;
using Plan = std::unique_ptr<ckpt_plan, Destroyer<ckpt_plan, ckpt_plan_destroy>>;
using Schedule = std::unique_ptr<ckpt_schedule, Destroyer<ckpt_schedule, ckpt_schedule_destroy>>;
using Device = std::unique_ptr<ckpt_device, Destroyer<ckpt_device, ckpt_device_close>>;
using Text = std::unique_ptr<char, Destroyer<char, ckpt_text_free>>;

std::string read_file(const std::string &path);
void write_file(const std::string &path, std::string_view text);

// "4096", "512KiB", "1.5GiB" (KiB, MiB, GiB, TiB), rounded down to a byte. `option`: its name in errors.
uint64_t parse_size(const std::string &option, const std::string &text);
// Refuses the empty name.
CLI::Validator file_name();
// An option that takes such a size; `to` stays as it is without it.
CLI::Option *add_size(CLI::App *command, const std::string &name, uint64_t *to, const std::string &about);
// An option that takes a whole number. (CLI11 reads "-1" as a very large one.)
uint64_t parse_count(const std::string &option, const std::string &text, uint64_t low, uint64_t high);
template <class T>
CLI::Option *add_count(CLI::App *command, const std::string &name, T *to, const std::string &about, uint64_t low = 0, uint64_t high = std::numeric_limits<T>::max()) {
  const std::string option = name.substr(0, name.find(','));
  return command->add_option_function<std::string>(name, [=](const std::string &text) { *to = static_cast<T>(parse_count(option, text, low, high)); }, about)->type_name("N");
}
// "512.0 MiB (536870912)".
std::string size_text(uint64_t bytes);
std::string seconds_text(double seconds);
std::string hash_text(uint64_t hash);

void print(const Json &object);

// One each: options, and what is done with them.
void add_plan(CLI::App *app, int *exit_status);
void add_pack(CLI::App *app, int *exit_status);
void add_verify(CLI::App *app, int *exit_status);
void add_revolve(CLI::App *app, int *exit_status);
void add_devices(CLI::App *app, int *exit_status);
void add_version(CLI::App *app, int *exit_status);
void add_estimate(CLI::App *app, int *exit_status);

}  // namespace ckpt::tool
