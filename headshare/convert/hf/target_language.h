// mBART begins every target with the token of its language. Which one that is depends on the files: mBART of 25
// languages names it as decoder_start_token_id, mBART-50 as forced_bos_token_id behind </s>, and a tokenizer as
// tgt_lang.
#pragma once

#include "headshare/convert/hf/directory.h"

namespace headshare {

// Sets the mark that names the language where only tokenizer_config.json does (tgt_lang, with the token's id from
// tokenizer.json), and adds a note of it. Throws Error, naming the way out, where no file names a language: such a
// model would write in any. A model whose tokenizer is of another class than mBART's has no languages (BARThez).
void take_target_language(const HfDirectory& directory, ForeignModel* foreign);

}  // namespace headshare
