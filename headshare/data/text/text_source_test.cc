#include "headshare/data/text/text_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <zlib.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "headshare/base/notice.h"
#include "headshare/base/rng.h"
#include "headshare/data/benchmarks/segments.h"
#include "headshare/data/test_support.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<std::string> documents(TextSourceOptions options) {
  TextSource source(std::move(options));
  std::vector<std::string> all;
  while (const std::optional<TextPiece> piece = source.next()) {
    if (piece->begins_document) all.emplace_back();
    all.back() += piece->text;
  }
  EXPECT_EQ(source.bytes_done(), source.bytes_total());
  return all;
}

class TextSourceTest : public DirectoryTest {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    const fs::path path = directory_ / name;
    make_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;  // write_file would wait for the disk each time
    return path.string();
  }

  std::string refusal(const std::string& name, const std::string& content, TextSourceOptions options = {}) {
    options.inputs = {file(name, content)};
    return error_message([&] { documents(options); });
  }
};

TEST_F(TextSourceTest, FilesAndRecordsAreDocuments) {
  const std::string text = file("a.txt", "one\r\ntwo");
  const std::string zipped = file("b.txt.gz", gzip("zip") + gzip("ped"));
  const std::string lines =
      file("c.jsonl", "{\"text\": \"r\\u00f6d\"}\n\n{\"id\":1,\"text\":\"\"}\r\n{\"text\":\"x\\ny\"}");
  const std::string zipped_lines = file("d.jsonl.gz", gzip("{\"text\":\"z\"}\n"));
  EXPECT_THAT(documents({.inputs = {text, zipped, lines, zipped_lines}}),
              ElementsAre("one\r\ntwo", "zipped", "röd", "x\ny", "z"));
  const std::string body = file("e.jsonl", "{\"body\":\"b\"}\n");
  EXPECT_THAT(documents({.inputs = {body}, .jsonl_field = "body"}), ElementsAre("b"));
}

TEST_F(TextSourceTest, DirectoriesAreSearchedInOrder) {
  std::vector<std::string> notices;
  const NoticeHandler before = set_notice_handler([&](const std::string& text) { notices.push_back(text); });
  file("b.txt", "2");
  file("a/z.md", "1");
  file("c.jsonl.gz", gzip("{\"text\":\"3\"}"));
  file("a/picture.png", "no");
  file(".hidden.txt", "no");
  file(".git/x.txt", "no");
  file("empty.txt", "");
  EXPECT_THAT(documents({.inputs = {directory_.string()}}), ElementsAre("1", "2", "3"));
  set_notice_handler(before);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("empty.txt is empty and was skipped")));
  make_directories(directory_ / "none");
  EXPECT_THAT(error_message([&] { documents({.inputs = {(directory_ / "none").string()}}); }),
              HasSubstr("holds no text"));
}

TEST_F(TextSourceTest, NoOutputReplacesATextThatIsRead) {
  const std::string deep = file("folder/deep/a.txt", "text");
  const std::string empty = file("folder/b.txt", "");
  file("folder/words.json", "no text");
  const std::string missing = (directory_ / "missing").string();
  EXPECT_THAT(paths_of_texts({"-", missing, (directory_ / "folder").string()}), ElementsAre("-", missing, empty, deep));
}

TEST_F(TextSourceTest, MissingInputsAreNamed) {
  EXPECT_THAT(error_message([] { documents({}); }), HasSubstr("--text"));
  EXPECT_THAT(error_message([] { documents({.inputs = {"/no/such.txt"}}); }), HasSubstr("/no/such.txt: No such file"));
  EXPECT_THAT(error_message([] { documents({.inputs = {"-", "-"}}); }), HasSubstr("only once"));
  EXPECT_THAT(refusal("x.txt", ""), HasSubstr("x.txt is empty"));
  EXPECT_THAT(refusal("x.txt", "\xEF\xBB\xBF"), HasSubstr("x.txt is empty"));
  EXPECT_THAT(refusal("x.txt.gz", gzip("")), HasSubstr("x.txt.gz is empty"));
  EXPECT_THAT(refusal("x.txt.gz", ""), HasSubstr("x.txt.gz is empty"));
  EXPECT_THAT(refusal("x.jsonl", "\n \n{\"text\":\"\"}\n"), HasSubstr("x.jsonl is empty: no record"));
}

// The mark is left out whoever reads the file: training, scores, tables, lines. Files are read several times, and the
// note comes once.
TEST_F(TextSourceTest, AByteOrderMarkIsLeftOutWithANote) {
  const std::string marked = file("marked.txt", "\xEF\xBB\xBFsome words\n"), other = file("lines.txt",
                                                                                          "\xEF\xBB\xBF"
                                                                                          "a\n");
  std::vector<std::string> notices;
  const NoticeHandler before = set_notice_handler([&](const std::string& one) { notices.push_back(one); });
  EXPECT_THAT(documents({.inputs = {marked}}), ElementsAre("some words\n"));
  EXPECT_THAT(documents({.inputs = {marked}}), ElementsAre("some words\n"));
  EXPECT_THAT(read_segments(other), ElementsAre("a"));
  documents({.inputs = {file("keeps.txt",
                             "\xEF\xBB\xBF"
                             "a")},
             .keep_mark = true});
  set_notice_handler(before);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("marked.txt begins with a byte order mark"),
                                   HasSubstr("lines.txt begins with a byte order mark")));
}

TEST_F(TextSourceTest, BytesThatAreNotTextFollowThePolicy) {
  EXPECT_THAT(refusal("x.txt", std::string("abc\0def", 7)), HasSubstr("a NUL byte at byte 3"));
  EXPECT_THAT(refusal("x.txt", "gr\xF6sser"), HasSubstr("x.txt is not UTF-8: byte 2"));
  const std::string nul = file("n.txt", std::string("a\0b", 3));
  EXPECT_THAT(documents({.inputs = {nul}, .allow_binary = true}), ElementsAre(std::string("a\0b", 3)));
  const std::string latin = file("l.txt", "\xEF\xBB\xBFgr\xF6sser");
  EXPECT_THAT(documents({.inputs = {latin}, .invalid_utf8 = InvalidUtf8::kReplace}), ElementsAre("gr\uFFFDsser"));
  EXPECT_THAT(documents({.inputs = {latin}, .invalid_utf8 = InvalidUtf8::kKeep}), ElementsAre("gr\xF6sser"));
  EXPECT_THAT(documents({.inputs = {latin}, .invalid_utf8 = InvalidUtf8::kKeep, .keep_mark = true}),
              ElementsAre("\xEF\xBB\xBFgr\xF6sser"));
  const std::string lines = file("l.jsonl", "\xEF\xBB\xBF{\"text\":\"gr\xF6sser\"}\n");
  EXPECT_THAT(documents({.inputs = {lines}, .invalid_utf8 = InvalidUtf8::kReplace}), ElementsAre("gr\uFFFDsser"));
  EXPECT_THAT(error_message([&] { documents({.inputs = {lines}}); }), HasSubstr("l.jsonl:1 is not UTF-8: byte 11"));
  EXPECT_THAT(error_message([&] { documents({.inputs = {lines}, .invalid_utf8 = InvalidUtf8::kKeep}); }),
              HasSubstr("l.jsonl:1 is not UTF-8"));
  // The offset counts from the start of the file, also behind the first piece and a byte order mark.
  std::string late = "\xEF\xBB\xBF";
  while (late.size() < 3'000'000) late += "some words\n";
  EXPECT_THAT(refusal("x.txt", late + "\xFF"), HasSubstr(join_text("byte ", late.size(), " ")));
}

TEST_F(TextSourceTest, JsonMistakesNameTheLine) {
  EXPECT_THAT(refusal("x.jsonl", "{\"text\":\"a\"}\n{\"text\":"), HasSubstr("x.jsonl:2: not a JSON"));
  EXPECT_THAT(refusal("x.jsonl", "{\"txt\":\"a\"}"),
              HasSubstr("x.jsonl:1: the record has no 'text' (did you mean 'txt'?); name"));
  EXPECT_THAT(refusal("x.jsonl", "\n{\"text\":1}"), HasSubstr("x.jsonl:2: 'text' must be text, not number"));
  EXPECT_THAT(refusal("x.jsonl", "[1]"), HasSubstr("x.jsonl:1: a JSON object was expected, not [1]"));
  EXPECT_THAT(refusal("x.jsonl", "{\"text\":\"a\\u0000\"}"), HasSubstr("x.jsonl:1: the text is not text: a NUL byte"));
  EXPECT_THAT(refusal("x.jsonl", std::string("{\"text\":\"a\"}\0x", 14), {.inputs = {}, .allow_binary = true}),
              HasSubstr("NUL byte"));
  EXPECT_THAT(refusal("x.jsonl", std::string(100'000, '[')), HasSubstr("nested deeper"));
}

TEST_F(TextSourceTest, EveryTruncationOfGzipIsRefused) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += join_text("line ", i * i, "\n");
  const std::string whole = gzip(text);
  for (size_t size = 1; size < whole.size(); ++size) {
    ASSERT_THAT(refusal(join_text("x", size, ".txt.gz"), whole.substr(0, size)),
                testing::AnyOf(HasSubstr("cut short"), HasSubstr("not a gzip file")))
        << size;
  }
  std::string damaged = whole;
  damaged[whole.size() / 2] ^= 1;
  EXPECT_THAT(refusal("x.txt.gz", damaged), HasSubstr("cannot read"));
  EXPECT_THAT(refusal("x.txt.gz", "plain text"), HasSubstr("is not a gzip file"));
}

TEST_F(TextSourceTest, NothingButMembersAndZerosFollowsAGzipMember) {
  const std::string first = gzip("zip"), padded = first + std::string(1000, '\0') + gzip("ped") + std::string(3, '\0');
  EXPECT_THAT(documents({.inputs = {file("padded.txt.gz", padded)}}), ElementsAre("zipped"));
  std::string second = gzip("ped");
  second[0] ^= 1;
  EXPECT_THAT(refusal("x.txt.gz", first + second),
              HasSubstr(join_text("x.txt.gz: no gzip data begins at compressed byte ", first.size())));
  EXPECT_THAT(refusal("y.txt.gz", first + "more"), HasSubstr("no gzip data begins"));
  EXPECT_THAT(refusal("z.txt.gz", first + "\x1f"), HasSubstr("cut short"));
}

TEST_F(TextSourceTest, LongTextsComeInPiecesThatJoinToTheWhole) {
  std::string words;
  for (uint64_t i = 0; words.size() < 5'000'000; ++i) words += join_text("wörd", i, i % 7 == 0 ? "\n" : " ");
  const std::string line(10'000'000, 'x');  // without a place to cut
  std::string wide;
  while (wide.size() < 20'000'000) wide += "€";
  for (const std::string& text : {words, line, wide}) {
    const std::string plain = file("x.txt", text);
    const std::string record = file("x.jsonl", "{\"text\":" + nlohmann::json(text).dump() + "}\n");
    for (const std::string& input : {plain, record}) {
      TextSource source({.inputs = {input}});
      std::string joined;
      int pieces = 0;
      while (const std::optional<TextPiece> piece = source.next()) {
        EXPECT_EQ(piece->begins_document, pieces == 0);
        EXPECT_LE(piece->text.size(), size_t{9} << 20);
        joined += piece->text;
        ++pieces;
      }
      EXPECT_TRUE(joined == text) << input;
    }
  }
}

TEST_F(TextSourceTest, PipesAreReadOnce) {
  const std::string pipe = (directory_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "through a pipe"; });
  TextSource source({.inputs = {pipe}});
  EXPECT_FALSE(source.rereadable());
  EXPECT_EQ(source.next()->text, "through a pipe");
  EXPECT_FALSE(source.next());
  writer.join();
}

}  // namespace
}  // namespace headshare
