// What switches answer.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/json_bounds.h"
#include "lossless/cable_compare.h"
#include "switches/counter_window.h"
#include "switches/openconfig_ports.h"
#include "switches/ufm.h"
#include "tests/fuzz/targets.h"

namespace heddle::fuzz {
namespace {

using crds::Json;
using switches::CounterSample;
using switches::Steps;

void CheckSample(const CounterSample& sample) {
  CHECK(sample.ports.size() <= switches::kMaxCountedPorts);
  for (const auto& [name, port] : sample.ports) {
    CHECK(!name.empty());
    CHECK(!port.speed_mbps || *port.speed_mbps > 0);
    for (const auto* counts : {&port.queue_drops, &port.ecn_marked, &port.storms})
      CHECK(counts->empty() ||
            (counts->begin()->first >= 0 && counts->rbegin()->first < switches::kCountedPriorities));
  }
}

}  // namespace

// One answer, as each that a switch is asked for, twice: what is said twice is evidence of nothing.
bool SwitchCounters(std::string_view bytes) {
  if (!formats::IsBounded(bytes, 10'000, 64)) return false;
  const Json json = Json::parse(bytes, nullptr, false);
  if (json.is_discarded()) return false;
  std::map<Steps, Json> trees;
  std::map<Steps, std::string> texts;
  for (const Steps& steps :
       {Steps{"PORT_TABLE"}, Steps{"COUNTERS", "Ethernet*"}, Steps{"COUNTERS", "Ethernet*", "Queues"},
        Steps{"INTERFACE_COUNTERS"}, Steps{"interfaces"}, Steps{}}) {
    trees[steps] = json;
    texts[steps] = bytes;
  }
  bool counted = false;
  for (const bool sonic : {true, false}) {
    switches::CounterWindow window;
    for (int look = 1; look <= 2; ++look) {
      const base::MonotonicTime at{std::chrono::seconds(10 * look)};
      CounterSample sample = sonic ? switches::ReadSonicCounters(texts, {{"etp1", "Ethernet0"}}, at)
                                   : switches::ReadOpenConfigCounters(trees, at);
      CheckSample(sample);
      counted = counted || !sample.ports.empty();
      for (auto& [name, port] : sample.ports) port.storming.clear();
      window.Add(std::move(sample));
      CHECK(window.Sightings(at).empty());
    }
  }
  for (const formats::SonicPort& port : switches::ReadOpenConfigPorts(trees)) {
    CHECK(!port.name.empty() && port.bare == switches::kNoPfcPath);
    CHECK(!port.speed_mbps || *port.speed_mbps > 0);
    CHECK(port.fec.empty() || lossless::ParseFec(port.fec));
  }
  std::vector<std::pair<Steps, Json>> parts;
  for (const Steps& steps : {Steps{"lldp"}, Steps{}}) parts.emplace_back(steps, json);
  const switches::OpenConfigLldp lldp = switches::ReadOpenConfigLldp(parts);
  for (const auto& [port, seen] : lldp.neighbours) CHECK(!port.empty() && seen != switches::Neighbour{});
  return counted || !lldp.neighbours.empty();
}

// What UFM answers to either question, and a sample of it for the ports that it has.
bool Ufm(std::string_view bytes) {
  const auto page = switches::ReadUfmPorts(bytes, 1);
  std::vector<switches::UfmPort> ports;
  if (Read(page)) {
    ports = page->ports;
    CHECK(ports.size() + page->unread <= page->entries);
    for (const switches::UfmPort& port : ports) {
      CHECK(port.number > 0 && !port.system.empty() && port.guid.size() == 16);
      CHECK(port.name == port.guid + "_" + std::to_string(port.number));
    }
  }
  const bool listed = !ports.empty();
  if (!listed) ports.push_back({"1c34da0300728606_1", "1c34da0300728606", "leaf-1", 1, "", "", ""});
  const auto counters = switches::ReadUfmCounters(bytes);
  if (!Read(counters)) return listed;
  CHECK(!counters->ports.empty());
  std::map<std::string, switches::CounterWindow> windows;
  for (int look = 1; look <= 2; ++look) {
    const base::MonotonicTime at{std::chrono::seconds(30 * look)};
    for (auto& [guid, sample] : switches::SamplesOf(ports, *counters, at)) {
      CheckSample(sample);
      windows[guid].Add(std::move(sample));
      CHECK(windows[guid].Sightings(at).empty());
    }
  }
  return true;
}

}  // namespace heddle::fuzz
