#include "nodeagent/recording/scrub.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nodeagent/gpu/nvml_gpus.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/recording/identifiers.h"
#include "recorded_machine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

TEST(Identifiers, KeepWhatBelongsTogether) {
  Identifiers identifiers;
  const std::string text =
      "0c:42:a1:da:09:b6 0c42:a103:00da:09b6 fe80:0000:0000:0000:0e42:a1ff:feda:09b6 enx0c42a1da09b6 "
      "00:00:10:29:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:da:09:b6 0x0c42a10300da09b6";
  identifiers.Learn(text);
  const std::string once = identifiers.Replace(text);
  // The maker's part stays, and so does the way an EUI-64 is made of a MAC address.
  EXPECT_EQ(once,
            "0c:42:a1:a0:00:01 0c42:a103:00a0:0001 fe80:0000:0000:0000:0e42:a1ff:fea0:0001 enx0c42a1a00001 "
            "00:00:10:29:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:a0:00:01 0x0c42a10300a00001");
  EXPECT_EQ(identifiers.Replace(text), once);
  EXPECT_EQ(identifiers.Replace("0c:42:a1:da:09:b7"), "0c:42:a1:a0:00:02");
}

TEST(Identifiers, LeaveAloneWhatNamesNothing) {
  Identifiers identifiers;
  for (const char* text : {"0000:1b:00.0", "00000000,ffffffff", "0000:0000:0000:0000", "00:00:00:00:00:00",
                           "ff:ff:ff:ff:ff:ff", "00000000-0000-0000-0000-000000000000", "0-55,112-167",
                           "4: ACTIVE", "32.0 GT/s PCIe", "0x10de", "pci0000:15", "Ethernet12", "2026-11-22"})
    EXPECT_EQ(identifiers.Replace(text), text);
}

TEST(Identifiers, DealNoNumberThatADeviceHas) {
  Identifiers identifiers;
  identifiers.Learn("02:00:00:a0:00:01");
  EXPECT_EQ(identifiers.Replace("02:00:00:11:22:33"), "02:00:00:a0:00:02");
}

TEST(Identifiers, SurviveAnyText) {
  const std::string text =
      "GPU-89abcdef-1111-2222-3333-444455556666 0c:42:a1:da:09:b6 fe80:0000:0000:0000:0e42:a1ff:feda:09b6 "
      "0000:0000:0000:0000:0000:ffff:0a01:0203 enx0c42a1da09b6 0x0c42a10300da09b6 ::--:: "
      "2001:0db8:0001:0002:0003:"
      "0004:0005:0006";
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::string damaged = test::Damage(text, random);
    Identifiers identifiers;
    identifiers.Learn(damaged);
    EXPECT_EQ(identifiers.Replace(damaged), identifiers.Replace(damaged));
  }
}

TEST(Scrub, ReplacesNamesInEveryFileOfARecording) {
  RecordedFiles recorded;
  recorded.files = {
      {"machine.yaml", "name: \"DGX H100\"\nhostname: acme-gpu-17\nsite: acme-berlin\n"},
      {"lldp.json",
       R"({"lldp":[{"interface":[{"name":"eth1","chassis":[{"id":[{"type":"mac","value":"fc:6a:1c:01:02:03"}],)"
       R"("name":[{"value":"acme-leaf-p1"}],"mgmt-ip":[{"value":"192.168.7.9"}],"descr":[{"value":"acme-sw"}]}],)"
       R"("port":[{"id":[{"type":"local","value":"Ethernet4"}],"descr":[{"value":"to acme-gpu-17"}]}]}]}]})"},
      {"ib.txt",
       "mlx5_0 1 7 switch 0xfc6a1c0300ab12cd \"acme-leaf-p1\" 7\n"
       "mlx5_1 1 8 switch 0xfc6a1c0300ab12ce \"MF0;acme:MQM8700/U1 Mellanox Technologies\" 8\n"
       "mlx5_2 1 9 ca 0x506b4b0300c3b4a2 \"acme-gpu-18 mlx5_2\" 1\n"
       "mlx5_3 1 0 none \"acme-gpu-17 has no permission\"\n"},
      {"leaf-counters.txt",
       "mlx5_0 1 0xfc6a1c0300ab12cd \"acme-leaf-p1\" 7 lid 12 link_downed=41\n"
       "mlx5_1 1 0xfc6a1c0300ab12ce \"0xfc6a1c0300ab12ce\" 8 lid 13 unread \"0xfc6a1c0300ab12ce port 8 is "
       "silent\"\n"
       "mlx5_2 1 0xfc6a1c0300ab12cd \"acme-leaf-p1\" 9 lid 12 unread \"acme-leaf-p1 port 9 is silent\"\n"},
      {"labels.txt",
       "topology.k8s.aws/network-node-layer-3=nn-0acme9\ntopology.k8s.aws/zone-id=nn-0acme9\nx\n"},
      {"nvml.yaml",
       "gpus:\n- {index: 0, uuid: GPU-89abcdef-1111-2222-3333-444455556666, pci: \"0000:1b:00.0\"}\n"},
      {"sys/devices/pci0000:15/vpd", std::string("\x82\x05\0SN acme SW_MNG", 17)},
      {"sys/devices/pci0000:16/vpd", "SN acme"},
      {"sys/devices/pci0000:15/config", std::string(4096, 'c')},
      {"sys/class/infiniband/mlx5_0/node_desc", "acme-gpu-17 HCA-1\n"},
      {"sys/class/infiniband/mlx5_0/board_id", "ACME_0001\n"},
      {"sys/class/infiniband/mlx5_0/node_guid", "506b:4b03:00c3:b4a2\n"},
      {"sys/bus/pci/devices/0000:0c:00.0/unique_id", "89abcdef01234567\n"},
      {"sys/class/kfd/kfd/topology/nodes/2/properties", "simd_count 8\nunique_id 9920249030613615975\n"},
      {"sys/class/net/enx0c42a1da09b6/address", "0c:42:a1:da:09:b6\n"}};
  recorded.links = {
      {"sys/class/net/enx0c42a1da09b6/device",
       "../../../devices/VMBUS:00/47505500-0101-0000-3130-444531303244/pci0101:00/0101:00:00.0"}};
  recorded.folders = {"sys/class/net/enx0c42a1da09b6/statistics"};
  const RecordedFiles clean = Scrub(recorded);
  EXPECT_EQ(clean, Scrub(recorded));
  std::string all;
  for (const auto& [path, content] : clean.files) all += path + "\n" + content + "\n";
  for (const auto& [path, target] : clean.links) all += path + " " + target + "\n";
  for (const std::string& path : clean.folders) all += path + "\n";
  for (const char* original :
       {"acme", "ACME", "ab12cd", "ab12ce", "c3b4a2", "c3:b4:a2", "da09b6", "da:09:b6", "89abcdef",
        "9920249030613615975", "192.168.7.9", "01:02:03", "0101-0000-3130"})
    EXPECT_THAT(all, Not(HasSubstr(original)));
  EXPECT_EQ(clean.files.at("sys/class/infiniband/mlx5_0/node_desc"), "host-1 mlx5_0\n");
  EXPECT_EQ(clean.files.at("sys/devices/pci0000:15/vpd"), "SW_MNG");
  EXPECT_EQ(clean.files.at("sys/devices/pci0000:16/vpd"), "");
  EXPECT_EQ(clean.files.at("sys/devices/pci0000:15/config").size(), 256u);
  // One switch has one name over LLDP and over InfiniBand, and its plane; one that is known by its GUID stays so.
  EXPECT_THAT(clean.files.at("ib.txt"), HasSubstr("\"switch-1-p1\" 7"));
  EXPECT_THAT(clean.files.at("lldp.json"), HasSubstr("switch-1-p1"));
  EXPECT_THAT(clean.files.at("leaf-counters.txt"), HasSubstr("\"switch-1-p1\" 7 lid 12 link_downed=41\n"));
  EXPECT_THAT(clean.files.at("leaf-counters.txt"), HasSubstr("unread \"switch-1-p1 port 9 is silent\""));
  EXPECT_THAT(clean.files.at("ib.txt"), HasSubstr("mlx5_1 1 8 switch 0xfc6a1c0300a"));
  EXPECT_THAT(clean.files.at("labels.txt"), HasSubstr("layer-3=label-1\ntopology.k8s.aws/zone-id=label-1\n"));
  EXPECT_THAT(clean.files.at("machine.yaml"), HasSubstr("\"DGX H100\""));
  // AMD's id is the same number in hexadecimal and in decimal.
  EXPECT_EQ(clean.files.at("sys/bus/pci/devices/0000:0c:00.0/unique_id"), "0000100000000000\n");
  EXPECT_EQ(clean.files.at("sys/class/kfd/kfd/topology/nodes/2/properties"),
            "simd_count 8\nunique_id 17592186044416\n");
}

// A ticket shows the first eight digits of a GPU's UUID.
TEST(Scrub, LeavesTheFirstDigitsOfUuidsApart) {
  RecordedFiles recorded;
  recorded.files = {
      {"nvml.yaml",
       "gpus:\n- {index: 0, uuid: GPU-89abcdef-1111-2222-3333-444455556666, pci: \"0000:1b:00.0\"}\n"
       "- {index: 1, uuid: GPU-89abcdef-1111-2222-3333-444455556667, pci: \"0000:1c:00.0\"}\n"},
      {"sys/bus/pci/devices/0000:0c:00.0/unique_id", "89abcdef01234567\n"},
      {"sys/bus/pci/devices/0000:0d:00.0/unique_id", "89abcdef01234568\n"}};
  const RecordedFiles clean = Scrub(recorded);
  EXPECT_THAT(clean.files.at("nvml.yaml"), HasSubstr("GPU-00000001-0000-4000-8000-000000000000"));
  EXPECT_THAT(clean.files.at("nvml.yaml"), HasSubstr("GPU-00000002-0000-4000-8000-000000000000"));
  EXPECT_EQ(clean.files.at("sys/bus/pci/devices/0000:0c:00.0/unique_id"), "0000100000000000\n");
  EXPECT_EQ(clean.files.at("sys/bus/pci/devices/0000:0d:00.0/unique_id"), "0000100100000000\n");
}

std::string Content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Every path, link and content below a folder.
std::map<std::string, std::string> AllOf(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder);
    if (entry.is_symlink())
      all[name] = "-> " + fs::read_symlink(entry.path()).string();
    else
      all[name] = entry.is_directory() ? "" : Content(entry.path());
  }
  return all;
}

std::vector<std::string> ConditionsOfSeen(const Observation& seen) {
  std::vector<std::string> lines;
  for (const crds::Condition& one : Report({}, seen, base::WallTime{}).status.conditions) {
    const bool good = one.status == crds::ConditionStatus::kTrue;
    lines.push_back(one.type + (good ? " True " : " False ") + one.reason);
  }
  return lines;
}

// By the port's place, "" where unknown: for comparing which ports end in one switch.
std::vector<std::string> LeavesOf(const topology::Node& node) {
  std::vector<std::string> leaves;
  for (const topology::Nic& nic : node.nics) {
    for (const topology::NicPort& port : nic.ports)
      leaves.push_back(port.leaf_port ? port.leaf_port->leaf : std::string());
  }
  return leaves;
}

std::set<std::string> IdentifiersOf(const test::RecordedMachine& machine, const Observation& seen) {
  const base::DiskFileTree files(machine.path());
  std::set<std::string> found{seen.node.name};
  const auto bare = [](std::string text) {
    std::erase(text, ':');
    return text;
  };
  for (const topology::Gpu& gpu : seen.node.gpus) found.insert(gpu.uuid.substr(4));
  for (const std::string& leaf : LeavesOf(seen.node)) found.insert(leaf);
  for (const auto& [folder, names] : std::map<std::string, std::vector<std::string>>{
           {"sys/class/infiniband", {"node_guid", "sys_image_guid", "board_id"}},
           {"sys/class/net", {"address"}}}) {
    for (const std::string& device : files.List(folder).value_or(std::vector<std::string>())) {
      for (const std::string& name : names) {
        const std::string text = base::ReadTrimmed(files, folder + "/" + device + "/" + name).value_or("");
        found.insert({text, bare(text)});
      }
    }
  }
  std::erase_if(found, [](const std::string& text) {
    return text.size() < 4 || text.find_first_not_of("0:") == std::string::npos;
  });
  return found;
}

// `all`: every path and content of the scrubbed recording.
void ExpectNoNameOf(const std::set<std::string>& originals, const std::map<std::string, std::string>& all) {
  std::string text;
  for (const auto& [path, content] : all) text += path + '\n' + content + '\n';
  for (const std::string& original : originals) {
    const std::size_t at = text.find(original);
    EXPECT_EQ(at, std::string::npos) << original << " in "
                                     << text.substr(at - std::min<std::size_t>(at, 200), 400);
  }
}

void ExpectTheSameMachine(const Observation& seen, const Observation& clean) {
  EXPECT_EQ(clean.node.name, "host-1");
  EXPECT_EQ(test::PairsOf(clean.node), test::PairsOf(seen.node));
  EXPECT_EQ(test::RailsOf(clean.node), test::RailsOf(seen.node));
  EXPECT_EQ(ConditionsOfSeen(clean), ConditionsOfSeen(seen));
  EXPECT_EQ(clean.problems.size(), seen.problems.size());
  std::map<std::string, std::string> renamed, back;
  const auto before = LeavesOf(seen.node), after = LeavesOf(clean.node);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(renamed.try_emplace(before[i], after[i]).first->second, after[i]);
    EXPECT_EQ(back.try_emplace(after[i], before[i]).first->second, before[i]);
  }
}

TEST(Scrub, LeavesAMachineWhatItIsAndNoNameOfIt) {
  const test::RecordedMachine machine("roce-dual-tor");
  const Observation seen = machine.Look();
  const base::DiskFileTree files(machine.path());
  const test::TemporaryFolder folder;
  const std::string target = folder.path() + "/scrubbed", again = folder.path() + "/again";
  ASSERT_TRUE(RecordAgain(files, machine.path(), "", true, target));
  const auto all = AllOf(target);
  ExpectNoNameOf(IdentifiersOf(machine, seen), all);
  ExpectTheSameMachine(seen, test::LookAt(target));
  // What was scrubbed replays byte for byte.
  const base::DiskFileTree scrubbed(target);
  ASSERT_TRUE(RecordAgain(scrubbed, target, "", false, again));
  EXPECT_EQ(AllOf(again), all);
}

// The same of what a look reads, in memory: without counters and the thousands of files of the processors.
TEST(Scrub, LeavesEveryKindOfMachineWhatItIs) {
  for (const char* name : {"hgx-h100", "hgx-down", "mi300x", "hgx-b300", "nd-a100-v4-vm"}) {
    SCOPED_TRACE(name);
    const RecordedFiles recorded = test::ReadOf(name);
    test::MemoryFileTree files, scrubbed;
    test::Fill(recorded, files);
    const Observation seen = test::LookAt(files);
    const RecordedFiles clean = Scrub(recorded);
    std::map<std::string, std::string> all(clean.files);
    for (const auto& [path, target] : clean.links) all[path] = target;
    for (const std::string& path : clean.folders) all[path];
    ExpectNoNameOf(IdentifiersOf(test::RecordedMachine(name), seen), all);
    test::Fill(clean, scrubbed);
    const RecordingFileTree recording(scrubbed);
    ExpectTheSameMachine(seen, test::LookAt(recording));
    for (const auto& [path, content] : recording.files()) EXPECT_EQ(clean.files.at(path), content) << path;
    EXPECT_EQ(recording.files().size(), clean.files.size()) << "it reads what the machine itself read";
  }
}

TEST(Scrub, HidesTheAddressesOfThisVeryMachine) {
  const test::TemporaryFolder folder;
  const base::DiskFileTree root("/");
  test::FakeClock clock;
  const std::string target = folder.path() + "/recorded";
  ASSERT_TRUE(
      Record(root, "this-host", std::make_unique<NvmlGpus>("libnvidia-ml.so.1"), clock, target, {}, true));
  std::string all;
  for (const auto& [path, content] : AllOf(target)) all += path + "\n" + content + "\n";
  EXPECT_EQ(all.find("this-host"), std::string::npos);
  for (const std::string& name : root.List("sys/class/net").value_or(std::vector<std::string>())) {
    const std::string address = base::ReadTrimmed(root, "sys/class/net/" + name + "/address").value_or("");
    if (address.find_first_not_of("0:f") == std::string::npos) continue;
    EXPECT_EQ(all.find(address), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace heddle::nodeagent
