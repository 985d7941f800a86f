// A ComparisonMethod is a way to compare the models of a family: what is checked, planned and run. Models that are
// trained from the beginning are compared in one way (trained/), encoders that are fine-tuned in another (fine_tuned/).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/comparison_call.h"
#include "headshare/data/text/kept_input.h"
#include "headshare/train/observer.h"

namespace headshare {

// A PreparedComparison knows all that can be found before its first model; where encoders are pre-trained first, this
// is after them.
class PreparedComparison {
 public:
  virtual ~PreparedComparison() = default;

  virtual const Subject& subject() const = 0;
  virtual const Forecast& forecast() const = 0;
  // Returns the variants that stand in the table.
  virtual std::vector<Variant> variants() const = 0;
  // Returns the cells of as many seeds as `options` have.
  virtual std::vector<CellPlan> cells(const ComparisonOptions& options) const = 0;
  // Names the quantity that is equal for all models: "steps".
  virtual std::string match() const = 0;

  // Tells whether the comparison is written down already, because something had to be trained to prepare it.
  virtual bool has_begun() const { return false; }
  // Throws Error where there is no room for its models.
  virtual void check_room(const fs::path& /*home*/) const {}
  // Checks the models of an earlier call that are taken over. Throws Error where they would be others now.
  virtual void check_finished(const ComparisonCall& call) const = 0;
};

// An Outline is a table of the models that a dry run would train.
struct Outline {
  struct Model {
    std::string name;
    std::string left_out = {};  // the reason; "" if it is trained
    ModelOptions options = {};  // the options of a model that is trained
  };

  std::string heading;  // the heading of the names: "scheme"
  bool caches = true;   // the caches of its models are of interest
  std::vector<Model> models;
  std::string sentence;  // stands below the table: "400 steps each, 3 seeds"
};

class ComparisonMethod {
 public:
  virtual ~ComparisonMethod() = default;

  // Names the unit of training speed: "tokens/s".
  virtual std::string unit(const ComparisonOptions& options) const = 0;

  // Returns the number of micro-batches of a step.
  virtual int64_t accumulation(const ComparisonOptions& options) const = 0;

  // Throws Error for options that mean nothing in this way. No data is read.
  virtual void check(const ComparisonOptions& options) const = 0;

  // Returns the tables that a dry run shows; sizes are known before there is data.
  virtual std::vector<Outline> outlines(const ComparisonOptions& options) const = 0;
  // Tells whether the options name the data that a forecast reads.
  virtual bool has_data(const ComparisonOptions& options) const = 0;

  // Reads the data and measures speeds; nothing is written. Throws Error for whatever prepare() refuses of them.
  virtual Forecast forecast(ComparisonCall call, ComparisonHost& host) const = 0;

  // Fills in what `call` leaves to the machine and to measurements. Throws Error for whatever can be refused before the
  // first model.
  virtual std::unique_ptr<PreparedComparison> prepare(ComparisonCall& call, KeptInputs& kept,
                                                      ComparisonHost& host) const = 0;

  // Trains and judges one cell, as run_cell() does.
  virtual Cell run_cell(const CellPlan& plan, const CellPlace& place, c10::Device device, Observer& observer,
                        const std::function<bool()>& stop_requested) const = 0;
};

// These are the methods; each is defined in a folder of its own.
const ComparisonMethod& trained_method();
const ComparisonMethod& fine_tuned_method();

// Returns the way in which models of this task's family are compared.
const ComparisonMethod& comparison_method(const TaskOptions& options);

// Writes everything into call.out, whose lock it holds. `beginning` is called when all is checked and nothing begun,
// unless an earlier call is gone on with. Throws Error for whatever can be refused before the first model, Interrupted
// when asked to stop.
Results compare(ComparisonCall& call, ComparisonHost& host, const std::function<void()>& beginning = {});

}  // namespace headshare
