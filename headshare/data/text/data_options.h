// These options say which text a run learns from, and how it is read.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/data/text/text_source.h"

namespace headshare {

struct DataOptions {
  std::vector<std::string> text;
  std::vector<std::string> validation_text;
  std::vector<std::string> test_text;
  double validation_fraction = 0.1;  // of the tokens of `text`, when there is no validation_text
  double test_fraction = 0.0;        // of the tokens of `text`, when there is no test_text
  std::string jsonl_field = "text";
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kAuto;
  bool allow_binary = false;
  bool separate_documents = true;
  std::string cache_directory;  // "": default_cache_directory()
};

Fields fields(DataOptions& options);

}  // namespace headshare
