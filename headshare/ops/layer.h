// Layer is the module that all of headshare's modules derive from. It declares each parameter together with how it
// starts, whether weight decay applies and whether it can matter at all, and knows its dotted path in the model, which
// keys its initial values and its dropout stream.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headshare {

using at::Tensor;

// This says where a parameter starts.
struct Init {
  double mean = 0;
  double deviation = 0;  // of a normal distribution around mean; 0: the constant

  static Init normal(double deviation) { return {.deviation = deviation}; }
  static Init constant(double value) { return {.mean = value}; }
};

enum class Decay { kYes, kNo };

// kInert means that the loss cannot depend on the parameter (its true gradient is exactly zero). It is stored and
// counted, but no computation reads it and the optimizer leaves it alone, because Adam would turn rounding noise into
// real steps.
enum class Role { kLearned, kInert };

struct Declared {
  std::string name;
  Tensor tensor;
  Init init;
  Decay decay;
  Role role;
};

// The clock says which training micro-batch is running: with the seed and a site's path it determines every dropout
// mask, so that masks can be drawn again (activation checkpointing, resuming).
struct DropoutClock {
  uint64_t seed = 0;
  uint64_t tick = 0;

  // Sites below the path `shared` are keyed as if they stood below `used_as`; where it is empty, none are. See UsedAs.
  std::string shared = {};
  std::string used_as = {};
};

// While one of these lives, the sites of a module that several places of a model share draw the masks of the place at
// hand: `shared` is the module's path, `used_as` the path it would have there if nothing were shared.
class UsedAs {
 public:
  UsedAs(DropoutClock& clock, std::string shared, std::string used_as);
  ~UsedAs();
  UsedAs(const UsedAs&) = delete;
  UsedAs& operator=(const UsedAs&) = delete;

 private:
  DropoutClock& clock_;
  std::string shared_before_, used_as_before_;
};

// While one of these lives, this thread's layers declare their parameters on `device`. On kMeta they
// take no memory: whole models can be counted that would not fit.
class DeclareOn {
 public:
  explicit DeclareOn(c10::Device device);
  ~DeclareOn();
  DeclareOn(const DeclareOn&) = delete;
  DeclareOn& operator=(const DeclareOn&) = delete;

 private:
  c10::Device before_;
};

class Layer : public torch::nn::Module {
 public:
  const std::vector<Declared>& declared() const { return declared_; }
  const std::string& path() const { return path_; }

  // Returns the key of mask number `part` of this site at this tick.
  uint64_t dropout_key(uint64_t part) const;

 protected:
  // Registers an uninitialised parameter.
  Tensor declare(const std::string& name, at::IntArrayRef sizes, Init init, Decay decay = Decay::kYes,
                 Role role = Role::kLearned);

 private:
  friend void attach(torch::nn::Module& root, std::shared_ptr<DropoutClock> clock);

  std::vector<Declared> declared_;
  std::string path_;
  std::shared_ptr<DropoutClock> clock_;
};

// Tells every Layer below `root` its path and the clock. Call it once after construction.
void attach(torch::nn::Module& root, std::shared_ptr<DropoutClock> clock);

// Gives every declared parameter below `root` its initial values, drawn on the CPU in float32 from
// a stream keyed by (seed, parameter path): models that share a path share the values.
void initialise(torch::nn::Module& root, uint64_t seed);

// Returns all declared parameters below `root` with their full names, in registration order. A parameter that two
// modules share appears once.
std::vector<Declared> declared_parameters(const torch::nn::Module& root);

// Returns a generator on `device` that starts at `key`.
at::Generator keyed_generator(c10::Device device, uint64_t key);

// Returns x with elements dropped with probability p and the rest scaled by 1 / (1 - p), while `site` is in training; x
// itself otherwise. A site that draws several masks in one pass numbers them by `part`.
Tensor dropout(const Tensor& x, double p, const Layer& site, uint64_t part = 0);

}  // namespace headshare
