// SquadJob fine-tunes on SQuAD.
#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/data/hash.h"
#include "headshare/tasks/finetune/jobs.h"

namespace headshare {
namespace {

constexpr int64_t kUsualLength = 384;

class SquadJob : public FineTuneJob {
 public:
  SquadJob(const JobOptions& options, const LoadedEncoder& trained)
      : FineTuneJob(kSquadTask),
        options_(options.tuning),
        answers_(options.answers),
        model_(trained.model->options()),
        weights_(model_tensors(*trained.model)),
        rows_(*trained.tokenizer, options.tuning.row_length(model_, kUsualLength)) {
    // The teacher is opened first: its errors come before the data is read, which takes minutes.
    data_.teacher = open_tuned_teacher(options.distillation, {.task = kSquadTask,
                                                              .head = head(),
                                                              .tokenizer = *trained.tokenizer,
                                                              .length = rows_.length(),
                                                              .d_model = model_.attention.d_model});
    SquadData train = read_squad(options.files.train);
    check_can_be_scored(train);  // questions without an answer would be taught to have none
    const bool held = options.files.validation.empty();
    SquadData validation = held ? held_back(&train) : read_squad(options.files.validation);
    check_can_be_scored(validation);
    const size_t all = validation.questions.size();
    keep_some(options_.train_examples, &train);
    keep_some(options_.validation_examples, &validation);
    judged_by_a_part_ = held || validation.questions.size() < all;
    for (const SquadData* part : {&train, &validation}) {
      notes_.push_back(join_text(part == &train ? "training on " : "validating on ", part->questions.size(),
                                 " questions of ", part->source));
    }
    data_.train = make_windows(std::move(train), rows_, options.windows, /*teach=*/true);
    data_.validation = make_windows(std::move(validation), rows_, options.windows, /*teach=*/false);
    data_.padding = rows_.padding();
    data_.tokenizer = trained.tokenizer;
    data_.note = {
        .task = kSquadTask, .max_length = rows_.length(), .windows = options.windows, .answers = options.answers};
    for (const SquadSet* set : {&data_.train, &data_.validation}) {
      notes_.insert(notes_.end(), set->notes.begin(), set->notes.end());
    }
  }

  int64_t examples() const override { return static_cast<int64_t>(data_.train.windows.size()); }
  int64_t validation_examples() const override { return static_cast<int64_t>(data_.validation.data.questions.size()); }

  std::string edition() const override { return data_.validation.data.rules == SquadRules::kV2 ? "v2.0" : "v1.1"; }

  double full_goal() const override { return 100; }

  std::string fingerprint() const override {
    ContentHash hash;
    for (const SquadSet* set : {&data_.train, &data_.validation}) {
      for (const SquadWindow& window : set->windows) {
        hash.update(window.row.ids.data(), window.row.ids.size() * sizeof(int64_t));
        hash.update(join_text(window.start, " ", window.end, "\n"));
      }
    }
    hash.update(squad_file(data_.validation.data));
    return hash.hex();
  }

  void check_start(c10::Device device, TrainingShape shape) const override {
    check_step_fits(starting_options(model_, head(), options_), options_, rows_.length(), device, shape, data_.teacher);
  }

  std::unique_ptr<Task> start(uint64_t seed, c10::Device device, TrainingShape shape) override {
    check_start(device, shape);
    if (!data_.teacher.model.is_empty()) data_.teacher.model->to(device);
    return std::make_unique<SquadTask>(data_, options_, answers_,
                                       starting_model(model_, weights_, head(), options_, seed), seed, device, shape);
  }

  std::vector<PartScores> judge(Task& task, const fs::path& directory, const Task::Progress& progress) override {
    auto& squad = dynamic_cast<SquadTask&>(task);
    const SquadData& data = data_.validation.data;
    const SquadAnswers answers = squad.answers(data_.validation, progress);
    const SquadPredictions predictions = to_predictions(data, answers);
    write_answers(data, answers, predictions, directory);
    if (judged_by_a_part_) write_file(directory / "validation-gold.json", squad_file(data));
    const SquadScores scores = score_squad(gold_answers(data), predictions, data.rules);
    return {{.part = "validation",
             .scores = to_scores(scores),
             .goal = squad_goal(scores),
             .examples = validation_examples()}};
  }

 private:
  static TaskHeadOptions head() { return {.kind = TaskHeadKind::kToken, .outputs = 2}; }

  SquadData held_back(SquadData* train) const {
    HS_CHECK(options_.validation_fraction > 0, "squad needs a validation part: name one with --validation, or hold ",
             "articles of the training file back with --validation-fraction");
    return split_off_articles(options_.validation_fraction, train);
  }

  // Writes predictions and null odds as the official scorers and `headshare score squad` read them, and the n best.
  static void write_answers(const SquadData& data, const SquadAnswers& answers, const SquadPredictions& predictions,
                            const fs::path& directory) {
    nlohmann::ordered_json best = nlohmann::json::object();
    nlohmann::ordered_json odds = nlohmann::json::object();
    nlohmann::ordered_json all = nlohmann::json::object();
    for (size_t i = 0; i < data.questions.size(); ++i) {
      const std::string& id = data.questions[i].id;
      best[id] = predictions.answers.at(id);
      odds[id] = answers.null_odds[i];
      all[id] = nlohmann::json::array();
      for (const AnswerCandidate& one : answers.candidates[i]) {
        all[id].push_back({{"text", one.text}, {"score", one.score}});
      }
    }
    write_file(directory / "validation.json", json_text(best, 1) + "\n");
    write_file(directory / "validation-n-best.json", json_text(all, 1) + "\n");
    if (predictions.null_odds) write_file(directory / "validation-null-odds.json", json_text(odds, 1) + "\n");
  }

  FineTuneOptions options_;
  AnswerOptions answers_;
  EncoderOptions model_;
  NamedTensors weights_;
  RowEncoder rows_;
  SquadTrainingData data_;
  bool judged_by_a_part_ = false;  // the scored questions are a part of a file, so the file is no gold for them
};

}  // namespace

std::unique_ptr<FineTuneJob> open_squad_job(const JobOptions& options, const LoadedEncoder& trained) {
  HS_CHECK(!options.files.train.empty(), "squad needs a training file: --train train-v1.1.json");
  HS_CHECK(options.files.test.empty(), "squad has no labelled test part; leave --test out");
  return std::make_unique<SquadJob>(options, trained);
}

}  // namespace headshare
