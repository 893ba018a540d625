#include "nodeagent/qos/overlay.h"

#include <type_traits>

namespace heddle::nodeagent {
namespace {

using lossless::Algorithm;
using lossless::kNotSaid;

template <class T>
void Put(const T& want, T& have) {
  if constexpr (std::is_same_v<T, lossless::Algorithms>) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (want[i] != Algorithm::kAny) have[i] = want[i];
    }
  } else if constexpr (std::is_same_v<T, lossless::Dcqcn>) {
    for (const auto& [parameter, value] : want) have[parameter] = value;
  } else if constexpr (std::is_same_v<T, lossless::DscpMap> || std::is_same_v<T, lossless::PriorityTable> ||
                       std::is_same_v<T, lossless::Numbers>) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (want[i] != kNotSaid) have[i] = want[i];
    }
  } else {
    have = want;
  }
}

}  // namespace

void Overlay(const lossless::PortSettings& want, lossless::Setting setting, lossless::PortSettings& have) {
  lossless::ForEachHostSetting([&](lossless::Setting each, auto member) {
    const auto& wanted = want.*member;
    auto& there = have.*member;
    if (each != setting || !wanted) return;
    if (!there) {
      there = wanted;
    } else {
      Put(*wanted, *there);
    }
  });
}

}  // namespace heddle::nodeagent
