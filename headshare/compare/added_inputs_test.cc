// This test adds a family whose inputs are arrays of floats, with a kind of model of its own: what images, sounds and
// measurements take. The family exists only here and touches no other family.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/check_comparison.h"
#include "headshare/compare/testing.h"
#include "headshare/models/blocks/block_stack.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/count_layers.h"
#include "headshare/ops/linear.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {

// A wave has so many channels at each of its times.
struct WaveOptions : TransformerOptions {
  int64_t channels = 3;
};

Fields fields(WaveOptions& o) {
  Fields list = fields(static_cast<TransformerOptions&>(o));
  list.push_back(field("wave-channels", &o.channels, "numbers at each time", {.min = 1}));
  return list;
}

Fields stored_fields(WaveOptions& o) { return fields(o); }

WaveOptions resolve(WaveOptions o) {
  static_cast<TransformerOptions&>(o) = resolve(static_cast<TransformerOptions>(o));
  return o;
}

namespace {

using testing::HasSubstr;

constexpr int64_t kClasses = 2;
constexpr int64_t kWaves = 8;
constexpr int64_t kTimes = 12;

class WaveReaderImpl : public Layer {
 public:
  explicit WaveReaderImpl(WaveOptions resolved)
      : options_(std::move(resolved)), clock_(std::make_shared<DropoutClock>()) {
    const Init start = Init::normal(options_.init_deviation);
    const int64_t E = options_.attention.d_model;
    input_ = register_module("input", Linear(options_.channels, E, Bias::kYes, start));
    blocks_ = register_module("blocks", BlockStack(options_, clock_));
    output_ = register_module("output", Linear(E, kClasses, Bias::kYes, start));
    attach(*this, clock_);
  }

  // Maps floats [B, T, channels] to logits of classes [B, kClasses].
  Tensor scores(const Tensor& waves) const {
    return output_->forward(blocks_->forward(input_->forward(waves), {}, /*caches=*/nullptr).mean(1));
  }

  const WaveOptions& options() const { return options_; }
  const Attention& attention(size_t layer) const { return blocks_->block(layer)->attention; }
  DropoutClock& clock() const { return *clock_; }
  void set_recompute(bool on) { blocks_->set_recompute(on); }

 private:
  WaveOptions options_;
  std::shared_ptr<DropoutClock> clock_;
  Linear input_{nullptr}, output_{nullptr};
  BlockStack blocks_{nullptr};
};
TORCH_MODULE(WaveReader);

class WaveKind : public ModelKindOf<WaveOptions, WaveReader> {
 public:
  std::string name() const override { return "wave-reader"; }
  std::string what_it_does(const ModelOptions&) const override { return "a wave reader, which tells waves apart"; }
  std::string needed() const override { return "a wave reader is needed here"; }
  int64_t since(const ModelOptions&) const override { return kModelFormatVersion; }
  ModelSize measure(const ModelOptions& resolved) const override {
    return count_layers<WaveReader>(resolved.as<WaveOptions>());
  }
};

}  // namespace

template <>
const ModelKind& kind_of<WaveOptions>() {
  static const WaveKind kind;
  return kind;
}

namespace {

struct WaveTaskOptions {
  int64_t channels = 3;
};

WaveOptions wave_options(const TaskOptions& options) {
  WaveOptions model;
  static_cast<TransformerOptions&>(model) = options.model;
  model.channels = options.own<WaveTaskOptions>().channels;
  model.context = kTimes;
  return resolve(model);
}

// The task's waves are sines with phases and noise of their own; every other row is of the second class, twice as loud.
class WaveTask : public Task {
 public:
  WaveTask(const TaskOptions& options, uint64_t seed, c10::Device device, const TrainingShape& shape)
      : random_(at::detail::createCPUGenerator(seed)), model_(wave_options(options)) {
    prepare(model_, seed, device, shape);
  }

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override { return micro_batches * kWaves; }
  Tensor loss_sum(int64_t) override { return loss_of(waves(random_)); }
  Evaluation evaluate(Part part, const Task::Progress&) override {
    const EvaluationMode evaluating(model());
    const at::NoGradGuard no_grad;
    at::Generator same = at::detail::createCPUGenerator(part == Part::kTest ? 1001 : 1000);
    const Tensor held_out = waves(same);
    const Tensor right = (model_->scores(held_out).argmax(1) == classes()).to(at::kDouble);
    const double accuracy = right.mean().item<double>();
    return {.loss = loss_of(held_out).item<double>() / kWaves,
            .targets = kWaves,
            .scores = {{.name = "accuracy", .value = accuracy, .signature = "accuracy"}},
            .blocks = {accuracy, accuracy}};
  }
  bool has(Part) const override { return true; }
  nlohmann::json state() const override { return nlohmann::json::object(); }
  void restore(const nlohmann::json&, const std::string&) override {}
  void save(const std::string& directory) override { save_model(directory, model_, nullptr); }
  double epochs() const override { return 0; }

  const WaveReader& reader() const { return model_; }

 private:
  static Tensor classes() { return at::arange(kWaves).remainder(kClasses); }

  Tensor waves(at::Generator& random) const {
    const Tensor times = at::arange(kTimes, at::kFloat) * (2 * M_PI / kTimes);
    const Tensor phases = at::rand({kWaves, model_->options().channels}, random) * 2 * M_PI;
    const Tensor waves = (times.view({1, kTimes, 1}) + phases.unsqueeze(1)).sin();
    return waves * (classes() + 1).view({kWaves, 1, 1}) + 0.05 * at::randn(waves.sizes(), random);
  }

  Tensor loss_of(const Tensor& waves) const {
    return at::cross_entropy_loss(model_->scores(waves), classes(), {}, at::Reduction::Sum);
  }

  at::Generator random_;
  WaveReader model_;
};

class WaveExperiment : public Experiment {
 public:
  Subject subject() const override {
    return {.name = "waves",
            .sentence = "Tell waves apart.",
            .data = "sines",
            .measure = "accuracy",
            .direction = Direction::kHigherIsBetter,
            .block = "halves",
            .has_test_part = true};
  }
  bool has(Part) const override { return true; }
  ModelOptions model(const TaskOptions& options) const override { return wave_options(options); }
  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<WaveTask>(options, seed, device, shape);
    const WaveReader reader = task->reader();
    return {std::move(task), reader->options(), reader.ptr()};
  }
  void share(const fs::path&, TaskOptions*) const override {}
};

class WaveFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {"waves"}; }
  std::string learns() const override { return "to tell waves apart"; }
  std::string heading() const override { return "Waves"; }
  Fields fields(TaskOptions& options) const override {
    return {field("wave-channels", &options.own<WaveTaskOptions>().channels, "numbers at each time", {.min = 1})};
  }
  void set_defaults(const TaskOptions&, TaskOptions* options, TrainOptions*) const override {
    options->model.attention = {.d_model = 16, .heads = 2};
    options->model.layers = 1;
    options->model.norms = NormPlacement::kAfter;
    options->model.positions = PositionKind::kNone;
    options->batch_size = kWaves;
  }
  void set_preset(Preset, TaskOptions*, TrainOptions* train) const override {
    train->steps = 150;
    train->schedule.learning_rate = 0.01;
  }
  void check(const TaskOptions&, const TaskOptions&) const override {}
  ModelOptions likely_model(const TaskOptions& options) const override { return wave_options(options); }
  std::unique_ptr<Experiment> open(const TaskOptions&, const Progress&) const override {
    return std::make_unique<WaveExperiment>();
  }
};

class AddedInputsTest : public testing::Test {
 protected:
  static ComparisonOptions waves() {
    ComparisonOptions options = preset_options("waves", Preset::kQuick);
    options.schemes = {"mha", "mhe_mul"};
    options.train.evaluate_every = 50;
    return options;
  }

  const WaveFamily family_;
  const AddedFamily added_family_{family_};
  const AddedModelKind added_kind_{kind_of<WaveOptions>()};
};

TEST_F(AddedInputsTest, AreLearntAndComparedAndTheirModelsLoad) {
  const TemporaryDirectory home;
  ComparisonOptions options = waves();
  Fields list = fields(options);
  set_field(list, "wave-channels", "2", "--wave-channels");
  check_comparison(options);
  const auto experiment = open_experiment(options);
  Observer silent;
  for (const CellPlan& plan : plan_cells(options, *experiment)) {
    const CellPlan read = plan_from_json(to_json(plan), "plan.json");
    const Cell cell = run_cell(read, *experiment, place_in(home.path(), read), at::kCPU, silent, kNeverStop);
    EXPECT_EQ(cell.options.at("wave-channels"), 2);
    EXPECT_EQ(cell.quality, 1) << plan.key.variant;  // every wave is classified correctly
    EXPECT_GT(cell.attention_memory_bytes, 0);
    EXPECT_EQ(cell.decoding_tokens_per_second, 0);

    const AnyModel loaded = load_any_model(home.path() / cell.model);
    EXPECT_EQ(loaded.options.kind().name(), "wave-reader");
    EXPECT_EQ(loaded.options.as<WaveOptions>().channels, 2);
    EXPECT_EQ(measure(loaded.options), cell.size);
    EXPECT_EQ(cell.size.cache_bytes_per_token, 0);
    int64_t parameters = 0;
    for (const auto& [name, tensor] : model_tensors(*loaded.module)) parameters += tensor.numel();
    EXPECT_EQ(cell.size.total_parameters, parameters);
    const Trial trial = open_trial(*experiment, read.options, at::kCPU);
    load_tensors(*trial.model, model_tensors(*loaded.module), "the loaded model");
    EXPECT_EQ(trial.task->evaluate(Part::kTest, {}).loss, cell.test_loss);
  }
}

TEST_F(AddedInputsTest, AreNoText) {
  ComparisonOptions options = waves();
  options.own<TextOptions>().data.text = {"book.txt"};
  EXPECT_THAT(error_message([&] { check_comparison(options); }),
              HasSubstr("--text is about text, which --task waves does not read"));
}

TEST_F(AddedInputsTest, AreReadByTheirOwnKindAlone) {
  const TemporaryDirectory home;
  const fs::path path = home.path() / "model";
  WaveReader model(wave_options(waves()));
  initialise(*model, 1);
  save_model(path, model, nullptr);
  EXPECT_THAT(error_message([&] { load_decoder(path); }),
              HasSubstr("is a wave reader, which tells waves apart; a decoder language model is needed here"));
}

TEST(AddedKindTest, IsKnownOnlyWhileItIsAdded) {
  const TemporaryDirectory home;
  const fs::path path = home.path() / "model";
  WaveReader model(resolve(WaveOptions()));
  initialise(*model, 1);
  save_model(path, model, nullptr);
  EXPECT_THAT(error_message([&] { read_options(path); }),
              HasSubstr("the kind of model is \"wave-reader\"; this headshare knows \"encoder\","));
  const AddedModelKind added(kind_of<WaveOptions>());
  EXPECT_EQ(read_options(path).kind().name(), "wave-reader");
  EXPECT_THAT(error_message([] { AddedModelKind(kind_of<WaveOptions>()); }), HasSubstr("wave-reader already"));
  const WaveKind other;
  EXPECT_THAT(error_message([&] { AddedModelKind{other}; }), HasSubstr("not the one that kind_of() names"));
}

}  // namespace
}  // namespace headshare
