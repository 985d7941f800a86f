// One cell of a comparison of fine-tuned encoders takes a variant's encoder and a seed and fine-tunes on every task in
// turn.
#pragma once

#include "headshare/compare/cell_run.h"

namespace headshare {

// Works in place.own, with a directory for each task and learning rate; takes finished runs over from there, goes on
// with a begun one and leaves cell.json. Of several learning rates the one best on validation counts, for each task and
// cell; one whose training fails is passed over with a notice unless it was the only one. Throws Error when the scheme
// has no encoder or a task cannot be trained, Interrupted when asked to stop.
Cell run_fine_tuned_cell(const CellPlan& plan, const CellPlace& place, c10::Device device, Observer& observer,
                         const std::function<bool()>& stop_requested);

}  // namespace headshare
