// The tokenizer_config.json of a folder that transformers wrote: the one reader of that file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace headshare {

class HfTokenizerConfig {
 public:
  static constexpr const char* kFile = "tokenizer_config.json";

  // Reads the file, which is untrusted. Throws Error, naming it, for one that holds no JSON object. A folder without
  // the file has the values of an empty object. The functions below throw Error, naming the file and the key, for a
  // value of another type.
  explicit HfTokenizerConfig(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path file() const { return folder_ / kFile; }
  bool is_there() const { return !content_.is_null(); }

  // "BertTokenizer", or "" where the file names no class.
  std::string tokenizer_class() const { return text("tokenizer_class"); }
  // "en_XX": the languages of sources and of targets; "" where the file names none.
  std::string source_language() const { return text("src_lang"); }
  std::string target_language() const { return text("tgt_lang"); }
  // Tells whether a space stands before every text.
  bool adds_prefix_space() const { return flag("add_prefix_space"); }

  // The whole file, in its order, which numbers special tokens; null where there is none.
  const nlohmann::ordered_json& content() const { return content_; }

 private:
  // The value of a key, or null where it is absent.
  nlohmann::json value(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key) const;

  std::filesystem::path folder_;
  nlohmann::ordered_json content_;
};

// A JSON object in a file of such a folder, in its order; null where there is no such file. Throws Error, naming the
// file, for anything else.
nlohmann::ordered_json object_in_folder(const std::filesystem::path& file);

}  // namespace headshare
