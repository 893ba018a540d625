#include "operator/daemon.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "crds/fabric_switch.h"
#include "operator/metrics.h"
#include "operator/page/page.h"
#include "tests/support/gnmi/fake_dialer.h"
#include "tests/unit/operator/page/sights.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTwoUnits = "su:2 node:2 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";
const kube::ObjectKey kLease{"heddle-system", "heddle-operator"};

class DaemonTest : public Stage {
 protected:
  struct Running {
    Running(DaemonTest& test, const std::string& identity, bool leader_elect = true, bool page = false,
            std::uint64_t seed = 7)
        : daemon(test.server, dialer, test.clock, base::Random(seed), metrics,
                 {.leader_elect = leader_elect, .identity = identity, .page = page}),
          thread([this](std::stop_token stop) { daemon.Run(stop); }) {}
    test::FakeDialer dialer;
    Metrics metrics;
    Daemon daemon;
    std::jthread thread;
  };

  // Lets time pass until something holds; false after five minutes of it.
  bool Until(const std::function<bool()>& holds) {
    for (int step = 0; step < 1500; ++step) {
      if (holds()) return true;
      clock.Advance(200ms);
      std::this_thread::sleep_for(1ms);  // other threads need the processor, not the time
    }
    return holds();
  }
  void Stop(Running& running) {
    running.thread.request_stop();
    Until([&] { return true; });
    running.thread.join();
  }
  bool Labelled(const std::string& node) {
    const auto object = server.Find(kube::kNodes, {"", node});
    return object && kube::Labels(*object).contains("heddle.dev/su");
  }
  std::string Holder() {
    const auto lease = server.Find(kube::kLeases, kLease);
    return lease ? kube::StringAt(*lease, {"spec", "holderIdentity"}) : "";
  }
  // Until Intercept is called again, whoever writes what a node is told of LosslessPolicies gets this answer, counted in
  // `asked`.
  void RefuseLosslessSpecs(std::atomic<int>& asked, kube::HttpResponse answer) {
    server.Intercept([&asked, answer = std::move(answer)](
                         const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      const bool spec = request.method == "PATCH" && request.plural == "nodetopologies" &&
                        request.body.find("\"lossless\"") != std::string::npos;
      if (!spec) return std::nullopt;
      ++asked;
      return answer;
    });
  }
  // Asked on another thread, since time passes on this one; discarded where there is none.
  static std::future<kube::Json> AskForView(Running& running, const std::string& query) {
    return std::async(std::launch::async, [&running, query] {
      return kube::Json::parse(
          running.daemon
              .AnswerPage({.method = "GET", .path = "/fabric/view.json", .query = query, .host = "localhost"})
              .body,
          nullptr, false);
    });
  }
  // Asks again while there is none yet; null where none comes.
  kube::Json ViewOf(Running& running, const std::string& query) {
    for (int tries = 0; tries < 10; ++tries) {
      auto answer = AskForView(running, query);
      Until([&] { return answer.wait_for(0s) == std::future_status::ready; });
      kube::Json document = answer.get();
      if (!document.is_discarded()) return document;
    }
    return nullptr;
  }
  void Pass(std::chrono::seconds time) {
    const base::MonotonicTime end = clock.Now() + time;
    Until([&] { return clock.Now() >= end; });
  }
  bool Assembled(int node_count) {
    const auto object = server.Find(kFabrics, {"", "infiniband"});
    return object && kube::IntAt(*object, {"status", "counts", "nodes"}) == node_count;
  }
};

TEST_F(DaemonTest, LeadsFromBareNodesToFabricAndLabelsAndReleasesItsLease) {
  const auto synthetic = topology::ParseSynthetic(kTwoUnits);
  ASSERT_TRUE(synthetic);
  for (const topology::Node& node : synthetic->nodes) AddNode(node.name);
  Running one(*this, "one");
  ASSERT_TRUE(Until([&] { return server.All(kNodeTopologies).size() == 4; }));
  EXPECT_TRUE(one.daemon.ready());
  EXPECT_EQ(Holder(), "one");
  for (const topology::Node& node : synthetic->nodes) Report(node);
  ASSERT_TRUE(Until([&] { return Assembled(4) && Labelled("node-00") && Labelled("node-03"); }));
  EXPECT_THAT(one.metrics.Text(), HasSubstr("heddle_fabric_nodes{fabric=\"infiniband\"} 4"));
  EXPECT_THAT(one.metrics.Text(), HasSubstr("heddle_operator_leading 1"));
  Stop(one);
  EXPECT_EQ(Holder(), "");
}

TEST_F(DaemonTest, KeepsTryingWhileTheServerForbidsAndGoesOnOnceItAllows) {
  ReportCluster(kTwoUnits);
  server.Intercept([](const test::ApiRequest&) -> std::optional<kube::HttpResponse> {
    return kube::HttpResponse{.status = 403, .body = R"({"kind":"Status","code":403,"reason":"Forbidden"})"};
  });
  Running one(*this, "one");
  ASSERT_TRUE(Until([&] { return server.requests().size() > 20; }));
  EXPECT_FALSE(one.daemon.ready());
  server.Intercept(nullptr);
  EXPECT_TRUE(Until([&] { return Assembled(4); }));
  Stop(one);
}

TEST_F(DaemonTest, TriesASpecThatItMayNotWriteAgainAfterPausesThatGrow) {
  ReportCluster(kTwoUnits);
  AddPolicy(kLosslessPolicies, "roce", Json::object());
  std::atomic<int> asked = 0;
  RefuseLosslessSpecs(asked, {.status = 403, .body = R"({"kind":"Status","code":403,"reason":"Forbidden"})"});
  Running one(*this, "one", false);
  const auto reason = [&] {
    const auto policy = server.Find(kLosslessPolicies, {"", "roce"});
    const kube::Json* ready = policy ? kube::Condition(*policy, "Ready") : nullptr;
    return ready == nullptr ? "" : kube::StringAt(*ready, {"reason"});
  };
  EXPECT_TRUE(Until([&] { return reason() == "NotTold"; })) << reason();
  EXPECT_TRUE(Until([&] { return asked >= 8; })) << "each of four nodes once more";
  Until([] { return false; });  // five minutes
  // From 5 ms doubling to a minute, that is some twenty looks, and a few for what else changed; one each moment would
  // be over a thousand.
  EXPECT_LE(asked, 4 * 60);
  server.Intercept(nullptr);
  EXPECT_TRUE(Until([&] { return !NodeOf("node-00").spec.lossless.empty(); }));
  Stop(one);
}

TEST_F(DaemonTest, LeavesAServerAloneForAsLongAsThatAsks) {
  ReportCluster(kTwoUnits);
  AddPolicy(kLosslessPolicies, "roce", Json::object());
  std::atomic<int> asked = 0;
  // Longer than a request may take, so that it is not waited for within one.
  RefuseLosslessSpecs(asked, {.status = 429,
                              .headers = {{"Retry-After", "45"}},
                              .body = R"({"kind":"Status","code":429,"reason":"TooManyRequests"})"});
  Running one(*this, "one", false);
  EXPECT_TRUE(Until([&] { return asked >= 4; }));
  const auto end = clock.Now() + 40s;
  Until([&] { return clock.Now() >= end; });
  // A few looks of four nodes, as its own labels and the policy's status bring it back; with pauses that double from
  // 5 ms there would be a dozen.
  EXPECT_LE(asked, 4 * 7);
  server.Intercept(nullptr);
  EXPECT_TRUE(Until([&] { return !NodeOf("node-00").spec.lossless.empty(); }));
  Stop(one);
}

TEST_F(DaemonTest, SurvivesGarbageAtEveryRequestOfItsFirstMinute) {
  ReportCluster(kTwoUnits);
  std::atomic<int> number = 0;
  server.Intercept([&](const test::ApiRequest&) -> std::optional<kube::HttpResponse> {
    switch (number++ % 5) {
      case 0:
        return kube::HttpResponse{.status = 200, .body = "\xff\xfe not json"};
      case 1:
        return kube::HttpResponse{.status = 200, .body = "[]"};
      case 2:
        return kube::HttpResponse{.status = 500, .body = std::string(100'000, 'x')};
      case 3:
        return kube::HttpResponse{.status = 200,
                                  .body = R"({"items":[{"metadata":5},null,{"metadata":{}}]})"};
      default:
        return kube::HttpResponse{.status = 302, .body = ""};
    }
  });
  Running one(*this, "one");
  ASSERT_TRUE(Until([&] { return number > 50; }));
  server.Intercept(nullptr);
  EXPECT_TRUE(Until([&] { return Assembled(4); }));
  Stop(one);
}

TEST_F(DaemonTest, HandsOverToTheOtherReplicaWhenItStops) {
  ReportCluster(kTwoUnits);
  Running one(*this, "one");
  ASSERT_TRUE(Until([&] { return Holder() == "one" && Assembled(4); }));
  Running two(*this, "two");
  Stop(one);
  ASSERT_TRUE(Until([&] { return Holder() == "two"; }));
  AddNode("late");
  EXPECT_TRUE(Until([&] { return server.Find(kNodeTopologies, {"", "late"}).has_value(); }));
  Stop(two);
}

TEST_F(DaemonTest, MakesADeletedObjectAgain) {
  const auto cluster = ReportCluster(kTwoUnits);
  Running one(*this, "one", false);
  ASSERT_TRUE(Until([&] { return Assembled(4); }));
  server.Remove(kNodeTopologies, {"", cluster[0].name});
  server.Remove(kFabrics, {"", "infiniband"});
  EXPECT_TRUE(Until([&] {
    return server.Find(kNodeTopologies, {"", cluster[0].name}).has_value() && Assembled(3);
  }));
  Stop(one);
}

TEST_F(DaemonTest, ShowsOnItsPageWhatTheLeaderSeesAndSoDoesTheReplicaThatWaits) {
  server.Serve(kGangs);
  const auto cluster = ReportCluster(kTwoUnits);
  Running leader(*this, "one", true, true);
  ASSERT_TRUE(Until([&] { return Holder() == "one" && Assembled(4); }));
  Running other(*this, "two", true, true);
  for (Running* running : {&leader, &other}) {
    const std::size_t which = running == &leader ? 0 : 1;
    const auto view = [&](const std::string& query) {
      return running->daemon.AnswerPage(
          {.method = "GET", .path = "/fabric/view.json", .query = query, .host = "localhost"});
    };
    // The first view is made because somebody asks; time passes on this thread, so the asking is on another.
    auto first = std::async(std::launch::async, [&] { return view(""); });
    ASSERT_TRUE(Until([&] { return first.wait_for(0s) == std::future_status::ready; }));
    kube::Json document = kube::Json::parse(first.get().body);
    EXPECT_EQ(document["nodes"].size(), 4U);
    EXPECT_EQ(document["nodes"][which][2], 0) << "ok";
    topology::Node broken = cluster[which];
    broken.nics[3].ports[0].usable_gbps = 100;
    Report(broken);
    EXPECT_TRUE(Until([&] {
      const kube::Json news =
          kube::Json::parse(view("since=" + document["revision"].get<std::string>()).body);
      return news.contains("nodes") && news["nodes"].size() == 1 &&
             news["nodes"][0][0] == cluster[which].name && news["nodes"][0][2] == 1;
    }));
  }
  Stop(other);
  Stop(leader);
}

TEST_F(DaemonTest, ShowsTheFabricAlsoWhereItMayNotReadGangsAndSaysSo) {
  ReportCluster(kTwoUnits);
  server.Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.Line().find("gangs") == std::string::npos) return std::nullopt;
    return kube::HttpResponse{.status = 403,
                              .body = R"({"kind":"Status","code":403,"message":"gangs is forbidden"})"};
  });
  Running one(*this, "one", false, true);
  auto first = std::async(std::launch::async, [&] {
    return one.daemon.AnswerPage({.method = "GET", .path = "/fabric/view.json", .host = "localhost"});
  });
  ASSERT_TRUE(Until([&] { return first.wait_for(0s) == std::future_status::ready; }));
  const kube::Json document = kube::Json::parse(first.get().body);
  EXPECT_EQ(document["nodes"].size(), 4U);
  EXPECT_EQ(document["sources"][0], kube::Json({{"kind", "NodeTopology"}}));
  EXPECT_THAT(document["sources"][2]["error"].get<std::string>(), HasSubstr("gangs is forbidden"));
  Stop(one);
}

TEST_F(DaemonTest, ShowsNoNodeAsFreeBeforeItHasReadTheGangsAndHasAlsoThoseThatCannotBeRead) {
  ReportCluster(kTwoUnits);
  server.Put(kGangs, crds::ToJson(page::RunningGang({"node-00"})));
  Json odd = kube::NewObject(kGangs, {"team", "odd"});
  odd["spec"]["pods"] = "many";
  server.Put(kGangs, odd);
  std::atomic<bool> held = true;
  server.Intercept([&held](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    while (held && request.Line().find("gangs") != std::string::npos) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  });
  Running one(*this, "one", false, true);
  EXPECT_TRUE(Until([&] { return one.daemon.ready(); }));
  auto first = AskForView(one, "");
  Pass(3s);
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout) << "all nodes would seem free";
  held = false;
  EXPECT_TRUE(Until([&] { return first.wait_for(0s) == std::future_status::ready; }));
  const kube::Json document = ViewOf(one, "");
  ASSERT_TRUE(document.contains("gangs"));
  ASSERT_EQ(document["gangs"].size(), 2U);
  EXPECT_EQ(document["gangs"][0]["key"], "team/odd");
  EXPECT_EQ(document["gangs"][0]["state"], "degraded");
  EXPECT_THAT(document["gangs"][0]["message"].get<std::string>(), HasSubstr("Gang odd: "));
  EXPECT_EQ(document["gangs"][1]["state"], "running");
  Stop(one);
}

TEST_F(DaemonTest, NoRevisionOfItsPageCountsAfterARestartUnderTheSameIdentity) {
  ReportCluster(kTwoUnits);
  std::string known;
  for (const unsigned seed : {7U, 8U}) {
    Running one(*this, "one", false, true, seed);
    ASSERT_TRUE(Until([&] { return one.daemon.ready(); }));
    const kube::Json document = ViewOf(one, "wait=20&since=" + known);
    ASSERT_TRUE(document.contains("full"));
    EXPECT_EQ(document["full"], true);
    known = document["revision"].get<std::string>();
    Stop(one);
  }
}

TEST_F(DaemonTest, SaysOfAKindThatFailsAgainSinceWhenItHasDoneSoThisTime) {
  ReportCluster(kTwoUnits);
  Running one(*this, "one", false, true);
  ASSERT_TRUE(Until([&] { return one.daemon.ready(); }));
  ASSERT_TRUE(ViewOf(one, "").contains("sources"));
  // There is a view now, so that each question is answered at once. Nothing where all can be read.
  const auto since = [&] {
    const kube::Json document = AskForView(one, "").get();
    return kube::StringAt(document["sources"][2], {"since"});
  };
  const auto fail = [&] {
    server.Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.Line().find("gangs") == std::string::npos) return std::nullopt;
      return kube::HttpResponse{.status = 403, .body = R"({"kind":"Status","code":403})"};
    });
    server.CutStreams();
  };
  ASSERT_TRUE(Until([&] { return server.open_streams() == 7; }));
  fail();
  ASSERT_TRUE(Until([&] { return !since().empty(); }));
  const std::string before = since();
  // Nobody looks while it is well again.
  Pass(page::Page::kInterest + 10s);
  server.Intercept(nullptr);
  ASSERT_TRUE(Until([&] { return server.open_streams() == 7; }));
  fail();
  Pass(10s);
  EXPECT_TRUE(Until([&] { return since() > before; })) << since();
  Stop(one);
}

TEST_F(DaemonTest, AsksAFabricSwitchWhileItLeadsAndSaysWhatCameOfIt) {
  ReportCluster(kTwoUnits);
  crds::FabricSwitch leaf;
  leaf.name = "leaf-3";
  leaf.spec.address = "leaf-3.example:8080";
  leaf.spec.name = "leaf-3";
  server.Put(kFabricSwitches, crds::ToJson(leaf));
  Running one(*this, "one");  // the switch that is played answers, and has no port
  const auto reachable = [&] {
    const auto object = server.Find(kFabricSwitches, {"", "leaf-3"});
    const kube::Json* condition = object ? kube::Condition(*object, "Reachable") : nullptr;
    return condition == nullptr ? "" : kube::StringAt(*condition, {"reason"});
  };
  EXPECT_TRUE(Until([&] { return reachable() == "Unreadable"; })) << reachable();
  Stop(one);
}

}  // namespace
}  // namespace heddle::operators
