#include "headshare/tasks/translation/translator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/data/repair_utf8.h"
#include "headshare/decode/beam/beam_search.h"
#include "headshare/models/position_limit.h"
#include "headshare/tasks/translation/alignment.h"
#include "headshare/tasks/translation/model_steps.h"

namespace headshare {
namespace {

// A batch of translate_all holds at most so many rows of hypotheses and so many source tokens.
constexpr int64_t kRows = 256;
constexpr int64_t kSourceTokens = 4096;

// These tokens stand for no text.
constexpr SpecialToken kControls[] = {SpecialToken::kPadding,   SpecialToken::kClassify,    SpecialToken::kSeparate,
                                      SpecialToken::kEndOfText, SpecialToken::kBeginOfText, SpecialToken::kMask};

int64_t longest(std::span<const std::vector<int32_t>> rows) {
  size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  return static_cast<int64_t>(most);
}

// Returns where a batch ends that begins at `first` of `order`: those are translated at once.
size_t batch_end(const std::vector<size_t>& order, size_t first, int64_t beam,
                 const std::vector<std::vector<int32_t>>& sources) {
  const auto widest = static_cast<int64_t>(sources[order[first]].size());  // the longest comes first
  const int64_t most = std::max<int64_t>(1, std::min(kRows / std::max<int64_t>(1, beam), kSourceTokens / widest));
  return std::min(order.size(), first + static_cast<size_t>(most));
}

// Returns the text on one line: a file of translations has a line for each.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

PaddedIds padded(std::span<const std::vector<int32_t>> rows, c10::Device device) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t width = longest(rows);
  const Tensor ids = at::zeros({count, width}, at::kLong);
  Tensor visible = at::zeros({count, width}, at::kBool);
  bool ragged = false;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int32_t>& row = rows[static_cast<size_t>(i)];
    std::copy(row.begin(), row.end(), ids.mutable_data_ptr<int64_t>() + i * width);
    std::fill_n(visible.mutable_data_ptr<bool>() + i * width, row.size(), true);
    ragged = ragged || static_cast<int64_t>(row.size()) < width;
  }
  return {.ids = ids.to(device), .visible = ragged ? visible.to(device) : Tensor()};
}

Translator::Translator(EncoderDecoder model, TokenizerPair tokenizers)
    : model_(std::move(model)),
      tokenizers_(std::move(tokenizers)),
      source_borders_(text_borders(*tokenizers_.source, "the source's tokenizer")),
      target_borders_(target_borders(*tokenizers_.target, "the target's tokenizer")) {
  model_->eval();
}

int64_t Translator::positions() const {
  const EncoderDecoderOptions& options = model_->options();
  return has_position_limit(options.positions) ? options.context : std::numeric_limits<int32_t>::max();
}

int64_t Translator::longest_source() const { return positions() - source_borders_.size(); }

int64_t Translator::room_behind(size_t prefix) const {
  const size_t before = prefix > 0 ? target_borders_.before.size() : 0;
  return positions() - 1 - static_cast<int64_t>(before + prefix);
}

SearchRequest Translator::marked() const {
  const TargetMarks& marks = model_->options().marks;
  const Tokenizer& target = *tokenizers_.target;
  SearchRequest search;
  search.start = static_cast<int32_t>(marks.start);
  search.end_of_text = static_cast<int32_t>(marks.end);
  if (marks.never_produced) search.suppressed = {static_cast<int32_t>(*marks.never_produced)};
  // A begin-of-text that stands before every target is no token of a target.
  const bool begins = target.special(SpecialToken::kBeginOfText) == search.start;
  if (begins && marks.start != marks.end && marks.forced_first != marks.start) {
    search.suppressed.push_back(search.start);
  }
  // The model has room for these ids, and the tokenizer has no text for them.
  for (int64_t id = target.vocabulary_size(); id < model_->options().vocabulary; ++id) {
    search.suppressed.push_back(static_cast<int32_t>(id));
  }
  if (marks.forced_first) search.forced_first = static_cast<int32_t>(*marks.forced_first);
  if (marks.forced_last) search.forced_last = static_cast<int32_t>(*marks.forced_last);
  return search;
}

SearchSentence Translator::sentence(const TranslationRequest& request, size_t i) const {
  const auto length = static_cast<int64_t>(request.sources[i].size());
  HS_CHECK(length > 0 && length <= longest_source(), "a source of ", length,
           " tokens cannot be translated: the model takes 1 to ", longest_source());
  SearchSentence one{.source_length = length};
  if (!request.prefixes.empty()) one.prefix = request.prefixes[i];
  one.room = room_behind(one.prefix.size());  // every token that is fed, the start included, has a position
  if (!request.sequences.empty()) one.sequence = request.sequences[i];
  HS_CHECK(one.room > 0, "a prefix of ", one.prefix.size(), " tokens leaves no room for a translation in the model's ",
           room_behind(0), " positions");
  HS_CHECK(request.options.min_length <= one.room, "min-length ", request.options.min_length, " is above ", one.room,
           ", the tokens that the model has positions for", one.prefix.empty() ? "" : " behind the prefix");
  const std::vector<int32_t>& before = target_borders_.before;
  if (!one.prefix.empty()) one.prefix.insert(one.prefix.begin(), before.begin(), before.end());
  return one;
}

std::vector<std::vector<Hypothesis>> Translator::translate(const TranslationRequest& request) const {
  check_beam_options(request.options);
  SearchRequest search = marked();
  search.options = request.options;
  search.sampling = request.sampling;
  search.each_step = request.each_step;
  std::vector<std::vector<int32_t>> whole;
  int64_t capacity = 0;
  for (size_t i = 0; i < request.sources.size(); ++i) {
    search.sentences.push_back(sentence(request, i));
    whole.push_back(source_borders_.around(request.sources[i]));
    const SearchSentence& one = search.sentences.back();
    const int64_t most = std::min(one.room, length_limit(request.options, one.source_length));
    capacity = std::max(capacity, 1 + static_cast<int64_t>(one.prefix.size()) + most);
  }
  ModelSteps steps(model_, padded(whole, model_->device()), capacity);
  return beam_search(steps, search);
}

std::vector<int32_t> Translator::whole(const Hypothesis& hypothesis, std::span<const int32_t> prefix) {
  std::vector<int32_t> tokens(prefix.begin(), prefix.end());
  tokens.insert(tokens.end(), hypothesis.tokens.begin(), hypothesis.tokens.end() - (hypothesis.ended ? 1 : 0));
  return tokens;
}

std::string Translator::text(const Hypothesis& hypothesis, std::span<const int32_t> prefix) const {
  const Tokenizer& target = *tokenizers_.target;
  std::vector<int32_t> tokens = whole(hypothesis, prefix);
  std::erase_if(tokens, [&](int32_t token) {
    return target_borders_.has(token) || std::any_of(std::begin(kControls), std::end(kControls),
                                                     [&](SpecialToken role) { return target.special(role) == token; });
  });
  return replace_invalid_utf8(target.decode(tokens));  // byte-level tokens need not end with a character
}

std::vector<int64_t> Translator::alignment(const std::vector<int32_t>& source, const Hypothesis& hypothesis,
                                           std::span<const int32_t> prefix) const {
  return aligned_sources(model_, source_borders_.around(source), source_borders_, whole(hypothesis, prefix));
}

std::vector<std::string> translate_all(const Translator& translator, const std::vector<std::vector<int32_t>>& sources,
                                       const BeamOptions& options,
                                       const std::function<void(int64_t done, int64_t total)>& progress) {
  std::vector<std::string> translations(sources.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  for (size_t first = 0; first < order.size();) {
    const size_t end = batch_end(order, first, options.beam, sources);
    const auto tell = [&](size_t done) {
      if (progress) progress(static_cast<int64_t>(done), static_cast<int64_t>(order.size()));
    };
    TranslationRequest batch{.sources = {}, .options = options, .each_step = [&] { tell(first); }};
    for (size_t i = first; i < end; ++i) {
      batch.sources.push_back(sources[order[i]]);
      const auto most = static_cast<size_t>(translator.longest_source());
      if (batch.sources.back().size() > most) batch.sources.back().resize(most);
    }
    const std::vector<std::vector<Hypothesis>> found = translator.translate(batch);
    for (size_t i = first; i < end; ++i) translations[order[i]] = one_line(translator.text(found[i - first].front()));
    tell(end);
    first = end;
  }
  return translations;
}

}  // namespace headshare
