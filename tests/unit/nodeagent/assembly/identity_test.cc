#include "nodeagent/assembly/identity.h"

#include <gmock/gmock.h>

#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Identity, NodeNamesAreCheckedBeforeTheyReachTheServer) {
  EXPECT_EQ(WhyNotNodeName("gpu-17.rack-3"), "");
  for (const char* wrong : {"", "GPU-1", "-a", "a_b", "a/b", "a."})
    EXPECT_NE(WhyNotNodeName(wrong), "") << wrong;
  const test::TemporaryFolder folder;
  const base::DiskFileTree files(folder.path());
  const auto machine = OpenRecorded(files, folder.path(), "");
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error().message, HasSubstr("give --node NAME"));
}

TEST(Identity, NamesKeysOfMachineYamlThatMeanNothing) {
  const auto identity = ParseMachineYaml("node: gpu-1\nhostname: gpu-2\nuncabeld: mlx5_1\n");
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->node, "gpu-2");
  EXPECT_THAT(identity->strangers, ElementsAre("node", "uncabeld"));
  EXPECT_THAT(ParseMachineYaml("name: x\nhostname: a\nsite: s\nuncabled: m\nstorage: n\n")->strangers,
              IsEmpty());
}

TEST(Identity, SaysThemOfARecordedMachine) {
  test::MemoryFileTree files;
  test::Fill(test::ReadOf("plain-host"), files);
  files.Write("machine.yaml", "hostname: gpu-1\n");
  EXPECT_THAT(test::LookAt(files).problems, IsEmpty());
  files.Write("machine.yaml", "hostname: gpu-1\nnode: gpu-2\n");
  EXPECT_THAT(test::LookAt(files).problems, ElementsAre(HasSubstr("machine.yaml: node says nothing here")));
}

}  // namespace
}  // namespace heddle::nodeagent
