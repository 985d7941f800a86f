// These observers write a run's files: metrics.jsonl and TensorBoard events.
#pragma once

#include <memory>
#include <optional>

#include "headshare/base/files/file.h"
#include "headshare/train/observer.h"

namespace headshare {

// Writes metrics.jsonl: {"event": "step" | "evaluation", "step": n, ...}, one line an event. With `resumed_after`,
// lines of later steps are cut off and written again.
std::unique_ptr<Observer> make_jsonl_observer(const fs::path& path, std::optional<int64_t> resumed_after);

// Writes the scalars train/loss, train/learning_rate, train/gradient_norm, train/tokens_per_second, validation/loss and
// the task's scores.
std::unique_ptr<Observer> make_tensorboard_observer(const fs::path& directory, std::optional<int64_t> resumed_after);

}  // namespace headshare
