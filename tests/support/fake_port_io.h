#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/qos/journal.h"
#include "nodeagent/qos/port_gate.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::test {

// What stops a QosLoop where a kill -9 would: nothing runs after it.
struct Killed {};

// Counts what the fakes below are asked to do, and stops at one of them: before or after it took effect.
class CrashPoints {
 public:
  void KillAt(int point) { kill_at_ = point; }
  void Never() { kill_at_ = -1; }
  int passed() const { return passed_; }
  void Reach() {
    if (passed_++ == kill_at_) throw Killed();
  }

 private:
  int kill_at_ = -1;
  int passed_ = 0;
};

// The ports of a host in memory. A write takes effect unless a test says otherwise.
class FakePortIo final : public nodeagent::PortIo {
 public:
  struct Fault {
    base::Code code = base::Code::kInternal;
    std::string message;
    int times = -1;         // -1: always
    bool vanishes = false;  // the interface is gone with it
  };
  struct Port {
    lossless::PortSettings have;
    std::vector<lossless::Gap> gaps;
    bool gone = false;
    bool roce1 = false;        // connections by rdma_cm, until tos is written
    bool keeps_roce2 = false;  // they cannot be made so again
    int queue_pairs = 0;
    std::optional<base::Error> queue_pairs_unknown;
    std::vector<std::string> holders;
    nodeagent::LinkEvidence link{true, 0, {{"rx_crc_errors_phy", 7}}};
    std::map<lossless::Setting, Fault> faults;         // by the setting whose write fails
    std::function<void(Port&)> on_write;               // after each that took effect
    std::map<lossless::Setting, std::string> writers;  // else "manual"
  };

  explicit FakePortIo(CrashPoints* crash = nullptr) : crash_(crash) {}

  Port& operator[](const std::string& port) { return ports_[port]; }
  // "mlx5_0:1 trust,pfc", in the order of the writes.
  std::vector<std::string> writes;
  int reads = 0;
  std::function<void(const nodeagent::QosPort&, std::span<const lossless::Setting>)> before_write;

  nodeagent::QosReading Read(const nodeagent::QosPort& port) override {
    ++reads;
    Port& one = ports_[port.name];
    if (one.gone) return {{}, {}, true};
    return {one.have, one.gaps, false, std::nullopt, one.roce1};
  }
  base::Status Write(const nodeagent::QosPort& port, std::span<const lossless::Setting> settings,
                     const lossless::PortSettings& want) override {
    Port& one = ports_[port.name];
    if (before_write) before_write(port, settings);
    std::string line = port.name + " ";
    for (const lossless::Setting setting : settings)
      line += (line.back() == ' ' ? "" : ",") + std::string(lossless::SettingName(setting));
    writes.push_back(line);
    if (one.gone) return base::Fail(base::Code::kUnavailable, port.netdev + " is gone");
    for (const lossless::Setting setting : settings) {
      Reach();
      const auto fault = one.faults.find(setting);
      if (fault != one.faults.end() && fault->second.times != 0) {
        if (fault->second.times > 0) --fault->second.times;
        one.gone = fault->second.vanishes;
        return base::Fail(fault->second.code, "set " + std::string(lossless::SettingName(setting)) + ": " +
                                                  fault->second.message);
      }
      Take(one.have, setting, want);
      if (setting == lossless::Setting::kTos) one.roce1 = false;
      Reach();
    }
    if (one.on_write) one.on_write(one);
    return {};
  }
  base::Status WriteBack(const nodeagent::QosPort& port, std::span<const lossless::Setting> settings,
                         const lossless::PortSettings& before) override {
    const base::Status written = Write(port, settings, before);
    const bool dscps =
        std::find(settings.begin(), settings.end(), lossless::Setting::kDscpToPriority) != settings.end();
    if (written && dscps) ports_[port.name].have.dscp_to_priority = before.dscp_to_priority;
    return written;
  }
  base::Status WriteRoce1(const nodeagent::QosPort& port) override {
    writes.push_back(port.name + " RoCE v1");
    if (ports_[port.name].keeps_roce2)
      return base::Fail(base::Code::kUnimplemented, "tos: there is no RoCE v1");
    Reach();
    ports_[port.name].roce1 = true;
    Reach();
    return {};
  }
  base::Result<int> UserQueuePairs(const nodeagent::QosPort& port) override {
    const Port& one = ports_[port.name];
    if (one.queue_pairs_unknown) return base::Fail(*one.queue_pairs_unknown);
    return one.queue_pairs;
  }
  std::vector<std::string> QueuePairHolders(const nodeagent::QosPort& port) override {
    return ports_[port.name].holders;
  }
  base::Result<nodeagent::LinkEvidence> Link(const nodeagent::QosPort& port) override {
    return ports_[port.name].link;
  }
  std::string LikelyWriter(const nodeagent::QosPort& port, lossless::Setting setting) override {
    const auto& writers = ports_[port.name].writers;
    const auto writer = writers.find(setting);
    return writer == writers.end() ? "manual" : writer->second;
  }

  // Sets one setting as `want` has it; of tables, what `want` leaves open stays.
  static void Take(lossless::PortSettings& have, lossless::Setting setting,
                   const lossless::PortSettings& want) {
    lossless::ForEachHostSetting([&](lossless::Setting each, auto member) {
      if (each == setting) Merge(have.*member, want.*member);
    });
  }

 private:
  template <class T>
  static void Merge(std::optional<T>& have, const std::optional<T>& want) {
    have = want;
  }
  template <class T, std::size_t kSize>
  static void Merge(std::optional<std::array<T, kSize>>& have,
                    const std::optional<std::array<T, kSize>>& want) {
    if (!have) have = want;
    for (std::size_t i = 0; i < kSize; ++i) {
      const bool open = [&] {
        if constexpr (std::is_same_v<T, lossless::Algorithm>) {
          return (*want)[i] == lossless::Algorithm::kAny;
        } else {
          return (*want)[i] == lossless::kNotSaid;
        }
      }();
      if (!open) (*have)[i] = (*want)[i];
    }
  }
  void Reach() {
    if (crash_ != nullptr) crash_->Reach();
  }

  CrashPoints* const crash_;
  std::map<std::string, Port> ports_;
};

// A journal that outlives the loops of a test.
class FakeJournal final : public nodeagent::Journal {
 public:
  explicit FakeJournal(CrashPoints* crash = nullptr) : crash_(crash) {}

  std::map<std::string, nodeagent::PortRecord> records;
  std::optional<base::Error> broken;  // what Put says instead
  int puts = 0;

  Loaded Load() override {
    Loaded loaded;
    for (const auto& [port, record] : records) loaded.records.push_back(record);
    return loaded;
  }
  base::Status Put(const nodeagent::PortRecord& record) override {
    Reach();
    if (broken) return base::Fail(*broken);
    ++puts;
    records[record.port] = record;
    Reach();
    return {};
  }
  base::Status Remove(const std::string& port) override {
    Reach();
    records.erase(port);
    Reach();
    return {};
  }

 private:
  void Reach() {
    if (crash_ != nullptr) crash_->Reach();
  }
  CrashPoints* const crash_;
};

class FakeGate final : public nodeagent::PortGate {
 public:
  explicit FakeGate(CrashPoints* crash = nullptr) : crash_(crash) {}

  std::map<std::string, std::string> withdrawn;  // why, by port
  std::vector<std::string> holders;              // of every port

  void Withdraw(const std::string& port, const std::string& reason) override {
    Reach();
    withdrawn[port] = reason;
    Reach();
  }
  void Restore(const std::string& port) override {
    Reach();
    withdrawn.erase(port);
    Reach();
  }
  bool Withdrawn(const std::string& port) const override { return withdrawn.contains(port); }
  std::vector<std::string> Holders(const std::string&) const override { return holders; }

 private:
  void Reach() {
    if (crash_ != nullptr) crash_->Reach();
  }
  CrashPoints* const crash_;
};

}  // namespace heddle::test
