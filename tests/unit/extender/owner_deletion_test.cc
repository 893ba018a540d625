// An owner that somebody deletes right after one of the extender's writes, whichever it is: the Gang ends, and the GPUs
// are there for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::IsEmpty;

constexpr const char* kFourNodes = "su:1 node:4 gpu:8 nic:8 rail:8";
const JobWords kThree{.pods = 3, .parallelism = "tp=8,dp=3"};
const JobWords kAll{.name = "next", .pods = 4, .parallelism = "tp=8,dp=4"};

// Does something as soon as so many writes have been carried out, before the writer has the answer.
class WatchfulTransport final : public kube::HttpTransport {
 public:
  WatchfulTransport(kube::HttpTransport& inner, int writes, std::function<void()> then)
      : inner_(inner), left_(writes), then_(std::move(then)) {}
  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token stop) override {
    auto response = inner_.Do(request, std::move(stop));
    const bool write = request.method != "GET" && request.target.find("/events") == std::string::npos;
    if (write && left_.fetch_sub(1) == 1) {
      then_();
      done_ = true;
    }
    return response;
  }
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override {
    return inner_.Stream(request, on_chunk, std::move(stop));
  }
  bool done() const { return done_; }

 private:
  kube::HttpTransport& inner_;
  std::atomic<int> left_;
  std::function<void()> then_;
  std::atomic<bool> done_{false};
};

std::mutex stage;  // on which one thread deletes and another binds

enum class How : std::uint8_t { kBackground, kForeground };

// The Job goes at once, or when its pods are gone; pods on no node go at once, the others when their kubelet says so.
void DeleteJob(Cluster& cluster, How how) {
  const std::lock_guard lock(stage);
  const kube::ObjectKey job{"train", "train"};
  if (how == How::kBackground) {
    cluster.server.Remove(kube::kJobs, job);
  } else {
    cluster.server.Edit(kube::kJobs, job, [](Json& edited) {
      edited["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      edited["metadata"]["finalizers"] = Json::array({"foregroundDeletion"});
    });
  }
  for (const Json& pod : cluster.Pods("train")) {
    if (kube::StringAt(pod, {"spec", "nodeName"}).empty()) {
      cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
      continue;
    }
    cluster.server.Edit(kube::kPods, kube::KeyOf(pod), [](Json& edited) {
      edited["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    });
  }
}

void StopTerminating(Cluster& cluster) {
  for (const Json& pod : cluster.Pods("train")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
  if (cluster.server.Find(kube::kJobs, {"train", "train"})) {
    cluster.server.Remove(kube::kJobs, {"train", "train"});
  }
}

bool Runs(Cluster& cluster, const std::string& job) {
  const std::lock_guard lock(stage);
  cluster.BindReleased();
  const auto pods = cluster.Pods(job);
  const bool bound = std::all_of(pods.begin(), pods.end(), [](const Json& pod) {
    return !kube::StringAt(pod, {"spec", "nodeName"}).empty();
  });
  return bound && cluster.Summary(job).starts_with("Running");
}

// Whether nothing of the deleted gang is in the way of one that needs every GPU there is.
void ExpectEndedAndFree(Cluster& cluster, RunningExtender& extender, const std::string& where) {
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = cluster.GangOf("train");
    return !gang || crds::IsTrue(gang->status.conditions, crds::kEnded);
  })) << where
      << ": " << cluster.Summary("train");
  StopTerminating(cluster);
  cluster.Submit(kAll);
  ASSERT_TRUE(extender.Until([&] { return Runs(cluster, "next"); }))
      << where << ": " << cluster.Summary("next");
  EXPECT_THAT(cluster.Violations(), IsEmpty()) << where;
}

class OwnerDeletion : public testing::TestWithParam<How> {};

TEST_P(OwnerDeletion, SurvivesItsOwnersDeletionAfterEverySingleWrite) {
  int deletions = 0;
  for (int writes = 1; writes < 60; ++writes) {
    Cluster cluster(kFourNodes);
    WatchfulTransport transport(cluster.server, writes, [&] { DeleteJob(cluster, GetParam()); });
    RunningExtender extender(cluster, transport);
    cluster.Submit(kThree);
    ASSERT_TRUE(extender.Until([&] { return transport.done() || Runs(cluster, "train"); })) << writes;
    if (!transport.done()) break;  // that was the last
    ++deletions;
    ExpectEndedAndFree(cluster, extender, "after write " + std::to_string(writes));
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(deletions, 5) << "a Gang, its plan, three pods";
}

// The same in the middle of a repair: a rank's node is lost, and its next pod waits for another.
TEST_P(OwnerDeletion, SurvivesItsOwnersDeletionAfterEverySingleWriteOfARepair) {
  int deletions = 0;
  for (int writes = 1; writes < 60; ++writes) {
    Cluster cluster(kFourNodes);
    std::string uid;
    {
      RunningExtender extender(cluster);
      uid = cluster.Submit(kThree);
      ASSERT_TRUE(extender.Until([&] { return Runs(cluster, "train"); }));
    }
    WatchfulTransport transport(cluster.server, writes, [&] { DeleteJob(cluster, GetParam()); });
    RunningExtender extender(cluster, transport);
    const std::string lost = ReadPod(cluster.Pod("train-2")).plan->node;
    cluster.server.Edit(kube::kNodes, {"", lost},
                        [](Json& node) { node["status"]["conditions"][0]["status"] = "Unknown"; });
    cluster.server.Remove(kube::kPods, {"train", "train-2"});
    cluster.PutPod(kThree, uid, 2, "train-2-again");
    ASSERT_TRUE(extender.Until([&] { return transport.done() || Runs(cluster, "train"); })) << writes;
    if (!transport.done()) break;
    ++deletions;
    cluster.server.Edit(kube::kNodes, {"", lost},
                        [](Json& node) { node["status"]["conditions"][0]["status"] = "True"; });
    ExpectEndedAndFree(cluster, extender, "after write " + std::to_string(writes) + " of the repair");
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(deletions, 2) << "the loss with another slot, and its pod";
}

INSTANTIATE_TEST_SUITE_P(Ways, OwnerDeletion, testing::Values(How::kBackground, How::kForeground),
                         [](const auto& one) {
                           return one.param == How::kBackground ? "Background" : "Foreground";
                         });

}  // namespace
}  // namespace heddle::extender
