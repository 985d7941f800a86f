#include "headshare/cli/model_input.h"

#include "headshare/cli/interrupt.h"

namespace headshare {

LoadedModel load_model_on(const fs::path& path, c10::Device device) {
  LoadedModel loaded = load_model(path);
  loaded.model->to(device);
  return loaded;
}

Progress show_reading(ProgressLine& line) {
  return [&line](const DataProgress& progress) {
    check_interrupted();
    line.update(static_cast<double>(progress.done), static_cast<double>(progress.total.value_or(0)), progress.stage);
  };
}

}  // namespace headshare
