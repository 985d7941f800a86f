// headshare convert: a model of another program becomes a headshare model, or the other way round; a trained model's
// heads are made to share.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"
#include "headshare/base/notice.h"
#include "headshare/base/placeholder.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/convert_scheme.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/convert/both_sides.h"
#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/bert.h"
#include "headshare/convert/hf/closed_vocabulary.h"
#include "headshare/convert/hf/tokenizer.h"
#include "headshare/convert/output.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"
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
  bool overwrite = false;
  SchemeConversion sharing;
};

Fields own_fields(ConvertOptions& o) {
  return {
      field("from", &o.from, "format of the source, which becomes a headshare model: hf"),
      field("to", &o.to,
            "what a headshare model becomes: hf, or a model of a scheme that shares: " +
                list_text(sharing_schemes(), "or")),
      naming_path(
          field("tokenizer", &o.tokenizer,
                "use this one instead of the source's: a tokenizer.json, or a folder with one; hash-md or hash-lsh for "
                "HashFormers")),
      naming_directory(field(
          "hash-merges", &o.hash_merges,
          "with --tokenizer hash-lsh: the folder with RoBERTa's vocab.json and merges.txt, whose pieces those models "
          "hash")),
      naming_file(field(
          "words", &o.words,
          "with --to hf, for an encoder that hashes words: a file with those that get a row of a table, one a line")),
      field("dry-run", &o.dry_run, "print which tensor becomes which, and write nothing"),
      field("overwrite", &o.overwrite, "replace the model at OUT"),
  };
}

bool names_hash(const std::string& tokenizer) { return tokenizer == "hash-md" || tokenizer == "hash-lsh"; }

// A HashFormer's. The published LSH models hash pieces of RoBERTa's BPE.
std::unique_ptr<Tokenizer> hash_tokenizer(const ConvertOptions& options) {
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

// One tokenizer serves both sides of an encoder-decoder.
void check_both_sides(const ModelOptions& options, const fs::path& path) {
  const auto* translator = std::get_if<EncoderDecoderOptions>(&options);
  HS_CHECK(translator == nullptr || translator->source_vocabulary == translator->vocabulary, "the model has ",
           translator->source_vocabulary, " tokens in its source and ", translator->vocabulary,
           " in its target: it needs two tokenizers, and ", path.string(), " is one");
}

// Null when there is none anywhere.
std::unique_ptr<Tokenizer> find_tokenizer(const ConvertOptions& options, const ForeignModel& foreign) {
  if (names_hash(options.tokenizer)) {
    std::unique_ptr<Tokenizer> tokenizer = hash_tokenizer(options);
    check_vocabulary(*tokenizer, foreign.options, "--tokenizer " + options.tokenizer);
    return tokenizer;
  }
  const fs::path path = options.tokenizer.empty() ? foreign.tokenizer : fs::path(options.tokenizer);
  if (path.empty()) return nullptr;
  std::unique_ptr<Tokenizer> tokenizer =
      options.tokenizer.empty() ? load_foreign_tokenizer(path) : load_tokenizer(path);
  check_vocabulary(*tokenizer, foreign.options, path.string());
  check_both_sides(foreign.options, path);
  if (tokenizer->words() != nullptr) return tokenizer;
  const TransformerOptions& model = shared_options(foreign.options);
  constexpr int64_t kPadding = 128;  // models round their vocabulary up by less
  if (tokenizer->vocabulary_size() + kPadding <= model.vocabulary) {
    notice(join_text(path.string(), " has ", tokenizer->vocabulary_size(), " tokens, the model ", model.vocabulary,
                     ": make sure that it is this model's tokenizer"));
  }
  return tokenizer;
}

void print_mapping(const ForeignModel& foreign) {
  for (const MappedTensor& one : foreign.tensors) {
    const std::string how = one.taken.empty() ? "" : " (" + one.taken + ")";
    print(one.source + how + " -> " + one.target + "\n");
  }
  for (const std::string& name : foreign.unused) print(name + " -> left out\n");
}

std::string summary(const ModelOptions& options) {
  const TransformerOptions& o = shared_options(options);
  const auto parameters = static_cast<double>(size_of(options).total_parameters);
  const auto* translator = std::get_if<EncoderDecoderOptions>(&options);
  const std::string layers =
      translator == nullptr ? join_text(o.layers) : join_text(o.layers, " + ", *translator->decoder_layers);
  return join_text(is_causal(options) ? "" : kind_name(options) + ", ", layers, " layers, d-model ",
                   o.attention.d_model, ", ", o.attention.heads, " heads, vocabulary ", o.vocabulary, ", context ",
                   o.context, savings_text(o), ": ", format_count(parameters), " parameters");
}

Overwrite overwrite_of(const ConvertOptions& options) { return options.overwrite ? Overwrite::kYes : Overwrite::kNo; }

// One tokenizer for both sides, or each side's own; null where there is none.
TokenizerPair find_tokenizers(const ConvertOptions& options, const ForeignModel& foreign) {
  if (!options.tokenizer.empty() || !foreign.pieces) {
    const std::shared_ptr<Tokenizer> one = find_tokenizer(options, foreign);
    const std::string path = options.tokenizer.empty() ? foreign.tokenizer.string() : options.tokenizer;
    return both_sides(one, foreign.options, path);
  }
  const PieceFiles& files = *foreign.pieces;
  const TokenizerPair pair{.source = load_sentencepiece(files.source, files.source_vocabulary),
                           .target = load_sentencepiece(files.target, files.target_vocabulary)};
  check_vocabulary(*pair.target, foreign.options, files.target_vocabulary.string());
  check_source_vocabulary(*pair.source, std::get<EncoderDecoderOptions>(foreign.options),
                          files.source_vocabulary.string());
  return pair;
}

void save_converted(const fs::path& to, const ForeignModel& foreign, const TokenizerPair& tokenizers) {
  const Tokenizer* tokenizer = tokenizers.target.get();
  if (is_causal(foreign.options)) {
    save_model(to, read_decoder(foreign), tokenizer);
  } else if (is_encoder_decoder(foreign.options)) {
    save_model(to, read_encoder_decoder(foreign), tokenizers);
  } else {
    save_model(to, read_encoder(foreign), tokenizer);
  }
}

int convert_from(const ConvertOptions& options) {
  const ForeignFormat& format = as_usage([&]() -> const ForeignFormat& { return find_format(options.from); });
  std::optional<OutputDirectory> out;
  if (!options.dry_run) out.emplace(options.out, overwrite_of(options), headshare_output());
  const ForeignModel foreign = format.open({options.source, names_hash(options.tokenizer)});
  const TokenizerPair tokenizers = find_tokenizers(options, foreign);
  const Tokenizer* tokenizer = tokenizers.target.get();
  const auto* encoder = std::get_if<EncoderOptions>(&foreign.options);
  HS_CHECK(tokenizer != nullptr || encoder == nullptr || !is_hashed(encoder->embedding), options.source,
           " is a HashFormer, and its files do not say which hash its words had; add --tokenizer hash-md (names with "
           "md), or --tokenizer hash-lsh --hash-merges FOLDER (names with lsh)");
  for (const std::string& note : foreign.notes) notice(note);
  if (tokenizer == nullptr) {
    const std::string advice =
        foreign.tokenizer_advice.empty() ? sentencepiece_advice(options.source) : foreign.tokenizer_advice;
    notice(advice.empty() ? join_text(options.source,
                                      " has no tokenizer (no tokenizer.json, no vocab.txt, no vocab.json with "
                                      "merges.txt): the model is of no use for text without one; give it with "
                                      "--tokenizer PATH")
                          : advice);
  }
  if (!out) {
    print_mapping(foreign);
    print(summary(foreign.options) + "; nothing was written\n");
    return kOk;
  }
  out->write([&](const fs::path& to) { save_converted(to, foreign, tokenizers); });
  print(summary(foreign.options) + "; written to " + options.out + "\n");
  return kOk;
}

// Options of one kind of conversion given for another are mistakes.
void check_sharing_options(const Arguments& arguments, const std::string& to, bool sharing) {
  SchemeConversion any;
  for (const Field& one : fields(any)) {
    HS_CHECK(sharing || !arguments.given(one.name), "--", one.name, " is about --to ",
             list_text(sharing_schemes(), "or"));
  }
  for (const char* name : {"tokenizer", "words", "dry-run"}) {
    HS_CHECK(!sharing || !arguments.given(name), "--", name, " is not for --to ", to);
  }
}

// Options of --from or of --to alone.
void check_direction(const ConvertOptions& options) {
  HS_CHECK(options.from.empty() || options.words.empty(), "--words belongs to --to hf");
  HS_CHECK(options.to.empty() || options.hash_merges.empty(), "--hash-merges belongs to --from");
  HS_CHECK(options.to.empty() || !names_hash(options.tokenizer), "--tokenizer ", options.tokenizer,
           " belongs to --from; a headshare model knows its own");
  HS_CHECK(options.hash_merges.empty() || options.tokenizer == "hash-lsh", "--hash-merges is for --tokenizer hash-lsh");
  HS_CHECK(
      options.tokenizer != "hash-lsh" || !options.hash_merges.empty(),
      "--tokenizer hash-lsh of a HashFormer hashes the pieces of RoBERTa's BPE: name the folder with its vocab.json "
      "and merges.txt with --hash-merges");
}

// The formats that are read are the ones that are written.
void check_target(const std::string& to) {
  std::vector<std::string> known;
  for (const ForeignFormat& format : foreign_formats()) known.push_back(format.name);
  if (std::find(known.begin(), known.end(), to) != known.end()) return;
  std::vector<std::string> schemes = known;
  for (const std::string& scheme : sharing_schemes()) {
    known.push_back(scheme);
    schemes.push_back(scheme.substr(0, scheme.find(':')));
  }
  throw Error(join_text("--to takes ", list_text(known, "or"), ", not ", brief_text(to),
                        did_you_mean(to.substr(0, to.find(':')), schemes)));
}

// Fills a directory for transformers.
using Writer = std::function<void(const fs::path& to)>;

Writer writer_of_tables(const fs::path& checkpoint) {
  return [encoder = load_encoder(checkpoint), tokenizer = checkpoint / "tokenizer.json"](const fs::path& to) {
    write_bert(to, encoder);
    if (fs::exists(tokenizer)) write_hf_tokenizer(to, *load_tokenizer(tokenizer), encoder->options());
  };
}

Writer writer_of_words(const fs::path& checkpoint, const std::vector<std::string>& words) {
  const LoadedEncoder loaded = load_encoder_model(checkpoint);
  return [closed = close_vocabulary(loaded.model, *loaded.tokenizer, words), tokenizer = loaded.tokenizer,
          words](const fs::path& to) {
    write_bert(to, closed);
    write_hf_words(to, *tokenizer, words, closed->options());
  };
}

WordList read_words(const std::string& file) {
  WordList list = read_word_list(file);
  if (list.repeated > 0) {
    notice(join_text(file, " repeats words in ", list.repeated, list.repeated == 1 ? " line" : " lines",
                     ", which get no further row; upper and lower case are one word"));
  }
  return list;
}

int convert_to(const ConvertOptions& options) {
  as_usage([&] {
    check_target(options.to);
    HS_CHECK(options.tokenizer.empty(), "--tokenizer belongs to --from; a headshare model brings its own");
  });
  const fs::path directory = find_checkpoint(options.source);
  const ModelOptions model = read_options(directory);
  HS_CHECK(std::holds_alternative<EncoderOptions>(model), directory.string(), " is a", is_causal(model) ? " " : "n ",
           kind_name(model), "; --to hf writes encoders of scheme mha, as BERT");
  const auto& encoder = std::get<EncoderOptions>(model);
  HS_CHECK(options.words.empty() || is_hashed(encoder.embedding), directory.string(),
           " has a vocabulary; --words is for encoders that hash words");
  const WordList list = options.words.empty() ? WordList() : read_words(options.words);
  const EncoderOptions written = options.words.empty() ? encoder : closed_options(encoder, list.words);
  check_bert_holds(written);
  if (options.dry_run) {
    print(summary(written) + "; nothing was written\n");
    return kOk;
  }
  OutputDirectory out(options.out, overwrite_of(options), hugging_face_output());
  const auto write = options.words.empty() ? writer_of_tables(directory) : writer_of_words(directory, list.words);
  out.write(write);
  print(summary(written) + "; written to " + options.out + "\n");
  return kOk;
}

}  // namespace

int run_convert(const Words& words) {
  ConvertOptions options;
  Arguments arguments(
      "convert",
      "Turns a model of another program into a headshare model with the same outputs, or the reverse, or makes "
      "the heads of a trained model share.");
  arguments.required(
      "SOURCE",
      "what to convert: with --from hf, a directory with config.json and model.safetensors; with --to, a "
      "checkpoint or run directory",
      &options.source);
  arguments.required("OUT", "the directory to write; with --dry-run it is not touched", &options.out);
  arguments.group("Options", own_fields(options));
  arguments.group("Heads that share (--to a scheme)", fields(options.sharing));
  arguments.common({"from", "to", "key-width", "max-error", "max-parameters", "sample-text", "score-text", "tokenizer",
                    "words", "dry-run", "overwrite", "json"});
  arguments.example("convert --from hf gpt2/ imported", "a checkpoint of Hugging Face's, with its tokenizer");
  arguments.example("convert run small --to collaborative --key-width 64 --sample-text book.txt",
                    "heads share queries and keys 64 wide");
  for (const ForeignFormat& format : foreign_formats()) {
    arguments.note("--from " + format.name + ": " + format.help + ".");
  }
  arguments.note(
      "--to hf: an encoder of scheme mha becomes a directory that transformers loads as BertForMaskedLM, or the class "
      "of "
      "its head. One that hashes words needs --words.");
  if (!arguments.parse(words)) return kOk;
  as_usage([&] {
    HS_CHECK(!options.from.empty() || !options.to.empty(), "--from is missing: say which format ", options.source,
             " has, such as --from hf, or with --to which one it is to become");
    HS_CHECK(options.from.empty() || options.to.empty(),
             "--from and --to exclude each other: one of the two directories is a headshare model");
    check_direction(options);
  });
  const bool sharing = names_sharing_scheme(options.to);
  as_usage([&] { check_sharing_options(arguments, options.to, sharing); });
  if (sharing) {
    return convert_scheme(options.source, options.out, options.to, overwrite_of(options), options.sharing);
  }
  return options.to.empty() ? convert_from(options) : convert_to(options);
}

}  // namespace headshare
