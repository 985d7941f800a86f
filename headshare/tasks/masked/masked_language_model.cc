#include "headshare/tasks/masked/masked_language_model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/draw_batches.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {

BatchOptions window_batches(const LanguageModelOptions& language, const TokenData& tokens, uint64_t seed) {
  const int64_t context = language.model.context;
  const int64_t room = Masker::room(context);
  HS_CHECK(
      tokens.size() > 1, "the training text has ", tokens.size(),
      " tokens; give more text, with blanks between words: letters without one are a single word (of more than 100 "
      "characters WordPiece knows none)");
  HS_CHECK(tokens.size() > room, "the training text has ", tokens.size(), " tokens, but a window of --context ",
           context, " holds ", room,
           " between [CLS] and [SEP], and one more is needed; give more text, a larger part of it, or ",
           "a smaller --context");
  return {.batch_size = language.batch_size, .context = room, .order = language.batch_order, .seed = seed};
}

Fields fields(MaskedOptions& o) {
  Fields list = {field("bert", &o.bert,
                       "BERT's own form: norms after each sum and learned positions, where --norms and --positions say "
                       "nothing else; by default norms stand before each part and positions are rotary, which learns "
                       "much sooner")};
  append(&list, fields(o.encoder));
  append(&list, fields(o.masking));
  list.push_back(field("pseudo-tokens", &o.pseudo_tokens,
                       "tokens of the test part that are masked one by one for the pseudo-perplexity; 0: none",
                       {.min = 0}));
  append(&list, fields(o.corruption));
  return list;
}

void set_masked_defaults(TaskOptions* options) {
  const bool bert = options->own<MaskedOptions>().bert;
  options->model = EncoderOptions();
  options->model.positions = bert ? PositionKind::kLearned : PositionKind::kRotary;
  options->model.norms = bert ? NormPlacement::kAfter : NormPlacement::kBefore;
  options->own<TextOptions>().tokenizer.kind = TokenizerKind::kWordPiece;
}

EncoderOptions encoder_options(const TransformerOptions& model, const MaskedOptions& masked, EncoderTask task) {
  Masker::room(model.context);  // throws Error when there is none
  return encoder_with_head(model, masked.encoder, task);
}

MaskedLanguageModelTask::MaskedLanguageModelTask(const LanguageModelOptions& language, const MaskedOptions& masked,
                                                 const LanguageData& data, uint64_t seed, c10::Device device,
                                                 TrainingShape shape)
    : TextTask(data, window_batches(language, data.splits.train, seed)),
      language_(language),
      masked_(masked),
      masker_(*data_.tokenizer, masked.masking, language.tokenizer_path),
      mask_key_(stream_key(seed, "masks")),
      unigram_entropy_(headshare::unigram_entropy(data_.splits.train, masker_, data_.tokenizer->vocabulary_size())) {
  language_.model.vocabulary = model_vocabulary(language, *data_.tokenizer);
  const EncoderOptions resolved = encoder_options(language_.model, masked, EncoderTask::kMasked);
  shape.batch = language.batch_size;
  shape.length = resolved.context;
  shape.scored = masked.masking.rate;
  evaluation_batch_ = evaluation_batch(resolved, shape);
  check_training_memory(training_bytes(resolved, shape) + teacher_bytes(language.distillation, shape), device, shape,
                        "use a smaller --batch-size, --context or --d-model");
  for (const Part part : {Part::kValidation, Part::kTest}) {
    if (has(part)) scored(part);  // throws now rather than after a tenth of the training
  }
  if (language.distillation.given()) {
    teacher_ = load_teacher(language.distillation, resolved, *data_.tokenizer, device);
  }
  model_ = Encoder(resolved);
  prepare(model_, seed, device, shape);
}

WindowBatch MaskedLanguageModelTask::next_batch() {
  const uint64_t key = stream_key(mask_key_, static_cast<uint64_t>(batcher_.state().batches));
  return changed_windows(batcher_.next(), masker_, key, [this](int64_t row, Philox& random, WindowBatch* batch) {
    masker_.mask_row(row, random, batch);
  });
}

int64_t MaskedLanguageModelTask::draw(int64_t micro_batches) {
  return draw_batches(micro_batches, &drawn_, [this] { return next_batch(); });
}

Tensor MaskedLanguageModelTask::loss_sum(int64_t index) {
  const WindowBatch& batch = drawn_.at(static_cast<size_t>(index));
  const EncoderInput input = to_input(batch, model_->device());
  const Tensor targets = targets_of(batch, model_->device());
  if (!language_.distillation.teaches()) return model_->loss(input, targets).sum;
  const SummedLoss loss =
      model_->loss(input, targets, teacher_->teacher_output(input, targets), language_.distillation.learning);
  plain_ = loss.plain.item<double>();
  return loss.sum;
}

std::optional<Evaluation> MaskedLanguageModelTask::evaluate_teacher(const Task::Progress& progress) {
  if (teacher_.is_empty()) return std::nullopt;
  return evaluate(teacher_, Part::kValidation, progress);
}

std::string MaskedLanguageModelTask::plateau_advice() const {
  const EncoderOptions& model = model_->options();
  const bool leaves = model.norms != NormPlacement::kAfter && model.positions != PositionKind::kLearned;
  if (leaves) return "train with more --steps or a higher --learning-rate";
  return "models with --norms pre --positions rotary (the default form, without --bert) leave it within hundreds of "
         "steps";
}

MaskedSetup MaskedLanguageModelTask::setup() const {
  return {.context = model_->options().context, .batch_size = evaluation_batch_};
}

TokenData MaskedLanguageModelTask::scored(Part part) const {
  const TokenData tokens = part_to_score(data_, part, language_.evaluation_tokens);
  check_askable(tokens, masker_, part_name(part) + " text");
  return tokens;
}

Evaluation MaskedLanguageModelTask::evaluate(const Encoder& model, Part part, const Task::Progress& progress) const {
  const TokenData tokens = scored(part);
  MaskedSetup own = setup();
  if (!teacher_.is_empty() && model.ptr() == teacher_.ptr()) {  // the teacher reads as many windows at once as fit it
    own.batch_size = evaluation_batch(
        model->options(), {.batch = language_.batch_size, .length = own.context, .scored = masked_.masking.rate});
  }
  const WindowLosses losses = evaluate_masked(model, tokens, masker_, own, progress);
  Evaluation result{.loss = losses.sums.nats / static_cast<double>(losses.sums.tokens), .targets = losses.sums.tokens};
  result.blocks = losses.window_means;
  result.block_targets = losses.window_targets;
  const std::string tokenizer = data_.tokenizer->kind();
  result.scores.push_back(masked_perplexity(losses.sums, tokenizer, setup(), masked_.masking));
  if (part != Part::kTest) return result;
  const std::optional<LanguageSums> sums =
      pseudo_likelihood(model, tokens, masked_.pseudo_tokens, masker_, setup(), progress);
  if (sums) result.scores.push_back(pseudo_perplexity(*sums, tokenizer, setup()));
  return result;
}

void MaskedLanguageModelTask::save(const std::string& directory) {
  save_model(directory, model_, data_.tokenizer.get());
}

}  // namespace headshare
