#include "headshare/cli/tables/bench_tables.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/wrap.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/host/machine.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

// Adds what every row says of what it was measured on.
void add_machine(const Machine& machine, c10::Device device, Json* object) {
  const Json all = to_json(machine);
  for (const char* key : {"threads", "instructions", "processor", "torch", "headshare", "commit"}) {
    (*object)[key] = all[key];
  }
  object->update(to_json(device, machine.cuda));
}

// Adds the rate, null where nothing was timed, and the roof of the same turns.
void add_rate(const Rate& rate, Json* object) {
  const bool product = rate.kind == RoofKind::kProduct;
  const bool timed = rate.per_second > 0;
  object->update({{product ? "gflops" : "gb_per_s", timed ? Json(rate.per_second / 1e9) : Json()},
                  {product ? "product_gflops" : "stream_gb_per_s", rate.roof / 1e9},
                  {product ? "percent_of_product" : "percent_of_stream", timed ? Json(rate.percent()) : Json()}});
}

void add_timing(const Timing& timing, bool timed, Json* object) {
  object->update({{"median_ms", timed ? Json(timing.median_ms) : Json()},
                  {"minimum_ms", timed ? Json(timing.minimum_ms) : Json()},
                  {"repetitions", timing.repetitions}});
}

Json bytes_or_null(const std::optional<int64_t>& bytes) { return bytes ? Json(*bytes) : Json(); }

Json to_object(const AttentionRow& row) {
  const AttentionCase& c = row.of;
  const bool timed = row.refused.empty();
  Json object = {{"name", case_name(c)}, {"contender", row.contender}, {"backend", row.backend}};
  add_timing(row.timing, timed, &object);
  object.update({{"ratio_to_torch_sdpa", row.ratio ? Json(*row.ratio) : Json()},
                 {"is_baseline", row.is_baseline},
                 {"peak_bytes", bytes_or_null(row.peak_bytes)},
                 {"cache_bytes", row.cache_bytes}});
  add_rate(row.rate, &object);
  if (row.arithmetic) add_rate(*row.arithmetic, &object);
  if (!timed) object["refused"] = row.refused;
  object.update({{"scheme", c.scheme},
                 {"pass", pass_name(c.pass)},
                 {"causal", c.causal},
                 {"dropout", c.dropout},
                 {"dropout_masks", c.dropout_mask == DropoutMaskKind::kShared ? "shared" : "per_head"},
                 {"precision", precision_name(c.precision)},
                 {"batch_size", c.batch},
                 {"heads", c.heads},
                 {"queries", c.queries},
                 {"keys", c.keys},
                 {"head_width", c.head_width}});
  if (scheme_record(c.scheme).shares_key_width) object["key_width"] = c.key_width;
  return object;
}

Json to_object(const StepRow& row) {
  const StepCase& c = row.of;
  const bool timed = row.refused.empty();
  Json object = {{"name", case_name(c)}, {"contender", "headshare"}};
  add_timing(row.timing, timed, &object);
  object.update({{"tokens_per_second", timed ? Json(row.tokens_per_second) : Json()},
                 {"peak_bytes", bytes_or_null(row.peak_bytes)}});
  add_rate(row.rate, &object);
  if (!timed) object["refused"] = row.refused;
  object.update({{"scheme", c.scheme},
                 {"precision", precision_name(c.precision)},
                 {"batch_size", c.batch},
                 {"heads", c.heads},
                 {"queries", c.length},
                 {"head_width", c.head_width},
                 {"layers", c.layers},
                 {"vocabulary", c.vocabulary},
                 {"parameters", row.parameters}});
  return object;
}

Json to_object(const ProductRow& row) {
  Json object = {{"name", row.of.name}, {"contender", row.contender}, {"precision", precision_name(row.precision)},
                 {"rows", row.of.M},    {"depth", row.of.K},          {"columns", row.of.N}};
  add_timing(row.timing, /*timed=*/true, &object);
  object["gflops"] = row.gflops;
  return object;
}

template <class Row>
std::string objects_of(const std::vector<Row>& rows, c10::Device device) {
  const Machine machine = describe_machine();
  std::string text = "[";
  for (const Row& row : rows) {
    Json object = to_object(row);
    add_machine(machine, device, &object);
    text += (text.size() > 1 ? ",\n " : "") + object.dump();
  }
  return text + "]\n";
}

std::string with_machine(const TextTable& table, c10::Device device, const std::string& note, int width) {
  const Machine machine = describe_machine();
  const std::string card = device.is_cpu() ? "" : card_in_words(device, machine.cuda) + "; ";
  return table.text(width) + "\n" +
         wrap(join_text(card, machine.processor, ", ", machine.instructions, ", ", machine.threads,
                        machine.threads == 1 ? " thread" : " threads", ", libtorch ", machine.torch, ", commit ",
                        machine.commit, ". ", note),
              width, 0) +
         "\n";
}

// A card's operations are counted in 10^12.
std::string rate_text(const Rate& rate, c10::Device device) {
  const bool tera = rate.kind == RoofKind::kProduct && !device.is_cpu();
  return format_fixed(rate.per_second / (tera ? 1e12 : 1e9), tera ? 2 : 1);
}

std::string share_text(const Rate& rate) { return format_fixed(rate.percent(), 0); }

std::string peak_text(const std::optional<int64_t>& bytes) {
  return bytes ? format_bytes(static_cast<double>(*bytes)) : "-";
}

// Heads the rates and the shares of a table. Its rows have one kind of roof unless decoding stands beside other work.
struct RateHeadings {
  std::string rate, share;
};

template <class Row>
RateHeadings rate_headings(const std::vector<Row>& rows, c10::Device device) {
  const auto is_stream = [](const Row& row) { return row.rate.kind == RoofKind::kStream; };
  const std::string operations = device.is_cpu() ? "GFLOP/s" : "TFLOP/s";
  if (std::none_of(rows.begin(), rows.end(), is_stream)) return {operations, "% of a product"};
  if (std::all_of(rows.begin(), rows.end(), is_stream)) return {"GB/s", "% of STREAM"};
  return {operations + " or GB/s", "% of a product or STREAM"};
}

// Says what the roofs are, once for each kind.
template <class Row>
std::string roof_note(const std::vector<Row>& rows) {
  std::string product, stream;
  for (const Row& row : rows) {
    if (row.rate.kind == RoofKind::kStream) {
      stream =
          " STREAM's copy and triad and a square matrix product take turns with the contenders, which are credited "
          "with one reading of the cache and with the products of heads that share nothing; where many heads read "
          "one key, products may bound them sooner.";
    } else {
      product =
          " A square matrix product takes turns with the contenders, which are credited with the "
          "products of heads that share nothing.";
    }
  }
  return product + stream;
}

}  // namespace

std::string bench_json(const std::vector<AttentionRow>& rows, c10::Device device) { return objects_of(rows, device); }
std::string bench_json(const std::vector<StepRow>& rows, c10::Device device) { return objects_of(rows, device); }
std::string bench_json(const std::vector<ProductRow>& rows, c10::Device device) { return objects_of(rows, device); }

std::string bench_text(const std::vector<AttentionRow>& rows, c10::Device device, int width) {
  const RateHeadings headings = rate_headings(rows, device);
  const bool bounded_twice =
      std::any_of(rows.begin(), rows.end(), [](const AttentionRow& row) { return row.arithmetic.has_value(); });
  std::vector<Column> columns = {
      {"case", Align::kLeft}, {"contender", Align::kLeft}, {"kernel", Align::kLeft}, {"median ms"},
      {"least ms"},           {"times as fast as torch"},  {headings.rate},          {headings.share},
      {"memory of a run"}};
  if (bounded_twice) columns.push_back({"% of a product"});
  TextTable table(std::move(columns));
  std::string before;
  for (const AttentionRow& row : rows) {
    const std::string name = case_name(row.of);
    const std::string shown = name == before ? "" : name;
    before = name;
    if (!row.refused.empty()) {
      table.add_spanning(shown, row.contender + " was not timed: " + row.refused);
      continue;
    }
    std::vector<std::string> cells = {shown,
                                      row.contender,
                                      row.backend,
                                      format_fixed(row.timing.median_ms, 2),
                                      format_fixed(row.timing.minimum_ms, 2),
                                      row.ratio ? format_fixed(*row.ratio, 2) : "-",
                                      rate_text(row.rate, device),
                                      share_text(row.rate),
                                      peak_text(row.peak_bytes)};
    if (bounded_twice) cells.push_back(row.arithmetic ? share_text(*row.arithmetic) : "-");
    table.add(std::move(cells));
  }
  const std::string ratio = "The ratio compares with the fastest of torch's forms, whose row says 1.00.";
  return with_machine(table, device, ratio + roof_note(rows), width);
}

std::string bench_text(const std::vector<StepRow>& rows, c10::Device device, int width) {
  const RateHeadings headings = rate_headings(rows, device);
  TextTable table({{"case", Align::kLeft},
                   {"median ms"},
                   {"least ms"},
                   {"tokens/s"},
                   {headings.rate},
                   {headings.share},
                   {"memory of a step"},
                   {"parameters"}});
  for (const StepRow& row : rows) {
    if (!row.refused.empty()) {
      table.add_spanning(case_name(row.of), "not timed: " + row.refused);
      continue;
    }
    table.add({case_name(row.of), format_fixed(row.timing.median_ms, 1), format_fixed(row.timing.minimum_ms, 1),
               format_fixed(row.tokens_per_second, 0), rate_text(row.rate, device), share_text(row.rate),
               peak_text(row.peak_bytes), format_count(static_cast<double>(row.parameters))});
  }
  return with_machine(table, device,
                      "A square matrix product takes turns with the steps. Memory is what a step takes "
                      "beside parameters and moments.",
                      width);
}

std::string bench_text(const std::vector<ProductRow>& rows, c10::Device device, int width) {
  TextTable table({{"product", Align::kLeft},
                   {"rows x depth x columns", Align::kLeft},
                   {"precision", Align::kLeft},
                   {"headshare GFLOP/s"},
                   {"torch GFLOP/s"},
                   {"times as fast"}});
  for (size_t i = 0; i + 1 < rows.size(); i += 2) {  // headshare, torch
    const ProductCase& c = rows[i].of;
    table.add({c.name, join_text(c.M, " x ", c.K, " x ", c.N), precision_name(rows[i].precision),
               format_fixed(rows[i].gflops, 1), format_fixed(rows[i + 1].gflops, 1),
               format_fixed(rows[i].gflops / rows[i + 1].gflops, 2)});
  }
  return with_machine(table, device, "Tiles are what attention multiplies; torch's include what a call of it costs.",
                      width);
}

}  // namespace headshare
