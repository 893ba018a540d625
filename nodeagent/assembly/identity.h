#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::nodeagent {

// Which machine this is.
struct Identity {
  std::string node;        // the Kubernetes Node's name, and so the NodeTopology's
  std::string product;     // empty = whatever the firmware says
  std::string site;        // empty = the one site
  std::string uncabled{};  // ports that its owner says have no cable, as UncabledPorts::Parse takes them
  std::string storage{};   // NICs that its owner says are for storage, as StorageNics::Parse takes them
  std::vector<std::string> strangers{};  // keys of machine.yaml that mean nothing, as misspelt ones do
  friend bool operator==(const Identity&, const Identity&) = default;
};

// machine.yaml of a recorded machine: name (the product), hostname, site, uncabled, storage. Other keys are
// Identity::strangers.
[[nodiscard]] base::Result<Identity> ParseMachineYaml(std::string_view yaml);
std::string FormatMachineYaml(const Identity& identity);

// A Node's name: what Kubernetes takes as a DNS subdomain. Empty when `name` is one, else what is wrong with
// it.
std::string WhyNotNodeName(std::string_view name);

}  // namespace heddle::nodeagent
