#include "crds/devices_codec.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/names.h"
#include "crds/kept_text.h"
#include "crds/lossless_codec.h"
#include "crds/rdma_device_policy.h"

namespace heddle::crds {
namespace {

constexpr std::array<std::string_view, 3> kModeNames{"WholeNode", "Pairs", "Nics"};
constexpr std::array<std::string_view, 3> kPluginNames{"Heddle", "RdmaShared", "Sriov"};
constexpr std::array<std::string_view, 4> kStateNames{"Offered", "Pending", "Refused", "Elsewhere"};

std::optional<DeviceMode> ParseMode(std::string_view text) {
  return base::ValueNamed<DeviceMode>(kModeNames, text);
}
std::optional<DevicePlugin> ParsePlugin(std::string_view text) {
  return base::ValueNamed<DevicePlugin>(kPluginNames, text);
}
std::optional<DeviceState> ParseState(std::string_view text) {
  return base::ValueNamed<DeviceState>(kStateNames, text);
}

bool Only(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

bool IsResourceName(std::string_view name) {
  constexpr std::string_view kSmall = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  constexpr std::string_view kAll = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && Only(name.substr(0, slash), kSmall) &&
         Only(name.substr(slash + 1), kAll);
}

}  // namespace

std::string_view DeviceModeName(DeviceMode mode) {
  return kModeNames[std::size_t(mode)];
}
std::string_view DevicePluginName(DevicePlugin plugin) {
  return kPluginNames[std::size_t(plugin)];
}
std::string_view DeviceStateName(DeviceState state) {
  return kStateNames[std::size_t(state)];
}

std::string DevicesSummary(const std::vector<DeviceReport>& reports) {
  if (reports.empty()) return "?";
  const auto offered = std::count_if(reports.begin(), reports.end(), [](const DeviceReport& report) {
    return report.state == DeviceState::kOffered ||
           (report.state == DeviceState::kElsewhere && report.healthy > 0);
  });
  return std::to_string(offered) + "/" + std::to_string(reports.size());
}

namespace codec {

constexpr std::size_t kMaxPorts = 128;
constexpr std::size_t kMaxPortName = 72;
constexpr std::int64_t kMaxDevices = 1024;

DeviceMode ReadDeviceMode(const Field& field) {
  return field.Word(ParseMode, "WholeNode, Pairs, Nics", DeviceMode::kWholeNode);
}

DevicePlugin ReadDevicePlugin(const Field& field) {
  return field.Word(ParsePlugin, "Heddle, RdmaShared, Sriov", DevicePlugin::kHeddle);
}

std::string ReadResourceName(const Field& field, bool mark) {
  std::string name = field.Required().Text(253);
  const std::string_view bare = mark ? RailStemOf(name).value_or(name) : std::string_view(name);
  if (!IsResourceName(bare)) field.Refuse("must be a resource with its domain, as heddle.dev/rdma");
  return name;
}

Json WriteDeviceWish(const DeviceWish& wish) {
  Json json{{"resource", Clean(wish.resource, 253)},
            {"policies", TextList(wish.policies, 8, 253)},
            {"mode", DeviceModeName(wish.mode)},
            {"plugin", DevicePluginName(wish.plugin)}};
  PutPositive(json, "generation", wish.generation);
  PutText(json, "policyUid", wish.policy_uid, kMaxUid);
  PutList(json, "ports", TextList(wish.ports, kMaxPorts, kMaxPortName));
  if (wish.slots != 1) json["slots"] = wish.slots;
  PutText(json, "reason", wish.reason, kMaxKeptReason);
  return json;
}

DeviceWish ReadDeviceWishHead(const Field& field) {
  DeviceWish wish;
  wish.resource = ReadResourceName(field("resource"), false);
  const Field policies = field("policies");
  wish.policies = policies.Required().Names(8, 253);
  if (wish.policies.empty()) policies.Refuse("names no policy");
  wish.generation = field("generation").Int64(0, kMaxInt64);
  wish.policy_uid = field("policyUid").Text(kMaxUid);
  return wish;
}

std::span<const std::string_view> DeviceWishKeys() {
  static constexpr std::array<std::string_view, 9> kKeys{
      "resource", "policies", "generation", "policyUid", "mode", "plugin", "ports", "slots", "reason"};
  return kKeys;
}

DeviceWish ReadDeviceWish(const Field& field) {
  DeviceWish wish = ReadDeviceWishHead(field);
  NoteUnknown(field, DeviceWishKeys(), wish.not_understood);
  const Field mode = field("mode"), plugin = field("plugin");
  wish.mode = ReadDeviceMode(mode.Required());
  wish.plugin = ReadDevicePlugin(plugin.Required());
  wish.ports = field("ports").Names(kMaxPorts, kMaxPortName);
  std::sort(wish.ports.begin(), wish.ports.end());
  wish.slots = field("slots").Int(1, kMaxSlots, 1);
  wish.reason = field("reason").Text(kMaxKeptReason);
  return wish;
}

Json WriteDeviceReport(const DeviceReport& report) {
  Json json{{"resource", Clean(report.resource, 253)},
            {"policy", Clean(report.edition.policy, 253)},
            {"state", DeviceStateName(report.state)}};
  PutPositive(json, "generation", report.edition.generation);
  PutText(json, "policyUid", report.edition.uid, kMaxUid);
  PutText(json, "reason", report.reason, kMaxKeptReason);
  PutPositive(json, "healthy", report.healthy);
  PutPositive(json, "total", report.total);
  return json;
}

DeviceReport ReadDeviceReport(const Field& field) {
  DeviceReport report;
  report.resource = ReadResourceName(field("resource"), false);
  report.edition.policy = field("policy").Required().Text(253);
  report.edition.generation = field("generation").Int64(0, kMaxInt64);
  report.edition.uid = field("policyUid").Text(kMaxUid);
  report.state = field("state").Required().Word(ParseState, "Offered, Pending, Refused, Elsewhere",
                                                DeviceState::kPending);
  report.reason = field("reason").Text(kMaxKeptReason);
  report.healthy = field("healthy").Int(0, kMaxDevices);
  report.total = field("total").Int(0, kMaxDevices);
  return report;
}

}  // namespace codec
}  // namespace heddle::crds
