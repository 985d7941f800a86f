// ModelOptions are the options of a model of any kind.
#pragma once

#include <any>
#include <concepts>

#include "headshare/models/blocks/options.h"

namespace headshare {

class ModelKind;

// A ModelOptions value holds the options of one kind of model: a decoder's, an encoder's, those of a kind that a
// program adds.
class ModelOptions {
 public:
  // Holds a decoder's default options.
  ModelOptions() : ModelOptions(DecoderOptions()) {}

  // `Options` are the options of one kind, which kind_of<Options>() names.
  template <std::derived_from<TransformerOptions> Options>
  ModelOptions(Options options)
      : kind_(&kind_of<Options>()),
        common_([](std::any& held) -> TransformerOptions& { return *std::any_cast<Options>(&held); }),
        held_(std::move(options)) {}

  const ModelKind& kind() const { return *kind_; }

  // Returns the options that all kinds have.
  TransformerOptions& common() { return common_(held_); }
  const TransformerOptions& common() const { return common_(const_cast<std::any&>(held_)); }

  // Finds the options of one kind; null where these are of another.
  template <class Options>
  Options* find() {
    return std::any_cast<Options>(&held_);
  }
  template <class Options>
  const Options* find() const {
    return std::any_cast<Options>(&held_);
  }

  // Returns the options of this kind; the caller knows that they are of it.
  template <class Options>
  Options& as() {
    return std::any_cast<Options&>(held_);
  }
  template <class Options>
  const Options& as() const {
    return std::any_cast<const Options&>(held_);
  }

 private:
  const ModelKind* kind_;
  TransformerOptions& (*common_)(std::any& held);
  std::any held_;
};

}  // namespace headshare
