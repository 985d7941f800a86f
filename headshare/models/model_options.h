// The options of a model of any kind.
#pragma once

#include <any>
#include <concepts>

#include "headshare/models/options.h"

namespace headshare {

class ModelKind;

// A value that holds the options of one kind of model: a decoder's, an encoder's, those of a kind that a program adds.
class ModelOptions {
 public:
  // A decoder's, as they begin.
  ModelOptions() : ModelOptions(DecoderOptions()) {}

  // `Options` are the options of one kind, which kind_of<Options>() names.
  template <std::derived_from<TransformerOptions> Options>
  ModelOptions(Options options)
      : kind_(&kind_of<Options>()),
        common_([](std::any& held) -> TransformerOptions& { return *std::any_cast<Options>(&held); }),
        held_(std::move(options)) {}

  const ModelKind& kind() const { return *kind_; }

  // The options that all kinds have.
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

  // The caller knows that the options are of this kind.
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
