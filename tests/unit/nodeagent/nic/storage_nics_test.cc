// NICs that whoever runs a node says are for storage: what they may write, and what comes of it.
#include "nodeagent/nic/storage_nics.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "nodeagent/discovery/machine.h"
#include "nodeagent/flags.h"
#include "nodeagent/health/conditions.h"
#include "recorded_machine.h"
#include "tests/support/memory_file_tree.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using topology::NicRole;

StorageNics Named(std::string_view text) {
  auto nics = StorageNics::Parse(text);
  EXPECT_TRUE(nics) << nics.error().message;
  return nics ? *std::move(nics) : StorageNics();
}

std::string WhyRefused(std::string_view text) {
  const auto nics = StorageNics::Parse(text);
  return nics ? std::string() : nics.error().message;
}

TEST(StorageNics, AreNamedByTheirDevices) {
  const StorageNics nics = Named("mlx5_2,mlx5_[67],ibp*s0");
  EXPECT_EQ(nics.Naming("mlx5_2"), "mlx5_2");
  EXPECT_EQ(nics.Naming("mlx5_7"), "mlx5_[67]");
  EXPECT_EQ(nics.Naming("ibp24s0"), "ibp*s0");
  EXPECT_EQ(nics.Naming("mlx5_20"), "") << "the whole name";
  EXPECT_EQ(nics.text(), "mlx5_2,mlx5_[67],ibp*s0");
  EXPECT_EQ(Named(""), StorageNics());
  EXPECT_EQ(StorageNics().Naming("mlx5_2"), "");
}

TEST(StorageNics, AreRefusedWithWhatIsWrongWithThem) {
  EXPECT_THAT(WhyRefused("mlx5_[2"), HasSubstr("\"mlx5_[2\" names no NICs for storage: a [ has no ]"));
  EXPECT_THAT(WhyRefused("mlx5_2:1"), HasSubstr("no :PORT stands here"));
  EXPECT_THAT(WhyRefused("mlx5_2,*"), HasSubstr("no rail would be left of any"));
  EXPECT_THAT(WhyRefused("mlx5_2,"), HasSubstr("behind its last comma"));
  EXPECT_THAT(WhyRefused("mlx5_2,,mlx5_3"), HasSubstr("it is empty"));
  EXPECT_THAT(WhyRefused("mlx5 2"),
              HasSubstr("write the names of RDMA devices, such as mlx5_2 or mlx5_[67]"));
}

TEST(StorageNics, TakeWhateverIsWrittenForAListOrRefuseIt) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::string text = test::Damage("mlx5_2,mlx5_[67],rocep*s0f1,[!1-3]x", random);
    if (const auto nics = StorageNics::Parse(text)) {
      EXPECT_EQ(nics->text(), text);
      (void)nics->Naming("mlx5_2");
    } else {
      EXPECT_THAT(nics.error().message, HasSubstr("names no NICs for storage"));
    }
  }
}

TEST(StorageNics, AreRefusedWhenTheAgentStartsWithTheFlagAndTheReason) {
  const auto parse = [](std::vector<std::string> words) -> std::string {
    CLI::App app;
    Flags flags;
    Define(app, flags);
    std::reverse(words.begin(), words.end());
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "taken: " + flags.storage;
  };
  EXPECT_EQ(parse({"--storage", "mlx5_2,mlx5_[67]"}), "taken: mlx5_2,mlx5_[67]");
  EXPECT_EQ(parse({"--storage=mlx5_2", "--storage=mlx5_3"}), "taken: mlx5_3") << "what comes later wins";
  EXPECT_THAT(parse({"--storage=mlx5_2:1"}),
              testing::AllOf(HasSubstr("--storage"), HasSubstr("no :PORT stands here")));
}

// The rails of an HGX H100 with one of its NICs kept for storage: the others stay what they are.
class StorageNicsOfAMachine : public testing::Test {
 protected:
  StorageNicsOfAMachine() { test::Fill(test::ReadOf("hgx-h100"), files_); }

  Observation Look(StorageNics named) const {
    auto machine = OpenRecorded(files_, folder_, "", {}, std::move(named));
    EXPECT_TRUE(machine) << machine.error().message;
    return machine ? machine->discovery->Look() : Observation();
  }
  static std::vector<std::string> Storage(const Observation& seen) {
    std::vector<std::string> names;
    for (const topology::Nic& nic : seen.node.nics) {
      if (nic.role == NicRole::kStorage) names.push_back(nic.name);
    }
    return names;
  }

  const std::string folder_ = test::RecordedMachine("hgx-h100").path();
  test::MemoryFileTree files_;
};

TEST_F(StorageNicsOfAMachine, AreNoRailsAndMoveNoOther) {
  ASSERT_EQ(Look({}).node.FindNic("mlx5_3")->rail, 3);
  EXPECT_EQ(Look({}).given_storage, "");
  const Observation seen = Look(Named("mlx5_3"));
  EXPECT_THAT(Storage(seen), ElementsAre("mlx5_3"));
  EXPECT_FALSE(seen.node.FindNic("mlx5_3")->rail.known());
  for (const int rail : {0, 1, 2, 4, 5, 6, 7})
    EXPECT_EQ(seen.node.FindNic("mlx5_" + std::to_string(rail))->rail, rail);
  EXPECT_THAT(topology::Check(seen.node), testing::IsEmpty());
}

TEST_F(StorageNicsOfAMachine, AreSaidWhereTheRailsAre) {
  const std::vector<crds::Condition> conditions = ConditionsOf(Look(Named("mlx5_[34]")));
  const crds::Condition* measured = crds::FindCondition(conditions, kRailsMeasured);
  ASSERT_NE(measured, nullptr);
  EXPECT_EQ(measured->status, crds::ConditionStatus::kTrue);
  EXPECT_THAT(measured->message, HasSubstr("for storage, as --storage says: mlx5_3, mlx5_4"));
}

TEST_F(StorageNicsOfAMachine, AreThoseOfTheRecordingUnlessOthersAreGiven) {
  Identity identity{"node-00", "a machine", ""};
  identity.storage = "mlx5_3";
  const auto again = ParseMachineYaml(FormatMachineYaml(identity));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, identity);
  files_.Write("machine.yaml", FormatMachineYaml(identity));
  EXPECT_THAT(Storage(Look({})), ElementsAre("mlx5_3"));
  EXPECT_THAT(Storage(Look(Named("mlx5_4"))), ElementsAre("mlx5_4"));
  const auto kept = OpenRecorded(files_, folder_, "");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->identity.storage, "mlx5_3") << "so that it is kept when it is recorded again";
  identity.storage = "mlx5_[";
  files_.Write("machine.yaml", FormatMachineYaml(identity));
  const auto wrong = OpenRecorded(files_, folder_, "");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("/machine.yaml: storage: \"mlx5_[\""));
}

}  // namespace
}  // namespace heddle::nodeagent
