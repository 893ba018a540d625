// What switches answer.

#include <map>
#include <string>

#include "base/check.h"
#include "formats/json_bounds.h"
#include "switches/counter_window.h"
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
  std::map<Steps, Json> answers;
  for (const Steps& steps :
       {Steps{"PORT_TABLE"}, Steps{"COUNTERS", "Ethernet*"}, Steps{"COUNTERS", "Ethernet*", "Queues"},
        Steps{"INTERFACE_COUNTERS"}, Steps{"interfaces"}, Steps{}})
    answers[steps] = json;
  bool counted = false;
  for (const bool sonic : {true, false}) {
    switches::CounterWindow window;
    for (int look = 1; look <= 2; ++look) {
      const base::MonotonicTime at{std::chrono::seconds(10 * look)};
      CounterSample sample = sonic ? switches::ReadSonicCounters(answers, {{"etp1", "Ethernet0"}}, at)
                                   : switches::ReadOpenConfigCounters(answers, at);
      CheckSample(sample);
      counted = counted || !sample.ports.empty();
      for (auto& [name, port] : sample.ports) port.storming.clear();
      window.Add(std::move(sample));
      CHECK(window.Sightings(at).empty());
    }
  }
  return counted;
}

}  // namespace heddle::fuzz
