#include "headshare/data/text/word_section.h"

#include <cstring>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

constexpr int32_t kSpecials = HashTokenizer::kSpecials;
constexpr size_t kSignatureBytes = 2 * sizeof(uint64_t);

template <class Value>
void append(const Value& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Value>
Value read(const char* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::vector<int32_t> WordSection::to_file(std::span<const int32_t> ids) {
  std::vector<int32_t> result(ids.begin(), ids.end());
  in_file_.resize(static_cast<size_t>(words_.size()), -1);
  for (int32_t& id : result) {
    if (id < kSpecials) continue;
    const int32_t number = id - kSpecials;
    int32_t& place = in_file_.at(static_cast<size_t>(number));
    if (place < 0) {
      place = static_cast<int32_t>(order_.size());
      order_.push_back(number);
    }
    id = kSpecials + place;
  }
  return result;
}

std::string WordSection::bytes() const {
  std::string section;
  std::string lengths;
  std::string texts;
  const auto all = static_cast<int32_t>(words_.size());
  const std::vector<Signature> signatures = words_.signatures(0, all);
  for (const int32_t number : order_) {
    const Signature& one = signatures[static_cast<size_t>(number)];
    append(one.high, &section);
    append(one.low, &section);
    const std::string word = words_.word(number);
    append(static_cast<uint32_t>(word.size()), &lengths);
    texts += word;
  }
  section += lengths + texts;
  section.resize((section.size() + 7) / 8 * 8, '\0');
  return section;
}

std::vector<int32_t> add_section(std::span<const char> section, int64_t count, const std::string& where,
                                 WordTable* words) {
  const auto all = static_cast<size_t>(count);
  const size_t heads = kSignatureBytes + sizeof(uint32_t);
  HS_CHECK(count >= 0 && all <= section.size() / heads, where, ": it has no room for its ", count, " words");
  const char* lengths = section.data() + all * kSignatureBytes;
  size_t begin = all * heads;
  std::vector<int32_t> ids(kSpecials);
  std::iota(ids.begin(), ids.end(), 0);
  bool same = true;
  for (size_t i = 0; i < all; ++i) {
    const auto length = read<uint32_t>(lengths + i * sizeof(uint32_t));
    HS_CHECK(length <= section.size() - begin, where, ": its words are damaged");
    const char* signature = section.data() + i * kSignatureBytes;
    const int32_t number = words->add({section.data() + begin, length},
                                      {.high = read<uint64_t>(signature), .low = read<uint64_t>(signature + 8)});
    begin += length;
    ids.push_back(kSpecials + number);
    same = same && number == static_cast<int32_t>(i);
  }
  return same ? std::vector<int32_t>() : ids;
}

}  // namespace headshare
