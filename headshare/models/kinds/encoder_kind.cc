// Encoders see a whole text at once.
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/models/count_layers.h"
#include "headshare/models/encoder.h"
#include "headshare/models/model_kind.h"

namespace headshare {
namespace {

constexpr const char* kTaskHead = "task_head";
constexpr int64_t kSince = 2;
constexpr int64_t kTaskHeadsSince = 3;
constexpr int64_t kLettersSince = 8;

Fields head_fields(TaskHeadOptions& o) {
  return {field("kind", &o.kind, "what the head reads", task_head_names()),
          field("outputs", &o.outputs, "numbers it answers with", {.min = 1, .max = 1 << 20})};
}

// Labels are any text: a list field would part them at commas.
TaskHeadOptions read_head(nlohmann::json object, const std::string& where) {
  TaskHeadOptions head;
  HS_CHECK(object.is_object() && object.contains("labels") && object["labels"].is_array(), where,
           " has no list of labels: it is damaged");
  for (const nlohmann::json& label : object["labels"]) {
    HS_CHECK(label.is_string(), where, ": a label is ", brief_json(label), ", not a text");
    head.labels.push_back(label.get<std::string>());
  }
  object.erase("labels");
  Fields list = head_fields(head);
  from_json(list, object, where);
  return head;
}

class EncoderKind : public ModelKindOf<EncoderOptions, Encoder> {
 public:
  std::string name() const override { return "encoder"; }
  std::string title(const ModelOptions& options) const override {
    const auto& encoder = options.as<EncoderOptions>();
    return encoder.three_way_head ? "three-way encoder" : encoder.masked_head ? "masked-LM encoder" : "encoder";
  }
  std::string what_it_does(const ModelOptions& options) const override {
    const auto& encoder = options.as<EncoderOptions>();
    if (encoder.task_head.kind != TaskHeadKind::kNone) {
      return "a fine-tuned encoder, which answers for examples (`headshare predict`)";
    }
    return encoder.three_way_head ? "an encoder, which tells replaced words (`headshare evaluate`)"
                                  : "an encoder, which fills masked tokens (`headshare fill`)";
  }
  std::string needed() const override { return "an encoder is needed here, as `headshare train --task mlm` makes it"; }
  int64_t since(const ModelOptions& options) const override {
    const auto& encoder = options.as<EncoderOptions>();
    if (reads_letters(encoder.embedding.kind)) return kLettersSince;
    return encoder.task_head.kind == TaskHeadKind::kNone ? kSince : kTaskHeadsSince;
  }
  bool hashes_words(const ModelOptions& options) const override {
    return is_hashed(options.as<EncoderOptions>().embedding);
  }

  Fields own_fields(ModelOptions& options) const override {
    Fields list = {norms_field(&options.common().norms)};
    append(&list, headshare::fields(static_cast<EncoderParts&>(options.as<EncoderOptions>())));
    return list;
  }

  ModelOptions costed() const override {
    EncoderOptions options;
    options.masked_head = true;
    return options;
  }
  // Hashed embeddings have no vocabulary to predict tokens of, so that the three-way head takes the masked-LM head's
  // place.
  ModelOptions trainable(const ModelOptions& options) const override {
    EncoderOptions encoder = options.as<EncoderOptions>();
    if (is_hashed(encoder.embedding) && encoder.masked_head) {
      encoder.masked_head = false;
      encoder.three_way_head = true;
    }
    return encoder;
  }

  void note_more(const ModelOptions& options, nlohmann::json* config) const override {
    TaskHeadOptions head = options.as<EncoderOptions>().task_head;
    if (head.kind == TaskHeadKind::kNone) return;
    (*config)[kTaskHead] = to_json(head_fields(head));
    (*config)[kTaskHead]["labels"] = head.labels;
  }
  void take_more(const nlohmann::json& config, const std::string& where, ModelOptions* options) const override {
    if (!config.contains(kTaskHead)) return;
    options->as<EncoderOptions>().task_head = read_head(config[kTaskHead], where + ": task_head");
  }

  ModelSize measure(const ModelOptions& resolved) const override {
    const auto& options = resolved.as<EncoderOptions>();
    ModelSize size = count_layers<Encoder>(options);
    size.embedding_parameters = count_embedding(options.embedding, options);
    return size;
  }

  // hash-pool keeps a row for each chunk of each token's signature, for the gradient of the weights they are summed
  // with.
  double lookup_bytes(const ModelOptions& resolved, const TrainingShape& shape) const override {
    const auto& o = resolved.as<EncoderOptions>();
    if (o.embedding.kind != TokenEmbeddingKind::kHashPool) return 0;
    const int64_t chunks = (o.embedding.bits + o.embedding.chunk_bits - 1) / o.embedding.chunk_bits;
    const double tokens = static_cast<double>(shape.batch) * static_cast<double>(shape.length);
    return static_cast<double>(kBytesOfFloat) * tokens * static_cast<double>(chunks * embedding_width(o));
  }
};

}  // namespace

template <>
const ModelKind& kind_of<EncoderOptions>() {
  static const EncoderKind kind;
  return kind;
}

}  // namespace headshare
