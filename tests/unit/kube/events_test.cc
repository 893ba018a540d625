#include "kube/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using testing::ElementsAre;

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() { clock_.set_auto_advance(true); }
  std::vector<Json> Events() { return server_.All(kEvents); }
  void Say(const std::string& note) { recorder_.Record(job_, Severity::kWarning, "Refused", note); }

  const ObjectReference job_{"batch/v1", "Job", "train", "llm", "u-1"};
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Client client_{server_, clock_, {}};
  EventRecorder recorder_{client_,
                          clock_,
                          base::Random(1),
                          {.component = "heddle-extender", .instance = "pod-1", .max_queued = 40}};
};

TEST_F(EventRecorderTest, WritesAnEventAsKubectlReadsIt) {
  Say("16 hosts needed, best has 12");
  EXPECT_TRUE(server_.requests().empty()) << "Record itself asks nothing";
  recorder_.Flush({});
  ASSERT_EQ(Events().size(), 1u);
  const Json event = Events()[0];
  EXPECT_EQ(Namespace(event), "train");
  EXPECT_TRUE(Name(event).starts_with("llm."));
  EXPECT_EQ(event["involvedObject"], Json::parse(R"({"apiVersion":"batch/v1","kind":"Job","namespace":"train",
                                                     "name":"llm","uid":"u-1"})"));
  EXPECT_EQ(event["reason"], "Refused");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["message"], "16 hosts needed, best has 12");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["source"]["component"], "heddle-extender");
  EXPECT_EQ(event["reportingComponent"], "heddle-extender");
}

TEST_F(EventRecorderTest, CountsTheSameEventByAPatch) {
  for (int i = 0; i < 3; ++i) Say("same");
  Say("other");
  recorder_.Flush({});
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_EQ(Events()[0]["count"].get<int>() + Events()[1]["count"].get<int>(), 4);
  EXPECT_EQ(server_.lines()[1].substr(0, 6), "PATCH ");
}

TEST_F(EventRecorderTest, WritesAnewWhatTheServerHasForgotten) {
  Say("same");
  recorder_.Flush({});
  server_.Remove(kEvents, KeyOf(Events()[0]));
  Say("same");
  recorder_.Flush({});
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0]["count"], 1);
}

TEST_F(EventRecorderTest, PutsClusterScopedObjectsIntoDefault) {
  recorder_.Record({"v1", "Node", "", "a1", "u"}, Severity::kNormal, "RailDown", "rail 3 is down");
  recorder_.Flush({});
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Namespace(Events()[0]), "default");
  EXPECT_EQ(Find(Events()[0], {"involvedObject", "namespace"}), nullptr);
}

TEST_F(EventRecorderTest, CutsALongNoteAtACharacterBorder) {
  std::string note;
  while (note.size() < 3000) note += "ä";
  Say(note);
  recorder_.Flush({});
  const std::string written = Events()[0]["message"];
  EXPECT_LE(written.size(), 1024u);
  EXPECT_GT(written.size(), 1000u);
  EXPECT_TRUE(written.ends_with("ä…"));
}

TEST_F(EventRecorderTest, DropsWhatIsTooMuchOfOneObjectAndLetsOthersSpeak) {
  for (int i = 0; i < 30; ++i) Say(std::to_string(i));
  recorder_.Record({"v1", "Pod", "train", "w-0", "u"}, Severity::kNormal, "Bound", "n");
  EXPECT_EQ(recorder_.dropped(), 5u);
  recorder_.Flush({});
  EXPECT_EQ(Events().size(), 26u);
  clock_.Advance(std::chrono::minutes(5));
  Say("again");
  EXPECT_EQ(recorder_.dropped(), 5u);
  Say("and again");
  EXPECT_EQ(recorder_.dropped(), 6u);
}

TEST_F(EventRecorderTest, HoldsNoMoreThanItsQueue) {
  for (int i = 0; i < 100; ++i) {
    recorder_.Record({"v1", "Pod", "train", "w-" + std::to_string(i), "u"}, Severity::kNormal, "Bound", "n");
  }
  EXPECT_EQ(recorder_.dropped(), 60u);
}

TEST_F(EventRecorderTest, TriesThreeTimesAndThenGoesOn) {
  server_.FailNext({.method = "POST", .status = 503}, 3);
  Say("lost");
  Say("kept");
  recorder_.Flush({});
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0]["message"], "kept");
  EXPECT_EQ(recorder_.dropped(), 1u);
}

TEST_F(EventRecorderTest, WaitsForAServerThatIsAwayWhereToldTo) {
  EventRecorder patient(client_, clock_, base::Random(1), {.component = "heddle-nodeagent", .tries = 0});
  server_.FailNext({.method = "POST", .status = 503}, 20);
  const base::WallTime happened = clock_.WallNow();
  patient.Record(job_, Severity::kWarning, "LinkDown", "kept");
  patient.Flush({});
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0]["firstTimestamp"], base::FormatTime(happened));
  EXPECT_GT(clock_.WallNow() - happened, std::chrono::minutes(10));
  EXPECT_EQ(patient.dropped(), 0u);
}

TEST_F(EventRecorderTest, DropsWhatItMayNotWriteAtOnce) {
  server_.FailNext({.method = "POST", .status = 403});
  Say("lost");
  recorder_.Flush({});
  EXPECT_EQ(server_.requests().size(), 1u);
  EXPECT_EQ(recorder_.dropped(), 1u);
}

TEST_F(EventRecorderTest, SendsFromItsThread) {
  clock_.set_auto_advance(false);
  std::jthread runner([this](std::stop_token stop) { recorder_.Run(stop); });
  Say("hello");
  EXPECT_TRUE(server_.WaitUntil([&] { return Events().size() == 1; }));
}

}  // namespace
}  // namespace heddle::kube
