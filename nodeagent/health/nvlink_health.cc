#include "nodeagent/health/nvlink_health.h"

#include <fmt/format.h>

#include <algorithm>

#include "nodeagent/health/link_rules.h"

namespace heddle::nodeagent {
namespace {

using base::MonotonicTime;

// DCGM (dcgm_gpu_hardware_limits.h and its health watch): a replay or a recovery is a failure, CRC errors matter
// from 100 a second on. Received errors, malformed packets among them: as an InfiniBand port's, NVSentinel's 10 a
// second. Buffer overruns and local integrity errors: as there, any.
constexpr std::uint64_t kCrcPerSecond = 100;
constexpr std::uint64_t kReceivePerSecond = 10;

bool HasUnread(const GpuReading& gpu) {
  return std::any_of(gpu.nvlinks.begin(), gpu.nvlinks.end(),
                     [](const NvlinkReading& link) { return link.word != LinkWord::kSaid; });
}

std::string IdOf(const GpuReading& gpu) {
  return gpu.uuid.empty() ? gpu.pci : gpu.uuid;
}

// A smaller value is a driver that was loaded anew.
std::uint64_t Grown(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& now) {
  return before && now && *now > *before ? *now - *before : 0;
}

std::string CliqueOf(const FabricReading& fabric) {
  const bool joined = fabric.state == FabricState::kCompleted && !fabric.cluster_uuid.empty();
  return joined ? fmt::format("{}.{}", fabric.cluster_uuid, fabric.clique) : std::string();
}

}  // namespace

class NvlinkHealth::Step {
 public:
  Step(NvlinkHealth& health, MonotonicTime now, base::WallTime wall)
      : health_(health), now_(now), wall_(std::chrono::floor<std::chrono::seconds>(wall)) {}

  std::vector<NvlinkChange> Run(const GpuReadings& readings) {
    Expect(readings);
    FindUnlisted(readings);
    for (const GpuReading& gpu : readings.gpus) {
      if (gpu.state == GpuState::kAnswers) LookAt(gpu);
    }
    const auto all = [](const GpuReading& gpu) { return gpu.state == GpuState::kAnswers && !HasUnread(gpu); };
    const bool answers =
        !readings.gpus.empty() && std::all_of(readings.gpus.begin(), readings.gpus.end(), all);
    EndPublished(answers);
    return std::move(said_);
  }

 private:
  // Export variants have fewer links than their chip has slots, so what should be up is the most that was.
  void Expect(const GpuReadings& readings) {
    std::set<std::string> here;
    for (const GpuReading& gpu : readings.gpus) {
      here.insert(IdOf(gpu));
      if (gpu.state == GpuState::kAnswers) health_.expected_ = std::max(health_.expected_, ActiveLinks(gpu));
    }
    if (health_.published_links_ == 0 || readings.gpus.empty()) return;
    // Other GPUs in the same node are counted anew.
    if (here == health_.published_gpus_)
      health_.expected_ = std::max(health_.expected_, health_.published_links_);
    health_.published_links_ = 0;
  }

  // Of a GPU that is listed no more nothing is told: neither that its trouble goes on nor that it is over.
  void FindUnlisted(const GpuReadings& readings) {
    if (readings.gpus.empty()) return;  // the driver tells of none of them
    std::map<std::string, int> listed;
    for (const GpuReading& gpu : readings.gpus) listed.emplace(IdOf(gpu), gpu.index);
    for (auto& [id, counted] : health_.published_less_) {
      const auto gpu = listed.find(id);
      counted.gpu = gpu == listed.end() ? std::nullopt : std::optional(gpu->second);
    }
    for (auto at = health_.troubles_.begin(); at != health_.troubles_.end();) {
      auto& [key, trouble] = *at;
      const auto gpu = listed.find(key.first);
      const bool is_listed = gpu != listed.end();
      if (is_listed) {
        trouble.gpu = gpu->second;
        trouble.unlisted_since.reset();
      } else if (!trouble.unlisted_since) {
        trouble.unlisted_since = now_;
      }
      const bool over = !is_listed && now_ - *trouble.unlisted_since >= kQuiet;
      if (over) said_.push_back({true, trouble.Sentence(), "the driver lists this GPU no longer"});
      at = over ? health_.troubles_.erase(at) : std::next(at);
    }
  }

  void LookAt(const GpuReading& gpu) {
    Gpu& known = health_.gpus_[IdOf(gpu)];
    std::uint64_t seconds = 0;
    if (known.at)
      seconds = std::uint64_t(std::chrono::duration_cast<std::chrono::seconds>(now_ - *known.at).count());
    seconds = std::max<std::uint64_t>(seconds, 1);
    if (health_.expected_ > 0) JudgeWidth(gpu);
    JudgeErrors(gpu, known, Kind::kReplays, &NvlinkErrors::replays, 1, "replays");
    JudgeErrors(gpu, known, Kind::kRecoveries, &NvlinkErrors::recoveries, 1, "recoveries");
    JudgeErrors(gpu, known, Kind::kFailedRecoveries, &NvlinkErrors::failed_recoveries, 1,
                "failed recoveries");
    JudgeErrors(gpu, known, Kind::kCrc, &NvlinkErrors::crc, kCrcPerSecond * seconds, "CRC errors");
    JudgeErrors(gpu, known, Kind::kReceive, &NvlinkErrors::receive, kReceivePerSecond * seconds,
                "receive errors");
    JudgeErrors(gpu, known, Kind::kMalformed, &NvlinkErrors::malformed, kReceivePerSecond * seconds,
                "malformed packets");
    JudgeErrors(gpu, known, Kind::kOverruns, &NvlinkErrors::overruns, 1, "buffer overruns");
    JudgeErrors(gpu, known, Kind::kIntegrity, &NvlinkErrors::integrity, 1, "local integrity errors");
    JudgeClique(gpu, known);
    for (const NvlinkReading& link : gpu.nvlinks) known.links[link.link] = link.errors;
    known.at = now_;
  }

  // A link that the driver fails to tell of is as it was last told. So a trouble that stands stays, and none begins by
  // it: where nobody ever told of it, it counts as up for as long as no other evidence is greater than what was said.
  void JudgeWidth(const GpuReading& gpu) {
    const int up = ActiveLinks(gpu), untold = UntoldLinks(gpu);
    const int missing = std::max(0, health_.expected_ - up - untold);
    const auto trouble = health_.troubles_.find({IdOf(gpu), Kind::kWidth});
    const std::uint64_t said = trouble == health_.troubles_.end() ? 0 : trouble->second.reported;
    if (HasUnread(gpu) && std::uint64_t(missing) <= said) {
      if (trouble != health_.troubles_.end()) trouble->second.quiet_since.reset();
      return;
    }
    Judge(gpu, Kind::kWidth, std::uint64_t(missing), {}, [&](const Trouble&) {
      return fmt::format("has {} of {} NVLinks up", health_.expected_ - missing, health_.expected_);
    });
  }

  void JudgeErrors(const GpuReading& gpu, const Gpu& known, Kind kind,
                   std::optional<std::uint64_t> NvlinkErrors::*counter, std::uint64_t threshold,
                   std::string_view what) {
    std::uint64_t grown = 0;
    std::set<int> links;
    bool told = false, lost = false;
    for (const NvlinkReading& link : gpu.nvlinks) {
      const auto before = known.links.find(link.link);
      const bool tells = (link.errors.*counter).has_value();
      told = told || tells;
      if (before == known.links.end()) continue;
      lost = lost || (!tells && (before->second.*counter).has_value());
      const std::uint64_t one = Grown(before->second.*counter, link.errors.*counter);
      if (one > 0) links.insert(link.link);
      grown += one;
    }
    if (grown < threshold && (lost || !told)) {  // what is not told now is not quiet
      const auto trouble = health_.troubles_.find({IdOf(gpu), kind});
      if (trouble != health_.troubles_.end()) trouble->second.quiet_since.reset();
      return;
    }
    Judge(gpu, kind, grown >= threshold ? grown : 0, links, [&](const Trouble& trouble) {
      return fmt::format("counts {} {} on NVLink{} {}", trouble.count, what,
                         trouble.links.size() == 1 ? "" : "s", fmt::join(trouble.links, ", "));
    });
  }

  void JudgeClique(const GpuReading& gpu, Gpu& known) {
    if (gpu.fabric.unread != 0) {  // what is not told now is not quiet
      const auto trouble = health_.troubles_.find({IdOf(gpu), Kind::kClique});
      if (trouble != health_.troubles_.end()) trouble->second.quiet_since.reset();
      return;
    }
    const std::string clique = CliqueOf(gpu.fabric);
    std::string before;
    if (!clique.empty()) before = std::exchange(known.clique, clique);
    const bool moved = !before.empty() && before != clique;
    Judge(gpu, Kind::kClique, moved ? 1 : 0, {}, [&](const Trouble& trouble) {
      return trouble.count > 1
                 ? fmt::format("changed its NVLink clique {} times, now {}", trouble.count, clique)
                 : fmt::format("moved from NVLink clique {} to {}", before, clique);
    });
  }

  // `count`: evidence of this look; of the width, how many links are missing.
  template <class Say>
  void Judge(const GpuReading& gpu, Kind kind, std::uint64_t count, const std::set<int>& links, Say say) {
    const std::pair key(IdOf(gpu), kind);
    const auto found = health_.troubles_.find(key);
    if (count == 0) {
      if (found == health_.troubles_.end()) return;
      Trouble& trouble = found->second;
      if (!trouble.quiet_since) {
        trouble.quiet_since = now_;
      } else if (now_ - *trouble.quiet_since >= kQuiet) {
        said_.push_back({true, trouble.Sentence(), {}});
        health_.troubles_.erase(found);
      }
      return;
    }
    const bool fresh = found == health_.troubles_.end();
    Trouble& trouble = health_.troubles_[key];
    trouble.gpu = gpu.index;
    if (fresh) trouble.since = wall_;
    trouble.quiet_since.reset();
    const bool is_level = kind == Kind::kWidth;
    trouble.count = is_level ? count : trouble.count + count;
    trouble.links.insert(links.begin(), links.end());
    // A level is said whenever it changes, a count when it has doubled.
    if (is_level ? trouble.count == trouble.reported : trouble.count / 2 < trouble.reported) return;
    trouble.reported = trouble.count;
    trouble.reported_links = trouble.links;
    trouble.what = fmt::format("{}, since {}", say(trouble), base::FormatTime(trouble.since));
    said_.push_back({false, trouble.Sentence(), {}});
  }

  // What was published goes when its quiet time is over; what still holds has its own sentence by then.
  void EndPublished(bool answers) {
    for (Published& fault : health_.faults_) {
      if (!answers || !fault.quiet_since) fault.quiet_since = now_;
      if (now_ - *fault.quiet_since >= kQuiet) said_.push_back({true, fault.sentence, {}});
    }
    std::erase_if(health_.faults_,
                  [this](const Published& fault) { return now_ - *fault.quiet_since >= kQuiet; });
    if (health_.faults_.empty()) health_.published_less_.clear();
  }

  NvlinkHealth& health_;
  const MonotonicTime now_;
  const base::WallTime wall_;
  std::vector<NvlinkChange> said_;
};

std::string SayChange(const NvlinkChange& change) {
  const std::string sentence = change.over ? "over: " + change.sentence : change.sentence;
  return change.why.empty() ? sentence : fmt::format("{} ({})", sentence, change.why);
}

std::string NvlinkHealth::Trouble::Sentence() const {
  return fmt::format("GPU {} {}", gpu, what);
}

void NvlinkHealth::Restore(const topology::Node& published, std::vector<std::string> faults) {
  published_links_ = published.nvlink.links_per_gpu;
  for (const topology::Gpu& gpu : published.gpus)
    published_gpus_.insert(gpu.uuid.empty() ? gpu.pci : gpu.uuid);
  for (std::string& fault : faults) faults_.push_back({std::move(fault), std::nullopt});
  if (faults_.empty()) return;
  for (const topology::Gpu& gpu : published.gpus) {
    const int usable = published.nvlink.usable_gbps(gpu.index);
    if (usable < published.nvlink.gbps_per_gpu)
      published_less_[gpu.uuid.empty() ? gpu.pci : gpu.uuid] = {usable, std::nullopt};
  }
}

std::vector<NvlinkChange> NvlinkHealth::Look(const GpuReadings& readings, MonotonicTime now,
                                             base::WallTime wall) {
  return Step(*this, now, wall).Run(readings);
}

std::vector<NvlinkDoubt> NvlinkHealth::Doubts() const {
  std::map<int, NvlinkDoubt> doubts;
  std::map<int, std::set<int>> broken;  // a link that counts errors of two kinds is one link
  for (const auto& [id, counted] : published_less_) {
    if (counted.gpu) doubts[*counted.gpu].published_gbps = counted.gbps;
  }
  for (const auto& [key, trouble] : troubles_) {
    if (trouble.unlisted_since || key.second == Kind::kClique) continue;
    NvlinkDoubt& doubt = doubts[trouble.gpu];
    if (key.second == Kind::kWidth) doubt.gone = int(trouble.reported);
    broken[trouble.gpu].insert(trouble.reported_links.begin(), trouble.reported_links.end());
  }
  std::vector<NvlinkDoubt> list;
  for (auto& [gpu, doubt] : doubts) {
    doubt.gpu = gpu;
    doubt.broken = int(broken[gpu].size());
    list.push_back(doubt);
  }
  return list;
}

std::vector<std::string> NvlinkHealth::Faults() const {
  std::vector<std::pair<int, std::string>> troubles;
  for (const auto& [key, trouble] : troubles_) troubles.emplace_back(trouble.gpu, trouble.Sentence());
  const auto by_gpu = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(troubles.begin(), troubles.end(),
                   by_gpu);  // of one GPU they are in the order of their kinds
  std::vector<std::string> faults;
  std::set<std::string> said;  // one that was published and holds still may read the same
  for (const Published& fault : faults_) {
    if (said.insert(fault.sentence).second) faults.push_back(fault.sentence);
  }
  for (auto& [gpu, sentence] : troubles) {
    if (said.insert(sentence).second) faults.push_back(std::move(sentence));
  }
  return faults;
}

}  // namespace heddle::nodeagent
