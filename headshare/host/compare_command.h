// A command holds the options of `headshare compare`, as resolved.yaml keeps them.
#pragma once

#include "headshare/compare/comparison_call.h"
#include "headshare/host/option_groups.h"
#include "headshare/host/runtime_options.h"

namespace headshare {

struct CompareCommand {
  static constexpr const char* kVerb = "compare";

  std::string out = "comparison";
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool beyond_a_day = false;
  bool json = false;
  bool latex = false;
  std::string workers = "local:1";        // engine.h
  std::vector<std::string> devices = {};  // that the models are dealt to; none: all run on --device
  std::string plan = {};                  // the directory of a comparison that is only planned
  bool adds = false;                      // adds schemes or seeds to a comparison that an earlier call began
  ComparisonOptions comparison;
  RuntimeOptions runtime;

  OptionGroups groups();

  void forget_call();

  // Returns --workers, with as many cells at a time as there are devices where it asks for one.
  std::string engine() const;
  void make_paths_whole();

  // `line` is the command as the user typed it.
  ComparisonCall call(const std::string& line) const;
};

}  // namespace headshare
