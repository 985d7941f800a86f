#include "headshare/tasks/diagnostics/diagnostic.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/kinds.h"
#include "headshare/tasks/diagnostics/testing.h"
#include "headshare/tasks/task_options.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DiagnosticTest, EveryKindIsListedOnce) {
  ASSERT_EQ(diagnostics().size(), diagnostic_names().size());
  for (const auto& [kind, name] : diagnostic_names()) {
    EXPECT_EQ(diagnostic(kind).kind, kind);
    EXPECT_EQ(diagnostic_name(kind), name);
    EXPECT_THAT(sentence(kind), HasSubstr("heads must"));
    EXPECT_EQ(sentence(kind).back(), '.');
  }
}

TEST(DiagnosticTest, DefaultsFitTogether) {
  for (const auto& [kind, name] : diagnostic_names()) {
    const DiagnosticDefaults defaults = diagnostic_defaults(kind);
    EXPECT_EQ(defaults.options.kind, kind);
    EXPECT_GT(defaults.steps, 0);
    EXPECT_GT(defaults.learning_rate, 0);
    const auto generator = make_generator(defaults.options);
    EXPECT_GT(generator->chance(), 0) << name;
    EXPECT_LT(generator->chance(), 0.5) << name;
    // Every scheme can be trained with the defaults: they ask for no rotary positions, which el_shared refuses.
    DiagnosticOptions options = defaults.options;
    for (const std::string& scheme : scheme_names()) {
      options.model.attention.scheme = scheme;
      EXPECT_EQ(error_message([&] { decoder_options(options); }), "no error") << name << " " << scheme;
    }
  }
}

TEST(DiagnosticTest, EveryStreamGivesItsOwnSequence) {
  for (const auto& [kind, name] : diagnostic_names()) {
    const auto generator = make_generator(diagnostic_defaults(kind).options);
    std::set<std::vector<int64_t>> seen;
    for (uint64_t key = 0; key < 1000; ++key) seen.insert(draw_sequence(*generator, key).inputs);
    EXPECT_EQ(seen.size(), 1000u) << name;
  }
}

TEST(DiagnosticTest, TheTaskSetsWhatTheModelKnows) {
  DiagnosticOptions options{.kind = DiagnosticKind::kRecall, .alphabet = 10, .pairs = 3, .queries = 4};
  options.model.context = 7;
  options.model.tie_embeddings = false;
  const DecoderOptions model = decoder_options(options);
  EXPECT_EQ(model.vocabulary, 20);
  EXPECT_EQ(model.context, 2 * (3 + 4));
  EXPECT_TRUE(model.tie_embeddings);
  EXPECT_TRUE(model.attention.head_width.has_value());  // resolved
}

TEST(DiagnosticTest, FieldsBelongToTasks) {
  DiagnosticOptions options;
  std::set<std::string> names;
  for (const Field& one : fields(options)) names.insert(one.name);
  for (const Diagnostic& one : diagnostics()) {
    for (const std::string& name : one.fields) EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_THAT(tasks_with("pairs"), ElementsAre(DiagnosticKind::kRecall, DiagnosticKind::kJointRecall));
  EXPECT_THAT(tasks_with("sequence-length"), ElementsAre(DiagnosticKind::kOffsets, DiagnosticKind::kInduction,
                                                         DiagnosticKind::kDyck, DiagnosticKind::kKGram));
  EXPECT_EQ(tasks_with("test-sequences").size(), diagnostics().size());
  options.kind = DiagnosticKind::kDyck;
  options.sequence_length = 10;
  options.bracket_kinds = 2;
  options.bracket_depth = 3;
  EXPECT_EQ(difficulty(options).dump(), R"({"bracket-depth":3,"bracket-kinds":2,"sequence-length":10})");
}

// The command line has the options of diagnostic tasks beside those of a language model, so their names must differ.
TEST(DiagnosticTest, FieldsHaveNamesOfTheirOwn) {
  TaskOptions task;
  DiagnosticOptions diagnostic;
  Fields others = fields(task);
  for (const Field& one : fields(diagnostic)) {
    EXPECT_EQ(find_field(others, one.name), nullptr) << one.name;
    EXPECT_TRUE(one.aliases.empty()) << one.name;
  }
}

TEST(DrawDistinctTest, EveryOrderIsEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  Philox random(5);
  for (int i = 0; i < 6000; ++i) ++counts[draw_distinct(random, 4, 2)];
  EXPECT_EQ(counts.size(), 12u);
  for (const auto& [numbers, count] : counts) {
    EXPECT_NE(numbers[0], numbers[1]);
    EXPECT_NEAR(count, 500, 5 * 22);  // five deviations of a binomial
  }
  std::vector<int64_t> all = draw_distinct(random, 50, 50);
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(i));
}

}  // namespace
}  // namespace headshare
