#include "nodeagent/qos/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lossless/compare.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessMode;
using crds::LosslessReport;
using crds::LosslessState;
using crds::LosslessWish;
using lossless::Gap;
using lossless::Setting;

bool Answers(const LosslessReport* before, const LosslessWish& wish) {
  return before != nullptr && !wish.policies.empty() && before->edition == crds::EditionOf(wish);
}

// What is reported of a port that nothing is asked of.
LosslessReport WithoutSettings(const LosslessWish& wish) {
  LosslessReport report;
  report.state = wish.policies.size() > 1 ? LosslessState::kConflict
                 : wish.refused           ? LosslessState::kFailed
                                          : LosslessState::kNotApplicable;
  report.reason = wish.reason;
  return report;
}

class Judging {
 public:
  Judging(const QosFacts& facts, PortRecord record, const LosslessReport* before, base::WallTime now)
      : facts_(facts),
        wish_(*facts.wish),
        before_(before),
        now_(std::chrono::floor<std::chrono::seconds>(now)) {
    out_.record = std::move(record);
  }

  Judgement Run() {
    out_.want = wish_.settings.value_or(lossless::PortSettings());
    out_.want.traffic_class.reset();
    TakeUpRecord();
    out_.want = lossless::WithWhatFollows(std::move(out_.want));
    if (!wish_.not_understood.empty()) {
      // Half of what is wanted is not what is wanted: nothing of it is set, and nothing of it is called right.
      out_.report.have = facts_.reading.have;
      out_.report.fec = facts_.reading.fec;
      Say(LosslessState::kUnknown,
          fmt::format(
              "this agent is older than its spec and does not know {}{}: nothing of this policy is set; "
              "update the agent",
              wish_.not_understood.front(),
              wish_.not_understood.size() == 1
                  ? ""
                  : fmt::format(" and {} more", wish_.not_understood.size() - 1)));
    } else if (!wish_.settings) {
      out_.report = WithoutSettings(wish_);
    } else if (facts_.reading.gone) {
      // A driver that comes back has forgotten what was set.
      out_.record.applied = false;
      Say(LosslessState::kUnknown,
          fmt::format("the interface {} is not there: it is looked for again at every look",
                      facts_.port.netdev.empty() ? "of this port" : facts_.port.netdev));
    } else {
      Compare();
      Decide();
    }
    out_.report.ports = {facts_.port.name};
    out_.report.edition = crds::EditionOf(wish_);
    return std::move(out_);
  }

 private:
  void Say(LosslessState state, std::string reason) {
    out_.report.state = state;
    out_.report.reason = std::move(reason);
  }

  // What was decided about other settings, or another NIC, is no decision about these.
  void TakeUpRecord() {
    PortRecord& record = out_.record;
    record.port = facts_.port.name;
    const std::string subject = SubjectOf(facts_.port, out_.want);
    // A machine that was started again has its driver's own settings: that is no drift.
    if (!facts_.boot.empty() && !record.boot.empty() && record.boot != facts_.boot) record.applied = false;
    record.boot = facts_.boot;
    if (record.edition == crds::EditionOf(wish_) && record.subject == subject) return;
    PortRecord fresh;
    fresh.port = facts_.port.name;
    fresh.edition = crds::EditionOf(wish_);
    fresh.subject = subject;
    fresh.boot = facts_.boot;
    fresh.repairs = std::move(record.repairs);
    fresh.unsettled = std::move(record.unsettled);
    // The folder of an agent that is new here may be empty; what was published is not.
    fresh.applied =
        record.edition.policy.empty() && Answers(before_, wish_) &&
        (before_->state == LosslessState::kCompliant || before_->state == LosslessState::kDrifted) &&
        wish_.mode == LosslessMode::kApply;
    record = std::move(fresh);
  }

  void Compare() {
    LosslessReport& report = out_.report;
    report.have = facts_.reading.have;
    report.fec = facts_.reading.fec;
    const lossless::Comparison comparison = lossless::Compare(out_.want, facts_.reading.have);
    std::vector<lossless::Drift> drifts = comparison.drifts;
    std::map<Setting, std::string> gaps;
    for (const Setting setting : comparison.unknown) {
      if (const Gap* left = LeftToFirmware(setting); left != nullptr) {
        drifts.push_back({setting, lossless::SettingText(out_.want, setting),
                          fmt::format("left to the firmware: {}", left->reason)});
        continue;
      }
      const auto& said = facts_.reading.gaps;
      const auto gap = std::find_if(said.begin(), said.end(),
                                    [setting](const Gap& one) { return one.setting == setting; });
      // Of an agent or a driver that does not tell there is nothing to find.
      if (setting == Setting::kGlobalPause && gap == said.end()) continue;
      gaps[setting] = gap == said.end() ? "nobody could read it" : gap->reason;
      if (IsEssential(setting)) unread_.push_back(setting);
    }
    std::stable_sort(drifts.begin(), drifts.end(), [](const lossless::Drift& a, const lossless::Drift& b) {
      return a.setting < b.setting;
    });
    for (const lossless::Drift& drift : drifts) {
      if (const std::string* why = WhyNotSettable(drift.setting); why != nullptr) {
        gaps[drift.setting] = *why;
        if (!MustBeAsWanted(drift.setting)) continue;
        unsettable_.push_back(drift.setting);
      }
      report.drift.push_back(Since(drift));
    }
    for (const auto& [setting, reason] : gaps) report.gaps.push_back({setting, reason});
  }

  const Gap* LeftToFirmware(Setting setting) const {
    const auto& left = facts_.reading.left_to_firmware;
    const auto found =
        std::find_if(left.begin(), left.end(), [setting](const Gap& one) { return one.setting == setting; });
    return found == left.end() ? nullptr : &*found;
  }

  // What this port's driver said when it was to set it, or what was known before; null = nothing speaks against it.
  const std::string* WhyNotSettable(Setting setting) const {
    const auto& said = out_.record.unsupported;
    if (const auto unsupported = said.find(setting); unsupported != said.end()) return &unsupported->second;
    if (MustBeAsWanted(setting)) return nullptr;
    for (const Gap& fixed : facts_.reading.read_only) {
      if (fixed.setting == setting) return &fixed.reason;
    }
    return nullptr;
  }

  crds::PortDrift Since(const lossless::Drift& drift) const {
    crds::PortDrift since{drift, now_, {}};
    if (before_ != nullptr) {
      for (const crds::PortDrift& known : before_->drift) {
        if (known.drift.setting != drift.setting) continue;
        since.since = known.since;
        since.writer = known.writer;
      }
    }
    const auto writer = facts_.writers.find(drift.setting);
    // Where the policy never was in force the likeliest writer is nobody: the driver's own values.
    const bool evident = writer != facts_.writers.end() && writer->second != "manual";
    const bool was = out_.record.applied && (drift.setting != Setting::kGlobalPause || out_.record.pause_off);
    if (writer != facts_.writers.end() && (evident || was)) since.writer = writer->second;
    return since;
  }

  std::vector<Setting> Drifted() const {
    std::vector<Setting> drifted;
    for (const crds::PortDrift& drift : out_.report.drift) drifted.push_back(drift.drift.setting);
    return drifted;
  }

  // Global pause that is on since before any agent read it is nobody's change.
  bool IsOldPause(const std::vector<Setting>& drifted) const {
    return !out_.record.pause_off && drifted.size() == 1 && drifted.front() == Setting::kGlobalPause;
  }

  // After "by".
  std::string WritersText() const {
    std::set<std::string> writers;
    for (const crds::PortDrift& drift : out_.report.drift) {
      if (!drift.writer.empty()) writers.insert(drift.writer == "manual" ? "hand" : drift.writer);
    }
    return writers.empty() ? "somebody else" : fmt::format("{}", fmt::join(writers, " and "));
  }

  void Decide() {
    PortRecord& record = out_.record;
    const std::vector<Setting> drifted = Drifted();
    if (drifted.empty()) {
      // Whoever made it right, it is.
      record.failed.clear();
      record.conflict.clear();
      if (!unread_.empty()) {
        Say(LosslessState::kUnknown, fmt::format("{} cannot be read, and no port is lossless without: {}",
                                                 Names(unread_), WhyUnread()));
        return;
      }
      record.applied = true;
      record.pause_off = facts_.reading.have.global_pause == lossless::GlobalPause::kNone;
      Say(LosslessState::kCompliant, WithoutWatchdog());
      return;
    }
    const std::string differ =
        fmt::format("{} {}", Names(drifted), drifted.size() == 1 ? "differs" : "differ");
    if (wish_.mode == LosslessMode::kObserve) {
      Say(LosslessState::kDrifted, differ + ", and the policy only observes: set mode: Apply to have it set");
    } else if (!facts_.may_write) {
      Say(LosslessState::kDrifted,
          differ + ", and this agent may not set anything: agent.lossless.enabled of the chart is not true");
    } else if (!record.failed.empty()) {
      Say(LosslessState::kFailed, record.failed);
    } else if (!record.conflict.empty()) {
      Say(LosslessState::kConflict, record.conflict);
    } else if (drifted.size() == unsettable_.size()) {
      Say(LosslessState::kFailed,
          fmt::format(
              "the driver cannot set {} ({}), and no port is lossless without; all else is set. Take the "
              "port out of the policy, or use a NIC whose driver can",
              Names(unsettable_), record.unsupported.at(unsettable_.front())));
    } else if (!record.applied || IsOldPause(drifted) || wish_.on_drift == crds::OnDrift::kRepair) {
      ToSet(drifted, differ);
    } else {
      Say(LosslessState::kDrifted,
          fmt::format("{}, probably changed by {}: set it back, or set onDrift: Repair", differ,
                      WritersText()));
    }
  }

  void ToSet(const std::vector<Setting>& drifted, const std::string& differ) {
    PortRecord& record = out_.record;
    // One that is yet to come was written down before the clock was set back: nobody knows how long ago.
    std::erase_if(record.repairs, [this](base::WallTime time) {
      return time + kRepairWindow < now_ || time > now_ + kRepairWindow;
    });
    const bool repair = record.applied && !IsOldPause(drifted);
    if (repair && record.repairs.size() >= kMaxRepairs) {
      record.conflict = fmt::format(
          "{} again after {} repairs in {} hours, probably by {}: nothing more is written; stop that "
          "writer, then change the policy or set the port by hand",
          differ, record.repairs.size(), kRepairWindow.count(), WritersText());
      Say(LosslessState::kConflict, record.conflict);
      return;
    }
    for (const Setting setting : drifted) {
      if (!record.unsupported.contains(setting)) out_.to_set.push_back(setting);
    }
    out_.repair = repair;
    Say(LosslessState::kPending, differ + ", and is to be set");
  }

  // What a port that pauses is to be known for where nothing ends a pause; empty = something does, or nothing pauses.
  // It is no reason to refuse the port: many NICs have no watchdog, and that of the switch may run.
  std::string WithoutWatchdog() const {
    const auto& have = facts_.reading.have;
    if (!out_.want.pfc || out_.want.pfc->empty()) return {};
    if (have.watchdog_ms && *have.watchdog_ms != lossless::kWatchdogOff) return {};
    std::string why = have.watchdog_ms ? "it is off" : "nobody could read it";
    for (const Gap& gap : facts_.reading.gaps) {
      if (gap.setting == Setting::kWatchdogMs) why = gap.reason;
    }
    return fmt::format(
        "PFC without a watchdog of this port ({}): a pause that does not end is ended by its switch or "
        "by nobody, so have the switch's run",
        why);
  }

  std::string WhyUnread() const {
    for (const Gap& gap : out_.report.gaps) {
      if (gap.setting == unread_.front()) return gap.reason;
    }
    return {};
  }

  const QosFacts& facts_;
  const LosslessWish& wish_;
  const LosslessReport* const before_;
  const base::WallTime now_;
  std::vector<Setting> unread_, unsettable_;  // of those that are essential
  Judgement out_;
};

}  // namespace

bool Interrupts(Setting setting) {
  switch (setting) {
    case Setting::kWatchdogMs:
    case Setting::kEcn:
    case Setting::kCnpDscp:
    case Setting::kCnpPriority:
    case Setting::kDcqcn:
    case Setting::kTos:
      return false;
    default:
      return true;
  }
}

bool IsEssential(Setting setting) {
  switch (setting) {
    case Setting::kTrust:
    case Setting::kDscpToPriority:
    case Setting::kPfc:
    case Setting::kPriorityToClass:
    case Setting::kMtu:
      return true;
    default:
      return false;
  }
}

bool MustBeAsWanted(Setting setting) {
  return setting == Setting::kGlobalPause || IsEssential(setting);
}

std::string SubjectOf(const QosPort& port, const lossless::PortSettings& want) {
  const std::string text = fmt::format("{} {} {} {} {}", port.rdma_device, port.rdma_port, port.pci_address,
                                       port.driver, crds::ToJson(want).dump());
  // FNV-1a, as topology::ContentHash.
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("{:016x}", hash);
}

std::vector<Setting> Differing(const std::vector<Setting>& settings, const lossless::PortSettings& want,
                               const lossless::PortSettings& have) {
  const lossless::Comparison comparison = lossless::Compare(Only(settings, want), have);
  std::vector<Setting> differing = comparison.unknown;
  for (const lossless::Drift& drift : comparison.drifts) differing.push_back(drift.setting);
  std::sort(differing.begin(), differing.end());
  return differing;
}

std::vector<Setting> WithWhatTheyTakeAlong(std::vector<Setting> settings) {
  const auto among = [&settings](Setting setting) {
    return std::find(settings.begin(), settings.end(), setting) != settings.end();
  };
  if (!among(Setting::kTrust) || among(Setting::kDscpToPriority)) return settings;
  settings.push_back(Setting::kDscpToPriority);
  std::sort(settings.begin(), settings.end());
  return settings;
}

std::vector<Setting> NotBack(const std::vector<Setting>& settings, const lossless::PortSettings& before,
                             const lossless::PortSettings& have) {
  std::vector<Setting> left = Differing(settings, before, have);
  const lossless::PortSettings was = Only(settings, before);
  const bool known = std::find(left.begin(), left.end(), Setting::kDscpToPriority) != left.end();
  if (known || !was.dscp_to_priority || !have.dscp_to_priority ||
      was.dscp_to_priority == have.dscp_to_priority)
    return left;
  left.push_back(Setting::kDscpToPriority);
  std::sort(left.begin(), left.end());
  return left;
}

std::vector<Setting> NotBack(const UnsettledWrite& write, const QosReading& now) {
  std::vector<Setting> left = NotBack(WithWhatTheyTakeAlong(write.settings), write.before, now.have);
  const bool known = std::find(left.begin(), left.end(), Setting::kTos) != left.end();
  if (known || !write.roce1 || now.roce1) return left;
  left.push_back(Setting::kTos);
  std::sort(left.begin(), left.end());
  return left;
}

lossless::PortSettings Only(const std::vector<Setting>& settings, const lossless::PortSettings& from) {
  lossless::PortSettings only;
  lossless::ForEachHostSetting([&](Setting setting, auto member) {
    if (std::find(settings.begin(), settings.end(), setting) != settings.end()) only.*member = from.*member;
  });
  return only;
}

std::string Names(const std::vector<Setting>& settings) {
  std::string text;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (i > 0) text += i + 1 == settings.size() ? " and " : ", ";
    text += lossless::SettingName(settings[i]);
  }
  return text;
}

std::string Plain(std::string_view text) {
  constexpr std::size_t kMax = 300;
  std::string plain(text.substr(0, kMax));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return plain;
}

Judgement Judge(const QosFacts& facts, PortRecord record, const LosslessReport* before, base::WallTime now) {
  return Judging(facts, std::move(record), before, now).Run();
}

}  // namespace heddle::nodeagent
