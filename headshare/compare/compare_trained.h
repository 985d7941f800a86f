// A comparison of models that are trained from the beginning.
#pragma once

#include "headshare/compare/comparison_call.h"

namespace headshare {

// Reads the data and measures speeds. Throws Error for whatever compare_trained() refuses of them.
Forecast forecast_trained(ComparisonCall call, ComparisonHost& host);

// Writes everything into call.out. `beginning` is called when all is checked and nothing begun, unless an earlier call
// is gone on with. Throws Error for whatever can be refused before the first model, Interrupted when asked to stop.
Results compare_trained(ComparisonCall& call, ComparisonHost& host, const std::function<void()>& beginning = {});

}  // namespace headshare
