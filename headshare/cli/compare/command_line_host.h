// `headshare compare` runs a comparison in this host: processes of this program, lines that show progress, and Ctrl-C.
#pragma once

#include "headshare/host/process_host.h"

namespace headshare {

class CommandLineHost : public ProcessHost {
 public:
  explicit CommandLineHost(const CompareCommand& command);

  void show_reading(const std::function<void(const Progress& progress)>& read) override;

 protected:
  std::unique_ptr<GridObserver> observer() override;
};

}  // namespace headshare
