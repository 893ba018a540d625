#include "operator/ufm_watch.h"

#include <gmock/gmock.h>

#include <utility>

#include "tests/support/ufm_answers.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using base::Code;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kLeaf = "1c34da0300728606";
constexpr const char* kSpine = "1c34da03000000ff";

class UfmWatchTest : public Stage {
 protected:
  UfmWatchTest() {
    doing.fabric.At(kLeaf, 1).system = "su1-r3";
    doing.fabric.At(kLeaf, 40).system = "su1-r3";
    doing.fabric.At(kSpine, 3).system = "spine-0";
    doing.fabric.Cable(kLeaf, 40, kSpine, 3);
    for (auto& port : doing.fabric.ports) port.counters = {{"LinkDowned", 0}, {"RcvErrors", 0}};
  }

  void Make(const std::string& name = "infiniband", const std::string& address = "ufm.example:443") {
    crds::Fabric object;
    object.name = name;
    object.status.transport = topology::Transport::kInfiniBand;
    object.ufm = crds::FabricUfm{address, "ufm-login", "", "ufm-ca", 30};
    server.Put(kFabrics, crds::ToJson(object));
    watch.Changed(name);
  }
  void Pass(std::chrono::seconds time) {
    for (std::chrono::seconds passed{0}; passed <= time; passed += 1s) {
      while (watch.RunOnce({})) {
      }
      clock.Advance(1s);
      // UFM takes counters every 30 s.
      if (!stands_still && (clock.Now().time_since_epoch() / 1s) % 30 == 0)
        doing.fabric.taken = std::to_string(clock.Now().time_since_epoch() / 1s);
    }
  }
  UfmAnswer Answer() { return watch.Of("infiniband").value(); }
  std::string Reason() { return Answer().trouble ? Answer().trouble->reason : ""; }
  std::string Counting() { return Answer().counting.trouble ? Answer().counting.trouble->reason : ""; }
  std::vector<topology::Sighting> SeenOf(const std::string& guid) {
    const UfmAnswer answer = Answer();
    const auto found = answer.sightings.find(guid);
    return found == answer.sightings.end() ? std::vector<topology::Sighting>{} : found->second[0].sightings;
  }

  test::FakeUfm::Doing doing;
  bool stands_still = false;
  int answers = 0;
  std::optional<base::Error> no_endpoint;
  UfmWatch watch{
      clock,
      base::Random(7),
      {.fabrics = fabrics,
       .endpoint = [this](const crds::FabricUfm& ufm, const std::stop_token&) -> base::Result<UfmEndpoint> {
         if (no_endpoint) return base::Fail(*no_endpoint);
         return UfmEndpoint{.address = ufm.address};
       },
       .transport = [this](const UfmEndpoint&) { return std::make_unique<test::FakeUfm>(doing); },
       .on_answers = [this] { ++answers; }}};
};

TEST_F(UfmWatchTest, AsksOnlyForFabricsThatNameOne) {
  crds::Fabric object;
  object.name = "roce";
  server.Put(kFabrics, crds::ToJson(object));
  watch.Changed("roce");
  Pass(60s);
  EXPECT_FALSE(watch.Of("roce"));
  EXPECT_EQ(doing.connections, 0);
}

TEST_F(UfmWatchTest, GoesOnAskingWhereOnlyTheStatusOfItsFabricCannotBeRead) {
  Make();
  Pass(60s);
  ASSERT_TRUE(watch.Of("infiniband"));
  server.Edit(kFabrics, {"", "infiniband"}, [](Json& object) { object["status"]["rails"] = "eight"; });
  watch.Changed("infiniband");
  Pass(1s);
  EXPECT_TRUE(watch.Of("infiniband"));
}

TEST_F(UfmWatchTest, AsksForCountersOnceAPollAndForPortsOnceAMinute) {
  Make();
  Pass(600s);
  EXPECT_EQ(Reason(), "");
  EXPECT_EQ(Counting(), "");
  EXPECT_EQ(Answer().counting.ports, 3);
  EXPECT_EQ(doing.connections, 1);
  EXPECT_NEAR(doing.counter_questions, 20, 2);
  EXPECT_NEAR(doing.port_questions, 10, 2);
  EXPECT_LE(answers, 2);  // what stays as it was is no news
}

TEST_F(UfmWatchTest, TellsOfACounterThatMovesWithinAPoll) {
  Make();
  Pass(90s);
  EXPECT_THAT(Answer().sightings, IsEmpty());
  const int told = answers;
  doing.fabric.At(kSpine, 3).counters["LinkDowned"] = 41;
  Pass(61s);
  EXPECT_GT(answers, told);
  EXPECT_THAT(SeenOf(kSpine),
              ElementsAre(topology::Sighting{topology::Symptom::kFlap, true, "41 link downs in 10 min"}));
  EXPECT_THAT(SeenOf(kLeaf), IsEmpty());
  // Ten quiet minutes, and it is over.
  Pass(1500s);
  EXPECT_THAT(Answer().sightings, IsEmpty());
}

TEST_F(UfmWatchTest, TriesOneThatDoesNotAnswerAgainAndRarerAndKeepsWhatItSaid) {
  Make();
  Pass(60s);
  const auto ports = Answer().ports;
  ASSERT_NE(ports, nullptr);
  doing.broken = base::Error{Code::kUnavailable, "https://ufm.example:443: refused", std::nullopt};
  const int connections = doing.connections;
  Pass(1200s);
  EXPECT_EQ(Reason(), "Unreachable");
  EXPECT_EQ(Answer().ports, ports);
  EXPECT_GE(doing.connections - connections, 15);
  EXPECT_LE(doing.connections - connections, 30);
  doing.broken.reset();
  Pass(70s);
  EXPECT_EQ(Reason(), "");
}

TEST_F(UfmWatchTest, ReadsItsSecretsAnewAfterItsLoginWasRefused) {
  Make();
  Pass(60s);
  doing.status = 401;
  Pass(40s);
  EXPECT_EQ(Reason(), "PasswordRefused");
  doing.status = 200;
  Pass(70s);
  EXPECT_EQ(Reason(), "");
  no_endpoint = base::Error{Code::kNotFound, "there is no Secret ufm-login", std::nullopt};
  doing.status = 401;
  Pass(40s);
  EXPECT_EQ(Reason(), "NotFound");
}

TEST_F(UfmWatchTest, KnowsTheCablesOfOneWhoseCountersAreGarbage) {
  doing.counters_body = "<html>";
  Make();
  Pass(60s);
  EXPECT_EQ(Reason(), "");
  EXPECT_EQ(Counting(), "Unreadable");
  ASSERT_NE(Answer().ports, nullptr);
  EXPECT_THAT(*Answer().ports, SizeIs(3));
  EXPECT_FALSE(Answer().counting.counted_at);
  doing.counters_body.reset();
  Pass(60s);
  EXPECT_EQ(Counting(), "");
}

TEST_F(UfmWatchTest, SaysWhatIsMissingOfHalfAnAnswer) {
  for (auto& port : doing.fabric.ports) port.counters.clear();
  doing.fabric.At(kLeaf, 1).counters["LinkDowned"] = 0;
  doing.fabric.At(kLeaf, 2).system = "su1-r3";
  doing.fabric.At(kSpine, 4).system = "spine-0";
  doing.fabric.Cable(kLeaf, 2, kSpine, 4);
  Make();
  Pass(60s);
  EXPECT_EQ(Counting(), "Partial");
  EXPECT_THAT(Answer().counting.trouble->message,
              HasSubstr("counts 1 ports of switches, and 4 have a cable"));
}

TEST_F(UfmWatchTest, TakesNothingForASampleThatUfmHasNotTakenAnew) {
  Make();
  Pass(60s);
  stands_still = true;
  Pass(31s);
  doing.fabric.At(kSpine, 3).counters["LinkDowned"] = 41;
  Pass(120s);
  EXPECT_THAT(Answer().sightings, IsEmpty());
  EXPECT_EQ(Counting(), "");
  Pass(400s);
  EXPECT_EQ(Counting(), "StandsStill");
  stands_still = false;
  Pass(60s);
  EXPECT_EQ(Counting(), "");
  EXPECT_THAT(SeenOf(kSpine), SizeIs(1));
}

TEST_F(UfmWatchTest, TakesCountersThatWereResetForNoEvidenceAndSaysSo) {
  doing.fabric.At(kLeaf, 1).counters["RcvErrors"] = 1'000'000;
  Make();
  Pass(90s);
  doing.fabric.At(kLeaf, 1).counters["RcvErrors"] = 0;
  Pass(60s);
  EXPECT_THAT(SeenOf(kLeaf), IsEmpty());
  ASSERT_EQ(Answer().counting.noted, 1);
  EXPECT_THAT(Answer().counting.notes[0], HasSubstr("su1-r3 port 1: in_errors went back from 1000000 to 0"));
}

TEST_F(UfmWatchTest, KeepsWhatItSawWhileUfmListsNoPortAsWhenItStarts) {
  Make();
  Pass(90s);
  doing.fabric.At(kSpine, 3).counters["LinkDowned"] = 41;
  Pass(61s);
  ASSERT_THAT(SeenOf(kSpine), SizeIs(1));
  const auto ports = std::exchange(doing.fabric.ports, {});
  Pass(130s);
  EXPECT_EQ(Reason(), "Unreadable");
  EXPECT_THAT(*Answer().ports, SizeIs(3));
  EXPECT_THAT(SeenOf(kSpine), SizeIs(1));
  doing.fabric.ports = ports;
  Pass(70s);
  EXPECT_EQ(Reason(), "");
  EXPECT_THAT(SeenOf(kSpine), SizeIs(1));
}

TEST_F(UfmWatchTest, KnowsASwitchAgainThatUfmDidNotListWhileItBooted) {
  Make();
  Pass(90s);
  doing.fabric.At(kSpine, 3).counters["LinkDowned"] = 41;
  Pass(61s);
  ASSERT_THAT(SeenOf(kSpine), SizeIs(1));
  const auto ports = doing.fabric.ports;
  std::erase_if(doing.fabric.ports, [](const auto& port) { return port.guid == kSpine; });
  Pass(130s);
  EXPECT_EQ(Reason(), "");
  EXPECT_THAT(SeenOf(kSpine), IsEmpty());
  doing.fabric.ports = ports;
  Pass(130s);
  EXPECT_THAT(SeenOf(kSpine), SizeIs(1)) << "nothing is forgotten before ten quiet minutes";
}

TEST_F(UfmWatchTest, IsPrimedAfterTenQuietMinutes) {
  Make();
  Pass(300s);
  EXPECT_FALSE(Answer().primed);
  Pass(400s);
  EXPECT_TRUE(Answer().primed);
}

TEST_F(UfmWatchTest, ForgetsWhatAFabricNamesNoLonger) {
  Make();
  Pass(60s);
  Make("infiniband", "another.example:443");
  Pass(5s);
  EXPECT_EQ(doing.connections, 2);
  crds::Fabric object = FabricNamed("infiniband");
  object.ufm.reset();
  server.Put(kFabrics, crds::ToJson(object));
  watch.Changed("infiniband");
  Pass(5s);
  EXPECT_FALSE(watch.Of("infiniband"));
}

}  // namespace
}  // namespace heddle::operators
