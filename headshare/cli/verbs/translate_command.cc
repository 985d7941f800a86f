// headshare translate translates standard input line by line.

#include "headshare/base/error.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/cli/inputs/input_lines.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/line_reader.h"
#include "headshare/decode/beam/line_queue.h"
#include "headshare/host/runtime_options.h"
#include "headshare/ops/precision.h"
#include "headshare/tasks/translation/translator.h"

namespace headshare {
namespace {

struct TranslateOptions {
  std::string model_path;
  std::string prefix;
  std::string prefixes;
  bool sample = false;
  bool scores = false;
  bool alignment = false;
  bool json = false;
  BeamOptions beam;
  SamplingOptions sampling;
  LineQueueOptions lines;
  RuntimeOptions runtime;
  Precision precision = Precision::kFp32;
};

Fields text_fields(TranslateOptions& o) {
  return {
      field("prefix", &o.prefix, "every translation begins with this text"),
      naming_file(
          field("prefixes", &o.prefixes, "a file with such a text for each line of the input; empty lines for none")),
      field("sample", &o.sample, "draw each translation at random instead of searching for the likeliest"),
      field("scores", &o.scores, "write the score and a tab before each translation"),
      field("alignment", &o.alignment,
            "write a tab and pairs SOURCE-TARGET of tokens, counted from 0, behind each translation: where "
            "cross-attention looked. Targets begin with those of a prefix"),
      field("json", &o.json,
            "a JSON object for each line of the input, with the translations, their scores and tokens"),
  };
}

Fields computing_fields(TranslateOptions& o) {
  Fields list = fields(o.runtime);
  list.push_back(field("precision", &o.precision,
                       "of matrix products, and with bf16 of attention: bf16x3 takes each number as the sum of two of "
                       "bf16, nearly as exact as fp32 and faster where the processor has AMX",
                       product_precision_names()));
  return list;
}

// Returns the options of sampling that drawing whole sentences needs; greedy is --beam 1.
Fields sampling_fields(TranslateOptions& o) {
  Fields list = fields(o.sampling);
  std::erase_if(list, [](const Field& one) {
    return one.name == "max-new-tokens" || one.name == "stop" || one.name == "greedy";
  });
  return list;
}

// Sets up --sample, which draws one hypothesis; options about drawing do nothing without it.
void settle_sampling(const Arguments& arguments, TranslateOptions* o) {
  for (const Field& one : sampling_fields(*o)) {
    HS_CHECK(o->sample || !arguments.given(one.name), "--", one.name, " is about --sample; add it, or leave --",
             one.name, " out");
  }
  if (!o->sample) return;
  if (!arguments.given("beam")) o->beam.beam = 1;
  HS_CHECK(o->beam.beam == 1, "--sample draws one hypothesis; set --beam 1, not ", o->beam.beam);
  HS_CHECK(o->beam.n_best == 1, "--sample draws one hypothesis; leave --n-best ", o->beam.n_best, " out");
}

// Throws UsageError for options that would change nothing: a user who sets one believes that it matters.
void refuse_idle_options(const Arguments& arguments, const TranslateOptions& o) {
  const bool greedy = o.beam.beam == 1;
  if (greedy) arguments.refuse_idle({"early-stopping"}, "is about several hypotheses, and --beam is 1");
  if (greedy && !o.scores && !o.json) {
    arguments.refuse_idle({"length-penalty", "length-norm"},
                          "chooses among several hypotheses, and --beam is 1; only scores (--scores, --json) show it");
  }
  if (o.beam.length_norm == LengthNorm::kNone)
    arguments.refuse_idle({"length-penalty"}, "does nothing with --length-norm none");
  if (o.beam.max_length_ratio == 0)
    arguments.refuse_idle({"max-length-extra"}, "is added to --max-length-ratio, which is 0");
  if (o.json && o.scores) arguments.refuse_idle({"scores"}, "does nothing with --json, which has the scores");
}

// Turns the progress line off where its last line would stand before what is written to the same terminal.
ProgressLine::Output progress_output() {
  ProgressLine::Output output;
  output.terminal = output.terminal && !is_terminal(Stream::kOut);
  return output;
}

std::string lines_text(int64_t count) { return join_text(count, count == 1 ? " line" : " lines"); }

std::vector<std::string> read_prefixes(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) {
    HS_CHECK(valid_utf8_prefix(*line) == line->size(), reader.where(), " is not UTF-8");
    lines.emplace_back(without_return(*line));
  }
  return lines;
}

// These are the texts that translations begin with, as tokens of the target.
class Prefixes {
 public:
  Prefixes(const TranslateOptions& options, const Tokenizer& target) : file_(options.prefixes), target_(target) {
    common_ = target.encode(options.prefix);
    if (!file_.empty()) lines_ = read_prefixes(file_);
  }

  // Says, after the last line of the input, where prefixes are left over.
  void end(int64_t lines) const {
    if (file_.empty() || lines >= static_cast<int64_t>(lines_.size())) return;
    notice(
        join_text(file_, " has ", lines_.size(), " lines, and the input ", lines, ": the last prefixes were not used"));
  }

  std::vector<int32_t> of_line(int64_t number) const {
    if (file_.empty()) return common_;
    HS_CHECK(number <= static_cast<int64_t>(lines_.size()), "line ", number, " of the input has no prefix: ", file_,
             " has ", lines_.size(), " lines");
    return target_.encode(lines_[static_cast<size_t>(number - 1)]);
  }

 private:
  std::string file_;
  const Tokenizer& target_;
  std::vector<int32_t> common_;
  std::vector<std::string> lines_ = {};
};

// This is what was asked of a line.
struct Asked {
  const QueuedLine& line;
  std::span<const int32_t> prefix;
};

std::string alignment_text(const std::vector<int64_t>& places) {
  std::string text;
  for (size_t i = 0; i < places.size(); ++i) text += join_text(i == 0 ? "" : " ", places[i], "-", i);
  return text;
}

nlohmann::ordered_json line_object(int64_t number) {
  return {{"line", number}, {"translations", nlohmann::ordered_json::array()}};
}

std::string json_line(const Translator& translator, const Asked& asked, bool alignment,
                      const std::vector<Hypothesis>& found) {
  nlohmann::ordered_json object = line_object(asked.line.number);
  if (!asked.prefix.empty()) object["prefix_tokens"] = asked.prefix;
  if (alignment) object["source_tokens"] = asked.line.tokens;
  for (const Hypothesis& one : found) {
    object["translations"].push_back({{"text", translator.text(one, asked.prefix)},
                                      {"score", one.score},
                                      {"log_probability", one.sum},
                                      {"tokens", one.tokens},
                                      {"token_scores", one.token_scores},
                                      {"ended", one.ended}});
    if (alignment) {
      object["translations"].back()["alignment"] = translator.alignment(asked.line.tokens, one, asked.prefix);
    }
  }
  return json_text(object);
}

class TranslateCommand {
 public:
  explicit TranslateCommand(const TranslateOptions& options)
      : options_(options),
        translator_(load(options)),
        precision_(resolve_precision(options.precision, translator_.model()->device())),
        prefixes_(options, *translator_.tokenizers().target),
        queue_(queue_options(), options.json ? 1 : options.beam.n_best, callbacks()) {
    check_beam_options(options.beam);
    warn_if_no_faster(options.precision, translator_.model()->device());
  }

  // Lines that are there are translated together; when there is none at the moment, those that came are not kept
  // waiting.
  void run() {
    InputLines lines;
    int64_t count = 0;
    for (std::string line; next(lines, &line); ++count) queue_.push(std::move(line));
    queue_.flush();
    prefixes_.end(count);
  }

 private:
  static Translator load(const TranslateOptions& options) {
    const c10::Device device = start_runtime(options.runtime);
    LoadedTranslator loaded = load_translator(options.model_path);
    loaded.model->to(device);
    return {loaded.model, loaded.tokenizers};
  }

  bool next(InputLines& lines, std::string* line) {
    if (!lines.ready()) queue_.flush();
    return lines.next(line);
  }

  LineQueueOptions queue_options() const {
    LineQueueOptions lines = options_.lines;
    lines.max_source = std::min(lines.max_source, translator_.longest_source());
    return lines;
  }

  LineQueueCallbacks callbacks() {
    return {.encode = [this](const std::string& line) { return translator_.encode(line); },
            .translate = [this](std::span<const QueuedLine> batch) { return translate(batch); },
            .write =
                [](const std::string& line) {
                  hide_progress();
                  print_text(line);
                  print("\n");
                  flush_output();
                },
            .warn = warn,
            .nothing = [this](int64_t number) { return nothing(number); }};
  }

  static void warn(int64_t number, const std::string& what) { notice(join_text("line ", number, ": ", what)); }

  // Returns what stands for a missing translation: with as many columns.
  std::string nothing(int64_t number) const {
    if (options_.json) return json_text(line_object(number));
    return join_text(options_.scores ? "\t" : "", options_.alignment ? "\t" : "");
  }

  std::vector<std::vector<std::string>> translate(std::span<const QueuedLine> batch) {
    TranslationRequest request{.sources = {}, .options = options_.beam, .each_step = check_interrupted};
    if (options_.sample) request.sampling = options_.sampling;
    std::vector<size_t> places;  // in the batch, of what is translated
    for (size_t i = 0; i < batch.size(); ++i) {
      std::vector<int32_t> prefix = prefixes_.of_line(batch[i].number);
      if (translator_.room_behind(prefix.size()) < 1) {
        warn(batch[i].number, join_text("its prefix of ", prefix.size(), " tokens leaves no room in the model's ",
                                        translator_.room_behind(0), " positions; its translation is left empty"));
        continue;
      }
      places.push_back(i);
      request.sources.push_back(batch[i].tokens);
      request.prefixes.push_back(std::move(prefix));
      request.sequences.push_back(static_cast<uint64_t>(batch[i].number));
    }
    std::vector<std::vector<std::string>> outputs(batch.size());
    if (places.empty()) return outputs;
    const auto found = search(request);
    for (size_t i = 0; i < places.size(); ++i) {
      outputs[places[i]] = lines_of({batch[places[i]], request.prefixes[i]}, found[i]);
    }
    translated_ += static_cast<int64_t>(places.size());
    progress_.update(static_cast<double>(translated_), /*total=*/0, lines_text(translated_));
    return outputs;
  }

  std::vector<std::vector<Hypothesis>> search(const TranslationRequest& request) const {
    const ComputeIn computing(precision_, translator_.model()->device().type());
    return translator_.translate(request);
  }

  std::vector<std::string> lines_of(const Asked& asked, const std::vector<Hypothesis>& found) const {
    if (options_.json) return {json_line(translator_, asked, options_.alignment, found)};
    std::vector<std::string> lines;
    for (const Hypothesis& one : found) {
      const std::string score = options_.scores ? join_text(format_fixed(one.score, 4), "\t") : "";
      const std::string text = translator_.text(one, asked.prefix);
      const std::string alignment =
          options_.alignment
              ? join_text("\t", alignment_text(translator_.alignment(asked.line.tokens, one, asked.prefix)))
              : "";
      lines.push_back(join_text(score, text, alignment));
    }
    return lines;
  }

  TranslateOptions options_;
  Translator translator_;
  Precision precision_;
  Prefixes prefixes_;
  LineQueue queue_;
  ProgressLine progress_{"translating", progress_output()};
  int64_t translated_ = 0;
};

}  // namespace

int run_translate(const Words& words) {
  TranslateOptions options;
  Arguments arguments("translate",
                      "Translates standard input line by line with an encoder-decoder. Every line gives exactly one "
                      "line of output, or as many as --n-best says.");
  arguments.required("MODEL", "a checkpoint or run directory of --task translation", &options.model_path);
  arguments.group("Text", text_fields(options));
  arguments.group("Search", fields(options.beam));
  arguments.group("Sampling, with --sample", sampling_fields(options));
  arguments.group("Lines", fields(options.lines));
  arguments.group("Computing", computing_fields(options));
  arguments.common({"beam", "length-penalty", "n-best", "scores", "json", "prefix", "sample", "batch-size"});
  arguments.example("translate run <test.de >test.hyp", "the best of five hypotheses for each line");
  arguments.example("translate run --beam 1 --json <test.de", "greedily, with tokens and scores");
  arguments.note(
      "Lines that are there together are translated together, in batches of like length, and written in the order in "
      "which they came; a line that comes alone is translated at once. A line that is empty gives an empty one. One "
      "that is not UTF-8 or too long is mended or cut (--bad-lines). A warning names each of these.");
  if (!arguments.parse(words)) return kOk;
  catch_interrupts();
  as_usage([&] {
    settle_sampling(arguments, &options);
    refuse_idle_options(arguments, options);
    HS_CHECK(options.prefix.empty() || options.prefixes.empty(), "--prefix and --prefixes exclude each other");
    HS_CHECK(valid_utf8_prefix(options.prefix) == options.prefix.size(), "--prefix is not UTF-8");
    check_beam_options(options.beam);
  });
  TranslateCommand(options).run();
  return kOk;
}

}  // namespace headshare
