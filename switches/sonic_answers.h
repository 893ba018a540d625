#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crds/object_meta.h"
#include "formats/sonic_config.h"

namespace heddle::switches {

// How a SONiC switch is read over gNMI (sonic-net/sonic-gnmi, sonic_data_client/db_client.go): a path is a table of the
// database that the request's target names, and its answer one object of all rows, by keys that are joined with "|". A
// table that does not exist is {}, without an error; until 202311 it was NOT_FOUND for the whole Get.

inline constexpr const char* kConfigDatabase = "CONFIG_DB";
inline constexpr const char* kSonicModel = "sonic-db";  // by which Capabilities tell such a server

// All tables that how its ports are set is read from.
const std::vector<std::string>& SonicConfigTables();

// Whether no SONiC is without a row of it: one that refuses such a table by itself cannot be read, and one that refuses
// another has none.
bool EverySonicHas(std::string_view table);

struct SonicAnswer {
  formats::SonicConfig config;
  std::string text;      // the tables as one config_db.json: what a patch is made against
  std::string model;     // DEVICE_METADATA's hwsku; empty = it says none
  std::string platform;  // DEVICE_METADATA's platform, "x86_64-nvidia_sn5600-r0"; likewise
  // SHA-256 of the text, and of the same with its keys in order: 50 KB of each of hundreds of switches were kept for
  // nothing but to be compared.
  std::string said, sorted;
};

// Makes one configuration of the tables, JSON texts by name, as SonicAnswer's `text`. `tables` is what the switch said
// and may be anything.
// Errors: kInvalid where it cannot be one: a table that is no object, none of PORT.
[[nodiscard]] base::Result<std::string> SonicConfigText(const std::map<std::string, std::string>& tables);

// Whether such a text says what was read, which may have lost its own: nearly always byte by byte, which is cheaper
// than to read it; but a server may print its maps in any order.
bool SaysSame(const SonicAnswer& read, const std::string& text);

// The priorities that any of its ports pauses.
lossless::PrioritySet LosslessOf(const formats::SonicConfig& config);

// Whether its watchdog looks at every queue that it makes lossless, and these are the same ones on each port: then
// COUNTERS/Ethernet*/Pfcwd has all that is worth counting of queues, a tenth of what Queues has. A switch reads the
// queues of the first port, and knows only the map AZURE (virtual_db.go), so it may have none of them all the same.
bool WatchesLossless(const formats::SonicConfig& config);

// Reads such a text. Errors: kInvalid where there is no hostname at all; kTooLarge as ParseSonicConfig. Half of what it
// takes is an error, or ports that cannot be read, and never a port without settings.
[[nodiscard]] base::Result<SonicAnswer> ReadSonicText(std::string text);

}  // namespace heddle::switches
