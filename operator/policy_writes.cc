#include "operator/policy_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crds/keys.h"
#include "operator/resources.h"

namespace heddle::operators {
namespace {

constexpr std::chrono::nanoseconds kLeastInterval = std::chrono::seconds(10);

// The server is ahead of our cache, which is about to show it and brings the key back.
bool CacheIsBehind(const base::Error& error) {
  return error.code == base::Code::kNotFound || error.code == base::Code::kConflict;
}

}  // namespace

base::Result<Outcome> PolicyWrites::Spec(const std::string& node, const std::string& uid,
                                         std::string_view field, kube::Json value,
                                         const std::stop_token& stop) {
  // A merge patch, as the labels beside it are: an apply would fight with it.
  kube::Json patch = kube::Json::object();
  patch["spec"][std::string(field)] = std::move(value);
  if (!uid.empty()) patch["metadata"]["uid"] = uid;
  const auto patched = client_.Patch(kNodeTopologies, {"", node}, kube::PatchType::kMerge, patch, {}, stop);
  if (patched) return Outcome{.writes = 1};
  if (CacheIsBehind(patched.error())) return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  return base::Fail(patched.error().In(fmt::format("write spec.{} of NodeTopology {}", field, node)));
}

base::Result<Outcome> PolicyWrites::Status(const kube::Resource& kind, const std::string& name,
                                           const kube::Json& applied, const std::stop_token& stop) {
  const base::MonotonicTime now = clock_.Now();
  const std::string key = kind.kind + "/" + name;
  const auto last = last_status_.find(key);
  if (last != last_status_.end() && now - last->second < kLeastInterval)
    return Outcome{.again = last->second + kLeastInterval - now};
  last_status_[key] = now;  // also when it fails: a server in trouble is not helped by more writes
  const kube::ApplyOptions options{
      .field_manager = std::string(crds::keys::kOperatorManager), .force = true, .subresource = "status"};
  const auto done = client_.Apply(kind, applied, options, stop);
  if (done) return Outcome{.writes = 1};
  if (CacheIsBehind(done.error())) return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  return base::Fail(done.error().In(fmt::format("write the status of {} {}", kind.kind, name)));
}

void AddUp(Outcome& total, const Outcome& one) {
  total.writes += one.writes;
  if (one.again) total.again = total.again ? std::min(*total.again, *one.again) : *one.again;
}

}  // namespace heddle::operators
