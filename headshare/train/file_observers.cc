#include "headshare/train/file_observers.h"

#include "headshare/train/jsonl.h"
#include "headshare/train/tensorboard.h"

namespace headshare {
namespace {

class JsonlObserver : public Observer {
 public:
  explicit JsonlObserver(JsonlWriter writer) : writer_(std::move(writer)) {}

  void on_step(const StepReport& r) override {
    nlohmann::json line = {{"event", "step"},
                           {"step", r.step},
                           {"loss", r.loss},
                           {"learning_rate", r.learning_rate},
                           {"gradient_norm", r.gradient_norm},
                           {"tokens", r.tokens},
                           {"tokens_per_second", r.tokens_per_second},
                           {"epochs", r.epochs},
                           {"seconds", r.seconds}};
    if (r.plain_loss) line["plain_loss"] = *r.plain_loss;
    writer_.write(line);
  }

  void on_teacher(const Evaluation& teacher) override {
    nlohmann::json line = {{"event", "teacher"}, {"step", 0}, {"loss", teacher.loss}, {"targets", teacher.targets}};
    for (const Score& score : teacher.scores) line[score.name] = score.value;
    writer_.write(line);
  }

  void on_evaluation(const EvaluationReport& r) override {
    nlohmann::json line = {{"event", "evaluation"},           {"step", r.step}, {"loss", r.evaluation.loss},
                           {"targets", r.evaluation.targets}, {"best", r.best}, {"seconds", r.seconds}};
    for (const Score& score : r.evaluation.scores) line[score.name] = score.value;
    if (r.recovered) line["recovered"] = *r.recovered;
    if (r.averaged) line[kRepeated] = true;
    writer_.write(line);
  }

  void flush() override { writer_.sync(); }

 private:
  JsonlWriter writer_;
};

class TensorBoardObserver : public Observer {
 public:
  TensorBoardObserver(const fs::path& directory, std::optional<int64_t> resumed_after)
      : writer_(directory, resumed_after) {}

  void on_step(const StepReport& r) override {
    std::vector<std::pair<std::string, double>> values = {{"train/loss", r.loss},
                                                          {"train/learning_rate", r.learning_rate},
                                                          {"train/gradient_norm", r.gradient_norm},
                                                          {"train/tokens_per_second", r.tokens_per_second}};
    if (r.plain_loss) values.emplace_back("train/plain_loss", *r.plain_loss);
    writer_.scalars(r.step, values);
  }

  void on_evaluation(const EvaluationReport& r) override {
    std::vector<std::pair<std::string, double>> values = {{"validation/loss", r.evaluation.loss}};
    for (const Score& score : r.evaluation.scores) values.emplace_back("validation/" + score.name, score.value);
    if (r.recovered) values.emplace_back("validation/recovered", *r.recovered);
    writer_.scalars(r.step, values);
  }

  void flush() override { writer_.sync(); }

 private:
  TensorBoardWriter writer_;
};

}  // namespace

std::unique_ptr<Observer> make_jsonl_observer(const fs::path& path, std::optional<int64_t> resumed_after) {
  return std::make_unique<JsonlObserver>(resumed_after ? JsonlWriter::resume(path, *resumed_after) : JsonlWriter(path));
}

std::unique_ptr<Observer> make_tensorboard_observer(const fs::path& directory, std::optional<int64_t> resumed_after) {
  return std::make_unique<TensorBoardObserver>(directory, resumed_after);
}

}  // namespace headshare
