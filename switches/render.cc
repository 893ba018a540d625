#include "switches/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "crds/object_meta.h"
#include "formats/printable.h"
#include "lossless/lint.h"
#include "lossless/switch_render.h"
#include "switches/cables.h"

namespace heddle::switches {
namespace {

// Longer than any table's key and any list of 64 DSCPs.
constexpr std::size_t kMaxLine = 2048;

// A map of 64 entries as a line: "0-25,27-63: 0; 26: 3".
std::string ShortValue(const std::string& text) {
  const crds::Json json = crds::Json::parse(text, nullptr, false);
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object()) return text;
  lossless::DscpMap map = lossless::AllDscps(lossless::kNotSaid);
  std::size_t numbers = 0;
  for (const auto& [key, value] : json.items()) {
    const auto dscps = lossless::ParseDscpRanges(key);
    const bool digit = value.is_string() && value.get<std::string>().size() == 1 &&
                       std::isdigit(static_cast<unsigned char>(value.get<std::string>()[0])) != 0;
    if (!dscps || dscps->size() != 1 || !digit) break;
    map[std::size_t(dscps->front())] = std::int8_t(value.get<std::string>()[0] - '0');
    ++numbers;
  }
  if (numbers == 0 || numbers != json.size()) return text;
  std::string shorter;
  for (int value = 0; value <= 9; ++value) {
    const std::string keys = lossless::DscpRanges(map, value);
    if (!keys.empty()) shorter += fmt::format("{}{}: {}", shorter.empty() ? "" : "; ", keys, value);
  }
  return shorter;
}

// NVIDIA's numbers of switches, by chip, as platform/mellanox/asic_table.j2 has them.
constexpr std::array<std::string_view, 14> kSpectrum1To3{"2010", "2100", "2201", "2410", "2700",
                                                         "2740", "3420", "3700", "3800", "4280",
                                                         "4410", "4600", "4700", "4800"};
constexpr std::array<std::string_view, 4> kSpectrum4And5{"5400", "5600", "5610", "5640"};

// Of a platform, "x86_64-nvidia_sn5600-r0" or "x86_64-mlnx_msn2700-r0", or a hwsku, "Mellanox-SN4700-O128" or
// "ACS-MSN2700". Empty: it is none of those that are known.
std::string_view ProfileOfName(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  const std::array<std::string_view, 5> makers{"mlnx", "mellanox", "nvidia", "acs-msn", "acs-sn"};
  if (std::none_of(makers.begin(), makers.end(),
                   [&](std::string_view maker) { return lower.find(maker) != std::string::npos; }))
    return "";
  constexpr std::size_t kDigits = 4;
  for (std::size_t at = lower.find("sn"); at != std::string::npos; at = lower.find("sn", at + 1)) {
    const std::string number = lower.substr(at + 2, kDigits);
    const auto is = [&](std::string_view one) { return one == number; };
    if (std::any_of(kSpectrum1To3.begin(), kSpectrum1To3.end(), is)) return "spectrum/v1";
    if (std::any_of(kSpectrum4And5.begin(), kSpectrum4And5.end(), is)) return "spectrum4/v1";
  }
  return "";
}

std::string Clean(const std::string& text) {
  return formats::Printable(text, kMaxLine);
}

}  // namespace

std::string Explain(const formats::SonicPatch& patch,
                    const std::function<std::string(const std::string&)>& faint) {
  std::string text;
  for (const formats::PatchLine& line : patch.lines) {
    text += fmt::format("{:<8}{}\n", line.op, Clean(line.where));
    if (!line.before.empty()) text += "        was " + Clean(ShortValue(line.before)) + "\n";
    if (!line.value.empty()) text += "        is  " + Clean(ShortValue(line.value)) + "\n";
    text += faint(fmt::format("        {} ({})", Clean(line.why), Clean(line.source))) + "\n";
  }
  return text;
}

base::Result<ConfigFaults> FaultsOf(const std::string& config_text, const formats::SonicPatch& patch) {
  ConfigFaults faults;
  ASSIGN_OR_RETURN(faults.before, formats::CheckSonic(config_text));
  ASSIGN_OR_RETURN(const std::string patched, formats::Patched(config_text, patch));
  ASSIGN_OR_RETURN(std::vector<formats::SonicFault> after, formats::CheckSonic(patched));
  for (formats::SonicFault& fault : after) {
    if (std::find(faults.before.begin(), faults.before.end(), fault) == faults.before.end())
      faults.made.push_back(std::move(fault));
  }
  return faults;
}

const lossless::SwitchProfile& ProfileOf(const SonicAnswer& answer) {
  std::string_view profile = ProfileOfName(answer.platform);
  if (profile.empty()) profile = ProfileOfName(answer.model);
  return *lossless::FindSwitchProfile(profile.empty() ? "sonic/v1" : profile);
}

base::Result<formats::SonicPatch> RenderPorts(const SonicAnswer& answer, const PolicyPorts& wanted) {
  for (const lossless::Finding& finding :
       lossless::Lint({lossless::SubjectOf(wanted.policy, wanted.resolved)})) {
    if (finding.severity == lossless::Severity::kError)
      return base::Fail(base::Code::kInvalid, fmt::format("LosslessPolicy {}: {}: {}; {}", wanted.policy,
                                                          finding.rule, finding.fact, finding.remedy));
  }
  const lossless::SwitchProfile& profile = ProfileOf(answer);
  std::vector<formats::SonicWish> wishes;
  const auto wish = [&](const std::string& port, lossless::PortFacing facing) {
    lossless::SwitchPortFacts facts;
    facts.facing = facing;
    if (const formats::SonicPort* found = PortOf(answer.config, port)) facts.speed_mbps = found->speed_mbps;
    wishes.push_back({port, lossless::RenderSwitchPort(wanted.resolved, profile, facts)});
  };
  for (const std::string& port : wanted.host_ports) wish(port, lossless::PortFacing::kHost);
  for (const std::string& port : wanted.fabric_ports) wish(port, lossless::PortFacing::kFabric);
  return formats::PatchSonic(answer.text, wanted.policy, wishes);
}

}  // namespace heddle::switches
