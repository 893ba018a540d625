#include "switches/ecn_marking.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "lossless/lint.h"
#include "tests/unit/switches/sonic_port.h"

namespace heddle::switches {
namespace {

using lossless::EcnMarking;

constexpr EcnMarking kSonic{1'048'576, 2'097'152, 5};  // as LosslessPort marks priority 3

lossless::PortSettings Port() {
  return test::LosslessPort("Ethernet0", "etp1").settings;
}

TEST(EcnMarkingFault, NoneWhereTheProtectedQueueIsMarkedAsThePolicyWants) {
  EXPECT_EQ(FindMarkingFault(Port(), std::nullopt), std::nullopt);
  EXPECT_EQ(FindMarkingFault(Port(), kSonic), std::nullopt);
}

TEST(EcnMarkingFault, NamesTheGravest) {
  lossless::PortSettings port = Port();
  auto fault = FindMarkingFault(port, EcnMarking{150'000, 1'500'000, 100});
  ASSERT_TRUE(fault);
  EXPECT_EQ(MarkingReasonName(fault->reason), "OtherThanPolicy");
  EXPECT_EQ(fault->sentence,
            "priority 3 is marked from 1048576 to 2097152 bytes with up to 5 %, and the policy wants from "
            "150000 to "
            "1500000 bytes with up to 100 %");
  port.marking->at(3).max_bytes = 1'048'576;
  fault = FindMarkingFault(port, kSonic);
  ASSERT_TRUE(fault);
  EXPECT_EQ(MarkingReasonName(fault->reason), "Thresholds");
  port.ecn = lossless::PrioritySet{4};
  fault = FindMarkingFault(port, kSonic);
  ASSERT_TRUE(fault);
  EXPECT_EQ(MarkingReasonName(fault->reason), "Off");
  EXPECT_EQ(fault->sentence, "lossless priority 3 is not marked");
}

TEST(EcnMarkingFault, AMarkingThatNeverMarksIsAFault) {
  lossless::PortSettings port = Port();
  port.marking->at(3).probability_percent = 0;
  const auto fault = FindMarkingFault(port, std::nullopt);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->reason, MarkingReason::kThresholds);
}

TEST(EcnMarkingFault, NothingIsSaidOfWhatNobodyKnowsOrPfcDoesNotProtect) {
  lossless::PortSettings port = Port();
  port.marking->emplace(1, EcnMarking{5, 1, 0});
  EXPECT_EQ(FindMarkingFault(port, kSonic), std::nullopt) << "priority 1 may lose packets";
  port = Port();
  port.marking.reset();
  port.ecn.reset();
  EXPECT_EQ(FindMarkingFault(port, kSonic), std::nullopt);
  EXPECT_EQ(FindMarkingFault({}, kSonic), std::nullopt);
}

TEST(EcnMarkingFault, IsWhatTheLinterFindsInTheSamePort) {
  const auto lints = [](const lossless::PortSettings& port, std::string_view rule) {
    lossless::Subject subject;
    subject.name = "Ethernet0";
    subject.end = lossless::End::kSwitch;
    subject.settings = port;
    const std::vector<lossless::Finding> findings = lossless::Lint({subject});
    return std::any_of(findings.begin(), findings.end(), [&](const auto& one) { return one.rule == rule; });
  };
  const auto faults = [](const lossless::PortSettings& port, MarkingReason reason) {
    const auto fault = FindMarkingFault(port, std::nullopt);
    return fault && fault->reason == reason;
  };
  std::vector<lossless::PortSettings> ports(5, Port());
  ports[1].ecn = lossless::PrioritySet{};
  ports[2].ecn.reset();
  ports[3].marking->at(3).probability_percent = 0;
  ports[4].marking->at(3).min_bytes = ports[4].marking->at(3).max_bytes;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    EXPECT_EQ(lints(ports[i], "ecn-off"), i == 1) << i;
    EXPECT_EQ(faults(ports[i], MarkingReason::kOff), i == 1) << i;
    EXPECT_EQ(lints(ports[i], "ecn-thresholds"), i >= 3) << i;
    EXPECT_EQ(faults(ports[i], MarkingReason::kThresholds), i >= 3) << i;
  }
}

}  // namespace
}  // namespace heddle::switches
