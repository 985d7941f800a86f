#include "headshare/cli/compare/command_line_host.h"

#include "headshare/cli/inputs/reading_progress.h"
#include "headshare/cli/tables/grid_progress.h"
#include "headshare/cli/terminal/interrupt.h"

namespace headshare {

// The link is this program even where its file was replaced meanwhile.
CommandLineHost::CommandLineHost(const CompareCommand& command)
    : ProcessHost({.program = "/proc/self/exe", .stop_requested = stop_requested}, command) {}

void CommandLineHost::show_reading(const std::function<void(const Progress& progress)>& read) {
  shown_while_read(read);
}

std::unique_ptr<GridObserver> CommandLineHost::observer() { return std::make_unique<GridProgress>(); }

}  // namespace headshare
