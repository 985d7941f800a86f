// headshare convert MODEL OUT --to SCHEME makes a trained model's heads share.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/collaborative/collaborative_model.h"
#include "headshare/convert/output/output_directory.h"
#include "headshare/convert/shared_heads/shared_heads_model.h"

namespace headshare {

struct SchemeConversion {
  WidthChoice width = {};                         // of collaborative; the error also of mla
  std::optional<int64_t> mean_latent_width = {};  // of mla
  Pooling pooling = Pooling::kLeastSquares;       // of gqa and mqa
  DecompositionOptions decomposition = {};
  std::vector<std::string> sample_text;
  std::string sample_images;  // a directory, of a vision transformer
  int64_t sample_tokens = 20000;
  std::vector<std::string> score_text;
  std::string score_images;
  bool exact = false;  // convert_exact.h; the other options, json aside, are about approximations
  bool json = false;
};

Fields fields(SchemeConversion& options);

// Lists what --to takes besides formats, for people: "collaborative, gqa:GROUPS, mqa".
std::vector<std::string> sharing_schemes();
// Tells whether `to` names one of them, such as "gqa:4" or "mhe-mul".
bool names_sharing_scheme(const std::string& to);

// Copies the note that says what a model was fine-tuned for, where there is one: `predict` needs it.
void copy_task_note(const fs::path& from, const fs::path& to);

// Converts the model at `source`, a checkpoint or run directory, to the scheme that `to` names and writes it to `out`,
// with a table of the layers or one JSON object on standard output. The source is not touched. Asked to stop, it writes
// what it has, a whole model, and answers kInterrupted. Throws UsageError for options that exclude each other.
int convert_scheme(const std::string& source, const std::string& out, const std::string& to, Overwrite overwrite,
                   const SchemeConversion& options);

}  // namespace headshare
