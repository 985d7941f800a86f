#include "headshare/cli/convert_scheme.h"

#include <ATen/ATen.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/cli/args.h"
#include "headshare/cli/exit_codes.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/model_input.h"
#include "headshare/cli/progress.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/models/size.h"

namespace headshare {

Fields fields(SharingOptions& o) {
  WidthChoice& width = o.compression.width;
  DecompositionOptions& decomposition = o.compression.decomposition;
  return {
      field("key-width", &width.key_width, "shared key width of every layer; auto: by --max-error or --max-parameters",
            {.min = 1, .max = 1 << 20}),
      field("max-error", &width.max_error,
            "relative error of a layer's scores that is allowed: the narrowest layers within it", {.min = 0, .max = 1}),
      field("max-parameters", &width.max_parameters,
            "parameters the model may have: widths grow step by step where errors fall most", {.min = 1}),
      field("sample-text", &o.sample_text,
            "text like what the model reads: layers are made good on it, and their change there is shown"),
      field("sample-tokens", &o.sample_tokens, "tokens of the sample text to use", {.min = 1, .max = 1 << 30}),
      field("iterations", &decomposition.iterations, "of each layer's decomposition, at most",
            {.min = 0, .max = 1 << 20}),
      field("tolerance", &decomposition.tolerance, "stop when ten iterations lower the error by less than this share",
            {.min = 0, .max = 1}),
      field("restarts", &decomposition.restarts, "further tries from random starts; the best is kept",
            {.min = 0, .max = 1000}),
      field("seed", &decomposition.seed, "of the random starts", {.min = 0}),
      field("json", &o.json, "print one JSON object, with every layer's error after each iteration"),
  };
}

std::vector<std::string> sharing_schemes() { return {"collaborative"}; }

namespace {

void check_options(const SharingOptions& o) {
  const WidthChoice& width = o.compression.width;
  const int given = static_cast<int>(width.key_width.has_value()) + static_cast<int>(width.max_error.has_value()) +
                    static_cast<int>(width.max_parameters.has_value());
  HS_CHECK(given > 0, "--to collaborative needs a width: --key-width N, --max-error E or --max-parameters P");
  HS_CHECK(given == 1, "--key-width, --max-error and --max-parameters exclude each other");
}

// The first windows of the sample text, each as long as the model's context: int64 [N, T].
Tensor read_sample(const SharingOptions& options, const TransformerOptions& model, const Tokenizer* tokenizer) {
  if (options.sample_text.empty()) return {};
  HS_CHECK(tokenizer != nullptr, "the model has no tokenizer.json, so --sample-text cannot be read; leave it out");
  ProgressLine line("text");
  const TokenData tokens = open_tokens(options.sample_text, DataOptions(), *tokenizer, show_reading(line));
  const int64_t T = model.context;
  HS_CHECK(tokens.size() >= T, "the sample text has ", tokens.size(), " tokens, fewer than the model's context of ", T,
           "; give more text");
  const int64_t rows = std::max<int64_t>(1, std::min(tokens.size(), options.sample_tokens) / T);
  if (rows * T < model.attention.d_model) {
    notice(join_text("the sample has ", rows * T, " tokens for a model width of ", model.attention.d_model,
                     ": layers are fitted to little more than those; take more text"));
  }
  Tensor ids = at::empty({rows, T}, at::kLong);
  tokens.copy(0, rows * T, ids.data_ptr<int64_t>());
  return ids;
}

std::string share(double value) { return format_fixed(100 * value, 2) + " %"; }

std::string layers_text(const CompressionReport& report) {
  std::vector<Column> columns = {{"layer", Align::kLeft}, {"key width"}, {"of"},
                                 {"error at start"},      {"error"},     {"iterations"}};
  const bool sampled = report.layers.front().output_change >= 0;
  if (sampled) columns.push_back({"change of output"});
  columns.push_back({"seconds"});
  TextTable table(columns);
  for (const LayerReport& layer : report.layers) {
    std::vector<std::string> cells = {layer.layer,
                                      std::to_string(layer.key_width),
                                      std::to_string(layer.full_width),
                                      share(layer.errors.front()),
                                      share(layer.error),
                                      std::to_string(layer.errors.size() - 1)};
    if (sampled) cells.push_back(share(layer.output_change));
    cells.push_back(format_fixed(layer.seconds, 1));
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string change_text(const AnswerChange& change) {
  std::string text;
  if (change.hidden >= 0) text += "last hidden states on the sample: changed by " + share(change.hidden) + "\n";
  if (change.divergence >= 0) {
    text += "token distributions on the sample: " + format_fixed(change.divergence, 4) +
            " nats from the original's (Kullback-Leibler divergence)\n";
  }
  if (change.loss_before >= 0) {
    text += join_text("loss on the sample: ", format_fixed(change.loss_before, 4), " nats per token before, ",
                      format_fixed(change.loss_after, 4), " after\n");
  }
  return text;
}

std::string sizes_text(const ModelSize& before, const ModelSize& after) {
  const auto line = [](const std::string& what, int64_t from, int64_t to) {
    return join_text(what, ": ", from, " before, ", to, " after (",
                     share(static_cast<double>(to) / static_cast<double>(from)), ")\n");
  };
  std::string text = line("parameters", before.total_parameters, after.total_parameters) +
                     line("of them in attention", before.attention_parameters, after.attention_parameters);
  if (before.cache_bytes_per_token > 0) {
    text += line("cache bytes per token", before.cache_bytes_per_token, after.cache_bytes_per_token);
  }
  return text;
}

nlohmann::ordered_json optional_number(double value) {
  return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

nlohmann::ordered_json report_json(const CompressionReport& report, const ModelSize& before, const ModelSize& after) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerReport& layer : report.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"key_width", layer.key_width},
                      {"full_width", layer.full_width},
                      {"error", layer.error},
                      {"errors", layer.errors},
                      {"output_change", optional_number(layer.output_change)},
                      {"seconds", layer.seconds}});
  }
  const auto sizes = [](const ModelSize& size) {
    return nlohmann::ordered_json{{"parameters", size.total_parameters},
                                  {"attention_parameters", size.attention_parameters},
                                  {"cache_bytes_per_token", size.cache_bytes_per_token}};
  };
  return {{"layers", layers},
          {"stopped", report.stopped},
          {"before", sizes(before)},
          {"after", sizes(after)},
          {"hidden_change", optional_number(report.change.hidden)},
          {"divergence", optional_number(report.change.divergence)},
          {"loss_before", optional_number(report.change.loss_before)},
          {"loss_after", optional_number(report.change.loss_after)}};
}

Decoder load(const fs::path& directory, const DecoderOptions&) { return load_decoder(directory); }
Encoder load(const fs::path& directory, const EncoderOptions&) { return load_encoder(directory); }

// A scheme that computes with another's weights becomes that one.
template <class Model>
Model as_trained(const Model& model) {
  auto options = model->options();
  const std::string& of = scheme_record(options.attention.scheme).weights_of;
  if (of.empty()) return model;
  options.attention.scheme = of;
  Model trained(resolve(options));
  load_tensors(*trained, model_tensors(*model), "the model");
  trained->eval();
  return trained;
}

void notice_growth(const std::string& scheme, const ModelSize& before, const ModelSize& after) {
  if (after.total_parameters <= before.total_parameters) return;
  notice(join_text("the converted model has more parameters than the source: ",
                   scheme == "mha"
                       ? "at this key width mixing costs more than sharing saves; choose a smaller one"
                       : "collaborative heads have values of their own, which those of " + scheme + " share"));
}

void print_report(const CompressionReport& report, const ModelSize& before, const ModelSize& after,
                  const std::string& out, bool json) {
  if (json) return print_json(report_json(report, before, after).dump(2) + "\n");
  print(layers_text(report) + "\n" + sizes_text(before, after) + change_text(report.change) + "written to " + out +
        "\n");
}

// to_collaborative() with progress; Ctrl-C ends it with what there is.
template <class Model>
Model compress(const Model& source, const CompressionOptions& options, CompressionReport* report) {
  std::optional<ProgressLine> line;
  const CompressionTold told = [&](const CompressionProgress& now) {
    if (!line) line.emplace("converting");
    line->update(now.done, now.total, now.what);
    return !stop_requested();
  };
  const Model target = to_collaborative(source, options, told, report);
  line.reset();
  if (report->stopped)
    notice(
        "stopped: the layer at hand keeps its best result so far; later layers were not improved and are less exact");
  return target;
}

template <class Model, class Options>
int convert(const fs::path& directory, const Options& stored, const std::string& out, Overwrite overwrite,
            SharingOptions options) {
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Tokenizer> tokenizer = load_own_tokenizer(directory);
  const Model source = as_trained<Model>(load(directory, stored));
  options.compression.sample = read_sample(options, source->options(), tokenizer.get());
  CompressionReport report;
  const Model target = compress(source, options.compression, &report);
  write_output(out, overwrite, headshare_output(),
               [&](const fs::path& to) { save_model(to, target, tokenizer.get()); });
  const ModelSize before = measure(source->options());
  const ModelSize after = measure(target->options());
  notice_growth(source->options().attention.scheme, before, after);
  print_report(report, before, after, out, options.json);
  return report.stopped ? kInterrupted : kOk;
}

}  // namespace

int convert_scheme(const std::string& source, const std::string& out, Overwrite overwrite, SharingOptions options) {
  as_usage([&] { check_options(options); });
  const fs::path directory = find_checkpoint(source);
  std::error_code ignored;
  HS_CHECK(!fs::equivalent(directory, out, ignored), out,
           " is the model itself, which is not overwritten; choose another name");
  check_output(out, overwrite, headshare_output());
  catch_interrupts();
  const ModelOptions stored = read_options(directory);
  if (is_causal(stored)) {
    return convert<Decoder>(directory, std::get<DecoderOptions>(stored), out, overwrite, std::move(options));
  }
  return convert<Encoder>(directory, std::get<EncoderOptions>(stored), out, overwrite, std::move(options));
}

}  // namespace headshare
