#include "switches/ufm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/object_meta.h"
#include "switches/counter_window.h"

namespace heddle::switches {
namespace {

using crds::Json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// As UFM says it, with what nobody reads.
Json PortJson(const std::string& guid, int number) {
  return {{"name", fmt::format("{}_{}", guid, number)},
          {"number", number},
          {"guid", guid},
          {"description", "Switch IB Port"},
          {"dname", std::to_string(number)},
          {"system_name", "su1-r3"},
          {"peer", "0c42a103001b8256_1"},
          {"peer_node_name", "gpu-017"},
          {"peer_node_description", "gpu-017 mlx5_3"},
          {"logical_state", "Active"},
          {"enabled_speed", Json::array({"SDR", "HDR"})},
          {"severity", "Info"}};
}
constexpr const char* kGuid = "1c34da0300728606";

Json CountersJson(const Json& statistics, const std::string& taken = "2026-11-25 16:00:30") {
  Json ports;
  ports["1c34da0300728606_1"] = {{"dname", "1"}, {"statistics", statistics}};
  Json of_class;
  of_class["Port"] = ports;
  Json all;
  all[taken] = of_class;
  return all;
}

TEST(UfmPorts, AreReadFromAListWhichIsAllThereIs) {
  Json host = PortJson("0c42a103001b8256", 1);
  host["description"] = "Computer IB Port";
  const auto page = ReadUfmPorts(Json::array({PortJson(kGuid, 1), host}).dump(), 1);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_THAT(page->ports, ElementsAre(UfmPort{"1c34da0300728606_1", kGuid, "su1-r3", 1, "0c42a103001b8256_1",
                                               "gpu-017", "gpu-017 mlx5_3"}));
  EXPECT_EQ(page->entries, 2U);
  EXPECT_FALSE(page->more);
}

TEST(UfmPorts, GoOnUntilThePageThatIsTheLast) {
  Json list = Json::array();
  for (int i = 0; i < 1000; ++i) list.push_back(PortJson(fmt::format("{:016x}", i), 1));
  const auto page = [&](const Json& filtered, int number) {
    Json body = {{"total_resources", 9000}, {"data", list}};
    if (!filtered.is_null()) body["filtered_resources"] = filtered;
    return ReadUfmPorts(body.dump(), number)->more;
  };
  EXPECT_TRUE(page(2500, 1));
  EXPECT_TRUE(page(2500, 2));
  EXPECT_FALSE(page(2500, 3));
  EXPECT_FALSE(page(1000, 1));
  EXPECT_TRUE(page(nullptr, 1));  // a full page that says no number
  list.erase(list.begin());
  EXPECT_FALSE(page(nullptr, 1));
  list = Json::array();
  EXPECT_FALSE(page(2500, 2));  // it says that there is more, and has none
}

TEST(UfmPorts, WithoutANameOrANumberAreNone) {
  const auto unread = [](const char* key, const Json& value) {
    Json odd = PortJson(kGuid, 1);
    odd[key] = value;
    const auto page = ReadUfmPorts(Json::array({odd, PortJson(kGuid, 2)}).dump(), 1);
    return page ? page->unread : std::size_t{99};
  };
  EXPECT_EQ(unread("name", nullptr), 1U);
  EXPECT_EQ(unread("name", 7), 1U);
  EXPECT_EQ(unread("name", "leaf_1"), 1U);
  EXPECT_EQ(unread("name", "1c34da0300728606_2"), 1U);  // another number than its own
  EXPECT_EQ(unread("number", 0), 1U);
  EXPECT_EQ(unread("number", 4096), 1U);
  EXPECT_EQ(unread("number", "1"), 0U);
  EXPECT_EQ(unread("system_name", nullptr), 0U);
}

TEST(UfmPorts, WithoutANameOfTheirSwitchGoByItsGuidAndAnEndThatIsNotThereIsNone) {
  Json odd = PortJson(kGuid, 1);
  odd["system_name"] = "";
  odd["peer"] = "N/A";
  odd.erase("peer_node_description");
  const auto page = ReadUfmPorts(Json::array({odd}).dump(), 1);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->ports[0].system, kGuid);
  EXPECT_EQ(page->ports[0].peer, "");
  EXPECT_EQ(page->ports[0].peer_description, "");
}

TEST(UfmPorts, OfAnotherShapeAreRefusedWithASentence) {
  for (const char* body : {"", "<html>login</html>", "{}", "7", "{\"data\": 7}", "[1, 2]", "[{}]", "null"}) {
    const auto page = ReadUfmPorts(body, 1);
    ASSERT_FALSE(page) << body;
    EXPECT_EQ(page.error().code, base::Code::kInvalid);
    EXPECT_THAT(page.error().message, HasSubstr("UFM's ports"));
  }
  EXPECT_EQ(ReadUfmPorts(std::string(100, '['), 1).error().code, base::Code::kTooLarge);
  EXPECT_TRUE(ReadUfmPorts("[]", 1));  // a fabric without a port is one
}

TEST(UfmCounts, AreReadWhereTheyAreWholeNumbers) {
  const Json statistics = {{"Infiniband_LinkDowned", 3},
                           {"Infiniband_SymbolErrors", "12"},
                           {"Infiniband_RcvErrors", 7.0},
                           {"Infiniband_XmitWait", 18446744073709551615U},
                           {"Infiniband_LinkRecovers", nullptr},
                           {"Infiniband_LinkIntegrityErrors", -1},
                           {"Infiniband_ExcBufOverrunErrors", 0.5},
                           {"Infiniband_PckIn", "N/A"},
                           {"Infiniband_MBOut", 9}};
  const auto counters = ReadUfmCounters(CountersJson(statistics).dump());
  ASSERT_TRUE(counters) << counters.error().message;
  PortCounters wanted;
  wanted.link_downs = 3;
  wanted.symbol_errors = 12;
  wanted.in_errors = 7;
  wanted.wait_ticks = 18446744073709551615U;
  EXPECT_THAT(counters->ports, ElementsAre(Pair("1c34da0300728606_1", wanted)));
  EXPECT_EQ(counters->taken, "2026-11-25 16:00:30");
}

TEST(UfmCounts, OfSeveralTimesTheLastCounts) {
  Json both = CountersJson({{"Infiniband_LinkDowned", 3}}, "2026-11-25 16:00:00");
  both.update(CountersJson({{"Infiniband_LinkDowned", 5}}, "2026-11-25 16:00:30"));
  const auto counters = ReadUfmCounters(both.dump());
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->ports.begin()->second.link_downs, 5U);
}

TEST(UfmCounts, OfHalfThePortsAreThoseOfThatHalf) {
  Json json = CountersJson({{"Infiniband_LinkDowned", 3}});
  Json& ports = json["2026-11-25 16:00:30"]["Port"];
  ports["1c34da0300728606_2"] = {{"statistics", Json::object()}};
  ports["1c34da0300728606_3"] = "garbage";
  ports["1c34da0300728606_4"] = {{"statistics", 7}};
  const auto counters = ReadUfmCounters(json.dump());
  ASSERT_TRUE(counters);
  EXPECT_THAT(counters->ports, SizeIs(1));
  EXPECT_EQ(counters->unread, 3U);
}

TEST(UfmCounts, OfAnotherShapeAreRefusedWithASentence) {
  for (const char* body :
       {"", "no JSON", "[]", "{}", "{\"now\": 7}", "{\"now\": {}}", "{\"now\": {\"Port\": {}}}",
        "{\"now\": {\"Port\": {\"a_1\": {}}}}", "{\"now\": {\"Port\": {\"a_1\""}) {
    const auto counters = ReadUfmCounters(body);
    ASSERT_FALSE(counters) << body;
    EXPECT_EQ(counters.error().code, base::Code::kInvalid);
    EXPECT_THAT(counters.error().message, HasSubstr("UFM's counters"));
  }
}

// Twelve symbol errors every 30 s are a sick cable, and the switch that counts them is the far end of it.
TEST(UfmCounts, BecomeSightingsByTheRulesOfHosts) {
  const std::vector<UfmPort> ports = ReadUfmPorts(Json::array({PortJson(kGuid, 1)}).dump(), 1)->ports;
  CounterWindow window;
  const auto look = [&](int number, int downs, int symbols, int waits) {
    const Json statistics = {{"Infiniband_LinkDowned", downs},
                             {"Infiniband_SymbolErrors", symbols},
                             {"Infiniband_XmitWait", waits}};
    auto samples = SamplesOf(ports, *ReadUfmCounters(CountersJson(statistics).dump()),
                             base::MonotonicTime{seconds(30 * number)});
    window.Add(std::move(samples.at(kGuid)));
    return window.Sightings(base::MonotonicTime{seconds(30 * number)});
  };
  EXPECT_THAT(look(1, 7, 0, 0), IsEmpty());
  EXPECT_THAT(look(2, 8, 120, 900), IsEmpty());  // one down is a boot; waiting is congestion
  const auto seen = look(3, 9, 121, 900);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].port, "1");
  using topology::Sighting;
  using topology::Symptom;
  EXPECT_THAT(
      seen[0].sightings,
      ElementsAre(
          Sighting{Symptom::kFlap, true, "2 link downs in 10 min; 900 ticks without credit in 10 min"},
          Sighting{Symptom::kErrors, true, "121 symbol errors in 1 h; 900 ticks without credit in 10 min"}));
  // Somebody has reset them: that is no evidence, and it is told.
  EXPECT_THAT(look(4, 0, 0, 0)[0].note, HasSubstr("went back from"));
}

TEST(UfmCounts, OfPortsThatNobodyKnowsAreLeftOut) {
  const auto counters = ReadUfmCounters(CountersJson({{"Infiniband_LinkDowned", 3}}).dump());
  EXPECT_THAT(SamplesOf({}, *counters, {}), IsEmpty());
}

}  // namespace
}  // namespace heddle::switches
