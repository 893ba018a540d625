#include "switches/sonic_answers.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <string_view>

#include "base/trimmed.h"
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

std::string Digest(const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string DigestSorted(const Json& tree) {
  return Digest(tree.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

const std::vector<std::string>& SonicConfigTables() {
  static const std::vector<std::string> kTables{kMetadata,
                                                kPort,
                                                "PORTCHANNEL",
                                                "PORTCHANNEL_MEMBER",
                                                "PORT_QOS_MAP",
                                                "DSCP_TO_TC_MAP",
                                                "TC_TO_QUEUE_MAP",
                                                "TC_TO_PRIORITY_GROUP_MAP",
                                                "MAP_PFC_PRIORITY_TO_QUEUE",
                                                "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
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

bool EverySonicHas(std::string_view table) {
  return table == kMetadata || table == kPort;
}

base::Result<std::string> SonicConfigText(const std::map<std::string, std::string>& tables) {
  std::string config;
  std::size_t bytes = 0;
  for (const auto& [name, table] : tables) bytes += name.size() + table.size() + 4;
  config.reserve(bytes + 1);  // it stays for as long as the switch says so
  bool ports = false;
  for (const std::string& name : SonicConfigTables()) {
    const auto found = tables.find(name);
    if (found == tables.end())
      return base::Fail(Code::kInvalid, fmt::format("it did not answer for CONFIG_DB's table {}", name));
    const std::string_view table = base::Trimmed(found->second);
    if (!table.starts_with('{') || !table.ends_with('}'))
      return base::Fail(Code::kInvalid,
                        fmt::format("what it says of CONFIG_DB's table {} is no table", name));
    // An empty table is none: in a whole configuration what is missing is off.
    if (base::Trimmed(table.substr(1, table.size() - 2)).empty()) continue;
    ports = ports || name == kPort;
    config += config.empty() ? "{\"" : ",\"";
    config.append(name).append("\":").append(table);
  }
  if (!ports)
    return base::Fail(Code::kInvalid,
                      "CONFIG_DB has no port: its configuration is not loaded yet, or it is no SONiC");
  config += '}';
  return config;
}

lossless::PrioritySet LosslessOf(const formats::SonicConfig& config) {
  lossless::PrioritySet all;
  for (const formats::SonicPort& port : config.ports) {
    if (!port.settings.pfc) continue;
    for (const int priority : port.settings.pfc->Members()) all.Insert(priority);
  }
  return all;
}

bool WatchesLossless(const formats::SonicConfig& config) {
  const lossless::PrioritySet all = LosslessOf(config);
  const auto watched = [&](const formats::SonicPort& port) {
    const auto& pfc = port.settings.pfc;
    return !pfc || pfc->empty() || (*pfc == all && port.settings.watched == pfc);
  };
  // Of a port that cannot be read nobody knows what it watches.
  const auto unread = [](const formats::SonicPort& port) {
    return port.bare.starts_with(formats::kCannotBeRead);
  };
  if (std::any_of(config.bare.begin(), config.bare.end(), unread)) return false;
  return !all.empty() && std::all_of(config.ports.begin(), config.ports.end(), watched);
}

bool SaysSame(const SonicAnswer& read, const std::string& text) {
  if (Digest(text) == read.said) return true;
  const Json tree = Json::parse(text, nullptr, false);
  return !tree.is_discarded() && DigestSorted(tree) == read.sorted;
}

base::Result<SonicAnswer> ReadSonicText(std::string text) {
  SonicAnswer answer;
  answer.text = std::move(text);
  ASSIGN_OR_RETURN(const Json tree, formats::ParseSonicTables(answer.text), "CONFIG_DB");
  ASSIGN_OR_RETURN(answer.config, formats::ReadSonicTables(tree), "CONFIG_DB");
  answer.model = TextAt(tree, kMetadata, "localhost", "hwsku");
  answer.platform = TextAt(tree, kMetadata, "localhost", "platform");
  answer.said = Digest(answer.text);
  answer.sorted = DigestSorted(tree);
  if (answer.config.hostname.empty())
    return base::Fail(Code::kInvalid,
                      "it says no hostname (DEVICE_METADATA|localhost): only part of its tables came");
  return answer;
}

}  // namespace heddle::switches
