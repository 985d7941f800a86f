// Some options are known to one part of the program only: those of a family of tasks, of an attention scheme. They are
// found by their type.
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <typeindex>

namespace headshare {

// An OwnOptions behaves like a struct with one member of every type that it is asked for. A member begins as its type
// does. It stays where it is while this object lives, even when another OwnOptions is assigned to it, so that fields
// (base/options/field.h) may point into it.
class OwnOptions {
 public:
  OwnOptions() = default;
  template <class... Own>
  requires(sizeof...(Own) > 0 && !(std::derived_from<Own, OwnOptions> || ...)) OwnOptions(const Own&... own) {
    ((get<Own>() = own), ...);
  }
  OwnOptions(const OwnOptions& other) { take(other); }
  OwnOptions& operator=(const OwnOptions& other) {
    if (this != &other) take(other);
    return *this;
  }
  ~OwnOptions() = default;

  template <class Own>
  Own& get() {
    std::unique_ptr<Place>& place = places_[typeid(Own)];
    if (place == nullptr) place = std::make_unique<PlaceOf<Own>>();
    return static_cast<PlaceOf<Own>&>(*place).own;
  }
  template <class Own>
  const Own& get() const {
    static const Own untouched = {};
    const auto found = places_.find(typeid(Own));
    return found == places_.end() ? untouched : static_cast<const PlaceOf<Own>&>(*found->second).own;
  }

 private:
  struct Place {
    virtual ~Place() = default;
    virtual std::unique_ptr<Place> copy() const = 0;
    virtual void assign(const Place* other) = 0;  // of the same type; null: as the type begins
  };

  template <class Own>
  struct PlaceOf : Place {
    std::unique_ptr<Place> copy() const override { return std::make_unique<PlaceOf>(*this); }
    void assign(const Place* other) override {
      own = other == nullptr ? Own() : static_cast<const PlaceOf*>(other)->own;
    }

    Own own = {};
  };

  void take(const OwnOptions& other) {
    for (auto& [type, place] : places_) {
      const auto theirs = other.places_.find(type);
      place->assign(theirs == other.places_.end() ? nullptr : theirs->second.get());
    }
    for (const auto& [type, place] : other.places_) {
      if (!places_.contains(type)) places_.emplace(type, place->copy());
    }
  }

  std::map<std::type_index, std::unique_ptr<Place>> places_;
};

}  // namespace headshare
