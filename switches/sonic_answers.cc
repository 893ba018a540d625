#include "switches/sonic_answers.h"

#include <fmt/format.h>

#include "formats/printable.h"

namespace heddle::switches {
namespace {

using base::Code;
using crds::Json;

constexpr const char* kMetadata = "DEVICE_METADATA";
constexpr const char* kPort = "PORT";
constexpr std::size_t kMaxWord = 128;

std::string TextAt(const Json& tables, const char* table, const char* key, const char* field) {
  const Json* at = &tables;
  for (const char* step : {table, key, field}) {
    const auto found = at->find(step);
    if (found == at->end()) return "";
    at = &*found;
    if (step != field && !at->is_object()) return "";
  }
  return at->is_string() ? formats::Printable(at->get<std::string>(), kMaxWord) : "";
}

}  // namespace

const std::vector<std::string>& SonicConfigTables() {
  static const std::vector<std::string> kTables{kMetadata,
                                                kPort,
                                                "PORT_QOS_MAP",
                                                "DSCP_TO_TC_MAP",
                                                "TC_TO_QUEUE_MAP",
                                                "TC_TO_PRIORITY_GROUP_MAP",
                                                "MAP_PFC_PRIORITY_TO_QUEUE",
                                                "QUEUE",
                                                "SCHEDULER",
                                                "WRED_PROFILE",
                                                "BUFFER_PG",
                                                "BUFFER_PROFILE",
                                                "BUFFER_QUEUE",
                                                "BUFFER_POOL",
                                                "CABLE_LENGTH",
                                                "PFC_WD"};
  return kTables;
}

base::Result<std::string> SonicConfigText(std::map<std::string, Json> tables) {
  Json config = Json::object();
  for (const std::string& name : SonicConfigTables()) {
    const auto found = tables.find(name);
    if (found == tables.end())
      return base::Fail(Code::kInvalid, fmt::format("it did not answer for CONFIG_DB's table {}", name));
    if (!found->second.is_object())
      return base::Fail(Code::kInvalid,
                        fmt::format("what it says of CONFIG_DB's table {} is no table", name));
    // An empty table is none: in a whole configuration what is missing is off.
    if (!found->second.empty()) config[name] = std::move(found->second);
  }
  if (!config.contains(kPort))
    return base::Fail(Code::kInvalid,
                      "CONFIG_DB has no port: its configuration is not loaded yet, or it is no SONiC");
  return config.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<SonicAnswer> ReadSonicText(std::string text) {
  SonicAnswer answer;
  answer.text = std::move(text);
  ASSIGN_OR_RETURN(answer.config, formats::ParseSonicConfig(answer.text), "CONFIG_DB");
  answer.model = TextAt(Json::parse(answer.text, nullptr, false), kMetadata, "localhost", "hwsku");
  if (answer.config.hostname.empty())
    return base::Fail(Code::kInvalid,
                      "it says no hostname (DEVICE_METADATA|localhost): only part of its tables came");
  return answer;
}

}  // namespace heddle::switches
