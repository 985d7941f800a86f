// One maker per scheme; `options` must be resolved. make_scheme (scheme.h) picks by name.
#pragma once

#include "headshare/attention/scheme.h"

namespace headshare {

std::shared_ptr<Scheme> make_mha(const AttentionOptions& options);
std::shared_ptr<Scheme> make_gqa(const AttentionOptions& options);
std::shared_ptr<Scheme> make_mqa(const AttentionOptions& options);
std::shared_ptr<Scheme> make_sha(const AttentionOptions& options);
std::shared_ptr<Scheme> make_skv(const AttentionOptions& options);
std::shared_ptr<Scheme> make_el_shared(const AttentionOptions& options);
std::shared_ptr<Scheme> make_el_lossless(const AttentionOptions& options);
std::shared_ptr<Scheme> make_mhe_add(const AttentionOptions& options);
std::shared_ptr<Scheme> make_mhe_mul(const AttentionOptions& options);
std::shared_ptr<Scheme> make_collaborative(const AttentionOptions& options);

}  // namespace headshare
