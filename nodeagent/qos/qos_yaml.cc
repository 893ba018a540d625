#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "crds/node_lossless.h"
#include "crds/yaml.h"
#include "formats/printable.h"
#include "nodeagent/qos/recorded_port_io.h"

namespace heddle::nodeagent {
namespace {

using crds::Json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxPorts = 1024;
constexpr std::size_t kMaxErrors = 1024;
constexpr std::size_t kMaxText = 256;
constexpr std::size_t kMaxHolders = 64;

base::Error Wrong(std::string_view what) {
  return {base::Code::kInvalid, std::string(what), std::nullopt};
}

// Absent is empty.
base::Result<std::string> Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return base::Fail(Wrong(fmt::format("{} is no text", key)));
  return formats::Printable(found->get<std::string>(), kMaxText);
}

// Absent is none.
base::Result<std::vector<std::string>> Texts(const Json& object, const char* key, std::size_t max) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return texts;
  if (!found->is_array() || found->size() > max) {
    return base::Fail(Wrong(fmt::format("{} is no list of at most {} texts", key, max)));
  }
  for (const Json& text : *found) {
    if (!text.is_string()) return base::Fail(Wrong(fmt::format("{}: an entry is no text", key)));
    texts.push_back(formats::Printable(text.get<std::string>(), kMaxText));
  }
  return texts;
}

// YAML's numbers come signed.
std::optional<std::uint64_t> Positive(const Json& value) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<std::int64_t>() < 0)) return {};
  return value.get<std::uint64_t>();
}

// Absent is `absent`.
base::Result<std::uint64_t> Number(const Json& object, const char* key, std::uint64_t max,
                                   std::uint64_t absent = 0) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absent;
  const auto number = Positive(*found);
  if (!number || *number > max)
    return base::Fail(Wrong(fmt::format("{} is no number from 0 to {}", key, max)));
  return *number;
}

base::Result<bool> Bool(const Json& object, const char* key, bool absent) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absent;
  if (!found->is_boolean()) return base::Fail(Wrong(fmt::format("{} is neither true nor false", key)));
  return found->get<bool>();
}

// Calls `read` with each object of a list; absent is none.
template <class Read>
base::Status Each(const Json& object, const char* key, std::size_t max, Read read) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_array()) return base::Fail(Wrong(fmt::format("{} is no list", key)));
  if (found->size() > max) {
    return base::Fail(base::Code::kTooLarge, fmt::format("{} has more than {} entries", key, max));
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    const Json& item = (*found)[i];
    if (!item.is_object()) return base::Fail(Wrong(fmt::format("{}[{}] is no object", key, i)));
    TRY(read(item), fmt::format("{}[{}]", key, i));
  }
  return {};
}

base::Result<lossless::Setting> SettingOf(const Json& object) {
  ASSIGN_OR_RETURN(const std::string name, Text(object, "setting"));
  const auto setting = lossless::ParseSetting(name);
  if (!setting || int(*setting) >= lossless::kHostSettings) {
    return base::Fail(Wrong(fmt::format("\"{}\" is no setting of a host's port", name)));
  }
  return *setting;
}

base::Result<base::Code> CodeOf(const Json& object) {
  ASSIGN_OR_RETURN(const std::string name, Text(object, "code"));
  for (int code = 0; code <= int(base::Code::kInternal); ++code) {
    if (base::CodeName(base::Code(code)) == name) return base::Code(code);
  }
  return base::Fail(Wrong(fmt::format("\"{}\" is no code as Unavailable or Unimplemented", name)));
}

base::Status ReadLink(const Json& object, LinkEvidence& link) {
  const auto found = object.find("link");
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_object()) return base::Fail(Wrong("link is no object"));
  ASSIGN_OR_RETURN(link.carrier, Bool(*found, "carrier", true));
  ASSIGN_OR_RETURN(link.carrier_changes,
                   Number(*found, "carrierChanges", std::numeric_limits<std::uint32_t>::max()));
  const auto errors = found->find("errors");
  if (errors == found->end() || errors->is_null()) return {};
  if (!errors->is_object() || errors->size() > kMaxErrors) {
    return base::Fail(Wrong("link.errors is no object of counters"));
  }
  for (const auto& [name, value] : errors->items()) {
    const auto number = Positive(value);
    if (!number) return base::Fail(Wrong("link.errors: a counter is no number from 0"));
    link.errors[formats::Printable(name, kMaxText)] = *number;
  }
  return {};
}

base::Status ReadPort(const Json& item, RecordedQosPort& recorded) {
  QosPort& port = recorded.port;
  ASSIGN_OR_RETURN(port.rdma_device, Text(item, "rdmaDevice"));
  ASSIGN_OR_RETURN(const std::uint64_t number, Number(item, "rdmaPort", 255, 1));
  port.rdma_port = int(number);
  ASSIGN_OR_RETURN(port.netdev, Text(item, "netdev"));
  ASSIGN_OR_RETURN(port.pci_address, Text(item, "pciAddress"));
  ASSIGN_OR_RETURN(port.driver, Text(item, "driver"));
  if (const auto settings = item.find("settings"); settings != item.end() && !settings->is_null()) {
    ASSIGN_OR_RETURN(recorded.reading.have, crds::PortSettingsFromJson(*settings), "settings");
  }
  TRY(Each(item, "gaps", lossless::kHostSettings, [&](const Json& gap) -> base::Status {
    ASSIGN_OR_RETURN(const lossless::Setting setting, SettingOf(gap));
    ASSIGN_OR_RETURN(std::string reason, Text(gap, "reason"));
    recorded.reading.gaps.push_back({setting, std::move(reason)});
    return {};
  }));
  ASSIGN_OR_RETURN(const std::string fec, Text(item, "fec"));
  recorded.reading.fec = lossless::ParseFec(fec);
  if (!fec.empty() && !recorded.reading.fec)
    return base::Fail(Wrong(fmt::format("fec: \"{}\" is none of none, fc and rs", fec)));
  ASSIGN_OR_RETURN(recorded.reading.gone, Bool(item, "gone", false));
  ASSIGN_OR_RETURN(const std::uint64_t pairs,
                   Number(item, "queuePairs", std::uint64_t(std::numeric_limits<std::int32_t>::max())));
  recorded.queue_pairs = int(pairs);
  ASSIGN_OR_RETURN(recorded.holders, Texts(item, "holders", kMaxHolders));
  TRY(ReadLink(item, recorded.link));
  ASSIGN_OR_RETURN(recorded.writer, Text(item, "writer"));
  return Each(item, "refuses", lossless::kHostSettings, [&](const Json& refusal) -> base::Status {
    ASSIGN_OR_RETURN(const lossless::Setting setting, SettingOf(refusal));
    ASSIGN_OR_RETURN(const base::Code code, CodeOf(refusal));
    ASSIGN_OR_RETURN(std::string message, Text(refusal, "message"));
    recorded.refuses.push_back({setting, {code, std::move(message), std::nullopt}});
    return {};
  });
}

void PutText(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

Json WritePort(const RecordedQosPort& recorded) {
  const QosPort& port = recorded.port;
  Json json{{"name", port.name}, {"rdmaPort", port.rdma_port}};
  if (recorded.queue_pairs >= 0) json["queuePairs"] = recorded.queue_pairs;
  if (!recorded.holders.empty()) json["holders"] = recorded.holders;
  PutText(json, "rdmaDevice", port.rdma_device);
  PutText(json, "netdev", port.netdev);
  PutText(json, "pciAddress", port.pci_address);
  PutText(json, "driver", port.driver);
  PutText(json, "writer", recorded.writer);
  json["settings"] = crds::ToJson(recorded.reading.have);
  if (recorded.reading.fec) json["fec"] = lossless::FecName(*recorded.reading.fec);
  if (recorded.reading.gone) json["gone"] = true;
  for (const lossless::Gap& gap : recorded.reading.gaps) {
    json["gaps"].push_back({{"setting", lossless::SettingName(gap.setting)}, {"reason", gap.reason}});
  }
  for (const QosRefusal& refusal : recorded.refuses) {
    json["refuses"].push_back({{"setting", lossless::SettingName(refusal.setting)},
                               {"code", base::CodeName(refusal.error.code)},
                               {"message", refusal.error.message}});
  }
  json["link"] = {{"carrier", recorded.link.carrier}, {"carrierChanges", recorded.link.carrier_changes}};
  if (!recorded.link.errors.empty()) json["link"]["errors"] = recorded.link.errors;
  return json;
}

}  // namespace

base::Result<RecordedQosPorts> ParseQosYaml(std::string_view yaml) {
  if (yaml.size() > kMaxBytes)
    return base::Fail(base::Code::kTooLarge, "qos.yaml is longer than any machine's");
  ASSIGN_OR_RETURN(const Json file, crds::FromYaml(std::string(yaml)), "qos.yaml");
  if (!file.is_object()) return base::Fail(Wrong("qos.yaml is no object with a list `ports`"));
  RecordedQosPorts ports;
  TRY(Each(file, "ports", kMaxPorts,
           [&](const Json& item) -> base::Status {
             ASSIGN_OR_RETURN(const std::string name, Text(item, "name"));
             if (name.empty()) return base::Fail(Wrong("name is missing"));
             const auto [place, fresh] = ports.try_emplace(name);
             if (!fresh) return base::Fail(Wrong(fmt::format("{} stands twice", name)));
             place->second.port.name = name;
             place->second.link.carrier = true;
             return ReadPort(item, place->second);
           }),
      "qos.yaml");
  return ports;
}

Json QosJson(const RecordedQosPorts& ports) {
  Json list = Json::array();
  for (const auto& [name, recorded] : ports) list.push_back(WritePort(recorded));
  return Json{{"ports", std::move(list)}};
}

std::string FormatQosYaml(const RecordedQosPorts& ports) {
  return crds::ToYaml(QosJson(ports));
}

RecordedQosPorts RecordQos(PortIo& io, std::span<const QosPort> ports) {
  RecordedQosPorts recorded;
  for (const QosPort& port : ports) {
    RecordedQosPort& one = recorded[port.name];
    one.port = port;
    one.reading = io.Read(port);
    one.queue_pairs = io.UserQueuePairs(port).value_or(-1);
    one.link = io.Link(port).value_or(LinkEvidence{});
    one.writer = io.LikelyWriter(port, lossless::Setting::kPfc);
  }
  return recorded;
}

}  // namespace heddle::nodeagent
