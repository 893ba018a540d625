#include "lossless/compare.h"

#include <type_traits>

namespace heddle::lossless {
namespace {

// Both sides in words; equal where `want` is satisfied.
struct Words {
  std::string want;
  std::string have;
};

void Append(std::string& text, const std::string& part) {
  if (!text.empty()) text += ", ";
  text += part;
}

std::string Number(int value) {
  return value == kNotSaid ? "nothing" : std::to_string(value);
}

template <class Table>
constexpr bool kIsTable = std::is_same_v<Table, PriorityTable> || std::is_same_v<Table, Numbers>;

std::string EntryName(Setting setting, std::size_t entry) {
  const bool by_class = setting == Setting::kClassAlgorithm || setting == Setting::kClassPercent;
  const std::string_view what = by_class                           ? "class "
                                : setting == Setting::kBufferBytes ? "buffer "
                                                                   : "priority ";
  return std::string(what) + std::to_string(entry) + ": ";
}

std::string Value(Setting setting, int value) {
  return setting == Setting::kWatchdogMs && value == kWatchdogAlerts ? "alert only" : std::to_string(value);
}

Words Both(Setting setting, int want, int have) {
  return {Value(setting, want), Value(setting, have)};
}
Words Both(Setting, Trust want, Trust have) {
  return {std::string(TrustName(want)), std::string(TrustName(have))};
}
Words Both(Setting, Dcbx want, Dcbx have) {
  return {std::string(DcbxName(want)), std::string(DcbxName(have))};
}
Words Both(Setting, GlobalPause want, GlobalPause have) {
  return {std::string(GlobalPauseName(want)), std::string(GlobalPauseName(have))};
}
Words Both(Setting, const PrioritySet& want, const PrioritySet& have) {
  return {Text(want), Text(have)};
}

// DSCPs of one pair of priorities stand together: "DSCP 24-25,27-31: 0" against "DSCP 24-25,27-31: 3".
Words Both(Setting, const DscpMap& want, const DscpMap& have) {
  Words words;
  for (int wanted = 0; wanted < kPriorities; ++wanted) {
    for (int there = kNotSaid; there < kPriorities; ++there) {
      if (wanted == there) continue;
      DscpMap differs = AllDscps(kNotSaid);
      for (std::size_t dscp = 0; dscp < differs.size(); ++dscp) {
        if (want[dscp] == wanted && have[dscp] == there) differs[dscp] = 0;
      }
      const std::string dscps = DscpRanges(differs, 0);
      if (dscps.empty()) continue;
      Append(words.want, "DSCP " + dscps + ": " + Number(wanted));
      Append(words.have, "DSCP " + dscps + ": " + Number(there));
    }
  }
  return words;
}

template <class Table>
requires kIsTable<Table> Words Both(Setting setting, const Table& want, const Table& have) {
  Words words;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] == have[i] || want[i] == kNotSaid) continue;
    Append(words.want, EntryName(setting, i) + Number(want[i]));
    Append(words.have, EntryName(setting, i) + Number(have[i]));
  }
  return words;
}

Words Both(Setting setting, const Algorithms& want, const Algorithms& have) {
  Words words;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] == have[i] || want[i] == Algorithm::kAny) continue;
    Append(words.want, EntryName(setting, i) + std::string(AlgorithmName(want[i])));
    Append(words.have, EntryName(setting, i) + std::string(AlgorithmName(have[i])));
  }
  return words;
}

Words Both(Setting, const Dcqcn& want, const Dcqcn& have) {
  Words words;
  for (const auto& [parameter, value] : want) {
    const auto found = have.find(parameter);
    if (found != have.end() && found->second == value) continue;
    const std::string name = std::string(DcqcnParameterName(parameter)) + ": ";
    Append(words.want, name + std::to_string(value));
    Append(words.have, name + (found == have.end() ? "not known" : std::to_string(found->second)));
  }
  return words;
}

std::string MarkingText(const EcnMarking& marking) {
  return std::to_string(marking.min_bytes) + " to " + std::to_string(marking.max_bytes) + " bytes, " +
         std::to_string(marking.probability_percent) + " %";
}

Words Both(Setting setting, const EcnMarkings& want, const EcnMarkings& have) {
  Words words;
  for (const auto& [priority, marking] : want) {
    const auto found = have.find(priority);
    if (found != have.end() && found->second == marking) continue;
    Append(words.want, EntryName(setting, std::size_t(priority)) + MarkingText(marking));
    Append(words.have, EntryName(setting, std::size_t(priority)) +
                           (found == have.end() ? "no marking" : MarkingText(found->second)));
  }
  return words;
}

// The value that differs from any other of its type, so that Both says all of `value`.
template <class T>
Words AllOf(Setting setting, const T& value) {
  if constexpr (std::is_same_v<T, DscpMap>) {
    Words words;
    for (int priority = 0; priority < kPriorities; ++priority) {
      const std::string dscps = DscpRanges(value, priority);
      if (!dscps.empty()) Append(words.want, "DSCP " + dscps + ": " + std::to_string(priority));
    }
    return words;
  } else if constexpr (kIsTable<T>) {
    T nothing;
    nothing.fill(-2);
    return Both(setting, value, nothing);
  } else if constexpr (std::is_same_v<T, Algorithms>) {
    Words words;
    for (std::size_t i = 0; i < value.size(); ++i) {
      Append(words.want, EntryName(setting, i) + std::string(AlgorithmName(value[i])));
    }
    return words;
  } else if constexpr (std::is_same_v<T, Dcqcn> || std::is_same_v<T, EcnMarkings>) {
    return Both(setting, value, T{});
  } else {
    return Both(setting, value, value);
  }
}

}  // namespace

Comparison Compare(const PortSettings& want, const PortSettings& have) {
  Comparison comparison;
  ForEachSetting([&](Setting setting, auto member) {
    const auto& wanted = want.*member;
    const auto& there = have.*member;
    if (!wanted) return;
    if (!there) {
      comparison.unknown.push_back(setting);
      return;
    }
    Words words = Both(setting, *wanted, *there);
    if (words.want == words.have) return;
    comparison.drifts.push_back({setting, std::move(words.want), std::move(words.have)});
  });
  return comparison;
}

std::string SettingText(const PortSettings& settings, Setting setting) {
  std::string text;
  ForEachSetting([&](Setting each, auto member) {
    if (each == setting && settings.*member) text = AllOf(setting, *(settings.*member)).want;
  });
  return text;
}

}  // namespace heddle::lossless
