#include "operator/page/feed.h"

#include "crds/fabric.h"

namespace heddle::operators::page {
namespace {

constexpr auto kLook = std::chrono::milliseconds(500);

}  // namespace

void Feed::Run(const std::stop_token& stop) {
  while (clock_.SleepFor(kLook, stop)) {
    if (page_.wanted()) {
      LookOnce(stop);
    } else {
      // 10,000 nodes are 100 MB, and whoever leads has them anyway.
      own_ = Assembler();
      own_assembly_ = nullptr;
      changed_ = true;
    }
  }
  page_.Stop();
}

void Feed::LookOnce(const std::stop_token& stop) {
  for (std::size_t i = 0; i < 2 && i < reads_.sources.size(); ++i) {
    if (!reads_.sources[i].second->store().synced()) return;
  }
  const base::MonotonicTime started = clock_.Now();
  if (pace_.Wait(started) > std::chrono::nanoseconds(0)) return;
  std::vector<Source> sources = Sources();
  // First: what changes from here on is seen the next time.
  const bool changed = changed_.exchange(false);
  const AssemblyPtr assembly = Assembled(changed, stop);
  std::set<std::string> late = reads_.late();
  if (assembly == nullptr || (!changed && sources == last_sources_ && late == last_late_)) return;
  std::vector<std::string> names;
  for (const kube::ObjectPtr& object : reads_.topologies.List()) names.push_back(kube::Name(*object));
  page_.Publish(Show({*assembly, names, late, Gangs(), sources, Suspects()}));
  last_sources_ = std::move(sources);
  last_late_ = std::move(late);
  pace_.Took(started, clock_.Now());
}

AssemblyPtr Feed::Assembled(bool changed, const std::stop_token& stop) {
  if (AssemblyPtr leaders = reads_.assembly()) {
    own_ = Assembler();
    own_assembly_ = nullptr;
    return leaders;
  }
  if (changed || own_assembly_ == nullptr)
    own_assembly_ = own_.Assemble(reads_.topologies.List(), reads_.fabrics.List());
  const base::MonotonicTime now = clock_.Now();
  if (!leases_at_ || now - *leases_at_ >= reads_.lease_period) {
    leases_at_ = now;
    reads_.look_at_leases(*own_assembly_, stop);
  }
  return own_assembly_;
}

std::vector<Source> Feed::Sources() {
  std::vector<Source> sources;
  for (const auto& [kind, reflector] : reads_.sources) {
    Source source{.kind = kind};
    const std::optional<base::Error> error = reflector->last_error();
    if (error || !reflector->store().synced()) {
      source.error = error ? error->message : "not read yet";
      std::string& since = since_[kind];
      if (const auto heard = reflector->heard_at(); heard && since.empty())
        since = base::FormatTime(
            clock_.WallNow() - std::chrono::duration_cast<std::chrono::microseconds>(clock_.Now() - *heard));
      source.since = since;
    } else {
      since_.erase(kind);
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

std::map<std::string, std::vector<topology::Suspect>> Feed::Suspects() const {
  std::map<std::string, std::vector<topology::Suspect>> suspects;
  for (const kube::ObjectPtr& object : reads_.fabrics.List()) {
    // One that cannot be read is said on the Fabric itself.
    if (auto fabric = crds::FabricFromJson(*object); fabric && !fabric->status.suspects.empty())
      suspects[fabric->name] = std::move(fabric->status.suspects);
  }
  return suspects;
}

const std::vector<crds::Gang>& Feed::Gangs() {
  decltype(read_) now;
  gangs_.clear();
  for (const kube::ObjectPtr& object : reads_.gangs.List()) {
    const kube::ObjectKey key = kube::KeyOf(*object);
    const auto known = read_.find(key);
    if (known != read_.end() && known->second.first == object) {
      now.insert(read_.extract(known));
    } else {
      auto gang = crds::GangFromJson(*object);
      now.emplace(key, std::pair(object, gang ? std::optional(*std::move(gang)) : std::nullopt));
    }
    if (const std::optional<crds::Gang>& gang = now.at(key).second) gangs_.push_back(*gang);
  }
  read_ = std::move(now);
  return gangs_;
}

}  // namespace heddle::operators::page
