#include "headshare/text/sentencepiece/model_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/text/unigram/charsmap.h"

namespace headshare {
namespace {

// These are the numbers of fields and types in sentencepiece_model.proto.
namespace model_field {
constexpr uint64_t kPiece = 1, kNormalizer = 3, kSelfTest = 4, kDenormalizer = 5;
}
namespace piece_field {
constexpr uint64_t kText = 1, kScore = 2, kType = 3;
}
constexpr uint64_t kCharsmapField = 2;
constexpr int32_t kUserDefined = 4;

constexpr size_t kMostPieces = size_t{1} << 20;
constexpr size_t kMostSettings = size_t{1} << 16;  // fields of a message that is no piece
constexpr size_t kLongestPiece = 1024;             // bytes
constexpr size_t kMostNested = 64;                 // user-defined pieces; the library's array has as many places

enum class WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint64_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;           // of numbers
  std::string_view bytes = {};  // of kBytes
  std::string_view whole = {};  // with its tag
};

// Reads the fields of a protocol buffer message, one after another.
class WireReader {
 public:
  WireReader(std::string_view message, const std::string& where) : rest_(message), where_(where) {}

  // Returns the next field; nothing at the end of the message.
  std::optional<WireField> next() {
    if (rest_.empty()) return std::nullopt;
    const std::string_view begin = rest_;
    const uint64_t tag = varint();
    WireField field{.number = tag >> 3, .type = static_cast<WireType>(tag & 7)};
    switch (field.type) {
      case WireType::kVarint:
        field.value = varint();
        break;
      case WireType::kFixed64:
        field.value = little_endian(8);
        break;
      case WireType::kFixed32:
        field.value = little_endian(4);
        break;
      case WireType::kBytes:
        field.bytes = take(varint());
        break;
      default:
        throw Error(join_text(where_, ": no SentencePiece model: a field of type ", tag & 7, "; it is damaged"));
    }
    field.whole = begin.substr(0, begin.size() - rest_.size());
    return field;
  }

 private:
  std::string_view take(uint64_t count) {
    HS_CHECK(count <= rest_.size(), where_, ": no SentencePiece model: a field of ", count, " bytes where ",
             rest_.size(), " are left; it is damaged or cut short");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  uint64_t little_endian(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (size_t i = count; i > 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes[i - 1]);
    return value;
  }

  uint64_t varint() {
    constexpr int kMostBits = 64;
    uint64_t value = 0;
    for (int shift = 0; shift < kMostBits; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw Error(where_ + ": no SentencePiece model: a number of more than 64 bits; it is damaged");
  }

  std::string_view rest_;
  const std::string& where_;
};

// Returns the piece's text where it is user-defined.
std::optional<std::string_view> check_piece(std::string_view message, size_t number, const std::string& where) {
  std::string_view text;
  int32_t type = 0;
  WireReader reader(message, where);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == piece_field::kText && field->type == WireType::kBytes) text = field->bytes;
    if (field->number == piece_field::kType && field->type == WireType::kVarint) {
      type = static_cast<int32_t>(field->value);
    }
    if (field->number == piece_field::kScore && field->type == WireType::kFixed32) {
      HS_CHECK(std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(field->value))), where, ": the score of piece ",
               number, " is no number; it is damaged");
    }
  }
  HS_CHECK(!text.empty() && text.size() <= kLongestPiece, where, ": piece ", number, " has ", text.size(),
           " bytes; 1 to ", kLongestPiece, " are read");
  HS_CHECK(text.find('\0') == std::string_view::npos, where, ": piece ", number, " has a zero byte; it is damaged");
  return type == kUserDefined ? std::optional(text) : std::nullopt;
}

void check_normalizer(std::string_view message, const std::string& where) {
  size_t settings = 0;
  WireReader reader(message, where);
  while (const std::optional<WireField> field = reader.next()) {
    HS_CHECK(++settings <= kMostSettings, where, ": more than ", kMostSettings, " settings of one kind; it is damaged");
    if (field->number != kCharsmapField || field->type != WireType::kBytes || field->bytes.empty()) continue;
    Charsmap(std::string(field->bytes), where + ": the character map").check_searches(where + ": the character map");
  }
}

void check_settings(std::string_view message, const std::string& where) {
  size_t settings = 0;
  WireReader reader(message, where);
  while (reader.next()) {
    HS_CHECK(++settings <= kMostSettings, where, ": more than ", kMostSettings, " settings of one kind; it is damaged");
  }
}

// `texts` are those of the user-defined pieces.
void check_nesting(std::vector<std::string_view> texts, const std::string& where) {
  std::sort(texts.begin(), texts.end());
  std::vector<std::string_view> beginnings;  // each begins with the one before it
  for (const std::string_view text : texts) {
    while (!beginnings.empty() && !text.starts_with(beginnings.back())) beginnings.pop_back();
    beginnings.push_back(text);
    HS_CHECK(beginnings.size() <= kMostNested, where, ": more than ", kMostNested,
             " user-defined pieces that begin with each other; SentencePiece has room for no more");
  }
}

}  // namespace

std::string checked_sentencepiece_model(std::string_view bytes, const std::string& where) {
  HS_CHECK(bytes.size() <= kLargestSentencePieceModel, where, ": a SentencePiece model of ", bytes.size(),
           " bytes; at most ", kLargestSentencePieceModel, " are read");
  std::string kept;
  std::vector<std::string_view> user_defined;
  size_t pieces = 0;
  size_t others = 0;
  WireReader reader(bytes, where);
  while (const std::optional<WireField> field = reader.next()) {
    const bool message = field->type == WireType::kBytes;
    if (message && field->number == model_field::kSelfTest) continue;
    kept += field->whole;
    if (message && field->number == model_field::kPiece) {
      HS_CHECK(++pieces <= kMostPieces, where, ": more than ", kMostPieces, " pieces; it is damaged");
      if (const auto text = check_piece(field->bytes, pieces - 1, where)) user_defined.push_back(*text);
      continue;
    }
    HS_CHECK(++others <= kMostSettings, where, ": more than ", kMostSettings, " parts; it is damaged");
    if (!message) continue;
    if (field->number == model_field::kNormalizer || field->number == model_field::kDenormalizer) {
      check_normalizer(field->bytes, where);
    } else {
      check_settings(field->bytes, where);
    }
  }
  HS_CHECK(pieces > 0, where, ": no SentencePiece model: it has no pieces; is this another kind of file?");
  check_nesting(std::move(user_defined), where);
  return kept;
}

}  // namespace headshare
