#include "nodeagent/qos/kernel_port_io.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/ethtool.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "lossless/compare.h"
#include "lossless/policy.h"
#include "lossless/render.h"
#include "nodeagent/qos/dcb_settings.h"
#include "nodeagent/qos/decide.h"
#include "nodeagent/qos/likely_writer.h"
#include "nodeagent/qos/link_evidence.h"
#include "nodeagent/qos/loop.h"
#include "recorded_machine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_port_io.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using lossless::Algorithm;
using lossless::kNotSaid;
using lossless::PortSettings;
using lossless::Setting;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A driver that does as mlx5 does, or, with `coexist`, keeps several entries of one DSCP as most others do.
struct Driver {
  DcbState state;
  std::map<std::string, int> fails;  // errno by what is written
  std::vector<std::string> written;
  std::map<int, int>
      nic;  // priority by DSCP, as bnxt_en's firmware has it: a deletion takes whatever is there
  bool coexist = false;
  bool gone = false;

  base::Status Note(const std::string& what) {
    written.push_back(what);
    if (gone) return base::Fail(KernelError(ENODEV, "DCB", "eth2"));
    if (fails.contains(what)) return base::Fail(KernelError(fails[what], "DCB", "eth2"));
    return {};
  }
};

class FakeDcb final : public DcbDevice {
 public:
  explicit FakeDcb(Driver& driver) : driver_(driver) {}
  base::Result<DcbState> Read(const std::string& netdev) override {
    if (driver_.gone) return base::Fail(KernelError(ENODEV, "DCB", netdev));
    return driver_.state;
  }
  base::Status Change(const std::string& /*netdev*/, const DcbChange& change) override {
    if (change.ets) {
      TRY(driver_.Note("ets"));
      driver_.state.ets = change.ets;
    }
    if (change.buffer) {
      TRY(driver_.Note("buffer"));
      driver_.state.buffer = change.buffer;
    }
    if (change.pfc) {
      TRY(driver_.Note("pfc"));
      driver_.state.pfc = change.pfc;
    }
    if (change.trust) {
      TRY(driver_.Note("trust"));
      driver_.state.trust = change.trust;
    }
    auto& apps = driver_.state.apps;
    for (const DcbApp& app : change.apps) {
      TRY(driver_.Note(fmt::format("app {}:{}", app.protocol, app.priority)));
      if (!driver_.coexist)
        std::erase_if(apps, [&app](const DcbApp& old) { return old.protocol == app.protocol; });
      apps.push_back(app);
      driver_.nic[app.protocol] = app.priority;
    }
    return {};
  }
  base::Status DeleteApps(const std::string& /*netdev*/, const std::vector<DcbApp>& apps) override {
    for (const DcbApp& app : apps) {
      TRY(driver_.Note(fmt::format("delete {}:{}", app.protocol, app.priority)));
      if (std::erase(driver_.state.apps, app) == 0) return base::Fail(KernelError(ENOENT, "DCB", "eth2"));
      driver_.nic.erase(app.protocol);
    }
    return {};
  }
  base::Status ChangeDcbx(const std::string& /*netdev*/, int flags) override {
    TRY(driver_.Note("dcbx"));
    driver_.state.dcbx = flags;
    return {};
  }

 private:
  Driver& driver_;
};

class FakeFec final : public FecCoding {
 public:
  std::optional<lossless::Fec> Read(const std::string&) override { return lossless::Fec::kReedSolomon; }
};

class FakeWatchdog final : public PfcWatchdog {
 public:
  FakeWatchdog(Driver& driver, std::optional<int>& value) : driver_(driver), value_(value) {}
  base::Result<int> Read(const std::string& netdev) override {
    if (!value_) return base::Fail(KernelError(EOPNOTSUPP, "the PFC watchdog", netdev));
    return *value_;
  }
  base::Status Write(const std::string& /*netdev*/, int milliseconds) override {
    TRY(driver_.Note("watchdog"));
    value_ = milliseconds;
    return {};
  }

 private:
  Driver& driver_;
  std::optional<int>& value_;
};

// Nothing: the driver has no such setting.
class FakePause final : public GlobalPauseDevice {
 public:
  FakePause(Driver& driver, std::optional<lossless::GlobalPause>& value) : driver_(driver), value_(value) {}
  base::Result<lossless::GlobalPause> Read(const std::string& netdev) override {
    if (driver_.fails.contains("read pause"))
      return base::Fail(KernelError(driver_.fails["read pause"], "global pause", netdev));
    if (!value_) return base::Fail(KernelError(EOPNOTSUPP, "global pause", netdev));
    return *value_;
  }
  base::Status Write(const std::string& /*netdev*/, lossless::GlobalPause pause) override {
    TRY(driver_.Note("pause"));
    value_ = pause;
    return {};
  }

 private:
  Driver& driver_;
  std::optional<lossless::GlobalPause>& value_;
};

// Users by RDMA device. Of one that is not there nobody can say.
using Users = std::map<std::string, int>;
class FakeQueuePairs final : public QueuePairs {
 public:
  explicit FakeQueuePairs(const Users& users) : users_(users) {}
  base::Result<int> CountUsers(const std::string& rdma_device) override {
    const auto found = users_.find(rdma_device);
    if (found == users_.end())
      return base::Fail(Code::kUnavailable, rdma_device + ": there is no such RDMA device");
    return found->second;
  }
  std::vector<std::string> Holders(const std::string& rdma_device) override {
    const auto found = users_.find(rdma_device);
    if (found == users_.end() || found->second == 0) return {};
    return {"nccl (pid 7)", "user of " + rdma_device};
  }

 private:
  const Users& users_;
};

class FakeStatistics final : public EthtoolSource {
 public:
  base::Result<EthtoolStats> Read(const std::string& /*netdev*/) override {
    return ParseEthtoolStats(
        "NIC statistics:\n rx_crc_errors_phy: 4\n rx_prio3_pause: 9\n link_down_events_phy: 1\n");
  }
};

constexpr const char* kVendor = "sys/class/net/eth2/ecn";
constexpr const char* kCongestion = "sys/kernel/debug/mlx5/0000:17:00.0/cc_params";
constexpr const char* kRdmaCm = "sys/kernel/config/rdma_cm";

class Ports : public testing::Test {
 protected:
  Ports() {
    port_.name = "mlx5_0:1";
    port_.rdma_device = "mlx5_0";
    port_.netdev = "eth2";
    port_.pci_address = "0000:17:00.0";
    port_.driver = "mlx5_core";
    Put("sys/class/net/eth2/mtu", "1500");
    Put("sys/class/net/eth2/carrier", "1");
    Put("sys/class/net/eth2/carrier_changes", "5");
    driver_.state.dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE | DCB_CAP_DCBX_VER_CEE;
    driver_.state.pfc.emplace().delay = 7;
    ieee_ets& ets = driver_.state.ets.emplace();
    for (std::uint8_t i = 0; i < 8; ++i) {
      ets.prio_tc[i] = i;
      ets.tc_tsa[i] = IEEE_8021QAZ_TSA_VENDOR;
    }
    driver_.state.buffer.emplace().buffer_size[0] = 262'016;
    QosSources sources;
    sources.files = std::make_unique<SettingFiles>(folder_.path());
    sources.dcb = std::make_unique<FakeDcb>(driver_);
    sources.watchdog = std::make_unique<FakeWatchdog>(driver_, watchdog_);
    sources.queue_pairs = std::make_unique<FakeQueuePairs>(users_);
    sources.statistics = std::make_unique<FakeStatistics>();
    sources.fec = std::make_unique<FakeFec>();
    sources.pause = std::make_unique<FakePause>(driver_, pause_);
    io_ = std::make_unique<KernelPortIo>(std::move(sources));
  }

  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + "/" + path).parent_path());
    folder_.Write(path, text + "\n");
  }
  std::string At(const std::string& path) const {
    return base::ReadTrimmed(base::DiskFileTree(folder_.path()), path).value_or("nothing");
  }
  // A virtual function of the port; without a driver where that is empty, without an RDMA device likewise.
  void PutFunction(int number, const std::string& driver, const std::string& rdma_device) {
    namespace fs = std::filesystem;
    const fs::path devices = folder_.path() + "/sys/bus/pci/devices";
    const std::string name = fmt::format("0000:17:00.{}", number + 2);
    fs::create_directories(devices / name);
    fs::create_directories(devices / port_.pci_address);
    fs::create_symlink("../" + name, devices / port_.pci_address / fmt::format("virtfn{}", number));
    if (!driver.empty()) fs::create_symlink("../../drivers/" + driver, devices / name / "driver");
    if (!rdma_device.empty()) fs::create_directories(devices / name / "infiniband" / rdma_device);
  }
  void PutCongestionFiles() {
    for (const char* name : {"rp_ai_rate", "rp_hai_rate", "np_cnp_dscp", "np_cnp_prio", "np_cnp_prio_mode"})
      Put(fmt::format("{}/{}", kCongestion, name), "0");
  }
  std::string GapOf(Setting setting) {
    const QosReading reading = io_->Read(port_);
    for (const lossless::Gap& gap : reading.gaps) {
      if (gap.setting == setting) return gap.reason;
    }
    return {};
  }
  // Writes all that `want` says.
  base::Status WriteAll(const PortSettings& want) {
    std::vector<Setting> settings;
    lossless::ForEachHostSetting([&](Setting setting, auto member) {
      if (want.*member) settings.push_back(setting);
    });
    return io_->Write(port_, settings, want);
  }

  test::TemporaryFolder folder_;
  Driver driver_;
  std::optional<int> watchdog_ = 0;
  std::optional<lossless::GlobalPause> pause_;
  Users users_{{"mlx5_0", 2}};
  QosPort port_;
  std::unique_ptr<KernelPortIo> io_;
};

PortSettings Lossless() {
  PortSettings want;
  want.dcbx = lossless::Dcbx::kHost;
  want.trust = lossless::Trust::kDscp;
  want.dscp_to_priority = lossless::AllDscps(0);
  (*want.dscp_to_priority)[26] = 3;
  (*want.dscp_to_priority)[48] = 6;
  want.pfc = {3};
  want.watchdog_ms = lossless::kWatchdogAuto;
  want.priority_to_class = {0, 0, 0, 3, 0, 0, 6, 0};
  want.class_algorithm.emplace().fill(Algorithm::kAny);
  want.class_algorithm->at(0) = want.class_algorithm->at(3) = Algorithm::kEts;
  want.class_algorithm->at(6) = Algorithm::kStrict;
  want.class_percent = {50, kNotSaid, kNotSaid, 50, kNotSaid, kNotSaid, kNotSaid, kNotSaid};
  want.mtu = 9000;
  return want;
}

TEST_F(Ports, SayWhatIsSetAndOfAllElseWhyNot) {
  const QosReading reading = io_->Read(port_);
  EXPECT_FALSE(reading.gone);
  EXPECT_EQ(reading.have.dcbx, lossless::Dcbx::kHost);
  EXPECT_EQ(reading.have.trust, lossless::Trust::kPcp);
  EXPECT_EQ(reading.have.dscp_to_priority, lossless::AllDscps(kNotSaid));
  EXPECT_EQ(reading.have.pfc, lossless::PrioritySet{});
  EXPECT_EQ(reading.have.cable_metres, 7);
  EXPECT_EQ(reading.have.watchdog_ms, 0);
  EXPECT_EQ(reading.have.priority_to_class, lossless::Identity());
  EXPECT_EQ(reading.have.class_algorithm->at(0), Algorithm::kVendor);
  EXPECT_EQ(reading.have.class_percent->at(0), kNotSaid);
  EXPECT_EQ(reading.have.buffer_bytes->at(0), 262'016);
  EXPECT_EQ(reading.have.mtu, 1500);
  std::vector<Setting> gaps;
  for (const lossless::Gap& gap : reading.gaps) gaps.push_back(gap.setting);
  EXPECT_THAT(gaps, ElementsAre(Setting::kEcn, Setting::kCnpDscp, Setting::kCnpPriority, Setting::kTos,
                                Setting::kDcqcn));
  EXPECT_THAT(GapOf(Setting::kEcn), HasSubstr("debugfs must be mounted"));
  EXPECT_THAT(GapOf(Setting::kTos), HasSubstr("load rdma_cm"));
}

TEST_F(Ports, BecomeLosslessAndThenNothingIsWritten) {
  ASSERT_TRUE(WriteAll(Lossless()));
  EXPECT_TRUE(lossless::Compare(Lossless(), io_->Read(port_).have).compliant());
  std::vector<std::string> other;
  for (const std::string& what : driver_.written) {
    if (!what.starts_with("app ")) other.push_back(what);
  }
  // The watchdog stands before PFC; DCBX was right already.
  EXPECT_THAT(other, ElementsAre("ets", "watchdog", "pfc"));
  EXPECT_EQ(At("sys/class/net/eth2/mtu"), "9000");
  driver_.written.clear();
  ASSERT_TRUE(WriteAll(Lossless()));
  EXPECT_THAT(driver_.written, IsEmpty());
}

TEST_F(Ports, LoseGlobalPauseBeforePfcComesAndGetItBackAfterPfcWent) {
  EXPECT_FALSE(io_->Read(port_).have.global_pause) << "the driver has none";
  EXPECT_EQ(GapOf(Setting::kGlobalPause), "") << "which is nothing to be told";
  driver_.fails["read pause"] = EPERM;
  EXPECT_THAT(GapOf(Setting::kGlobalPause), HasSubstr("CAP_NET_ADMIN"));
  driver_.fails.clear();
  pause_ = lossless::GlobalPause::kBoth;
  const PortSettings before = io_->Read(port_).have;
  EXPECT_EQ(before.global_pause, lossless::GlobalPause::kBoth);
  PortSettings want;
  want.pfc = {3};
  want = lossless::WithWhatFollows(want);
  ASSERT_TRUE(WriteAll(want));
  EXPECT_THAT(driver_.written, ElementsAre("pause", "pfc"));
  EXPECT_EQ(pause_, lossless::GlobalPause::kNone);
  driver_.written.clear();
  ASSERT_TRUE(WriteAll(want));
  EXPECT_THAT(driver_.written, IsEmpty());
  const std::array settings{Setting::kPfc, Setting::kGlobalPause};
  ASSERT_TRUE(io_->WriteBack(port_, settings, before));
  EXPECT_THAT(driver_.written, ElementsAre("pfc", "pause"));
  EXPECT_EQ(io_->Read(port_).have, before);
  driver_.fails["pause"] = EOPNOTSUPP;
  const auto refused = WriteAll(want);
  EXPECT_EQ(refused.error().code, Code::kUnimplemented);
  EXPECT_TRUE(refused.error().message.starts_with("globalPause: ")) << refused.error().message;
}

TEST_F(Ports, OfATableOnlyWhatDiffersIsSent) {
  ASSERT_TRUE(WriteAll(Lossless()));
  driver_.written.clear();
  for (DcbApp& app : driver_.state.apps) {
    if (app.protocol == 26) app.priority = 4;
  }
  ASSERT_TRUE(WriteAll(Lossless()));
  EXPECT_THAT(driver_.written, ElementsAre("app 26:3")) << "mlx5 takes the new entry for the old one";
  driver_.coexist = true;
  driver_.state.apps.push_back({5, 26, 7});
  driver_.written.clear();
  ASSERT_TRUE(WriteAll(Lossless()));
  EXPECT_THAT(driver_.written, ElementsAre("delete 26:7"));
  for (DcbApp& app : driver_.state.apps) {
    if (app.protocol == 48) app.priority = 1;
  }
  driver_.written.clear();
  ASSERT_TRUE(WriteAll(Lossless()));
  EXPECT_THAT(driver_.written, ElementsAre("app 48:6", "delete 48:1"));
}

TEST_F(Ports, OfADriverThatDeletesByDscpTheOldEntryGoesBeforeTheNewOneComes) {
  port_.driver = "bnxt_en";
  driver_.coexist = true;
  const PortSettings want = Lossless();
  const std::vector<Setting> dscps{Setting::kDscpToPriority};
  const auto write = [&] {
    driver_.written.clear();
    return io_->Write(port_, dscps, want);
  };
  const auto nic_is_right = [&] {
    for (int dscp = 0; dscp < 64; ++dscp) {
      if (!driver_.nic.contains(dscp) || driver_.nic[dscp] != (*want.dscp_to_priority)[std::size_t(dscp)])
        return false;
    }
    return true;
  };
  driver_.state.apps = {{5, 26, 7}};
  driver_.nic = {{26, 7}};
  ASSERT_TRUE(write());
  // All others come first, so that there is always one.
  ASSERT_EQ(driver_.written.size(), 65u);
  EXPECT_EQ(driver_.written[63], "delete 26:7");
  EXPECT_EQ(driver_.written[64], "app 26:3");
  EXPECT_TRUE(nic_is_right());
  // A second entry beside the right one.
  driver_.state.apps.push_back({5, 48, 1});
  driver_.nic[48] = 1;
  ASSERT_TRUE(write());
  EXPECT_THAT(driver_.written, ElementsAre("delete 48:1", "delete 48:6", "app 48:6"));
  EXPECT_TRUE(nic_is_right());
  EXPECT_EQ(io_->Read(port_).have.dscp_to_priority, want.dscp_to_priority);
  ASSERT_TRUE(write());
  EXPECT_THAT(driver_.written, IsEmpty());
}

// mlx5 puts a DSCP whose entry is deleted at priority 0 and one that nobody touched at dscp >> 3: 26 would be 3.
TEST_F(Ports, ADscpWithoutAnEntryIsNotSaidToBeRight) {
  ASSERT_TRUE(WriteAll(Lossless()));
  std::erase(driver_.state.apps, DcbApp{5, 26, 3});
  const QosReading reading = io_->Read(port_);
  EXPECT_EQ(reading.have.trust, lossless::Trust::kDscp);
  EXPECT_EQ((*reading.have.dscp_to_priority)[26], kNotSaid);
  EXPECT_THAT(lossless::Compare(Lossless(), reading.have).drifts,
              ElementsAre(lossless::Drift{Setting::kDscpToPriority, "DSCP 26: 3", "DSCP 26: nothing"}));
}

TEST_F(Ports, TrustIsInAppEntriesATableOrAFile) {
  PortSettings want;
  want.trust = lossless::Trust::kPcp;
  driver_.state.apps = {{1, 0, 0}, {5, 26, 3}, {5, 48, 6}};
  ASSERT_TRUE(WriteAll(want));
  EXPECT_THAT(driver_.written, ElementsAre("delete 26:3", "delete 48:6"));
  EXPECT_EQ(io_->Read(port_).have.trust, lossless::Trust::kPcp);

  driver_.written.clear();
  driver_.state.trust = {{kSelectPcp, 4}};
  want.trust = lossless::Trust::kDscp;
  ASSERT_TRUE(WriteAll(want));
  EXPECT_THAT(driver_.written, ElementsAre("trust"));
  EXPECT_THAT(*driver_.state.trust, ElementsAre(5, 4));
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(driver_.written.size(), 1u);

  driver_.state.trust.reset();
  Put("sys/class/net/eth2/qos/trust", "pcp");
  EXPECT_EQ(io_->Read(port_).have.trust, lossless::Trust::kPcp);
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(At("sys/class/net/eth2/qos/trust"), "dscp");
}

TEST_F(Ports, TrustInDscpsNeedsADscpWhereTheDriverHasNoOtherWord) {
  PortSettings want;
  want.trust = lossless::Trust::kDscp;
  EXPECT_EQ(WriteAll(want).error().code, Code::kUnimplemented);
  want.dscp_to_priority = lossless::AllDscps(kNotSaid);
  EXPECT_EQ(WriteAll(want).error().code, Code::kUnimplemented) << "an empty map flips nothing";
  // Both at once: the first entry is what flips it, and none is sent twice.
  (*want.dscp_to_priority)[26] = 3;
  ASSERT_TRUE(WriteAll(want));
  EXPECT_THAT(driver_.written, ElementsAre("app 26:3"));
  want.trust = lossless::Trust::kPcp;
  EXPECT_THAT(WriteAll(want).error().message, HasSubstr("PCP is wanted"));
}

// What a port was before is what a failed apply writes back.
TEST_F(Ports, WhatAPortWasCanBeWrittenBack) {
  const auto sum = [this] {
    int bytes = 0;
    for (const std::uint8_t share : driver_.state.ets->tc_tx_bw) bytes += share;
    return bytes;
  };
  for (const bool dscps : {false, true}) {
    if (dscps) driver_.state.apps = {{5, 8, 1}, {5, 26, 2}};
    driver_.state.ets->tc_tsa[2] = dscps ? IEEE_8021QAZ_TSA_ETS : IEEE_8021QAZ_TSA_VENDOR;
    driver_.state.ets->tc_tx_bw[2] = dscps ? 100 : 0;
    const PortSettings before = io_->Read(port_).have;
    ASSERT_TRUE(WriteAll(Lossless()));
    EXPECT_EQ(sum(), 100);
    ASSERT_TRUE(WriteAll(before));
    EXPECT_TRUE(lossless::Compare(before, io_->Read(port_).have).compliant());
    EXPECT_EQ(sum(), dscps ? 100 : 0);
  }
}

// The whole loop over a driver that has neither a table of what is trusted nor qos/trust, as the kernel's own mlx5.
class PortsOfAPolicy : public Ports {
 protected:
  PortsOfAPolicy() {
    users_ = {{"mlx5_0", 0}};
    driver_.state.apps = {{5, 26, 3}, {5, 48, 6}};
    lossless::Policy tags;
    tags.trust = lossless::Trust::kPcp;
    tags.pfc = tags.ecn = lossless::PrioritySet{};
    const auto resolved = lossless::Resolve(tags);
    wish_.ports = {port_.name};
    wish_.policies = {"lossy-vlans"};
    wish_.generation = 1;
    wish_.mode = crds::LosslessMode::kApply;
    wish_.settings =
        lossless::Render(*resolved, {.transport = topology::Transport::kRoce, .device = ""}).settings;
  }
  // What an agent says of the port ten minutes after it was told.
  crds::LosslessReport Followed() {
    LosslessReadings readings;
    QosCallbacks callbacks;
    callbacks.on_readings = [&readings](const LosslessReadings& now) { readings = now; };
    QosLoopOptions options;
    options.may_write = true;
    QosLoop loop(*io_, gate_, journal_, clock_, options, callbacks);
    loop.Have({port_});
    loop.Want({wish_});
    const base::MonotonicTime end = clock_.Now() + std::chrono::minutes(10);
    while (clock_.Now() < end) {
      if (!loop.RunOnce()) clock_.AdvanceTo(std::min(end, loop.NextDue().value_or(end)));
    }
    const auto* report = readings.reports ? ReportOf(*readings.reports, port_.name) : nullptr;
    return report == nullptr ? crds::LosslessReport() : *report;
  }

  test::FakeClock clock_;
  NoDeviceGate gate_;
  test::FakeJournal journal_;
  crds::LosslessWish wish_;
};

TEST_F(PortsOfAPolicy, ThatTrustTheTagLoseTheirDscpsAndAreCompliant) {
  const crds::LosslessReport report = Followed();
  EXPECT_EQ(report.state, crds::LosslessState::kCompliant) << report.reason;
  ASSERT_TRUE(report.have);
  EXPECT_EQ(report.have->trust, lossless::Trust::kPcp);
  EXPECT_TRUE(report.drift.empty());
  EXPECT_TRUE(driver_.state.apps.empty());
  for (const std::string& what : driver_.written) EXPECT_FALSE(what.starts_with("app ")) << what;
  driver_.written.clear();
  EXPECT_EQ(Followed().state, crds::LosslessState::kCompliant);
  EXPECT_THAT(driver_.written, IsEmpty());
}

TEST_F(PortsOfAPolicy, ThatTrustTheTagKeepTheirDscpsWhereTheDriverHasAWordForTrust) {
  driver_.state.trust = {{5, kSelectPcp}};
  EXPECT_EQ(Followed().state, crds::LosslessState::kCompliant);
  EXPECT_EQ(driver_.state.apps.size(), 2u) << "they are not in force";
}

TEST_F(PortsOfAPolicy, HaveTheirDscpsAgainWhereTheWriteThatTookThemIsTakenBack) {
  const PortSettings before = io_->Read(port_).have;
  driver_.fails["ets"] = EINVAL;
  const crds::LosslessReport report = Followed();
  EXPECT_EQ(report.state, crds::LosslessState::kFailed);
  EXPECT_THAT(report.reason, HasSubstr("what was there before is set again; nothing more"));
  EXPECT_THAT(driver_.written, Contains("delete 26:3"));
  EXPECT_EQ(io_->Read(port_).have, before);
}

TEST_F(Ports, SharesGoInOneMessageThatTheKernelTakes) {
  driver_.state.ets->tc_tsa[1] = IEEE_8021QAZ_TSA_ETS;
  driver_.state.ets->tc_tx_bw[1] = 100;
  ASSERT_TRUE(WriteAll(Lossless()));
  const ieee_ets& ets = *driver_.state.ets;
  EXPECT_EQ(ets.tc_tx_bw[0] + ets.tc_tx_bw[3], 100);
  EXPECT_EQ(ets.tc_tx_bw[1], 0);
  EXPECT_EQ(ets.tc_tsa[1], IEEE_8021QAZ_TSA_STRICT) << "nobody gave it a share, and the sum must be 100";
  EXPECT_EQ(ets.tc_tsa[2], IEEE_8021QAZ_TSA_VENDOR) << "nothing was asked of it";
  EXPECT_EQ(std::count(driver_.written.begin(), driver_.written.end(), "ets"), 1);
}

TEST_F(Ports, StopAtTheFirstThatFailsAndNameIt) {
  driver_.fails["ets"] = EBUSY;
  const auto written = WriteAll(Lossless());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable);
  EXPECT_THAT(written.error().message, HasSubstr("priorityToClass, classAlgorithm, classPercent: "));
  EXPECT_EQ(driver_.state.pfc->pfc_en, 0);
  EXPECT_THAT(driver_.written, testing::Not(Contains("pfc")));
  driver_.fails["ets"] = EPERM;
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kForbidden);
  driver_.fails["ets"] = 524;
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kUnimplemented);
  driver_.fails["ets"] = EINVAL;
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kInvalid);
  driver_.fails.clear();
  watchdog_.reset();
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kUnimplemented);
  EXPECT_EQ(driver_.state.pfc->pfc_en, 0) << "never PFC without its watchdog";
}

TEST_F(Ports, AnInterfaceThatGoesIsGoneAndNotBroken) {
  driver_.gone = true;
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kUnavailable);
  std::filesystem::remove_all(folder_.path() + "/sys/class/net/eth2");
  EXPECT_EQ(io_->Read(port_), (QosReading{{}, {}, true}));
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kUnavailable);
  EXPECT_EQ(io_->Link(port_).error().code, Code::kUnavailable);
}

TEST_F(Ports, AnInterfaceThatIsAnotherNicsNowIsGone) {
  const std::string device = folder_.path() + "/sys/class/net/eth2/device";
  std::filesystem::create_symlink("../../../0000:17:00.0", device);
  EXPECT_FALSE(io_->Read(port_).gone);
  std::filesystem::remove(device);
  std::filesystem::create_symlink("../../../0000:65:00.0", device);
  EXPECT_TRUE(io_->Read(port_).gone);
  EXPECT_EQ(WriteAll(Lossless()).error().code, Code::kUnavailable);
  EXPECT_THAT(driver_.written, IsEmpty());
  port_.pci_address.clear();
  EXPECT_FALSE(io_->Read(port_).gone) << "nobody knows which NIC it is";
  std::filesystem::remove(device);
  std::filesystem::create_symlink("../../../mlx5_core.sf.4", device);
  port_.pci_address = "0000:17:00.0";
  EXPECT_FALSE(io_->Read(port_).gone) << "a subfunction has no address";
}

TEST_F(Ports, FirmwareThatOwnsDcbxIsAskedToLetGo) {
  driver_.state.dcbx = DCB_CAP_DCBX_VER_IEEE;
  EXPECT_EQ(io_->Read(port_).have.dcbx, lossless::Dcbx::kFirmware);
  EXPECT_EQ(io_->LikelyWriter(port_, Setting::kPfc), "firmware DCBX");
  EXPECT_EQ(io_->LikelyWriter(port_, Setting::kMtu), "manual");
  PortSettings want;
  want.dcbx = lossless::Dcbx::kHost;
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(driver_.state.dcbx, DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE);
  driver_.state.dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_LLD_MANAGED | DCB_CAP_DCBX_VER_IEEE;
  EXPECT_EQ(io_->Read(port_).have.dcbx, lossless::Dcbx::kFirmware);
}

TEST_F(Ports, FirmwareGetsTheSayBackOnceAllElseIsAsBefore) {
  driver_.state.dcbx = DCB_CAP_DCBX_VER_IEEE;
  const PortSettings before = io_->Read(port_).have;
  PortSettings want;
  want.dcbx = lossless::Dcbx::kHost;
  want.pfc = {3};
  ASSERT_TRUE(WriteAll(want));
  EXPECT_THAT(driver_.written, ElementsAre("dcbx", "pfc"));
  driver_.written.clear();
  const std::array settings{Setting::kDcbx, Setting::kPfc};
  ASSERT_TRUE(io_->WriteBack(port_, settings, before));
  EXPECT_THAT(driver_.written, ElementsAre("pfc", "dcbx"));
  EXPECT_EQ(io_->Read(port_).have.dcbx, lossless::Dcbx::kFirmware);
}

TEST_F(Ports, TheOldKindOfDcbxIsDriftThatIsMendedAndTakenBack) {
  driver_.state.dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_CEE;
  EXPECT_EQ(io_->Read(port_).have.dcbx, lossless::Dcbx::kHostCee);
  PortSettings want;
  want.dcbx = lossless::Dcbx::kHost;
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(driver_.state.dcbx, DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE);
  want.dcbx = lossless::Dcbx::kHostCee;
  const std::array settings{Setting::kDcbx};
  ASSERT_TRUE(io_->WriteBack(port_, settings, want));
  EXPECT_EQ(driver_.state.dcbx, DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_CEE);
}

TEST_F(Ports, DscpsThatHadNoEntryHaveNoneWhenTheyAreWrittenBack) {
  driver_.state.apps = {{IEEE_8021QAZ_APP_SEL_DSCP, 26, 4}, {IEEE_8021QAZ_APP_SEL_ANY, 4791, 3}};
  const PortSettings before = io_->Read(port_).have;
  PortSettings want;
  want.dscp_to_priority = lossless::AllDscps(0);
  want.dscp_to_priority->at(26) = 3;
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(DscpApps(driver_.state.apps).size(), 64u);
  const std::vector<Setting> settings{Setting::kDscpToPriority};
  EXPECT_EQ(NotBack(settings, before, io_->Read(port_).have), settings);
  ASSERT_TRUE(io_->WriteBack(port_, settings, before));
  // What is no DSCP's is nobody's business.
  const std::vector<DcbApp> left{{IEEE_8021QAZ_APP_SEL_ANY, 4791, 3}, {IEEE_8021QAZ_APP_SEL_DSCP, 26, 4}};
  EXPECT_EQ(driver_.state.apps, left);
  EXPECT_TRUE(NotBack(settings, before, io_->Read(port_).have).empty());
}

TEST_F(Ports, CongestionControlIsInTheKernelsDebugfs) {
  PutCongestionFiles();
  EXPECT_EQ(io_->Read(port_).have.cnp_dscp, 0);
  EXPECT_EQ(io_->Read(port_).have.dcqcn->size(), 2u);
  EXPECT_THAT(GapOf(Setting::kEcn), HasSubstr("ROCE_CC_PRIO_MASK_P1"));
  PortSettings want;
  want.cnp_dscp = 48;
  want.cnp_priority = 6;
  want.dcqcn = {{lossless::DcqcnParameter::kRpAiRate, 5}};
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(At(fmt::format("{}/np_cnp_dscp", kCongestion)), "48");
  EXPECT_EQ(At(fmt::format("{}/rp_ai_rate", kCongestion)), "5");
  EXPECT_TRUE(lossless::Compare(want, io_->Read(port_).have).compliant());
  Put(fmt::format("{}/np_cnp_prio_mode", kCongestion), "1");
  EXPECT_THAT(GapOf(Setting::kCnpPriority), HasSubstr("np_cnp_prio_mode"));
  ASSERT_EQ(io_->Read(port_).left_to_firmware.size(), 1U);
  EXPECT_EQ(io_->Read(port_).left_to_firmware[0].setting, Setting::kCnpPriority);
  // The number that is wanted stands there already, and is written all the same: the kernel makes the mode 0 by it.
  Put(fmt::format("{}/np_cnp_prio", kCongestion), "06");
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(At(fmt::format("{}/np_cnp_prio", kCongestion)), "6");
  Put(fmt::format("{}/np_cnp_dscp", kCongestion), "many");
  EXPECT_THAT(GapOf(Setting::kCnpDscp), HasSubstr("\"many\" is no number"));
  want.dcqcn = {{lossless::DcqcnParameter::kRpGd, 5}};
  EXPECT_EQ(WriteAll(want).error().code, Code::kUnimplemented);
  want.ecn = {3};
  EXPECT_THAT(WriteAll(want).error().message, HasSubstr("ROCE_CC_PRIO_MASK_P1"));
}

TEST_F(Ports, CongestionControlOfBroadcomIsReadAndNotWritten) {
  port_.driver = "bnxt_en";
  EXPECT_THAT(GapOf(Setting::kCnpDscp), HasSubstr("bnxt_re/0000:17:00.0/cc_config"));
  const std::string folder = "sys/kernel/debug/bnxt_re/0000:17:00.0/cc_config";
  Put(folder + "/enable_cc", "1");
  Put(folder + "/alt_vlan_dscp", "48");
  Put(folder + "/alt_vlan_pcp", "7");
  const QosReading reading = io_->Read(port_);
  EXPECT_EQ(reading.have.cnp_dscp, 48);
  EXPECT_EQ(reading.have.cnp_priority, 7);
  ASSERT_EQ(reading.read_only.size(), 2u);
  EXPECT_EQ(reading.read_only[0].setting, Setting::kCnpDscp);
  EXPECT_THAT(reading.read_only[0].reason,
              HasSubstr("alt_vlan_dscp is 48, and bnxt_re's debugfs is only read"));
  EXPECT_EQ(reading.read_only[1].setting, Setting::kCnpPriority);
  EXPECT_FALSE(reading.have.ecn) << "on, and nobody knows for which priority";
  EXPECT_THAT(GapOf(Setting::kEcn), HasSubstr("enable_cc"));
  Put(folder + "/enable_cc", "0");
  EXPECT_EQ(io_->Read(port_).have.ecn, lossless::PrioritySet{});
  EXPECT_THAT(io_->Read(port_).read_only.front().reason, HasSubstr("enable_cc is 0"));
  Put(folder + "/alt_vlan_pcp", "9");
  EXPECT_THAT(GapOf(Setting::kCnpPriority), HasSubstr("alt_vlan_pcp is 9, and must be below 8"));
  PortSettings want;
  want.cnp_dscp = 46;
  EXPECT_EQ(WriteAll(want).error().code, Code::kUnimplemented);
  EXPECT_EQ(At(folder + "/alt_vlan_dscp"), "48");
}

TEST_F(Ports, CongestionControlOfTheVendorsDriverComesFirst) {
  PutCongestionFiles();
  for (const char* half : {"roce_rp", "roce_np"}) {
    for (int i = 0; i < 8; ++i) Put(fmt::format("{}/{}/enable/{}", kVendor, half, i), i == 4 ? "1" : "0");
  }
  Put(fmt::format("{}/roce_np/cnp_dscp", kVendor), "48");
  Put(fmt::format("{}/roce_rp/rpg_ai_rate", kVendor), "9");
  EXPECT_EQ(io_->Read(port_).have.ecn, lossless::PrioritySet{4});
  EXPECT_EQ(io_->Read(port_).have.cnp_dscp, 48);
  EXPECT_EQ(io_->Read(port_).have.dcqcn, (lossless::Dcqcn{{lossless::DcqcnParameter::kRpAiRate, 9}}));
  PortSettings want;
  want.ecn = {3};
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(At(fmt::format("{}/roce_rp/enable/3", kVendor)), "1");
  EXPECT_EQ(At(fmt::format("{}/roce_np/enable/4", kVendor)), "0");
  EXPECT_EQ(io_->Read(port_).have.ecn, lossless::PrioritySet{3});
}

TEST_F(Ports, TheTosOfConnectionsIsInConfigfsWhichIsLeftAsItWas) {
  const std::string device = fmt::format("{}/mlx5_0", kRdmaCm);
  Put(device + "/ports/1/default_roce_tos", "0");
  Put(device + "/ports/1/default_roce_mode", "RoCE v2");
  EXPECT_EQ(io_->Read(port_).have.tos, 0);
  PortSettings want;
  want.tos = 106;
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(At(device + "/ports/1/default_roce_tos"), "106");
  EXPECT_EQ(io_->Read(port_).have.tos, 106);
  // RoCE v1 has no IP header.
  Put(device + "/ports/1/default_roce_mode", "IB/RoCE v1");
  EXPECT_EQ(io_->Read(port_).have.tos, 0);
  EXPECT_TRUE(io_->Read(port_).roce1);
  ASSERT_TRUE(WriteAll(want));
  EXPECT_EQ(At(device + "/ports/1/default_roce_mode"), "RoCE v2");
  EXPECT_FALSE(io_->Read(port_).roce1);
  ASSERT_TRUE(io_->WriteRoce1(port_));
  EXPECT_EQ(At(device + "/ports/1/default_roce_mode"), "IB/RoCE v1");
  EXPECT_TRUE(io_->Read(port_).roce1);
  ASSERT_TRUE(WriteAll(want));
  Put(device + "/ports/1/default_roce_tos", "999");
  EXPECT_THAT(GapOf(Setting::kTos), HasSubstr("no ToS byte"));
}

TEST_F(Ports, EvidenceIsCarrierAndErrorsButNotWhatARetrainingMakes) {
  EXPECT_EQ(io_->Link(port_), (LinkEvidence{true, 5, {{"rx_crc_errors_phy", 4}}}));
  EXPECT_EQ(io_->UserQueuePairs(port_), 2);
  EXPECT_FALSE(IsLinkError("link_down_events_phy"));
}

TEST_F(Ports, AreUsedByThoseOfTheirVirtualFunctionsToo) {
  users_ = {{"mlx5_0", 0}, {"mlx5_4", 0}, {"mlx5_5", 3}};
  EXPECT_EQ(io_->UserQueuePairs(port_), 0);
  PutFunction(0, "mlx5_core", "mlx5_4");
  PutFunction(1, "", "");
  EXPECT_EQ(io_->UserQueuePairs(port_), 0) << "a function without a driver is idle";
  PutFunction(2, "mlx5_core", "mlx5_5");
  EXPECT_EQ(io_->UserQueuePairs(port_), 3);
  EXPECT_THAT(io_->QueuePairHolders(port_), ElementsAre("nccl (pid 7)", "user of mlx5_5"));
  users_["mlx5_0"] = 2;
  EXPECT_EQ(io_->UserQueuePairs(port_), 5);
  EXPECT_THAT(io_->QueuePairHolders(port_), ElementsAre("nccl (pid 7)", "user of mlx5_0", "user of mlx5_5"))
      << "a program that has several is one";
}

TEST_F(Ports, OfWhichAVirtualFunctionIsElsewhereAreNotKnownToBeIdle) {
  users_ = {{"mlx5_0", 0}, {"mlx5_4", 0}};
  PutFunction(0, "mlx5_core", "mlx5_4");
  PutFunction(1, "vfio-pci", "");
  const auto users = io_->UserQueuePairs(port_);
  ASSERT_FALSE(users);
  EXPECT_THAT(users.error().message, HasSubstr("its function 0000:17:00.3 has the driver vfio-pci"));
  users_["mlx5_4"] = 1;
  EXPECT_EQ(io_->UserQueuePairs(port_), 1) << "that one is used is known";
}

TEST_F(Ports, OfWhichAVirtualFunctionHasAnInterfaceHereAndNoRdmaAreIdle) {
  users_ = {{"mlx5_0", 0}};
  PutFunction(0, "bnxt_en", "");
  std::filesystem::create_directories(folder_.path() + "/sys/bus/pci/devices/0000:17:00.2/net/eth9");
  EXPECT_EQ(io_->UserQueuePairs(port_), 0);
}

TEST_F(Ports, WhoseVirtualFunctionCannotBeAskedAreNotKnownToBeIdle) {
  users_ = {{"mlx5_0", 0}};
  PutFunction(0, "mlx5_core", "mlx5_4");
  const auto users = io_->UserQueuePairs(port_);
  ASSERT_FALSE(users);
  EXPECT_THAT(users.error().message, HasSubstr("mlx5_4: there is no such RDMA device"));
}

TEST_F(Ports, AreUsedByThoseOfTheirScalableFunctionsToo) {
  users_ = {{"mlx5_0", 0}, {"mlx5_6", 4}};
  const std::string function = folder_.path() + "/sys/bus/pci/devices/0000:17:00.0/mlx5_core.sf.4";
  std::filesystem::create_directories(function + "/infiniband/mlx5_6");
  EXPECT_EQ(io_->UserQueuePairs(port_), 0) << "nothing drives it";
  std::filesystem::create_symlink("../../../../bus/auxiliary/drivers/mlx5_core.sf", function + "/driver");
  EXPECT_EQ(io_->UserQueuePairs(port_), 4);
}

TEST_F(Ports, ADriverWithoutDcbIsAllGaps) {
  driver_.state = DcbState{};
  driver_.state.dcbx.reset();
  EXPECT_THAT(GapOf(Setting::kPfc), HasSubstr("no PFC"));
  EXPECT_THAT(GapOf(Setting::kClassPercent), HasSubstr("no ETS"));
  EXPECT_THAT(GapOf(Setting::kBufferBytes), HasSubstr("buffers"));
  EXPECT_THAT(GapOf(Setting::kDcbx), HasSubstr("no DCBX"));
  PortSettings want;
  want.pfc = {3};
  EXPECT_EQ(WriteAll(want).error().code, Code::kUnimplemented);
  port_.driver = "ice";
  driver_.state.pfc.emplace();
  EXPECT_THAT(GapOf(Setting::kCableMetres), HasSubstr("only mlx5"));
  want.cable_metres = 30;
  const auto cable = WriteAll(want);
  EXPECT_EQ(cable.error().code, Code::kUnimplemented);
  EXPECT_TRUE(cable.error().message.starts_with("cableMetres: ")) << "PFC is not to blame";
  EXPECT_EQ(driver_.state.pfc->pfc_en, 8);
  EXPECT_EQ(driver_.state.pfc->delay, 0);
}

TEST(LikelyWriter, IsLldpadWhereItsSocketOrProcessIs) {
  test::MemoryFileTree files;
  DcbState state;
  state.dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
  files.Write("proc/1/comm", "systemd\n");
  EXPECT_EQ(LikelyWriterOf(files, state, Setting::kPfc), "manual");
  files.Write("proc/77/comm", "lldpad\n");
  EXPECT_EQ(LikelyWriterOf(files, state, Setting::kPfc), "lldpad");
  EXPECT_EQ(LikelyWriterOf(files, state, Setting::kTos), "manual") << "DCBX does not carry that";
  files.Remove("proc/77");
  files.Write("proc/net/unix",
              "Num RefCount\n0000: 00000002 00000000 00000000 0002 01 5 @/com/intel/lldpad\n");
  EXPECT_EQ(LikelyWriterOf(files, std::nullopt, Setting::kPfc), "lldpad");
}

TEST_F(Ports, SaysWithWhichCodingTheLinkRuns) {
  EXPECT_EQ(io_->Read(port_).fec, lossless::Fec::kReedSolomon);
}

TEST(FecCodings, AreThoseThatSwitchesHave) {
  EXPECT_EQ(FecOf(ETHTOOL_FEC_OFF), lossless::Fec::kNone);
  EXPECT_EQ(FecOf(ETHTOOL_FEC_RS), lossless::Fec::kReedSolomon);
  EXPECT_EQ(FecOf(ETHTOOL_FEC_BASER), lossless::Fec::kFireCode);
  // A driver that has none, one that leaves it open, two at once, a code that no switch calls so.
  for (const unsigned active : {0U, unsigned(ETHTOOL_FEC_NONE), unsigned(ETHTOOL_FEC_AUTO),
                                unsigned(ETHTOOL_FEC_RS | ETHTOOL_FEC_BASER), unsigned(ETHTOOL_FEC_LLRS)})
    EXPECT_FALSE(FecOf(active)) << active;
}

TEST(FecCodings, OfAnInterfaceThatHasNoneOrIsNotThereAreNotKnown) {
  EthtoolFec kernel;
  EXPECT_FALSE(kernel.Read("lo"));
  EXPECT_FALSE(kernel.Read("not-there"));
  EXPECT_FALSE(kernel.Read("a-name-that-no-interface-can-have"));
}

}  // namespace
}  // namespace heddle::nodeagent
