#include "headshare/report/statistics/machines.h"

#include <map>
#include <set>

#include "headshare/base/error.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// Returns what speeds depend on: "AMD EPYC 9354, AVX512, 1 thread, cpu".
std::string kind_of(const CellMachine& machine) {
  return join_text(machine.processor, ", ", machine.instructions, ", ",
                   plural(static_cast<size_t>(machine.threads), "thread"), ", ", machine.device);
}

}  // namespace

std::string machines_note(const Results& results) {
  std::map<std::string, size_t> cells;                 // by host
  std::map<std::string, std::set<std::string>> kinds;  // the hosts of each
  for (const Cell& cell : results.cells) {
    if (!cell.machine) continue;
    ++cells[cell.machine->host];
    kinds[kind_of(*cell.machine)].insert(cell.machine->host);
  }
  if (cells.size() < 2 && kinds.size() < 2) return "";
  std::vector<std::string> hosts;
  for (const auto& [host, count] : cells) hosts.push_back(join_text(host, " (", plural(count, "model"), ")"));
  const std::string where =
      join_text("Models were trained on ", plural(cells.size(), "machine"), ": ", list_text(hosts), ".");
  if (kinds.size() < 2) return where + " All have the same processor and as many threads.";
  std::string list;
  for (const auto& [kind, of] : kinds) {
    list += (list.empty() ? "" : "; ") + list_text({of.begin(), of.end()}) + ": " + kind;
  }
  return join_text(where, " Speeds in one column come from machines that differ, so do not compare them (", list, ").");
}

}  // namespace headshare
