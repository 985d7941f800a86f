#include "headshare/compare/embeddings.h"

#include <gmock/gmock.h>

#include "headshare/compare/check_comparison.h"
#include "headshare/compare/fine_tuned/pre_training.h"
#include "headshare/compare/grid.h"
#include "headshare/compare/testing.h"
#include "headshare/tasks/masked/masked_language_model.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ComparisonOptions small_embeddings(const fs::path& folder, std::vector<std::string> embeddings) {
  ComparisonOptions options = preset_options("three-way", Preset::kQuick);
  const ComparisonOptions sizes = small_text({"mha", "mqa"}, folder);
  options.schemes = sizes.schemes;
  options.embeddings = std::move(embeddings);
  options.train = sizes.train;
  options.own<TextOptions>().data = sizes.own<TextOptions>().data;
  options.own<TextOptions>().tokenizer.vocabulary_size = 60;
  options.model.layers = 1;
  options.model.attention.d_model = 16;
  options.model.attention.heads = 2;
  options.model.context = 16;
  options.batch_size = 2;
  return options;
}

std::vector<std::string> names(const std::vector<Variant>& variants) {
  std::vector<std::string> made;
  for (const Variant& one : variants) made.push_back(one.name);
  return made;
}

class EmbeddingsTest : public testing::Test {
 protected:
  const TemporaryDirectory home_;
};

TEST_F(EmbeddingsTest, EachSchemeStandsWithEachOfThem) {
  const ComparisonOptions options = small_embeddings(home_.path(), {"hash-md-proj", "wordpiece"});
  const std::vector<Variant> variants = chosen_variants(options);
  EXPECT_THAT(names(variants), ElementsAre("mha+wordpiece", "mha+hash-md-proj", "mqa+wordpiece", "mqa+hash-md-proj"));
  EXPECT_EQ(variants[3].options,
            (nlohmann::json{{"scheme", "mqa"}, {"tokenizer", "hash-md"}, {"token-embedding", "hash-proj"}}));
  const ComparisonOptions cell = with_variant(options, variants[3]);
  EXPECT_EQ(cell.own<TextOptions>().tokenizer.kind, TokenizerKind::kHashMd);
  EXPECT_EQ(cell.own<TextOptions>().tokenizer.vocabulary_size, std::nullopt);
  EXPECT_EQ(cell.own<MaskedOptions>().encoder.embedding.kind, TokenEmbeddingKind::kHashProj);
  EXPECT_TRUE(cell.embeddings.empty());
  EXPECT_EQ(with_variant(options, variants[2]).own<TextOptions>().tokenizer.vocabulary_size, 60);
  // PRR is measured against the table, wherever it was named.
  EXPECT_EQ(chosen_references(options, variants).quality, "mha+wordpiece");
}

TEST_F(EmbeddingsTest, AllAreTheTableTheEightOfThePaperAndTwoThatReadLetters) {
  EXPECT_EQ(chosen_embeddings(small_embeddings(home_.path(), {"all"})).size(), 11u);
  EXPECT_TRUE(chosen_embeddings(small_embeddings(home_.path(), {})).empty());
}

TEST_F(EmbeddingsTest, CellsHaveTheDataOfTheirTokenizer) {
  ComparisonOptions options = small_embeddings(home_.path(), {"wordpiece", "hash-md-add", "hash-md-proj"});
  options.schemes = {"mha"};
  const std::unique_ptr<Experiment> experiment = open_experiment(options);
  EXPECT_THAT(experiment->subject().data, HasSubstr("wordpiece tokenizer"));
  EXPECT_THAT(experiment->subject().data, HasSubstr("; and book.txt: "));
  const std::vector<CellPlan> plans = plan_cells(options, *experiment);
  ASSERT_EQ(plans.size(), 3u);
  std::vector<int64_t> vocabularies;
  for (CellPlan plan : plans) {
    experiment->share(home_.path(), &plan.options);
    const bool table = plan.key.variant == "mha+wordpiece";
    EXPECT_EQ(plan.options.own<TextOptions>().tokenizer_path.empty(), !table) << plan.key.variant;
    const Trial trial = open_trial(*experiment, plan.options, at::kCPU);
    vocabularies.push_back(trial.options.common().vocabulary);
    EXPECT_EQ(measure(trial.options).embedding_parameters, table ? vocabularies.back() * 16
                                                           : plan.key.variant == "mha+hash-md-add"
                                                               ? 2 * 128 * 16 + 6 * 16
                                                               : 128 * 16 + 6 * 16);
  }
  EXPECT_GT(vocabularies[0], 5);
  EXPECT_EQ(vocabularies[1], 5);  // special tokens alone
}

TEST_F(EmbeddingsTest, RefusesWhatStandsAgainstThem) {
  const auto refused = [&](const std::function<void(ComparisonOptions&)>& change) {
    ComparisonOptions options = small_embeddings(home_.path(), {"all"});
    change(options);
    return error_message([&] { check_comparison(options); });
  };
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.embeddings = {"hash-md-prj"}; }),
              HasSubstr("there is no 'hash-md-prj' (did you mean 'hash-md-proj'?); there are"));
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.embeddings = {"hash-prj"}; }),
              HasSubstr("there is no 'hash-prj' (did you mean hash-md-proj or hash-lsh-proj?); there are"));
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.task = "mlm"; }), HasSubstr("--task is mlm; use --task three-way"));
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.task = "offsets"; }), HasSubstr("compares encoders"));
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.own<TextOptions>().tokenizer.kind = TokenizerKind::kHashMd; }),
              HasSubstr("leave --tokenizer"));
  EXPECT_THAT(refused([](ComparisonOptions& o) {
                o.own<MaskedOptions>().encoder.embedding.kind = TokenEmbeddingKind::kHashAdd;
              }),
              HasSubstr("leave --token-embedding out"));
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.own<MaskedOptions>().corruption.random = RandomTokens::kBits; }),
              HasSubstr("a table has rows of tokens"));
  EXPECT_THAT(refused([](ComparisonOptions& o) {
                o.embeddings = {"hash-md-add", "trigram"};
                o.own<TextOptions>().tokenizer = preset_options(o.task, o.preset, o).own<TextOptions>().tokenizer;
                o.own<MaskedOptions>().corruption.random = RandomTokens::kBits;
              }),
              HasSubstr("use --random-tokens words"));
  EXPECT_THAT(refused([](ComparisonOptions& o) {
                o.embeddings = {"hash-md-add"};
                o.own<TextOptions>().tokenizer.hash_merges = "nowhere";
              }),
              HasSubstr("none of --embeddings is one"));
  EXPECT_THAT(refused([](ComparisonOptions& o) { o.variants = {"x:token-embedding=hash-add"}; }),
              HasSubstr("--variants x sets token-embedding, which --embeddings varies"));
}

TEST_F(EmbeddingsTest, FineTunedEncodersLearnWhatHasNoVocabularyFirst) {
  ComparisonOptions options = small_embeddings(home_.path(), {"wordpiece", "hash-lsh-pool"});
  options.task = "glue";
  EXPECT_EQ(pre_training(options).task, "three-way");
  EXPECT_THAT(pre_training(options).schemes, ElementsAre("mha", "mqa"));
  EXPECT_THAT(pre_training(options).embeddings, ElementsAre("wordpiece", "hash-lsh-pool"));
  options.embeddings.clear();
  EXPECT_EQ(pre_training(options).task, "mlm");
}

}  // namespace
}  // namespace headshare
