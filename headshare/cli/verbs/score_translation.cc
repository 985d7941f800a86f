#include "headshare/cli/verbs/score_translation.h"

#include <algorithm>
#include <map>

#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/data/benchmarks/segments.h"
#include "headshare/metrics/translation/resampling.h"
#include "headshare/metrics/translation/signature.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostSamples = 1'000'000;

Fields bleu_fields(TranslationOptions& o) {
  static const EnumNames<BleuTokenizer> tokenizers = {{BleuTokenizer::k13a, "13a"},
                                                      {BleuTokenizer::kIntl, "intl"},
                                                      {BleuTokenizer::kChar, "char"},
                                                      {BleuTokenizer::kNone, "none"},
                                                      {BleuTokenizer::kZh, "zh"}};
  static const EnumNames<BleuSmoothing> smoothings = {{BleuSmoothing::kExp, "exp"},
                                                      {BleuSmoothing::kFloor, "floor"},
                                                      {BleuSmoothing::kAddK, "add-k"},
                                                      {BleuSmoothing::kNone, "none"}};
  return {
      field("tokenize", &o.bleu.tokenizer, "bleu: how lines are cut into words", tokenizers, {.aliases = {"tok"}}),
      field("lowercase", &o.lowercase, "bleu and chrf: upper and lower case are the same (ter: see case-sensitive)",
            {.aliases = {"chrf-lowercase"}}),
      field("smooth", &o.bleu.smoothing, "bleu: what stands for a precision of 0", smoothings,
            {.aliases = {"smooth-method"}}),
      field("smooth-value", &o.bleu.smooth_value, "bleu: the value of floor (auto: 0.1) or add-k (auto: 1)",
            {.min = 0}),
      field("effective-order", &o.bleu.effective_order,
            "bleu: n-grams longer than the text do not count; always so with --sentence-level"),
      field("force", &o.force, "bleu: no note where lines look as if they were tokenized already"),
  };
}

Fields chrf_fields(TranslationOptions& o) {
  const double most = Chrf::kMostOrder;
  return {
      field("char-order", &o.chrf.char_order, "chrf: longest n-gram of characters",
            {.min = 0, .max = most, .aliases = {"chrf-char-order"}}),
      field("word-order", &o.chrf.word_order, "chrf: longest n-gram of words; 2 is chrF++",
            {.min = 0, .max = most, .aliases = {"chrf-word-order"}}),
      field("beta", &o.chrf.beta, "chrf: recall counts so many times as much as precision",
            {.min = 1, .max = Chrf::kMostBeta, .aliases = {"chrf-beta"}}),
      field("whitespace", &o.chrf.whitespace, "chrf: white space counts among the characters",
            {.aliases = {"chrf-whitespace"}}),
      field("eps-smoothing", &o.chrf.eps_smoothing, "chrf: orders without n-grams count, as in chrF++.py",
            {.aliases = {"chrf-eps-smoothing"}}),
  };
}

Fields ter_fields(TranslationOptions& o) {
  return {
      field("case-sensitive", &o.ter.case_sensitive, "ter: upper and lower case differ",
            {.aliases = {"ter-case-sensitive"}}),
      field("normalized", &o.ter.normalized, "ter: signs are words of their own", {.aliases = {"ter-normalized"}}),
      field("no-punctuation", &o.ter.no_punctuation, "ter: leave out punctuation",
            {.aliases = {"ter-no-punct", "no-punct"}}),
      field("asian-support", &o.ter.asian_support,
            "ter: with normalized, Chinese characters are words; with no-punctuation, their signs are left out",
            {.aliases = {"ter-asian-support"}}),
  };
}

Fields common_fields(TranslationOptions& o) {
  return {
      field("confidence", &o.confidence, "a 95% interval from so many bootstrap resamples of the lines",
            {.min = 0, .max = kMostSamples, .aliases = {"confidence-n"}}),
      field("paired-bootstrap", &o.paired_bootstrap,
            "compare every system with the first by so many resamples (1000 is usual)",
            {.min = 0, .max = kMostSamples, .aliases = {"paired-bs-n"}}),
      field("paired-randomisation", &o.paired_randomisation,
            "compare every system with the first by so many trials that swap lines (10000 is usual)",
            {.min = 0, .max = kMostSamples, .aliases = {"paired-randomization", "paired-ar-n"}}),
      field("seed", &o.seed, "of the resamples and trials", {.min = 0}),
      field("sentence-level", &o.sentence_level, "a score for each line of one system"),
      field("width", &o.width, "digits behind the point", {.min = 0, .max = 17}),
  };
}

std::unique_ptr<TranslationMetric> metric_of(const std::string& question, const TranslationOptions& o) {
  if (question == "bleu") {
    BleuOptions options = o.bleu;
    options.lowercase = o.lowercase;
    options.effective_order |= o.sentence_level;
    return std::make_unique<Bleu>(options);
  }
  if (question == "ter") return std::make_unique<Ter>(o.ter);
  ChrfOptions options = o.chrf;
  options.lowercase = o.lowercase;
  return std::make_unique<Chrf>(options);
}

// These scores belong to one call: what all systems were scored by, and what came out.
struct Scored {
  std::unique_ptr<TranslationMetric> metric;
  std::string signature;
  std::vector<std::string> systems;
  std::vector<SegmentTable> tables;
  std::vector<SystemResult> results;
  int digits = 1;
};

// Returns "26.6 (μ = 26.6 ± 0.7)", as sacreBLEU prints it.
std::string score_text(const SystemResult& result, int digits) {
  std::string text = format_fixed(result.score, digits);
  if (result.interval && result.interval->mean > 0) {
    text += " (μ = " + format_fixed(result.interval->mean, digits) + " ± " +
            format_fixed(result.interval->half_width, digits) + ")";
  }
  return text;
}

std::string score_line(const Scored& scored, const std::vector<MixedNumber>& sums, const SystemResult& result) {
  const std::string detail = scored.metric->detail(sums);
  return scored.metric->name() + "|" + scored.signature + " = " + score_text(result, scored.digits) +
         (detail.empty() ? "" : " " + detail) + "\n";
}

std::vector<MixedNumber> row_of(const SegmentTable& table, size_t segment) {
  const auto row = table.row(segment);
  return {row.begin(), row.end()};
}

void print_sentences(const Scored& scored) {
  std::string text;
  for (size_t i = 0; i < scored.tables[0].segments(); ++i) {
    const std::vector<MixedNumber> sums = row_of(scored.tables[0], i);
    text += score_line(scored, sums, {.score = scored.metric->score(sums).value});
  }
  print(text);
}

// Prints several systems: a row each, and how to read it.
void print_systems(const Scored& scored) {
  const bool intervals = scored.results[0].interval.has_value();
  const bool tested = scored.results[1].p_value.has_value();
  std::vector<Column> columns = {{"system", Align::kLeft}, {scored.metric->name()}};
  if (intervals) columns.insert(columns.end(), {{"mean"}, {"95%"}});
  if (tested) columns.push_back({"p", Align::kLeft});
  TextTable table(columns);
  for (size_t s = 0; s < scored.systems.size(); ++s) {
    const SystemResult& result = scored.results[s];
    std::vector<std::string> cells = {scored.systems[s], format_fixed(result.score, scored.digits)};
    if (intervals) {
      cells.push_back(format_fixed(result.interval->mean, scored.digits));
      cells.push_back("± " + format_fixed(result.interval->half_width, scored.digits));
    }
    if (result.p_value) cells.push_back(format_fixed(*result.p_value, 4) + (*result.p_value > 0.05 ? "" : " *"));
    table.add(cells);
  }
  print(table.text(terminal_width(Stream::kOut)));
  if (tested) {
    print(wrap(join_text("p: how likely a difference to ", scored.systems[0],
                         " as large or larger is by chance; * at most 0.05"),
               terminal_width(Stream::kOut), 0) +
          "\n");
  }
  print(scored.metric->name() + "|" + scored.signature + "\n");
}

Json system_object(const Scored& scored, size_t s, bool sentences) {
  const SystemResult& result = scored.results[s];
  const std::vector<MixedNumber> sums = column_sums(scored.tables[s]);
  Json object = {{"system", scored.systems[s]}, {"score", result.score}};
  if (result.interval) {
    object["mean"] = result.interval->mean;
    object["half_width"] = result.interval->half_width;
  }
  if (result.p_value) object["p_value"] = *result.p_value;
  if (const auto* bleu = dynamic_cast<const Bleu*>(scored.metric.get())) {
    const BleuParts parts = bleu->parts(sums);
    for (const MixedNumber& one : parts.precisions) object["precisions"].push_back(one.value);
    object["brevity_penalty"] = parts.brevity_penalty;
    object["system_length"] = parts.system_length;
    object["reference_length"] = parts.reference_length;
  }
  if (!sentences) return object;
  for (size_t i = 0; i < scored.tables[s].segments(); ++i) {
    object["sentences"].push_back(scored.metric->score(row_of(scored.tables[s], i)).value);
  }
  return object;
}

std::string object_text(const Scored& scored, const std::string& question, bool sentences) {
  Json object = {{"question", question},
                 {"name", scored.metric->name()},
                 {"signature", scored.signature},
                 {"segments", scored.tables[0].segments()},
                 {"systems", Json::array()}};
  for (size_t s = 0; s < scored.systems.size(); ++s) object["systems"].push_back(system_object(scored, s, sentences));
  return json_text(object, 2) + "\n";
}

void print_scores(const Scored& scored, bool sentences) {
  if (sentences) {
    print_sentences(scored);
  } else if (scored.systems.size() == 1) {
    print(score_line(scored, column_sums(scored.tables[0]), scored.results[0]));
  } else {
    print_systems(scored);
  }
}

std::vector<SystemResult> results_of(const Scored& scored, const TranslationOptions& o) {
  Resampling resampling{.seed = static_cast<uint64_t>(o.seed), .check_interrupted = check_interrupted};
  if (o.paired_bootstrap > 0) {
    resampling.samples = o.paired_bootstrap;
    return paired_bootstrap(*scored.metric, scored.tables, resampling);
  }
  if (o.paired_randomisation > 0) {
    resampling.samples = o.paired_randomisation;
    return paired_randomisation(*scored.metric, scored.tables, resampling);
  }
  std::vector<SystemResult> results;
  resampling.samples = o.confidence;
  for (const SegmentTable& one : scored.tables) {
    results.push_back({.score = scored.metric->score(column_sums(one)).value});
    if (o.confidence > 0) results.back().interval = bootstrap_interval(*scored.metric, one, resampling);
  }
  return results;
}

// Warns of translations that look tokenized, when there are as many as sacreBLEU warns of.
void note_tokenized(const std::string& name, const Segments& system) {
  constexpr auto kMany = 100;
  const auto count = std::count_if(system.begin(), system.end(), [](const auto& line) { return line.ends_with(" ."); });
  if (count < kMany) return;
  notice(join_text(name, ": ", count,
                   " lines end in a blank and a point, as if they were tokenized; BLEU is to be taken of "
                   "plain text (--force: no such note)"));
}

// Refuses options of the other questions, which would change nothing.
void check_fields(const Arguments& arguments, const std::string& question) {
  const std::map<std::string, std::vector<std::string>> owners = {
      {"bleu", {"tokenize", "smooth", "smooth-value", "effective-order", "force"}},
      {"chrf", {"char-order", "word-order", "beta", "whitespace", "eps-smoothing"}},
      {"ter", {"case-sensitive", "normalized", "no-punctuation", "asian-support"}}};
  for (const auto& [owner, names] : owners) {
    for (const std::string& name : names) {
      HS_CHECK(owner == question || !arguments.given(name), "--", name, " is for ", owner, ", not for ", question);
    }
  }
  HS_CHECK(question == "bleu" || question == "chrf" || !arguments.given("lowercase"),
           "--lowercase is for bleu and chrf, not for ", question,
           question == "ter" ? ", which does not tell upper from lower case unless --case-sensitive is given" : "");
}

}  // namespace

const std::vector<std::string>& translation_questions() {
  static const std::vector<std::string> questions = {"bleu", "chrf", "ter"};
  return questions;
}

void add_translation_options(TranslationOptions* options, Arguments* arguments) {
  arguments->group("Translation: systems and lines", common_fields(*options));
  arguments->group("Translation: BLEU", bleu_fields(*options));
  arguments->group("Translation: chrF", chrf_fields(*options));
  arguments->group("Translation: TER", ter_fields(*options));
}

void check_translation_options(const Arguments& arguments, const std::string& question, const TranslationOptions& o,
                               size_t systems) {
  check_fields(arguments, question);
  const auto& known = translation_questions();
  const bool translation = std::find(known.begin(), known.end(), question) != known.end();
  for (const char* name :
       {"confidence", "paired-bootstrap", "paired-randomisation", "seed", "sentence-level", "width"}) {
    HS_CHECK(translation || !arguments.given(name), "--", name, " is for bleu, chrf and ter, not for ", question);
  }
  if (!translation) return;
  const bool paired = o.paired_bootstrap > 0 || o.paired_randomisation > 0;
  HS_CHECK(o.paired_bootstrap == 0 || o.paired_randomisation == 0,
           "--paired-bootstrap or --paired-randomisation: give one of them");
  HS_CHECK(!paired || systems >= 2, "a paired test compares every system with the first: give two or more, not ",
           systems);
  HS_CHECK(!paired || o.confidence == 0,
           "--confidence is for scores without a paired test; --paired-bootstrap has intervals");
  HS_CHECK(!o.sentence_level || systems == 1, "--sentence-level is for one system, not ", systems);
  HS_CHECK(!o.sentence_level || (!paired && o.confidence == 0),
           "--sentence-level goes with no test and no --confidence");
  for (const int64_t samples : {o.confidence, o.paired_bootstrap, o.paired_randomisation}) {
    HS_CHECK(samples != 1, "one sample says nothing: give 2 or more, 1000 is usual");
  }
  HS_CHECK(paired || o.confidence > 0 || !arguments.given("seed"),
           "--seed is for --confidence, --paired-bootstrap and --paired-randomisation");
  metric_of(question, o);
}

void score_translations(const std::string& question, const TranslationOptions& o,
                        const std::vector<std::string>& systems, const std::vector<std::string>& references,
                        bool json) {
  std::vector<std::string> inputs = references;
  inputs.insert(inputs.end(), systems.begin(), systems.end());
  HS_CHECK(std::count(inputs.begin(), inputs.end(), "-") <= 1, "standard input (-) can be one of the files only");
  ReferenceTexts known = read_parallel_segments(inputs);
  const auto first = known.begin() + static_cast<ptrdiff_t>(references.size());
  const std::vector<Segments> outputs(std::make_move_iterator(first), std::make_move_iterator(known.end()));
  known.resize(references.size());
  Scored scored;
  scored.metric = metric_of(question, o);
  scored.systems = systems;
  scored.digits = static_cast<int>(o.width);
  for (size_t s = 0; s < outputs.size(); ++s) {
    check_interrupted();
    if (question == "bleu" && !o.force) note_tokenized(systems[s], outputs[s]);
    scored.tables.push_back(scored.metric->measure(outputs[s], known));
  }
  scored.results = results_of(scored, o);
  SignatureContext context{.references = references.size(),
                           .seed = static_cast<uint64_t>(o.seed),
                           .version = "headshare-" HEADSHARE_VERSION};
  if (const int64_t samples = std::max(o.confidence, o.paired_bootstrap); samples > 0) context.bootstrap = samples;
  if (o.paired_randomisation > 0) context.randomisation = o.paired_randomisation;
  scored.signature = signature(*scored.metric, context);
  print_result(
      json, [&] { return object_text(scored, question, o.sentence_level); },
      [&] { print_scores(scored, o.sentence_level); });
}

}  // namespace headshare
