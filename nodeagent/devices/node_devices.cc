#include "nodeagent/devices/node_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crds/keys.h"
#include "crds/rdma_pod.h"
#include "formats/printable.h"
#include "nodeagent/devices/nccl_conf.h"
#include "nodeagent/grants/grant_watch.h"

namespace heddle::nodeagent {
namespace {

// The files of devices change when modules are loaded, of which nobody hears.
constexpr auto kReadAgain = std::chrono::minutes(1);
constexpr std::size_t kMaxMessage = 900;
constexpr std::ptrdiff_t kMaxRivals = 8;  // of one event

bool Marks(const std::vector<crds::LosslessWish>& wishes) {
  return std::any_of(wishes.begin(), wishes.end(), [](const crds::LosslessWish& wish) {
    return wish.settings && wish.settings->traffic_class;
  });
}

// A comment of nccl.conf and no file of its own, so that a rename replaces both at once.
constexpr std::string_view kBootLine = "# Written in boot ";
std::string BootLine(const base::FileTree& files) {
  const auto boot = base::ReadTrimmed(files, "proc/sys/kernel/random/boot_id");
  if (!boot || boot->empty()) return {};
  return fmt::format("{}{}.\n", kBootLine, formats::Printable(*boot, 64));
}

// That the kubelet did not say for whom it asks, and whom it was taken to mean, or that it was nobody.
std::string DoubtOf(const std::string& resource, const Choice& choice) {
  const auto& rivals = choice.rivals;
  const auto end = rivals.begin() + std::min(kMaxRivals, std::ptrdiff_t(rivals.size()));
  std::string others = fmt::format("{}", fmt::join(rivals.begin(), end, ", "));
  if (end != rivals.end()) others += fmt::format(" and {} more", rivals.end() - end);
  const std::string ids = fmt::format("{}", fmt::join(choice.ids, ","));
  if (!choice.refusal.empty()) {
    return fmt::format(
        "{} {}: no plan is followed, because {}. What each got is compared (DevicesAsPlanned); "
        "delete a pod that differs to have it placed anew. They may be for {}",
        resource, ids, choice.refusal, others);
  }
  return fmt::format(
      "{} {} is taken to be for {}, which was bound first as far as is known; it may be for {} as "
      "well, whose plan is another. What each got is compared (DevicesAsPlanned)",
      resource, ids, choice.pod.empty() ? "a pod without a plan" : choice.pod, others);
}

}  // namespace

NodeDevices::NodeDevices(const base::FileTree& files, base::Clock& clock, base::Random random,
                         NodeDevicesOptions options, std::function<void(const DeviceNews&)> on_news)
    : files_(files),
      clock_(clock),
      options_(std::move(options)),
      folder_(options_.state),
      boot_line_(BootLine(files)),
      on_news_(std::move(on_news)),
      plugins_(
          clock, random,
          [this] {
            PluginsOptions plugins = options_.plugins;
            plugins.prefer = [this](const auto& offer, const auto& question) {
              return Prefer(offer, question);
            };
            return plugins;
          }(),
          [this](const std::map<std::string, Standing>& standings) {
            const std::lock_guard lock(mutex_);
            standings_ = standings;
            for (const auto& [resource, standing] : standings) {
              if (!standing.settling) before_.erase(resource);
            }
            Publish();
          }) {
  const std::lock_guard lock(mutex_);
  facts_.folder = options_.infiniband;
  facts_.nccl.over_etc = options_.nccl_over_etc;
  // What an agent before this one wrote is good until this one has looked, which may take a driver's minute.
  if (NcclKept()) facts_.nccl.folder = folder_.path();
  Offer();
}

void NodeDevices::Restore(std::vector<crds::DeviceReport> reports, std::string boot_id) {
  const std::lock_guard lock(mutex_);
  before_.clear();
  for (crds::DeviceReport& report : reports) {
    std::string resource = report.resource;
    before_.emplace(std::move(resource), std::move(report));
  }
  before_boot_ = std::move(boot_id);
}

void NodeDevices::Look(const Observation& seen) {
  const std::lock_guard lock(mutex_);
  const base::MonotonicTime now = clock_.Now();
  const bool same = seen_ && *seen_ == seen, due = !read_at_ || now - *read_at_ >= kReadAgain;
  // What else an offer hangs on is told by the other calls. A full disk is tried again with each look.
  if (same && !due && nccl_problem_.empty()) return;
  if (due || !seen_ || seen_->node != seen.node) {
    device_files_ = ReadDeviceFiles(files_, seen.node);
    read_at_ = now;
  }
  seen_ = seen;
  WriteNccl();
  Offer();
}

void NodeDevices::Wish(std::vector<crds::DeviceWish> devices, std::vector<crds::LosslessWish> lossless) {
  const std::lock_guard lock(mutex_);
  wishes_ = std::move(devices);
  lossless_ = std::move(lossless);
  WriteNccl();
  Offer();
}

void NodeDevices::Read(std::vector<crds::LosslessReport> reports) {
  const std::lock_guard lock(mutex_);
  if (read_ == reports) return;
  read_ = std::move(reports);
  WriteNccl();
  Offer();
}

void NodeDevices::Hear(GrantReadings& readings) {
  const std::lock_guard lock(mutex_);
  if (readings.state != GrantsState::kRead) return;
  heard_ = true;
  facts_.allocatable_before = std::exchange(facts_.allocatable, readings.allocatable);
  facts_.functions = readings.functions;
  Compare(readings);
  last_ = readings;
  Offer();
  readings.own = last_.own;
}

void NodeDevices::NameHeld() {
  last_.own.clear();
  NameOwn(offers_, last_);
  std::map<std::pair<std::string, std::string>, Held> held;
  for (const ContainerDevices& container : last_.containers) {
    const std::string holder =
        fmt::format("{}/{}/{}", container.pod_namespace, container.pod, container.container);
    for (const DeviceSet& set : container.devices) {
      if (set.claim) continue;
      for (const std::string& id : set.ids) {
        const std::pair key(set.resource, id);
        const auto before = held_.find(key);
        const auto named = last_.own.find(key);
        if (before != held_.end() && before->second.holder == holder) {
          held.try_emplace(key, before->second);
        } else if (named != last_.own.end()) {
          held.try_emplace(key, Held{holder, named->second});
        }
      }
    }
  }
  held_ = std::move(held);
  for (const auto& [key, one] : held_) last_.own[key] = one.names;
  if (seen_) grants_ = JoinGrants(last_, seen_->node).grants;
}

void NodeDevices::Compare(const GrantReadings& readings) {
  // Once may be what was offered before: the kubelet and we are not of one moment.
  std::map<std::string, std::string> foreign = ForeignDevices(offers_, readings);
  elsewhere_.clear();
  for (const auto& [resource, id] : foreign) {
    if (foreign_.contains(resource)) elsewhere_.emplace(resource, id);
  }
  foreign_ = std::move(foreign);
  std::set<std::string> missing;
  if (readings.allocatable) {
    for (const nodeagent::Offer& offer : offers_) {
      const auto standing = standings_.find(offer.resource);
      const bool taken = offer.offered() && standing != standings_.end() && standing->second.taken;
      const bool healthy = std::any_of(offer.devices.begin(), offer.devices.end(),
                                       [](const OfferedDevice& device) { return device.trouble.empty(); });
      const bool there =
          std::any_of(readings.allocatable->begin(), readings.allocatable->end(), [&](const DeviceSet& set) {
            return !set.claim && set.resource == offer.resource && !set.ids.empty();
          });
      if (taken && healthy && !there) missing.insert(offer.resource);
    }
  }
  for (const std::string& resource : missing) {
    if (missing_.contains(resource)) plugins_.Renew(resource);
  }
  missing_ = std::move(missing);
}

void NodeDevices::PodsChanged() {
  const std::lock_guard lock(mutex_);
  Publish();
}

void NodeDevices::Withdraw(const std::string& port, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  facts_.withdrawn[port] = reason;
  Offer();
}

void NodeDevices::Restore(const std::string& port) {
  const std::lock_guard lock(mutex_);
  facts_.withdrawn.erase(port);
  Offer();
}

bool NodeDevices::Withdrawn(const std::string& port) const {
  const std::lock_guard lock(mutex_);
  return facts_.withdrawn.contains(port);
}

std::string NodeDevices::Leak() const {
  const std::lock_guard lock(mutex_);
  for (const nodeagent::Offer& offer : offers_) {
    if (offer.state == crds::DeviceState::kElsewhere || elsewhere_.contains(offer.resource))
      return fmt::format("{} is offered by another plugin, which cannot be told", offer.resource);
  }
  return {};
}

std::vector<std::string> NodeDevices::Holders(const std::string& port) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> pods;
  for (const crds::Grant& grant : grants_) {
    const bool has = std::any_of(grant.nics.begin(), grant.nics.end(), [&port](const std::string& nic) {
      return port.starts_with(nic) && port.substr(nic.size()).starts_with(':');
    });
    if (has) pods.insert(fmt::format("{}/{}", grant.pod_namespace, grant.pod_name));
  }
  return {pods.begin(), pods.end()};
}

bool NodeDevices::NcclKept() const {
  const std::optional<std::string> conf = folder_.conf();
  // A file that tells no boot is of an earlier version, and good enough until the ports are read.
  return conf && (conf->find(kBootLine) == std::string::npos || conf->find(boot_line_) != std::string::npos);
}

void NodeDevices::WriteNccl() {
  if (!seen_) return;
  NcclFacts known;
  if (lossless_) known.lossless = *lossless_;
  known.reports = read_;
  known.without_ipv4 = device_files_.without_ipv4;
  known.unnumbered = device_files_.unnumbered;
  known.functions = device_files_.functions;
  known.hidden_functions = device_files_.hidden_functions;
  if (!seen_->nccl_topology.empty()) known.topology_file = fmt::format("{}/{}", kNcclFolder, kNcclTopology);
  NcclConf conf = NcclConfOf(seen_->node, known);
  facts_.nccl.efa = conf.efa;
  // What an agent before this one proved of the ports is better than what this one does not know yet.
  const bool proved = lossless_ && (read_ || !Marks(*lossless_));
  if (!proved && !nccl_written_ && NcclKept()) return;
  nccl_notes_ = std::move(conf.notes);
  NcclFiles files{std::move(conf.text) + boot_line_, seen_->nccl_topology};
  if (nccl_written_ == files) return;
  // A full disk is tried again with each look: those of this boot that lie there are good enough to run with.
  const base::Status written = folder_.Write(files);
  nccl_problem_ = written ? std::string() : written.error().message;
  if (!written) return;
  nccl_written_ = std::move(files);
  facts_.nccl.folder = folder_.path();
}

void NodeDevices::Offer() {
  facts_.verbs = device_files_.verbs;
  facts_.rdma_cm = device_files_.rdma_cm;
  static const topology::Node kNothingSeen;
  // Before the first look nothing is known of the NICs, and so nothing of them is offered.
  std::vector<nodeagent::Offer> offers =
      OffersOf(seen_ ? wishes_ : std::vector<crds::DeviceWish>(), seen_ ? seen_->node : kNothingSeen, facts_);
  if (offers != offers_) {
    offers_ = std::move(offers);
    for (const nodeagent::Offer& offer : offers_) {
      if (offer.offered()) facts_.ours.insert(offer.resource);
    }
    plugins_.Set(offers_);
  }
  NameHeld();
  Publish();
}

const crds::DeviceReport* NodeDevices::Before(const nodeagent::Offer& offer) const {
  const auto report = before_.find(offer.resource);
  // What ran before a reboot need not run after it.
  const bool holds = report != before_.end() && report->second.edition == offer.edition && seen_ &&
                     !before_boot_.empty() && seen_->boot_id == before_boot_;
  return holds ? &report->second : nullptr;
}

crds::DeviceReport NodeDevices::ReportOfElsewhere(const nodeagent::Offer& offer) const {
  if (heard_) return ReportOfOther(offer, facts_.allocatable);
  const crds::DeviceReport* before = options_.kubelet == nullptr ? nullptr : Before(offer);
  if (before != nullptr && before->state == crds::DeviceState::kElsewhere && before->healthy > 0)
    return *before;
  const auto within = std::chrono::duration_cast<std::chrono::seconds>(GrantWatchOptions().interval);
  return ReportOfOther(
      offer, std::nullopt,
      options_.kubelet == nullptr
          ? "this agent asks no kubelet (--pod-resources)"
          : fmt::format("the kubelet has not answered this agent yet; it is asked again within {} s "
                        "(condition GrantsKnown)",
                        within.count()));
}

crds::DeviceReport NodeDevices::ReportOfOwn(const nodeagent::Offer& offer) const {
  const auto standing = standings_.find(offer.resource);
  const bool asked = standing != standings_.end();
  if (asked && standing->second.taken) return ReportOf(offer, crds::DeviceState::kOffered, "");
  const crds::DeviceReport* before = !asked || standing->second.settling ? Before(offer) : nullptr;
  if (before != nullptr && before->state == crds::DeviceState::kOffered)
    return ReportOf(offer, crds::DeviceState::kOffered, "");
  return ReportOf(offer, crds::DeviceState::kPending,
                  asked ? standing->second.reason : "the kubelet has not been asked yet");
}

void NodeDevices::Publish() {
  DeviceNews news;
  for (const nodeagent::Offer& offer : offers_) {
    if (offer.resource == crds::keys::kFabricResource && offer.edition.policy.empty() &&
        &offer == offers_.data())
      continue;
    if (offer.state == crds::DeviceState::kElsewhere) {
      news.reports.push_back(ReportOfElsewhere(offer));
      continue;
    }
    if (const auto other = elsewhere_.find(offer.resource); other != elsewhere_.end() && offer.offered()) {
      news.reports.push_back(ReportOf(
          offer, crds::DeviceState::kElsewhere,
          fmt::format("another plugin offers {} too: \"{}\" is none of our devices; let one of both go",
                      offer.resource, other->second)));
      // Whose devices a pod would get is up to who spoke last, so none of ours is counted as there.
      news.reports.back().healthy = 0;
      continue;
    }
    news.reports.push_back(ReportOfOwn(offer));
  }
  if (seen_) news.conditions.push_back(NcclCondition());
  if (options_.pods) JudgePods(news.conditions);
  news.own = last_.own;
  if (news_ == news) return;
  news_ = news;
  if (on_news_) on_news_(news);
}

crds::Condition NodeDevices::NcclCondition() const {
  crds::Condition files;
  files.type = kNcclFilesWritten;
  files.status = nccl_problem_.empty() ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse;
  files.reason = !nccl_problem_.empty() ? "Failed" : nccl_notes_.empty() ? "Written" : "WrittenWithDoubts";
  files.message = !nccl_problem_.empty()
                      ? nccl_problem_
                      : fmt::format("pods with {} find them in {}", crds::keys::kFabricResource, kNcclFolder);
  const auto fabric = standings_.find(std::string(crds::keys::kFabricResource));
  if (fabric != standings_.end() && !fabric->second.taken)
    files.message += fmt::format("; the kubelet does not offer it: {}", fabric->second.reason);
  for (const std::string& note : nccl_notes_) {
    if (files.message.size() + note.size() > kMaxMessage) break;
    files.message += "; " + note;
  }
  return files;
}

void NodeDevices::JudgePods(std::vector<crds::Condition>& conditions) const {
  const std::vector<kube::ObjectPtr> pods = options_.pods();
  if (auto planned = PlanCondition(grants_, PlannedPodsOf(pods))) conditions.push_back(*std::move(planned));
  std::vector<std::string> resources;
  for (const nodeagent::Offer& offer : offers_) {
    if (offer.resource != crds::keys::kFabricResource) resources.push_back(offer.resource);
  }
  const bool roce =
      seen_ && std::any_of(seen_->node.nics.begin(), seen_->node.nics.end(), [](const auto& nic) {
        return nic.role == topology::NicRole::kCompute && nic.transport == topology::Transport::kRoce;
      });
  std::string faults;
  for (const kube::ObjectPtr& pod : pods) {
    if (!PlannedPodOf(*pod)) continue;  // it has ended
    for (const std::string& fault : crds::RdmaPodFaults(*pod, resources, roce)) {
      const std::string sentence = fmt::format("{}/{}: {}", kube::Namespace(*pod), kube::Name(*pod), fault);
      if (faults.size() + sentence.size() > kMaxMessage) continue;
      faults += (faults.empty() ? "" : "; ") + sentence;
    }
  }
  if (faults.empty()) return;
  crds::Condition complete;
  complete.type = kRdmaPodsComplete;
  complete.status = crds::ConditionStatus::kFalse;
  complete.reason = "Incomplete";
  complete.message = std::move(faults);
  conditions.push_back(std::move(complete));
}

std::vector<std::string> NodeDevices::Prefer(const nodeagent::Offer& offer,
                                             const PreferenceQuestion& question) {
  GrantReadings readings;
  std::vector<PlannedPod> pods;
  // Of a whole node, and of the NCCL files, there is nothing to choose.
  const bool chooses = offer.mode != crds::DeviceMode::kWholeNode;
  if (chooses && options_.pods && options_.kubelet != nullptr) {
    pods = PlannedPodsOf(options_.pods_now ? options_.pods_now() : options_.pods());
    // Now and not what was last heard: of pods that are admitted one after the other, each call is about the next.
    const std::lock_guard lock(asking_);
    readings = options_.kubelet->Read({});
    if (readings.state != GrantsState::kRead)
      pods.clear();  // who holds what is not known, so nobody is guessed
  }
  const Choice choice = Choose(offer, question, pods, readings);
  if (chooses && options_.plugins.log) {
    std::string line =
        fmt::format("Preferred resource={} ids={}", offer.resource, fmt::join(choice.ids, ","));
    if (!choice.pod.empty()) line += fmt::format(" plan={}", choice.pod);
    if (!choice.rivals.empty()) line += fmt::format(" maybe={}", fmt::join(choice.rivals, ","));
    if (!choice.refusal.empty()) line += fmt::format(" refused=\"{}\"", choice.refusal);
    options_.plugins.log(line);
  }
  if (!choice.rivals.empty() && options_.on_doubt) options_.on_doubt(DoubtOf(offer.resource, choice));
  return choice.ids;
}

}  // namespace heddle::nodeagent
