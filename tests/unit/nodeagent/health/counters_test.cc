// Counters as drivers call them, read from files in memory and from the kernel of this host.
#include "nodeagent/health/counters.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/support/memory_file_tree.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using topology::LinkState;
using topology::NicRole;
using topology::Transport;

constexpr const char* kPort = "sys/class/infiniband/mlx5_0/ports/1";

class Ethtool final : public EthtoolSource {
 public:
  base::Result<EthtoolStats> Read(const std::string& netdev) override {
    asked.push_back(netdev);
    if (!answer) return base::Fail(answer.error());
    return *answer;
  }
  base::Result<EthtoolStats> answer = base::Fail(base::Code::kNotFound, "no statistics");
  std::vector<std::string> asked;
};

struct Bed {
  Bed() {
    files.Link("sys/class/infiniband/mlx5_0/device", "../../../0000:1b:00.0");
    files.Link("sys/0000:1b:00.0/driver", "../../bus/pci/drivers/mlx5_core");
    files.Link("sys/class/net/eth1/device", "../../../0000:1b:00.0");
    Write("state", "4: ACTIVE");
    Write("phys_state", "5: LinkUp");
    files.Write("sys/class/net/eth1/carrier_changes", "3\n");
    port.key = "key";
    port.nic = port.device = "mlx5_0";
    port.netdev = "eth1";
  }
  void Write(const std::string& name, const std::string& text) {
    files.Write(fmt::format("{}/{}", kPort, name), text + "\n");
  }
  PortReading Read(Ask ask = Ask::kFiles) {
    CounterReader reader(files, ethtool);
    reader.Watch({port});
    return reader.Read(ask).ports.front();
  }

  test::MemoryFileTree files;
  Ethtool ethtool;
  WatchedPort port;
};

std::optional<std::uint64_t> ValueOf(const PortReading& reading, Counter counter, int priority = -1) {
  for (const CounterSample& sample : reading.samples) {
    if (sample.id == CounterId{counter, priority}) return sample.value;
  }
  return std::nullopt;
}

std::string WhyUnread(const PortReading& reading, Counter counter) {
  for (const UnreadCounter& unread : reading.unread) {
    if (unread.id.counter == counter) return unread.reason;
  }
  return {};
}

TEST(Counters, ReadsStateAndPortCountersOfARdmaPort) {
  Bed bed;
  bed.Write("counters/symbol_error", "12");
  bed.Write("counters/link_downed", "255");
  bed.Write("counters/port_rcv_data", "99");
  bed.Write("hw_counters/np_cnp_sent", "5");
  bed.Write("hw_counters/lifespan", "10");
  const PortReading reading = bed.Read();
  EXPECT_EQ(reading.state, LinkState::kActive);
  EXPECT_EQ(reading.phys_state, "LinkUp");
  EXPECT_EQ(reading.samples.size(), 4u);
  EXPECT_EQ(ValueOf(reading, Counter::kSymbolErrors), 12u);
  EXPECT_EQ(ValueOf(reading, Counter::kLinkDowned), 255u);
  EXPECT_EQ(ValueOf(reading, Counter::kCnpSent), 5u);
  EXPECT_EQ(ValueOf(reading, Counter::kCarrierChanges), 3u);
  EXPECT_THAT(reading.unread, IsEmpty());
  EXPECT_TRUE(reading.samples.front().width.saturates);
  EXPECT_EQ(reading.samples.front().width.max(), 255u);
}

TEST(Counters, ReadsNoFileThatItDoesNotWantAndListsNothingOnItsFastPath) {
  Bed bed;
  bed.Write("counters/symbol_error", "12");
  bed.Write("counters/port_rcv_data", "99");
  CounterReader reader(bed.files, bed.ethtool);
  reader.Watch({bed.port});
  const std::size_t before = bed.files.reads().size();
  (void)reader.Read(Ask::kFiles);
  const auto reads = bed.files.reads();
  const std::vector<std::string> pass(reads.begin() + std::ptrdiff_t(before), reads.end());
  EXPECT_THAT(pass, ElementsAre(fmt::format("{}/state", kPort), fmt::format("{}/phys_state", kPort),
                                fmt::format("{}/counters/symbol_error", kPort),
                                "sys/class/net/eth1/carrier_changes"));
  EXPECT_THAT(bed.ethtool.asked, IsEmpty());
}

TEST(Counters, SaysWhatCannotBeReadNow) {
  Bed bed;
  bed.Write("counters/symbol_error", "12");
  CounterReader reader(bed.files, bed.ethtool);
  reader.Watch({bed.port});
  const std::string path = fmt::format("{}/counters/symbol_error", kPort);
  bed.files.FailReads(path, base::Error{base::Code::kUnavailable, path + ": Input/output error", {}});
  const PortReading failed = reader.Read(Ask::kFiles).ports.front();
  EXPECT_EQ(ValueOf(failed, Counter::kSymbolErrors), std::nullopt) << "not 0";
  EXPECT_THAT(WhyUnread(failed, Counter::kSymbolErrors), HasSubstr("Input/output error"));
}

TEST(Counters, IsUnknownWhenTheStateCannotBeRead) {
  Bed bed;
  bed.Write("counters/symbol_error", "12");
  const std::string path = fmt::format("{}/state", kPort);
  bed.files.FailReads(path, base::Error{base::Code::kUnavailable, path + ": Input/output error", {}});
  const PortReading reading = bed.Read();
  EXPECT_EQ(reading.state, LinkState::kUnknown);
  EXPECT_THAT(reading.state_unread, HasSubstr("Input/output error"));
  EXPECT_EQ(ValueOf(reading, Counter::kSymbolErrors), 12u) << "everything else goes on";
}

TEST(Counters, SaysThatADeviceWentBetweenTwoLooks) {
  Bed bed;
  bed.Write("counters/symbol_error", "12");
  CounterReader reader(bed.files, bed.ethtool);
  reader.Watch({bed.port});
  bed.files.Remove("sys/class/infiniband/mlx5_0");
  const PortReading reading = reader.Read(Ask::kFiles).ports.front();
  EXPECT_EQ(reading.state, LinkState::kUnknown);
  EXPECT_THAT(reading.state_unread, Not(IsEmpty()));
  EXPECT_THAT(WhyUnread(reading, Counter::kSymbolErrors), Not(IsEmpty()));
}

TEST(Counters, TakesWhatIsNoNumberForUnreadAndNotAvailableForAbsent) {
  Bed bed;
  bed.Write("counters/symbol_error", "N/A (no PMA)");
  bed.Write("counters/link_downed", "");
  bed.Write("counters/port_rcv_errors", "-1");
  bed.Write("counters/link_error_recovery", "99999999999999999999999");
  bed.Write("hw_counters/out_of_sequence", std::string("\x00\xff\x1b[2J", 6));
  const PortReading reading = bed.Read();
  EXPECT_EQ(reading.samples.size(), 1u);
  EXPECT_EQ(WhyUnread(reading, Counter::kSymbolErrors), "");
  EXPECT_EQ(WhyUnread(reading, Counter::kReceiveErrors),
            fmt::format("{}/counters/port_rcv_errors: \"-1\" is no number", kPort));
  EXPECT_THAT(WhyUnread(reading, Counter::kLinkRecovery), HasSubstr("is no number"));
  EXPECT_THAT(WhyUnread(reading, Counter::kOutOfSequence), HasSubstr("??"));
}

struct DriverCase {
  const char* driver;
  std::vector<std::pair<const char*, Counter>> files;
};

TEST(Counters, KnowsWhatEachDriverCallsThem) {
  const std::vector<DriverCase> cases{
      {"mlx5_core",
       {{"np_cnp_sent", Counter::kCnpSent},
        {"rp_cnp_handled", Counter::kCnpHandled},
        {"packet_seq_err", Counter::kSequenceNaks},
        {"roce_adp_retrans", Counter::kAdaptiveRetransmits}}},
      {"bnxt_en",
       {{"tx_cnp_pkts", Counter::kCnpSent},
        {"rx_cnp_pkts", Counter::kCnpHandled},
        {"seq_err_naks_rcvd", Counter::kSequenceNaks},
        {"to_retransmits", Counter::kAckTimeouts}}},
      {"bnxt_en", {{"np_cnp_sent", Counter::kCnpSent}, {"rp_cnp_handled", Counter::kCnpHandled}}},
      {"ionic",
       {{"tx_rdma_cnp_pkts", Counter::kCnpSent},
        {"rx_rdma_cnp_pkts", Counter::kCnpHandled},
        {"req_rx_pkt_seq_err", Counter::kSequenceNaks}}},
      {"ice",
       {{"cnpSent", Counter::kCnpSent},
        {"cnpHandled", Counter::kCnpHandled},
        {"RxECNMrkd", Counter::kEcnMarked}}},
      {"efa",
       {{"retrans_timeout_events", Counter::kAckTimeouts},
        {"unresponsive_remote_events", Counter::kUnresponsiveRemote},
        {"rx_drops", Counter::kReceiveDiscards}}},
  };
  for (const DriverCase& one : cases) {
    SCOPED_TRACE(one.driver);
    Bed bed;
    bed.files.Remove("sys/0000:1b:00.0/driver");
    bed.files.Link("sys/0000:1b:00.0/driver", std::string("../../bus/pci/drivers/") + one.driver);
    std::uint64_t value = 100;
    for (const auto& [name, counter] : one.files)
      bed.Write(fmt::format("hw_counters/{}", name), std::to_string(++value));
    const PortReading reading = bed.Read();
    value = 100;
    for (const auto& [name, counter] : one.files) EXPECT_EQ(ValueOf(reading, counter), ++value) << name;
    EXPECT_EQ(reading.samples.size(), one.files.size() + 1);
  }
}

TEST(Counters, PrefersTheNewerOfTwoNamesThatADriverHas) {
  Bed bed;
  bed.files.Remove("sys/0000:1b:00.0/driver");
  bed.files.Link("sys/0000:1b:00.0/driver", "../../bus/pci/drivers/bnxt_en");
  bed.Write("hw_counters/np_cnp_sent", "1");
  bed.Write("hw_counters/tx_cnp_pkts", "2");
  EXPECT_EQ(ValueOf(bed.Read(), Counter::kCnpSent), 2u);
}

TEST(Counters, KnowsRxeByTheInterfaceThatItNames) {
  Bed bed;
  bed.files.Remove("sys/class/infiniband/mlx5_0/device");
  bed.files.Write("sys/class/infiniband/mlx5_0/parent", "eth1\n");
  bed.Write("hw_counters/completer_retry_err", "7");
  bed.Write("hw_counters/rcvd_seq_err", "8");
  bed.Write("hw_counters/link_downed", "9");
  const PortReading reading = bed.Read();
  EXPECT_EQ(ValueOf(reading, Counter::kAckTimeouts), 7u);
  EXPECT_EQ(ValueOf(reading, Counter::kSequenceNaks), 8u);
  EXPECT_EQ(ValueOf(reading, Counter::kLinkDowned), 9u);
}

TEST(Counters, KeepsWhatCannotBeListedInItsPlan) {
  class NoLists final : public base::FileTree {
   public:
    explicit NoLists(const base::FileTree& files) : files_(files) {}
    base::Result<std::string> Read(std::string_view path) const override { return files_.Read(path); }
    base::Result<std::vector<std::string>> List(std::string_view path) const override {
      return base::Fail(base::Code::kUnavailable, std::string(path) + ": Input/output error");
    }
    base::Result<std::string> ReadLink(std::string_view path) const override { return files_.ReadLink(path); }

   private:
    const base::FileTree& files_;
  };
  Bed bed;
  bed.Write("counters/symbol_error", "12");
  const NoLists files(bed.files);
  CounterReader reader(files, bed.ethtool);
  reader.Watch({bed.port});
  const PortReading reading = reader.Read(Ask::kFiles).ports.front();
  EXPECT_EQ(ValueOf(reading, Counter::kSymbolErrors), 12u);
  EXPECT_THAT(WhyUnread(reading, Counter::kLinkDowned), Not(IsEmpty()));
}

TEST(Counters, TakesTheStateOfAnInterfaceWithoutRdma) {
  Bed bed;
  bed.port.device.clear();
  bed.files.Write("sys/class/net/eth1/operstate", "lowerlayerdown\n");
  const PortReading reading = bed.Read();
  EXPECT_EQ(reading.state, LinkState::kDown);
  EXPECT_EQ(ValueOf(reading, Counter::kCarrierChanges), 3u);
  bed.port.netdev.clear();
  EXPECT_EQ(bed.Read().state_unread, "nothing tells its state");
}

TEST(Counters, ReadsPauseByPriorityWhereAPriorityHasARow) {
  Bed bed;
  bed.ethtool.answer = ParseEthtoolStats(
      "NIC statistics:\n     rx_prio3_pause: 41927\n     rx_prio3_pause_duration: 8134\n     tx_prio3_pause: "
      "12\n"
      "     rx_prio3_pause_transition: 7\n     tx_pause_storm_warning_events : 2\n"
      "     tx_pause_storm_error_events: 1\n     rx_prio9_pause: 5\n     rx_packets: 77\n");
  const PortReading reading = bed.Read(Ask::kFilesAndEthtool);
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 3), 41'927u);
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceivedTime, 3), 8'134u);
  EXPECT_EQ(ValueOf(reading, Counter::kPauseSent, 3), 12u);
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 0), std::nullopt)
      << "PFC is off there; that is not 0 frames";
  EXPECT_EQ(ValueOf(reading, Counter::kPauseStormWarnings), 2u)
      << "older kernels write a blank behind its name";
  EXPECT_EQ(ValueOf(reading, Counter::kPauseStorms), 1u);
  EXPECT_EQ(reading.samples.size(), 6u);
}

TEST(Counters, SaysWhichStatisticsFailedOnceItKnowsThem) {
  Bed bed;
  bed.ethtool.answer = ParseEthtoolStats("     rx_prio3_pause: 41927\n");
  CounterReader reader(bed.files, bed.ethtool);
  reader.Watch({bed.port});
  (void)reader.Read(Ask::kFilesAndEthtool);
  bed.ethtool.answer = base::Fail(base::Code::kUnavailable, "ethtool statistics of eth1: Input/output error");
  const PortReading failed = reader.Read(Ask::kFilesAndEthtool).ports.front();
  EXPECT_THAT(WhyUnread(failed, Counter::kPauseReceived), HasSubstr("Input/output error"));
  EXPECT_EQ(WhyUnread(reader.Read(Ask::kFiles).ports.front(), Counter::kPauseReceived), "")
      << "what was not asked did not fail";
}

TEST(Counters, EveryCounterHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kCounters; ++i) {
    const std::string_view name = CounterName(Counter(i));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(ParseCounter(name), Counter(i));
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << name;
  }
  EXPECT_EQ(ParseCounter("nonsense"), std::nullopt);
}

TEST(Counters, EveryAliasIsFoundByItsOwnName) {
  for (const CounterAlias& alias : CounterAliases()) {
    std::string name(alias.name);
    const std::size_t mark = name.find('#');
    if (mark != std::string::npos) name[mark] = '5';
    const auto found = FindCounter(alias.driver, alias.place, name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->id, (CounterId{alias.counter, mark == std::string::npos ? -1 : 5})) << name;
  }
}

TEST(Counters, ANameIsOfTheFirstAliasThatFitsItsPlaceAndDriver) {
  // By the table from its beginning to its end, for names that are in it, and for those next to them.
  const auto slowly = [](std::string_view driver, CounterPlace place,
                         std::string_view name) -> std::optional<std::pair<std::size_t, int>> {
    for (std::size_t rank = 0; rank < CounterAliases().size(); ++rank) {
      const CounterAlias& alias = CounterAliases()[rank];
      if (alias.place != place || (!alias.driver.empty() && alias.driver != driver)) continue;
      const std::size_t mark = alias.name.find('#');
      if (mark == std::string_view::npos && alias.name == name) return std::pair(rank, -1);
      if (mark == std::string_view::npos || alias.name.size() != name.size()) continue;
      std::string filled(alias.name);
      filled[mark] = name[mark];
      if (filled == name && name[mark] >= '0' && name[mark] <= '7') return std::pair(rank, name[mark] - '0');
    }
    return std::nullopt;
  };
  std::vector<std::string> names{
      "", "#", "rx0_packets", "rx_prio8_pause", "rx_prio#_pause", "rx_prio33_pause"};
  for (const CounterAlias& alias : CounterAliases()) {
    for (const char digit : {'0', '3', '7', '8', '#'}) {
      names.emplace_back(alias.name);
      std::replace(names.back().begin(), names.back().end(), '#', digit);
      names.push_back(names.back() + "0");
      names.push_back("0" + names.back());
    }
  }
  std::size_t found = 0;
  for (const CounterAlias& alias : CounterAliases()) {
    for (const std::string& name : names) {
      const auto quick = FindCounter(alias.driver, alias.place, name);
      const auto slow = slowly(alias.driver, alias.place, name);
      ASSERT_EQ(quick.has_value(), slow.has_value()) << alias.driver << " " << name;
      if (!slow) continue;
      ++found;
      EXPECT_EQ(quick->rank, slow->first) << alias.driver << " " << name;
      EXPECT_EQ(quick->id, (CounterId{CounterAliases()[slow->first].counter, slow->second})) << name;
    }
  }
  EXPECT_GT(found, CounterAliases().size());
}

topology::Nic NicOf(const std::string& name, const std::string& pci, const std::string& guid) {
  topology::Nic nic;
  nic.name = name;
  nic.pci = pci;
  nic.guid = guid;
  return nic;
}

TEST(Counters, KnowsAPortByItsPlaceAndGuidAndElseByItsName) {
  const auto before = NicOf("mlx5_2", "0000:1b:00.0", "0x1"), after = NicOf("mlx5_3", "0000:1b:00.0", "0x1");
  EXPECT_EQ(PortKey(before, 1), PortKey(after, 1));
  EXPECT_NE(PortKey(before, 1), PortKey(before, 2));
  EXPECT_NE(PortKey(before, 1), PortKey(NicOf("mlx5_2", "0000:1b:00.0", "0x2"), 1));
  EXPECT_NE(PortKey(NicOf("eth0", "", ""), 1), PortKey(NicOf("eth1", "", ""), 1));
}

TEST(Counters, WatchesComputeAndStorageAndNoManagement) {
  topology::Node node;
  node.nics = {NicOf("mlx5_0", "0000:1b:00.0", "0x1"), NicOf("mlx5_1", "0000:1c:00.0", "0x2"),
               NicOf("eno1", "0000:02:00.0", "")};
  node.nics[0].role = NicRole::kCompute;
  node.nics[0].transport = Transport::kInfiniBand;
  node.nics[0].ports = {{3, 0, LinkState::kActive, 800, 800, topology::LeafPort{"leaf-4", "17"}}};
  node.nics[1].role = NicRole::kStorage;
  node.nics[1].ports = {{1, 0, LinkState::kActive, 200, 200, {}}};
  node.nics[2].ports = {{1, 0, LinkState::kActive, 10, 10, {}}};
  Readings readings;
  RdmaDevice device;
  device.name = "mlx5_0";
  device.ports = {RdmaPort{3, LinkState::kActive, false, "InfiniBand", 800, 1, {}, {"ibs1"}, {}}};
  readings.rdma.devices = {device};
  const auto ports = WatchedPorts(readings, node);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].device, "mlx5_0");
  EXPECT_EQ(ports[0].device_port, 3) << "ConnectX-8 has its data on ports 3, 6, 9 and 12";
  EXPECT_EQ(ports[0].netdev, "ibs1");
  EXPECT_EQ(ports[0].leaf, "leaf-4 port 17");
  EXPECT_EQ(ports[0].rate_gbps, 800);
  EXPECT_EQ(ports[1].nic, "mlx5_1");
}

TEST(Counters, WatchesEachSlaveOfABond) {
  topology::Node node;
  node.nics = {NicOf("mlx5_bond_0", "0000:1b:00.0", "0x1")};
  node.nics[0].netdev = "bond0";
  node.nics[0].role = NicRole::kCompute;
  node.nics[0].transport = Transport::kRoce;
  node.nics[0].ports = {{1, 0, LinkState::kActive, 200, 200, {}}, {2, 0, LinkState::kActive, 200, 200, {}}};
  Readings readings;
  RdmaDevice device;
  device.name = "mlx5_bond_0";
  device.ports = {RdmaPort{}};
  readings.rdma.devices = {device};
  Netdev bond;
  bond.name = "bond0";
  bond.slaves = {"eth1", "eth2"};
  readings.net.netdevs["bond0"] = bond;
  const auto ports = WatchedPorts(readings, node);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].netdev, "eth1");
  EXPECT_EQ(ports[0].device, "mlx5_bond_0");
  EXPECT_EQ(ports[1].netdev, "eth2");
  EXPECT_EQ(ports[1].device, "") << "the bond's own counters are told once";
  EXPECT_TRUE(ports[1].of_bond);
}

TEST(Ethtool, ReadsBackWhatItWrites) {
  const EthtoolStats stats =
      ParseEthtoolStats("NIC statistics:\n     rx_packets: 5\n     a: b: 18446744073709551615\n");
  EXPECT_THAT(*stats.names, ElementsAre("rx_packets", "a: b"));
  EXPECT_THAT(stats.values, ElementsAre(5u, ~std::uint64_t(0)));
  const EthtoolStats again = ParseEthtoolStats(FormatEthtoolStats(stats));
  EXPECT_EQ(*again.names, *stats.names);
  EXPECT_EQ(again.values, stats.values);
}

TEST(Ethtool, SkipsWhatIsNoStatistic) {
  EXPECT_THAT(*ParseEthtoolStats("").names, IsEmpty());
  EXPECT_THAT(*ParseEthtoolStats(":\n: \n : 1\nx: -1\nx: 1.5\nx:1\n").names, IsEmpty());
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const EthtoolStats stats =
        ParseEthtoolStats(test::Damage("NIC statistics:\n     rx_prio3_pause: 41927\n", random));
    EXPECT_EQ(stats.names->size(), stats.values.size());
  }
}

TEST(Ethtool, AsksTheKernelOfThisHost) {
  LiveEthtool live;
  // The loopback has no statistics, and nothing has this name.
  for (const std::string netdev :
       {"lo", "no-such-netdev", "a-name-that-is-longer-than-an-interface-may-have"}) {
    const auto stats = live.Read(netdev);
    if (stats) {
      EXPECT_EQ(stats->names->size(), stats->values.size());
    } else {
      EXPECT_EQ(stats.error().code, base::Code::kNotFound) << stats.error().message;
      EXPECT_THAT(stats.error().message, HasSubstr(netdev));
    }
  }
}

TEST(Ethtool, ReadsARecordedInterface) {
  test::MemoryFileTree files;
  files.Write("ethtool/eth1", "NIC statistics:\n     rx_prio3_pause: 7\n");
  RecordedEthtool recorded(files);
  const auto stats = recorded.Read("eth1");
  ASSERT_TRUE(stats);
  EXPECT_THAT(stats->values, ElementsAre(7u));
  EXPECT_EQ(recorded.Read("eth2").error().code, base::Code::kNotFound);
}

TEST(Ethtool, KeepsTheNamesOfARecordedInterfaceUntilTheyAreOthers) {
  test::MemoryFileTree files;
  files.Write("ethtool/eth1", "NIC statistics:\n     rx_prio3_pause: 7\n");
  RecordedEthtool recorded(files);
  const auto first = recorded.Read("eth1");
  files.Write("ethtool/eth1", "NIC statistics:\n     rx_prio3_pause: 8\n");
  const auto grown = recorded.Read("eth1");
  ASSERT_TRUE(first && grown);
  EXPECT_THAT(grown->values, ElementsAre(8u));
  EXPECT_EQ(grown->names, first->names) << "the very same: nobody need search them again";
  files.Write("ethtool/eth1", "NIC statistics:\n     rx_prio4_pause: 8\n");
  const auto renamed = recorded.Read("eth1");
  ASSERT_TRUE(renamed);
  EXPECT_NE(renamed->names, first->names);
  EXPECT_THAT(*renamed->names, ElementsAre("rx_prio4_pause"));
  files.Remove("ethtool/eth1");
  EXPECT_EQ(recorded.Read("eth1").error().code, base::Code::kNotFound);
}

TEST(Counters, FindsStatisticsAnewWhereTheDriverOrItsNamesAreOthersAfterALook) {
  Bed bed;
  const auto names = [](std::vector<std::string> list) {
    return std::make_shared<const std::vector<std::string>>(std::move(list));
  };
  bed.ethtool.answer = EthtoolStats{names({"rx_prio3_pause", "rx_prio4_pause"}), {3, 4}};
  CounterReader reader(bed.files, bed.ethtool);
  reader.Watch({bed.port});
  (void)reader.Read(Ask::kFilesAndEthtool);
  reader.Watch({bed.port});
  PortReading reading = reader.Read(Ask::kFilesAndEthtool).ports.front();
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 3), 3u) << "kept over a look";
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 4), 4u);
  // As many, and other ones.
  bed.ethtool.answer = EthtoolStats{names({"rx_prio5_pause", "rx_prio4_pause"}), {5, 4}};
  reading = reader.Read(Ask::kFilesAndEthtool).ports.front();
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 3), std::nullopt);
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 5), 5u);
  // Another card behind the same name, whose driver calls nothing so.
  bed.files.Link("sys/0000:1b:00.0/driver", "../../bus/pci/drivers/bnxt_en");
  reader.Watch({bed.port});
  reading = reader.Read(Ask::kFilesAndEthtool).ports.front();
  EXPECT_EQ(ValueOf(reading, Counter::kPauseReceived, 5), std::nullopt);
}

}  // namespace
}  // namespace heddle::nodeagent
