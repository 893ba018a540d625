#include "cli/import_slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/import_hosts.h"

namespace heddle::cli {
namespace {

using formats::SlurmBlock;
using formats::SlurmSwitch;
using formats::SlurmTopology;

constexpr std::size_t kMaxSwitches = 8192;  // as the schema of Fabric has them
constexpr std::size_t kMaxName = 128;       // of a leaf in a NodeTopology

std::map<std::string_view, const SlurmBlock*> BlockOfHost(const SlurmTopology& slurm) {
  std::map<std::string_view, const SlurmBlock*> block_of;
  for (const SlurmBlock& block : slurm.blocks) {
    for (const std::string& host : block.nodes) block_of.emplace(host, &block);
  }
  return block_of;
}

std::string_view Short(std::string_view host) {
  return host.substr(0, host.find('.'));
}

topology::Node HostOn(const std::string& leaf, const std::string& host, const Machine& machine,
                      const SlurmOptions& options) {
  topology::Node node;
  node.name = host;
  node.nics = NicsOf(machine, options.transport, options.gbps);
  for (topology::Nic& nic : node.nics) {
    nic.ports.front().leaf_port = topology::LeafPort{leaf.substr(0, kMaxName), ""};
  }
  return node;
}

}  // namespace

std::vector<topology::Node> SlurmHosts(const SlurmTopology& slurm, const Machines& machines,
                                       const SlurmOptions& options, ImportFindings& findings) {
  std::vector<topology::Node> nodes;
  const auto add = [&](const std::string& leaf, const std::vector<std::string>& hosts) {
    for (const std::string& host : hosts) nodes.push_back(HostOn(leaf, host, machines.Of(host), options));
  };
  for (const SlurmSwitch& one : slurm.switches) add(one.name, one.nodes);
  if (slurm.switches.empty()) {
    for (const SlurmBlock& block : slurm.blocks) add(block.name, block.nodes);
    findings.notes.push_back("Slurm's blocks are taken for leaves; what joins them is not said");
  } else if (!slurm.blocks.empty() && !options.nvlink_blocks) {
    findings.notes.push_back(
        "the tree says which switch a host is on; blocks are left out (--nvlink-blocks takes them for NVLink "
        "domains)");
  }
  if (options.nvlink_blocks) {
    const auto block_of = BlockOfHost(slurm);
    for (topology::Node& node : nodes) {
      const auto found = block_of.find(node.name);
      if (found != block_of.end()) node.nvlink_domain = topology::NvlinkMembership{found->second->name, true};
    }
  }
  findings.notes.push_back(
      "Slurm names one switch for a host: all of its NICs are taken to be on that, and rails are "
      "numbers without a meaning");
  return nodes;
}

topology::Declaration SlurmSwitches(const SlurmTopology& slurm, ImportFindings& findings) {
  std::map<std::string_view, std::vector<std::string>> parents;
  for (const SlurmSwitch& one : slurm.switches) {
    for (const std::string& child : one.switches) parents[child].push_back(one.name.substr(0, kMaxName));
  }
  topology::Declaration declaration;
  bool speeds = false;
  for (const SlurmSwitch& one : slurm.switches) {
    declaration.switches.push_back({one.name.substr(0, kMaxName), parents[one.name], 0});
    speeds = speeds || one.link_speed > 0;
  }
  if (speeds) findings.notes.push_back("LinkSpeed is left out: Slurm takes any number there and uses none");
  if (declaration.switches.size() > kMaxSwitches) {
    findings.warnings.push_back(fmt::format(
        "{} switches are more than the {} that a Fabric holds: the tree above the leaves is left out",
        declaration.switches.size(), kMaxSwitches));
    declaration.switches.clear();
  }
  return declaration;
}

void KeepSlurmHosts(const SlurmTopology& slurm, bool nvlink_blocks, std::vector<topology::Node>& nodes,
                    ImportFindings& findings) {
  std::set<std::string_view> listed, seen;
  for (const SlurmSwitch& one : slurm.switches) {
    for (const std::string& host : one.nodes) listed.insert(Short(host));
  }
  for (const SlurmBlock& block : slurm.blocks) {
    for (const std::string& host : block.nodes) listed.insert(Short(host));
  }
  std::vector<std::string> unlisted, unseen;
  for (const topology::Node& node : nodes) {
    seen.insert(Short(node.name));
    if (!listed.contains(Short(node.name))) unlisted.push_back(node.name);
  }
  for (const std::string_view host : listed) {
    if (!seen.contains(host)) unseen.emplace_back(host);
  }
  if (unlisted.size() == nodes.size()) {
    findings.warnings.push_back("Slurm lists none of the hosts whose cables were seen: its file is left out");
    return;
  }
  if (!unseen.empty()) {
    findings.warnings.push_back(
        fmt::format("{} hosts that Slurm lists are not in the fabric and are left out: {}", unseen.size(),
                    SomeOf(unseen)));
  }
  if (!unlisted.empty()) {
    findings.notes.push_back(fmt::format(
        "{} hosts of the fabric run no jobs, since Slurm does not list them, and are left out: {}",
        unlisted.size(), SomeOf(unlisted)));
  }
  if (nvlink_blocks) {
    std::map<std::string_view, const SlurmBlock*> block_of;
    for (const auto& [host, block] : BlockOfHost(slurm)) block_of.emplace(Short(host), block);
    for (topology::Node& node : nodes) {
      const auto found = block_of.find(Short(node.name));
      if (found != block_of.end()) node.nvlink_domain = topology::NvlinkMembership{found->second->name, true};
    }
  }
  // `seen` and `unseen` hold views into the names that go.
  std::erase_if(nodes, [&listed](const topology::Node& node) { return !listed.contains(Short(node.name)); });
}

}  // namespace heddle::cli
