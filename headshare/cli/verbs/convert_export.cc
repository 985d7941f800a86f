#include "headshare/cli/verbs/convert_export.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/arguments/args.h"
#include "headshare/cli/terminal/exit_codes.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/convert_scheme.h"
#include "headshare/convert/export.h"
#include "headshare/convert/foreign/closed_vocabulary.h"
#include "headshare/convert/formats.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

const ForeignFormat& find_target(const std::string& to) {
  const std::string name = to.substr(0, to.find(':'));
  if (const ForeignFormat* format = find_written_format(name)) return *format;
  std::vector<std::string> known = formats_written();
  std::vector<std::string> schemes = known;
  for (const std::string& scheme : sharing_schemes()) {
    known.push_back(scheme);
    schemes.push_back(scheme.substr(0, scheme.find(':')));
  }
  throw Error(join_text("--to takes ", list_text(known, "or"), ", not ", brief_text(to), did_you_mean(name, schemes)));
}

// "gpt2" of "hf:gpt2"; "" of "hf".
std::string find_form(const ForeignFormat& format, const std::string& to) {
  const size_t colon = to.find(':');
  if (colon == std::string::npos) return "";
  const std::string form = to.substr(colon + 1);
  HS_CHECK(std::find(format.forms.begin(), format.forms.end(), form) != format.forms.end(), "--to ", to, ": behind ",
           format.name, ": may stand ", list_text(format.forms, "or"), did_you_mean(form, format.forms));
  return form;
}

std::vector<std::string> read_words(const std::string& file) {
  if (file.empty()) return {};
  WordList list = read_word_list(file);
  if (list.repeated > 0) {
    notice(join_text(file, " repeats words in ", list.repeated, list.repeated == 1 ? " line" : " lines",
                     ", which get no further row; upper and lower case are one word"));
  }
  return std::move(list.words);
}

}  // namespace

std::string model_summary(const ModelOptions& options) {
  const TransformerOptions& o = options.common();
  const auto parameters = static_cast<double>(measure(options).total_parameters);
  const auto* translator = options.find<EncoderDecoderOptions>();
  const std::string layers =
      translator == nullptr ? join_text(o.layers) : join_text(o.layers, " + ", *translator->decoder_layers);
  std::string sizes;
  for (const auto& [name, value] : options.kind().input_sizes(options)) sizes += join_text(", ", name, " ", value);
  return join_text(options.kind().is_causal() ? "" : options.kind().name() + ", ", layers, " layers, d-model ",
                   o.attention.d_model, ", ", o.attention.heads, " heads", sizes, savings_text(o), ": ",
                   format_count(parameters), " parameters");
}

int convert_export(const ExportCall& call) {
  const auto [format, form] = as_usage([&] {
    const ForeignFormat& target = find_target(call.to);
    return std::pair<const ForeignFormat&, std::string>(target, find_form(target, call.to));
  });
  const fs::path directory = find_checkpoint(call.source);
  const std::vector<std::string> words = read_words(call.words);
  const ModelOptions model = options_to_write(directory, words);
  const ExportPlan plan = plan_export(format, form, model);
  std::optional<OutputDirectory> out;  // what may not be written is refused before anything is said
  if (!call.dry_run) out.emplace(call.out, call.overwrite, format.output, InputPaths{directory.string(), call.words});
  for (const std::string& loss : export_losses(plan, model)) notice(loss);
  if (!out) {
    print(model_summary(plan.options) + "; nothing was written\n");
    return kOk;
  }
  const ModelToWrite source = model_to_write(directory, words);
  const ModelToWrite written = prepared_for_export(source, plan);
  std::string verified;
  out->write([&](const fs::path& to) {
    format.write(written, form, to);
    if (call.verify) verified = join_text("; read back, outputs differ by ", check_export(source, plan, to));
  });
  print(model_summary(plan.options) + verified + "; written to " + call.out + "\n");
  return kOk;
}

}  // namespace headshare
