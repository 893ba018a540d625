#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include "operator/switch_watch.h"
#include "switches/queue_looks.h"
#include "tests/support/gnmi/fake_dialer.h"
#include "tests/unit/operator/stage.h"
#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kAddress = "leaf-3.example:8080";
const std::string kCounters = "COUNTERS_DB:/COUNTERS/";
const std::string kAllQueues = kCounters + "Ethernet*/Pfcwd", kQueuesOfOne = kCounters + "Ethernet0/Pfcwd";

// One switch whose queues are asked for once a minute, as with 500 of them.
class RareQueues : public Stage {
 protected:
  explicit RareQueues(std::chrono::milliseconds every = 60'000ms)
      : watch(clock, base::Random(7),
              {.dialer = dialer,
               .fabric_switches = objects,
               .endpoint = [](const crds::FabricSwitch& object, const std::stop_token&)
                   -> base::Result<gnmi::Endpoint> { return gnmi::Endpoint{.address = object.spec.address}; },
               .on_answers = [] {},
               .on_sightings = [] {}},
              {.queues_every_for_each = every}) {
    for (const auto& [table, rows] : SonicTables("leaf-3", true))
      There().tables["CONFIG_DB:/" + table] = rows;
    There().tables["APPL_DB:/PORT_TABLE"] = {
        {"Ethernet0", {{"oper_status", "up"}, {"alias", "etp1"}, {"flap_count", "1"}}}};
    Discards(0);
    Pause(7);
    Queue(0, 0);
    crds::FabricSwitch object;
    object.name = object.spec.name = "leaf-3";
    object.spec.address = kAddress;
    server.Put(kFabricSwitches, crds::ToJson(object));
    watch.Changed("leaf-3");
    Pass(25s);  // its queues were counted once, its ports several times
  }

  test::FakeSwitch& There() { return dialer.switches[kAddress]; }
  void Count(const std::string& field, int count) {
    const Json row = {{"SAI_PORT_STAT_" + field, std::to_string(count)}};
    Json& rows = There().tables[kCounters + "Ethernet*/SAI_PORT_STAT_" + field];
    rows = {{"etp1", row}};
    for (std::size_t i = 1; i < ports; ++i) rows["Ethernet" + std::to_string(8 * i)] = row;
  }
  void Discards(int packets) { Count("IF_OUT_DISCARDS", packets); }
  void Pause(int frames) { Count("PFC_3_RX_PKTS", frames); }
  void Queue(int drops, int storms) {
    const Json row = {{"SAI_QUEUE_STAT_DROPPED_PACKETS", std::to_string(drops)},
                      {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", std::to_string(storms)}};
    There().tables[kAllQueues] = {{"etp1:3", row}};
    There().tables[kQueuesOfOne] = {{"Ethernet0:3", row}};
  }
  void Pass(std::chrono::milliseconds time) {
    for (std::chrono::milliseconds passed{0}; passed <= time; passed += 100ms) {
      while (watch.RunOnce({})) {
      }
      clock.Advance(100ms);
    }
  }
  std::vector<topology::Sighting> Seen() {
    const SwitchSightings all = watch.Sightings();
    const auto leaf = all.find("leaf-3");
    if (leaf == all.end() || !leaf->second.contains("Ethernet0")) return {};
    return leaf->second.at("Ethernet0").sightings;
  }

  std::size_t ports = 1;
  test::FakeDialer dialer;
  ServerView objects{server, kFabricSwitches};
  SwitchWatch watch;
};

class FrequentQueues : public RareQueues {
 protected:
  FrequentQueues() : RareQueues(120ms) {}
};

TEST_F(RareQueues, DropsOfALosslessQueueAreSeenWithTheNextLookAtItsPort) {
  ASSERT_EQ(There().asked[kAllQueues], 1);
  ASSERT_EQ(There().asked[kQueuesOfOne], 0);
  Discards(50);
  Queue(50, 0);
  Pass(11s);
  ASSERT_EQ(Seen().size(), 1u);
  EXPECT_EQ(Seen().front().symptom, topology::Symptom::kDrops);
  EXPECT_THAT(Seen().front().evidence, HasSubstr("50 packets dropped in 10 min (queue 3)"));
  EXPECT_EQ(There().asked[kAllQueues], 1);
}

TEST_F(RareQueues, StormsAreSeenWithTheNextLookAtTheirPort) {
  Pause(7 + int(switches::LeastPauseOfAStorm({})));
  Queue(0, 1);
  Pass(11s);
  ASSERT_EQ(Seen().size(), 1u);
  EXPECT_EQ(Seen().front().symptom, topology::Symptom::kPauseStorm);
  EXPECT_EQ(There().asked[kAllQueues], 1);
}

// SONiC writes them every ten seconds, and those of ports every second.
TEST_F(RareQueues, AQueueThatIsWrittenLaterThanItsPortIsSeenWithTheLookAfter) {
  Discards(50);
  Pass(11s);
  EXPECT_THAT(Seen(), IsEmpty());
  Queue(50, 0);
  Pass(10s);
  EXPECT_EQ(Seen().size(), 1u);
  EXPECT_EQ(There().asked[kAllQueues], 1);
}

TEST_F(RareQueues, PauseThatComesAndGoesCostsNothing) {
  for (int i = 1; i <= 4; ++i) {
    Pause(7 + i * int(switches::LeastPauseOfAStorm({}) / 3));
    Pass(10s);
  }
  EXPECT_EQ(There().asked[kQueuesOfOne], 0);
}

TEST_F(RareQueues, AllAreAskedForAtOnceWhereManyPortsMove) {
  ports = switches::kMostPortsAtOnce + 1;
  Discards(0);
  Pause(7);
  Pass(20s);
  ASSERT_EQ(There().asked[kAllQueues], 1);
  Discards(50);
  Queue(50, 0);
  Pass(11s);
  EXPECT_EQ(There().asked[kAllQueues], 2);
  EXPECT_EQ(There().asked[kQueuesOfOne], 0);
  EXPECT_EQ(Seen().size(), 1u);
  Pass(30s);
  EXPECT_EQ(There().asked[kAllQueues], 2) << "it was the turn of all, which comes a minute later again";
}

TEST_F(RareQueues, ASwitchThatRefusesThemIsInNoTroubleAndTheTurnComesToAll) {
  There().troubles.emplace(kQueuesOfOne, base::Error{base::Code::kNotFound, "leaf-3: no such path", {}});
  Discards(50);
  Queue(50, 0);
  Pass(11s);
  EXPECT_GE(There().asked[kQueuesOfOne], 1);
  EXPECT_FALSE(watch.Answers().at("leaf-3").counting.trouble);
  EXPECT_THAT(Seen(), IsEmpty());
  Pass(50s);
  EXPECT_EQ(There().asked[kAllQueues], 2);
  EXPECT_EQ(Seen().size(), 1u);
}

// As SONiC has it until 202311.
TEST_F(RareQueues, FlapsOfASwitchThatCountsNoneAreSeenByTheStatesOfItsPorts) {
  EXPECT_EQ(watch.Answers().at("leaf-3").counting.flaps, switches::FlapsBy::kCounter);
  Json& port = There().tables["APPL_DB:/PORT_TABLE"]["Ethernet0"];
  port.erase("flap_count");
  Pass(21min);  // longer than a counter that is not said is waited for
  EXPECT_EQ(watch.Answers().at("leaf-3").counting.flaps, switches::FlapsBy::kState);
  EXPECT_FALSE(watch.Answers().at("leaf-3").counting.trouble);
  for (const char* state : {"down", "up", "down"}) {
    EXPECT_THAT(Seen(), IsEmpty());
    There().tables["APPL_DB:/PORT_TABLE"]["Ethernet0"]["oper_status"] = state;
    Pass(11s);
  }
  ASSERT_EQ(Seen().size(), 1u);
  EXPECT_EQ(Seen().front().evidence, "2 flaps in 10 min");
  EXPECT_EQ(watch.Answers().at("leaf-3").counting.flaps, switches::FlapsBy::kState)
      << "that all are down now tells nothing else";
}

TEST_F(FrequentQueues, AreNotAskedForOnceMore) {
  Discards(50);
  Queue(50, 0);
  Pass(30s);
  EXPECT_EQ(Seen().size(), 1u);
  EXPECT_EQ(There().asked[kQueuesOfOne], 0);
}

}  // namespace
}  // namespace heddle::operators
