#include "cli/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/counted.h"
#include "cli/import_hosts.h"
#include "cli/import_infiniband.h"
#include "cli/import_lldp.h"
#include "cli/import_machine.h"
#include "cli/import_slurm.h"
#include "cli/import_source.h"
#include "cli/object_documents.h"
#include "crds/fabric.h"
#include "crds/fabric_assembly.h"
#include "crds/node_topology.h"
#include "topology/synthetic_line.h"

namespace heddle::cli {
namespace {

using base::Code;
using topology::Transport;

constexpr int kUsualGpus = 8;
constexpr int kUsualGbps = 400;  // NDR, and what most RoCE clusters of these years have
constexpr int kMaxGpus = 32;
constexpr int kMaxGbps = 1'000'000;
constexpr int kMaxLeafGbps = 100'000'000;  // as the schema of Fabric has it
constexpr std::size_t kMaxNodes = 262'144;

std::optional<Transport> TransportOfWord(std::string_view word) {
  for (const std::string_view name : topology::TransportNames()) {
    const auto transport = topology::ParseTransport(name);
    if (topology::TransportWord(*transport) == word) return transport;
  }
  return std::nullopt;
}

std::string TransportWords() {
  std::vector<std::string> words;
  for (const std::string_view name : topology::TransportNames())
    words.push_back(topology::TransportWord(*topology::ParseTransport(name)));
  return fmt::format("{}", fmt::join(words, ", "));
}

// What all files together say.
class Import {
 public:
  Import(const ImportOptions& options, const ReadFile& read) : options_(options), read_(read) {}

  base::Status Run() {
    TRY(CheckOptions());
    for (const std::string& word : options_.sources) {
      const SourceWord source = ParseSourceWord(word);
      if (source.path.empty()) return base::Fail(Code::kInvalid, "\"" + word + "\" names no file");
      ASSIGN_OR_RETURN(const std::string text, read_(source.path));
      TRY(Read(source, text), InputName(source.path));
    }
    if (options_.nvlink_blocks && !slurm_) {
      return base::Fail(Code::kInvalid,
                        "--nvlink-blocks speaks of Slurm's blocks, and no Slurm topology is among the files");
    }
    graph_.Finish(findings_);
    const Machines machines = TakeMachines();
    TRY(FindHosts(machines));
    SettleNics(machines, Gbps(), nodes_, findings_);
    for (topology::Node& node : nodes_) Furnish(machines.Of(node.name), node, findings_);
    if (graph_.nodes().empty()) {
      if (slurm_ && lldp_.empty()) declaration_ = SlurmSwitches(*slurm_, findings_);
    } else {
      declaration_ = IbSwitches(graph_, nodes_, findings_);
    }
    return CheckNodes();
  }

  Json Objects();
  std::string Words() const;

 private:
  int Gpus() const { return options_.gpus_per_node.value_or(kUsualGpus); }
  int Gbps() const { return options_.link_gbps.value_or(kUsualGbps); }

  base::Status CheckOptions() const {
    if (Gpus() < 1 || Gpus() > kMaxGpus) {
      return base::Fail(
          Code::kInvalid,
          fmt::format("--gpus-per-node {} does not fit: write a number from 1 to {}", Gpus(), kMaxGpus));
    }
    if (Gbps() < 1 || Gbps() > kMaxGbps) {
      return base::Fail(
          Code::kInvalid,
          fmt::format("--link-gbps {} does not fit: write a number from 1 to {}", Gbps(), kMaxGbps));
    }
    if (!options_.transport.empty() && !TransportOfWord(options_.transport)) {
      return base::Fail(Code::kInvalid, fmt::format("--transport \"{}\": write one of {}", options_.transport,
                                                    TransportWords()));
    }
    return {};
  }

  base::Status Read(const SourceWord& word, const std::string& text) {
    SourceKind kind{};
    if (word.kind) {
      kind = *word.kind;
    } else {
      ASSIGN_OR_RETURN(kind, RecogniseSource(text));
    }
    const bool of_one_host =
        kind == SourceKind::kNcclXml || kind == SourceKind::kTopoMatrix || kind == SourceKind::kLldp;
    if (!word.host.empty() && !of_one_host) {
      return base::Fail(Code::kInvalid, fmt::format("{} describes no single host: leave `{}=` out",
                                                    SourceKindName(kind), word.host));
    }
    TRY(Take(kind, word, text), SourceKindName(kind));
    return {};
  }

  base::Status Take(SourceKind kind, const SourceWord& word, const std::string& text) {
    switch (kind) {
      case SourceKind::kIbnetdiscover: {
        formats::IbNetwork network = formats::ParseIbNetwork(text);
        if (network.nodes.empty()) {
          return base::Fail(Code::kInvalid,
                            "no switch and no adapter is in it" +
                                (network.problems.empty() ? "" : "; " + network.problems.front()));
        }
        graph_.Add(word.path, std::move(network), findings_);
        return {};
      }
      case SourceKind::kSlurmConf:
      case SourceKind::kSlurmYaml: {
        if (slurm_) return base::Fail(Code::kInvalid, "there is another Slurm topology: give one");
        ASSIGN_OR_RETURN(slurm_, kind == SourceKind::kSlurmConf ? formats::ParseSlurmConf(text)
                                                                : formats::ParseSlurmYaml(text));
        for (const std::string& note : slurm_->notes) findings_.warnings.push_back(word.path + ": " + note);
        return {};
      }
      case SourceKind::kLldp: {
        if (word.host.empty()) {
          return base::Fail(Code::kInvalid,
                            "lldpd does not say whose neighbours these are: write HOST=" + word.path);
        }
        ASSIGN_OR_RETURN(formats::LldpNeighbours neighbours, formats::ParseLldp(text));
        if (!lldp_.emplace(word.host, std::move(neighbours)).second) {
          return base::Fail(Code::kInvalid, "there is another file for " + word.host);
        }
        return {};
      }
      default:
        return TakeMachine(kind, word, text);
    }
  }

  base::Status TakeMachine(SourceKind kind, const SourceWord& word, const std::string& text) {
    ASSIGN_OR_RETURN(Machine machine, kind == SourceKind::kNcclXml
                                          ? MachineFromNcclXml(word.path, text, findings_)
                                          : MachineFromTopoMatrix(word.path, text, findings_));
    if (!word.host.empty()) {
      if (!machines_.emplace(word.host, std::move(machine)).second) {
        return base::Fail(Code::kInvalid, "there is another file for " + word.host);
      }
      return {};
    }
    if (usual_) {
      return base::Fail(Code::kInvalid,
                        fmt::format("{} describes every host already: write HOST={} for the hosts that "
                                    "this one describes",
                                    usual_->source, word.path));
    }
    usual_ = std::move(machine);
    return {};
  }

  Machines TakeMachines() {
    described_ = usual_.has_value();
    Machines machines(usual_ ? *std::move(usual_) : AssumedMachine(Gpus()));
    for (auto& [host, machine] : machines_) machines.Add(host, std::move(machine));
    return machines;
  }

  void NoteAssumedGpus(const Machines& machines) {
    std::size_t assumed = 0;
    for (const topology::Node& node : nodes_)
      assumed += described_ || machines.by_host().contains(node.name) ? 0 : 1;
    if (assumed == 0) return;
    findings_.notes.push_back(fmt::format(
        "no file shows the inside of {}: taken for {} in one NVLink domain, GPU i beside NIC "
        "i{}",
        base::Counted(assumed, "host"), base::Counted(Gpus(), "GPU"),
        !options_.gpus_per_node ? " (--gpus-per-node, or an NCCL topology XML or `nvidia-smi topo -m`)"
                                : ""));
  }

  base::Status FindHosts(const Machines& machines) {
    nodes_ = IbHosts(graph_, findings_);
    AddLldpHosts();
    if (!nodes_.empty()) {
      if (slurm_) {
        KeepSlurmHosts(*slurm_, options_.nvlink_blocks, nodes_, findings_);
      } else if (lldp_.empty()) {
        KeepComputeHosts(nodes_, findings_);
      }
    } else if (slurm_) {
      const Transport transport = TransportOfWord(options_.transport).value_or(Transport::kInfiniBand);
      if (options_.transport.empty())
        findings_.notes.push_back("Slurm says no transport: taken for InfiniBand (--transport)");
      nodes_ = SlurmHosts(*slurm_, machines, {transport, Gbps(), options_.nvlink_blocks}, findings_);
    }
    AddLoneMachines(machines);
    if (nodes_.empty()) {
      return base::Fail(
          Code::kInvalid,
          described_ ? "no file names a host: give one that does beside the machine's, or HOST=FILE for it"
                     : "no file has a host in it");
    }
    if (nodes_.size() > kMaxNodes) {
      return base::Fail(Code::kTooLarge, fmt::format("{} hosts are more than {}", nodes_.size(), kMaxNodes));
    }
    NoteAssumedGpus(machines);
    return {};
  }

  // Where a host has InfiniBand, what LLDP hears is its Ethernet: management.
  void AddLldpHosts() {
    const Transport transport = TransportOfWord(options_.transport).value_or(Transport::kRoce);
    if (!lldp_.empty() && options_.transport.empty() && graph_.nodes().empty()) {
      findings_.notes.push_back("LLDP says no transport: taken for RoCE (--transport)");
    }
    for (const auto& [host, neighbours] : lldp_) {
      topology::Node heard = LldpHost(host, neighbours, transport, findings_);
      const auto known = std::find_if(nodes_.begin(), nodes_.end(),
                                      [&name = host](const auto& node) { return node.name == name; });
      if (known == nodes_.end()) {
        nodes_.push_back(std::move(heard));
        continue;
      }
      for (topology::Nic& nic : heard.nics) {
        nic.role = topology::NicRole::kManagement;
        nic.transport = Transport::kEthernet;
        if (known->FindNic(nic.name) == nullptr) known->nics.push_back(std::move(nic));
      }
    }
  }

  // HOST=FILE of a host that no other file has: a machine whose network nobody showed.
  void AddLoneMachines(const Machines& machines) {
    std::set<std::string_view> known;
    for (const topology::Node& node : nodes_) known.insert(node.name);
    std::vector<topology::Node> lone;
    for (const auto& [host, machine] : machines.by_host()) {
      if (known.contains(host)) continue;
      findings_.notes.push_back(host + ": no file shows which leaves it is cabled to");
      lone.emplace_back();
      lone.back().name = host;
      lone.back().nics =
          NicsOf(machine, TransportOfWord(options_.transport).value_or(Transport::kInfiniBand), Gbps());
    }
    std::move(lone.begin(), lone.end(), std::back_inserter(nodes_));
  }

  base::Status CheckNodes() {
    std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const topology::Node& node : nodes_) {
      for (const std::string& fault : topology::Check(node))
        findings_.warnings.push_back(node.name + ": " + fault);
    }
    return {};
  }

  const ImportOptions& options_;
  const ReadFile& read_;
  ImportFindings findings_;
  IbGraph graph_;
  std::optional<formats::SlurmTopology> slurm_;
  std::map<std::string, formats::LldpNeighbours> lldp_;
  std::optional<Machine> usual_;
  std::map<std::string, Machine> machines_;
  bool described_ = false;  // one file describes every host
  std::vector<topology::Node> nodes_;
  topology::Declaration declaration_;
  std::string summary_;
};

Json Import::Objects() {
  Json items = Json::array();
  for (const topology::Node& node : nodes_) {
    crds::NodeTopology object;
    object.name = node.name;
    object.status.node = node;
    object.status.hash = topology::ContentHash(node);
    object.status.observed_at = options_.now;
    object.status.agent_version = "fabric-import";
    items.push_back(crds::ToJson(object));
  }
  std::map<std::string, topology::Declaration> declared;
  for (const topology::Fabric& fabric : topology::BuildFabrics(nodes_, {})) {
    declared.emplace(crds::FabricName(fabric.transport, fabric.site), declaration_);
  }
  for (const auto& [name, fabric] : crds::AssembleFabrics(std::move(nodes_), declared)) {
    crds::Fabric object;
    object.name = name;
    object.spec = declaration_;
    object.status = crds::Summarise(fabric);
    for (crds::LeafSummary& leaf : object.status.leaves) {
      leaf.down_gbps = std::min(leaf.down_gbps, kMaxLeafGbps);
      leaf.up_gbps = std::min(leaf.up_gbps, kMaxLeafGbps);
    }
    for (const topology::CablingFault& fault : fabric.faults) findings_.warnings.push_back(fault.sentence);
    for (const std::string& assumption : fabric.assumptions) {
      object.status.assumptions.push_back(assumption);
      findings_.notes.push_back(assumption);
    }
    items.push_back(crds::ToJson(object));
    const crds::FabricCounts& counts = object.status.counts;
    summary_ +=
        fmt::format("{}: {}, {}, {}, {} {}, {}, {}, shape {}\n", name, base::Counted(counts.nodes, "host"),
                    base::Counted(counts.gpus, "GPU"), base::Counted(fabric.rails, "rail"), counts.leaves,
                    counts.leaves == 1 ? "leaf" : "leaves", base::Counted(counts.spines, "spine"),
                    base::Counted(counts.nvlink_domains, "NVLink domain"), topology::ShapeName(fabric.shape));
  }
  return Json{
      {"apiVersion", "v1"}, {"kind", "List"}, {"metadata", Json::object()}, {"items", std::move(items)}};
}

std::string Import::Words() const {
  static constexpr std::size_t kShown = 100;
  std::string text;
  const auto show = [&text](std::string_view title, const std::vector<std::string>& sentences) {
    for (std::size_t i = 0; i < std::min(sentences.size(), kShown); ++i) {
      text += fmt::format("{}: {}\n", title, WithoutControls(sentences[i]));
    }
    if (sentences.size() > kShown) text += fmt::format("{}: and {} more\n", title, sentences.size() - kShown);
  };
  show("Note", findings_.notes);
  show("Warning", findings_.warnings);
  return text + summary_;
}

}  // namespace

Output ImportFabric(const ImportOptions& options, const ReadFile& read, const OutputOptions& look) {
  Import import(options, read);
  if (const base::Status done = import.Run(); !done) {
    Output failure = Failure(done.error());
    failure.exit_code = Output::kUsage;
    failure.err = import.Words() + failure.err;  // the reason may be among what was passed over
    return failure;
  }
  Output output;
  output.out = Printed(import.Objects(), look.format == Format::kText ? Format::kYaml : look.format);
  output.err = import.Words();
  return output;
}

}  // namespace heddle::cli
