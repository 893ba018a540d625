// Does with a live port what each line of its input says, and prints what came of it, one JSON object a line:
//   {"do": "read" | "write" | "write back" | "pairs" | "link" | "writer", "port": {name, rdmaDevice, rdmaPort, netdev, pciAddress,
//    driver}, "settings": ["pfc", …], "want": {…}}
// For writer the first of the settings counts.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "crds/node_lossless.h"
#include "nodeagent/qos/kernel_port_io.h"

namespace {

using heddle::nodeagent::PortIo;
using heddle::nodeagent::QosPort;
using nlohmann::json;

json Failed(const heddle::base::Error& error) {
  return {{"code", heddle::base::CodeName(error.code)}, {"message", error.message}};
}

json Read(PortIo& io, const QosPort& port) {
  const auto reading = io.Read(port);
  json out{{"gone", reading.gone}, {"have", heddle::crds::ToJson(reading.have)}, {"gaps", json::object()}};
  for (const auto& gap : reading.gaps)
    out["gaps"][std::string(heddle::lossless::SettingName(gap.setting))] = gap.reason;
  return out;
}

json Do(PortIo& io, const json& line) {
  const json& from = line.at("port");
  QosPort port;
  port.name = from.value("name", "");
  port.rdma_device = from.value("rdmaDevice", "");
  port.rdma_port = from.value("rdmaPort", 1);
  port.netdev = from.value("netdev", "");
  port.pci_address = from.value("pciAddress", "");
  port.driver = from.value("driver", "");
  std::vector<heddle::lossless::Setting> settings;
  for (const json& name : line.value("settings", json::array()))
    settings.push_back(heddle::lossless::ParseSetting(name.get<std::string>()).value());
  const std::string what = line.at("do");
  if (what == "read") return Read(io, port);
  if (what == "writer") return {{"writer", io.LikelyWriter(port, settings.at(0))}};
  if (what == "pairs") {
    const auto pairs = io.UserQueuePairs(port);
    if (!pairs) return Failed(pairs.error());
    return {{"pairs", *pairs}, {"holders", io.QueuePairHolders(port)}};
  }
  if (what == "link") {
    const auto link = io.Link(port);
    if (!link) return Failed(link.error());
    return {{"carrier", link->carrier}, {"changes", link->carrier_changes}, {"errors", link->errors}};
  }
  const auto want = heddle::crds::PortSettingsFromJson(line.at("want"));
  if (!want) return Failed(want.error());
  const auto written =
      what == "write back" ? io.WriteBack(port, settings, *want) : io.Write(port, settings, *want);
  return written ? json{{"code", ""}} : Failed(written.error());
}

}  // namespace

int main() {
  heddle::nodeagent::KernelPortIo io(heddle::nodeagent::LiveQosSources());
  for (std::string line; std::getline(std::cin, line);)
    std::cout << Do(io, json::parse(line)).dump() << std::endl;
  return 0;
}
