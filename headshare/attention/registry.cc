#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {

std::shared_ptr<Scheme> make_scheme(const AttentionOptions& resolved) {
  HS_CHECK(resolved.scale && resolved.head_width && resolved.groups && resolved.key_width,
           "attention options must be resolved before a scheme is made");
  switch (resolved.scheme) {
    case SchemeKind::kMha:
      return make_mha(resolved);
    case SchemeKind::kGqa:
      return make_gqa(resolved);
    case SchemeKind::kMqa:
      return make_mqa(resolved);
    case SchemeKind::kSha:
      return make_sha(resolved);
    case SchemeKind::kSkv:
      return make_skv(resolved);
    case SchemeKind::kElShared:
      return make_el_shared(resolved);
    case SchemeKind::kElLossless:
      return make_el_lossless(resolved);
    case SchemeKind::kMheAdd:
      return make_mhe_add(resolved);
    case SchemeKind::kMheMul:
      return make_mhe_mul(resolved);
    case SchemeKind::kCollaborative:
      return make_collaborative(resolved);
  }
  throw Error("unknown attention scheme");
}

}  // namespace headshare
