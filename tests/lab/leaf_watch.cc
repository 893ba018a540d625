// Looks at the live leaf sources once for every line of its input and prints what they say, and what the leaves of
// InfiniBand ports have counted, one JSON object a look. The folder it is given holds sys/; lldpcli and umad are asked
// where they are.

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "base/file_tree.h"
#include "nodeagent/leaf/leaf_counts.h"
#include "nodeagent/leaf/memory.h"
#include "nodeagent/leaf/umad.h"
#include "nodeagent/nic/rdma_probe.h"

namespace {

using heddle::nodeagent::LeafFact;

std::string Show(const LeafFact& leaf) {
  return leaf ? leaf->leaf + " " + leaf->port : std::string(heddle::topology::MissingName(leaf.missing()));
}

nlohmann::json Show(const heddle::nodeagent::LeafCounts& leaf) {
  nlohmann::json counts = nlohmann::json::object();
  for (const auto& count : leaf.counts) counts[std::string(count.name)] = count.value;
  return {{"leaf", leaf.leaf + " " + std::to_string(leaf.leaf_port)},
          {"lid", leaf.lid},
          {"counts", counts},
          {"unread", leaf.unread}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  heddle::base::SystemClock clock;
  const heddle::base::DiskFileTree files(argv[1]);
  const auto sources = heddle::nodeagent::LiveLeaves(files, clock);
  heddle::nodeagent::PmaLeafCounts counters(files, clock,
                                            std::make_unique<heddle::nodeagent::UmadLines>(files));
  heddle::nodeagent::RdmaProbe rdma(files);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = clock.Now();
    heddle::nodeagent::LeafReadings readings;
    const auto devices = rdma.Read();
    for (const auto& source : sources) readings.Merge(source->Read(devices));
    nlohmann::json out{{"cables", nlohmann::json::object()}, {"problems", readings.problems}};
    for (const auto& [netdev, leaf] : readings.by_netdev) out["cables"][netdev] = Show(leaf);
    for (const auto& [port, leaf] : readings.by_port)
      out["cables"][port.first + ":" + std::to_string(port.second)] = Show(leaf);
    out["files"] = readings.files;
    out["milliseconds"] = std::chrono::duration<double, std::milli>(clock.Now() - start).count();
    std::vector<heddle::nodeagent::RdmaPortName> ports;
    for (const auto& [port, leaf] : readings.by_port) ports.push_back(port);
    const auto asked = clock.Now();
    out["leaf_counts"] = nlohmann::json::object();
    for (const auto& leaf : counters.Read(ports))
      out["leaf_counts"][leaf.device + ":" + std::to_string(leaf.port)] = Show(leaf);
    out["leaf_milliseconds"] = std::chrono::duration<double, std::milli>(clock.Now() - asked).count();
    std::cout << out.dump() << std::endl;
  }
  return 0;
}
