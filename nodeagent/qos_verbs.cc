#include "nodeagent/qos_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "lossless/compare.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/nccl_files.h"
#include "nodeagent/print.h"
#include "nodeagent/qos/kernel_port_io.h"
#include "nodeagent/qos/ports.h"
#include "nodeagent/qos/qos_events.h"
#include "nodeagent/qos/recorded_port_io.h"

namespace heddle::nodeagent {
namespace {

using lossless::Setting;

// One port as lines "  name  value"; what cannot be read says why, behind a question mark.
std::string Table(const QosPort& port, PortIo& io) {
  std::string text = fmt::format("{}  {}", port.name, port.netdev);
  if (!port.driver.empty()) text += fmt::format("  {}", port.driver);
  if (!port.pci_address.empty()) text += fmt::format("  {}", port.pci_address);
  text += '\n';
  const auto line = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("  {:<18} {}\n", name, value);
  };
  const QosReading reading = io.Read(port);
  if (reading.gone) {
    line("?", "the interface is gone");
    return text;
  }
  std::map<Setting, std::string> gaps;
  for (const lossless::Gap& gap : reading.gaps) gaps[gap.setting] = gap.reason;
  const bool nothing = reading.have == lossless::PortSettings{} && !gaps.empty() &&
                       std::all_of(gaps.begin(), gaps.end(),
                                   [&gaps](const auto& gap) { return gap.second == gaps.begin()->second; });
  if (nothing) line("all settings", "? " + gaps.begin()->second);
  for (int i = 0; i < lossless::kHostSettings && !nothing; ++i) {
    const auto setting = Setting(i);
    if (gaps.contains(setting)) {
      line(lossless::SettingName(setting), "? " + gaps[setting]);
    } else if (const std::string value = lossless::SettingText(reading.have, setting); !value.empty()) {
      line(lossless::SettingName(setting), value);
    } else if (setting == Setting::kDscpToPriority) {
      line(lossless::SettingName(setting), "no DSCP is mapped");
    }
  }
  const auto pairs = io.UserQueuePairs(port);
  // Or protection domains, where a program makes its queue pairs past the kernel.
  line("queue pairs", pairs ? fmt::format("{} of processes", *pairs) : "? " + pairs.error().message);
  const auto link = io.Link(port);
  line("link", link ? fmt::format("{}, {} changes", link->carrier ? "up" : "down", link->carrier_changes)
                    : "? " + link.error().message);
  return text;
}

// What differs, as "pfc: 3 -> 3,4 (lldpad)".
std::string Changes(const QosPort& port, const QosReading& before, const QosReading& now, PortIo& io) {
  if (now.gone != before.gone) return fmt::format("{} {}\n", port.name, now.gone ? "is gone" : "is back");
  std::string text;
  for (int i = 0; i < lossless::kHostSettings; ++i) {
    const auto setting = Setting(i);
    const std::string was = lossless::SettingText(before.have, setting);
    const std::string is = lossless::SettingText(now.have, setting);
    if (was == is) continue;
    text += fmt::format("{} {}: {} -> {} ({})\n", port.name, lossless::SettingName(setting),
                        was.empty() ? "?" : was, is.empty() ? "?" : is, io.LikelyWriter(port, setting));
  }
  return text;
}

base::Status Watch(const std::vector<QosPort>& ports, PortIo& io, const std::stop_token& stop) {
  const auto events = OpenQosEvents();
  if (const std::string closed = events->closed(); !closed.empty())
    return base::Fail(base::Code::kUnavailable, closed);
  std::map<std::string, QosReading> last;
  for (const QosPort& port : ports) last[port.name] = io.Read(port);
  TRY(Say(fmt::format("{} ports; each change of DCB is a line, until Ctrl-C\n", ports.size())));
  while (!stop.stop_requested()) {
    const QosEvents::Changed changed = events->Wait(stop);
    for (const QosPort& port : ports) {
      if (!changed.lost && !changed.netdevs.contains(port.netdev)) continue;
      QosReading now = io.Read(port);
      TRY(Say(Changes(port, last[port.name], now, io)));
      last[port.name] = std::move(now);
    }
  }
  return {};
}

}  // namespace

base::Status ServeQos(const base::FileTree& files, Machine& machine, const Flags& flags, bool live,
                      const std::stop_token& stop) {
  const Readings readings = machine.discovery->Read();
  const topology::Node node = Assemble(readings).node;
  std::vector<QosPort> ports =
      QosPorts(QosPortsWanted::kRoce, node, WatchedPortsOfAllRoles(readings, node), &files);
  if (!flags.qos_port.empty()) {
    const auto named = [&flags](const QosPort& port) {
      return port.name == flags.qos_port || port.netdev == flags.qos_port ||
             port.rdma_device == flags.qos_port;
    };
    std::string names;
    for (const QosPort& port : ports) names += (names.empty() ? "" : ", ") + port.name;
    std::erase_if(ports, [&named](const QosPort& port) { return !named(port); });
    if (ports.empty()) {
      return base::Fail(base::Code::kNotFound,
                        fmt::format("there is no RoCE port {}; {}", flags.qos_port,
                                    names.empty() ? "this machine has none" : "there are " + names));
    }
  }
  std::unique_ptr<PortIo> io;
  if (live) {
    io = std::make_unique<KernelPortIo>(LiveQosSources());
  } else {
    io = std::make_unique<RecordedPortIo>(files, flags.qos_dir);
  }
  if (flags.qos == "watch") {
    if (live) return Watch(ports, *io, stop);
    return base::Fail(base::Code::kInvalid,
                      "a recorded machine does not change: qos watch is for a live one, without --machine");
  }
  if (flags.qos_output != "table") {
    const RecordedQosPorts recorded = RecordQos(*io, ports);
    return Say(flags.qos_output == "json"
                   ? QosJson(recorded).dump(2, ' ', false, crds::Json::error_handler_t::replace) + "\n"
                   : FormatQosYaml(recorded));
  }
  if (ports.empty()) return Say("no RoCE port: InfiniBand and EFA have no such settings (see --print)\n");
  for (const QosPort& port : ports) TRY(Say(Table(port, *io)));
  return {};
}

base::Result<bool> ServeOnce(const base::FileTree& files, Machine& machine, const Flags& flags, bool live,
                             const std::stop_token& stop) {
  if (flags.qos.empty()) return ServeNccl(files, flags, live, *machine.discovery);
  TRY(ServeQos(files, machine, flags, live, stop));
  return true;
}

}  // namespace heddle::nodeagent
