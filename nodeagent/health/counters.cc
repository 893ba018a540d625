#include "nodeagent/health/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/pci/driver.h"

namespace heddle::nodeagent {
namespace {

using topology::LinkState;
using topology::Nic;
using topology::NicPort;
using topology::NicRole;
using topology::Transport;

constexpr std::string_view kInfiniband = "sys/class/infiniband";
constexpr std::string_view kNet = "sys/class/net";

const Netdev* Find(const NetReadings& net, const std::string& name) {
  const auto found = net.netdevs.find(name);
  return found == net.netdevs.end() ? nullptr : &found->second;
}

void PutRdma(const RdmaReadings& rdma, const Nic& nic, WatchedPort& port) {
  const auto device = std::find_if(rdma.devices.begin(), rdma.devices.end(),
                                   [&nic](const RdmaDevice& one) { return one.name == nic.name; });
  if (device == rdma.devices.end() || device->ports.empty()) return;
  if (port.of_bond) {  // what the driver counts for the whole bond is told of its first port
    if (port.number == nic.ports.front().number) port.device = nic.name;
    port.device_port = device->ports.front().number;
    return;
  }
  port.device = nic.name;
  port.device_port = port.number;
  for (const RdmaPort& one : device->ports) {
    if (one.number != port.number) continue;
    if (!one.netdevs.empty()) port.netdev = one.netdevs.front();
    if (one.netdevs.empty() && device->ports.size() == 1) port.netdev = nic.netdev;
  }
}

std::string LeafOf(const NicPort& port) {
  if (!port.leaf_port) return {};
  return port.leaf_port->port.empty() ? port.leaf_port->leaf
                                      : fmt::format("{} port {}", port.leaf_port->leaf, port.leaf_port->port);
}

// "5: LinkUp" → "LinkUp"
std::string AfterNumber(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

LinkState OperState(std::string_view text) {
  if (text == "up") return LinkState::kActive;
  return text == "down" || text == "lowerlayerdown" ? LinkState::kDown : LinkState::kUnknown;
}

template <class T>
void SortById(std::vector<T>& list) {
  std::stable_sort(list.begin(), list.end(), [](const T& a, const T& b) { return a.id < b.id; });
  list.erase(std::unique(list.begin(), list.end(), [](const T& a, const T& b) { return a.id == b.id; }),
             list.end());
}

}  // namespace

std::string RdmaDriver(const base::FileTree& files, const std::string& device) {
  const std::string base = fmt::format("{}/{}", kInfiniband, device);
  // rxe stands on no bus: it says the interface below it instead.
  return files.Read(base + "/parent") ? std::string("rdma_rxe") : DriverOf(files, base + "/device");
}

std::string PortKey(const Nic& nic, int number) {
  if (nic.pci.empty() && nic.guid.empty()) return fmt::format("{}/{}", nic.name, number);
  return fmt::format("{} {}/{}", nic.pci, nic.guid, number);
}

std::vector<WatchedPort> WatchedPorts(const Readings& readings, const topology::Node& node) {
  std::vector<WatchedPort> watched;
  for (const Nic& nic : node.nics) {
    if (nic.role == NicRole::kManagement) continue;
    const Netdev* bond = Find(readings.net, nic.netdev);
    const bool bonded = bond != nullptr && !bond->slaves.empty();
    for (std::size_t i = 0; i < nic.ports.size(); ++i) {
      const NicPort& from = nic.ports[i];
      WatchedPort port{PortKey(nic, from.number),
                       nic.name,
                       from.number,
                       {},
                       from.number,
                       {},
                       bonded,
                       LeafOf(from),
                       nic.transport,
                       nic.role,
                       std::max(from.rate_gbps, from.usable_gbps)};
      if (bonded) port.netdev = i < bond->slaves.size() ? bond->slaves[i] : std::string();
      if (nic.transport == Transport::kEthernet) {
        if (!bonded) port.netdev = nic.netdev;
      } else {
        PutRdma(readings.rdma, nic, port);
      }
      watched.push_back(std::move(port));
    }
  }
  return watched;
}

// `driver` may be empty: then only what every driver has is looked for.
void CounterReader::AddFiles(const std::string& folder, CounterPlace place, std::string_view driver,
                             Plan& plan) const {
  struct Chosen {
    std::size_t rank;
    File file;
  };
  std::map<CounterId, Chosen> chosen;
  const auto consider = [&](std::string_view name) {
    const auto counter = FindCounter(driver, place, name);
    if (!counter) return;
    const auto [at, fresh] = chosen.try_emplace(counter->id);
    if (fresh || counter->rank < at->second.rank)
      at->second = {counter->rank, {{fmt::format("{}/{}", folder, name)}, counter->id, counter->width}};
  };
  const auto names = files_.List(folder);
  if (names) {
    for (const std::string& name : *names) consider(name);
  } else if (names.error().code != base::Code::kNotFound) {
    // What cannot be listed now may be read later; until then each says why not.
    for (const CounterAlias& alias : CounterAliases()) consider(alias.name);
  }
  for (auto& [id, choice] : chosen) plan.files.push_back(std::move(choice.file));
}

CounterReader::Plan CounterReader::MakePlan(WatchedPort port) const {
  Plan plan;
  if (!port.device.empty()) {
    const std::string device = fmt::format("{}/{}", kInfiniband, port.device);
    const std::string base = fmt::format("{}/ports/{}", device, port.device_port);
    const std::string driver = RdmaDriver(files_, port.device);
    AddFiles(base + "/counters", CounterPlace::kPort, driver, plan);
    AddFiles(base + "/hw_counters", CounterPlace::kHardware, driver, plan);
    if (!port.of_bond) {
      plan.state.path = base + "/state";
      plan.phys_state.path = base + "/phys_state";
    }
  }
  if (!port.netdev.empty()) {
    const std::string base = fmt::format("{}/{}", kNet, port.netdev);
    plan.driver = DriverOf(files_, base + "/device");
    if (plan.state.path.empty()) plan.operstate.path = base + "/operstate";
    // By name: the folder of an interface has a hundred files.
    const auto carrier = FindCounter(plan.driver, CounterPlace::kInterface, "carrier_changes");
    std::string path = base + "/carrier_changes";
    const auto now = files_.Read(path);
    const bool absent = !now && now.error().code == base::Code::kNotFound;
    if (carrier && !absent) plan.files.push_back({{std::move(path)}, carrier->id, carrier->width});
  }
  plan.port = std::move(port);
  return plan;
}

void CounterReader::Watch(std::vector<WatchedPort> ports) {
  std::vector<Plan> plans;
  plans.reserve(ports.size());
  for (WatchedPort& port : ports) {
    Plan& plan = plans.emplace_back(MakePlan(std::move(port)));
    // Which statistics are wanted is found by their names, and stays as long as the driver has these.
    const auto before = std::find_if(plans_.begin(), plans_.end(), [&plan](const Plan& old) {
      return old.port.netdev == plan.port.netdev && old.driver == plan.driver;
    });
    if (before == plans_.end()) continue;
    plan.ethtool_names = before->ethtool_names;
    plan.columns = before->columns;
  }
  plans_ = std::move(plans);
}

base::Result<std::string> CounterReader::Said(Text& text) {
  if (!root_.empty()) {
    if (auto kept = text.kept.Read(root_, text.path, kept_, most_kept_)) return *std::move(kept);
  }
  return base::ReadTrimmed(files_, text.path);
}

void CounterReader::ReadEthtool(Plan& plan, PortReading& reading) {
  const auto stats = ethtool_.Read(plan.port.netdev);
  if (!stats) {
    if (stats.error().code == base::Code::kNotFound) return;  // no such statistics: none to miss
    for (const Column& column : plan.columns) reading.unread.push_back({column.id, stats.error().message});
    return;
  }
  if (stats->names != plan.ethtool_names) {
    plan.ethtool_names = stats->names;
    plan.columns.clear();
    for (std::size_t i = 0; i < stats->names->size(); ++i) {
      const auto counter = FindCounter(plan.driver, CounterPlace::kEthtool, (*stats->names)[i]);
      if (counter) plan.columns.push_back({i, counter->id, counter->width});
    }
  }
  for (const Column& column : plan.columns)
    reading.samples.push_back({column.id, stats->values[column.index], column.width});
}

CounterReadings CounterReader::Read(Ask ask) {
  CounterReadings readings;
  for (Plan& plan : plans_) {
    PortReading reading;
    reading.port = plan.port;
    const bool of_rdma = !plan.state.path.empty();
    Text& of_state = of_rdma ? plan.state : plan.operstate;
    const auto state =
        of_state.path.empty() ? base::Fail(base::Code::kNotFound, "nothing tells its state") : Said(of_state);
    if (!state) {
      reading.state_unread = state.error().message;
    } else {
      reading.state = of_rdma ? ParsePortState(*state) : OperState(*state);
    }
    if (!plan.phys_state.path.empty()) {
      if (const auto phys = Said(plan.phys_state))
        reading.phys_state = formats::Printable(AfterNumber(*phys), 32);
    }
    for (File& file : plan.files) {
      const auto text = Said(file.text);
      if (!text) {
        reading.unread.push_back({file.id, text.error().message});
        continue;
      }
      if (text->starts_with("N/A")) continue;  // "N/A (no PMA)": the device has no such counter after all
      const auto value = formats::Number<std::uint64_t>(*text);
      if (value) {
        reading.samples.push_back({file.id, *value, file.width});
      } else {
        reading.unread.push_back(
            {file.id, fmt::format("{}: \"{}\" is no number", file.text.path, formats::Printable(*text, 32))});
      }
    }
    if (ask == Ask::kFilesAndEthtool && !plan.port.netdev.empty()) ReadEthtool(plan, reading);
    SortById(reading.samples);
    SortById(reading.unread);
    readings.ports.push_back(std::move(reading));
  }
  return readings;
}

std::map<std::string, std::string> RecordCounters(const base::FileTree& files, EthtoolSource& ethtool,
                                                  const std::vector<WatchedPort>& ports) {
  CounterReader reader(files, ethtool);
  reader.Watch(ports);
  (void)reader.Read(Ask::kFiles);
  std::map<std::string, std::string> texts;
  for (const WatchedPort& port : ports) {
    if (port.netdev.empty()) continue;
    if (const auto stats = ethtool.Read(port.netdev))
      texts[fmt::format("ethtool/{}", port.netdev)] = FormatEthtoolStats(*stats);
  }
  return texts;
}

}  // namespace heddle::nodeagent
