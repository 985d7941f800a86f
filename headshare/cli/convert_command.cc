// headshare convert: a model of another program becomes a headshare model.
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/verbs.h"
#include "headshare/convert/foreign.h"
#include "headshare/convert/output.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

struct ConvertOptions {
  std::string source;  // a directory
  std::string out;
  std::string from;
  std::string tokenizer;
  bool dry_run = false;
  bool overwrite = false;
};

Fields own_fields(ConvertOptions& o) {
  return {
      field("from", &o.from, "format of the source: hf"),
      field("tokenizer", &o.tokenizer, "use this one instead of the source's: a tokenizer.json, or a folder with one"),
      field("dry-run", &o.dry_run, "print which tensor becomes which, and write nothing"),
      field("overwrite", &o.overwrite, "replace the model at OUT"),
  };
}

// Null when there is none anywhere.
std::unique_ptr<Tokenizer> find_tokenizer(const ConvertOptions& options, const ForeignModel& foreign) {
  const fs::path path = options.tokenizer.empty() ? foreign.tokenizer : fs::path(options.tokenizer);
  if (path.empty()) return nullptr;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(path);
  check_vocabulary(*tokenizer, foreign.options, path.string());
  return tokenizer;
}

void print_mapping(const ForeignModel& foreign) {
  for (const MappedTensor& one : foreign.tensors) {
    const std::string how = one.taken.empty() ? "" : " (" + one.taken + ")";
    print(one.source + how + " -> " + one.target + "\n");
  }
  for (const std::string& name : foreign.unused) print(name + " -> left out\n");
}

std::string summary(const ForeignModel& foreign) {
  const DecoderOptions& o = foreign.options;
  const auto parameters = static_cast<double>(measure(o).total_parameters);
  return join_text(o.layers, " layers, d-model ", o.attention.d_model, ", ", o.attention.heads, " heads, vocabulary ",
                   o.vocabulary, ", context ", o.context, ": ", format_count(parameters), " parameters");
}

}  // namespace

int run_convert(const Words& words) {
  ConvertOptions options;
  Arguments arguments("convert", "Turns a model of another program into a headshare model with the same outputs.");
  arguments.required("SOURCE", "what to convert: for hf, a directory with config.json and model.safetensors",
                     &options.source);
  arguments.required("OUT", "the directory to write; with --dry-run it is not touched", &options.out);
  arguments.group("Options", own_fields(options));
  for (const ForeignFormat& format : foreign_formats())
    arguments.note("--from " + format.name + ": " + format.help + ".");
  if (!arguments.parse(words)) return kOk;
  const ForeignFormat& format = as_usage([&]() -> const ForeignFormat& {
    HS_CHECK(!options.from.empty(), "--from is missing: say which format ", options.source, " has, such as --from hf");
    return find_format(options.from);
  });
  const Overwrite overwrite = options.overwrite ? Overwrite::kYes : Overwrite::kNo;
  if (!options.dry_run) check_output(options.out, overwrite);
  const ForeignModel foreign = format.open(options.source);
  const std::unique_ptr<Tokenizer> tokenizer = find_tokenizer(options, foreign);
  for (const std::string& note : foreign.notes) notice(note);
  if (tokenizer == nullptr) {
    notice(
        join_text(options.source,
                  " has no tokenizer (neither tokenizer.json nor vocab.json with merges.txt): the model is of no use "
                  "for text without one; give it with --tokenizer PATH"));
  }
  if (options.dry_run) {
    print_mapping(foreign);
    print(summary(foreign) + "; nothing was written\n");
    return kOk;
  }
  write_output(options.out, overwrite, read_decoder(foreign), tokenizer.get());
  print(summary(foreign) + "; written to " + options.out + "\n");
  return kOk;
}

}  // namespace headshare
