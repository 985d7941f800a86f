// These targets read models: our checkpoints, Hugging Face's GPT-2, BERT, ModernBERT, ViT and Llama with its kin, what
// we write for other engines, the shapes of others, the state of a training run.
#include <ATen/ATen.h>

#include "headshare/convert/formats.h"
#include "headshare/convert/hf/shape.h"
#include "headshare/convert/hf/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/train/optimizer.h"
#include "headshare/train/training_state.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

DecoderOptions decoder_options() {
  DecoderOptions options = small_options("mhe_add");
  options.vocabulary = 256;
  return options;
}

Case files_of(const fs::path& folder) {
  Case made;
  for (const auto& entry : fs::directory_iterator(folder)) made[entry.path().filename()] = read_file(entry.path());
  return made;
}

// Makes a vision transformer of images of 4 x 4 pixels.
VisionTransformer small_vision() {
  VisionOptions options;
  options.layers = 1;
  options.attention.d_model = 8;
  options.attention.heads = 2;
  options.image_size = 4;
  options.patch_size = 2;
  options.classes = 2;
  options.images = {.labels = {"cat", "dog"}, .mean = {0.5, 0.5, 0.5}, .deviation = {1, 1, 0.5}};
  VisionTransformer model(resolve(options));
  initialise(*model, 1);
  return model;
}

// Returns what `write` puts into a folder.
Case made_by(const std::function<void(const fs::path&)>& write) {
  const fs::path folder = fs::temp_directory_path() / join_text("headshare-fuzz-seed-", ::getpid());
  fs::create_directories(folder);
  write(folder);
  Case made = files_of(folder);
  fs::remove_all(folder);
  return made;
}

void read_checkpoint(const fs::path& folder) {
  may_refuse([&] { use(static_cast<uint64_t>(measure(read_options(folder)).total_parameters)); });
  may_refuse([&] {
    const LoadedEncoder loaded = load_encoder_model(folder);
    use(static_cast<uint64_t>(loaded.model->options().layers));
  });
  may_refuse([&] { use(static_cast<uint64_t>(load_vision_model(folder).model->options().layers)); });
  const LoadedModel loaded = load_model(folder);
  use(static_cast<uint64_t>(loaded.model->options().layers));
}

// Reads small models only: a configuration alone may ask for all memory, which is refused by how much there is.
void read_foreign(const fs::path& folder) {
  const ForeignModel foreign = find_format("hf").open(folder);
  if (measure(foreign.options).total_parameters > 1 << 20) return;
  use(read_model(foreign).module->parameters().size());
}

// Reads a folder that a format of this name wrote.
void read_written(const std::string& format, const fs::path& folder) {
  const ForeignModel foreign = find_written_format(format)->read_back(folder);
  if (measure(foreign.options).total_parameters > 1 << 20) return;
  use(read_model(foreign).module->parameters().size());
}

Case written_as(const std::string& format) {
  const Decoder model = small_decoder(resolve(small_options("mqa")));
  return made_by([&](const fs::path& to) {
    find_written_format(format)->write({.options = model->options(), .tensors = model_tensors(*model)}, "", to);
  });
}

// Reads what `headshare cost` reads.
void read_shape(const fs::path& folder) {
  const HfShape shape = read_hf_shape(folder);
  use(static_cast<uint64_t>(measure(shape.options).total_parameters));
}

Case llama_config() {
  return {{"config.json",
           R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 100, "hidden_size": 16,
               "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
               "head_dim": 8, "max_position_embeddings": 32, "rope_theta": 5e5, "rms_norm_eps": 1e-5,
               "tie_word_embeddings": false, "hidden_act": "silu", "sliding_window": 8})"}};
}

void read_state(const fs::path& folder) {
  may_refuse([&] { use(static_cast<uint64_t>(read_training_state(folder / "training.json").step)); });
  Decoder model = small_decoder(decoder_options());
  Optimizer optimizer(*model, {});
  optimizer.load(read_tensors(folder / "optimizer.safetensors"), "optimizer.safetensors");
}

Case training_state() {
  return made_by([](const fs::path& folder) {
    Decoder model = small_decoder(decoder_options());
    write_tensors(folder / "optimizer.safetensors", Optimizer(*model, {}).state());
    write_training_state(folder / "training.json", {.step = 3, .tokens = 12, .best_loss = 1.5, .task = {{"epoch", 1}}});
  });
}

}  // namespace

std::vector<Target> targets() {
  at::set_num_threads(1);
  const ByteTokenizer bytes;
  const Case decoder = made_by([&](const fs::path& to) { save_model(to, small_decoder(decoder_options()), &bytes); });
  const Case encoder = made_by([&](const fs::path& to) {
    EncoderOptions options = small_encoder_options("mha");
    options.vocabulary = 256;
    options.task_head = {.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"no", "yes"}};
    save_model(to, small_encoder(options), &bytes);
  });
  const Case gpt2 = made_by([](const fs::path& to) { FakeGpt2().write(to); });
  const Case bert = made_by([](const fs::path& to) { FakeBert().write(to); });
  const Case modernbert = made_by([](const fs::path& to) { FakeModernBert().write(to); });
  const VisionTransformer seeing = small_vision();
  const Case vision = made_by([&](const fs::path& to) { save_model(to, seeing, /*tokenizer=*/nullptr); });
  const Case vit = made_by([&](const fs::path& to) {
    find_written_format("hf")->write({.options = seeing->options(), .tensors = model_tensors(*seeing)}, "", to);
  });
  std::vector<Case> foreign = {gpt2, bert, modernbert, vit};
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3", "gemma"}) {
    foreign.push_back(made_by([&](const fs::path& to) { FakeLlama(type).write(to); }));
  }
  return {{.name = "model", .read = read_checkpoint, .seeds = {decoder, encoder, vision}},
          {.name = "hugging-face", .read = read_foreign, .seeds = foreign},
          {.name = "gguf",
           .read = [](const fs::path& folder) { read_written("gguf", folder); },
           .seeds = {written_as("gguf")}},
          {.name = "ctranslate2",
           .read = [](const fs::path& folder) { read_written("ctranslate2", folder); },
           .seeds = {written_as("ctranslate2")}},
          {.name = "hugging-face-shape", .read = read_shape, .seeds = {llama_config(), gpt2, bert, modernbert, vit}},
          {.name = "training-state", .read = read_state, .seeds = {training_state()}}};
}

}  // namespace headshare::fuzz
