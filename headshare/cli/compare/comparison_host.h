// What `headshare compare` gives a comparison to run in: a process for each cell, a line that shows how far it is,
// Ctrl-C, and resolved.yaml.
#pragma once

#include "headshare/cli/compare/compare_arguments.h"

namespace headshare {

class CommandLineHost : public ComparisonHost {
 public:
  explicit CommandLineHost(const CompareCommand& command) : command_(command) {}

  c10::Device start() override;
  double start_seconds() override;
  nlohmann::ordered_json environment() override;
  void check_interrupted() override;
  void show_reading(const std::function<void(const Progress& progress)>& read) override;
  ComparisonCall begun(const fs::path& home) override;
  void write_resolved(const ComparisonCall& call) override;
  void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) override;

 private:
  CompareCommand command_;
};

}  // namespace headshare
