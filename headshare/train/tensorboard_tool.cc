// This tool is for tests only: tensorboard_tool FOLDER writes a run of steps 0..9 that is resumed after step 5, with
// other values, up to step 7.
#include <cmath>

#include "headshare/train/tensorboard.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  headshare::TensorBoardWriter first(arguments[1]);
  for (int step = 0; step < 10; ++step) {
    first.scalars(step, {{"train/loss", step + 0.5}, {"größe", std::ldexp(1, step)}});
  }
  headshare::TensorBoardWriter resumed(arguments[1], 5);
  for (int step = 6; step < 8; ++step) resumed.scalars(step, {{"train/loss", -step}});
  resumed.scalars(int64_t{1} << 40, {{"late", NAN}});
}
