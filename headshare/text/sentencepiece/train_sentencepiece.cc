#include "headshare/text/sentencepiece/train_sentencepiece.h"

#include <sentencepiece_trainer.h>
#include <utf8proc.h>

#include <algorithm>
#include <exception>
#include <regex>

#include "headshare/base/error.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr size_t kLongestSentence = 4192;                  // bytes; the trainer's own limit
constexpr std::string_view kTrainersOwn = "\xE2\x96\x85";  // U+2585
constexpr const char* kWhere = "training 'sentencepiece'";

// Tells whether the trainer's normalisation keeps this character: it makes spaces, or nothing, of the others.
bool is_kept(int32_t point) {
  constexpr int32_t kReplacement = 0xFFFD;
  constexpr int32_t kMetaspacePoint = 0x2581;
  if (point == kReplacement || point == kMetaspacePoint) return false;
  const utf8proc_category_t category = utf8proc_category(point);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_SO);
}

bool has_kept(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    if (is_kept(next_code_point(text, &position))) return true;
  }
  return false;
}

// Gives the sentences of chunks of text. The library's code must not be left by an exception: it is kept, and ends the
// text.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const NextChunk& next_chunk) : next_chunk_(next_chunk) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return sentence_; }

  void Next() override {
    try {
      done_ = !find_next();
    } catch (...) {
      failure_ = std::current_exception();
      done_ = true;
    }
  }

  sentencepiece::util::Status status() const override {
    if (failure_ == nullptr && trainable_) return {};
    return {sentencepiece::util::StatusCode::kInvalidArgument, "no text"};
  }

  // Throws what ended the text early.
  void check() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    HS_CHECK(trainable_, kWhere, ": the text of ", bytes_,
             " bytes has no letter, digit or sign; give text to learn from");
  }

 private:
  bool find_next() {
    do {
      if (rest_.empty() && !read_chunk()) return false;
      take_sentence();
    } while (sentence_.empty() || sentence_.find(kTrainersOwn) != std::string::npos);
    trainable_ = trainable_ || has_kept(sentence_);
    return true;
  }

  bool read_chunk() {
    while (next_chunk_(&chunk_)) {
      check_utf8(chunk_, join_text(kWhere, ", after ", bytes_, " bytes"));
      bytes_ += chunk_.size();
      HS_CHECK(bytes_ <= INT32_MAX, kWhere, ": more than ", INT32_MAX,
               " bytes of text, which its trainer cannot number; train on a part of the text");
      rest_ = chunk_;
      if (!rest_.empty()) return true;
    }
    return false;
  }

  void take_sentence() {
    size_t end = std::min(rest_.find('\n'), rest_.size());
    size_t skipped = end < rest_.size() ? 1 : 0;
    if (end > kLongestSentence) {
      end = rest_.rfind(' ', kLongestSentence);
      skipped = 0;
      if (end == std::string_view::npos || end == 0) end = valid_utf8_prefix(rest_.substr(0, kLongestSentence));
    }
    sentence_ = rest_.substr(0, end);
    // Zero bytes end texts in some of the library's code.
    std::replace(sentence_.begin(), sentence_.end(), '\0', ' ');
    rest_.remove_prefix(end + skipped);
  }

  const NextChunk& next_chunk_;
  std::string chunk_;
  std::string_view rest_;  // of chunk_
  std::string sentence_;
  int64_t bytes_ = 0;
  bool trainable_ = false;
  bool done_ = false;
  std::exception_ptr failure_;
};

// Returns the library's complaint in our words where it is the usual one: the vocabulary has no room for the
// characters.
std::string failure_text(const std::string& message, const SentencePieceTraining& training) {
  static const std::regex few("smaller than required_chars. (\\d+) vs (\\d+)");
  std::smatch numbers;
  if (std::regex_search(message, numbers, few)) {
    return join_text("a vocabulary of ", numbers[1].str(), " pieces has no room for the ", numbers[2].str(),
                     " that control tokens and characters of the text need (--character-coverage ",
                     training.character_coverage, "); raise --vocabulary-size");
  }
  static const std::regex place(R"(\S+\.cc\(\d+\) \[[^\]]*\] ?)");  // of the library's own source
  const std::string said = std::regex_replace(message, place, "");
  return join_text(said.empty() ? "its trainer refuses these options" : said, "; the options are --vocabulary-size ",
                   training.vocabulary_size, " and --character-coverage ", training.character_coverage);
}

}  // namespace

std::string train_sentencepiece(const SentencePieceTraining& training, const NextChunk& next_chunk) {
  constexpr int64_t kControls = SentencePieceIds::kEnd + 1;
  HS_CHECK(training.vocabulary_size > kControls, kWhere, ": a vocabulary of ", training.vocabulary_size,
           " pieces has no room for more than the ", kControls,
           " control tokens <pad>, <unk>, <s> and </s>; raise --vocabulary-size");
  Sentences sentences(next_chunk);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", training.model == SentencePieceModel::kBpe ? "bpe" : "unigram"},
       {"vocab_size", std::to_string(training.vocabulary_size)},
       {"character_coverage", join_text(training.character_coverage)},
       {"pad_id", std::to_string(SentencePieceIds::kPadding)},
       {"unk_id", std::to_string(SentencePieceIds::kUnknown)},
       {"bos_id", std::to_string(SentencePieceIds::kBegin)},
       {"eos_id", std::to_string(SentencePieceIds::kEnd)},
       {"hard_vocab_limit", "false"},
       {"num_threads", "1"},
       {"minloglevel", "3"}},  // only headshare prints
      &sentences, &model);
  sentences.check();
  HS_CHECK(status.ok(), kWhere, ": ", failure_text(std::string(status.message()), training));
  return model;
}

}  // namespace headshare
