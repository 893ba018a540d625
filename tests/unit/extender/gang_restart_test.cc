// A gang that asks to be restarted whole, and whose owner cannot be stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "crds/keys.h"
#include "kube/object.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::HasSubstr;
namespace keys = crds::keys;

TEST(GangRestart, IsTriedAgainTenMinutesAfterTheOwnerRefusedToBeSuspended) {
  Cluster cluster("su:2 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  JobWords words{.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"};
  words.annotations = {{keys::kRequire, "tp=nvlink,dp=su"}, {keys::kOnDegraded, "restart"}};
  const std::string job_uid = cluster.Submit(words);
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("low").starts_with("Running");
  })) << cluster.Summary("low");
  cluster.server.Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!request.write() || request.plural != "jobs") return std::nullopt;
    return test::StatusResponse(422, "", "a webhook says no");
  });
  const std::string node = kube::StringAt(cluster.Pod("low-1"), {"spec", "nodeName"});
  cluster.server.Edit(kube::kNodes, {"", node}, [](Json& object) { object["spec"]["unschedulable"] = true; });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->Unusable(node) == "Cordoned"; }));
  cluster.server.Remove(kube::kPods, {"train", "low-1"});
  cluster.PutPod(words, job_uid, 1);
  const auto message = [&cluster]() -> std::string {
    const auto gang = cluster.GangOf("low");
    return gang ? gang->status.message : "";
  };
  const std::string refused = "restart does not help: Job train/low cannot be suspended";
  ASSERT_TRUE(
      extender.Until([&] { return message().find(refused) != std::string::npos; }, std::chrono::minutes(5)))
      << message();
  const std::string told = message();
  extender.Pass(std::chrono::minutes(3));
  EXPECT_EQ(message(), told) << "and it is left alone";
  EXPECT_THAT(told, HasSubstr("a webhook says no"));
  cluster.server.Intercept(nullptr);
  extender.Pass(std::chrono::minutes(7));
  const auto restarted = [&cluster] {
    const auto job = cluster.server.Find(kube::kJobs, {"train", "low"});
    return job && kube::Annotation(*job, keys::kRestartedAt).has_value();
  };
  EXPECT_TRUE(extender.Until(restarted, std::chrono::minutes(2))) << message();
}

}  // namespace
}  // namespace heddle::extender
