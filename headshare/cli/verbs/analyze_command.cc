// headshare analyze tells how redundant the heads of a trained model are, and what each conversion would cost and save.
#include <ATen/core/grad_mode.h>

#include "headshare/analyze/analyze_model.h"
#include "headshare/analyze/seen_images.h"
#include "headshare/base/error.h"
#include "headshare/base/files/output_file.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_text.h"
#include "headshare/cli/inputs/reading_progress.h"
#include "headshare/cli/tables/analysis_table.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/text/text_source.h"
#include "headshare/host/sample_text.h"
#include "headshare/report/analysis/analysis_json.h"
#include "headshare/report/analysis/analysis_page.h"

namespace headshare {
namespace {

struct AnalyzeOptions {
  std::string model;
  std::vector<std::string> text;
  std::vector<std::string> images;
  int64_t text_tokens = 8192;
  std::string html;
  bool overwrite = false;
  bool json = false;
  AnalysisOptions analysis;
};

Fields own_fields(AnalyzeOptions& o) {
  return {
      naming_path(field(
          "text", &o.text,
          "text like what the model reads: shows where heads look, and weighs maps and errors by what layers read")),
      naming_path(field("images", &o.images,
                        "for a model that reads images: PNG and JPEG files, or folders of them; with --html the page "
                        "shows where each head looks in them")),
      naming_file(field("html", &o.html, "write a page with all figures to this file")),
      field("overwrite", &o.overwrite, "replace the file of --html where it exists already"),
      field("json", &o.json, "print one JSON object, with all spectra and similarities"),
      field("key-widths", &o.analysis.widths,
            "widths to try for collaborative attention; default: 3/4, 1/2 and 1/4 of the full one",
            {.min = 1, .max = 1 << 20}),
      field("text-tokens", &o.text_tokens, "tokens of the text to use", {.min = 1, .max = 1 << 30}),
      field("map-tokens", &o.analysis.map_tokens, "of them, those whose attention maps and outputs are compared",
            {.min = 1, .max = 1 << 20}),
      field("iterations", &o.analysis.decomposition.iterations, "of each decomposition, at most; 0: its start alone",
            {.min = 0, .max = 1 << 20}),
  };
}

// Checks the page's file before the long work; returns nothing without --html.
std::optional<OutputFile> page_file(const AnalyzeOptions& o) {
  if (o.html.empty()) return std::nullopt;
  InputPaths inputs = paths_of_texts(o.text);
  inputs.insert(inputs.end(), o.images.begin(), o.images.end());
  inputs.push_back(find_checkpoint(o.model).string());
  return OutputFile(o.html, o.overwrite ? Overwrite::kYes : Overwrite::kNo, inputs);
}

void check_options(const Arguments& arguments, const AnalyzeOptions& options) {
  for (const char* name : {"text-tokens", "map-tokens"}) {
    HS_CHECK(!options.text.empty() || !arguments.given(name), "--", name, " needs --text");
  }
  HS_CHECK(options.images.empty() || options.json || !options.html.empty(),
           "--images is shown on a page: name it with --html FILE, or ask for --json");
  HS_CHECK(!options.overwrite || !options.html.empty(), "--overwrite needs --html");
}

template <class Model>
HeadAnalysis analyzed(const Model& model, const AnalysisOptions& analysis, const AnalyzeOptions& options) {
  ProgressLine line("analyzing");
  HeadAnalysis result = analyze_heads(model, analysis, [&line](const ConversionProgress& now) {
    line.update(now.done, now.total, now.what);
    return !stop_requested();
  });
  result.model = options.model;
  result.text = options.text;
  return result;
}

template <class Options>
HeadAnalysis analyze(const fs::path& directory, const Options& stored, const AnalyzeOptions& options) {
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Tokenizer> tokenizer = load_own_tokenizer(directory);
  const auto model = load_as_trained(directory, stored);
  AnalysisOptions analysis = options.analysis;
  analysis.sample = shown_while_read([&](const Progress& progress) {
    return read_sample({"--text", options.text, options.text_tokens, progress}, model->options(), tokenizer.get());
  });
  return analyzed(model, analysis, options);
}

// Compares heads by their weights alone, and shows where they look in images.
HeadAnalysis analyze_vision(const fs::path& directory, const AnalyzeOptions& options) {
  HS_CHECK(options.text.empty(), directory.string(),
           " reads images, and is analysed by its weights alone; leave --text out, and name images with --images");
  const VisionTransformer model = load_vision_model(directory).model;
  std::vector<LookedAtImage> images;
  if (!options.images.empty()) images = look_at_images(model, options.images);
  HeadAnalysis analysis = analyzed(model, options.analysis, options);
  analysis.class_token = model->options().class_token;
  analysis.images = std::move(images);
  return analysis;
}

HeadAnalysis analyze(const AnalyzeOptions& options) {
  const fs::path directory = find_checkpoint(options.model);
  const ModelOptions stored = read_options(directory);
  refuse_source(stored, directory.string(), "`analyze` does not look into");
  refuse_shared_memory(stored.common(), "`analyze` does not compare heads that read");
  HS_CHECK(options.images.empty() || stored.find<VisionOptions>() != nullptr,
           "--images is for models that read images, ", "and ", directory.string(), " is ",
           stored.kind().what_it_does(stored), "; leave it out");
  if (const auto* decoder = stored.find<DecoderOptions>()) return analyze(directory, *decoder, options);
  if (stored.find<VisionOptions>() != nullptr) return analyze_vision(directory, options);
  const auto* encoder = stored.find<EncoderOptions>();
  HS_CHECK(encoder != nullptr, directory.string(), " is ", stored.kind().what_it_does(stored),
           "; a decoder, an encoder or a vision transformer is needed here");
  return analyze(directory, *encoder, options);
}

}  // namespace

int run_analyze(const Words& words) {
  AnalyzeOptions options;
  Arguments arguments("analyze",
                      "Shows how redundant the heads of a trained model are, and what each conversion to heads that "
                      "share (headshare convert) would cost and save. The model is not touched.");
  arguments.required("MODEL", "a checkpoint or run directory", &options.model);
  arguments.group("Options", own_fields(options));
  arguments.example("analyze run", "by its weights alone");
  arguments.example("analyze vit-run --images cat.png --html heads.html", "where each head looks in an image");
  arguments.example("analyze run --text book.txt --html heads.html", "on a text, with a page of figures");
  if (!arguments.parse(words)) return kOk;
  as_usage([&] { check_options(arguments, options); });
  const std::optional<OutputFile> page = page_file(options);
  catch_interrupts();
  const HeadAnalysis analysis = analyze(options);
  // The text comes first, so that a page that cannot be written loses nothing.
  print_result(
      options.json, [&] { return json_text(to_json(analysis), 2) + "\n"; },
      [&] { print_styled(analysis_text(analysis)); });
  if (page) {
    page->write(analysis_page(analysis));
    print_status("wrote " + options.html);
  }
  return kOk;
}

}  // namespace headshare
