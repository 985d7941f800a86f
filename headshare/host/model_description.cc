#include "headshare/host/model_description.h"

#include "headshare/base/json/json_input.h"
#include "headshare/data/safetensors.h"
#include "headshare/models/size.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

// Returns the step at which a training checkpoint was taken; nothing for another checkpoint.
std::optional<int64_t> training_step(const fs::path& directory) {
  const fs::path path = directory / "training.json";
  if (!fs::exists(path)) return std::nullopt;
  return json_count(json_or_discarded(read_file(path)), "step");
}

std::optional<TaskHeadDescription> describe_head(const TaskHeadOptions& head) {
  if (head.kind == TaskHeadKind::kNone) return std::nullopt;
  return TaskHeadDescription{enum_name(task_head_names(), head.kind), head.outputs, head.labels};
}

std::optional<TaskHeadDescription> describe_head(const VisionOptions& vision) {
  if (vision.classes == 0) return std::nullopt;
  const bool mean = vision.pooling == ImagePooling::kMean;
  return TaskHeadDescription{mean ? "the mean of the patches" : "the class token", vision.classes,
                             vision.images.labels};
}

std::optional<TaskHeadDescription> describe_head(const ModelOptions& model) {
  if (const auto* encoder = model.find<EncoderOptions>()) return describe_head(encoder->task_head);
  if (const auto* vision = model.find<VisionOptions>()) return describe_head(*vision);
  return std::nullopt;
}

// Lists the verbs that read images: most verbs read texts, and say so only when they are called.
std::vector<std::string> verbs_of(const ModelOptions& model) {
  const auto* vision = model.find<VisionOptions>();
  if (vision == nullptr) return {};
  std::vector<std::string> verbs = {"finetune MODEL --images DIR", "analyze MODEL --images FILE", "convert MODEL OUT"};
  if (vision->classes > 0) verbs.insert(verbs.begin(), {"predict MODEL IMAGES", "evaluate MODEL --images DIR"});
  return verbs;
}

std::optional<TokenizerDescription> describe_tokenizer(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  const std::shared_ptr<Tokenizer> tokenizer = load_tokenizer(path);
  TokenizerDescription description{.kind = tokenizer->kind(),
                                   .vocabulary_size = {},
                                   .lossless = tokenizer->lossless(),
                                   .end_of_text = tokenizer->special(SpecialToken::kEndOfText).has_value()};
  if (tokenizer->words() == nullptr) description.vocabulary_size = tokenizer->vocabulary_size();
  return description;
}

nlohmann::json options_that_matter(const ModelOptions& model) {
  nlohmann::json options = stored_option_values(model);
  const auto* encoder = model.find<EncoderOptions>();
  if (encoder == nullptr) return options;
  std::vector<std::string> idle = idle_fields(encoder->embedding.kind);
  // Without a table there is no vocabulary to give logits for.
  if (encoder->embedding.kind != TokenEmbeddingKind::kTable) idle.insert(idle.end(), {"vocabulary", "tie-embeddings"});
  for (const std::string& name : idle) options.erase(name);
  return options;
}

Json to_json(const TokenizerDescription& tokenizer) {
  return {{"kind", tokenizer.kind},
          {"vocabulary_size", tokenizer.vocabulary_size ? Json(*tokenizer.vocabulary_size) : Json()},
          {"lossless", tokenizer.lossless},
          {"end_of_text", tokenizer.end_of_text}};
}

}  // namespace

ModelDescription describe_checkpoint(const fs::path& directory, const ModelOptions& model) {
  check_weights(directory, model);
  return {.path = directory,
          .kind = model.kind().name(),
          .weights_bytes = fs::file_size(directory / "model.safetensors"),
          .tensors = SafetensorsFile(directory / "model.safetensors").tensors().size(),
          .size = measure(model),
          .keeps_cache = model.kind().keeps_cache(),
          .reads_a_source = model.kind().reads_source(),
          .tokenizer = describe_tokenizer(directory / "tokenizer.json"),
          .source_tokenizer = describe_tokenizer(directory / "source_tokenizer.json"),
          .step = training_step(directory),
          .task_head = describe_head(model),
          .verbs = verbs_of(model),
          .options = options_that_matter(model)};
}

Json to_json(const ModelDescription& model) {
  Json report = {{"path", model.path.string()},
                 {"kind", model.kind},
                 {"weights_bytes", model.weights_bytes},
                 {"tensors", model.tensors},
                 {"attention_parameters", model.size.attention_parameters},
                 {"attention_parameters_effective", model.size.attention_parameters_effective},
                 {"embedding_parameters", model.size.embedding_parameters},
                 {"total_parameters", model.size.total_parameters}};
  if (model.keeps_cache) {
    report["kv_cache_elements_per_token"] = model.size.cache_elements_per_token;
    report["kv_cache_bytes_per_token"] = model.size.cache_bytes_per_token;
  }
  if (model.reads_a_source) report["source_cache_bytes_per_token"] = model.size.source_cache_bytes_per_token;
  if (model.tokenizer) report["tokenizer"] = to_json(*model.tokenizer);
  if (model.source_tokenizer) report["source_tokenizer"] = to_json(*model.source_tokenizer);
  if (model.step) report["step"] = *model.step;
  if (const auto& head = model.task_head) {
    report["task_head"] = {{"reads", head->reads}, {"outputs", head->outputs}, {"labels", head->labels}};
  }
  if (!model.verbs.empty()) report["verbs"] = model.verbs;
  report["options"] = model.options;
  return report;
}

}  // namespace headshare
