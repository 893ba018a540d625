#include "nodeagent/lossless_parts.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>

#include "nodeagent/qos/kernel_port_io.h"
#include "nodeagent/qos/recorded_port_io.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kBootId = "proc/sys/kernel/random/boot_id";

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(std::int64_t(seconds * 1e9));
}

// Of a machine that is not this one: nothing is lost with it.
class MemoryJournal final : public Journal {
 public:
  Loaded Load() override {
    Loaded loaded;
    for (const auto& [port, record] : records_) loaded.records.push_back(record);
    return loaded;
  }
  base::Status Put(const PortRecord& record) override {
    records_[record.port] = record;
    return {};
  }
  base::Status Remove(const std::string& port) override {
    records_.erase(port);
    return {};
  }

 private:
  std::map<std::string, PortRecord> records_;
};

}  // namespace

OpenedLossless::OpenedLossless(const Flags& flags, const base::FileTree& files)
    : files_(files), gate_(std::make_unique<NoDeviceGate>()) {
  options_.interval = Seconds(flags.lossless_interval_s);
  options_.timings.drain = Seconds(flags.lossless_drain_s);
  options_.timings.patience = Seconds(flags.lossless_patience_s);
  options_.timings.settle = Seconds(flags.lossless_settle_s);
  options_.may_write = flags.lossless == "apply";
  if (flags.machine.empty()) {
    io_ = std::make_unique<KernelPortIo>(LiveQosSources());
    journal_ = OpenJournal(flags.state_dir + "/qos");
    events_ = OpenQosEvents();
    options_.boot = base::ReadTrimmed(files, kBootId).value_or(std::string());
  } else {
    io_ = std::make_unique<RecordedPortIo>(files, flags.qos_dir);
    if (flags.qos_dir.empty()) {
      journal_ = std::make_unique<MemoryJournal>();
    } else {
      journal_ = OpenJournal(flags.qos_dir + "/journal");
    }
  }
}

LosslessParts OpenedLossless::parts() const {
  return {io_.get(), gate_.get(), journal_.get(), events_.get(), &files_, options_};
}

}  // namespace heddle::nodeagent
