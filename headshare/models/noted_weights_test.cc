#include "headshare/models/noted_weights.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NotedWeights, OtherWeightsAreRefused) {
  const TemporaryDirectory home;
  const fs::path model = home.path() / "model", results = home.path() / "results";
  make_directories(model);
  make_directories(results);
  write_file(model / "model.safetensors", "weights");
  note_weights(results, model);
  note_weights(results, model);
  write_file(model / "model.safetensors", "Weights");
  EXPECT_THAT(
      error_message([&] { note_weights(results, model); }),
      AllOf(HasSubstr("the weights in " + model.string()), HasSubstr(results.string()), HasSubstr("--overwrite")));
  // The weights of a teacher are noted in a file of their own.
  note_weights(results, model, kTeacherFile);
  write_file(model / "model.safetensors", "weights");
  note_weights(results, model);
  EXPECT_THAT(error_message([&] { note_weights(results, model, kTeacherFile); }), HasSubstr("are not those"));
  write_file(results / kWeightsFile, "[");
  EXPECT_THAT(error_message([&] { note_weights(results, model); }), HasSubstr("are not those"));
}

}  // namespace
}  // namespace headshare
