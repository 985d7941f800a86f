#include "headshare/tasks/masked/window_rows.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/options/ignored_target.h"

namespace headshare {
int64_t WindowRows::needed(const Tokenizer& tokenizer, SpecialToken role, const std::string& use,
                           const std::string& path) {
  return require_special(tokenizer, role, path.empty() ? use : join_text(path, ": ", use));
}

bool WindowBatch::padded() const {
  return std::any_of(lengths.begin(), lengths.end(), [this](int64_t one) { return one < length; });
}

WindowRows::WindowRows(const Tokenizer& tokenizer, const std::string& use, const std::string& path)
    : classify_(needed(tokenizer, SpecialToken::kClassify, use, path)),
      separate_(needed(tokenizer, SpecialToken::kSeparate, use, path)),
      padding_(needed(tokenizer, SpecialToken::kPadding, use, path)) {
  for (const SpecialToken role : kRoles) {
    const std::optional<int32_t> id = tokenizer.special(role);
    if (!id) continue;
    const auto place = static_cast<size_t>(*id);
    special_.resize(std::max(special_.size(), place + 1), 0);
    special_[place] = 1;
  }
}

int64_t WindowRows::room(int64_t context) {
  HS_CHECK(context > 2, "--context ", context, " leaves no room for text between [CLS] and [SEP]; set at least 3");
  return context - 2;
}

void WindowRows::add_row(std::span<const int64_t> tokens, WindowBatch* batch) const {
  batch->ids.push_back(classify_);
  batch->ids.insert(batch->ids.end(), tokens.begin(), tokens.end());
  batch->ids.push_back(separate_);
  batch->lengths.push_back(static_cast<int64_t>(tokens.size()) + 2);
  ++batch->rows;
}

void WindowRows::pad(WindowBatch* batch) const {
  batch->length = *std::max_element(batch->lengths.begin(), batch->lengths.end());
  std::vector<int64_t> padded(static_cast<size_t>(batch->rows * batch->length), padding_);
  auto from = batch->ids.begin();
  for (int64_t row = 0; row < batch->rows; ++row) {
    const int64_t length = batch->lengths[static_cast<size_t>(row)];
    std::copy_n(from, length, padded.begin() + row * batch->length);
    from += length;
  }
  batch->ids = std::move(padded);
  batch->targets.assign(batch->ids.size(), kIgnoredTarget);
}

WindowBatch changed_windows(const Batch& text, const WindowRows& rows, uint64_t key, const ChangeRow& change) {
  WindowBatch batch;
  for (int64_t row = 0; row < text.rows; ++row) {
    rows.add_row({text.inputs.data() + row * text.length, static_cast<size_t>(text.length)}, &batch);
  }
  rows.pad(&batch);
  for (int64_t row = 0; row < text.rows; ++row) {
    Philox random(stream_key(key, static_cast<uint64_t>(row)));
    change(row, random, &batch);
  }
  return batch;
}

void check_askable(const TokenData& tokens, const WindowRows& rows, const std::string& what) {
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (rows.ordinary(tokens[i])) return;
  }
  throw Error(join_text("the ", what, " holds no token that could be asked for: all its words are unknown to the ",
                        "tokenizer; use a tokenizer of such text, with blanks between words (a word of more than 100 ",
                        "characters is unknown)"));
}

DisjointWindows::DisjointWindows(TokenData tokens, const WindowRows& rows, int64_t context, std::optional<int64_t> most)
    : tokens_(std::move(tokens)),
      rows_(rows),
      size_(std::min(tokens_.size(), most.value_or(tokens_.size()))),
      room_(WindowRows::room(context)),
      windows_((size_ + room_ - 1) / room_) {
  HS_CHECK(windows_ > 0, "there are no tokens to ask for");
}

WindowBatch DisjointWindows::rows(int64_t first, int64_t count) const {
  WindowBatch batch;
  std::vector<int64_t> tokens;
  for (int64_t window = first; window < first + count; ++window) {
    const int64_t begin = window * room_;
    tokens.resize(static_cast<size_t>(std::min(room_, size_ - begin)));
    tokens_.copy(begin, static_cast<int64_t>(tokens.size()), tokens.data());
    rows_.add_row(tokens, &batch);
  }
  return batch;
}

}  // namespace headshare
