#include "headshare/cli/inputs/reading_progress.h"

#include "headshare/cli/terminal/interrupt.h"

namespace headshare {

Progress show_reading(ProgressLine& line) {
  return [&line](const DataProgress& progress) {
    check_interrupted();
    line.update(static_cast<double>(progress.done), static_cast<double>(progress.total.value_or(0)), progress.stage);
  };
}

}  // namespace headshare
