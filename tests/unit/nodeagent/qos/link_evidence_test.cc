#include "nodeagent/qos/link_evidence.h"

#include <gmock/gmock.h>

#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

class Statistics final : public EthtoolSource {
 public:
  base::Result<EthtoolStats> Read(const std::string&) override { return ParseEthtoolStats(text); }
  std::string text =
      "NIC statistics:\n rx_crc_errors_phy: 4\n rx_discards_phy: 7\n rx_pcs_symbol_err_phy: 2\n"
      " rx_prio3_pause: 9\n tx_discards_phy: 1\n";
};

QosPort PortAt(const std::string& driver) {
  return {"mlx5_0:1", "mlx5_0", 1, "eth2", "0000:17:00.0", driver};
}

void PutInterface(test::MemoryFileTree& files) {
  files.Write("sys/class/net/eth2/carrier", "1\n");
  files.Write("sys/class/net/eth2/carrier_changes", "5\n");
}

TEST(QosLinkEvidence, IsErrorsAndLossesOfTheInterfaceAndItsRdmaDevice) {
  test::MemoryFileTree files;
  PutInterface(files);
  files.Link("sys/class/infiniband/mlx5_0/device/driver", "../../../../bus/pci/drivers/mlx5_core");
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  files.Write(port + "counters/symbol_error", "3\n");
  files.Write(port + "counters/port_xmit_packets", "1000\n");
  files.Write(port + "hw_counters/out_of_sequence", "11\n");
  files.Write(port + "hw_counters/np_cnp_sent", "12\n");
  files.Write(port + "hw_counters/out_of_buffer", "N/A\n");
  Statistics statistics;
  const auto seen = ReadLinkEvidence(files, statistics, PortAt("mlx5_core"));
  ASSERT_TRUE(seen);
  EXPECT_EQ(*seen, (LinkEvidence{true,
                                 5,
                                 {{"rx_crc_errors_phy", 4},
                                  {"rx_discards_phy", 7},
                                  {"rx_pcs_symbol_err_phy", 2},
                                  {"symbol_error", 3},
                                  {"out_of_sequence", 11}}}));
}

TEST(QosLinkEvidence, OfSoftRoceIsWhatRxeCounts) {
  test::MemoryFileTree files;
  PutInterface(files);
  files.Write("sys/class/infiniband/mlx5_0/parent", "eth2\n");
  files.Write("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_seq_request", "6\n");
  Statistics statistics;
  statistics.text.clear();
  const auto seen = ReadLinkEvidence(files, statistics, PortAt(""));
  ASSERT_TRUE(seen);
  EXPECT_EQ(*seen, (LinkEvidence{true, 5, {{"out_of_seq_request", 6}}}));
}

TEST(QosLinkEvidence, OfAnInterfaceThatIsGoneIsNone) {
  const test::MemoryFileTree files;
  Statistics statistics;
  const auto seen = ReadLinkEvidence(files, statistics, PortAt("mlx5_core"));
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, base::Code::kUnavailable);
}

TEST(QosLinkEvidence, ToleratesWhatASoundLinkMakes) {
  EXPECT_EQ(ToleratedOf("rx_crc_errors_phy"), kTolerated);
  EXPECT_EQ(ToleratedOf("nobody knows it"), kTolerated);
  EXPECT_EQ(ToleratedOf("symbol_error"), kToleratedSymbols);
  EXPECT_EQ(ToleratedOf("rx_discards_phy"), kToleratedLosses);
  EXPECT_EQ(ToleratedOf("res_oos_drop_count"), kToleratedLosses) << "as Broadcom calls it";
  EXPECT_EQ(ToleratedOf(kCarrierCount), kToleratedChanges);
}

}  // namespace
}  // namespace heddle::nodeagent
