#include "headshare/text/hash/digest.h"
#include "headshare/text/hash/word_hasher.h"

namespace headshare {
namespace {

class MdHasher : public WordHasher {
 public:
  Signature signature(std::string_view word) const override { return digest(word); }
  int64_t bucket(std::string_view word) const override {
    return static_cast<int64_t>(remainder(digest(word), kHashBuckets));
  }
  std::string name() const override { return "md"; }
  nlohmann::json settings() const override { return nlohmann::json::object(); }
};

}  // namespace

std::shared_ptr<const WordHasher> make_md_hasher() { return std::make_shared<MdHasher>(); }

}  // namespace headshare
