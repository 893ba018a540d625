// Leadership that goes and comes back while the gang controller is busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>

#include "extender/gang_controller.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using test::Cluster;
using test::RunningExtender;
using ::testing::IsEmpty;

struct Moment {
  const char* name;
  const char* method;
  const char* plural;
};
class LeadingAnew : public testing::TestWithParam<Moment> {};

// Somebody else may have led between, so that nothing may be written by what was read before.
TEST_P(LeadingAnew, ReadsAllBeforeTheNextWrite) {
  Cluster cluster("su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400");
  std::atomic<bool> flipped = false;
  RunningExtender extender(cluster);
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    const bool now = request.method == GetParam().method && request.plural == GetParam().plural;
    if (now && !flipped.exchange(true)) {
      cluster.server.ClearRequests();
      extender.controller().SetLeading(false);
      extender.controller().SetLeading(true);
    }
    return std::nullopt;
  });
  cluster.Submit({});
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("train") == "Running 8/8";
  })) << cluster.Summary("train");
  cluster.server.Intercept(nullptr);
  ASSERT_TRUE(flipped);
  bool read = false;
  for (const test::ApiRequest& request : cluster.server.requests()) {
    if (request.write() && request.plural != "events") {
      EXPECT_TRUE(read) << request.Line();
      break;
    }
    read = read || (request.plural == "nodetopologies" && !request.write() && !request.watch());
  }
  EXPECT_TRUE(read);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Table, LeadingAnew,
                         testing::Values(Moment{"WhileAGangIsMade", "POST", "gangs"},
                                         Moment{"WhileAPlanIsWritten", "PUT", "gangs"},
                                         Moment{"WhilePodsAreLetGo", "PATCH", "pods"}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace heddle::extender
