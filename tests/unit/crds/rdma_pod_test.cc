#include "crds/rdma_pod.h"

#include <gmock/gmock.h>

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kResources{"heddle.dev/rail0", "heddle.dev/gpu"};

Json Pod(const char* changes) {
  Json pod = Json::parse(R"({"metadata": {"name": "a"}, "spec": {"containers": [
      {"name": "side"},
      {"name": "w", "resources": {"limits": {"heddle.dev/gpu": "2"}},
       "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}]}})");
  pod.merge_patch(Json::parse(changes));
  return pod;
}

TEST(RdmaPod, NeedsAnInterfaceForRoce) {
  EXPECT_THAT(RdmaPodFaults(Pod("{}"), kResources, true), ElementsAre(HasSubstr("set hostNetwork: true")));
  EXPECT_THAT(RdmaPodFaults(Pod("{}"), kResources, false), IsEmpty()) << "InfiniBand and EFA need none";
  for (const char* way : {R"({"spec": {"hostNetwork": true}})",
                          R"({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "rail0"}}})",
                          R"({"metadata": {"annotations": {"v1.multus-cni.io/default-network": "ib"}}})",
                          R"({"spec": {"resourceClaims": [{"name": "nic"}]}})"}) {
    EXPECT_THAT(RdmaPodFaults(Pod(way), kResources, true), IsEmpty()) << way;
  }
  EXPECT_THAT(RdmaPodFaults(Pod(R"({"spec": {"hostNetwork": false}})"), kResources, true),
              testing::SizeIs(1));
  const char* channel = R"({"spec": {"resourceClaims": [{"name": "heddle-compute-domain"}]}})";
  EXPECT_THAT(RdmaPodFaults(Pod(channel), kResources, true), testing::SizeIs(1))
      << "an IMEX channel is no NIC";
}

TEST(RdmaPod, NeedsMemoryThatMayBePinned) {
  Json pod = Pod(R"({"spec": {"hostNetwork": true}})");
  pod["spec"]["containers"][1].erase("securityContext");
  EXPECT_THAT(RdmaPodFaults(pod, kResources, true),
              ElementsAre(HasSubstr("container w may not pin memory, which RDMA needs: add IPC_LOCK")));
  pod["spec"]["containers"][1]["securityContext"] = {{"privileged", true}};
  EXPECT_THAT(RdmaPodFaults(pod, kResources, true), IsEmpty());
}

TEST(RdmaPod, WhoAsksForNoneIsNotAsked) {
  Json pod = Pod("{}");
  pod["spec"]["containers"][1]["resources"]["limits"] = {{"heddle.dev/gpu", "0"}, {"cpu", "1"}};
  EXPECT_THAT(RdmaPodFaults(pod, kResources, true), IsEmpty());
}

TEST(RdmaPod, NonsenseIsNoPod) {
  for (const char* text : {"null", "[]", "7", R"({"spec": 1})", R"({"spec": {"containers": {}}})",
                           R"({"spec": {"containers": [1, {"resources": []}]}, "metadata": []})"})
    EXPECT_THAT(RdmaPodFaults(Json::parse(text), kResources, true), IsEmpty()) << text;
}

}  // namespace
}  // namespace heddle::crds
