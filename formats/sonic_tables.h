#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// Between our own readers and writers of SONiC's configuration, and included by nobody else.
namespace heddle::formats::sonic {

using Json = nlohmann::json;

inline constexpr std::size_t kMaxPorts = 4096;

// The whole of a config_db.json. Errors: kInvalid with the line, kTooLarge past 32 MiB, 500,000 values.
[[nodiscard]] base::Result<Json> Parse(std::string_view json);

// Values are strings as a rule; some generators write numbers. Empty for all else.
std::string TextOf(const Json& value);

// The member of an object; null where there is none, or no object.
const Json& Member(const Json& object, std::string_view name);
// TABLE, KEY
const Json& Entry(const Json& root, std::string_view table, std::string_view key);

// What is wrong with the name of a port that PORT has not, and which was meant, as a sentence.
std::string NoSuchPort(const Json& root, const std::string& wanted);

// "Ethernet4" before "Ethernet12".
std::pair<std::string, std::uint64_t> PortOrder(const std::string& name);

// "AZURE" of "AZURE" and, as before 2022, of "[DSCP_TO_TC_MAP|AZURE]".
std::string NameIn(std::string_view table, std::string reference);

// The key of QUEUE, BUFFER_PG or BUFFER_QUEUE: Ethernet0|3-4, Ethernet0,Ethernet4|3, and of a chassis
// host|asic|Ethernet0|3.
struct RangeKey {
  std::vector<std::string> ports;
  int first = 0;
  int last = 0;
  bool chassis = false;
  bool Has(std::string_view port) const;
};
std::optional<RangeKey> ParseRangeKey(std::string_view key);
// The ports of such a key, also where what follows them is no range; none where it names none.
std::vector<std::string> PortsOfKey(std::string_view key);
// Of "Ethernet0,Ethernet4" both.
std::vector<std::string> PortsIn(std::string_view ports);
std::string RangeText(int first, int last);  // "3", "3-4"

// PORT_QOS_MAP with a row for each port: a switch takes apart one of several, as Ethernet0,Ethernet4 (sonic-swss,
// orchagent/qosorch.cpp). Null where it is no table. Of a port whose rows differ in a field `faults` gets a sentence,
// for nobody knows which of them comes last.
Json PortQosMaps(const Json& root, std::map<std::string, std::string>& faults);

// Of the ports of PORTCHANNEL_MEMBER which port channel each is in; empty where several claim it. A member takes the
// MTU of its port channel, and what PORT says of it counts for nothing (sonic-net/sonic-swss, cfgmgr/teammgr.cpp).
std::map<std::string, std::string> PortChannels(const Json& root);

}  // namespace heddle::formats::sonic
