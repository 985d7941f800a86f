#include "headshare/metrics/translation/chrf.h"

#include "headshare/base/error.h"
#include "headshare/metrics/translation/ngrams.h"
#include "headshare/metrics/translation/words.h"
#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

size_t code_point_count(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

// Splits into chrF's words: one ASCII sign at the end of a word, or else at its beginning, is a word of its own.
std::vector<std::string_view> words_and_signs(std::string_view text) {
  std::vector<std::string_view> parts;
  for (const std::string_view word : split_words(text)) {
    const size_t last = word.size() - 1;
    if (code_point_count(word) == 1) {
      parts.push_back(word);
    } else if (is_ascii_sign(word[last])) {
      parts.insert(parts.end(), {word.substr(0, last), word.substr(last)});
    } else if (is_ascii_sign(word[0])) {
      parts.insert(parts.end(), {word.substr(0, 1), word.substr(1)});
    } else {
      parts.push_back(word);
    }
  }
  return parts;
}

// This is one side of a comparison.
struct Sequences {
  Symbols characters;
  Symbols words;
};

double grams(const Symbols& symbols, size_t n) {
  return symbols.size() < n ? 0 : static_cast<double>(symbols.size() - n + 1);
}

class ChrfReader : public RowReader {
 public:
  ChrfReader(const ChrfOptions& options, const Chrf& metric)
      : options_(options),
        metric_(metric),
        characters_(static_cast<size_t>(options.char_order)),
        words_(static_cast<size_t>(options.word_order)) {}

  // Returns the counts with the reference that gives the best score; the first of equals.
  std::vector<double> row(const std::string& segment, std::span<const std::string> references) override {
    const Sequences own = sequences(segment);
    std::vector<double> best;
    double best_score = -1;
    for (const std::string& reference : references) {
      const Sequences other = sequences(reference);
      std::vector<double> found;
      append(own.characters, other.characters, &characters_, &found);
      append(own.words, other.words, &words_, &found);
      const double score = metric_.score(std::vector<MixedNumber>(found.begin(), found.end())).value;
      if (score > best_score) {
        best_score = score;
        best = std::move(found);
      }
    }
    return best;
  }

 private:
  Sequences sequences(const std::string& line) {
    const std::string text = options_.lowercase ? lower_case(line) : line;
    Sequences result;
    for (const int32_t point : code_points_of(text)) {
      if (options_.whitespace || !is_white_space(point)) result.characters.push_back(static_cast<uint32_t>(point));
    }
    if (options_.word_order == 0) return result;
    for (const std::string_view word : words_and_signs(text)) result.words.push_back(numbers_.number(word));
    return result;
  }

  // Appends, for each order, the numbers of n-grams of the segment (none counts where the reference has none), of the
  // reference, of both.
  static void append(const Symbols& own, const Symbols& other, NgramMatcher* matcher, std::vector<double>* row) {
    size_t n = 0;
    for (const int64_t matches : matcher->matches(own, {&other, 1})) {
      ++n;
      const double reference = grams(other, n);
      row->insert(row->end(), {reference > 0 ? grams(own, n) : 0, reference, static_cast<double>(matches)});
    }
  }

  ChrfOptions options_;
  const Chrf& metric_;
  NgramMatcher characters_;
  NgramMatcher words_;
  WordNumbers numbers_;
};

}  // namespace

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  const auto check_order = [](const char* what, int64_t order) {
    HS_CHECK(order >= 0 && order <= kMostOrder, "chrF's order of ", what, " must be 0..", kMostOrder, ", not ", order);
  };
  check_order("characters", options.char_order);
  check_order("words", options.word_order);
  HS_CHECK(orders() > 0, "chrF needs n-grams: its orders of characters and of words are both 0");
  HS_CHECK(options.beta >= 1 && options.beta <= kMostBeta, "chrF's beta must be 1..", kMostBeta, ", not ",
           options.beta);
}

std::string Chrf::name() const {
  return join_text("chrF", options_.beta, std::string(static_cast<size_t>(options_.word_order), '+'));
}

std::vector<SignaturePart> Chrf::settings() const {
  return {{"case", options_.lowercase ? "lc" : "mixed"},
          {"eff", yes_or_no(!options_.eps_smoothing)},
          {"nc", std::to_string(options_.char_order)},
          {"nw", std::to_string(options_.word_order)},
          {"space", yes_or_no(options_.whitespace)}};
}

MixedNumber Chrf::score(std::span<const MixedNumber> sums) const {
  constexpr double kEps = 1e-16;
  const auto factor = static_cast<double>(options_.beta * options_.beta);
  const auto f_score = [factor](MixedNumber precision, MixedNumber recall, MixedNumber weighted) {
    return MixedNumber(1 + factor) * precision * recall / weighted;
  };
  MixedNumber sum = 0;
  MixedNumber precision_sum = 0;
  MixedNumber recall_sum = 0;
  double effective = 0;
  for (size_t n = 0; n < orders(); ++n) {
    const MixedNumber own = sums[3 * n];
    const MixedNumber other = sums[3 * n + 1];
    const MixedNumber matches = sums[3 * n + 2];
    const MixedNumber precision = own.value > 0 ? matches / own : kEps;
    const MixedNumber recall = other.value > 0 ? matches / other : kEps;
    const MixedNumber weighted = MixedNumber(factor) * precision + recall;
    sum = sum + (weighted.value > 0 ? f_score(precision, recall, weighted) : kEps);
    if (own.value > 0 && other.value > 0) {
      precision_sum = precision_sum + precision;
      recall_sum = recall_sum + recall;
      effective += 1;
    }
  }
  if (options_.eps_smoothing) return MixedNumber(100) * sum / static_cast<double>(orders());
  if (effective == 0) return 0;
  const MixedNumber precision = precision_sum / effective;
  const MixedNumber recall = recall_sum / effective;
  if ((precision + recall).value == 0) return 0;
  return MixedNumber(100) * f_score(precision, recall, MixedNumber(factor) * precision + recall);
}

std::unique_ptr<RowReader> Chrf::reader() const { return std::make_unique<ChrfReader>(options_, *this); }

}  // namespace headshare
