#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/sonic_config.h"

namespace heddle::switches {

// The ports of one configuration by what they are called, for whoever asks for many of them: as PortOf, by name, else
// by alias, also one that is bare. The configuration must outlive it. Thread rule: const members from any.
class PortIndex {
 public:
  explicit PortIndex(const formats::SonicConfig& config);

  static constexpr int kNone = -1;
  int NumberOf(std::string_view name) const;  // from 0, those that are bare last; kNone: there is none
  // Whether one port has it for a name and another for an alias. A switch's own tables have names; LLDP says either.
  bool IsAmbiguous(std::string_view called) const;
  // That LLDP calls so; kNone also where that is ambiguous, or empty.
  int NumberSeen(std::string_view called) const;
  int RankOf(int number) const { return ranks_[std::size_t(number)]; }  // its place by name, from 0
  const formats::SonicPort& operator[](int number) const;
  const formats::SonicPort* Find(std::string_view name) const;  // null: there is none
  std::size_t size() const { return config_.ports.size() + config_.bare.size(); }

 private:
  using Numbers = std::vector<std::pair<std::string_view, int>>;  // sorted
  static int In(const Numbers& numbers, std::string_view name);

  const formats::SonicConfig& config_;
  Numbers by_name_, by_alias_;
  std::vector<int> ranks_;  // by number
};

}  // namespace heddle::switches
