#include "headshare/convert/output/output_directory.h"

#include <gmock/gmock.h>

#include <chrono>

#include "headshare/base/testing.h"
#include "headshare/convert/gguf/format.h"
#include "headshare/convert/gguf/gguf_file.h"
#include "headshare/convert/gguf/gguf_tokens.h"
#include "headshare/convert/hf/format.h"
#include "headshare/convert/hf/written_config.h"
#include "headshare/models/checkpoint.h"
#include "headshare/text/simple/byte_tokenizer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class OutputTest : public testing::Test {
 protected:
  OutputTest()
      : model_(resolve({.vocabulary = 256, .context = 4, .layers = 1, .attention = {.d_model = 4, .heads = 2}})) {
    initialise(*model_, /*seed=*/1);
  }

  static std::vector<std::string> names(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
    return names;
  }
  std::string write(const fs::path& path, Overwrite overwrite, const Tokenizer* tokenizer = nullptr) const {
    return error_message([&] {
      OutputDirectory(path, overwrite, headshare_output(), {}).write([&](const fs::path& to) {
        save_model(to, model_, tokenizer);
      });
    });
  }
  fs::path out() const { return temporary_.path() / "out"; }

  TemporaryDirectory temporary_;
  Decoder model_;
};

TEST_F(OutputTest, WritesAModelAndNothingElse) {
  const ByteTokenizer bytes;
  EXPECT_EQ(write(out() / "", Overwrite::kNo, &bytes), "no error");  // also with a slash at the end
  EXPECT_THAT(names(temporary_.path()), ElementsAre("out"));
  EXPECT_THAT(names(out()), UnorderedElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(load_model(out()).model->options().context, 4);
}

TEST_F(OutputTest, OverwritesOnlyModelsAndOnlyWhenAsked) {
  const ByteTokenizer bytes;
  EXPECT_EQ(write(out(), Overwrite::kNo, &bytes), "no error");
  EXPECT_THAT(write(out(), Overwrite::kNo), HasSubstr("exists already; choose another name or add --overwrite"));
  EXPECT_EQ(write(out(), Overwrite::kYes), "no error");
  EXPECT_THAT(names(out()), UnorderedElementsAre("config.json", "model.safetensors"));
  EXPECT_THAT(names(temporary_.path()), ElementsAre("out"));

  write_file(out() / "thesis.tex", "years of work");
  EXPECT_THAT(write(out(), Overwrite::kYes), HasSubstr("holds more than a model, 'thesis.tex'"));
  fs::remove(out() / "thesis.tex");
  write_file(out() / "config.json", R"({"model_type": "gpt2"})");
  EXPECT_THAT(write(out(), Overwrite::kYes), HasSubstr("is not a headshare model"));
  EXPECT_THAT(names(out()), UnorderedElementsAre("config.json", "model.safetensors"));

  const fs::path file = temporary_.path() / "file";
  write_file(file, "text");
  EXPECT_THAT(write(file, Overwrite::kYes), HasSubstr("is not a directory, so it is not overwritten"));
}

TEST_F(OutputTest, OverwritesHuggingFaceDirectoriesOfItsOwnOnly) {
  const auto write_foreign = [&](const std::string& config) {
    return error_message([&] {
      OutputDirectory(out(), Overwrite::kYes, hf_format().output, {}).write([&](const fs::path& to) {
        write_file(to / "config.json", config);
      });
    });
  };
  EXPECT_EQ(write_foreign("{}"), "no error");
  EXPECT_THAT(write_foreign("{}"), HasSubstr("was not written by headshare"));
  write_file(out() / "config.json", nlohmann::json{{kExportMark, "0"}}.dump());
  EXPECT_EQ(write_foreign("{}"), "no error");
  write_file(out() / "pytorch_model.bin", "");
  EXPECT_THAT(write_foreign("{}"), HasSubstr("holds more than a model, 'pytorch_model.bin'"));
}

TEST_F(OutputTest, OverwritesGgufFilesOfItsOwnOnly) {
  const auto write_gguf_with = [&](const std::string& key, const GgufValue& value) {
    return error_message([&] {
      OutputDirectory(out(), Overwrite::kYes, gguf_format().output, {}).write([&](const fs::path& to) {
        write_gguf(to / "model.gguf", {.values = {{key, value}}});
      });
    });
  };
  EXPECT_EQ(write_gguf_with(kGgufMark, std::string("1")), "no error");
  EXPECT_EQ(write_gguf_with("general.name", std::string("theirs")), "no error");
  EXPECT_THAT(write_gguf_with(kGgufMark, std::string("1")), HasSubstr("model.gguf was not written by headshare"));
  write_file(out() / "model.gguf", "no GGUF file");
  EXPECT_THAT(write_gguf_with(kGgufMark, std::string("1")), HasSubstr("model.gguf was not written by headshare"));
}

TEST_F(OutputTest, AFailureLeavesNothingBehind) {
  EXPECT_THAT(write(temporary_.path() / "file" / "out", Overwrite::kNo), "no error");
  fs::remove_all(temporary_.path() / "file");
  write_file(temporary_.path() / "file", "in the way");
  EXPECT_THAT(write(temporary_.path() / "file" / "out", Overwrite::kNo), HasSubstr("cannot create the directory"));
  class Large : public ByteTokenizer {
    int64_t vocabulary_size() const override { return 257; }
  };
  const Large large;
  EXPECT_THAT(write(out(), Overwrite::kNo, &large), HasSubstr("has 257 tokens, the model only 256"));
  EXPECT_THAT(names(temporary_.path()), ElementsAre("file"));
}

TEST_F(OutputTest, WhatAppearsMeanwhileStays) {
  for (const Overwrite overwrite : {Overwrite::kNo, Overwrite::kYes}) {
    OutputDirectory output(out(), overwrite, headshare_output(), {});
    const std::string message = error_message([&] {
      output.write([&](const fs::path& to) {
        save_model(to, model_, nullptr);
        make_directories(out());
        write_file(out() / "thesis.tex", "years of work");
      });
    });
    EXPECT_THAT(message, HasSubstr(overwrite == Overwrite::kNo ? "appeared during this call" : "more than a model"));
    EXPECT_EQ(read_file(out() / "thesis.tex"), "years of work");
    EXPECT_THAT(names(out()), ElementsAre("thesis.tex"));
    fs::remove_all(out());
  }
  OutputDirectory output(out(), Overwrite::kNo, headshare_output(), {});
  const std::string message = error_message([&] {
    output.write([&](const fs::path&) { make_directories(out()); });  // an empty one is somebody's too
  });
  EXPECT_THAT(message, HasSubstr("appeared during this call"));
  EXPECT_THAT(names(out()), testing::IsEmpty());
}

TEST_F(OutputTest, OneProcessAtATimeWritesAName) {
  OutputDirectory first(out() / "deep", Overwrite::kYes, headshare_output(), {});
  first.begin();
  EXPECT_THAT(write(out() / "deep", Overwrite::kYes), HasSubstr("is being written by another headshare process"));
  first.write([&](const fs::path& to) { save_model(to, model_, nullptr); });
  EXPECT_EQ(write(out() / "deep", Overwrite::kYes), "no error");
  { OutputDirectory(out() / "a" / "b", Overwrite::kNo, headshare_output(), {}).begin(); }
  EXPECT_THAT(names(out()), ElementsAre("deep"));
}

TEST_F(OutputTest, ALinkToADirectoryStaysAndItsDirectoryIsReplaced) {
  const fs::path far = temporary_.path() / "far" / "model";
  EXPECT_EQ(write(far, Overwrite::kNo), "no error");
  fs::create_directory_symlink("far/model", out());
  EXPECT_THAT(write(out(), Overwrite::kNo), HasSubstr("exists already"));
  fs::remove(far / "model.safetensors");
  EXPECT_EQ(write(out(), Overwrite::kYes), "no error");
  EXPECT_TRUE(fs::is_symlink(out()));
  EXPECT_THAT(names(far), UnorderedElementsAre("config.json", "model.safetensors"));
  EXPECT_THAT(names(far.parent_path()), ElementsAre("model"));
  fs::create_symlink("nowhere", temporary_.path() / "dangling");
  for (const Overwrite overwrite : {Overwrite::kNo, Overwrite::kYes}) {
    EXPECT_THAT(write(temporary_.path() / "dangling", overwrite), HasSubstr("it is a symbolic link"));
  }
}

TEST_F(OutputTest, ADirectoryUnderTheNameOfAFileIsMoreThanAModel) {
  EXPECT_EQ(write(out(), Overwrite::kNo), "no error");
  make_directories(out() / "tokenizer.json");
  write_file(out() / "tokenizer.json" / "thesis.tex", "years of work");
  EXPECT_THAT(write(out(), Overwrite::kYes), HasSubstr("holds more than a model, 'tokenizer.json'"));
}

TEST_F(OutputTest, WhatIsReadIsNotReplaced) {
  EXPECT_EQ(write(out(), Overwrite::kNo), "no error");
  const auto open = [&](const InputPaths& inputs) {
    return error_message([&] { OutputDirectory(out(), Overwrite::kYes, headshare_output(), inputs); });
  };
  EXPECT_THAT(open({"", out()}), HasSubstr("is read by this call"));
  EXPECT_THAT(open({out() / "config.json"}), HasSubstr("is read by this call"));
  EXPECT_EQ(open({temporary_.path()}), "no error");
}

// A name that a killed process of ours left, and one that only looks like it.
TEST_F(OutputTest, OnlyUnfinishedModelsAreSwept) {
  const auto partial = [&](const char* number) { return out().string() + ".partial-" + number; };
  const auto fill = [&](const std::string& where, const char* name) {
    make_directories(where);
    write_file(fs::path(where) / name, "half");
    fs::last_write_time(where, fs::file_time_type::clock::now() - std::chrono::hours(2));
  };
  fill(partial("1000000000"), "model.safetensors");
  fill(partial("1000000001"), "model.safetensors.partial-1000000001");
  fill(partial("1000000002"), "thesis.tex");
  make_directories(partial("1000000003"));
  write_file(partial("1000000004"), "a file");
  fs::last_write_time(partial("1000000004"), fs::file_time_type::min());
  EXPECT_EQ(write(out(), Overwrite::kNo), "no error");
  EXPECT_THAT(names(temporary_.path()), UnorderedElementsAre("out", "out.partial-1000000002", "out.partial-1000000003",
                                                             "out.partial-1000000004"));
}

TEST_F(OutputTest, DeletesOnlyTheDirectoryThatItMade) {
  const fs::path partial = partial_name(out());
  make_directories(partial);
  write_file(partial / "thesis.tex", "years of work");
  EXPECT_THAT(write(out(), Overwrite::kNo), HasSubstr("cannot create the directory"));
  EXPECT_EQ(read_file(partial / "thesis.tex"), "years of work");
  fs::remove_all(partial);
  {
    OutputDirectory output(out(), Overwrite::kNo, headshare_output(), {});
    output.begin();
    fs::remove_all(partial);
    make_directories(partial);
  }
  EXPECT_TRUE(fs::exists(partial)) << "another process made it";
}

TEST_F(OutputTest, AnEmptyDirectoryThatWasSweptIsMadeAgain) {
  OutputDirectory output(out(), Overwrite::kNo, headshare_output(), {});
  output.begin();
  fs::remove_all(partial_name(out()));
  output.write([&](const fs::path& to) { write_file(to / "config.json", "{}"); });
  EXPECT_THAT(names(out()), ElementsAre("config.json"));
  EXPECT_THAT(names(temporary_.path()), ElementsAre("out"));
}

}  // namespace
}  // namespace headshare
