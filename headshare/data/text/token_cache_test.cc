#include "headshare/data/text/token_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "headshare/base/notice.h"
#include "headshare/base/rng.h"
#include "headshare/data/test_support.h"
#include "headshare/data/text/fake_tokenizer.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/hash/word_table.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TokenCacheTest : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    options_.cache_directory = (directory_ / "cache").string();
    before_ = set_notice_handler([this](const std::string& text) { notices_.push_back(text); });
  }
  void TearDown() override {
    set_notice_handler(before_);
    DirectoryTest::TearDown();
  }

  std::string file(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
    return (directory_ / name).string();
  }

  std::vector<fs::path> cached() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(options_.cache_directory)) paths.push_back(entry.path());
    return paths;
  }

  DataOptions options_;
  FakeTokenizer tokenizer_;
  std::vector<std::string> notices_;
  NoticeHandler before_;
};

std::vector<int32_t> ids(const TokenData& tokens) {
  std::vector<int32_t> all(static_cast<size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), all.data());
  return all;
}

std::string random_text(size_t bytes, uint64_t seed) {
  Philox random(seed);
  const std::string letters = "abcdefgh  \n\n";
  std::string text;
  while (text.size() < bytes) text += letters[random.below(letters.size())];
  return text;
}

TEST_F(TokenCacheTest, GivesTheTokensOfTheWholeText) {
  const std::string text = random_text(3'500'000, 1);
  const TokenData tokens = open_tokens({file("x.txt", text)}, options_, tokenizer_);
  EXPECT_GT(tokenizer_.encodings, 3);
  EXPECT_TRUE(ids(tokens) == tokenizer_.encode(text));
  EXPECT_EQ(tokens.text_bytes(), text.size());
  EXPECT_EQ(tokens.documents(), 1);
  EXPECT_EQ(fs::file_size(cached().at(0)) / 1'000'000, 7u);  // 16-bit ids
}

TEST_F(TokenCacheTest, EveryTokenizerGivesTheTokensOfTheWholeText) {
  std::string text;
  for (uint64_t i = 0; text.size() < 2'500'000; ++i) {
    text += join_text("It's größe ", i % 1000, i % 3 == 0 ? " \n\n  " : i % 5 == 0 ? "\r\n" : " ");
  }
  const std::string path = file("x.txt", text);
  for (const TokenizerKind kind :
       {TokenizerKind::kBytes, TokenizerKind::kCharacters, TokenizerKind::kWords, TokenizerKind::kBpe}) {
    bool given = false;
    const auto once = [&](std::string* chunk) { return *chunk = text.substr(0, 100'000), !std::exchange(given, true); };
    const std::unique_ptr<Tokenizer> tokenizer = train_tokenizer({.kind = kind}, once);
    const TokenData tokens = open_tokens({path}, options_, *tokenizer);
    EXPECT_TRUE(ids(tokens) == tokenizer->encode(text)) << tokenizer->kind();
    if (kind == TokenizerKind::kWords) continue;
    const int64_t at = tokens.size() / 3;
    std::vector<int32_t> first(static_cast<size_t>(at));
    tokens.copy(0, at, first.data());
    EXPECT_EQ(tokens.view(0, at, *tokenizer).text_bytes(), tokenizer->decode(first).size()) << tokenizer->kind();
  }
}

// Byte tokenizers keep bytes that are no UTF-8, and a mark only where every byte was asked for. A text that was
// tokenised before has the note, too.
TEST_F(TokenCacheTest, AByteOrderMarkIsNoText) {
  const auto tokenizer = train_tokenizer({.kind = TokenizerKind::kBytes}, [](std::string*) { return false; });
  const std::string text = "one \xFF", marked = "\xEF\xBB\xBF" + text;
  EXPECT_EQ(ids(open_tokens({file("a.txt", marked)}, options_, *tokenizer)), tokenizer->encode(text));
  ASSERT_EQ(cached().size(), 1U);
  EXPECT_EQ(ids(open_tokens({file("b.txt", marked)}, options_, *tokenizer)), tokenizer->encode(text));
  EXPECT_EQ(cached().size(), 1U);
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("a.txt begins with a byte order mark"),
                                    HasSubstr("b.txt begins with a byte order mark")));
  options_.invalid_utf8 = InvalidUtf8::kKeep;
  EXPECT_EQ(ids(open_tokens({file("c.txt", marked)}, options_, *tokenizer)), tokenizer->encode(marked));
  EXPECT_EQ(notices_.size(), 2U);
}

TEST_F(TokenCacheTest, LargeVocabulariesTake32Bits) {
  FakeTokenizer large(65537);
  const std::string path = file("x.txt", "one two");
  EXPECT_EQ(ids(open_tokens({path}, options_, large)), large.encode("one two"));
  EXPECT_EQ(ids(open_tokens({path}, options_, large)), large.encode("one two"));
  FakeTokenizer small(100);
  EXPECT_THAT(error_message([&] { open_tokens({path}, options_, small); }), HasSubstr("outside its vocabulary of 100"));
}

// A tokenizer that has seen other words before gives other ids for the same words; the file is the same.
TEST_F(TokenCacheTest, WordsWithoutAVocabularyAreKeptBesideTheTokens) {
  const auto fresh = [] {
    return train_tokenizer({.kind = TokenizerKind::kHashMd}, [](std::string*) { return false; });
  };
  const std::string path = file("x.txt", "the cat saw the caf\xc3\xa9 . the end");
  const auto first = fresh();
  const TokenData written = open_tokens({path}, options_, *first);
  EXPECT_THAT(ids(written), ElementsAre(5, 6, 7, 5, 8, 9, 5, 10));
  const auto second = fresh();
  second->encode("end of the story");
  const TokenData read = open_tokens({path}, options_, *second);
  EXPECT_EQ(second->decode(ids(read)), first->decode(ids(written)));
  EXPECT_THAT(ids(read).front(), 7);
  EXPECT_EQ(read.fingerprint(), written.fingerprint());
  EXPECT_EQ(read.view(0, 2, *second).size(), 2);
  EXPECT_EQ(cached().size(), 1U);
  EXPECT_EQ(second->words()->signatures(0, 7).at(2), first->words()->signatures(0, 6).at(0));
  EXPECT_TRUE(notices_.empty());
}

TEST_F(TokenCacheTest, DamagedWordsAreBuiltAgain) {
  const auto tokenizer = train_tokenizer({.kind = TokenizerKind::kHashMd}, [](std::string*) { return false; });
  const std::string path = file("x.txt", "one two three");
  const std::vector<int32_t> wanted = ids(open_tokens({path}, options_, *tokenizer));
  std::string content = read_file(cached().at(0));
  const size_t at = content.find("onetwothree");
  ASSERT_NE(at, std::string::npos);
  content[at] = 'x';
  write_file(cached().at(0), content);
  EXPECT_EQ(ids(open_tokens({path}, options_, *tokenizer)), wanted);
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("damaged")));
}

TEST_F(TokenCacheTest, DocumentsAreSeparatedOnRequest) {
  const std::vector<std::string> inputs = {file("a.txt", "a"), file("b.jsonl", "{\"text\":\"b\"}\n{\"text\":\"c\"}\n")};
  const TokenData tokens = open_tokens(inputs, options_, tokenizer_);
  EXPECT_THAT(ids(tokens), ElementsAre(2 * 'a', 512, 2 * 'b', 512, 2 * 'c'));
  EXPECT_EQ(tokens.text_bytes(), 3u);
  EXPECT_EQ(tokens.documents(), 3);
  EXPECT_EQ(tokens.view(1, 4, tokenizer_).text_bytes(), 1u);
  options_.separate_documents = false;
  EXPECT_THAT(ids(open_tokens(inputs, options_, tokenizer_)), ElementsAre(2 * 'a', 2 * 'b', 2 * 'c'));
}

// WordPiece has no end of text.
TEST_F(TokenCacheTest, ElseTheSeparatorSeparatesDocuments) {
  bool given = false;
  const auto once = [&](std::string* chunk) { return *chunk = "a b a b", !std::exchange(given, true); };
  const auto tokenizer =
      train_tokenizer({.kind = TokenizerKind::kWordPiece, .vocabulary_size = 20, .min_count = 1}, once);
  const int32_t a = tokenizer->encode("a").at(0), b = tokenizer->encode("b").at(0);
  const int32_t separator = tokenizer->special(SpecialToken::kSeparate).value();
  ASSERT_FALSE(tokenizer->special(SpecialToken::kEndOfText));
  const std::vector<std::string> inputs = {file("a.txt", "a"), file("b.txt", "b")};
  EXPECT_THAT(ids(open_tokens(inputs, options_, *tokenizer)), ElementsAre(a, separator, b));
}

// Llama's decoders were trained on documents that begin with <s>.
TEST_F(TokenCacheTest, ATokenBeginsEveryDocument) {
  BpeDefinition definition;
  for (int byte = 0; byte < 256; ++byte) definition.tokens.emplace_back(1, static_cast<char>(byte));
  definition.tokens.insert(definition.tokens.end(), {"<s>", "</s>"});
  definition.special = {256, 257};
  definition.begin_of_text = 256;
  definition.end_of_text = 257;
  const BpeTokenizer tokenizer(definition);
  const std::vector<std::string> inputs = {file("a.txt", "a"), file("b.txt", "bc")};
  for (int time = 0; time < 2; ++time) {
    const TokenData tokens = open_tokens(inputs, options_, tokenizer);
    EXPECT_THAT(ids(tokens), ElementsAre(256, 'a', 257, 256, 'b', 'c'));
    EXPECT_EQ(tokens.text_bytes(), 3u);
    EXPECT_EQ(tokens.view(2, 5, tokenizer).text_bytes(), 1u);
  }
  options_.separate_documents = false;
  EXPECT_THAT(ids(open_tokens(inputs, options_, tokenizer)), ElementsAre('a', 'b', 'c'));
}

TEST_F(TokenCacheTest, TheSecondTimeNothingIsTokenised) {
  const TokenData first = open_tokens({file("x.txt", "some text")}, options_, tokenizer_);
  const int64_t encodings = tokenizer_.encodings;
  fs::rename(directory_ / "x.txt", directory_ / "moved.txt");
  const std::string moved = (directory_ / "moved.txt").string();
  const TokenData second = open_tokens({moved}, options_, tokenizer_);
  EXPECT_EQ(tokenizer_.encodings, encodings);
  EXPECT_EQ(ids(second), ids(first));
  EXPECT_EQ(second.fingerprint(), first.fingerprint());
  EXPECT_EQ(second.text_bytes(), 9u);

  // A change that changes the tokens makes a new file.
  file("moved.txt", "some texts");
  EXPECT_EQ(open_tokens({moved}, options_, tokenizer_).text_bytes(), 10u);
  EXPECT_EQ(cached().size(), 2u);
  open_tokens({moved}, options_, FakeTokenizer(600));
  EXPECT_EQ(cached().size(), 3u);
  options_.invalid_utf8 = InvalidUtf8::kReplace;
  open_tokens({moved}, options_, tokenizer_);
  EXPECT_EQ(cached().size(), 4u);
  // The same bytes in two files are two documents.
  EXPECT_EQ(open_tokens({file("1.txt", "some "), file("2.txt", "texts")}, options_, tokenizer_).documents(), 2);
  EXPECT_THAT(notices_, ElementsAre());
}

TEST_F(TokenCacheTest, EveryDamageIsNoticedAndRepaired) {
  const std::string path = file("x.txt", "some text to be kept");  // 20 tokens of 2 bytes: no padding
  const std::vector<int32_t> wanted = ids(open_tokens({path}, options_, tokenizer_));
  const fs::path cache = cached().at(0);
  const std::string whole = read_file(cache);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    if (at % 3 == 0) damaged.resize(at);
    fs::remove(cache);
    std::ofstream(cache, std::ios::binary) << damaged;
    notices_.clear();
    ASSERT_EQ(ids(open_tokens({path}, options_, tokenizer_)), wanted) << at;
    ASSERT_THAT(notices_, ElementsAre(HasSubstr("it is built again"))) << at;
  }
}

TEST_F(TokenCacheTest, AFullDiskLeavesNothing) {
  const std::string path = file("x.txt", random_text(100'000, 2));
  const FileSizeLimit limit(50'000);
  EXPECT_THAT(error_message([&] { open_tokens({path}, options_, tokenizer_); }), HasSubstr("after 50000 bytes"));
  EXPECT_THAT(cached(), ElementsAre());
}

TEST_F(TokenCacheTest, StoppingLeavesNothing) {
  const std::string path = file("x.txt", random_text(3'000'000, 3));
  std::vector<std::string> stages;
  const auto stop = [&](const DataProgress& progress) {
    EXPECT_EQ(progress.total, 3'000'000u);
    EXPECT_LE(progress.done, 3'000'000u);
    stages.emplace_back(progress.stage);
    if (progress.stage == "tokenising" && progress.done > 2'000'000) throw Interrupted("stopped");
  };
  EXPECT_THROW(open_tokens({path}, options_, tokenizer_, stop), Interrupted);
  EXPECT_EQ(stages.front(), "reading");
  EXPECT_EQ(stages.back(), "tokenising");
  EXPECT_THAT(cached(), ElementsAre());
}

TEST_F(TokenCacheTest, AChangingTextIsRefused) {
  const std::string path = file("x.txt", random_text(100'000, 4));
  const auto change = [&](const DataProgress& progress) {
    if (progress.stage == "tokenising") std::ofstream(path, std::ios::app) << "more";
  };
  EXPECT_THAT(error_message([&] { open_tokens({path}, options_, tokenizer_, change); }), HasSubstr("changed while"));
  EXPECT_THAT(cached(), ElementsAre());
}

TEST_F(TokenCacheTest, ParallelWritersAgree) {
  const std::string text = random_text(500'000, 5);
  const std::string path = file("x.txt", text);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const FakeTokenizer own;
      ::_exit(ids(open_tokens({path}, options_, own)) == own.encode(text) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  fs::remove_all(options_.cache_directory);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const FakeTokenizer own;
      EXPECT_TRUE(ids(open_tokens({path}, options_, own)) == own.encode(text));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cached().size(), 1u);
}

TEST_F(TokenCacheTest, StandardInputIsNotKept) {
  const std::string path = file("x.txt", "from a pipe");
  const int saved = ::dup(STDIN_FILENO);
  const int input = ::open(path.c_str(), O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  const TokenData tokens = open_tokens({"-"}, options_, tokenizer_);
  ::dup2(saved, STDIN_FILENO);
  ::close(input);
  ::close(saved);
  EXPECT_EQ(ids(tokens), tokenizer_.encode("from a pipe"));
  EXPECT_THAT(cached(), ElementsAre());
}

TEST_F(TokenCacheTest, ByteTokenizersTakeAnyBytes) {
  const FakeByteTokenizer bytes;
  const std::string content("\xEF\xBB\xBF\xFF\0x", 6);
  const std::string path = file("x.bin", content);
  const TokenData tokens = open_tokens({path}, options_, bytes);
  EXPECT_EQ(bytes.decode(ids(tokens)), content.substr(3));  // but a byte order mark, which is no text
  EXPECT_THAT(error_message([&] { open_tokens({path}, options_, tokenizer_); }), HasSubstr("NUL"));
  options_.invalid_utf8 = InvalidUtf8::kRefuse;  // an explicit wish counts
  EXPECT_THAT(error_message([&] { open_tokens({path}, options_, bytes); }), HasSubstr("not UTF-8"));
}

TEST_F(TokenCacheTest, BytesOfViewsAreExact) {
  std::string text;
  for (int i = 0; text.size() < 2'500'000; ++i) text += i % 11 == 0 ? "größe \n" : "word and ";
  const TokenData tokens = open_tokens({file("x.txt", text)}, options_, tokenizer_);
  ASSERT_EQ(tokens.size(), static_cast<int64_t>(text.size()));  // one id per byte
  for (const int64_t at : {int64_t{0}, int64_t{1}, int64_t{70'001}, int64_t{1'048'576}, tokens.size() - 1}) {
    const TokenData before = tokens.view(0, at, tokenizer_);
    const TokenData after = tokens.view(at, tokens.size(), tokenizer_);
    EXPECT_EQ(before.text_bytes(), static_cast<uint64_t>(at));
    EXPECT_EQ(after.text_bytes(), text.size() - static_cast<uint64_t>(at));
    EXPECT_EQ(after[0], tokens[at]);
  }
  EXPECT_EQ(tokens.view(70'001, tokens.size(), tokenizer_).view(5, 10, tokenizer_).text_bytes(), 5u);
  EXPECT_EQ(tokens.view(3, 3, tokenizer_).text_bytes(), 0u);
  EXPECT_THAT(error_message([&] { tokens.view(0, tokens.size() + 1, tokenizer_); }), HasSubstr("but there are"));
  std::vector<int64_t> out(4);
  EXPECT_THAT(error_message([&] { tokens.copy(tokens.size() - 3, 4, out.data()); }), HasSubstr("but there are"));
}

TEST_F(TokenCacheTest, BytesOfLossyViewsAreShared) {
  const LossyTokenizer lossy;
  const TokenData tokens = open_tokens({file("x.txt", std::string(1000, 'x'))}, options_, lossy);
  ASSERT_EQ(tokens.size(), 100);
  EXPECT_EQ(tokens.view(0, 25, lossy).text_bytes(), 250u);
  EXPECT_EQ(tokens.view(25, 100, lossy).text_bytes(), 750u);
}

TEST_F(TokenCacheTest, MemoryTokensBehaveAlike) {
  const TokenData tokens = TokenData::from_memory({1, 2, 3, 4}, 4);
  EXPECT_EQ(tokens.view(1, 3, tokenizer_)[0], 2);
  EXPECT_EQ(tokens.view(1, 3, tokenizer_).text_bytes(), 2u);
  EXPECT_NE(tokens.fingerprint(), tokens.view(1, 3, tokenizer_).fingerprint());
  EXPECT_EQ(TokenData().size(), 0);
  EXPECT_EQ(TokenData().fingerprint(), "");
}

TEST(CacheDirectoryTest, FollowsTheEnvironment) {
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::unsetenv("HEADSHARE_CACHE");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/me", 1);
  EXPECT_EQ(default_cache_directory(), "/me/.cache/headshare");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(default_cache_directory(), "/xdg/headshare");
  ::setenv("HEADSHARE_CACHE", "/own", 1);
  EXPECT_EQ(default_cache_directory(), "/own");
  for (const char* name : {"HEADSHARE_CACHE", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
  EXPECT_THAT(error_message([] { default_cache_directory(); }),
              testing::AllOf(HasSubstr("set HEADSHARE_CACHE"),
                             testing::Not(HasSubstr("--cache-dir"))));  // which not every verb has
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace headshare
