#include "headshare/torch_library/tokenizer_object.h"

#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/torch_library/classes.h"

namespace headshare {

namespace {

// Returns `bytes` with U+FFFD for each byte that is no valid UTF-8: part of a character, where tokens are decoded one
// by one. Python's strings hold nothing else.
std::string with_replacements(std::string_view bytes) {
  std::string text;
  while (true) {
    const size_t valid = valid_utf8_prefix(bytes);
    text += bytes.substr(0, valid);
    if (valid == bytes.size()) return text;
    text += "\xEF\xBF\xBD";
    bytes.remove_prefix(valid + 1);
  }
}

}  // namespace

c10::intrusive_ptr<TokenizerObject> TokenizerObject::read(const std::string& path) {
  return c10::make_intrusive<TokenizerObject>(load_tokenizer(path));
}

c10::intrusive_ptr<TokenizerObject> TokenizerObject::from_json(const std::string& text) {
  return c10::make_intrusive<TokenizerObject>(tokenizer_from_json(nlohmann::json::parse(text), "the tokenizer"));
}

std::vector<int64_t> TokenizerObject::encode(const std::string& text, bool special) const {
  const std::vector<int32_t> ids = special ? tokenizer_->encode_with_special(text) : tokenizer_->encode(text);
  return {ids.begin(), ids.end()};
}

std::string TokenizerObject::decode(const std::vector<int64_t>& ids) const {
  std::vector<int32_t> narrow;
  for (const int64_t id : ids) {
    HS_CHECK(id >= std::numeric_limits<int32_t>::min() && id <= std::numeric_limits<int32_t>::max(), "the id ", id,
             " is outside the vocabulary of ", size());
    narrow.push_back(static_cast<int32_t>(id));
  }
  return with_replacements(tokenizer_->decode(narrow));
}

std::optional<int64_t> TokenizerObject::special(const std::string& role) const {
  std::vector<std::string> known;
  for (const SpecialToken one : kRoles) {
    if (role_name(one) == role) return tokenizer_->special(one);
    known.emplace_back(role_name(one));
  }
  throw Error(join_text("no special token has the role '", role, "'; the roles are ", c10::Join(", ", known)));
}

void register_tokenizer(torch::Library* library) {
  library->class_<TokenizerObject>("Tokenizer")
      .def_static("read", &TokenizerObject::read)
      .def_static("from_json", &TokenizerObject::from_json)
      .def("kind", &TokenizerObject::kind)
      .def("size", &TokenizerObject::size)
      .def("encode", &TokenizerObject::encode)
      .def("decode", &TokenizerObject::decode)
      .def("special", &TokenizerObject::special)
      .def("to_json", &TokenizerObject::to_json)
      .def_pickle([](const c10::intrusive_ptr<TokenizerObject>& one) { return one->to_json(); },
                  [](std::string text) { return TokenizerObject::from_json(text); });
}

}  // namespace headshare
