#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace heddle::topology {

// Why a fact is missing. Missing is never zero: a NIC whose rail nobody could measure is not on rail 0.
enum class Missing : std::uint8_t {
  kUnknown,        // nothing told us
  kNotApplicable,  // this machine or transport has no such thing
  kStale,          // it was known and its proof has expired
  kAmbiguous,      // two sources disagree, or one said two things
};
std::string_view MissingName(Missing missing);  // "Unknown", "NotApplicable", "Stale", "Ambiguous"
std::optional<Missing> ParseMissing(std::string_view name);

// A value, or why there is none.
template <class T>
class Fact {
 public:
  Fact() : content_(Missing::kUnknown) {}
  Fact(T value)
      : content_(std::move(value)) {}  // NOLINT(google-explicit-constructor): a fact reads as its value
  Fact(Missing missing) : content_(missing) {}  // NOLINT(google-explicit-constructor)

  // In place: by way of a temporary Fact, gcc 12 with sanitizers warns of a value that may be uninitialized.
  Fact& operator=(Missing missing) {
    content_ = missing;
    return *this;
  }

  bool known() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return known(); }
  const T& operator*() const { return std::get<T>(content_); }
  const T* operator->() const { return &std::get<T>(content_); }
  T value_or(T other) const { return known() ? std::get<T>(content_) : std::move(other); }
  // Requires: !known().
  Missing missing() const { return std::get<Missing>(content_); }

  friend bool operator==(const Fact&, const Fact&) = default;

 private:
  std::variant<Missing, T> content_;
};

}  // namespace heddle::topology
