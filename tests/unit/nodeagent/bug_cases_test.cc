// Mistakes that other projects made in public, as they would show in what this agent publishes. Each test is named
// after what went wrong there. Those about lossless settings, which have beds of their own, are tested elsewhere:
//    8  lldpad rewrites PFC                 qos/loop_test.cc, ReportsDriftWithinAMinuteAndKeepsItsTime; tests/lab/test_qos.py
//   11  an MTU above the wanted one         qos/decide_test.cc, AnMtuAboveTheWantedOneIsDriftLikeOneBelow
//   13  two policies select one NIC         operator/lossless_rollout_test.cc, AppliesNeitherOfTwoPoliciesOnOnePort…
//   14  PFC is right already: no SET        qos/loop_test.cc, WritesNothingToAPortThatIsAsWanted
//   15  two defaults that contradict        lossless/lint_test.cc, RefusesTheTwoDefaultsThatContradictEachOther
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "faulty_files.h"
#include "nodeagent/publish/publisher.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/recording/recording.h"
#include "nvml_bed.h"
#include "recorded_machine.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;
using kube::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using topology::LinkState;
using topology::Missing;

// A machine of its own, and the object that its agent publishes into.
class BugCase : public testing::Test {
 protected:
  BugCase() {
    server_.Serve(NodeTopologies());
    server_.Put(NodeTopologies(), kube::NewObject(NodeTopologies(), {"", "node-00"}));
  }
  // What a look reads of one of that shape, without the thousands of files of its processors.
  void Machine(const std::string& shape) {
    const test::RecordedMachine machine(shape);
    const base::DiskFileTree files(machine.path());
    const RecordingFileTree recording(files);
    RecordedGpus gpus(recording);
    (void)Discovery(recording, gpus, RecordedLeaves(recording), {}, {}).Look();
    ASSERT_TRUE(WriteRecording(recording, {}, folder_.path()));
    StartAgent();
  }
  // As after a reboot or an update: nothing is remembered but what the API server has.
  void StartAgent() {
    watcher_ = {};
    publisher_.reset();
    discovery_ = std::make_unique<Discovery>(files_, gpus_, RecordedLeaves(files_),
                                             Identity{"node-00", "", ""}, Locality{});
    PublisherOptions options;
    options.node = "node-00";
    options.jitter = std::chrono::seconds(0);
    publisher_ = std::make_unique<Publisher>(client_, clock_, base::Random(1), std::move(options));
    watcher_ = std::jthread([this](std::stop_token stop) { publisher_->Watch(std::move(stop)); });
  }
  // One look, and what the API server has of it afterwards.
  Json Publish() {
    publisher_->Offer(discovery_->Look());
    for (int round = 0; round < 3000 && !publisher_->published(); ++round) {
      if (publisher_->RunOnce({})) continue;
      server_.WaitUntil([this] { return publisher_->published(); }, std::chrono::milliseconds(2));
      clock_.Advance(std::chrono::seconds(1));
    }
    EXPECT_TRUE(publisher_->published());
    return server_.Find(NodeTopologies(), {"", "node-00"}).value_or(Json::object())["status"];
  }
  static Json Nic(const Json& status, const std::string& name) {
    for (const Json& nic : status.value("nics", Json::array())) {
      if (nic.value("name", "") == name) return nic;
    }
    return {};
  }
  // "False LinkDown mlx5_3 is down", or empty where there is no such condition.
  static std::string Condition(const Json& status, const std::string& type) {
    for (const Json& condition : status.value("conditions", Json::array())) {
      if (condition.value("type", "") == type) {
        return condition.value("status", "") + " " + condition.value("reason", "") + " " +
               condition.value("message", "");
      }
    }
    return {};
  }
  // Makes the compute cards dual-port cards for RoCE: mlx5_10 to mlx5_17 are the second functions, without a cable.
  void GiveEachCardASecondFunction() const {
    for (int i = 0; i < 8; ++i) {
      const std::string first = fmt::format("sys/class/infiniband/mlx5_{}", i);
      const std::string second = fmt::format("sys/class/infiniband/mlx5_1{}", i);
      folder_.Write(first + "/ports/1/link_layer", "Ethernet\n");
      fs::copy(At(first), At(second), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      folder_.Write(second + "/node_guid", fmt::format("506b:4b03:00c3:b40{}\n", i));
      folder_.Write(second + "/ports/1/state", "1: DOWN\n");
      folder_.Write(second + "/ports/1/phys_state", "3: Disabled\n");
      const fs::path function = fs::canonical(At(first + "/device"));
      const std::string address = function.filename(), other = address.substr(0, address.size() - 1) + "1";
      fs::copy(function, function.parent_path() / other,
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      for (const std::string& link : {second + "/device", "sys/bus/pci/devices/" + other}) {
        const std::string of =
            link.ends_with("device") ? first + "/device" : "sys/bus/pci/devices/" + address;
        const fs::path target = fs::read_symlink(At(of)).parent_path() / other;
        fs::remove(At(link));
        fs::create_symlink(target, At(link));
      }
    }
  }
  std::string At(const std::string& path) const { return folder_.path() + "/" + path; }
  void Rename(const std::string& from, const std::string& to) const { fs::rename(At(from), At(to)); }

  const test::TemporaryFolder folder_;
  const base::DiskFileTree disk_{folder_.path()};
  test::FaultyFileTree files_{disk_};
  RecordedGpus gpus_{files_};
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_, {.field_manager = "heddle-nodeagent"}};
  std::unique_ptr<Discovery> discovery_;
  std::unique_ptr<Publisher> publisher_;
  std::jthread watcher_;
};

// 1: Mellanox/nic-configuration-operator#400, aws/sagemaker-hyperpod-cli#282. The daemon of the node ended because the
// NIC inside an NVLink switch refused its tool, and its port counted as a rail.
TEST_F(BugCase, TheNicOfAnNvlinkSwitchEndsNothingAndIsNoRail) {
  Machine("hgx-b200");
  files_.Fail("sys/class/infiniband/mlx5_8/ports/1/rate");
  const Json status = Publish();
  EXPECT_TRUE(Nic(status, "mlx5_8").is_null());
  EXPECT_EQ(status["summary"]["rails"], "8/8");
  EXPECT_THAT(Condition(status, "LinksUp"), HasSubstr("True"));
}

// 2: NVIDIA/NVSentinel#1361. The second port of a dual-port card that nobody cabled was called fatal. It is a function
// and an RDMA device of its own, behind the switch of the card's GPU, and of RoCE says what one with a pulled cable says.
TEST_F(BugCase, APortThatIsDownByDesignRaisesNoAlarm) {
  Machine("hgx-h100");
  GiveEachCardASecondFunction();
  Json status = Publish();
  EXPECT_EQ(status["summary"]["rails"], "8/8");
  EXPECT_THAT(Condition(status, "LinksUp"), testing::StartsWith("True"));
  EXPECT_THAT(Condition(status, "DiscoveryComplete"), HasSubstr("mlx5_13 has no cable"));
  EXPECT_TRUE(Nic(status, "mlx5_13").is_null());
  EXPECT_EQ(Nic(status, "mlx5_3")["rail"], 3);

  // The other port's cable is pulled: its alarm, and no other.
  folder_.Write("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n");
  status = Publish();
  EXPECT_THAT(Condition(status, "LinksUp"), HasSubstr("mlx5_3 is down"));
  EXPECT_EQ(status["summary"]["rails"], "7/8");
  EXPECT_TRUE(Nic(status, "mlx5_13").is_null());
  folder_.Write("sys/class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n");
  EXPECT_EQ(Publish()["summary"]["rails"], "8/8");
}

TEST_F(BugCase, APortThatIsDownOnOneCardAndUpOnOthersRaisesAnAlarm) {
  Machine("hgx-h100");
  GiveEachCardASecondFunction();
  for (int i = 10; i < 18; ++i) {
    if (i != 13) folder_.Write(fmt::format("sys/class/infiniband/mlx5_{}/ports/1/state", i), "4: ACTIVE\n");
  }
  Json status = Publish();
  EXPECT_EQ(Nic(status, "mlx5_12")["rail"], 2);
  EXPECT_THAT(Condition(status, "LinksUp"), HasSubstr("False LinkDown mlx5_13 is down"));

  // The leaf of all second ports dies: they were up, so they are to be up.
  for (int i = 10; i < 18; ++i)
    folder_.Write(fmt::format("sys/class/infiniband/mlx5_{}/ports/1/state", i), "1: DOWN\n");
  status = Publish();
  EXPECT_THAT(Condition(status, "LinksUp"), HasSubstr("mlx5_17 is down"));
  // An agent that starts now was not there; the kernel was.
  const std::string device =
      fs::relative(fs::canonical(At("sys/class/infiniband/mlx5_12/device")), fs::canonical(folder_.path()));
  folder_.Write(device + "/net/eth12/address", "");
  folder_.Write("sys/class/net/eth12/carrier_up_count", "1\n");
  StartAgent();
  EXPECT_THAT(Condition(Publish(), "LinksUp"), HasSubstr("mlx5_17 is down"));
  folder_.Write("sys/class/net/eth12/carrier_up_count", "0\n");
  StartAgent();
  EXPECT_THAT(Condition(Publish(), "LinksUp"), testing::StartsWith("True"));
}

TEST_F(BugCase, APortOfInfiniBandThatIsOffBesideOneThatIsUpRaisesNoAlarm) {
  Machine("hgx-h100");
  fs::copy(At("sys/class/infiniband/mlx5_3/ports/1"), At("sys/class/infiniband/mlx5_3/ports/2"),
           fs::copy_options::recursive);
  folder_.Write("sys/class/infiniband/mlx5_3/ports/2/state", "1: DOWN\n");
  folder_.Write("sys/class/infiniband/mlx5_3/ports/2/phys_state", "3: Disabled\n");
  const Json status = Publish();
  EXPECT_EQ(Nic(status, "mlx5_3")["ports"].size(), 1U);
  EXPECT_EQ(status["summary"]["rails"], "8/8");
  for (const Json& condition : status["conditions"])
    EXPECT_EQ(condition["status"], "True") << condition.dump();
}

// 3: scitix/sichek's table of ConnectX-8: of twelve ports only 3, 6, 9 and 12 carry data.
TEST_F(BugCase, PortsThatAreNotPortOneAreThePorts) {
  Machine("hgx-h100");
  const std::string ports = "sys/class/infiniband/mlx5_3/ports/";
  for (const char* port : {"3", "6", "9", "12"})
    fs::copy(At(ports + "1"), At(ports + port), fs::copy_options::recursive);
  fs::remove_all(At(ports + "1"));
  const std::string told = disk_.Read("ib.txt").value_or("");
  folder_.Write("ib.txt", told + "mlx5_3 9 7 switch 0xfc6a1ce29eeb9602 \"leaf-r3\" 40\n");
  const Json nic = Nic(Publish(), "mlx5_3");
  std::vector<int> numbers;
  for (const Json& port : nic["ports"]) numbers.push_back(port.value("number", 0));
  EXPECT_THAT(numbers, ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(nic["ports"][2].value("leafPort", ""), "40") << nic.dump();
  EXPECT_EQ(nic["rail"], 3);
}

// 4: unifabric-io/unifabric. A switch that sends no system description was dropped, and a host that had heard nobody
// yet was an error as a whole.
TEST_F(BugCase, AHostThatHasHeardNobodyYetIsPublished) {
  Machine("roce-dual-tor");
  const std::string heard = disk_.Read("lldp.json").value_or("");
  ASSERT_THAT(heard, HasSubstr("tor-a"));
  folder_.Write("lldp.json", "{\"lldp\": [{}]}");
  Json status = Publish();
  EXPECT_THAT(Condition(status, "LeavesKnown"), HasSubstr("False"));
  EXPECT_THAT(Condition(status, "Ready"), HasSubstr("True"));
  EXPECT_THAT(Condition(status, "DiscoveryComplete"), HasSubstr("True")) << "silence is no fault of a probe";
  const Json without = Json::parse(heard, nullptr, false);
  ASSERT_TRUE(without.is_object());
  std::string bare = without.dump();
  for (std::size_t at = 0; (at = bare.find("\"descr\"", at)) != std::string::npos;)
    bare.replace(at, 7, "\"other\"");
  folder_.Write("lldp.json", bare);
  status = Publish();
  EXPECT_THAT(Condition(status, "LeavesKnown"), HasSubstr("True"));
  // The ids say the same as the descriptions.
  const Json nic = Nic(status, "mlx5_bond_1");
  ASSERT_EQ(nic["ports"].size(), 2U) << nic.dump();
  EXPECT_EQ(nic["ports"][0].value("leaf", ""), "tor-a") << nic.dump();
  EXPECT_EQ(nic["ports"][0].value("leafPort", ""), "Ethernet4") << nic.dump();
  EXPECT_EQ(nic["ports"][1].value("leaf", ""), "tor-b") << nic.dump();
  EXPECT_EQ(nic["ports"][1].value("leafPort", ""), "Ethernet4") << nic.dump();
}

// 5: NVIDIA/NVSentinel#1529. A misspelt setting switched the checks off, and the pod was Ready.
TEST(BugCases, AMisspeltSettingIsRefusedByName) {
  const auto refuses = [](const std::string& arguments, const std::string& word) {
    const std::string binary = test::Built("bin/heddle-nodeagent");
    // Output() wants success: the shell turns the refusal into one.
    const std::string said = test::Output("! " + binary + " " + arguments);
    EXPECT_THAT(said, HasSubstr(word)) << arguments;
  };
  refuses("--intervall 5 --print", "--intervall");
  refuses("--interval soon --print", "soon");
  refuses("--interval -1 --print", "--interval");
  refuses("--machine /nonexistent --print", "/nonexistent");
  refuses("--print --output jsno", "jsno");
  refuses("--print --log-level dbug", "dbug");
  const test::TemporaryFolder folder;
  folder.Write("machine.yaml", "hostname: [unclosed\n");
  refuses("--machine " + folder.path() + " --print", "machine.yaml");
}

// 6: NVIDIA/NVSentinel#1529, #1528. After a reboot mlx5_2 was called mlx5_3, and the condition of mlx5_2 stayed for
// ever.
TEST_F(BugCase, ADeviceThatIsRenamedAtRebootLeavesNoConditionBehind) {
  Machine("hgx-h100");
  folder_.Write("sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN\n");
  folder_.Write("sys/class/infiniband/mlx5_2/ports/1/phys_state", "2: Polling\n");
  Json status = Publish();
  EXPECT_EQ(status["summary"]["rails"], "7/8");
  ASSERT_THAT(Condition(status, "LinksUp"), HasSubstr("mlx5_2 is down"));

  Rename("sys/class/infiniband/mlx5_2", "sys/class/infiniband/mlx5_20");
  folder_.Write("sys/class/infiniband/mlx5_20/ports/1/state", "4: ACTIVE\n");
  folder_.Write("sys/class/infiniband/mlx5_20/ports/1/phys_state", "5: LinkUp\n");
  StartAgent();
  status = Publish();
  EXPECT_EQ(status["summary"]["rails"], "8/8");
  EXPECT_EQ(Nic(status, "mlx5_20")["rail"], 2);
  EXPECT_THAT(status["conditions"].dump(), Not(HasSubstr("mlx5_2 "))) << "nobody speaks of the old name";
  EXPECT_TRUE(Nic(status, "mlx5_2").is_null());
  for (const Json& condition : status["conditions"]) {
    const std::string type = condition["type"];
    if (type != "LinksUp" && !type.starts_with("Rail2")) continue;
    EXPECT_EQ(condition["status"], "True") << condition.dump();
  }
}

// A rate that was never read is no link that trained to nothing.
TEST_F(BugCase, AnUnreadRateIsUnknownAndNotSlow) {
  Machine("hgx-h100");
  files_.Fail("sys/class/infiniband/mlx5_3/ports/1/rate");
  const Json status = Publish();
  EXPECT_THAT(Condition(status, "LinksUp"), testing::StartsWith("Unknown Unread mlx5_3 says no rate"));
  EXPECT_THAT(Condition(status, "Rail3Healthy"), testing::StartsWith("Unknown Unread"));
  EXPECT_THAT(Condition(status, "Rail4Healthy"), testing::StartsWith("True"));
}

// 7: NVIDIA/NVSentinel#1488. One failed read of sysfs became "the device disappeared", an alarm that cordons.
TEST_F(BugCase, AFailedReadIsUnknownAndNoDeviceDisappears) {
  Machine("hgx-h100");
  const Json good = Publish();
  files_.Fail("sys/class/infiniband/mlx5_3");
  const Json status = Publish();
  const Json nic = Nic(status, "mlx5_3");
  ASSERT_FALSE(nic.is_null());
  EXPECT_EQ(nic["rail"], 3);
  EXPECT_EQ(nic["guid"], Nic(good, "mlx5_3")["guid"]);
  EXPECT_EQ(nic["ports"][0].value("state", ""), "Unknown");
  EXPECT_THAT(Condition(status, "LinksUp"), testing::StartsWith("Unknown Unread mlx5_3 says neither"));
  EXPECT_THAT(Condition(status, "Rail3Healthy"), testing::StartsWith("Unknown"));
  EXPECT_THAT(Condition(status, "Rail4Healthy"), testing::StartsWith("True"));
  EXPECT_THAT(Condition(status, "DiscoveryComplete"), HasSubstr("Input/output error"));
  for (const char* other : {"mlx5_2", "mlx5_4"}) EXPECT_EQ(Nic(status, other), Nic(good, other));
  files_.Heal();
  EXPECT_EQ(Nic(Publish(), "mlx5_3"), Nic(good, "mlx5_3"));
}

// A card that died took its port along, and with it the fault: the ports that were left were all up.
TEST_F(BugCase, ANicThatVanishesHealsNoCondition) {
  Machine("hgx-h100");
  const Json before = Publish();
  EXPECT_THAT(Condition(before, "LinksUp"), testing::StartsWith("True"));
  fs::remove_all(At("sys/class/infiniband/mlx5_3"));
  const Json status = Publish();
  EXPECT_TRUE(Nic(status, "mlx5_3").is_null());
  EXPECT_EQ(Nic(status, "mlx5_4"), Nic(before, "mlx5_4"));
  EXPECT_THAT(Condition(status, "LinksUp"),
              testing::StartsWith("False NicGone GPU 3 has no NIC of its own on rail 3"));
  EXPECT_THAT(Condition(status, "DiscoveryComplete"),
              HasSubstr("function 0000:5e:00.0 (15b3:1021) has no RDMA device"));
  StartAgent();
  EXPECT_EQ(Condition(Publish(), "LinksUp"), Condition(status, "LinksUp")) << "it needs no memory of the NIC";
}

// 9: NVIDIA/gpu-feature-discovery drops the label of a node whose GPUs are in two NVLink cliques.
TEST_F(BugCase, TwoCliquesOnOneNodeAreReported) {
  Machine("gb200-nvl72-tray");
  GpuReadings gpus = gpus_.Read();
  gpus.gpus.at(2).fabric.clique = gpus.gpus.at(0).fabric.clique + 1;
  folder_.Write("nvml.yaml", FormatNvmlYaml(gpus));
  const Json status = Publish();
  EXPECT_EQ(status["gpus"].size(), 4U);
  EXPECT_EQ(status.value("nvlinkDomainMissing", ""), "Ambiguous");
  EXPECT_THAT(Condition(status, "DiscoveryComplete"), HasSubstr("clique"));
}

// 10: NVIDIA/k8s-device-plugin#448. It panicked where one GPU names a link that the other end does not.
TEST_F(BugCase, NvlinksThatOnlyOneEndKnowsAreCountedAsTheirOwnEndSays) {
  Machine("hgx-h100");
  GpuReadings gpus = gpus_.Read();
  gpus.gpus.at(5).nvlinks.clear();
  gpus.gpus.at(6).nvlinks.resize(7);
  gpus.gpus.at(7).nvlinks.at(0).remote_pci = "0000:ff:1f.7";
  folder_.Write("nvml.yaml", FormatNvmlYaml(gpus));
  const Json status = Publish();
  EXPECT_EQ(status["gpus"].size(), 8U);
  EXPECT_THAT(Condition(status, "NvlinksUp"), HasSubstr("GPU 5 has 0 of 18"));
  EXPECT_THAT(Condition(status, "NvlinksUp"), HasSubstr("GPU 6 has 7 of 18"));
}

// 12: numa_node says -1 in VMs and on boards that do not tell; as a number it is node 0 or a crash.
TEST_F(BugCase, ANumaNodeOfMinusOneIsUnknown) {
  Machine("hgx-h100");
  for (const auto& device : fs::directory_iterator(At("sys/bus/pci/devices")))
    folder_.Write(fs::relative(device.path(), folder_.path()).string() + "/numa_node", "-1\n");
  StartAgent();
  const Json status = Publish();
  EXPECT_EQ(status["summary"]["rails"], "8/8") << "switches still tell who is near";
  for (const Json& gpu : status["gpus"]) EXPECT_FALSE(gpu.contains("numa") && gpu["numa"] == 0) << gpu.dump();
}

}  // namespace
}  // namespace heddle::nodeagent
