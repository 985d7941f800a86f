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

// Of translate_all: rows of hypotheses and source tokens that a batch holds at most.
constexpr int64_t kRows = 256;
constexpr int64_t kSourceTokens = 4096;

int64_t longest(std::span<const std::vector<int32_t>> rows) {
  size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  return static_cast<int64_t>(most);
}

// How many of `order`, from `first` on, are translated at once.
size_t batch_end(const std::vector<size_t>& order, size_t first, int64_t beam,
                 const std::vector<std::vector<int32_t>>& sources) {
  const auto widest = static_cast<int64_t>(sources[order[first]].size());  // the longest comes first
  const int64_t most = std::max<int64_t>(1, std::min(kRows / std::max<int64_t>(1, beam), kSourceTokens / widest));
  return std::min(order.size(), first + static_cast<size_t>(most));
}

// A file of translations has a line for each.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

int32_t text_end(const Tokenizer& tokenizer, const std::string& where) {
  const std::optional<int32_t> id = tokenizer.special(SpecialToken::kEndOfText);
  HS_CHECK(id, where, " (", tokenizer.kind(),
           ") has no token that ends a text, by which translations end; use --tokenizer sentencepiece or bpe");
  return *id;
}

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
      source_end_(text_end(*tokenizers_.source, "the source's tokenizer")) {
  model_->eval();
}

int64_t Translator::longest_source() const {
  const EncoderDecoderOptions& options = model_->options();
  return has_position_limit(options.positions) ? options.context - 1 : std::numeric_limits<int32_t>::max();
}

std::vector<std::vector<Hypothesis>> Translator::translate(std::span<const std::vector<int32_t>> sources,
                                                           const BeamOptions& options,
                                                           const std::optional<SamplingOptions>& sampling,
                                                           std::span<const std::vector<int32_t>> prefixes,
                                                           std::span<const uint64_t> sequences) const {
  const TargetMarks& marks = model_->options().marks;
  SearchRequest request{.options = options, .sampling = sampling};
  request.start = static_cast<int32_t>(marks.start);
  request.end_of_text = static_cast<int32_t>(marks.end);
  if (marks.never_produced) request.suppressed = {static_cast<int32_t>(*marks.never_produced)};
  if (marks.forced_last) request.forced_last = static_cast<int32_t>(*marks.forced_last);
  // Ids that the model has room for and the tokenizer no text.
  for (int64_t id = tokenizers_.target->vocabulary_size(); id < model_->options().vocabulary; ++id) {
    request.suppressed.push_back(static_cast<int32_t>(id));
  }
  if (marks.forced_first) request.forced_first = static_cast<int32_t>(*marks.forced_first);
  std::vector<std::vector<int32_t>> ended(sources.begin(), sources.end());
  for (auto& source : ended) {
    HS_CHECK(!source.empty() && static_cast<int64_t>(source.size()) <= longest_source(), "a source of ", source.size(),
             " tokens cannot be translated: the model takes 1 to ", longest_source());
    request.sentences.push_back({.source_length = static_cast<int64_t>(source.size())});
    source.push_back(source_end_);
  }
  for (size_t i = 0; i < prefixes.size(); ++i) request.sentences[i].prefix = prefixes[i];
  for (size_t i = 0; i < sequences.size(); ++i) request.sentences[i].sequence = sequences[i];
  const int64_t room = longest_source() - longest(prefixes);  // what is fed, the start included, has positions
  HS_CHECK(room > 0, "a prefix of ", longest(prefixes), " tokens leaves no room for a translation in the model's ",
           longest_source(), " positions");
  request.options.max_length = std::min(options.max_length, room);
  const int64_t most = length_limit(request.options, longest(sources));
  ModelSteps steps(model_, padded(ended, model_->device()), 1 + longest(prefixes) + most);
  return beam_search(steps, request);
}

std::vector<int32_t> Translator::whole(const Hypothesis& hypothesis, std::span<const int32_t> prefix) {
  std::vector<int32_t> tokens(prefix.begin(), prefix.end());
  tokens.insert(tokens.end(), hypothesis.tokens.begin(), hypothesis.tokens.end() - (hypothesis.ended ? 1 : 0));
  return tokens;
}

std::string Translator::text(const Hypothesis& hypothesis, std::span<const int32_t> prefix) const {
  // Byte-level tokens need not end with a character.
  return replace_invalid_utf8(tokenizers_.target->decode(whole(hypothesis, prefix)));
}

std::vector<int64_t> Translator::alignment(const std::vector<int32_t>& source, const Hypothesis& hypothesis,
                                           std::span<const int32_t> prefix) const {
  std::vector<int32_t> ended = source;
  ended.push_back(source_end_);
  return aligned_sources(model_, ended, whole(hypothesis, prefix));
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
    std::vector<std::vector<int32_t>> batch;
    for (size_t i = first; i < end; ++i) {
      batch.push_back(sources[order[i]]);
      const auto most = static_cast<size_t>(translator.longest_source());
      if (batch.back().size() > most) batch.back().resize(most);
    }
    const std::vector<std::vector<Hypothesis>> found = translator.translate(batch, options);
    for (size_t i = first; i < end; ++i) translations[order[i]] = one_line(translator.text(found[i - first].front()));
    first = end;
    if (progress) progress(static_cast<int64_t>(first), static_cast<int64_t>(order.size()));
  }
  return translations;
}

}  // namespace headshare
