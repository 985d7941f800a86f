#include "headshare/tasks/text_options.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {

Fields data_fields(TextOptions& o) {
  Fields list = fields(o.data);
  append(&list, fields(o.tokenizer));
  list.push_back(
      naming_path(field("tokenizer-path", &o.tokenizer_path,
                        "use this tokenizer (tokenizer.json, vocab.txt, a SentencePiece .model, or a directory with "
                        "vocab.json and merges.txt)",
                        {.aliases = {"tokenizer-name"}})));
  return list;
}

Fields window_fields(TextOptions& o) {
  return {
      batch_order_field(&o.batch_order),
      field("stride", &o.stride, "tokens between evaluation windows; auto: the context (disjoint windows)", {.min = 1}),
      field("evaluation-tokens", &o.evaluation_tokens,
            "evaluate on the first so many tokens of each part, the test part included; auto: all", {.min = 2})};
}

Fields fields(TextOptions& o) {
  Fields list = data_fields(o);
  append(&list, window_fields(o));
  append(&list, fields(o.distillation));
  return list;
}

int64_t model_vocabulary(const TextOptions& options, const Tokenizer& tokenizer) {
  if (tokenizer.words() != nullptr) return HashTokenizer::kSpecials;
  const int64_t tokens = tokenizer.vocabulary_size();
  const int64_t least =
      options.distillation.given() ? std::max(tokens, teacher_vocabulary(options.distillation)) : tokens;
  const int64_t vocabulary = options.vocabulary.value_or(least);
  HS_CHECK(tokens <= vocabulary, "the tokenizer has ", tokens, " tokens and the model room for ", vocabulary,
           "; leave --model-vocabulary out, or make it at least ", tokens);
  return vocabulary;
}

int64_t likely_vocabulary(const TextOptions& options) {
  if (options.vocabulary) return *options.vocabulary;
  if (options.distillation.given()) return teacher_vocabulary(options.distillation);
  if (options.tokenizer.kind == TokenizerKind::kBytes) return 256;
  if (!has_vocabulary(options.tokenizer.kind)) {
    return HashTokenizer::kSpecials;
  }
  return options.tokenizer.vocabulary_size.value_or(8192);
}

}  // namespace headshare
