#include "headshare/data/text/splits.h"

#include <gmock/gmock.h>

#include <fstream>

#include "headshare/data/test_support.h"
#include "headshare/data/text/fake_tokenizer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

class SplitsTest : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    options_.cache_directory = (directory_ / "cache").string();
  }

  std::string file(const std::string& name, size_t bytes) {
    std::ofstream(directory_ / name) << std::string(bytes, 'x');
    return (directory_ / name).string();
  }

  DataOptions options_;
  FakeTokenizer tokenizer_;  // one token per byte
};

TEST_F(SplitsTest, FractionsCutTrainingThenValidationThenTest) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 105; ++i) ids.push_back(2 * i);
  const TextSplits splits = split_tokens(TokenData::from_memory(ids, 105), 0.1, 0.2, tokenizer_);
  EXPECT_EQ(splits.train.size(), 73);  // floor(73.5)
  EXPECT_EQ(splits.validation.size(), 11);
  EXPECT_EQ(splits.test.size(), 21);
  EXPECT_EQ(splits.validation[0], 2 * 73);
  EXPECT_EQ(splits.test[0], 2 * 84);
  EXPECT_EQ(splits.train.text_bytes() + splits.validation.text_bytes() + splits.test.text_bytes(), 105u);
  EXPECT_EQ(splits.test.text_bytes(), 21u);
}

TEST_F(SplitsTest, CutsTinyShakespeareWhereNanoGptDoes) {
  const TokenData tokens = TokenData::from_memory(std::vector<int32_t>(1'115'394), 1'115'394);
  const TextSplits splits = split_tokens(tokens, 0.1, 0, tokenizer_);
  EXPECT_EQ(splits.train.size(), 1'003'854);
  EXPECT_EQ(splits.validation.size(), 111'540);
  EXPECT_TRUE(splits.test.empty());
}

TEST_F(SplitsTest, FilesReplaceFractions) {
  options_.text = {file("train.txt", 1000)};
  EXPECT_EQ(open_splits(options_, tokenizer_).validation.size(), 100);
  options_.validation_text = {file("valid.txt", 30)};
  options_.test_fraction = 0.5;
  TextSplits splits = open_splits(options_, tokenizer_);
  EXPECT_EQ(splits.train.size(), 500);
  EXPECT_EQ(splits.validation.size(), 30);
  EXPECT_EQ(splits.test.size(), 500);
  options_.test_text = {file("test.txt", 20)};
  splits = open_splits(options_, tokenizer_);
  EXPECT_EQ(splits.train.size(), 1000);
  EXPECT_EQ(splits.test.size(), 20);
  options_.text.clear();
  EXPECT_TRUE(open_splits(options_, tokenizer_).train.empty());
}

TEST_F(SplitsTest, MistakesAreNamed) {
  EXPECT_THAT(error_message([&] { open_splits(options_, tokenizer_); }), HasSubstr("--text"));
  options_.text = {file("train.txt", 100)};
  options_.validation_fraction = 0.6;
  options_.test_fraction = 0.4;
  EXPECT_THAT(error_message([&] { open_splits(options_, tokenizer_); }), HasSubstr("their sum must be below 1"));
  options_.test_text = {(directory_ / "." / "train.txt").string()};
  EXPECT_THAT(error_message([&] { open_splits(options_, tokenizer_); }), HasSubstr("in both --text and --test-text"));
  const TokenData tokens = TokenData::from_memory({1, 2, 3}, 3);
  EXPECT_EQ(error_message([&] { check_long_enough(tokens, 2, "validation"); }), "no error");
  EXPECT_THAT(error_message([&] { check_long_enough(tokens, 3, "validation"); }),
              HasSubstr("the validation text has 3 tokens, but one window of --context 3 needs 4"));
}

TEST_F(SplitsTest, FieldsKnowOtherToolsNames) {
  Fields all = fields(options_);
  set_field(all, "train_file", "a.txt,b.txt", "test");
  set_field(all, "validation_file", "c.txt", "test");
  set_field(all, "invalid-utf8", "replace", "test");
  EXPECT_EQ(options_.text, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(options_.validation_text, std::vector<std::string>{"c.txt"});
  EXPECT_EQ(options_.invalid_utf8, InvalidUtf8::kReplace);
  EXPECT_THAT(error_message([&] { set_field(all, "validation-fraction", "1.5", "test"); }), HasSubstr("0..0.9"));
}

}  // namespace
}  // namespace headshare
