#pragma once

#include <string>
#include <vector>

#include "lossless/port_settings.h"

namespace heddle::lossless {

// One setting that is not as it should be.
struct Drift {
  Setting setting = Setting::kDcbx;
  std::string want;  // of a table only what differs: "DSCP 26: 3"
  std::string have;
  friend bool operator==(const Drift&, const Drift&) = default;
};

// What of `want` can be said of `have`, in the order of the settings.
struct Comparison {
  std::vector<Drift> drifts;
  std::vector<Setting> unknown;  // wanted, and nobody could read it
  bool compliant() const { return drifts.empty() && unknown.empty(); }
  friend bool operator==(const Comparison&, const Comparison&) = default;
};
// A setting that `want` does not name is not looked at. Of a table, an entry that `want` leaves open
// (kNotSaid, Any) is not looked at either, nor are DCQCN parameters that it does not name.
Comparison Compare(const PortSettings& want, const PortSettings& have);

// A setting in words: "26: 3, 48: 6, else 0", "DSCP", "9000". Empty where nobody said it.
std::string SettingText(const PortSettings& settings, Setting setting);

}  // namespace heddle::lossless
