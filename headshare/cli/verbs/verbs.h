// Each verb has a file. Each parses the words behind it, does its work and returns an exit code; what it throws, main
// turns into a message.
#pragma once

#include "headshare/cli/arguments/args.h"
#include "headshare/cli/terminal/exit_codes.h"

namespace headshare {

int run_analyze(const Words& words);
int run_bench(const Words& words);
int run_cell(const Words& words);
int run_compare(const Words& words);
int run_convert(const Words& words);
int run_cost(const Words& words);
int run_evaluate(const Words& words);
int run_fill(const Words& words);
int run_finetune(const Words& words);
int run_generate(const Words& words);
int run_info(const Words& words);
int run_predict(const Words& words);
int run_report(const Words& words);
int run_score(const Words& words);
int run_tokenize(const Words& words);
int run_train(const Words& words);
int run_translate(const Words& words);

}  // namespace headshare
