#include "headshare/data/text/splits.h"

#include <cmath>
#include <map>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// Throws Error where two parts share a text: it would be learnt and then asked for.
void check_disjoint(const DataOptions& options) {
  std::map<fs::path, std::string> option_of;
  const auto add = [&](const std::vector<std::string>& inputs, const std::string& option) {
    if (inputs.empty()) return;
    for (const std::string& file : expand_inputs(inputs)) {
      const fs::path path = file == "-" ? fs::path(file) : fs::weakly_canonical(file);
      const auto [found, fresh] = option_of.emplace(path, option);
      HS_CHECK(fresh || found->second == option, file == "-" ? "standard input (-)" : file, " is named in both ",
               found->second, " and ", option, "; the parts must not share text");
    }
  };
  add(options.text, "--text");
  add(options.validation_text, "--validation-text");
  add(options.test_text, "--test-text");
}

}  // namespace

TextSplits split_tokens(const TokenData& tokens, double validation_fraction, double test_fraction,
                        const Tokenizer& tokenizer) {
  HS_CHECK(validation_fraction >= 0 && test_fraction >= 0 && validation_fraction + test_fraction < 1,
           "--validation-fraction ", validation_fraction, " and --test-fraction ", test_fraction,
           " must not be negative and must leave a training part: their sum must be below 1");
  const auto size = static_cast<double>(tokens.size());
  const auto train = static_cast<int64_t>(std::floor(size * (1 - validation_fraction - test_fraction)));
  const auto validation = static_cast<int64_t>(std::floor(size * (1 - test_fraction)));
  return {.train = tokens.view(0, train, tokenizer),
          .validation = tokens.view(train, validation, tokenizer),
          .test = tokens.view(validation, tokens.size(), tokenizer)};
}

TextSplits open_splits(const DataOptions& options, const Tokenizer& tokenizer, const Progress& progress) {
  HS_CHECK(!options.text.empty() || !options.validation_text.empty() || !options.test_text.empty(),
           "no text was given; name files or directories with --text, or - for standard input");
  check_disjoint(options);
  TextSplits splits;
  if (!options.text.empty()) {
    splits = split_tokens(open_tokens(options.text, options, tokenizer, progress),
                          options.validation_text.empty() ? options.validation_fraction : 0,
                          options.test_text.empty() ? options.test_fraction : 0, tokenizer);
  }
  if (!options.validation_text.empty()) {
    splits.validation = open_tokens(options.validation_text, options, tokenizer, progress);
  }
  if (!options.test_text.empty()) splits.test = open_tokens(options.test_text, options, tokenizer, progress);
  return splits;
}

void check_long_enough(const TokenData& tokens, int64_t context, const std::string& part) {
  HS_CHECK(tokens.size() > context, "the ", part, " text has ", tokens.size(), " tokens, but one window of --context ",
           context, " needs ", context + 1, "; give more text, a larger part of it, or a smaller --context");
}

}  // namespace headshare
