#include "headshare/cli/model_input.h"

#include "headshare/cli/interrupt.h"
#include "headshare/text/tokenizer_file.h"

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

std::string tokenizer_label(const Tokenizer& tokenizer) {
  constexpr size_t kDigits = 8;
  return tokenizer.kind() + "-" + fingerprint(tokenizer).substr(0, kDigits);
}

}  // namespace headshare
