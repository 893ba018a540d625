// Runs against a real API server: KUBECONFIG names it. tests/cluster/test_kube_client.py starts both, and gives
//   HEDDLE_RESTART_COMMAND  a shell command that restarts the API server and returns once it is ready
//   HEDDLE_COMPACT_COMMAND  a shell command that compacts etcd to its newest revision
// Tests that need a command are skipped without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/file_tree.h"
#include "kube/api_transport.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/events.h"
#include "kube/lease.h"
#include "kube/reflector.h"

extern char** environ;

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kNs[] = "default";

class KubeClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto config = LoadConfig(SourcesFromEnvironment(environ), root_, clock_);
    ASSERT_TRUE(config) << base::ToString(config.error());
    config_ = *config;
    transport_ = MakeApiTransport(config_, clock_);
    client_ =
        std::make_unique<Client>(*transport_, clock_, ClientOptions{.field_manager = "kube-client-test"});
    Clean();
  }
  void TearDown() override {
    if (client_ != nullptr) Clean();
  }
  void Clean() {
    for (const Resource* resource : {&kConfigMaps, &kLeases}) {
      auto list = client_->List(*resource, {.ns = kNs, .label_selector = "heddle-test=yes"}, {});
      ASSERT_TRUE(list) << base::ToString(list.error());
      for (const Json& item : list->items) (void)client_->Delete(*resource, KeyOf(item), {}, {});
    }
  }
  static Json Map(const std::string& name, const std::string& value = "1") {
    Json map = NewObject(kConfigMaps, {kNs, name});
    map["metadata"]["labels"]["heddle-test"] = "yes";
    map["data"]["v"] = value;
    return map;
  }
  Json Must(base::Result<Json> result) {
    EXPECT_TRUE(result) << base::ToString(result.error());
    return result.value_or(Json::object());
  }
  // Bounded wait on a real server; there is no virtual time here.
  static bool Eventually(const std::function<bool()>& condition, seconds limit = seconds(30)) {
    base::SystemClock clock;
    const auto deadline = clock.Now() + limit;
    while (!condition()) {
      if (clock.Now() > deadline) return false;
      clock.SleepFor(milliseconds(10), {});
    }
    return true;
  }
  // Runs the command of that variable, or says that there is none.
  static bool RunCommand(const char* variable) {
    const char* command = std::getenv(variable);
    return command != nullptr &&
           std::system(command) == 0;  // NOLINT(bugprone-command-processor): the lead's own
  }

  base::SystemClock clock_;
  base::DiskFileTree root_{"/"};
  ClientConfig config_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<Client> client_;
};

TEST_F(KubeClientTest, CreatesReadsChangesAndDeletes) {
  Json map = Must(client_->Create(kConfigMaps, Map("crud"), {}));
  EXPECT_FALSE(Uid(map).empty());
  EXPECT_EQ(client_->Create(kConfigMaps, Map("crud"), {}).error().code, Code::kAlreadyExists);
  const Json stale = map;
  map["data"]["v"] = "2";
  map = Must(client_->Update(kConfigMaps, map, {}));
  const auto conflict = client_->Update(kConfigMaps, stale, {});
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, Code::kConflict);
  EXPECT_THAT(conflict.error().message, HasSubstr("update configmaps default/crud: "));
  EXPECT_EQ(Must(client_->Get(kConfigMaps, {kNs, "crud"}, {}))["data"]["v"], "2");
  EXPECT_EQ(client_->Delete(kConfigMaps, {kNs, "crud"}, {.uid = "other"}, {}).error().code, Code::kConflict);
  EXPECT_EQ(client_->Delete(kConfigMaps, {kNs, "crud"}, {.resource_version = ResourceVersion(stale)}, {})
                .error()
                .code,
            Code::kConflict);
  EXPECT_TRUE(client_->Delete(kConfigMaps, {kNs, "crud"}, {.uid = Uid(map)}, {}));
  EXPECT_EQ(client_->Get(kConfigMaps, {kNs, "crud"}, {}).error().code, Code::kNotFound);
}

TEST_F(KubeClientTest, PatchesInEveryWay) {
  Must(client_->Create(kConfigMaps, Map("patch"), {}));
  const ObjectKey key{kNs, "patch"};
  EXPECT_EQ(Must(client_->Patch(kConfigMaps, key, PatchType::kMerge, {{"data", {{"m", "1"}}}}, {},
                                {}))["data"]["m"],
            "1");
  EXPECT_EQ(Must(client_->Patch(kConfigMaps, key, PatchType::kStrategic, {{"data", {{"s", "1"}}}}, {},
                                {}))["data"]["s"],
            "1");
  const Json good = Json::parse(
      R"([{"op":"test","path":"/data/v","value":"1"},{"op":"replace","path":"/data/v","value":"2"}])");
  EXPECT_EQ(Must(client_->Patch(kConfigMaps, key, PatchType::kJson, good, {}, {}))["data"]["v"], "2");
  EXPECT_EQ(client_->Patch(kConfigMaps, key, PatchType::kJson, good, {}, {}).error().code, Code::kInvalid);
  Json lease = NewObject(kLeases, {kNs, "patch"});
  lease["metadata"]["labels"]["heddle-test"] = "yes";
  Must(client_->Create(kLeases, lease, {}));
  EXPECT_EQ(Must(client_->Patch(kLeases, {kNs, "patch"}, PatchType::kMerge,
                                {{"spec", {{"holderIdentity", "x"}}}}, {}, {}))["spec"]["holderIdentity"],
            "x");
}

TEST_F(KubeClientTest, AppliesAndTellsConflicts) {
  Must(client_->Apply(kConfigMaps, Map("apply", "1"), {.field_manager = "one"}, {}));
  const auto conflict = client_->Apply(kConfigMaps, Map("apply", "2"), {.field_manager = "two"}, {});
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, Code::kConflict);
  EXPECT_THAT(conflict.error().message, HasSubstr(".data.v"));
  EXPECT_EQ(Must(client_->Apply(kConfigMaps, Map("apply", "2"), {.field_manager = "two", .force = true},
                                {}))["data"]["v"],
            "2");
}

TEST_F(KubeClientTest, ReadsAllPages) {
  for (int i = 0; i < 12; ++i) Must(client_->Create(kConfigMaps, Map("page-" + std::to_string(i)), {}));
  const auto all =
      client_->ListAll(kConfigMaps, {.ns = kNs, .label_selector = "heddle-test=yes", .limit = 5}, {});
  ASSERT_TRUE(all) << base::ToString(all.error());
  EXPECT_EQ(all->items.size(), 12u);
  for (const Json& item : all->items) EXPECT_EQ(StringAt(item, {"kind"}), "ConfigMap");
}

TEST_F(KubeClientTest, SaysWhoMayNotDoWhat) {
  ClientConfig stranger = config_;
  stranger.authenticator = nullptr;
  const auto transport = MakeApiTransport(stranger, clock_);
  Client client(*transport, clock_);
  const auto refused = client.List(kNodes, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().code == Code::kForbidden || refused.error().code == Code::kUnauthorized);
  EXPECT_THAT(refused.error().message, HasSubstr("list nodes: "));

  class WrongToken final : public Authenticator {
    base::Result<std::vector<HttpHeader>> Headers() override {
      return std::vector<HttpHeader>{{"Authorization", "Bearer s3cret-nonsense"}};
    }
    base::Result<ClientCertificate> Certificate() override { return ClientCertificate{}; }
    void Rejected() override {}
  };
  stranger.authenticator = std::make_shared<WrongToken>();
  const auto wrong_transport = MakeApiTransport(stranger, clock_);
  const auto unknown = Client(*wrong_transport, clock_).List(kNodes, {}, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUnauthorized);
  EXPECT_THAT(unknown.error().message, testing::Not(HasSubstr("s3cret")));
}

TEST_F(KubeClientTest, WatchesOnFromABookmarkAcrossAStreamsEnd) {
  Must(client_->Create(kConfigMaps, Map("watch"), {}));
  // The first bookmark ends the initial events.
  std::string version;
  WatchOptions options{.ns = kNs, .label_selector = "heddle-test=yes", .send_initial_events = true};
  const auto first = client_->Watch(kConfigMaps, options,
                                    [&](WatchEvent&& event) {
                                      if (event.type == EventType::kBookmark)
                                        version = ResourceVersion(event.object);
                                      return version.empty();
                                    },
                                    {});
  ASSERT_TRUE(first) << base::ToString(first.error());
  Must(client_->Patch(kConfigMaps, {kNs, "watch"}, PatchType::kMerge, {{"data", {{"v", "2"}}}}, {}, {}));
  std::vector<std::string> values;
  options.send_initial_events = false;
  options.resource_version = version;
  options.timeout = seconds(2);
  const auto ended = client_->Watch(kConfigMaps, options,
                                    [&](WatchEvent&& event) {
                                      if (event.type != EventType::kBookmark)
                                        values.push_back(StringAt(event.object, {"data", "v"}));
                                      return true;
                                    },
                                    {});
  EXPECT_TRUE(ended) << base::ToString(ended.error()) << ": the server's own end is no error";
  EXPECT_THAT(values, testing::ElementsAre("2"));
}

class ReflectorAgainstServerTest : public KubeClientTest {
 protected:
  void Start() {
    ReflectorOptions options{.ns = kNs, .label_selector = "heddle-test=yes"};
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_ += std::string(line) + "\n";
    };
    reflector_ =
        std::make_unique<Reflector>(*client_, clock_, base::Random(1), kConfigMaps, std::move(options));
    runner_ = std::jthread([this](std::stop_token stop) { reflector_->Run(stop); });
    ASSERT_TRUE(reflector_->WaitForSync({}, seconds(20)));
  }
  void TearDown() override {
    if (runner_.joinable()) {
      runner_.request_stop();
      runner_.join();
    }
    KubeClientTest::TearDown();
  }
  std::string Seen(const std::string& name) {
    const ObjectPtr object = reflector_->store().Get({kNs, name});
    return object == nullptr ? "" : StringAt(*object, {"data", "v"});
  }
  std::string Logged() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::unique_ptr<Reflector> reflector_;
  std::mutex mutex_;
  std::string log_;
  std::jthread runner_;
};

TEST_F(ReflectorAgainstServerTest, FollowsByWatchList) {
  Must(client_->Create(kConfigMaps, Map("r-1"), {}));
  Start();
  EXPECT_EQ(Seen("r-1"), "1");
  EXPECT_THAT(Logged(), testing::Not(HasSubstr("no WatchList")));
  Must(client_->Create(kConfigMaps, Map("r-2"), {}));
  Must(client_->Patch(kConfigMaps, {kNs, "r-1"}, PatchType::kMerge, {{"data", {{"v", "2"}}}}, {}, {}));
  EXPECT_TRUE(Eventually([&] { return Seen("r-1") == "2" && Seen("r-2") == "1"; }));
  ASSERT_TRUE(client_->Delete(kConfigMaps, {kNs, "r-1"}, {}, {}));
  EXPECT_TRUE(Eventually([&] { return reflector_->store().Get({kNs, "r-1"}) == nullptr; }));
}

TEST_F(ReflectorAgainstServerTest, SurvivesARestartOfTheServer) {
  Start();
  if (!RunCommand("HEDDLE_RESTART_COMMAND")) GTEST_SKIP() << "HEDDLE_RESTART_COMMAND is not set, or failed";
  ASSERT_TRUE(
      Eventually([&] { return client_->Create(kConfigMaps, Map("after"), {}).has_value(); }, seconds(60)));
  EXPECT_TRUE(Eventually([&] { return Seen("after") == "1"; }, seconds(90))) << Logged();
  EXPECT_TRUE(reflector_->healthy());
}

TEST_F(ReflectorAgainstServerTest, ListsAnewAfterCompaction) {
  Must(client_->Create(kConfigMaps, Map("old"), {}));
  Start();
  const std::string version = reflector_->resource_version();
  runner_.request_stop();
  runner_.join();
  for (int i = 0; i < 20; ++i) {
    Must(client_->Patch(kConfigMaps, {kNs, "old"}, PatchType::kMerge, {{"data", {{"v", std::to_string(i)}}}},
                        {}, {}));
  }
  if (!RunCommand("HEDDLE_COMPACT_COMMAND")) GTEST_SKIP() << "HEDDLE_COMPACT_COMMAND is not set, or failed";
  // The watch cache may still hold the old events, unless the server was restarted too.
  (void)RunCommand("HEDDLE_RESTART_COMMAND");
  const auto expired = Eventually([&] {
    const auto ended =
        client_->Watch(kConfigMaps, {.ns = kNs, .resource_version = version, .timeout = seconds(1)},
                       [](WatchEvent&&) { return true; }, {});
    return !ended && ended.error().code == Code::kExpired;
  });
  EXPECT_TRUE(expired);
  runner_ = std::jthread([this](std::stop_token stop) { reflector_->Run(stop); });
  EXPECT_TRUE(Eventually([&] { return Seen("old") == "19"; })) << Logged();
}

TEST_F(KubeClientTest, LeadsAndReleases) {
  const ObjectKey key{kNs, "heddle-lead-test"};
  (void)client_->Delete(kLeases, key, {}, {});
  std::atomic<bool> leads = false;
  LeaseElector elector(*client_, clock_, base::Random(1), {.lease = key, .identity = "me"},
                       {.started = [&] { leads = true; }});
  std::jthread runner([&](std::stop_token stop) { EXPECT_TRUE(elector.Run(stop)); });
  ASSERT_TRUE(Eventually([&] { return leads.load(); }));
  LeaseObserver observer(*client_, clock_, base::Random(2), {.lease = key});
  ASSERT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(observer.Holder(), "me");
  // Past the first renewal.
  ASSERT_TRUE(Eventually([&] {
    const auto lease = client_->Get(kLeases, key, {});
    return lease && StringAt(*lease, {"spec", "renewTime"}) != StringAt(*lease, {"spec", "acquireTime"});
  }));
  runner.request_stop();
  runner.join();
  ASSERT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(observer.Holder(), std::nullopt);
  (void)client_->Delete(kLeases, key, {}, {});
}

TEST_F(KubeClientTest, RecordsEvents) {
  const Json map = Must(client_->Create(kConfigMaps, Map("event"), {}));
  EventRecorder recorder(*client_, clock_,
                         base::Random(std::uint64_t(clock_.WallNow().time_since_epoch().count())),
                         {.component = "heddle-test", .instance = "here"});
  for (int i = 0; i < 2; ++i) recorder.Record(ReferenceTo(map), Severity::kNormal, "Tested", "it works");
  recorder.Flush({});
  EXPECT_EQ(recorder.dropped(), 0u);
  const auto events =
      client_->List(kEvents, {.ns = kNs, .field_selector = "involvedObject.uid=" + Uid(map)}, {});
  ASSERT_TRUE(events);
  ASSERT_EQ(events->items.size(), 1u);
  EXPECT_EQ(IntAt(events->items[0], {"count"}), 2);
}

}  // namespace
}  // namespace heddle::kube
