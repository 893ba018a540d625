#include "nodeagent/discovery/steady_files.h"

#include <gmock/gmock.h>

#include "faulty_files.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kGuid = "sys/class/infiniband/mlx5_0/node_guid";
constexpr const char* kState = "sys/class/infiniband/mlx5_0/ports/1/state";

class SteadyFiles : public testing::Test {
 protected:
  SteadyFiles() {
    memory_.Write(kGuid, "506b\n");
    memory_.Write(kState, "4: ACTIVE\n");
    memory_.Write("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "7\n");
    memory_.Link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0");
    steady_.Begin();
  }
  void ReadAll() {
    (void)steady_.Read(kGuid);
    (void)steady_.Read(kState);
    (void)steady_.Read("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence");
    (void)steady_.List("sys/class/infiniband");
    (void)steady_.ReadLink("sys/class/infiniband/mlx5_0/device");
  }
  void NextLookFails(Code code = Code::kUnavailable) {
    ReadAll();
    steady_.Begin();
    faulty_.Fail("sys/class/infiniband", code);
  }

  test::MemoryFileTree memory_;
  test::FaultyFileTree faulty_{memory_};
  SteadyFileTree steady_{faulty_};
};

TEST_F(SteadyFiles, KeepWhatADeviceIsThroughAFailedRead) {
  NextLookFails();
  EXPECT_EQ(steady_.Read(kGuid), "506b\n");
  EXPECT_THAT(*steady_.List("sys/class/infiniband"), ElementsAre("mlx5_0"));
  EXPECT_EQ(steady_.ReadLink("sys/class/infiniband/mlx5_0/device"), "../../../devices/pci0");
  EXPECT_THAT(steady_.problems(), testing::Each(HasSubstr("Input/output error (taken as it was before)")));
  EXPECT_EQ(steady_.problems().size(), 3U);
  faulty_.Heal();
  memory_.Write(kGuid, "507c\n");
  steady_.Begin();
  EXPECT_EQ(steady_.Read(kGuid), "507c\n");
  EXPECT_THAT(steady_.problems(), IsEmpty());
}

TEST_F(SteadyFiles, NeverTakeHowADeviceDoesFromBefore) {
  NextLookFails();
  EXPECT_FALSE(steady_.Read(kState));
  EXPECT_FALSE(steady_.Read("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence"));
  EXPECT_THAT(steady_.problems(), testing::Contains(std::string(kState) + ": Input/output error"));
}

TEST_F(SteadyFiles, TakeTheKernelsWordThatSomethingIsGone) {
  ReadAll();
  steady_.Begin();
  memory_.Remove("sys/class/infiniband/mlx5_0");
  EXPECT_EQ(steady_.Read(kGuid).error().code, Code::kNotFound);
  EXPECT_THAT(*steady_.List("sys/class/infiniband"), IsEmpty());
  faulty_.Fail(kGuid);
  EXPECT_FALSE(steady_.Read(kGuid)) << "it was gone in between";
  EXPECT_THAT(steady_.problems(), testing::SizeIs(1));
}

TEST_F(SteadyFiles, CallNoValueNowAnAnswer) {
  NextLookFails(Code::kInvalid);
  EXPECT_EQ(steady_.Read(kGuid).error().code, Code::kInvalid);
  EXPECT_THAT(steady_.problems(), IsEmpty());
}

TEST_F(SteadyFiles, NameAFileThatNobodyMayReadButNotTheVpd) {
  faulty_.Fail("sys", Code::kForbidden, "Permission denied");
  EXPECT_FALSE(steady_.Read(kGuid));
  EXPECT_FALSE(steady_.Read("sys/class/infiniband/mlx5_0/device/vpd"));
  EXPECT_THAT(steady_.problems(), ElementsAre(std::string(kGuid) + ": Permission denied"));
}

TEST_F(SteadyFiles, ForgetWhatALookDidNotAskFor) {
  ReadAll();
  steady_.Begin();
  NextLookFails();
  steady_.Begin();
  steady_.Begin();  // a look that asked for nothing
  EXPECT_FALSE(steady_.Read(kGuid));
}

TEST_F(SteadyFiles, SayOnceWhatFailsOftenAndCountBeyondTwenty) {
  faulty_.Fail("sys");
  for (int i = 0; i < 3; ++i) (void)steady_.Read(kGuid);
  for (int i = 0; i < 25; ++i) (void)steady_.Read("sys/" + std::to_string(i));
  EXPECT_THAT(steady_.problems(), testing::SizeIs(21));
  EXPECT_EQ(steady_.problems().back(), "6 more files cannot be read");
}

}  // namespace
}  // namespace heddle::nodeagent
