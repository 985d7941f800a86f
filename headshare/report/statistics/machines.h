// Says on which machines cells ran: speeds of different machines do not compare.
#pragma once

#include <string>

#include "headshare/report/results/results.h"

namespace headshare {

// Returns a sentence or two for the notes; "" where all cells ran on one machine, or it is not known. The second warns
// where speeds that stand in one column come from machines whose processors, instructions, threads or devices differ.
std::string machines_note(const Results& results);

}  // namespace headshare
