#include "headshare/cli/verbs/convert_exact.h"

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/number.h"
#include "headshare/cli/terminal/exit_codes.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/convert_scheme.h"
#include "headshare/convert/exact/exact_model.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

ExactTarget exact_target(const std::string& to) {
  const size_t colon = to.find(':');
  ExactTarget target{.scheme = canonical_scheme(to.substr(0, colon))};
  const std::vector<std::string>& known = exact_schemes();
  HS_CHECK(std::find(known.begin(), known.end(), target.scheme) != known.end(), "--exact rewrites heads as ",
           list_text(known, "or"), ", not as ", brief_text(to), did_you_mean(target.scheme, known));
  if (colon == std::string::npos) return target;
  HS_CHECK(target.scheme == "gqa", "--to ", to, ": only gqa takes a number behind its name; write --to ",
           target.scheme);
  target.groups = number_in<int64_t>(to.substr(colon + 1));
  HS_CHECK(target.groups && *target.groups >= 1, "--to ", to, ": '", to.substr(colon + 1),
           "' is not a number of groups; write --to gqa:4");
  return target;
}

std::string sizes_text(const std::string& what, int64_t before, int64_t after) {
  return join_text(what, ": ", before, " before, ", after, " after\n");
}

void print_fold(const std::string& from, const std::string& to, const ExactReport& report, const ModelSize& before,
                const ModelSize& after, const std::string& out) {
  std::string text = join_text(from, " as ", to, ": the same outputs. In double precision both models differ by ",
                               report.in_double, " of the largest output, stored in float32 by ", report.as_stored,
                               "\n", sizes_text("parameters", before.total_parameters, after.total_parameters));
  if (before.cache_bytes_per_token > 0) {
    text += sizes_text("cache bytes per token", before.cache_bytes_per_token, after.cache_bytes_per_token);
  }
  print(text + "written to " + out + "\n");
}

nlohmann::ordered_json fold_json(const ExactReport& report, const ModelSize& before, const ModelSize& after) {
  const auto sizes = [](const ModelSize& size) {
    return nlohmann::ordered_json{{"parameters", size.total_parameters},
                                  {"attention_parameters", size.attention_parameters},
                                  {"cache_bytes_per_token", size.cache_bytes_per_token}};
  };
  return {{"change_in_double", report.in_double},
          {"change_as_stored", report.as_stored},
          {"before", sizes(before)},
          {"after", sizes(after)}};
}

}  // namespace

void check_exact_options(const Arguments& arguments) {
  SchemeConversion any;
  for (const Field& one : fields(any)) {
    if (one.name == "exact" || one.name == "json") continue;
    HS_CHECK(!arguments.given(one.name), "--", one.name,
             " is about approximations, and --exact makes none; leave one of the two out");
  }
}

int convert_exact(const std::string& source, const std::string& out, const std::string& to, Overwrite overwrite,
                  bool json) {
  const ExactTarget target = as_usage([&] { return exact_target(to); });
  const fs::path directory = find_checkpoint(source);
  const ModelOptions stored = read_options(directory);
  exact_model_options(stored, target);  // what is impossible is refused before weights are read
  OutputDirectory written(out, overwrite, headshare_output(), {directory.string()});
  ExactReport report;
  const AnyModel result = fold_exactly(load_any_model(directory), target, /*biased=*/false, &report);
  written.write([&](const fs::path& to_directory) {
    save_model(to_directory, result, tokenizers_in(directory));
    copy_task_note(directory, to_directory);
  });
  const ModelSize before = measure(stored), after = measure(result.options);
  print_result(
      json, [&] { return json_text(fold_json(report, before, after), 2) + "\n"; },
      [&] { print_fold(stored.common().attention.scheme, target.scheme, report, before, after, out); });
  return kOk;
}

}  // namespace headshare
