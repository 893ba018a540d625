#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"
#include "operator/outcome.h"

namespace heddle::operators {

// How what policies make of the nodes is written. A server whose cache is ahead of ours, or behind, is no failure:
// the look that follows finds out. Thread rule: one thread at a time.
class PolicyWrites {
 public:
  PolicyWrites(kube::Client& client, base::Clock& clock) : client_(client), clock_(clock) {}

  // Sets one field of a NodeTopology's spec, or takes it away (null). `uid`: of the object that was decided on; one
  // made anew meanwhile is not written to.
  [[nodiscard]] base::Result<Outcome> Spec(const std::string& node, const std::string& uid,
                                           std::string_view field, kube::Json value,
                                           const std::stop_token& stop);
  struct SpecChange {
    std::string node, uid;
    kube::Json value;
  };
  // The same of many, kAtOnce at a time: one after the other a change of 5,000 nodes takes over a minute. One that
  // fails holds up no other; `failed` is the first such in their order.
  struct SpecsWritten {
    Outcome outcome;
    std::optional<base::Error> failed;
  };
  SpecsWritten Specs(std::string_view field, std::vector<SpecChange> changes, const std::stop_token& stop);
  // As many as kube-controller-manager has workers for most kinds (--concurrent-deployment-syncs).
  static constexpr int kAtOnce = 5;
  // Applies a policy's status, at most once in 10 s: `again` of the outcome is when that is over.
  [[nodiscard]] base::Result<Outcome> Status(const kube::Resource& kind, const std::string& name,
                                             const kube::Json& applied, const std::stop_token& stop);

 private:
  kube::Client& client_;
  base::Clock& clock_;
  std::map<std::string, base::MonotonicTime> last_status_;  // tried or done, by kind and name
};

// The sum of what two did.
void AddUp(Outcome& total, const Outcome& one);

}  // namespace heddle::operators
