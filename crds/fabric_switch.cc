#include "crds/fabric_switch.h"

#include <array>

#include "base/names.h"
#include "crds/codec.h"
#include "crds/endpoint_codec.h"
#include "crds/keys.h"
#include "crds/lossless_codec.h"

namespace heddle::crds {
namespace {

using codec::Field;
using lossless::LosslessVerdict;

constexpr std::array<std::string_view, 2> kDialects{"Sonic", "OpenConfig"};
constexpr std::array<std::string_view, 3> kRoles{"Leaf", "Spine", "Core"};
constexpr std::array<std::string_view, 2> kModes{"Observe", "Render"};
constexpr std::int64_t kMaxSwitchPorts = 4096;
constexpr std::size_t kMaxName = 253;

std::optional<SwitchDialect> ParseDialect(std::string_view text) {
  return base::ValueNamed<SwitchDialect>(kDialects, text);
}
std::optional<SwitchRole> ParseRole(std::string_view text) {
  return base::ValueNamed<SwitchRole>(kRoles, text);
}
std::optional<SwitchMode> ParseMode(std::string_view text) {
  return base::ValueNamed<SwitchMode>(kModes, text);
}

std::string OptionalName(const Field& field, std::size_t max) {
  return field.present() ? field.Name(max) : std::string();
}

FabricSwitchSpec ReadSpec(const Field& field) {
  FabricSwitchSpec spec;
  const Field address = field("address");
  spec.address = codec::ReadAddress(address, "leaf-3.example:8080");
  spec.credentials_secret = codec::ReadSecretName(field("credentialsSecret"));
  const Field tls = field("tls");
  tls.CheckObject();
  spec.tls.server_name = OptionalName(tls("serverName"), kMaxName);
  spec.tls.ca_secret = codec::ReadSecretName(tls("caSecret"));
  const Field mode = field("mode");
  spec.dialect = field("dialect").Word(ParseDialect, "Sonic, OpenConfig", SwitchDialect::kSonic);
  spec.role = field("role").Required().Word(ParseRole, "Leaf, Spine, Core", SwitchRole::kLeaf);
  spec.mode = mode.Word(ParseMode, "Observe, Render", SwitchMode::kObserve);
  if (spec.mode == SwitchMode::kRender && spec.dialect != SwitchDialect::kSonic)
    mode.Refuse("OpenConfig has no PFC and no watchdog to render: it goes with Observe");
  spec.name = OptionalName(field("name"), 255);
  spec.chassis_id = OptionalName(field("chassisId"), 255);
  if (spec.name.empty() && spec.chassis_id.empty())
    field.Refuse("names neither name nor chassisId: nothing joins the switch with its cables");
  spec.poll_seconds = field("pollSeconds").Int(10, 3600, kDefaultPollSeconds);
  return spec;
}

SwitchCounts ReadCounts(const Field& field) {
  SwitchCounts counts;
  counts.ports = field("ports").Int(0, kMaxSwitchPorts);
  counts.cables = codec::ReadCableCounts(field, kMaxSwitchPorts);
  return counts;
}

SwitchCable ReadCable(const Field& field) {
  SwitchCable cable;
  cable.node = field("node").Required().Name(kMaxName);
  cable.port = field("port").Required().Name(72);
  cable.switch_port = field("switchPort").Required().Name(255);
  cable.verdict = field("verdict").Required().Word(
      lossless::ParseLosslessVerdict, "Contradiction, Unproved, Lossless", LosslessVerdict::kUnproved);
  cable.setting = field("setting").Text(64);
  cable.host = field("host").Text(256);
  cable.leaf = field("switch").Text(256);
  cable.message = field("message").Text(512);
  return cable;
}

FabricSwitchStatus ReadStatus(const Field& field) {
  FabricSwitchStatus status;
  status.observed_generation = field("observedGeneration").Int64(0, codec::kMaxInt64);
  status.model = field("model").Text(128);
  status.version = field("version").Text(128);
  status.read_at = field("readAt").Time();
  status.render_config_map = field("renderConfigMap").Text(kMaxName);
  status.counts = ReadCounts(field("counts"));
  status.worst_cables = field("worstCables").List(kMaxWorstCables, ReadCable);
  status.conditions = codec::ReadConditions(field("conditions"));
  return status;
}

Json WriteSpec(const FabricSwitchSpec& spec) {
  Json json{{"address", codec::Clean(spec.address, 259)},
            {"dialect", SwitchDialectName(spec.dialect)},
            {"role", SwitchRoleName(spec.role)},
            {"mode", SwitchModeName(spec.mode)},
            {"pollSeconds", spec.poll_seconds}};
  if (!spec.credentials_secret.empty()) json["credentialsSecret"] = codec::WriteSecretName(spec.credentials_secret);
  Json tls = Json::object();
  codec::PutText(tls, "serverName", spec.tls.server_name, kMaxName);
  if (!spec.tls.ca_secret.empty()) tls["caSecret"] = codec::WriteSecretName(spec.tls.ca_secret);
  if (!tls.empty()) json["tls"] = std::move(tls);
  codec::PutText(json, "name", spec.name, 255);
  codec::PutText(json, "chassisId", spec.chassis_id, 255);
  return json;
}

Json WriteCable(const SwitchCable& cable) {
  Json json{{"node", codec::Clean(cable.node, kMaxName)},
            {"port", codec::Clean(cable.port, 72)},
            {"switchPort", codec::Clean(cable.switch_port, 255)},
            {"verdict", lossless::LosslessVerdictName(cable.verdict)}};
  codec::PutText(json, "setting", cable.setting, 64);
  codec::PutText(json, "host", cable.host, 256);
  codec::PutText(json, "switch", cable.leaf, 256);
  codec::PutText(json, "message", cable.message, 512);
  return json;
}

Json WriteStatus(const FabricSwitchStatus& status) {
  const SwitchCounts& counts = status.counts;
  Json json{{"counts", {{"ports", counts.ports}}}};
  codec::PutCableCounts(json["counts"], counts.cables);
  codec::PutPositive(json, "observedGeneration", status.observed_generation);
  codec::PutText(json, "model", status.model, 128);
  codec::PutText(json, "version", status.version, 128);
  codec::PutTime(json, "readAt", status.read_at);
  codec::PutText(json, "renderConfigMap", status.render_config_map, kMaxName);
  // Of a switch that has never answered nobody knows how many cables there are.
  json["summary"] = {{"lossless", !status.read_at             ? std::string("?")
                                  : counts.cables.cables == 0 ? std::string("-")
                                                              : std::to_string(counts.cables.lossless) + "/" +
                                                                    std::to_string(counts.cables.cables)}};
  codec::PutList(json, "worstCables", codec::WriteList(status.worst_cables, kMaxWorstCables, WriteCable));
  codec::PutList(json, "conditions", codec::WriteConditions(status.conditions));
  return json;
}

}  // namespace

std::string_view SwitchDialectName(SwitchDialect dialect) {
  return kDialects[std::size_t(dialect)];
}

std::string_view SwitchRoleName(SwitchRole role) {
  return kRoles[std::size_t(role)];
}

std::string_view SwitchModeName(SwitchMode mode) {
  return kModes[std::size_t(mode)];
}

base::Result<FabricSwitch> FabricSwitchFromJson(const Json& json) {
  codec::Problem problem;
  const Field root(json, problem);
  FabricSwitch object;
  codec::ReadHead(root, keys::kFabricSwitch.kind, object);
  const Field spec = root("spec"), status = root("status");
  object.spec = ReadSpec(spec.Required());
  object.status = ReadStatus(status);
  if (problem.found()) return base::Fail(problem.error().In("FabricSwitch " + object.name));
  return object;
}

Json ToJson(const FabricSwitch& object) {
  Json json = codec::WriteHead(keys::kFabricSwitch.kind, object);
  json["spec"] = WriteSpec(object.spec);
  json["status"] = WriteStatus(object.status);
  return json;
}

Json StatusApplyJson(const FabricSwitch& object) {
  Json json = codec::ApplyHead(keys::kFabricSwitch.kind, object, false);
  json["status"] = WriteStatus(object.status);
  return json;
}

}  // namespace heddle::crds
