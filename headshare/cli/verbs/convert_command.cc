// headshare convert makes a model of another program a headshare model, or the other way round; or it makes a trained
// model's heads share.
#include <optional>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/convert_exact.h"
#include "headshare/cli/verbs/convert_export.h"
#include "headshare/cli/verbs/convert_scheme.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/convert/formats.h"
#include "headshare/models/checkpoint.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {
namespace {

struct ConvertOptions {
  std::string source;  // a directory
  std::string out;
  std::string from;
  std::string to;
  std::string tokenizer;
  std::string hash_merges;
  std::string words;
  bool dry_run = false;
  bool verify = false;
  bool overwrite = false;
  SchemeConversion sharing;
};

Fields own_fields(ConvertOptions& o) {
  return {
      field("from", &o.from,
            "format of the source, which becomes a headshare model: " + list_text(formats_read(), "or")),
      field("to", &o.to,
            "what a headshare model becomes: " + list_text(formats_written(), "or") +
                ", or a model of a scheme that shares: " + list_text(sharing_schemes(), "or")),
      naming_path(
          field("tokenizer", &o.tokenizer,
                "use this one instead of the source's: a tokenizer.json, or a folder with one; hash-md or hash-lsh for "
                "HashFormers")),
      naming_directory(field(
          "hash-merges", &o.hash_merges,
          "with --tokenizer hash-lsh: the folder with RoBERTa's vocab.json and merges.txt, whose pieces those models "
          "hash")),
      naming_file(field("words", &o.words,
                        "with --to a format, for an encoder that hashes words: a file with those that get a row of a "
                        "table, one a line")),
      field("dry-run", &o.dry_run, "print which tensor becomes which, and write nothing"),
      field("verify", &o.verify, "with --to a format: read what was written and compare its outputs before it is kept"),
      field("overwrite", &o.overwrite, "replace the model at OUT"),
  };
}

bool names_hash(const std::string& tokenizer) { return tokenizer == "hash-md" || tokenizer == "hash-lsh"; }

// Makes the tokenizer of a HashFormer. The published LSH models hash pieces of RoBERTa's BPE.
std::shared_ptr<Tokenizer> hash_tokenizer(const ConvertOptions& options) {
  constexpr int64_t kRoberta = 50265;
  if (!options.hash_merges.empty()) {
    const int64_t tokens = load_tokenizer(options.hash_merges)->vocabulary_size();
    if (tokens != kRoberta) {
      notice(join_text(options.hash_merges, " has ", tokens, " tokens, RoBERTa's BPE ", kRoberta,
                       ": hashes are those of the published models with RoBERTa's alone"));
    }
  }
  const TokenizerKind kind = options.tokenizer == "hash-md" ? TokenizerKind::kHashMd : TokenizerKind::kHashLsh;
  return train_tokenizer({.kind = kind, .hash_merges = options.hash_merges}, [](std::string*) { return false; });
}

// Returns the tokenizer that the user names; null where none is named.
std::shared_ptr<Tokenizer> given_tokenizer(const ConvertOptions& options) {
  if (options.tokenizer.empty()) return nullptr;
  if (names_hash(options.tokenizer)) return hash_tokenizer(options);
  return load_tokenizer(options.tokenizer);
}

void print_mapping(const ForeignModel& foreign) {
  for (const MappedTensor& one : foreign.tensors) {
    const std::string how = one.taken.empty() ? "" : " (" + one.taken + ")";
    print(one.source + how + " -> " + one.target + "\n");
  }
  for (const std::string& name : foreign.unused) print(name + " -> left out\n");
}

Overwrite overwrite_of(const ConvertOptions& options) { return options.overwrite ? Overwrite::kYes : Overwrite::kNo; }

// Returns the tokenizer that the user named, or else the source's own; null where there is none.
TokenizerPair find_tokenizers(const ConvertOptions& options, const ForeignSource& source, const ForeignModel& foreign) {
  if (source.tokenizer != nullptr) {
    const std::string where = (names_hash(options.tokenizer) ? "--tokenizer " : "") + options.tokenizer;
    return one_tokenizer(source.tokenizer, foreign.options, where);
  }
  return foreign.tokenizers ? foreign.tokenizers() : TokenizerPair();
}

int convert_from(const ConvertOptions& options) {
  const ForeignFormat& format = as_usage([&]() -> const ForeignFormat& { return find_format(options.from); });
  std::optional<OutputDirectory> out;
  const InputPaths inputs = {options.source, names_hash(options.tokenizer) ? "" : options.tokenizer,
                             options.hash_merges};
  if (!options.dry_run) out.emplace(options.out, overwrite_of(options), headshare_output(), inputs);
  const ForeignSource source(options.source, given_tokenizer(options));
  const ForeignModel foreign = format.open(source);
  const TokenizerPair tokenizers = find_tokenizers(options, source, foreign);
  for (const std::string& note : foreign.notes) notice(note);
  if (tokenizers.target == nullptr && foreign.options.kind().reads_text()) notice(foreign.without_tokenizer);
  if (!out) {
    print_mapping(foreign);
    print(model_summary(foreign.options) + "; nothing was written\n");
    return kOk;
  }
  out->write([&](const fs::path& to) { save_model(to, read_model(foreign), tokenizers); });
  print(model_summary(foreign.options) + "; written to " + options.out + "\n");
  return kOk;
}

// Throws Error for options of one kind of conversion given for another.
void check_sharing_options(const Arguments& arguments, const std::string& to, bool sharing) {
  SchemeConversion any;
  for (const Field& one : fields(any)) {
    HS_CHECK(sharing || !arguments.given(one.name), "--", one.name, " is about --to ",
             list_text(sharing_schemes(), "or"));
  }
  for (const char* name : {"words", "dry-run", "verify"}) {
    HS_CHECK(!sharing || !arguments.given(name), "--", name, " is not for --to ", to);
  }
}

// Throws Error for options that belong to --from alone or to --to alone, given for the other.
void check_direction(const ConvertOptions& options) {
  HS_CHECK(options.from.empty() || options.words.empty(), "--words belongs to --to ",
           list_text(formats_written(), "or"));
  HS_CHECK(options.from.empty() || !options.verify, "--verify belongs to --to ", list_text(formats_written(), "or"));
  HS_CHECK(options.to.empty() || options.tokenizer.empty(),
           "--tokenizer belongs to --from; a headshare model brings its own");
  HS_CHECK(options.from.empty() || !options.sharing.exact, "--exact belongs to --to a scheme");
  HS_CHECK(options.to.empty() || options.hash_merges.empty(), "--hash-merges belongs to --from");
  HS_CHECK(options.hash_merges.empty() || options.tokenizer == "hash-lsh", "--hash-merges is for --tokenizer hash-lsh");
  HS_CHECK(
      options.tokenizer != "hash-lsh" || !options.hash_merges.empty(),
      "--tokenizer hash-lsh of a HashFormer hashes the pieces of RoBERTa's BPE: name the folder with its vocab.json "
      "and merges.txt with --hash-merges");
}

}  // namespace

int run_convert(const Words& words) {
  ConvertOptions options;
  Arguments arguments(
      "convert",
      "Turns a model of another program into a headshare model with the same outputs, or the reverse, or makes "
      "the heads of a trained model share.");
  arguments.required("SOURCE",
                     "what to convert: with --from, a model in that format; with --to, a checkpoint or run directory",
                     &options.source);
  arguments.required("OUT", "the directory to write; with --dry-run it is not touched", &options.out);
  arguments.group("Options", own_fields(options));
  arguments.group("Heads that share (--to a scheme)", fields(options.sharing));
  arguments.common({"from", "to", "exact", "key-width", "mean-key-width", "max-error", "max-parameters", "sample-text",
                    "score-text", "dry-run", "overwrite", "json"});
  arguments.example("convert --from hf gpt2/ imported", "a checkpoint of Hugging Face's, with its tokenizer");
  arguments.example("convert run small --to collaborative --key-width 64 --sample-text book.txt",
                    "heads share queries and keys 64 wide");
  arguments.example("convert run small --to mqa --exact", "the same model, in a form that other programs have");
  for (const ForeignFormat& format : foreign_formats()) {
    if (format.open != nullptr) arguments.note("--from " + format.name + ": " + format.help + ".");
    if (format.write != nullptr) arguments.note("--to " + format.name + ": " + format.written + ".");
  }
  if (!arguments.parse(words)) return kOk;
  as_usage([&] {
    HS_CHECK(!options.from.empty() || !options.to.empty(), "--from is missing: say which format ", options.source,
             " has, such as --from hf, or with --to which one it is to become");
    HS_CHECK(options.from.empty() || options.to.empty(),
             "--from and --to exclude each other: one of the two directories is a headshare model");
    check_direction(options);
  });
  const bool sharing = options.sharing.exact || names_sharing_scheme(options.to);
  as_usage([&] { check_sharing_options(arguments, options.to, sharing); });
  if (options.sharing.exact) {
    as_usage([&] { check_exact_options(arguments); });
    return convert_exact(options.source, options.out, options.to, overwrite_of(options), options.sharing.json);
  }
  if (sharing) {
    return convert_scheme(options.source, options.out, options.to, overwrite_of(options), options.sharing);
  }
  if (options.to.empty()) return convert_from(options);
  return convert_export({.source = options.source,
                         .out = options.out,
                         .to = options.to,
                         .words = options.words,
                         .overwrite = overwrite_of(options),
                         .dry_run = options.dry_run,
                         .verify = options.verify});
}

}  // namespace headshare
