// What sysfs, recordings, switches and drivers can do wrong, each on a whole machine: the device in question is unknown
// and says why, everything else goes on.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "faulty_files.h"
#include "nodeagent/gpu/nvml_gpus.h"
#include "nodeagent/health/health.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/recording/recording.h"
#include "nvml_bed.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;
using base::Code;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkState;
using topology::Missing;
using topology::Nic;
using topology::Node;

constexpr const char* kMlx5_3 = "sys/class/infiniband/mlx5_3";
class NoEthtool final : public EthtoolSource {
 public:
  base::Result<EthtoolStats> Read(const std::string&) override {
    return base::Fail(base::Code::kNotFound, "none");
  }
};

constexpr const char* kState = "sys/class/infiniband/mlx5_3/ports/1/state";

// An HGX H100 of its own, to be broken: what a look reads of one, without the thousands of files of its processors.
class BadInput : public testing::Test {
 protected:
  BadInput() {
    const test::RecordedMachine machine("hgx-h100");
    const base::DiskFileTree files(machine.path());
    const RecordingFileTree recording(files);
    RecordedGpus gpus(recording);
    (void)Open(recording, gpus)->Look();
    EXPECT_TRUE(WriteRecording(recording, {{"machine.yaml", "hostname: node-00\n"}}, folder_.path()));
  }

  static std::unique_ptr<Discovery> Open(const base::FileTree& files, GpuSource& gpus) {
    return std::make_unique<Discovery>(files, gpus, RecordedLeaves(files), Identity{"node-00", "", ""},
                                       Locality{});
  }
  Observation Look() const { return test::LookAt(folder_.path()); }
  std::string At(const std::string& path) const { return folder_.path() + "/" + path; }
  void Replace(const std::string& path, const std::string& content) const {
    fs::remove_all(At(path));
    folder_.Write(path, content);
  }

  const test::TemporaryFolder folder_;
  const base::DiskFileTree disk_{folder_.path()};
  test::FaultyFileTree files_{disk_};
  RecordedGpus gpus_{files_};
  std::unique_ptr<Discovery> discovery_ = Open(files_, gpus_);
};

// Everything but what is said of the state of `nic` is as in `good`.
void ExpectOnlyItsStateIsUnknown(const std::string& nic, const Node& good, Node seen,
                                 const std::string& why) {
  SCOPED_TRACE(why);
  ASSERT_NE(seen.FindNic(nic), nullptr) << "it did not disappear";
  for (std::size_t i = 0; i < seen.nics.size(); ++i) {
    if (seen.nics[i].name != nic) continue;
    ASSERT_EQ(seen.nics[i].ports.size(), good.nics.at(i).ports.size());
    EXPECT_GT(seen.nics[i].usable_gbps(), 0) << "nothing was seen that speaks against it";
    for (std::size_t p = 0; p < seen.nics[i].ports.size(); ++p) {
      EXPECT_EQ(seen.nics[i].ports[p].state, LinkState::kUnknown);
      seen.nics[i].ports[p].state = good.nics[i].ports[p].state;
    }
  }
  EXPECT_EQ(seen, good);
}

TEST_F(BadInput, APortWhoseStateCannotBeReadIsUnknownAndSaysWhy) {
  const Observation good = discovery_->Look();
  ASSERT_THAT(good.problems, IsEmpty());
  for (const auto& [code, why] : {std::pair(Code::kUnavailable, "Input/output error"),
                                  std::pair(Code::kForbidden, "Permission denied")}) {
    files_.Fail(kState, code, why);
    const Observation seen = discovery_->Look();
    ExpectOnlyItsStateIsUnknown("mlx5_3", good.node, seen.node, why);
    EXPECT_THAT(seen.problems, testing::ElementsAre(std::string(kState) + ": " + why));
    files_.Heal();
    EXPECT_EQ(discovery_->Look().node, good.node);
  }
}

// At a first look there is nothing to keep, and "no GPUs" would be made up.
TEST_F(BadInput, ABusThatCannotBeReadAtAFirstLookIsNoMachineWithoutGpus) {
  Replace("nvml.yaml", "absent: \"libnvidia-ml.so.1 was not found\"\ngpus: []\n");
  const auto summary = [](const Observation& seen) {
    crds::NodeTopology object;
    object.name = "node-00";
    return crds::ToJson(Report(object, seen, base::WallTime()))["status"]["summary"];
  };
  files_.Fail("sys/bus/pci/devices");
  Observation seen = Open(files_, gpus_)->Look();
  EXPECT_TRUE(seen.bus_unread);
  EXPECT_EQ(seen.node.nvlink_domain.missing(), Missing::kUnknown);
  EXPECT_EQ(summary(seen)["gpus"], "?");
  EXPECT_EQ(summary(seen)["nvlinkDomain"], "?");
  files_.Heal();
  // One function that does not answer may be a GPU as well; here all of them are.
  for (const std::string& device : disk_.List("sys/bus/pci/devices").value_or(std::vector<std::string>()))
    files_.Fail("sys/bus/pci/devices/" + device + "/class");
  EXPECT_TRUE(Open(files_, gpus_)->Look().bus_unread);
  files_.Heal();
  seen = Open(files_, gpus_)->Look();
  EXPECT_FALSE(seen.bus_unread);
  EXPECT_EQ(summary(seen)["gpus"], "0/8");
}

// A kernel without PCI, as some virtual machines have: what is not there cannot have GPUs.
TEST(PciProbe, AKernelWithoutPciIsNotUnread) {
  test::MemoryFileTree files;
  EXPECT_TRUE(ProbePci(files).unread) << "there is no sysfs at all";
  files.MakeFolder("sys/bus/acpi");
  EXPECT_FALSE(ProbePci(files).unread);
  files.MakeFolder("sys/bus/pci");
  EXPECT_TRUE(ProbePci(files).unread);
}

// A zero takes evidence, at a full look as between two: the port said that it is down, or that it trains.
TEST_F(BadInput, APortThatCannotBeReadKeepsWhatItWasCountedWithLast) {
  const auto usable = [this] { return discovery_->Look().node.FindNic("mlx5_3")->usable_gbps(); };
  EXPECT_EQ(usable(), 400);
  files_.Fail("sys/class/infiniband/mlx5_3/ports/1/rate");
  EXPECT_EQ(usable(), 400);
  files_.Fail(kState);
  EXPECT_EQ(usable(), 400);
  EXPECT_EQ(usable(), 400) << "and the look after that";
  files_.Heal();
  Replace(kState, "2: INIT\n");
  EXPECT_EQ(usable(), 0) << "it was read: it waits for a subnet manager";
  files_.Fail(kState);
  EXPECT_EQ(usable(), 0);
  files_.Heal();
  Replace(kState, "1: DOWN\n");
  EXPECT_EQ(usable(), 0);
  files_.Fail("sys/class/infiniband/mlx5_3/ports/1");
  EXPECT_EQ(usable(), 0) << "it was down when it was asked last";
  files_.Heal();
  Replace(kState, "4: ACTIVE\n");
  EXPECT_EQ(usable(), 400);
  files_.Fail("sys/class/net/eno1");
  EXPECT_EQ(discovery_->Look().node.FindNic("eno1")->usable_gbps(), 10);
}

// The same port by both ways: what the counters' pass makes of a look is what a look makes of it.
TEST_F(BadInput, ALookAndAPassOverTheCountersSayTheSameOfAPort) {
  const Readings readings = discovery_->Read();
  const Observation good = Assemble(readings);
  for (const char* state : {"4: ACTIVE\n", "2: INIT\n", "1: DOWN\n", ""}) {
    if (*state == '\0')
      files_.Fail(kState);
    else
      Replace(kState, state);
    Observation passed = good;
    NoEthtool ethtool;
    CounterReader reader(files_, ethtool);
    reader.Watch(WatchedPorts(readings, good.node));
    LinkHealth links;
    links.Look(reader.Read(Ask::kFiles), base::MonotonicTime(std::chrono::minutes(5)), {});
    ApplyHealth(links.ports(), nullptr, passed);
    const Observation looked = discovery_->Look();
    EXPECT_EQ(passed.node.FindNic("mlx5_3")->ports, looked.node.FindNic("mlx5_3")->ports) << state;
    files_.Heal();
    Replace(kState, "4: ACTIVE\n");
    EXPECT_EQ(discovery_->Look().node, good.node);
  }
}

TEST_F(BadInput, ADeviceThatAnswersNothingForAMomentKeepsItsPlace) {
  const Observation good = discovery_->Look();
  files_.Fail(kMlx5_3);
  files_.Fail("sys/class/net/ib3");
  const Observation seen = discovery_->Look();
  ExpectOnlyItsStateIsUnknown("mlx5_3", good.node, seen.node, "all of it");
  EXPECT_THAT(seen.problems, Contains(HasSubstr("taken as it was before")));
  files_.Heal();
  const Observation after = discovery_->Look();
  EXPECT_EQ(after.node, good.node);
  EXPECT_THAT(after.problems, IsEmpty());
}

TEST_F(BadInput, ADeviceThatNeverAnsweredIsUnknownAndNotGone) {
  files_.Fail(std::string(kMlx5_3) + "/ports/1");
  const Observation seen = discovery_->Look();
  EXPECT_THAT(seen.problems, Contains(HasSubstr("mlx5_3")));
  ASSERT_NE(seen.node.FindNic("mlx5_3"), nullptr);
  EXPECT_EQ(seen.node.FindNic("mlx5_3")->ports.at(0).state, LinkState::kUnknown);
  EXPECT_EQ(seen.node.FindNic("mlx5_3")->usable_gbps(), 400) << "as the others of its kind";
  EXPECT_EQ(seen.node.FindNic("mlx5_4")->rail, 4);
}

// As of an agent that starts while a card is busy: what nobody could read is absent, and never a zero.
TEST_F(BadInput, ARateThatWasNeverReadIsAbsentAndCountsLikeThoseOfItsKind) {
  const auto port = [](const Observation& seen, const std::string& nic) {
    const crds::Json object = crds::ToJson(Report({}, seen, {}));
    for (const auto& one : object["status"]["nics"]) {
      if (one["name"] == nic) return one["ports"][0];
    }
    return crds::Json();
  };
  Replace("sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (2X NDR)\n");
  files_.Fail("sys/class/infiniband/mlx5_3/ports/1/rate");
  files_.Fail("sys/class/infiniband/mlx5_4/ports/1/state");
  Observation seen = discovery_->Look();
  EXPECT_FALSE(port(seen, "mlx5_3").contains("rateGbps")) << port(seen, "mlx5_3").dump();
  EXPECT_EQ(port(seen, "mlx5_3")["usableGbps"], 200) << "the least of its kind";
  EXPECT_EQ(port(seen, "mlx5_4")["rateGbps"], 400) << "its rate was read";
  EXPECT_EQ(port(seen, "mlx5_4")["usableGbps"], 400);
  EXPECT_TRUE(seen.node.FindNic("mlx5_3")->up());
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  files_.Heal();
  EXPECT_EQ(port(discovery_->Look(), "mlx5_3")["rateGbps"], 400);

  for (int i = 0; i < 8; ++i) files_.Fail("sys/class/infiniband/mlx5_" + std::to_string(i) + "/ports/1/rate");
  seen = Open(files_, gpus_)->Look();
  EXPECT_FALSE(port(seen, "mlx5_3").contains("rateGbps"));
  EXPECT_FALSE(port(seen, "mlx5_3").contains("usableGbps")) << "there is none of its kind to go by";
}

// It carried nothing when it was asked last, and is up now.
TEST_F(BadInput, APortThatCameUpAndTellsNoRateCountsLikeThoseOfItsKind) {
  Replace(kState, "1: DOWN\n");
  EXPECT_EQ(discovery_->Look().node.FindNic("mlx5_3")->usable_gbps(), 0);
  Replace(kState, "4: ACTIVE\n");
  files_.Fail("sys/class/infiniband/mlx5_3/ports/1/rate");
  EXPECT_EQ(discovery_->Look().node.FindNic("mlx5_3")->usable_gbps(), 400);
}

TEST_F(BadInput, AFolderThatCannotBeListedForAMomentLosesNoDevice) {
  const Observation good = discovery_->Look();
  for (const char* folder : {"sys/class/infiniband", "sys/class/net", "sys/bus/pci/devices"}) {
    files_.Fail(folder);
    const Observation seen = discovery_->Look();
    EXPECT_EQ(seen.node.gpus.size(), 8U) << folder;
    EXPECT_EQ(seen.node.nics.size(), good.node.nics.size()) << folder;
    EXPECT_EQ(seen.node.FindNic("mlx5_7")->rail, 7) << folder;
    EXPECT_THAT(seen.problems, Contains(HasSubstr(folder)));
    files_.Heal();
    EXPECT_EQ(discovery_->Look().node, good.node) << folder;
  }
}

TEST_F(BadInput, ADeviceThatGoesWhileItIsLookedAtIsGone) {
  files_.Before(std::string(kMlx5_3) + "/ports", [this] { fs::remove_all(At(kMlx5_3)); });
  const Observation seen = discovery_->Look();
  ASSERT_TRUE(files_.happened());
  EXPECT_EQ(seen.node.FindNic("mlx5_3"), nullptr);
  EXPECT_EQ(seen.node.FindNic("mlx5_4")->rail, 4);
  EXPECT_EQ(seen.node, discovery_->Look().node);
}

TEST_F(BadInput, ADeviceThatIsRenamedWhileItIsLookedAtIsFoundUnderItsNewName) {
  files_.Before(std::string(kMlx5_3) + "/ports",
                [this] { fs::rename(At(kMlx5_3), At("sys/class/infiniband/mlx5_9")); });
  const Observation seen = discovery_->Look();
  ASSERT_TRUE(files_.happened());
  EXPECT_EQ(seen.node.FindNic("mlx5_3"), nullptr);
  ASSERT_NE(seen.node.FindNic("mlx5_9"), nullptr);
  EXPECT_EQ(seen.node.FindNic("mlx5_9")->rail, 3);
  EXPECT_THAT(seen.excluded, IsEmpty()) << "it was never a device without ports";
  EXPECT_EQ(seen.node, discovery_->Look().node);
}

TEST_F(BadInput, NamesThatChangeAtEveryLookDoNotKeepTheAgentFromOne) {
  int turn = 0;
  std::function<void()> rename = [&] {
    const std::string from = "sys/class/net/eth" + std::to_string(turn),
                      to = "sys/class/net/eth" + std::to_string(++turn);
    folder_.Write(to + "/mtu", "1500\n");
    fs::remove_all(At(from));
    if (turn < 100) files_.Before("sys/class/net", rename);
  };
  files_.Before("sys/class/net", rename);
  EXPECT_EQ(discovery_->Look().node.gpus.size(), 8U);
}

TEST_F(BadInput, NamedPipesAndFoldersInPlaceOfFilesAreNotWaitedFor) {
  folder_.Write("sys/devices/system/cpu/possible", "0-3\n");
  for (const char* path :
       {kState, "sys/class/infiniband/mlx5_3/ports/1/rate", "sys/bus/pci/devices/0000:5e:00.0/class",
        "nvml.yaml", "lldp.json", "ib.txt", "sys/devices/system/cpu/possible"}) {
    for (const bool pipe : {true, false}) {
      const std::string before = disk_.Read(path).value_or("");
      fs::remove_all(At(path));
      if (pipe) {
        ASSERT_EQ(::mkfifo(At(path).c_str(), 0600), 0) << path;
      } else {
        fs::create_directories(At(path) + "/folder");
      }
      const Observation seen = Look();
      const bool is_hwlocs =
          std::string_view(path).starts_with("sys/devices/system");  // which passes folders over
      if (pipe || !is_hwlocs) {
        EXPECT_THAT(seen.problems, Contains(HasSubstr(path))) << (pipe ? "pipe" : "folder");
      }
      EXPECT_EQ(seen.node.FindNic("mlx5_4")->usable_gbps(), 400) << path;
      EXPECT_EQ(seen.node.FindNic("mlx5_4")->rail, 4) << path;
      Replace(path, before);
    }
  }
}

TEST_F(BadInput, LinksInACircleAreNamed) {
  const Observation good = discovery_->Look();
  fs::remove(At(kState));
  fs::create_symlink("state", At(kState));
  const Observation seen = discovery_->Look();
  ExpectOnlyItsStateIsUnknown("mlx5_3", good.node, seen.node, "circle");
  EXPECT_THAT(seen.problems, Contains(HasSubstr("symbolic links")));
}

TEST_F(BadInput, AFolderOfTooManyDevicesIsRefusedInOneSentence) {
  files_.Fail("sys/class/infiniband", Code::kTooLarge, "over 65536 entries");
  const Observation seen = discovery_->Look();
  EXPECT_THAT(seen.problems, testing::ElementsAre("sys/class/infiniband: over 65536 entries"));
  EXPECT_EQ(seen.node.gpus.size(), 8U);
}

TEST_F(BadInput, AHundredMegabytesOfLldpAreRefusedUnread) {
  fs::resize_file(At("lldp.json"), 100 << 20);
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, Contains("lldp.json: over 4194304 bytes"));
  EXPECT_EQ(seen.node.FindNic("mlx5_3")->ports.at(0).leaf_port->leaf, "leaf-r3");
}

TEST_F(BadInput, NumbersBeyondAllBoundsAreUnknown) {
  const Observation good = Look();
  const std::string huge(400, '9');
  for (const std::string& number :
       {huge, "-" + huge, std::string("4294967296"), std::string("18446744073709551616")}) {
    Replace("sys/class/infiniband/mlx5_3/ports/1/rate", number + " Gb/sec (4X NDR)\n");
    Replace("sys/class/infiniband/mlx5_3/ports/1/lid", "0x" + number + "\n");
    Replace("sys/class/net/eno1/mtu", number + "\n");
    Replace("sys/class/net/eno1/speed", number + "\n");
    folder_.Write("sys/class/infiniband/mlx5_3/ports/" + huge.substr(0, 200) + "/state", "4: ACTIVE\n");
    const Observation seen = Look();
    EXPECT_EQ(seen.node.FindNic("mlx5_3")->ports.at(0).rate_gbps, 0) << number;
    EXPECT_EQ(seen.node.FindNic("mlx5_3")->usable_gbps(), 400) << number << ": as the others of its kind";
    EXPECT_EQ(seen.node.FindNic("mlx5_3")->rail, 3) << number;
    EXPECT_EQ(seen.node.FindNic("mlx5_4")->ports, good.node.FindNic("mlx5_4")->ports) << number;
    EXPECT_THAT(topology::Check(seen.node), IsEmpty()) << number;
  }
}

// hwloc keeps a bit for each and asks for each.
TEST_F(BadInput, ProcessorsWithoutEndAreNotCounted) {
  folder_.Write("sys/devices/system/cpu/cpu0/online", "1\n");
  for (const auto& [path, content] : {std::pair("sys/devices/system/cpu/possible", "0-4294967295\n"),
                                      std::pair("sys/devices/system/cpu/online", "0,8-9000\n"),
                                      std::pair("sys/devices/system/node/online", "0-99999999\n"),
                                      std::pair("sys/devices/system/node/node0/cpulist", "7-4294967295\n"),
                                      std::pair("sys/devices/system/cpu/cpu4294967295/online", "1\n")}) {
    const auto before = disk_.Read(path);
    Replace(path, content);
    const Observation seen = Look();
    EXPECT_THAT(seen.problems, Contains(HasSubstr("more than a kernel can have"))) << path;
    EXPECT_EQ(seen.node.gpus.size(), 8U) << path;
    EXPECT_EQ(seen.node.FindNic("mlx5_3")->rail, 3) << path;
    fs::remove_all(At(path));
    if (before) folder_.Write(path, *before);
    fs::remove_all(At("sys/devices/system/cpu/cpu4294967295"));
  }
}

// A cable that ends in the host itself or in another host, two answers for one port, ports that are not there.
TEST_F(BadInput, DirectedRouteAnswersThatContradictEachOtherAreDoubtedPortByPort) {
  Replace("ib.txt",
          "mlx5_0 1 7 ca 0xfc6a1ce29eeb9602 \"node-00 mlx5_0\" 1\n"
          "mlx5_1 1 8 ca 0xfc6a1ce29eeb9603 \"node-00 mlx5_2\" 1\n"
          "mlx5_3 1 9 switch 0xfc6a1ce29eeb9604 \"leaf-r3\" 4\n"
          "mlx5_3 1 9 switch 0xfc6a1ce29eeb9605 \"leaf-r4\" 4\n"
          "mlx5_4 1 9 switch 0xfc6a1ce29eeb9606 \"leaf-r4\" 5\n"
          "mlx5_4 200 9 switch 0xfc6a1ce29eeb9606 \"leaf-r4\" 6\n"
          "mlx5_77 1 9 switch 0xfc6a1ce29eeb9606 \"leaf-r4\" 7\n"
          "mlx5_5 999 9 switch 0xfc6a1ce29eeb9606 \"leaf-r5\" 8\n"
          "mlx5_6 1 9 switch\n");
  const Observation seen = Look();
  const auto leaf = [&seen](const char* nic) { return seen.node.FindNic(nic)->ports.at(0).leaf_port; };
  EXPECT_EQ(leaf("mlx5_0").missing(), Missing::kNotApplicable);
  EXPECT_EQ(leaf("mlx5_1").missing(), Missing::kNotApplicable);
  EXPECT_EQ(leaf("mlx5_2").missing(), Missing::kUnknown)
      << "its cable was answered for from the other end only";
  EXPECT_EQ(leaf("mlx5_3").missing(), Missing::kAmbiguous);
  EXPECT_EQ(leaf("mlx5_4")->port, "5");
  EXPECT_EQ(leaf("mlx5_5").missing(), Missing::kUnknown);
  EXPECT_THAT(seen.problems, Contains(HasSubstr("ib.txt line 8")));
  EXPECT_THAT(seen.problems, Contains(HasSubstr("ib.txt line 9")));
}

// Any file of one NIC, of its interface or of its PCI function: the other NICs and all GPUs are as they were.
TEST_F(BadInput, WhateverAFileHoldsItIsTheFaultOfOneDevice) {
  RecordingFileTree recording(disk_);
  RecordedGpus gpus(recording);
  const Observation good = Open(recording, gpus)->Look();
  int tried = 0;
  for (const auto& [path, content] : recording.files()) {
    const bool of_nic = path.find("mlx5_3") != std::string::npos || path.find("ib3") != std::string::npos ||
                        path.find("eno1") != std::string::npos ||
                        path.find("0000:5e:00.0") != std::string::npos;
    if (!of_nic) continue;
    ++tried;
    for (const std::string& now :
         {std::string(), std::string("\0\xff\xfe\x80{[", 6), std::string(10'000, 'x'),
          content.substr(0, content.size() / 2), std::string("-1\n"), std::string("0x\n")}) {
      Replace(path, now);
      const Observation seen = Open(disk_, gpus)->Look();
      (void)crds::ToJson(Report({}, seen, {})).dump();  // throws on bad UTF-8
      EXPECT_THAT(topology::Check(seen.node), IsEmpty()) << path;
      EXPECT_EQ(seen.node.gpus.size(), 8U) << path;
      for (const Nic& nic : good.node.nics) {
        if (nic.name == "mlx5_3" || nic.name == "eno1") continue;
        const Nic* now_seen = seen.node.FindNic(nic.name);
        ASSERT_NE(now_seen, nullptr) << nic.name << " after " << path;
        EXPECT_EQ(*now_seen, nic) << path;
      }
    }
    Replace(path, content);
  }
  EXPECT_GT(tried, 15);
}

// The driver's own strings and numbers, through the C interface.
TEST(BadDriver, SaysNonsenseAndTheNodeIsStillPublished) {
  const test::NvmlBed bed("hgx-h100");
  bed.Write(
      "driver_version: \"\\x01\\xff570\"\n"
      "gpus:\n"
      "- {index: 0, uuid: \"" +
      std::string(300, 'U') +
      "\", name: \"\\xfe\\xed\", pci: \"nowhere\", memory_mib: "
      "18446744073709551615, nvlink_version: -5, nvlinks: [{link: 0, state: active, remote_type: switch, "
      "remote_pci: \"\\x7f\\x80\", speed_mbps: 4294967295}]}\n"
      "- {index: 1, uuid: \"\", name: \"\", pci: \"\", memory_mib: 0, nvlink_version: 2147483647, nvlinks: "
      "[], "
      "fabric: {state: completed, cluster_uuid: \"zz\", clique: 4294967295, health_mask: 4294967295}}\n");
  const test::RecordedMachine machine("hgx-h100");
  const base::DiskFileTree files(machine.path());
  NvmlGpus gpus(test::Nvml());
  Discovery discovery(files, gpus, RecordedLeaves(files), {"node-00", "", ""}, {});
  const Observation seen = discovery.Look();
  (void)crds::ToJson(Report({}, seen, {})).dump();
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  for (const topology::Gpu& gpu : seen.node.gpus) EXPECT_GE(gpu.memory_gib, 0);
}

}  // namespace
}  // namespace heddle::nodeagent
