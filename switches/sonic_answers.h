#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "crds/object_meta.h"
#include "formats/sonic_config.h"

namespace heddle::switches {

// How a SONiC switch is read over gNMI (sonic-net/sonic-gnmi, sonic_data_client/db_client.go): a path is a table of the
// database that the request's target names, and its answer one object of all rows, by keys that are joined with "|". A
// table that does not exist is {}, without an error.

inline constexpr const char* kConfigDatabase = "CONFIG_DB";
inline constexpr const char* kSonicModel = "sonic-db";  // by which Capabilities tell such a server

// All tables that how its ports are set is read from.
const std::vector<std::string>& SonicConfigTables();

struct SonicAnswer {
  formats::SonicConfig config;
  std::string text;   // the tables as one config_db.json: what a patch is made against
  std::string model;  // DEVICE_METADATA's hwsku; empty = it says none
};

// Makes one configuration of the tables, by name, as SonicAnswer's `text`: equal for as long as the switch says the
// same, and much cheaper to compare than to read. `tables` is what the switch said and may be anything.
// Errors: kInvalid where it cannot be one: a table that is no object, none of PORT.
[[nodiscard]] base::Result<std::string> SonicConfigText(std::map<std::string, crds::Json> tables);

// Reads such a text. Errors: kInvalid where there is no hostname at all; kTooLarge as ParseSonicConfig. Half of what it
// takes is an error and never a port without settings.
[[nodiscard]] base::Result<SonicAnswer> ReadSonicText(std::string text);

}  // namespace heddle::switches
