#include "headshare/cli/verbs/convert_scheme.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/notice.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/number.h"
#include "headshare/cli/arguments/args.h"
#include "headshare/cli/inputs/reading_progress.h"
#include "headshare/cli/tables/conversion_report.h"
#include "headshare/cli/terminal/exit_codes.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/convert/exact/exact_layer.h"
#include "headshare/convert/shared_heads/conversion_record.h"
#include "headshare/host/sample_images.h"
#include "headshare/host/sample_text.h"
#include "headshare/models/size.h"
#include "headshare/tasks/family.h"
#include "headshare/tasks/finetune/task_note.h"
#include "headshare/tasks/images/image_options.h"
#include "headshare/tasks/masked/masked_language_model.h"

namespace headshare {
namespace {

const EnumNames<Pooling>& pooling_names() {
  static const EnumNames<Pooling> names = {
      {Pooling::kLeastSquares, "least-squares"}, {Pooling::kAligned, "aligned"}, {Pooling::kMean, "mean"}};
  return names;
}

}  // namespace

Fields fields(SchemeConversion& o) {
  WidthChoice& width = o.width;
  DecompositionOptions& decomposition = o.decomposition;
  return {
      field("key-width", &width.key_width,
            "shared key width of every layer; auto: by --mean-key-width, --max-error or --max-parameters",
            {.min = 1, .max = 1 << 20}),
      field("mean-key-width", &width.mean_key_width,
            "key width of all layers on average: each gets more or less, where errors fall most",
            {.min = 1, .max = 1 << 20}),
      field("mean-latent-width", &o.mean_latent_width,
            "of mla: latent width of all layers on average: each gets more or less, where errors fall most",
            {.min = 1, .max = 1 << 20}),
      field("max-error", &width.max_error,
            "relative error each layer's scores (mla: also values) may have; sets its width", {.min = 0, .max = 1}),
      field("max-parameters", &width.max_parameters,
            "parameters the model may have: widths grow step by step where errors fall most", {.min = 1}),
      field("pooling", &o.pooling,
            "of gqa and mqa: least-squares has the least error; aligned and mean average heads' weights",
            pooling_names()),
      naming_path(field("sample-text", &o.sample_text,
                        "text like what the model reads: layers are made good on it, and their change there is shown")),
      naming_directory(field("sample-images", &o.sample_images,
                             "the same for a vision transformer: a directory as `train --images` takes, whose training "
                             "images are the sample")),
      field("sample-tokens", &o.sample_tokens,
            "tokens of the sample to use; an image is its patches and a token or two", {.min = 1, .max = 1 << 30}),
      naming_path(field(
          "score-text", &o.score_text,
          "held-out text that both models are scored on, as `headshare evaluate` does: the loss before and after")),
      naming_directory(field("score-images", &o.score_images,
                             "the same for a vision transformer: a directory whose test images both models are scored "
                             "on: the accuracy before and after")),
      field("iterations", &decomposition.iterations, "of each layer's decomposition, at most",
            {.min = 0, .max = 1 << 20}),
      field("tolerance", &decomposition.tolerance, "stop when ten iterations lower the error by less than this share",
            {.min = 0, .max = 1}),
      field("restarts", &decomposition.restarts, "further tries from random starts; the best is kept",
            {.min = 0, .max = 1000}),
      field("seed", &decomposition.seed, "of the random starts", {.min = 0}),
      field("exact", &o.exact,
            "only rewrite heads that compute the same as " + list_text(exact_schemes(), "or") +
                ": refused unless both models agree to 1e-12 in double precision"),
      field("json", &o.json, "print one JSON object, with every layer's errors"),
  };
}

namespace {

// "gqa" of "GQA:4", "mhe_mul" of "mhe-mul".
std::string scheme_of(const std::string& to) { return canonical_scheme(to.substr(0, to.find(':'))); }

// Lists the schemes whose conversions have a property, "mqa, mhe_mul" with `before` in front of each.
template <class Property>
std::string schemes_with(const Property& property, const std::string& before = "") {
  std::vector<std::string> names;
  for (const auto& one : conversion_records()) {
    if (property(*one)) names.push_back(before + one->scheme);
  }
  return list_text(names);
}

// The parts of "shared_query:low_rank:8".
std::vector<std::string> parts_of(const std::string& to) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t colon = to.find(':'); colon != std::string::npos; colon = to.find(':', from)) {
    parts.push_back(to.substr(from, colon - from));
    from = colon + 1;
  }
  parts.push_back(to.substr(from));
  return parts;
}

// Takes the kind of layer out of the parts behind a scheme, where the first of them is one; else returns "".
std::string take_variant(const ConversionRecord& conversion, std::vector<std::string>* parts) {
  if (!conversion.variants || parts->empty()) return "";
  const std::vector<std::string>& all = conversion.variants->all;
  const std::string named = canonical_scheme(parts->front());
  if (std::find(all.begin(), all.end(), named) == all.end()) {
    HS_CHECK(number_in<int64_t>(parts->front()), "'", parts->front(), "' is no ", conversion.variants->name, " of ",
             conversion.scheme, "; choose ", list_text(all, "or"), did_you_mean(named, all));
    return "";
  }
  parts->erase(parts->begin());
  return named;
}

// Parses "gqa:4" as gqa with 4 groups, "shared_query:complex" as shared_query with complex maps.
SharedScheme parse_scheme(const std::string& to) {
  std::vector<std::string> rest = parts_of(to);
  rest.erase(rest.begin());
  SharedScheme scheme{.scheme = scheme_of(to)};
  if (rest.empty()) return scheme;
  const auto sized = [](const ConversionRecord& one) { return one.size.has_value(); };
  const ConversionRecord* conversion = scheme.scheme == kCollaborative ? nullptr : &conversion_record(scheme.scheme);
  HS_CHECK(conversion != nullptr && conversion->size, "--to ", to, ": a number behind a name is for ",
           schemes_with(sized), "; write --to ", scheme.scheme);
  scheme.variant = take_variant(*conversion, &rest);
  if (rest.empty()) return scheme;
  scheme.size = number_in<int64_t>(rest.front());
  HS_CHECK(rest.size() == 1 && scheme.size && *scheme.size >= 1, "--to ", to, ": '", rest.back(), "' is not a ",
           conversion->size->what, "; write --to ",
           name_of({.scheme = scheme.scheme, .size = 4, .variant = scheme.variant}));
  return scheme;
}

bool converts_to(const std::string& scheme) {
  const auto all = conversion_records();
  return scheme == kCollaborative ||
         std::any_of(all.begin(), all.end(), [&](const auto& one) { return one->scheme == scheme; });
}

bool has_layer_sizes(const ConversionRecord& conversion) { return conversion.layer_sizes.has_value(); }

// Throws Error for widths of another scheme, or of the same one twice.
void check_sizes(const SchemeConversion& o, const SharedScheme& to) {
  const WidthChoice& width = o.width;
  HS_CHECK(!width.key_width && !width.mean_key_width && !width.max_parameters,
           "--key-width, --mean-key-width and --max-parameters are about --to collaborative; the sizes of ", to.scheme,
           " follow from the model");
  const int given = static_cast<int>(to.size.has_value()) + static_cast<int>(o.mean_latent_width.has_value()) +
                    static_cast<int>(width.max_error.has_value());
  if (has_layer_sizes(conversion_record(to.scheme))) {
    HS_CHECK(given <= 1, "--to ", name_of(to), ", --mean-latent-width and --max-error exclude each other");
    return;
  }
  HS_CHECK(!o.mean_latent_width, "--mean-latent-width is about ", schemes_with(has_layer_sizes, "--to "), ", not ",
           to.scheme);
  HS_CHECK(!width.max_error, "--max-error is about --to collaborative and ", schemes_with(has_layer_sizes, "--to "),
           ", not ", to.scheme);
}

void check_width(const SchemeConversion& o, const SharedScheme& to) {
  if (to.scheme != kCollaborative) return check_sizes(o, to);
  const WidthChoice& width = o.width;
  HS_CHECK(!o.mean_latent_width, "--mean-latent-width is about ", schemes_with(has_layer_sizes, "--to "),
           "; give --mean-key-width");
  const int given = static_cast<int>(width.key_width.has_value()) + static_cast<int>(width.mean_key_width.has_value()) +
                    static_cast<int>(width.max_error.has_value()) + static_cast<int>(width.max_parameters.has_value());
  HS_CHECK(given > 0,
           "--to collaborative needs a width: --key-width N, --mean-key-width N, --max-error E or --max-parameters P");
  HS_CHECK(given == 1, "--key-width, --mean-key-width, --max-error and --max-parameters exclude each other");
}

void check_options(const SchemeConversion& o, const SharedScheme& to) {
  const std::string& scheme = to.scheme;
  check_width(o, to);
  const ConversionRecord* conversion = scheme == kCollaborative ? nullptr : &conversion_record(scheme);
  const DecompositionOptions usual;
  const DecompositionOptions& asked = o.decomposition;
  const bool steps = conversion == nullptr || conversion->iterates;
  HS_CHECK(steps || (asked.iterations == usual.iterations && asked.tolerance == usual.tolerance &&
                     asked.restarts == usual.restarts && asked.seed == usual.seed),
           "--iterations, --tolerance, --restarts and --seed are about --to collaborative and ",
           schemes_with([](const ConversionRecord& one) { return one.iterates; }, "--to "), "; ", scheme,
           " is computed at once");
  const bool sampled = !o.sample_text.empty() || !o.sample_images.empty();
  HS_CHECK(sampled || o.sample_tokens == SchemeConversion().sample_tokens,
           "--sample-tokens needs --sample-text or --sample-images");
  const bool pools = conversion != nullptr && conversion->groups != nullptr;
  HS_CHECK(o.pooling == Pooling::kLeastSquares || pools, "--pooling is about ",
           schemes_with([](const ConversionRecord& one) { return one.groups != nullptr; }, "--to "), ", not ", scheme);
}

void notice_growth(const AttentionOptions& source, const std::string& to, const ModelSize& before,
                   const ModelSize& after) {
  if (after.total_parameters <= before.total_parameters) return;
  const bool mixing = source.scheme == "mha" && to == kCollaborative;
  notice(join_text("the converted model has more parameters than the source: ",
                   mixing ? "at this key width mixing costs more than sharing saves; choose a smaller one"
                          : join_text(to, " keeps maps that those of ", source.scheme, " share")));
}

// Shows how far a conversion has come, on a line of its own; Ctrl-C ends it with what there is.
template <class Convert>
auto with_progress(const Convert& convert) {
  std::optional<ProgressLine> line;
  double done = 0;
  const ConversionObserver observer = [&](const ConversionProgress& now) {
    if (now.done < done) line.reset();  // another phase, with a time of its own
    if (!line) line.emplace("converting");
    done = now.done;
    line->update(now.done, now.total, now.what);
    return !stop_requested();
  };
  return convert(observer);
}

// Both models are scored on this text, or on the test images of a directory. Text is read once, because a pipe cannot
// be read again; the converted model has the tokenizer of its source.
struct ScoreText {
  std::vector<std::string> files = {};
  std::optional<TokenData> tokens = {};  // once they are read
  std::string images = {};
};

// Scores the model in `directory` on the score text or images; returns null where there are none. The masks of an
// encoder are the same for every model.
nlohmann::ordered_json score(const fs::path& directory, const std::string& title, ScoreText* text) {
  if (text->files.empty() && text->images.empty()) return {};
  TaskOptions task;
  task.own<MaskedOptions>().pseudo_tokens = 0;  // one forward pass each
  task.own<ImageTaskOptions>().data.images = text->images;
  ProgressLine line(title);
  const auto open = [&](const Tokenizer& tokenizer) {
    if (!text->tokens) {
      ProgressLine reading("text");
      text->tokens = open_tokens(text->files, DataOptions(), tokenizer, show_reading(reading));
    }
    return *text->tokens;
  };
  const auto progress = [&](int64_t done, int64_t total) {
    check_interrupted();
    line.update(static_cast<double>(done), static_cast<double>(total));
  };
  const TaskFamily& family = scoring_family(read_options(directory));
  const TextScores scores = family.score({.model = directory.string(), .open = open, .progress = progress}, task);
  check_scores(scores, directory.string());
  return scores.object;
}

// Scores the converted model, which is written by now: Ctrl-C leaves it unscored. Returns false where that happened.
bool score_result(const fs::path& out, ScoreText* text, nlohmann::ordered_json* scores) {
  try {
    *scores = score(out, "scoring the result", text);
    return true;
  } catch (const Interrupted&) {
    notice(join_text("stopped: ", out.string(), " is written, and not scored"));
    return false;
  }
}

struct ConversionCall {
  SharedScheme to;
  const SchemeConversion& options;
  Tensor sample;
};

template <class Model>
Model converted(const Model& source, const ConversionCall& conversion, ConversionReport* presented) {
  const SchemeConversion& options = conversion.options;
  if (conversion.to.scheme == kCollaborative) {
    CollaborativeHeadsReport report;
    const Model target = with_progress([&](const ConversionObserver& observer) {
      return to_collaborative(source, {options.width, options.decomposition, conversion.sample}, observer, &report);
    });
    *presented = present(report);
    return target;
  }
  SharedHeadsReport report;
  const Model target = with_progress([&](const ConversionObserver& observer) {
    const SizeChoice sizes{.mean = options.mean_latent_width, .max_error = options.width.max_error};
    return to_shared(source, {conversion.to, options.decomposition, conversion.sample, sizes}, observer, &report);
  });
  *presented = present(report);
  return target;
}

// A destination says where the result goes, and which checkpoint it is made from.
struct Destination {
  std::string out;
  OutputDirectory& directory;
  fs::path source;
};

// Converts, writes, scores what there is to score, and prints what became of the model.
template <class Model, class Tokenizers>
int write_converted(const Model& source, const Tokenizers& tokenizers, const ConversionCall& conversion,
                    const Destination& to, ScoreText* score_text, ScoredConversion scored) {
  ConversionReport report;
  const Model target = converted(source, conversion, &report);
  if (report.stopped) {
    notice(
        "stopped: the layer at hand keeps its best result so far; later layers were not improved and are less exact");
  }
  to.directory.write([&](const fs::path& directory) {
    save_model(directory, target, tokenizers);
    copy_task_note(to.source, directory);
  });
  const ModelSize before = measure(source->options());
  const ModelSize after = measure(target->options());
  const bool whole = !report.stopped && score_result(to.out, score_text, &scored.after);
  notice_growth(attention_options(source->options()), conversion.to.scheme, before, after);
  print_conversion(report, scored, before, after, to.out, conversion.options.json);
  return whole ? kOk : kInterrupted;
}

// Throws Error for images given to a model that `reads` something else.
void refuse_images(const SchemeConversion& options, const std::string& model, const std::string& reads) {
  HS_CHECK(options.sample_images.empty() && options.score_images.empty(), model, " ", reads,
           ": leave --sample-images and --score-images out");
}

template <class Model, class Options>
int convert(const fs::path& directory, const Options& stored, ConversionCall conversion, const Destination& to) {
  const at::NoGradGuard no_grad;
  refuse_images(conversion.options, directory.string(), "reads text");
  const std::shared_ptr<Tokenizer> tokenizer = load_own_tokenizer(directory);
  const Model source = load_as_trained(directory, stored);
  conversion.sample = shown_while_read([&](const Progress& progress) {
    const SchemeConversion& o = conversion.options;
    return read_sample({"--sample-text", o.sample_text, o.sample_tokens, progress}, source->options(), tokenizer.get());
  });
  ScoreText score_text{.files = conversion.options.score_text};
  ScoredConversion scored{.before = score(directory, "scoring the source", &score_text), .after = {}};
  return write_converted(source, tokenizer.get(), conversion, to, &score_text, std::move(scored));
}

// Converts by weights alone: what the layers of a translator read would take pairs of sentences.
int convert_translator(const fs::path& directory, const ConversionCall& conversion, const Destination& to) {
  refuse_images(conversion.options, directory.string(), "translates");
  HS_CHECK(conversion.options.sample_text.empty(), directory.string(),
           " translates: its layers are converted by their weights; leave --sample-text out");
  HS_CHECK(conversion.options.score_text.empty(), directory.string(),
           " translates: leave --score-text out, and score translations before and after with `headshare translate` "
           "and `headshare score bleu`");
  const LoadedTranslator source = load_translator(directory);
  ScoreText nothing;
  return write_converted(source.model, source.tokenizers, conversion, to, &nothing, {});
}

int convert_vision(const fs::path& directory, ConversionCall conversion, const Destination& to) {
  const at::NoGradGuard no_grad;
  const SchemeConversion& o = conversion.options;
  HS_CHECK(o.sample_text.empty() && o.score_text.empty(), directory.string(),
           " reads images: give --sample-images and --score-images instead of texts");
  for (const auto& [option, images] :
       {std::pair("--sample-images", &o.sample_images), {"--score-images", &o.score_images}}) {
    HS_CHECK(images->empty() || fs::is_directory(*images), option, " ", *images,
             " is no directory; name one with images, as `headshare train --images` takes it");
  }
  const LoadedVision source = load_vision_model(directory);
  {
    ProgressLine line("images");
    const auto progress = [&](int64_t done, int64_t total) {
      check_interrupted();
      line.update(static_cast<double>(done), static_cast<double>(total));
    };
    conversion.sample = read_sample({o.sample_images, o.sample_tokens, progress}, source.model->options());
  }
  ScoreText score_images{.images = o.score_images};
  ScoredConversion scored{.before = score(directory, "scoring the source", &score_images), .after = {}};
  return write_converted(source.model, TokenizerPair(), conversion, to, &score_images, std::move(scored));
}

}  // namespace

std::vector<std::string> sharing_schemes() {
  std::vector<std::string> names = {kCollaborative};
  for (const auto& one : conversion_records()) {
    std::string parts;
    if (one->variants) parts += ":" + one->variants->name;
    if (one->size) parts += ":" + one->size->name;
    std::transform(parts.begin(), parts.end(), parts.begin(), [](unsigned char c) { return std::toupper(c); });
    names.push_back(one->scheme + parts);
  }
  return names;
}

bool names_sharing_scheme(const std::string& to) { return converts_to(scheme_of(to)); }

void copy_task_note(const fs::path& from, const fs::path& to) {
  const fs::path note = from / kTaskNoteFile;
  if (fs::exists(note)) fs::copy_file(note, to / kTaskNoteFile);
}

int convert_scheme(const std::string& source, const std::string& out, const std::string& to, Overwrite overwrite,
                   const SchemeConversion& options) {
  ConversionCall conversion{{}, options, {}};
  as_usage([&] {
    conversion.to = parse_scheme(to);
    conversion.to.pooling = options.pooling;
    check_options(options, conversion.to);
  });
  const fs::path directory = find_checkpoint(source);
  InputPaths inputs = options.sample_text;
  inputs.insert(inputs.end(), options.score_text.begin(), options.score_text.end());
  for (const std::string& one : {options.sample_images, options.score_images}) {
    if (!one.empty()) inputs.push_back(one);
  }
  inputs.push_back(directory.string());
  OutputDirectory written(out, overwrite, headshare_output(), inputs);
  catch_interrupts();
  const ModelOptions stored = read_options(directory);
  refuse_shared_memory(stored.common(), "`convert` does not rewrite");
  const auto* decoder = stored.find<DecoderOptions>();
  const auto* encoder = stored.find<EncoderOptions>();
  const bool translates = stored.find<EncoderDecoderOptions>() != nullptr;
  const bool sees = stored.find<VisionOptions>() != nullptr;
  HS_CHECK(decoder != nullptr || encoder != nullptr || translates || sees, directory.string(), " is ",
           stored.kind().what_it_does(stored),
           "; a decoder, an encoder, an encoder-decoder or a vision transformer is needed here");
  written.begin();
  const Destination destination{out, written, directory};
  if (decoder != nullptr) return convert<Decoder>(directory, *decoder, conversion, destination);
  if (encoder != nullptr) return convert<Encoder>(directory, *encoder, conversion, destination);
  if (sees) return convert_vision(directory, conversion, destination);
  return convert_translator(directory, conversion, destination);
}

}  // namespace headshare
