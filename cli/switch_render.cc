#include "cli/switch_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/object_documents.h"
#include "cli/switch_files.h"
#include "crds/keys.h"
#include "crds/lossless_policy.h"
#include "crds/lossless_policy_fields.h"
#include "formats/nvue.h"
#include "formats/sonic_config.h"
#include "formats/sonic_patch.h"
#include "formats/sonic_steps.h"
#include "formats/sonic_yang.h"
#include "kube/object.h"
#include "lossless/lint.h"
#include "lossless/switch_render.h"
#include "switches/cables.h"
#include "switches/render.h"

namespace heddle::cli {
namespace {

using base::Code;
using lossless::PortFacing;

struct NamedPolicy {
  std::string name;
  lossless::ResolvedPolicy resolved;
};

base::Result<NamedPolicy> ReadPolicy(const std::string& path, const ReadFile& read) {
  ASSIGN_OR_RETURN(const std::string text, read(path));
  TRY(IsText(path, text, "one LosslessPolicy"));
  std::vector<NamedPolicy> found;
  const auto take = [&](const Json& object) -> base::Status {
    if (kube::StringAt(object, {"kind"}) != crds::keys::kLosslessPolicy.kind) return {};
    ASSIGN_OR_RETURN(const crds::LosslessPolicy policy, crds::LosslessPolicyFromJson(object));
    TRY(crds::CheckLosslessPolicyFields(object));
    ASSIGN_OR_RETURN(lossless::ResolvedPolicy resolved, lossless::Resolve(policy.spec.policy),
                     "LosslessPolicy " + policy.name);
    found.push_back({policy.name, std::move(resolved)});
    return {};
  };
  TRY(ForEachObject(text, nullptr, take), InputName(path));
  if (found.size() == 1) return std::move(found.front());
  return base::Fail(Code::kInvalid,
                    fmt::format("{} holds {} LosslessPolicies: give a file with one", path, found.size()));
}

// What is rendered for what.
struct Work {
  NamedPolicy policy;
  const lossless::SwitchProfile* profile = nullptr;
  std::string config;  // text; empty = none was given
  formats::SonicConfig parsed;
  std::map<std::string, PortFacing> ports;  // by name
};

void AddNames(const std::vector<std::string>& lists, PortFacing facing,
              std::map<std::string, PortFacing>& ports) {
  for (std::string_view list : lists) {
    while (!list.empty()) {
      const std::size_t comma = list.find(',');
      if (comma != 0) ports.emplace(list.substr(0, comma), facing);
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
  }
}

base::Status AddPorts(const SwitchRenderOptions& options, const ReadFile& read, Work& work) {
  AddNames(options.fabric_ports, PortFacing::kFabric, work.ports);
  AddNames(options.ports, PortFacing::kHost, work.ports);
  if (!options.hosts_on.empty()) {
    SwitchFiles files;
    for (const std::string& path : options.hosts_on) {
      ASSIGN_OR_RETURN(const std::string text, read(path));
      TRY(IsText(path, text, "NodeTopologies"), "--hosts-on");
      TRY(ReadNodes(text, files), InputName(path));
    }
    for (const std::string& port : PortsOfHosts(files, work.parsed))
      work.ports.emplace(port, PortFacing::kHost);
  }
  // An alias is as good as a name.
  std::map<std::string, PortFacing> named;
  for (const auto& [port, facing] : work.ports) {
    const formats::SonicPort* found = switches::PortOf(work.parsed, port);
    named.emplace(found == nullptr ? port : found->name, facing);
  }
  work.ports = std::move(named);
  if (!work.ports.empty()) return {};
  return base::Fail(
      Code::kInvalid,
      options.hosts_on.empty()
          ? std::string("say which ports: --port Ethernet0,Ethernet4, --fabric-port, or --hosts-on with "
                        "the NodeTopologies of the hosts")
          : fmt::format("no cable of these hosts ends on {}", work.parsed.hostname.empty()
                                                                  ? "this switch, which has no hostname"
                                                                  : work.parsed.hostname));
}

base::Result<Work> ReadWork(const SwitchRenderOptions& options, const ReadFile& read) {
  Work work;
  const std::string_view usual = options.format == "nvue" ? "spectrum/v1" : "sonic/v1";
  work.profile = lossless::FindSwitchProfile(options.profile.empty() ? usual : options.profile);
  if (work.profile == nullptr) {
    return base::Fail(Code::kInvalid, fmt::format("there is no switch profile \"{}\": name one of {}",
                                                  options.profile, lossless::SwitchProfileNames()));
  }
  constexpr std::array<std::string_view, 4> kFormats{"sonic", "patch", "load", "nvue"};
  if (std::find(kFormats.begin(), kFormats.end(), options.format) == kFormats.end())
    return base::Fail(Code::kInvalid,
                      "--format \"" + options.format + "\": write sonic, patch, load or nvue");
  if (options.config.empty() && (options.format != "nvue" || !options.hosts_on.empty()))
    return base::Fail(Code::kInvalid, "give the switch's configuration: --config config_db.json");
  for (const auto& metres : {options.cable_metres, options.fabric_cable_metres}) {
    if (metres && (*metres < 1 || *metres > 100'000))
      return base::Fail(Code::kInvalid, "a cable is 1 to 100000 metres long");
  }
  ASSIGN_OR_RETURN(work.policy, ReadPolicy(options.policy, read));
  if (!options.config.empty()) {
    ASSIGN_OR_RETURN(work.config, read(options.config));
    TRY(IsText(options.config, work.config, "a switch's settings (config_db.json)"), "--config");
    ASSIGN_OR_RETURN(work.parsed, formats::ParseSonicConfig(work.config), options.config);
  }
  TRY(AddPorts(options, read, work));
  return work;
}

template <class Wish>
std::vector<Wish> Wishes(const SwitchRenderOptions& options, const Work& work) {
  std::vector<Wish> wishes;
  for (const auto& [port, facing] : work.ports) {
    lossless::SwitchPortFacts facts;
    facts.facing = facing;
    facts.cable_metres = facing == PortFacing::kHost ? options.cable_metres : options.fabric_cable_metres;
    if (const formats::SonicPort* found = switches::PortOf(work.parsed, port))
      facts.speed_mbps = found->speed_mbps;
    wishes.push_back({port, lossless::RenderSwitchPort(work.policy.resolved, *work.profile, facts)});
  }
  return wishes;
}

// What its files are called in commands: by its hostname, where a shell takes that for a name.
std::string FileOf(const Work& work, std::string_view what) {
  const std::string& host = work.parsed.hostname;
  const bool plain = !host.empty() && std::isalnum(static_cast<unsigned char>(host[0])) != 0 &&
                     std::all_of(host.begin(), host.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
                     });
  return fmt::format("{}.{}.json", plain ? host : "switch", what);
}

std::vector<std::string> CommandsOf(const Work& work, const formats::SonicPatch& patch) {
  return formats::CommandsOf(formats::StepsOf(patch), FileOf(work, "load"), FileOf(work, "patch"));
}

std::string TextOf(const Work& work, const formats::SonicPatch& patch, const Style& style) {
  const std::string name = work.parsed.hostname.empty() ? "the switch" : work.parsed.hostname;
  const std::string ports = base::Counted(work.ports.size(), "port");
  if (patch.lines.empty()) {
    return SentenceText(fmt::format("{} is as LosslessPolicy {} wants it on {}: nothing to change",
                                    WithoutControls(name), work.policy.name, ports),
                        style);
  }
  std::string text =
      fmt::format("{}: {} for LosslessPolicy {} on {}, profile {}\n\n", WithoutControls(name),
                  base::Counted(patch.lines.size(), "change"), work.policy.name, ports, work.profile->name);
  text +=
      switches::Explain(patch, [&](const std::string& line) { return style.Paint(line, Colour::kFaint); });
  text +=
      "\nHeddle sends nothing to a switch. On it, in this order, with what `--format load` and `--format "
      "patch` "
      "print in these files:\n";
  for (const std::string& command : CommandsOf(work, patch)) text += "  " + command + "\n";
  return ProseText(text, style);
}

Json JsonOf(const Work& work, const formats::SonicPatch& patch,
            const std::vector<formats::SonicFault>& faults) {
  Json operations = Json::array(), wrong = Json::array(), ports = Json::array();
  for (const formats::PatchLine& line : patch.lines) {
    Json one{{"op", line.op},   {"path", line.path},     {"where", line.where},
             {"why", line.why}, {"source", line.source}, {"by", formats::TakenBy(line)}};
    if (!line.value.empty()) one["value"] = Json::parse(line.value, nullptr, false);
    if (!line.before.empty()) one["before"] = line.before;
    operations.push_back(std::move(one));
  }
  for (const formats::SonicFault& fault : faults)
    wrong.push_back({{"where", fault.where}, {"what", fault.what}, {"model", fault.model}});
  for (const auto& [port, facing] : work.ports)
    ports.push_back({{"port", port}, {"facing", lossless::PortFacingName(facing)}});
  return {{"switch", work.parsed.hostname}, {"policy", work.policy.name},
          {"profile", work.profile->name},  {"ports", std::move(ports)},
          {"patch", std::move(operations)}, {"notes", patch.notes},
          {"faults", std::move(wrong)},     {"commands", CommandsOf(work, patch)}};
}

// A policy that contradicts itself is rendered for nobody.
std::optional<Output> RefusePolicy(const NamedPolicy& policy) {
  Output output;
  for (const lossless::Finding& finding :
       lossless::Lint({lossless::SubjectOf(policy.name, policy.resolved)})) {
    if (finding.severity != lossless::Severity::kError) continue;
    output.err += WithoutControls(fmt::format("Error: LosslessPolicy {}: {}: {}; {}: {}", policy.name,
                                              finding.rule, finding.fact, finding.contrary, finding.remedy)) +
                  "\n";
    output.exit_code = Output::kRefused;
  }
  if (output.exit_code == Output::kOk) return std::nullopt;
  return output;
}

Output Unreadable(const base::Error& error) {
  Output output = Failure(error);
  output.exit_code = Output::kUsage;
  return output;
}

}  // namespace

Output SwitchRender(const SwitchRenderOptions& options, const ReadFile& read, const OutputOptions& look) {
  const auto work = ReadWork(options, read);
  if (!work) return Unreadable(work.error());
  if (auto refused = RefusePolicy(work->policy)) return *std::move(refused);
  Output output;
  // To who named the chip: of NVUE's usual one the note would be of headroom, which Cumulus sizes itself.
  if (!work->profile->note.empty() && !options.profile.empty())
    output.err += fmt::format("Note: {}: {}\n", work->profile->name, work->profile->note);
  if (options.format == "nvue") {
    if (look.format != Format::kText)
      return Unreadable(
          base::Error{Code::kInvalid, "--format nvue makes commands: leave -o out, or take --format sonic"});
    output.out = formats::NvueLines(work->policy.name, Wishes<formats::NvueWish>(options, *work));
    return output;
  }
  const auto patch =
      formats::PatchSonic(work->config, work->policy.name, Wishes<formats::SonicWish>(options, *work));
  if (!patch) return Unreadable(patch.error());
  const auto found = switches::FaultsOf(work->config, *patch);
  if (!found) return Unreadable(found.error());
  std::vector<formats::SonicFault> faults = found->before;
  faults.insert(faults.end(), found->made.begin(), found->made.end());
  if (look.format != Format::kText) {
    output.out = Printed(JsonOf(*work, *patch, faults), look.format);
  } else if (options.format == "patch" || options.format == "load") {
    const formats::SonicSteps steps = formats::StepsOf(*patch);
    const std::string load = steps.load.empty() ? "{}\n" : steps.load;
    output.out = options.format == "patch" ? steps.patch : load;
    if (!steps.load.empty() || !steps.removals.empty()) {
      output.err +=
          "Note: `config apply-patch` refuses some of it; in this order, with what --format load and "
          "--format patch print:\n";
      for (const std::string& command : CommandsOf(*work, *patch)) output.err += "  " + command + "\n";
    }
  } else {
    output.out = TextOf(*work, *patch, look.style);
  }
  output.err += NoteLines(patch->notes);
  for (const formats::SonicFault& fault : faults)
    output.err +=
        WithoutControls(fmt::format("Error: {}: {} ({})", fault.where, fault.what, fault.model)) + "\n";
  if (!patch->lines.empty() || !faults.empty()) output.exit_code = Output::kRefused;
  return output;
}

}  // namespace heddle::cli
