// A fine-tuned model answers new rows, or new questions about texts.
#pragma once

#include <string>
#include <vector>

#include "headshare/models/checkpoint.h"
#include "headshare/tasks/finetune/asking.h"
#include "headshare/tasks/finetune/task_note.h"

namespace headshare {

// PredictColumns tell where the rows of a file are; what is "" is as in the model's own training file.
struct PredictColumns {
  std::string text = {};
  std::string pair = {};
  std::string label = {};
  TableFormat format = TableFormat::kByName;
  bool score = true;  // false: labels are not looked at
};

Fields fields(PredictColumns& columns);

// A Prediction is what the model says of one row.
struct Prediction {
  double answer = 0;                       // a class, a number, or the place of a choice, as in Answers
  std::vector<double> probabilities = {};  // of each class or choice, their sum is 1; of numbers none
};

// A TunedEncoder is a fine-tuned encoder and what it was made for.
struct TunedEncoder {
  LoadedEncoder encoder;
  TaskNote note;

  bool answers_questions() const { return note.task == kSquadTask; }  // about texts: SquadPredictor; else Predictor
};

// Loads a checkpoint, a run directory of `finetune`, or its --out where that kept one model, on `device`. Throws Error
// as load_encoder_model, read_task_note and find_tuned_model do.
TunedEncoder open_tuned(const fs::path& path, c10::Device device);

class Predictor {
 public:
  // Throws Error where head and note do not belong together.
  explicit Predictor(TunedEncoder model);

  // Reads rows as `finetune` does: those of a task of GLUE or SuperGLUE from a file of its form; where columns are
  // named, from any table with texts. Throws Error as the readers do.
  QuestionSet read(const std::string& file, const PredictColumns& columns);

  // Returns one prediction a question, in their order. The same set gives the same answers that `finetune` wrote.
  std::vector<Prediction> predict(const QuestionSet& set, const Task::Progress& progress) const;

  // Returns the answer as files have it: a label, a number with every digit, a choice.
  std::string answer_text(const Question& question, double answer) const;

  // Returns the scores of predictions for a labelled set.
  std::vector<Score> score(const QuestionSet& set, const std::vector<Prediction>& predictions) const;

  const QuestionKind& kind() const { return kind_; }
  const fs::path& directory() const { return model_.encoder.directory; }

 private:
  TunedEncoder model_;
  QuestionKind kind_;
  RowEncoder rows_;
};

class SquadPredictor {
 public:
  // Throws Error where head and note do not belong together.
  explicit SquadPredictor(TunedEncoder model);

  // Reads the questions of a file of SQuAD's form, with answers or without.
  SquadSet read(const std::string& file);

  // Returns the answers; the same set gives the same answers that `finetune` wrote.
  SquadAnswers predict(const SquadSet& set, const Task::Progress& progress) const;

 private:
  TunedEncoder model_;
  RowEncoder rows_;
};

// Finds the directory of the one model that `path` stands for: a checkpoint, a run, or the --out of a fine-tuning that
// kept one model. Throws Error with the models to choose from where it kept several.
fs::path find_tuned_model(const fs::path& path);

}  // namespace headshare
