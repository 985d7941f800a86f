#include "headshare/compare/method.h"

#include "headshare/base/files/directory_lock.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/until_decided.h"

namespace headshare {

const ComparisonMethod& comparison_method(const TaskOptions& options) {
  const bool begins_with_others = !task_family(options.task).begins_with().empty();
  return begins_with_others ? fine_tuned_method() : trained_method();
}

Results compare(ComparisonCall& call, ComparisonHost& host, const std::function<void()>& beginning) {
  const ComparisonMethod& method = comparison_method(call.options);
  const DirectoryLock lock(call.out);
  call.out = lock.path();
  check_directory(call);
  KeptInputs kept(call.out, &call.options.own<TextOptions>().data);
  const std::unique_ptr<PreparedComparison> prepared = method.prepare(call, kept, host);
  call.forecast = with_several_at_once(prepared->forecast(), call);
  check_time(call, call.forecast);
  prepared->check_room(call.out);
  if (call.resume) {
    check_same_data(call.out, prepared->subject());
    check_same_variants(call.out, prepared->variants());
    prepared->check_finished(call);
    go_on(call, kept, host);
  } else {
    if (beginning) beginning();
    // An earlier comparison is deleted only now, so that a mistake in the call touches nothing of it.
    if (!prepared->has_begun()) begin_anew(call, kept, host);
  }
  say_forecast(call, call.forecast);
  Results results = begin_results(call, prepared->subject(), prepared->variants(), host);
  results.match = prepared->match();
  run_until_decided(
      call, [&](const ComparisonOptions& options) { return prepared->cells(options); }, host, &results);
  return results;
}

}  // namespace headshare
