#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/reflector.h"
#include "operator/assembly.h"
#include "operator/pace.h"
#include "operator/page/page.h"
#include "topology/suspects.h"

namespace heddle::operators::page {

// Makes the page's view while somebody looks at it, and again when something changed. Thread rule: Run on one thread,
// the rest from any. What is passed must outlive it.
class Feed {
 public:
  struct Reads {
    const View& topologies;
    const View& fabrics;
    const View& gangs;
    std::function<AssemblyPtr()> assembly;        // the leader's; null in a replica that does not lead
    std::function<std::set<std::string>()> late;  // agents that have fallen silent
    // Asked by who does not lead, and so looks at none by itself.
    std::function<void(const Assembly&, const std::stop_token&)> look_at_leases;
    std::vector<std::pair<std::string, const kube::Reflector*>>
        sources;  // the first two are needed for any view
    std::chrono::nanoseconds lease_period = std::chrono::seconds(30);
  };
  Feed(base::Clock& clock, Reads reads, Page& page) : clock_(clock), reads_(std::move(reads)), page_(page) {}

  void Changed() { changed_ = true; }  // any of what it reads
  void Run(const std::stop_token& stop);

 private:
  bool Ready() const;
  void LookOnce(const std::stop_token& stop);
  std::vector<Source> Sources();
  void ReadGangs();
  std::map<std::string, std::vector<topology::Suspect>> Suspects() const;
  AssemblyPtr Assembled(bool changed, const std::stop_token& stop);

  base::Clock& clock_;
  const Reads reads_;
  Page& page_;
  std::atomic<bool> changed_{true};
  Pace pace_;
  Assembler own_;
  AssemblyPtr own_assembly_;  // null while another's will do
  std::optional<base::MonotonicTime> leases_at_;
  std::vector<Source> last_sources_;
  std::set<std::string> last_late_;
  std::map<std::string, std::string> since_;  // by kind: since when it cannot be read
  std::map<kube::ObjectKey, std::pair<kube::ObjectPtr, base::Result<crds::Gang>>> read_;
  std::vector<crds::Gang> gangs_;
  std::map<kube::ObjectKey, std::string> unread_;  // gangs that cannot be read, and why
};

}  // namespace heddle::operators::page
