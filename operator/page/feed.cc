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
      since_.clear();  // what failed then may have been read since
    }
  }
  page_.Stop();
}

// Of what is not needed for any view it is at least known why it cannot be read: until then all nodes would seem free.
bool Feed::Ready() const {
  for (std::size_t i = 0; i < reads_.sources.size(); ++i) {
    const kube::Reflector& source = *reads_.sources[i].second;
    if (!source.store().synced() && (i < 2 || !source.last_error())) return false;
  }
  return true;
}

void Feed::LookOnce(const std::stop_token& stop) {
  if (!Ready()) return;
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
  ReadGangs();
  page_.Publish(Show({*assembly, names, late, gangs_, sources, Suspects(), unread_}));
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

void Feed::ReadGangs() {
  decltype(read_) now;
  gangs_.clear();
  unread_.clear();
  for (const kube::ObjectPtr& object : reads_.gangs.List()) {
    const kube::ObjectKey key = kube::KeyOf(*object);
    const auto known = read_.find(key);
    if (known != read_.end() && known->second.first == object) {
      now.insert(read_.extract(known));
    } else {
      now.emplace(key, std::pair(object, crds::GangFromJson(*object)));
    }
    const base::Result<crds::Gang>& gang = now.at(key).second;
    if (gang) {
      gangs_.push_back(*gang);
    } else {
      unread_.emplace(key, gang.error().message);
    }
  }
  read_ = std::move(now);
}

}  // namespace heddle::operators::page
