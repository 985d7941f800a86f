// These targets read the plan of a comparison, the plan of a cell, and leases: files that any machine may have written.
#include <unistd.h>

#include "headshare/base/error.h"
#include "headshare/compare/options.h"
#include "headshare/host/lease.h"
#include "headshare/host/plan_file.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

constexpr const char* kCell = "mha-seed0";

// The driver's folders are flat; a plan stands in a folder of its comparison.
fs::path as_comparison(const fs::path& folder) {
  const fs::path home = folder / "home";
  fs::create_directories(plan_folder(home));
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::copy_file(entry.path(), plan_folder(home) / entry.path().filename(), fs::copy_options::overwrite_existing);
  }
  return home;
}

void read_plans(const fs::path& folder) {
  const fs::path home = as_comparison(folder);
  may_refuse([&] { use(read_plan(home).cells.size()); });
  const CellPlan plan = read_cell_plan(home, kCell);
  const CellPlan again = plan_from_json(to_json(plan), "what was written");
  if (to_json(again) != to_json(plan)) throw std::logic_error("another plan after writing");
}

void read_leases(const fs::path& folder) {
  const std::optional<Lease> lease = last_lease(folder, kCell);
  if (!lease || lease->damaged) return;
  LeaseWatch watch({});
  use(static_cast<uint64_t>(watch.look(*lease)));
  use(described(lease->owner).size());
}

}  // namespace

std::vector<Target> targets() {
  const fs::path home = fs::temp_directory_path() / ("headshare-fuzz-plans-" + std::to_string(::getpid()));
  CellPlan plan{.key = {"mha", "", 0}, .options = preset_options("offsets", Preset::kQuick), .data = {{"", "abc"}}};
  write_plan(home, {plan}, {}, /*goes_on=*/false);
  const fs::path folder = plan_folder(home);
  HeldLease::claim({.folder = folder, .cell = kCell, .comparison = "id"}, std::nullopt)
      ->end(LeaseState::kFailed, "its loss became nan");
  const auto file = [&](const std::string& name) { return std::pair(name, read_file(folder / name)); };
  const std::string lease = join_text(kCell, ".lease-1");
  const std::vector<Target> made = {
      {.name = "plans", .read = read_plans, .seeds = {{file("plan.json"), file(join_text(kCell, ".json"))}}},
      {.name = "leases", .read = read_leases, .seeds = {{file(lease)}}}};
  fs::remove_all(home);
  return made;
}

}  // namespace headshare::fuzz
