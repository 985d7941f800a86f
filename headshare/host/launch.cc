#include "headshare/host/launch.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/files/output_mark.h"
#include "headshare/base/notice.h"
#include "headshare/host/machine.h"
#include "headshare/models/noted_weights.h"
#include "headshare/train/group_reducer.h"
#include "headshare/train/launch_file.h"

namespace headshare {
namespace {

std::unique_ptr<Reducer>& joined_group() {
  static std::unique_ptr<Reducer> group;
  return group;
}

std::string place_of_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "unknown host";
  return join_text("host ", host.data());
}

// Returns a variable that the package sets; "" without it.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Names the call of torchrun, the same after it started the processes again; "" without torchrun.
std::string this_launch() { return variable("HEADSHARE_LAUNCH"); }

bool was_restarted() {
  const std::string count = variable("TORCHELASTIC_RESTART_COUNT");
  return !this_launch().empty() && !count.empty() && count != "0";
}

std::string commit_and_version() {
  const Machine machine = describe_machine();
  return machine.headshare + " (commit " + machine.commit + ")";
}

}  // namespace

Reducer& run_processes() { return joined_group() ? *joined_group() : one_process(); }

void join_group(const std::string& name) { joined_group() = make_group_reducer(name); }

const std::set<std::string>& options_of_a_process() {
  static const std::set<std::string> names = {"threads", "cache-dir", "device"};
  return names;
}

void check_same_verb(Reducer& processes, const std::string& verb) {
  check_alike(processes, {{"the verb", verb}}, place_of_process());
}

void check_launched_alike(Reducer& processes, const OptionGroups& options, const Facts& more) {
  if (processes.size() == 1) return;
  Facts facts = {{"headshare", commit_and_version()}};
  facts.insert(facts.end(), more.begin(), more.end());
  const nlohmann::json values = to_json(options);
  for (const auto& [name, value] : values.items()) {
    if (!options_of_a_process().contains(name)) facts.emplace_back("--" + name, value.dump());
  }
  check_alike(processes, facts, place_of_process());
}

void check_same_device(Reducer& processes, c10::Device device) {
  check_alike(processes, {{"--device", c10::DeviceTypeName(device.type(), /*lower_case=*/true)}}, place_of_process());
}

void check_same_teacher(Reducer& processes, const fs::path& checkpoint) {
  if (processes.size() == 1) return;
  check_alike(processes, {{"a --teacher with the fingerprint", weights_fingerprint(checkpoint)}}, place_of_process());
}

void check_same_data(Reducer& processes, const std::string& data) {
  check_alike(processes, {{"data with the fingerprints", data}}, place_of_process());
}

void check_micro_batches(const Reducer& processes, int64_t accumulation) {
  const int64_t size = processes.size();
  HS_CHECK(accumulation >= size, "--accumulation ", accumulation, " is less than the number of processes, ", size,
           ": some would have no micro-batch to compute; start at most ", accumulation,
           ", or train with --accumulation ", size, " and a --batch-size that is ", size, " times smaller");
  if (accumulation % size == 0) return;
  const int64_t most = (accumulation + size - 1) / size;
  notice(join_text("--accumulation ", accumulation, " over ", size, " processes: some compute ", most,
                   " micro-batches and wait for nothing, others ", most - 1, " and wait; --accumulation ", most * size,
                   " would take as long"));
}

Field shard_field(bool* target) {
  return field(
      "shard-optimizer", target,
      "under torchrun, let each process keep and step the optimizer's moments of some parameters (ZeRO-1): less "
      "memory, the same numbers");
}

void note_launch(const fs::path& out) {
  if (!this_launch().empty()) write_file(out / kLaunchFile, this_launch() + "\n");
}

bool goes_on_after_restart(Reducer& processes, const fs::path& out) {
  bool goes_on = false;
  on_process_0(processes, [&](const Beat& /*beat*/) {
    if (out.empty() || !was_restarted() || !path_exists(out / kResolvedFile)) return;
    if (!path_exists(out / kLaunchFile) || read_file(out / kLaunchFile) != this_launch() + "\n") return;
    goes_on = true;
    notice(join_text("torchrun started the processes again: going on in ", out.string()));
  });
  return any_process(processes, goes_on);
}

}  // namespace headshare
