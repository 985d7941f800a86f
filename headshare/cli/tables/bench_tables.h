// These tables are what `bench` prints: a row for each contender, beside the roof of its work.
#pragma once

#include <string>
#include <vector>

#include "headshare/bench/attention_bench.h"
#include "headshare/bench/product_bench.h"
#include "headshare/bench/step_bench.h"

namespace headshare {

// They return a list with one object for each row. Each object says what it was measured on: `device`, which is a card
// with its driver where it is not the CPU, and the machine that describe_machine() finds.
std::string bench_json(const std::vector<AttentionRow>& rows, c10::Device device);
std::string bench_json(const std::vector<StepRow>& rows, c10::Device device);
std::string bench_json(const std::vector<ProductRow>& rows, c10::Device device);

// They return the table in `width` columns, and below it the device and the machine.
std::string bench_text(const std::vector<AttentionRow>& rows, c10::Device device, int width);
std::string bench_text(const std::vector<StepRow>& rows, c10::Device device, int width);
std::string bench_text(const std::vector<ProductRow>& rows, c10::Device device, int width);

}  // namespace headshare
