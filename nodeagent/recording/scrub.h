#pragma once

#include <map>
#include <set>
#include <string>

namespace heddle::nodeagent {

// What a recording consists of, before it is written: paths below its root, without links in them.
struct RecordedFiles {
  std::map<std::string, std::string> files;  // content by path
  std::map<std::string, std::string> links;  // target by path
  std::set<std::string> folders;
  friend bool operator==(const RecordedFiles&, const RecordedFiles&) = default;
};

// The same machine under other names, to be shown to strangers: what is paired, wired and wrong stays as it is.
//
// Replaced, the same by the same wherever it stands, in contents, links and paths:
//   GUIDs, MAC addresses, GIDs and the IP addresses in them: the maker's half stays, the rest is a number
//   UUIDs (GPUs, NVLink clusters, VMBus), AMD's unique ids, board ids, serial numbers
//   names of this host, of switches and of other hosts; cloud labels; the site
// Reduced: a VPD to whether it says SW_MNG; PCI configuration space to its first 256 bytes, which the serial
// number capability is not in; LLDP neighbours to name, port and TTL.
// Kept: PCI addresses, product names, firmware versions, interface names (but a MAC address in one), ports of
// switches, a plane in a switch's name, and all counters. Numbers are dealt in the order of appearance, so what
// comes out tells nothing of what went in.
//
// Pure and total: bytes that are no file of that kind are treated as text.
RecordedFiles Scrub(const RecordedFiles& recorded);

}  // namespace heddle::nodeagent
