#include "headshare/cli/arguments/args.h"

#include <gmock/gmock.h>

#include <optional>

#include "headshare/base/files/placeholder.h"
#include "headshare/base/testing.h"
#include "headshare/host/settings_file.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

enum class Shape { kRound, kSquare };

struct SampleOptions {
  int64_t layers = 4;
  double learning_rate = 0.1;
  bool tie = true;
  bool verbose = false;
  Shape shape = Shape::kRound;
  std::optional<int64_t> groups;
  std::vector<std::string> text;
  std::string name;
  std::string model;
  std::string extra = "none";
};

class ArgumentsTest : public testing::Test {
 protected:
  void parse(const Words& words) {
    options_ = {};
    arguments_.emplace("try", "tries things");
    arguments_->required("MODEL", "a model", &options_.model);
    arguments_->optional("EXTRA", "more", &options_.extra);
    arguments_->group(
        "Model",
        {field("layers", &options_.layers, "blocks", {.min = 1, .max = 8, .aliases = {"n-layer"}}),
         field("groups", &options_.groups, "groups", {.min = 1}), field("tie", &options_.tie, "tie embeddings"),
         field("shape", &options_.shape, "form", {{Shape::kRound, "round"}, {Shape::kSquare, "square"}})});
    arguments_->group("How to train", {field("learning-rate", &options_.learning_rate, "step size", {.min = 0}),
                                       field("text", &options_.text, "files"), field("name", &options_.name, "a name"),
                                       field("verbose", &options_.verbose, "say more")});
    EXPECT_TRUE(arguments_->parse(words));
  }

  std::string refusal(const Words& words) {
    try {
      parse(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no usage error";
  }

  std::string write(const std::string& name, const std::string& content) {
    write_file(folder_.path() / name, content);
    return (folder_.path() / name).string();
  }

  TemporaryDirectory folder_;
  SampleOptions options_;
  std::optional<Arguments> arguments_;
};

TEST_F(ArgumentsTest, FlagsInEverySpelling) {
  parse({"--layers", "2", "--Learning_Rate=3e-4", "m", "--no-tie", "--verbose", "--shape", "square", "x"});
  EXPECT_EQ(options_.layers, 2);
  EXPECT_EQ(options_.learning_rate, 3e-4);
  EXPECT_FALSE(options_.tie);
  EXPECT_TRUE(options_.verbose);
  EXPECT_EQ(options_.shape, Shape::kSquare);
  EXPECT_EQ(options_.model, "m");
  EXPECT_EQ(options_.extra, "x");
  parse({"m", "--n_layer=3", "--n-layer", "5", "--tie=false", "--groups=auto", "--verbose=no"});
  EXPECT_EQ(options_.layers, 5);  // the last one wins
  EXPECT_FALSE(options_.tie);
  EXPECT_TRUE(arguments_->given("layers"));
  EXPECT_FALSE(arguments_->given("shape"));
}

TEST_F(ArgumentsTest, ValuesThatLookLikeFlags) {
  EXPECT_THAT(refusal({"m", "--learning-rate", "-1"}), HasSubstr("--learning-rate must be at least 0, not -1"));
  EXPECT_THAT(refusal({"m", "--name", "--verbose"}), HasSubstr("--name needs a value"));
  parse({"m", "--name=--verbose"});
  EXPECT_EQ(options_.name, "--verbose");
  parse({"--text", "-", "--", "--model-file"});
  EXPECT_THAT(options_.text, ElementsAre("-"));
  EXPECT_EQ(options_.model, "--model-file");
}

TEST_F(ArgumentsTest, ListFlagsAddUp) {
  parse({"m", "--text", "a,b", "--text", R"(c\,d)", "--text=e"});
  EXPECT_THAT(options_.text, ElementsAre("a", "b", "c,d", "e"));
}

TEST_F(ArgumentsTest, MistakesNameTheWayOut) {
  EXPECT_THAT(refusal({"m", "--layer", "2"}), HasSubstr("unknown option --layer (did you mean --layers?); `headshare"));
  EXPECT_THAT(refusal({"m", "--no-tye"}), HasSubstr("did you mean --no-tie?"));
  EXPECT_THAT(refusal({"m", "-x"}), HasSubstr("unknown option --x"));
  EXPECT_THAT(refusal({"m", "--no-layers"}), HasSubstr("--no-layers is not possible: --layers takes a value"));
  EXPECT_THAT(refusal({"m", "--layers"}), HasSubstr("--layers needs a value: 1..8"));
  EXPECT_THAT(refusal({"m", "--layers=9"}), HasSubstr("--layers must be 1..8, not 9"));
  EXPECT_THAT(refusal({"m", "--shape", "squar"}), HasSubstr("did you mean 'square'?"));
  EXPECT_THAT(refusal({"m", "--tie=2"}), HasSubstr("--tie must be true or false"));
  EXPECT_THAT(refusal({}), HasSubstr("MODEL is missing: a model"));
  EXPECT_THAT(refusal({"m", "x", "y"}), HasSubstr("unexpected argument 'y'"));
  EXPECT_THAT(refusal({"m", "x", "--tie", "false"}), HasSubstr("--no-name"));
}

TEST_F(ArgumentsTest, LongValuesAreNotPrintedWhole) {
  const std::string text(70000, 'x');
  const std::string key(1000, 'x');  // YAML has no longer ones
  for (const Words& words : {Words{"m", "--layers", text}, Words{"m", "--tie=" + text}, Words{"m", "--shape", text},
                             Words{"m", "--" + text}, Words{"m", "x", text}, Words{"m", "--layers", "0." + text},
                             Words{"m", "--config", write("a.yaml", key + ": 1\n")},
                             Words{"m", "--config", write("b.yaml", key + ": {layers: 2}\n")},
                             Words{"m", "--config", write("c.yaml", "layers: " + text + "\n")}}) {
    const std::string message = refusal(words);
    EXPECT_THAT(message, HasSubstr("xxxx"));
    EXPECT_LT(message.size(), 400) << message;
  }
  EXPECT_THAT(refusal({"m", "--layers", std::string(70000, '0') + "9"}), HasSubstr("must be 1..8, not 0000"));
  EXPECT_LT(refusal({"m", "--layers", std::string(70000, '0') + "9"}).size(), 400);
}

TEST_F(ArgumentsTest, YamlFlatOrGrouped) {
  const std::string path =
      write("a.yaml", "layers: 2\nhow_to_train:\n  text: [a, 'b,c']\n  learning_rate: 1e-3\nname: no\n");
  parse({"m", "--config", path, "--learning-rate", "5"});
  EXPECT_EQ(options_.layers, 2);
  EXPECT_THAT(options_.text, ElementsAre("a", "b,c"));
  EXPECT_EQ(options_.learning_rate, 5);  // flags override
  EXPECT_EQ(options_.name, "no");
  parse({"--learning-rate", "5", "--text", "z", "--config=" + path, "m"});
  EXPECT_EQ(options_.learning_rate, 5);  // wherever they stand
  EXPECT_THAT(options_.text, ElementsAre("z"));
  parse({"m", "--config", write("empty.yaml", "# nothing\n")});
  parse({"m", "--config", write("json.yaml", R"({"layers": 3, "tie": false})")});
  EXPECT_EQ(options_.layers, 3);
  EXPECT_FALSE(options_.tie);
}

TEST_F(ArgumentsTest, YamlMistakesNameTheLine) {
  const auto refused = [&](const std::string& content) { return refusal({"m", "--config", write("a.yaml", content)}); };
  EXPECT_THAT(refused("layers: 2\nlayrs: 3\n"), HasSubstr("a.yaml:2: unknown option 'layrs' (did you mean 'layers'?)"));
  EXPECT_THAT(refused("layers: 2\n\nn_layer: 2\n"), HasSubstr("a.yaml:3: 'n_layer' sets layers a second time"));
  EXPECT_THAT(refused("layers: 2\nlayers: 2\n"), HasSubstr("a.yaml:2"));
  EXPECT_THAT(refused("modle:\n  layers: 2\n"),
              HasSubstr("unknown group 'modle' around 'layers' (did you mean 'model'?)"));
  EXPECT_THAT(refused("layers: 99\n"), HasSubstr("a.yaml:1: layers must be 1..8, not 99"));
  EXPECT_THAT(refused("layers:\n"), HasSubstr("'layers' has no value"));
  EXPECT_THAT(refused("model:\n  layers: {a: 1}\n"), HasSubstr("plain values only"));
  EXPECT_THAT(refused("text: [[a]]\n"), HasSubstr("plain values only"));
  EXPECT_THAT(refused("layers: [1\n"), HasSubstr("not YAML"));
  EXPECT_THAT(refused("just text\n"), HasSubstr("`name: value`"));
  EXPECT_THAT(refused("? [a, b]\n: c\n"), HasSubstr("plain values only"));
  EXPECT_THAT(refusal({"m", "--config", "/nowhere.yaml"}), HasSubstr("/nowhere.yaml"));
  EXPECT_THAT(refusal({"m", "--config", folder_.path().string()}), HasSubstr("directory"));
  EXPECT_THAT(refusal({"m", "--config"}), HasSubstr("--config needs a YAML file"));
  EXPECT_THAT(refusal({"m", "--config", "a", "--config", "b"}), HasSubstr("twice"));
}

TEST_F(ArgumentsTest, WhatReadersOfYamlDisagreeAboutIsRefused) {
  const auto refused = [&](const std::string& content) { return refusal({"m", "--config", write("a.yaml", content)}); };
  EXPECT_THAT(refused("layers: 2\n---\nlayers: 3\n"), HasSubstr("a second document begins"));
  EXPECT_THAT(refused("layers: 010\n"), HasSubstr("a.yaml:1: 'layers' is 010"));
  EXPECT_THAT(refused("learning-rate: -007\n"), HasSubstr("without leading zeros, or text in quotes"));
  EXPECT_THAT(refused("text: [a, 01]\n"), HasSubstr("'text' is 01"));
  parse({"m", "--config", write("b.yaml", "---\nlayers: 2\nlearning-rate: 0.5\nname: \"007\"\ntext: [0, a01]\n...\n")});
  EXPECT_EQ(options_.name, "007");
  EXPECT_THAT(options_.text, ElementsAre("0", "a01"));
}

TEST_F(ArgumentsTest, ResolvedOptionsReadBack) {
  const std::string hard = "a \"b\"\n\tc: #d \\ \xc3\xa9";
  parse({"m", "--layers", "7", "--text", R"(x y,p\,q,- z)", "--name", hard, "--learning-rate", "0.30000000000000004",
         "--shape", "square", "--no-tie"});
  const fs::path path = folder_.path() / "resolved.yaml";
  write_settings(path, "try", arguments_->page().groups);
  const nlohmann::json before = arguments_->values();
  parse({"other", "--config", path.string()});
  EXPECT_EQ(arguments_->values(), before);
  EXPECT_EQ(options_.name, hard);
  EXPECT_EQ(options_.learning_rate, 0.30000000000000004);
  EXPECT_THAT(read_file(path), HasSubstr("# headshare try --config resolved.yaml"));
  EXPECT_THAT(read_file(path), HasSubstr("how-to-train:\n"));
}

TEST_F(ArgumentsTest, HelpFitsTheWidth) {
  parse({"m"});
  for (const int width : {60, 72, 100}) {
    const std::string help = help_text(arguments_->page(), width);
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
  }
  const std::string help = help_text(arguments_->page(), 100);
  EXPECT_THAT(help, HasSubstr("Usage: headshare try MODEL [EXTRA] [options]"));
  EXPECT_THAT(help, HasSubstr("--layers N              blocks (1..8; default 4; also --n-layer)"));
  EXPECT_THAT(help, HasSubstr("--[no-]tie              tie embeddings (default true)"));
  EXPECT_THAT(help, HasSubstr("--shape NAME            form (round|square; default round)"));
}

TEST_F(ArgumentsTest, HelpShowsCommonOptionsAndExamples) {
  parse({"m"});
  arguments_->common({"layers"});
  arguments_->example("try m --layers 2 --learning-rate 0.1", "the smallest");
  const std::string help = help_text(arguments_->page(), 40);
  EXPECT_THAT(help, HasSubstr("--layers N              blocks\n"));
  EXPECT_THAT(help, Not(HasSubstr("--shape")));
  EXPECT_THAT(help, HasSubstr("  # the smallest\n  headshare try m --layers 2 \\\n    --learning-rate 0.1\n"));
  EXPECT_THAT(help, HasSubstr("`headshare try --help-all` shows all"));
  EXPECT_THAT(full_help_text(arguments_->page(), 80), HasSubstr("--shape NAME"));
  EXPECT_THROW(arguments_->common({"no-such-option"}), std::logic_error);
}

TEST_F(ArgumentsTest, HelpOfOneGroup) {
  parse({"m"});
  const HelpPage& page = arguments_->page();
  const std::string help = group_help_text(page, "How_to", 80);
  EXPECT_THAT(help, HasSubstr("How to train\n"));
  EXPECT_THAT(help, HasSubstr("--learning-rate X"));
  EXPECT_THAT(help, Not(HasSubstr("--layers")));
  EXPECT_EQ(group_help_text(page, "model", 80).find("Model\n"), 0U);
  EXPECT_THAT(error_message([&] { group_help_text(page, "modell", 80); }),
              HasSubstr("try has no group of options 'modell' (did you mean 'model'?); its groups are model and "
                        "how-to-train"));
  // The words behind --help-all are no arguments of the call, also where other options decide the defaults.
  arguments_->read({"--help-all", "model", "--layers", "2"});
  EXPECT_TRUE(arguments_->asks_for_help());
  EXPECT_EQ(options_.layers, 2);
  EXPECT_EQ(options_.model, "m");
}

TEST(PlaceholderTest, TextsSayWhatTheyName) {
  std::string out, plain;
  std::vector<std::string> files;
  Arguments arguments("try", "tries things");
  arguments.group("Run", {naming_directory(field("out", &out, "where to", {.aliases = {"output-dir"}})),
                          naming_file(field("text", &files, "what to read")), field("name", &plain, "a name")});
  const std::string help = full_help_text(arguments.page(), 80);
  EXPECT_THAT(help, HasSubstr("--out DIR               where to (also --output-dir)\n"));
  EXPECT_THAT(help, HasSubstr("--text FILE,...         what to read\n"));
  EXPECT_THAT(help, HasSubstr("--name TEXT             a name\n"));
  EXPECT_EQ(error_message([&] { arguments.parse({"--out"}); }), "--out needs a value: DIR");
}

// A shell's variable that is not set leaves an empty value, which would be taken as if the option were not given.
TEST(PlaceholderTest, AnEmptyNameIsRefused) {
  const TemporaryDirectory folder;
  std::string name;
  std::vector<std::string> list;
  const auto refusal = [&](const Field& field, const Words& words) {
    Arguments arguments("try", "tries things");
    arguments.group("Run", {field});
    return error_message([&] { arguments.parse(words); });
  };
  for (const auto naming : {naming_file, naming_directory, naming_path, naming_model}) {
    const Field one = naming(field("like", &name, "what it is like"));
    const Field many = naming(field("text", &list, "what to read"));
    const std::string refused = join_text("like is empty: give it a ", one.range, ", or leave it out");
    EXPECT_EQ(refusal(one, {"--like="}), "--" + refused);
    EXPECT_EQ(refusal(one, {"--like", ""}), "--" + refused);
    EXPECT_THAT(refusal(many, {"--text", ""}), HasSubstr("--text is empty"));
    EXPECT_THAT(refusal(many, {"--text", "a", "--text=,"}), HasSubstr("--text is empty"));
    const std::string config = (folder.path() / "a.yaml").string();
    write_file(config, "like: ''\n");
    EXPECT_EQ(refusal(one, {"--config", config}), config + ":1: " + refused);
    EXPECT_EQ(refusal(or_empty(one), {"--like="}), "no error");
    EXPECT_EQ(refusal(field("like", &name, "any text"), {"--like="}), "no error");
  }
}

// A settings file of a person asks for what it has; one with every option, as ours, asks for nothing.
TEST_F(ArgumentsTest, OptionsThatChangeNothingAreRefused) {
  const auto idle = [&](const Words& words) {
    parse(words);
    return error_message([&] { arguments_->refuse_idle({"layers", "name"}, "does nothing here"); });
  };
  EXPECT_EQ(idle({"m", "--name", "x"}), "--name does nothing here; leave it out");
  EXPECT_EQ(idle({"m", "--config", write("a.yaml", "layers: 4\n")}), "--layers does nothing here; leave it out");
  EXPECT_EQ(idle({"m", "--tie"}), "no error");
  const fs::path all = folder_.path() / "resolved.yaml";
  write_settings(all, "try", arguments_->page().groups);
  EXPECT_EQ(idle({"m", "--config", all.string()}), "no error");
  EXPECT_EQ(idle({"m", "--config", all.string(), "--name", "x"}), "--name does nothing here; leave it out");
  // A comment of a person that names the program does not make the file one of ours; a file of ours that did not count
  // options is one.
  EXPECT_EQ(idle({"m", "--config", write("b.yaml", "# headshare try --config b.yaml\n\nlayers: 4\n")}),
            "--layers does nothing here; leave it out");
  EXPECT_EQ(idle({"m", "--config", write("c.yaml", "# headshare try --config resolved.yaml\nlayers: 4\n")}),
            "--layers does nothing here; leave it out");
  EXPECT_EQ(idle({"m", "--config", write("d.yaml", "# headshare try --config resolved.yaml\n\nlayers: 4\n")}),
            "no error");
}

TEST_F(ArgumentsTest, AnotherVerbsOptionsAreNotTaken) {
  parse({"m"});
  const fs::path path = folder_.path() / "resolved.yaml";
  write_settings(path, "try", arguments_->page().groups);
  Arguments other("compare", "compares");
  EXPECT_EQ(error_message([&] {
              other.parse({"--config", path.string()});
            }),
            join_text(path.string(), " holds the options of `headshare try`, and this is `headshare compare`; use: ",
                      "headshare try --config ", path.string()));
}

// The command line is read once, and what it sets is repeated on top of other defaults.
TEST_F(ArgumentsTest, WhatWasTypedIsRepeatedOnOtherDefaults) {
  const std::string path = write("a.yaml", "layers: 2\ntext: [a, b]\ntie: false\n");
  parse({"m", "--config", path, "--layers", "3", "--text", "c", "--text", "d,e", "x", "--no-verbose"});
  write_file(path, "layers: 7\n");  // is not read again
  SampleOptions other;
  other.layers = 8;
  other.learning_rate = 0.5;
  other.verbose = true;
  other.groups = 4;
  other.name = "kept";
  Arguments again("try", "tries things");
  again.required("MODEL", "a model", &other.model);
  again.optional("EXTRA", "more", &other.extra);
  again.group("All", {field("layers", &other.layers, "", {.min = 1, .max = 8, .aliases = {"n-layer"}}),
                      field("groups", &other.groups, ""), field("tie", &other.tie, ""),
                      field("learning-rate", &other.learning_rate, ""), field("text", &other.text, ""),
                      field("name", &other.name, ""), field("verbose", &other.verbose, "")});
  EXPECT_TRUE(again.repeat(*arguments_));
  EXPECT_EQ(other.layers, 3);
  EXPECT_THAT(other.text, ElementsAre("c", "d", "e"));
  EXPECT_FALSE(other.tie);
  EXPECT_FALSE(other.verbose);
  EXPECT_EQ(other.model + " " + other.extra, "m x");
  EXPECT_EQ(other.learning_rate, 0.5);
  EXPECT_EQ(other.groups, 4);
  EXPECT_EQ(other.name, "kept");
  EXPECT_TRUE(again.given("tie") && again.asked("tie") && again.configured());
  EXPECT_FALSE(again.given("name"));
}

TEST(ArgumentsListTest, TakesOneOrMore) {
  std::string first;
  std::vector<std::string> rest;
  Arguments arguments("try", "tries things");
  arguments.required("FIRST", "one", &first);
  arguments.one_or_more("DIR", "directories", &rest);
  EXPECT_THAT(help_text(arguments.page(), 80), HasSubstr("headshare try FIRST DIR... [options]"));
  EXPECT_EQ(error_message([&] { arguments.parse({"a"}); }), "DIR is missing: directories");
  Arguments again("try", "tries things");
  again.required("FIRST", "one", &first);
  again.one_or_more("DIR", "directories", &rest);
  EXPECT_TRUE(again.parse({"a", "b", "c", "--", "--d"}));
  EXPECT_EQ(first, "a");
  EXPECT_THAT(rest, ElementsAre("b", "c", "--d"));
}

TEST(ArgumentsClashTest, TwoOptionsOfOneNameAreADefect) {
  int64_t a = 0;
  Arguments arguments("try", "tries");
  arguments.group("One", {field("size", &a, "", {.aliases = {"length"}})});
  EXPECT_THROW(arguments.group("Two", {field("length", &a, "")}), std::logic_error);
  EXPECT_THROW(arguments.group("Two", {field("config", &a, "")}), std::logic_error);
}

}  // namespace
}  // namespace headshare
