// Formats as a seam: a toy format, in both directions, needs nothing but what ForeignFormat says.
#include "headshare/convert/formats.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"
#include "headshare/models/testing.h"
#include "headshare/text/simple/character_tokenizer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Decoders with characters for tokens: a file of options, one of characters, and one of tensors whose names are
// reversed.
std::string reversed(std::string name) {
  std::reverse(name.begin(), name.end());
  return name;
}

ForeignModel open_toy(const ForeignSource& source) {
  DecoderOptions options;
  Fields list = stored_fields(options);
  const fs::path file = source.path / "toy.json";
  from_json(list, read_json_input(file, 1 << 20), file.string());
  ForeignModel foreign{.options = resolve(options)};
  for (const auto& [name, tensor] : read_tensors(source.path / "toy.safetensors")) {
    foreign.tensors.push_back({name, "", reversed(name), [tensor = tensor] { return tensor; }});
  }
  foreign.tokenizers = [path = source.path / "characters.txt", model = foreign.options] {
    std::vector<int32_t> characters;
    for (const char one : read_file(path)) characters.push_back(one);
    return one_tokenizer(std::make_shared<CharacterTokenizer>(characters, CharacterTokenizer::Options{}, path.string()),
                         model, path.string());
  };
  return foreign;
}

void write_toy(const ModelToWrite& model, const std::string&, const fs::path& directory) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : model.tensors) {
    check_writable_values(model, name);
    tensors.emplace(reversed(name), tensor);
  }
  write_tensors(directory / "toy.safetensors", tensors);
  write_file(directory / "toy.json", stored_option_values(model.options).dump());
  const std::optional<Vocabulary> vocabulary = model.tokenizers.target->vocabulary();
  HS_CHECK(vocabulary, "the toy format has a character for each token");
  std::string characters;
  for (const VocabularyToken& token : vocabulary->tokens) characters += token.spelling;
  write_file(directory / "characters.txt", characters);
}

ForeignFormat toy_format() {
  return {
      .name = "toy",
      .help = "a directory with toy.json",
      .open = open_toy,
      .written = "decoders of characters",
      .output = {.files = {"toy.json", "toy.safetensors", "characters.txt"}, .check_is_one = [](const fs::path&) {}},
      .why_not_write = [](const ModelOptions& options, const std::string&) -> std::string {
        return options.kind().is_causal() ? "" : "the toy format holds decoders, not an " + options.kind().name();
      },
      .write = write_toy};
}

TEST(FormatsTest, AToyFormatGivesBackWhatItWasGiven) {
  const ForeignFormat toy = toy_format();
  const TemporaryDirectory folder;
  DecoderOptions options = small_options("gqa");
  options.vocabulary = 3;
  const Decoder model = small_decoder(options);
  const CharacterTokenizer characters({'a', 'b', 'c'}, {}, "test");
  save_model(folder.path() / "ours", model, &characters);

  ASSERT_EQ(toy.why_not_write(options_to_write(folder.path() / "ours", {}), ""), "");
  const ModelToWrite written = model_to_write(folder.path() / "ours", {});
  OutputDirectory(folder.path() / "theirs", Overwrite::kNo, toy.output, {}).write([&](const fs::path& to) {
    toy.write(written, "", to);
  });
  const ForeignModel foreign = toy.open(folder.path() / "theirs");
  EXPECT_EQ(stored_option_values(foreign.options), stored_option_values(model->options()));
  const NamedTensors back = model_tensors(*read_model(foreign).module);
  for (const auto& [name, tensor] : model_tensors(*model)) EXPECT_TRUE(at::equal(back.at(name), tensor)) << name;
  EXPECT_THAT(foreign.tokenizers().target->encode("cab"), ElementsAre(2, 0, 1));
  EXPECT_THAT(toy.why_not_write(resolve(small_encoder_options("mha")), ""), HasSubstr("not an encoder"));
}

TEST(FormatsTest, ADivergedModelIsNotWritten) {
  DecoderOptions options = small_options("mha");
  const Decoder model = small_decoder(options);
  const auto tokenizer =
      std::make_shared<CharacterTokenizer>(std::vector<int32_t>{'a'}, CharacterTokenizer::Options{}, "");
  ModelToWrite written{.options = model->options(),
                       .tensors = model_tensors(*model),
                       .tokenizers = {.source = tokenizer, .target = tokenizer}};
  written.tensors["norm.weight"] = at::full({16}, std::nanf(""));
  const TemporaryDirectory folder;
  EXPECT_THAT(error_message([&] { write_toy(written, "", folder.path()); }),
              HasSubstr("the decoder: tensor 'norm.weight' has 16 values of 16 that are not finite"));
}

TEST(FormatsTest, AreFoundByName) {
  EXPECT_THAT(formats_read(), ElementsAre("hf"));
  EXPECT_THAT(formats_written(), ElementsAre("hf", "gguf", "ctranslate2"));
  EXPECT_EQ(find_written_format("toy"), nullptr);
  EXPECT_THAT(error_message([] { find_format("fh"); }), HasSubstr("unknown format 'fh' (did you mean 'hf'?)"));
}

TEST(FormatsTest, WordsBelongToModelsThatHashThem) {
  const TemporaryDirectory folder;
  save_model(folder.path() / "ours", small_decoder(small_options("mha")), nullptr);
  EXPECT_THAT(error_message([&] { options_to_write(folder.path() / "ours", {"word"}); }),
              HasSubstr("has a vocabulary; --words is for encoders that hash words"));
}

}  // namespace
}  // namespace headshare
