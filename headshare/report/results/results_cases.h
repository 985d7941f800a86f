// For tests only, this makes small results with known numbers.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

inline constexpr int64_t kMhaParameters = 2048;
inline constexpr int64_t kShaParameters = 768;

inline int64_t case_parameters(const std::string& scheme) {
  if (scheme == "sha") return kShaParameters;
  if (scheme == "mhe_mul") return kShaParameters + 16;
  return scheme == "mqa" ? 1280 : kMhaParameters;
}

// The perplexity is exp(loss); the mean of the four blocks is the loss.
inline Cell loss_cell(const std::string& scheme, int64_t seed, double loss, const std::string& setting = "") {
  return {.key = {scheme, setting, seed},
          .size = {.attention_parameters = case_parameters(scheme),
                   .attention_parameters_effective = case_parameters(scheme),
                   .total_parameters = 10'000 + case_parameters(scheme),
                   .feed_forward_width = 64,
                   .cache_elements_per_token = 32,
                   .cache_bytes_per_token = scheme == "mha" ? 256 : 64},
          .validation_loss = loss + 0.1,
          .test_loss = loss,
          .quality = std::exp(loss),
          .signature = "perplexity|context:16",
          .scores = {{.name = "bits-per-byte", .value = loss / 2}},
          .blocks = {loss - 0.3, loss - 0.1, loss + 0.1, loss + 0.3},
          .steps = 100,
          .best_step = 80,
          .tokens = 9600,
          .training_seconds = 12.5,
          .training_tokens_per_second = 768 + static_cast<double>(seed),
          .decoding_tokens_per_second = 210,
          .decoding_context = 96,
          .attention_memory_bytes = scheme == "mha" ? 4000 : 3000,
          .peak_memory_bytes = 1 << 20,
          .curve = {{0, 0, 7.1}, {50, 6.25, loss + 0.4}, {100, 12.5, loss + 0.1}},
          .model = "cells/" + scheme};
}

inline Results loss_results(std::vector<Cell> cells) {
  Results results{.subject = {.name = "language-model",
                              .sentence = "predict the next token",
                              .data = "book.txt",
                              .measure = "perplexity",
                              .direction = Direction::kLowerIsBetter,
                              .block = "text windows"},
                  .command = "headshare compare --text book.txt",
                  .environment = {{"cores", 2}},
                  .options = {{"steps", 100}},
                  .cells = std::move(cells)};
  for (const Cell& cell : results.cells) results.planned.push_back(cell.key);
  return results;
}

inline Results accuracy_results(std::vector<Cell> cells) {
  Results results = loss_results(std::move(cells));
  results.subject.name = "offsets";
  results.subject.measure = "accuracy";
  results.subject.direction = Direction::kHigherIsBetter;
  results.subject.block = "sequences";
  results.subject.chance = 0.1;
  for (Cell& cell : results.cells) {
    cell.quality = 1 - cell.test_loss / 10;
    for (double& block : cell.blocks) block = 1 - block / 10;
    cell.scores.clear();
  }
  return results;
}

// The encoders are fine-tuned on two tasks: a scheme has scores of both, in per cent.
inline Cell tuned_cell(const std::string& scheme, int64_t seed, double cola, double rte) {
  const auto task = [](const std::string& name, double score) {
    return FineTunedTask{.task = name,
                         .score = score,
                         .metrics = {{.name = "accuracy", .value = score / 100, .signature = "accuracy|version:1"}},
                         .examples = 277,
                         .learning_rate = 5e-5,
                         .best_epoch = 2,
                         .validation_loss = 0.5};
  };
  Cell cell = loss_cell(scheme, seed, 0.5);
  cell.tasks = {task("glue/cola", cola), task("glue/rte", rte)};
  cell.quality = (cola + rte) / 2;
  cell.blocks.clear();
  cell.scores.clear();
  cell.size.cache_elements_per_token = cell.size.cache_bytes_per_token = cell.decoding_context = 0;
  cell.decoding_tokens_per_second = 0;
  return cell;
}

inline Results tuned_results(std::vector<Cell> cells) {
  Results results = loss_results(std::move(cells));
  results.subject.name = "glue";
  results.subject.measure = "score";
  results.subject.direction = Direction::kHigherIsBetter;
  results.subject.has_test_part = false;
  results.subject.full_scale = 100;
  results.subject.tasks = {"glue/cola", "glue/rte"};
  return results;
}

// Adds a cell that was planned, and not trained.
inline void add_failed(Results* results, const CellKey& key, const std::string& reason) {
  results->planned.push_back(key);
  results->failed.push_back({key, reason});
}

// Returns results with something in most members: doubles that take 17 digits, a failed cell, and one that is missing.
inline Results example_results() {
  Results results = accuracy_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2, "learning-rate=0.001")});
  results.cells[0].scores = {{.name = "bits-per-byte", .value = 0.1 + 0.2, .signature = "s"},  // 0.30000000000000004
                             {.name = "chrf", .value = 56.5, .interval = Interval{.low = 55.1, .high = 57.3}}};
  results.cells[1].weights_of = "mha";
  results.cells[1].options = {{"mhe-deviation", 0.5}};
  results.variants = {{.name = "sha", .scheme = "sha", .options = {{"scheme", "sha"}, {"norm", "rms"}}}};
  results.references = {.quality = "mqa", .peop = "mha"};
  results.cells[1].stopped_early = true;
  results.cells[0].blocks = {1.0 / 3, -0.0, 1e-300, 5e29};
  results.match = "time";
  add_failed(&results, {"mqa", "", 7}, "out of memory: \"8 GiB\"\nafter 3 steps");
  results.planned.push_back({"mqa", "", 8});
  return results;
}

}  // namespace headshare
