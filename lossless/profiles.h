#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/policy.h"

namespace heddle::lossless {

struct ProfileValue {
  std::string_view field;   // as in Provenance
  std::string_view source;  // who says so
};

// What one kind of NIC is to get, under a name with a version: a value that turns out wrong makes a new
// version, and whoever named the old one keeps it.
struct Profile {
  std::string name;                       // "connectx-7/v1"
  std::vector<std::string_view> devices;  // PCI "vendor:device"; empty = any
  Policy values;                          // only what stands in `sources`
  std::vector<ProfileValue> sources;      // one for each value
  std::string_view no_watchdog;           // why the NIC has none; empty = it has
  std::string_view note;                  // what a person should know; may be empty
};

std::span<const Profile> Profiles();
const Profile* FindProfile(std::string_view name);  // null: there is none of that name
// The first that is for NICs of this PCI id; null: none names it.
const Profile* ProfileOfDevice(std::string_view device);
std::string ProfileNames();  // "bluefield-3/v1, connectx-6/v1, …"

}  // namespace heddle::lossless
