#include "cli/lint_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/object_documents.h"
#include "crds/keys.h"
#include "crds/lossless_policy.h"
#include "crds/lossless_policy_fields.h"
#include "crds/node_topology.h"
#include "crds/rdma_device_policy_fields.h"
#include "formats/dcb.h"
#include "formats/mlnx_qos.h"
#include "formats/sonic_config.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using base::Code;
using crds::Json;
using lossless::End;

std::string Ports(const std::vector<std::string>& ports) {
  if (ports.size() == 1) return ports.front();
  return fmt::format("{} and {} more", ports.front(), ports.size() - 1);
}

lossless::Finding Reported(std::string_view rule, std::string where, std::string with, std::string fact,
                           std::string contrary) {
  const lossless::RuleAbout* about = lossless::FindRule(rule);
  return {std::string(rule), about->severity,     std::move(where),          std::move(with),
          std::move(fact),   std::move(contrary), std::string(about->remedy)};
}

// Those of which no report says what they have.
std::vector<std::string> Unreported(const std::vector<std::string>& ports,
                                    const std::vector<crds::LosslessReport>& reports) {
  std::vector<std::string> unreported;
  for (const std::string& port : ports) {
    const bool reported =
        std::any_of(reports.begin(), reports.end(), [&port](const crds::LosslessReport& report) {
          return report.have &&
                 std::find(report.ports.begin(), report.ports.end(), port) != report.ports.end();
        });
    if (!reported) unreported.push_back(port);
  }
  return unreported;
}

// What an agent could not do. Of several policies and of a NIC that cannot have one the spec says it, and more.
void AddFailure(const crds::NodeTopology& node, const crds::LosslessReport& report, const std::string& where,
                std::vector<lossless::Finding>& findings) {
  const bool conflict = report.state == crds::LosslessState::kConflict;
  if (!conflict && report.state != crds::LosslessState::kFailed) return;
  const bool told = std::any_of(
      node.spec.lossless.begin(), node.spec.lossless.end(), [&report](const crds::LosslessWish& wish) {
        return (wish.policies.size() > 1 || wish.refused) && !report.ports.empty() &&
               std::find(wish.ports.begin(), wish.ports.end(), report.ports.front()) != wish.ports.end();
      });
  if (told) return;
  std::string reason = report.reason;
  if (reason.empty())
    reason = conflict ? "somebody else sets it, too" : "it could not be set, and was set back";
  findings.push_back(Reported("not-set", where, "LosslessPolicy " + report.edition.policy,
                              fmt::format("its agent reports {}", crds::LosslessStateName(report.state)),
                              std::move(reason)));
}

// Of a port that nothing is asked of there is nothing to pass on.
void AddReport(const crds::NodeTopology& node, const crds::LosslessReport& report, const std::string& where,
               LintFile& file) {
  if (report.ports.empty() || report.state == crds::LosslessState::kNotApplicable) return;
  // Nor of ports that nothing could be read of, which is said by itself.
  if (report.state == crds::LosslessState::kUnknown && !report.have) return;
  const std::string& port = report.ports.front();
  LintReport said{
      report.edition, fmt::format("{} {}", node.name, port), report.ports.size(), std::nullopt, {}};
  for (const crds::LosslessWish& wish : node.spec.lossless) {
    if (std::find(wish.ports.begin(), wish.ports.end(), port) != wish.ports.end()) said.told = wish;
  }
  AddFailure(node, report, where, said.findings);
  for (const crds::PortDrift& drift : report.drift) {
    std::string fact = fmt::format("{} is {} since {}", lossless::SettingName(drift.drift.setting),
                                   drift.drift.have, base::FormatTime(drift.since));
    if (!drift.writer.empty()) fact += ", probably by " + drift.writer;
    said.findings.push_back(Reported("drift", where, "LosslessPolicy " + report.edition.policy,
                                     std::move(fact), "the policy wants " + drift.drift.want));
  }
  file.reports.push_back(std::move(said));
}

// Settings that agents could not read or set, by setting and reason: the first port, and how many have it.
using Gaps = std::map<std::pair<lossless::Setting, std::string>, std::pair<std::string, std::size_t>>;

void AddNode(const crds::NodeTopology& node, LintFile& file, Gaps& gaps) {
  for (const crds::LosslessReport& report : node.status.lossless) {
    const std::string where = fmt::format("{} {}", node.name, Ports(report.ports));
    for (const lossless::Gap& gap : report.gaps) {
      if (report.ports.empty()) continue;
      auto& [first, ports] = gaps[{gap.setting, gap.reason}];
      if (ports == 0) first = fmt::format("{} {}", node.name, report.ports.front());
      ports += report.ports.size();
    }
    AddReport(node, report, where, file);
    if (report.have)
      file.subjects.push_back({where, End::kHost, *report.have, std::nullopt, {}, report.edition.policy});
    if (!report.have && report.state == crds::LosslessState::kUnknown) {
      for (const std::string& port : report.ports) {
        file.unread.push_back(
            {fmt::format("{} {}", node.name, port),
             report.reason.empty() ? "its agent does not know how it is set" : report.reason});
      }
    }
  }
  for (const crds::LosslessWish& wish : node.spec.lossless) {
    const std::string where = fmt::format("{} {}", node.name, Ports(wish.ports));
    if (wish.policies.size() > 1) {
      file.findings.push_back(
          Reported("two-policies", where, "",
                   fmt::format("LosslessPolicies {} select it", fmt::join(wish.policies, ", ")),
                   wish.reason.empty() ? "a port has one policy" : wish.reason));
    }
    for (const std::string& port : wish.ports) {
      if (wish.refused && !wish.policies.empty())
        file.refusals.push_back({wish.policies.front(), fmt::format("{} {}", node.name, port), wish.reason});
    }
    if (!wish.settings) continue;
    // What a port has says more than what it is to get.
    const std::vector<std::string> unreported = Unreported(wish.ports, node.status.lossless);
    if (unreported.empty()) continue;
    file.subjects.push_back({fmt::format("{} {} (wanted)", node.name, Ports(unreported)),
                             End::kHost,
                             *wish.settings,
                             std::nullopt,
                             {},
                             wish.policies.front()});
  }
}

// They change no exit code: that a NIC has no watchdog is no news to who chose it.
void AddNotes(const Gaps& gaps, LintFile& file) {
  constexpr std::size_t kMaxNotes = 20;
  std::size_t left_out = 0;
  for (const auto& [gap, ports] : gaps) {
    if (file.notes.size() >= kMaxNotes) {
      ++left_out;
      continue;
    }
    const std::string more = ports.second == 1 ? "" : fmt::format(" and {} more", ports.second - 1);
    file.notes.push_back(fmt::format("{}{}: {} could not be read or set: {}", ports.first, more,
                                     lossless::SettingName(gap.first), gap.second));
  }
  if (left_out > 0) file.notes.push_back(fmt::format("{} more settings could not be read or set", left_out));
}

base::Status AddObject(const Json& object, LintFile& file, Gaps& gaps, std::map<std::string, int>& others) {
  const std::string kind = kube::StringAt(object, {"kind"});
  if (kind == crds::keys::kLosslessPolicy.kind) {
    ASSIGN_OR_RETURN(const crds::LosslessPolicy policy, crds::LosslessPolicyFromJson(object));
    TRY(crds::CheckLosslessPolicyFields(object));
    ASSIGN_OR_RETURN(const lossless::ResolvedPolicy resolved, lossless::Resolve(policy.spec.policy),
                     "LosslessPolicy " + policy.name);
    file.subjects.push_back(lossless::SubjectOf("LosslessPolicy " + policy.name, resolved));
    file.policies.push_back({policy.name, policy.spec, resolved, policy.generation});
  } else if (kind == crds::keys::kRdmaDevicePolicy.kind) {
    ASSIGN_OR_RETURN(crds::RdmaDevicePolicy policy, crds::RdmaDevicePolicyFromJson(object));
    TRY(crds::CheckRdmaDevicePolicyFields(object));
    file.device_policies.push_back(std::move(policy));
  } else if (kind == crds::keys::kNodeTopology.kind) {
    ASSIGN_OR_RETURN(const crds::NodeTopology node, crds::NodeTopologyFromJson(object));
    ++file.nodes;
    if (node.status.observed_at) {
      topology::Node nics;
      nics.nics = node.status.node.nics;
      file.device_nodes.push_back({node.name, std::move(nics), node.spec.devices, node.status.devices});
    }
    AddNode(node, file, gaps);
    for (LintPort& port : PortsOf(node)) file.ports.push_back(std::move(port));
  } else {
    ++others[kind.empty() ? "object without a kind" : kind];
  }
  return {};
}

base::Status AddObjects(const Json* json, const std::string& text, LintFile& file) {
  file.kind = "Kubernetes objects";
  std::map<std::string, int> others;
  Gaps gaps;
  std::size_t objects = 0, left_out = 0;
  TRY(ForEachObject(text, json, [&](const Json& object) {
    ++objects;
    return AddObject(object, file, gaps, others);
  }));
  AddNotes(gaps, file);
  for (const auto& [kind, count] : others) {
    file.notes.push_back(fmt::format("{} of kind {} left out", count, kind));
    left_out += std::size_t(count);
  }
  if (objects == 0) return base::Fail(Code::kInvalid, "it holds no objects: nothing was looked at");
  // NodeTopologies may say nothing of lossless settings, as those of InfiniBand do.
  if (left_out > 0 && left_out == objects) {
    return base::Fail(Code::kInvalid, "there is no LosslessPolicy, RdmaDevicePolicy or NodeTopology in it");
  }
  return {};
}

base::Status AddSwitch(const std::string& text, LintFile& file) {
  file.kind = "config_db.json";
  ASSIGN_OR_RETURN(formats::SonicConfig config, formats::ParseSonicConfig(text));
  if (config.ports.empty() && config.bare.empty())
    return base::Fail(Code::kInvalid, "it has no ports: nothing was looked at");
  const std::string name = config.hostname.empty() ? file.path : config.hostname;
  for (formats::SonicPort& port : config.ports) {
    file.subjects.push_back(
        {name + " " + port.name, End::kSwitch, std::move(port.settings), std::nullopt, {}, ""});
  }
  // One that is shut down, or that nobody asks to be lossless, was left out on purpose; of one that cannot be read
  // nobody knows.
  for (const formats::SonicPort& port : config.bare) {
    if (port.bare.starts_with(formats::kCannotBeRead))
      file.unread.push_back({name + " " + port.name, "it " + port.bare});
  }
  file.notes = std::move(config.notes);
  return {};
}

// `shows_pfc`: the command that does.
base::Status AddHost(base::Result<lossless::PortSettings> settings, std::string kind,
                     std::string_view shows_pfc, LintFile& file) {
  file.kind = std::move(kind);
  if (!settings) return base::Fail(std::move(settings).error());
  // Nothing that is lossless has rules then, and what is cut off before that would be clean.
  if (!settings->pfc)
    file.unread.push_back({"", fmt::format("it says nothing of PFC: give it all that {} prints", shows_pfc)});
  file.subjects.push_back({file.path, End::kHost, *std::move(settings), std::nullopt, {}, ""});
  return {};
}

// "metadata:", "spec: {}"
bool IsKey(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || line.find_first_of(" \t`*") < colon) return false;
  return colon + 1 == line.size() || line.find_first_of(" \t\r") == colon + 1;
}

// Whether what comes first, behind comments, is a key: a page of prose that shows an object further down has none.
bool BeginsWithKey(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    const bool says = first != std::string_view::npos && line[first] != '#' && line[first] != '%';
    if (says && !line.starts_with("---")) return IsKey(line);
  }
  return false;
}

// A key of a Kubernetes object at the start of a line.
bool HasObjects(const std::string& text) {
  const bool shows = text.starts_with("kind:") || text.starts_with("apiVersion:") ||
                     text.find("\nkind:") != std::string::npos ||
                     text.find("\napiVersion:") != std::string::npos;
  return shows && BeginsWithKey(text);
}

base::Status AddAll(const std::string& text, LintFile& file) {
  if (IsJson(text)) {
    if (formats::LooksLikeDcb(text))
      return AddHost(formats::ParseDcb(text), "dcb", "`dcb pfc show dev DEV`", file);
    ASSIGN_OR_RETURN(const Json json, JsonOf(text));
    const bool objects = json.is_object() && (json.contains("kind") || json.contains("items"));
    return objects ? AddObjects(&json, text, file) : AddSwitch(text, file);
  }
  if (HasObjects(text)) return AddObjects(nullptr, text, file);
  if (formats::LooksLikeMlnxQos(text))
    return AddHost(formats::ParseMlnxQos(text), "mlnx_qos", "`mlnx_qos -i DEV`", file);
  if (formats::LooksLikeDcb(text))
    return AddHost(formats::ParseDcb(text), "dcb", "`dcb pfc show dev DEV`", file);
  return base::Fail(Code::kInvalid,
                    "this is none of LosslessPolicy, RdmaDevicePolicy, NodeTopology, config_db.json, "
                    "mlnx_qos and dcb output");
}

}  // namespace

base::Result<LintFile> ReadLintFile(const std::string& path, const std::string& text) {
  LintFile file;
  file.path = path;
  TRY(AddAll(text, file));
  return file;
}

LintFiles ReadLintFiles(const std::vector<std::string>& paths, const ReadFile& read) {
  LintFiles files;
  for (const std::string& path : paths) {
    const auto text = read(path);
    auto file = text ? ReadLintFile(path, *text) : base::Fail(text.error());
    if (file) {
      files.read.push_back(*std::move(file));
    } else {
      files.unread.push_back({path, (text ? path + ": " : "") + file.error().message});
    }
  }
  return files;
}

}  // namespace heddle::cli
