#include "headshare/convert/foreign/both_sides.h"

#include "headshare/base/error.h"
#include "headshare/base/files/damaged_file.h"
#include "headshare/base/notice.h"
#include "headshare/text/text_borders.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {

std::unique_ptr<Tokenizer> load_foreign_tokenizer(const fs::path& path) {
  try {
    return load_tokenizer(path);
  } catch (const Error& error) {
    throw DamagedFile(join_text(error.what(),
                                ". The model can be converted with another tokenizer (--tokenizer PATH), or without "
                                "one once the files of this one are moved elsewhere"));
  }
}

TokenizerPair both_sides(const std::shared_ptr<Tokenizer>& one, const ModelOptions& model, const std::string& where) {
  const TokenizerPair same = {.source = one, .target = one};
  if (one == nullptr) return same;
  const std::optional<int32_t> language = language_of(*one);
  const auto* translator = model.find<EncoderDecoderOptions>();
  if (translator == nullptr) {
    HS_CHECK(!language, where, " puts the token of a language, ", one->spelling(*language),
             ", beside every text, and the model has no languages: it is not this model's tokenizer");
    return same;
  }
  HS_CHECK(has_text_borders(*one), where, " (", one->kind(), ", ", one->vocabulary_size(),
           " tokens) has no tokens that stand around a text (</s>, <s> and </s>, or [CLS] and [SEP]), and the model "
           "neither reads nor writes texts without; give another tokenizer with --tokenizer PATH");
  if (!language) return same;
  notice(join_text(where, ": sources are in ", one->spelling(*language),
                   "; for another language set src_lang in the tokenizer_config.json beside it"));
  const std::optional<int64_t>& forced = translator->marks.forced_first;
  if (!forced || text_borders(*one, where).before.empty()) return same;
  const std::string written = one->spelling(static_cast<int32_t>(*forced));
  return {.source = one, .target = in_language(*one, written, where + ": forced_bos_token_id")};
}

}  // namespace headshare
