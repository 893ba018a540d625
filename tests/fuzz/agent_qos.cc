// What the node agent hears of QoS: dcbnl, RDMA netlink, and the ports of recorded machines.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "crds/node_lossless.h"
#include "nodeagent/qos/congestion_files.h"
#include "nodeagent/qos/dcb_settings.h"
#include "nodeagent/qos/journal.h"
#include "nodeagent/qos/likely_writer.h"
#include "nodeagent/qos/queue_pairs.h"
#include "nodeagent/qos/recorded_port_io.h"
#include "tests/fuzz/records.h"
#include "tests/fuzz/targets.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::fuzz {

using namespace nodeagent;  // NOLINT(google-build-using-namespace): this file is about nothing else

namespace {

// That of the first message, so that the answer is one to us.
std::uint32_t SequenceOf(std::string_view datagram) {
  std::uint32_t sequence = 0;
  if (datagram.size() >= 12) std::memcpy(&sequence, datagram.data() + 8, sizeof sequence);
  return sequence;
}

// Each path holds 0, and what the records say.
void WriteOverZeros(std::string_view bytes, const std::vector<std::string>& paths,
                    test::MemoryFileTree& files) {
  for (const std::string& path : paths) files.Write(path, "0\n");
  WriteRecords(bytes, paths, files);
}

}  // namespace

// Whatever a driver answers can be published, and a lossless port can be made of it.
bool Dcbnl(std::string_view bytes) {
  DcbAnswer answer;
  (void)Read(TakeDcb(bytes, SequenceOf(bytes), answer).map([] { return 0; }));
  for (const std::string& netdev : ChangedByDcb(bytes)) CHECK(!netdev.empty());
  CHECK(answer.error >= 0 && (answer.error == 0 || answer.done));
  if (!answer.state) return false;
  CHECK(std::is_sorted(answer.state->apps.begin(), answer.state->apps.end()));
  QosPort port;
  port.driver = "mlx5_core";
  const DcbSettings dcb = SettingsOfDcb(*answer.state, std::nullopt, port);
  const auto again = crds::PortSettingsFromJson(crds::ToJson(dcb.have));
  CHECK(again && *again == dcb.have);
  for (const lossless::Gap& gap : dcb.gaps) CHECK(!gap.reason.empty());
  const lossless::DscpMap want = lossless::AllDscps(3);
  for (const Unsaid unsaid : {Unsaid::kLeave, Unsaid::kClear}) {
    const DscpDifference difference = DscpsFor(answer.state->apps, want, unsaid);
    CHECK(difference.add.size() <= 64);
    std::vector<DcbApp> apps = answer.state->apps;
    for (const DcbApp& app : difference.remove) std::erase(apps, app);
    apps.insert(apps.end(), difference.add.begin(), difference.add.end());
    const DscpDifference rest = DscpsFor(apps, want, unsaid);
    CHECK(rest.add.empty() && rest.remove.empty());
  }
  return true;
}

bool RdmaNetlink(std::string_view bytes) {
  RdmaAnswer answer;
  const bool read = Read(TakeRdma(bytes, SequenceOf(bytes), "rxe0", answer).map([] { return 0; }));
  CHECK(answer.user_queue_pairs >= 0 && std::size_t(answer.user_queue_pairs) <= bytes.size());
  CHECK(answer.user_domains >= 0 && std::size_t(answer.user_domains) <= bytes.size());
  return read && answer.user_queue_pairs > 0;
}

// What is read can be written, and reads the same.
bool QosYaml(std::string_view bytes) {
  const auto ports = ParseQosYaml(bytes);
  if (!Read(ports)) return false;
  const auto again = ParseQosYaml(FormatQosYaml(*ports));
  CHECK(again && *again == *ports);
  return !ports->empty();
}

// A record that an agent of ours may have left. What is believed of it can be kept again, and reads the same.
bool QosJournal(std::string_view bytes) {
  const auto record = ParseRecord(std::string(bytes));
  if (!Read(record)) return false;
  CHECK(!record->port.empty() && record->crashes >= 0);
  const auto text = RecordText(*record);
  if (!Read(text)) {
    CHECK(text.error().code == base::Code::kTooLarge);
    return false;
  }
  const auto again = ParseRecord(*text);
  CHECK(again && *again == *record);
  return true;
}

// The files of mlx5's congestion control, of the vendor's driver where the first byte is odd, else of the kernel's, and
// those by which a writer is known. What is read of them can be published.
bool QosFiles(std::string_view bytes) {
  const bool vendor = !bytes.empty() && (std::uint8_t(bytes.front()) & 1U) != 0;
  bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 1));
  const std::string net = "sys/class/net/eth2/ecn/", kernel = "sys/kernel/debug/mlx5/0000:17:00.0/cc_params/";
  std::vector<std::string> paths{"proc/net/unix", "proc/17/comm"};
  if (vendor) {
    for (const char* name :
         {"roce_np/cnp_dscp", "roce_np/cnp_802p_prio", "roce_rp/rpg_gd", "roce_np/min_time_between_cnps"})
      paths.push_back(net + name);
    for (int priority = 0; priority < lossless::kPriorities; ++priority) {
      for (const char* half : {"roce_rp", "roce_np"})
        paths.push_back(fmt::format("{}{}/enable/{}", net, half, priority));
    }
  } else {
    for (const char* name :
         {"np_cnp_dscp", "np_cnp_prio", "np_cnp_prio_mode", "rp_gd", "np_min_time_between_cnps"})
      paths.push_back(kernel + name);
  }
  test::MemoryFileTree files;
  WriteOverZeros(bytes, paths, files);
  const QosPort port{"mlx5_0:1", "mlx5_0", 1, "eth2", "0000:17:00.0", "mlx5_core"};
  QosReading reading;
  ReadCongestion(files, port, reading);
  const auto again = crds::PortSettingsFromJson(crds::ToJson(reading.have));
  CHECK(again && *again == reading.have);
  for (const lossless::Gap& gap : reading.gaps) CHECK(!gap.reason.empty());
  CHECK(LikelyWriterOf(files, std::nullopt, lossless::Setting::kMtu) == "manual");
  const std::string writer = LikelyWriterOf(files, std::nullopt, lossless::Setting::kPfc);
  CHECK(writer == "lldpad" || writer == "manual");
  return reading.have.dcqcn.has_value();
}

// What debugfs has of Broadcom's congestion control. Each setting is read or has a reason, and can be published.
bool BnxtFiles(std::string_view bytes) {
  const std::string folder = "sys/kernel/debug/bnxt_re/0000:17:00.0/cc_config/";
  test::MemoryFileTree files;
  WriteOverZeros(bytes, {folder + "enable_cc", folder + "alt_vlan_dscp", folder + "alt_vlan_pcp"}, files);
  const QosPort port{"bnxt_re0:1", "bnxt_re0", 1, "eth2", "0000:17:00.0", "bnxt_en"};
  QosReading reading;
  ReadCongestion(files, port, reading);
  const auto again = crds::PortSettingsFromJson(crds::ToJson(reading.have));
  CHECK(again && *again == reading.have);
  const int read = int(reading.have.ecn.has_value()) + int(reading.have.cnp_dscp.has_value()) +
                   int(reading.have.cnp_priority.has_value());
  CHECK(std::size_t(read) == reading.read_only.size());
  CHECK(std::size_t(read) + reading.gaps.size() == 4);
  for (const lossless::Gap& gap : reading.gaps) CHECK(!gap.reason.empty());
  return reading.have.cnp_dscp.has_value();
}

// proc/PID/cgroup of whichever process holds a queue pair: its owner chose the names below its pod's group.
bool PodCgroup(std::string_view bytes) {
  const std::string uid = PodUidIn(bytes);
  if (uid.empty()) return false;
  CHECK(uid.size() >= 32 && uid.size() <= 36);
  CHECK(uid.find_first_not_of("0123456789abcdef-") == std::string::npos);
  CHECK(PodUidIn("0::/kubepods/pod" + uid + "/x\n") == uid);
  return true;
}

}  // namespace heddle::fuzz
