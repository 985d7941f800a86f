#include "headshare/tasks/start_from.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/data/test_support.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/masked/masked_language_model.h"
#include "headshare/tasks/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StartFromTest : public DirectoryTest {
 protected:
  // Saves and opens a decoder of `positions` with room for more tokens than its tokenizer has.
  StartModel decoder(PositionKind positions = PositionKind::kLearned, const std::string& scheme = "gqa") {
    DecoderOptions options = small_options(scheme);
    options.vocabulary = 300;
    options.context = 16;
    options.positions = positions;
    options.dropout = 0.25;
    const ByteTokenizer bytes;
    save_model(directory_ / "decoder", small_decoder(options), &bytes);
    return open_start(directory_ / "decoder");
  }

  // Returns what keep_to_start() reports once `change` has changed the options; those called `given` count as set.
  static std::vector<std::string> kept(const StartModel& start, const std::function<void(TaskOptions&)>& change,
                                       const std::set<std::string>& given = {}) {
    TaskOptions options;
    take_options(start, &options);
    change(options);
    return keep_to_start(
        start, [&](const std::string& name) { return given.contains(name); }, &options);
  }

  static std::string refusal(const StartModel& start, const std::function<void(TaskOptions&)>& change,
                             const std::set<std::string>& given = {}) {
    return error_message([&] { kept(start, change, given); });
  }
};

TEST_F(StartFromTest, ATeachersTokenizerIsTheOnlyOne) {
  LanguageModelOptions options;
  options.distillation.teacher = decoder().directory.string();
  options.tokenizer.kind = TokenizerKind::kWords;
  const auto refused = [&](const std::set<std::string>& given) {
    return error_message(
        [&] { keep_to_teacher([&](const std::string& name) { return given.contains(name); }, options); });
  };
  EXPECT_THAT(refused({"tokenizer"}),
              HasSubstr("--tokenizer is words and the teacher's is bytes; leave --tokenizer out"));
  EXPECT_EQ(refused({}), "no error");
  EXPECT_EQ(refused({"tokenizer", "tokenizer-path"}), "no error");  // compared with the teacher's where that is loaded
  options.tokenizer = {.kind = TokenizerKind::kBytes, .vocabulary_size = 300};
  std::string said;
  const NoticeHandler before = set_notice_handler([&](const std::string& text) { said += text; });
  EXPECT_EQ(refused({"tokenizer", "vocabulary-size"}), "no error");
  set_notice_handler(before);
  EXPECT_THAT(said, HasSubstr("--vocabulary-size 300 is about new tokenizers and does nothing here"));
  options.distillation = {};
  EXPECT_EQ(refused({"tokenizer"}), "no error");
}

TEST_F(StartFromTest, TheOptionsAreTheModelsOwn) {
  const StartModel start = decoder();
  TaskOptions options;
  take_options(start, &options);
  EXPECT_EQ(options.task, "language-model");
  EXPECT_EQ(options.model.attention.scheme, "gqa");
  EXPECT_EQ(options.model.dropout, 0.25);
  EXPECT_EQ(options.own<TextOptions>().vocabulary, 300);
  EXPECT_EQ(options.own<TextOptions>().tokenizer_path, (directory_ / "decoder" / "tokenizer.json").string());
  EXPECT_THAT(kept(start, [](TaskOptions&) {}), IsEmpty());
}

TEST_F(StartFromTest, WhatChangesNoShapeMayChange) {
  const StartModel start = decoder();
  const auto change = [](TaskOptions& options) {
    options.model.dropout = 0;
    options.model.context = 8;
  };
  EXPECT_THAT(kept(start, change), ElementsAre("context 8 instead of 16", "dropout 0.0 instead of 0.25"));
  const StartModel mha = decoder(PositionKind::kLearned, "mha");
  EXPECT_THAT(kept(mha, [](TaskOptions& options) { options.model.attention.scheme = "el_lossless"; }),
              ElementsAre("scheme el_lossless instead of mha"))
      << "it has the weights of mha";
  // An option left to its default is not another model.
  EXPECT_THAT(kept(start, [](TaskOptions& options) { options.model.attention.head_width.reset(); }), IsEmpty());
}

TEST_F(StartFromTest, OtherShapesAreRefusedWithBothValues) {
  const StartModel start = decoder();
  EXPECT_THAT(refusal(start, [](TaskOptions& options) { options.model.layers = 7; }),
              HasSubstr("--layers is 7 and that of " + start.directory.string() + " is "));
  EXPECT_THAT(refusal(start, [](TaskOptions& options) { options.model.attention.scheme = "mha"; }),
              HasSubstr("--scheme is mha"));
  EXPECT_THAT(refusal(start, [](TaskOptions& options) { options.model.positions = PositionKind::kRotary; }),
              HasSubstr("--positions is rotary"));
  EXPECT_THAT(refusal(start, [](TaskOptions& options) { options.model.attention.heads = 7; }),
              HasSubstr("--heads is 7"));
}

TEST_F(StartFromTest, LearnedPositionsEndAndOthersDoNot) {
  const auto longer = [](TaskOptions& options) { options.model.context = 32; };
  EXPECT_THAT(refusal(decoder(), longer),
              testing::AllOf(HasSubstr("--context is 32"), HasSubstr("is 16: its positions"),
                             HasSubstr("rotary, ALiBi or sinusoidal")));
  for (const PositionKind kind : {PositionKind::kSinusoidal, PositionKind::kRotary, PositionKind::kAlibi}) {
    EXPECT_THAT(kept(decoder(kind), longer), ElementsAre("context 32 instead of 16"));
  }
}

TEST_F(StartFromTest, TheTokenizerIsTheModelsOwn) {
  const StartModel start = decoder();
  const auto bpe = [](TaskOptions& options) { options.own<TextOptions>().tokenizer.kind = TokenizerKind::kBpe; };
  EXPECT_THAT(refusal(start, bpe, {"tokenizer"}), HasSubstr("--tokenizer is bpe and that of"));
  EXPECT_THAT(kept(start, bpe), IsEmpty()) << "a default is no wish";
  save_tokenizer(*small_wordpiece(), directory_ / "other.json");
  const auto other = [&](TaskOptions& options) {
    options.own<TextOptions>().tokenizer_path = (directory_ / "other.json").string();
  };
  EXPECT_THAT(refusal(start, other, {"tokenizer-path"}), HasSubstr("wordpiece, 11 tokens"));
  const auto same = [&](TaskOptions& options) {
    options.own<TextOptions>().tokenizer_path = (start.directory / "tokenizer.json").string();
  };
  EXPECT_THAT(kept(start, same, {"tokenizer-path"}), IsEmpty());
  EXPECT_THAT(
      refusal(start, [](TaskOptions& options) { options.own<TextOptions>().vocabulary = 256; }, {"model-vocabulary"}),
      HasSubstr("--model-vocabulary is 256"));
  EXPECT_THAT(refusal(start, [](TaskOptions& options) { options.task = "mlm"; }), HasSubstr("--task is mlm"));
}

TEST_F(StartFromTest, WeightsAreCopiedAndPositionsCut) {
  const StartModel start = decoder();
  DecoderOptions options = start.options.as<DecoderOptions>();
  options.context = 8;
  Decoder shorter(resolve(options));
  load_start(start, *shorter);
  const NamedTensors before = model_tensors(*load_decoder(start.directory));
  for (const auto& [name, tensor] : model_tensors(*shorter)) {
    const Tensor& trained = before.at(name);
    EXPECT_TRUE(at::equal(tensor, name == "position_embedding" ? trained.slice(0, 0, 8) : trained)) << name;
  }
}

TEST_F(StartFromTest, AnEncoderLosesItsOtherHeads) {
  EncoderOptions options = small_encoder_options("mha");
  options.vocabulary = 11;
  options.masked_head = false;
  options.task_head = {.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"no", "yes"}};
  save_model(directory_ / "encoder", small_encoder(options), small_wordpiece().get());
  const StartModel start = open_start(directory_ / "encoder");
  TaskOptions task;
  take_options(start, &task);
  EXPECT_EQ(task.task, "mlm");
  EXPECT_EQ(task.own<MaskedOptions>().encoder.segments, options.segments);
  Encoder model(encoder_with_head(options, options, EncoderTask::kMasked));
  initialise(*model, 5);
  const Tensor fresh = model_tensors(*model).at("masked_head.dense.weight").clone();
  std::vector<std::string> said;
  const NoticeHandler before = set_notice_handler([&](const std::string& sentence) { said.push_back(sentence); });
  load_start(start, *model);
  set_notice_handler(before);
  EXPECT_THAT(said, ElementsAre(HasSubstr("was fine-tuned"), HasSubstr("starts from random values")));
  const NamedTensors trained = model_tensors(*load_encoder(start.directory));
  EXPECT_TRUE(at::equal(model_tensors(*model).at("token_embedding"), trained.at("token_embedding")));
  EXPECT_TRUE(at::equal(model_tensors(*model).at("masked_head.dense.weight"), fresh));
}

TEST_F(StartFromTest, AModelWithoutTokenizerIsRefused) {
  const StartModel start = decoder();
  fs::remove(start.directory / "tokenizer.json");
  EXPECT_THAT(error_message([&] { open_start(start.directory); }), HasSubstr("no tokenizer.json"));
}

}  // namespace
}  // namespace headshare
