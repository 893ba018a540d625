#include "gnmi/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "gnmi/gnmi.pb.h"

namespace heddle::gnmi {
namespace {

using base::Code;

constexpr std::size_t kMaxModels = 4096;  // in capabilities; SONiC has some 200

// Without the target, which gNMI has in prefixes only.
void Fill(const Path& from, ::gnmi::Path& to) {
  to.set_origin(from.origin);
  for (const Elem& elem : from.elems) {
    ::gnmi::PathElem* added = to.add_elem();
    added->set_name(elem.name);
    for (const auto& [key, value] : elem.keys) (*added->mutable_key())[key] = value;
  }
}

base::Status CheckPaths(const std::vector<const Path*>& paths) {
  if (paths.empty()) return base::Fail(Code::kInvalid, "a request without a path");
  for (const Path* path : paths) {
    TRY(CheckPath(*path), "a request");
    if (path->target != paths.front()->target)
      return base::Fail(Code::kInvalid,
                        fmt::format("a request for two targets, {} and {}: ask one after the other",
                                    base::Printable(paths.front()->target), base::Printable(path->target)));
  }
  return {};
}

std::vector<const Path*> PathsOf(const GetRequest& request) {
  std::vector<const Path*> paths;
  for (const Path& path : request.paths) paths.push_back(&path);
  return paths;
}

std::vector<const Path*> PathsOf(const SubscribeRequest& request) {
  std::vector<const Path*> paths;
  for (const Subscription& subscription : request.subscriptions) paths.push_back(&subscription.path);
  return paths;
}

template <class Request>
std::string Target(const Request& request) {
  const std::vector<const Path*> paths = PathsOf(request);
  return paths.empty() ? std::string() : paths.front()->target;
}

void Append(const ::gnmi::Path& from, Path& to) {
  if (from.elem_size() == 0) {
    for (const std::string& name : from.element()) to.elems.push_back({name, {}});
    return;
  }
  for (const ::gnmi::PathElem& elem : from.elem())
    to.elems.push_back({elem.name(), {elem.key().begin(), elem.key().end()}});
}

std::size_t ElemsOf(const ::gnmi::Path& path) {
  return std::size_t(std::max(path.elem_size(), path.element_size()));
}

std::uint64_t Nanoseconds(std::chrono::nanoseconds span) {
  return std::uint64_t(std::max<std::chrono::nanoseconds::rep>(span.count(), 0));
}

struct Left {
  std::size_t updates;
  ValueBudget budget;
};

base::Result<Notice> Take(const ::gnmi::Notification& from, const std::string& target, Left& left) {
  const std::size_t count = std::size_t(from.update_size()) + std::size_t(from.delete__size());
  if (count > left.updates)
    return base::Fail(Code::kTooLarge, fmt::format("more than {} updates in one answer", left.updates));
  left.updates -= count;
  Notice notice;
  notice.timestamp_ns = from.timestamp();
  const auto path_of = [&](const ::gnmi::Path& path) {
    auto joined = PathOf(from.prefix(), path);
    if (joined && joined->target.empty()) joined->target = target;
    return joined;
  };
  for (const ::gnmi::Path& path : from.delete_()) {
    ASSIGN_OR_RETURN(Path joined, path_of(path));
    notice.deletes.push_back(std::move(joined));
  }
  for (const ::gnmi::Update& update : from.update()) {
    ASSIGN_OR_RETURN(Path joined, path_of(update.path()));
    auto json = JsonOf(update.val(), left.budget);
    if (!json && json.error().code == Code::kTooLarge) return base::Fail(std::move(json).error());
    notice.updates.push_back({std::move(joined), std::move(json)});
  }
  return notice;
}

}  // namespace

std::string TargetOf(const GetRequest& request) {
  return Target(request);
}

std::string TargetOf(const SubscribeRequest& request) {
  return Target(request);
}

base::Result<::gnmi::GetRequest> ToWire(const GetRequest& request) {
  TRY(CheckPaths(PathsOf(request)));
  ::gnmi::GetRequest wire;
  wire.mutable_prefix()->set_target(Target(request));
  for (const Path& path : request.paths) Fill(path, *wire.add_path());
  wire.set_encoding(::gnmi::Encoding(request.encoding));
  wire.set_type(::gnmi::GetRequest::DataType(request.type));
  return wire;
}

base::Result<::gnmi::SubscribeRequest> ToWire(const SubscribeRequest& request) {
  TRY(CheckPaths(PathsOf(request)));
  ::gnmi::SubscribeRequest wire;
  ::gnmi::SubscriptionList& list = *wire.mutable_subscribe();
  list.mutable_prefix()->set_target(Target(request));
  list.set_mode(request.mode == SubscribeRequest::Mode::kOnce ? ::gnmi::SubscriptionList::ONCE
                                                              : ::gnmi::SubscriptionList::STREAM);
  list.set_encoding(::gnmi::Encoding(request.encoding));
  list.set_updates_only(request.updates_only);
  for (const Subscription& subscription : request.subscriptions) {
    ::gnmi::Subscription& to = *list.add_subscription();
    Fill(subscription.path, *to.mutable_path());
    to.set_mode(::gnmi::SubscriptionMode(subscription.mode));
    to.set_heartbeat_interval(Nanoseconds(subscription.heartbeat));
    if (subscription.mode != Subscription::Mode::kSample) continue;
    to.set_sample_interval(Nanoseconds(subscription.interval));
    to.set_suppress_redundant(subscription.suppress_redundant);
  }
  return wire;
}

base::Result<Path> PathOf(const ::gnmi::Path& prefix, const ::gnmi::Path& path) {
  // Before anything is copied.
  if (ElemsOf(prefix) + ElemsOf(path) > kMaxElems)
    return base::Fail(Code::kTooLarge, fmt::format("a path of more than {} elements", kMaxElems));
  Path joined;
  joined.target = prefix.target().empty() ? path.target() : prefix.target();
  joined.origin = path.origin().empty() ? prefix.origin() : path.origin();
  Append(prefix, joined);
  Append(path, joined);
  TRY(CheckPath(joined));
  return joined;
}

ServerCapabilities CapabilitiesOf(const ::gnmi::CapabilityResponse& answer) {
  ServerCapabilities capabilities;
  capabilities.gnmi_version = base::Printable(answer.gnmi_version(), 64);
  for (const ::gnmi::ModelData& model : answer.supported_models()) {
    if (capabilities.models.size() == kMaxModels) break;
    capabilities.models.push_back({base::Printable(model.name()), base::Printable(model.organization()),
                                   base::Printable(model.version())});
  }
  for (const int encoding : answer.supported_encodings()) {
    if (encoding >= ::gnmi::JSON && encoding <= ::gnmi::JSON_IETF)
      capabilities.encodings.insert(Encoding(encoding));
  }
  return capabilities;
}

base::Result<Notice> NoticeOf(const ::gnmi::Notification& notification, const std::string& target,
                              const AnswerLimits& limits) {
  Left left{limits.updates, {limits.values}};
  return Take(notification, target, left);
}

base::Result<std::vector<Notice>> NoticesOf(const ::gnmi::GetResponse& answer, const std::string& target,
                                            const AnswerLimits& limits) {
  Left left{limits.updates, {limits.values}};
  if (std::size_t(answer.notification_size()) > limits.updates)
    return base::Fail(Code::kTooLarge,
                      fmt::format("more than {} notifications in one answer", limits.updates));
  std::vector<Notice> notices;
  for (const ::gnmi::Notification& notification : answer.notification()) {
    ASSIGN_OR_RETURN(Notice notice, Take(notification, target, left));
    notices.push_back(std::move(notice));
  }
  return notices;
}

std::chrono::milliseconds SilenceLimit(const std::vector<Subscription>& subscriptions) {
  using std::chrono::nanoseconds;
  nanoseconds shortest{0};
  const auto take = [&](nanoseconds span) {
    if (span.count() > 0 && (shortest.count() == 0 || span < shortest)) shortest = span;
  };
  for (const Subscription& subscription : subscriptions) {
    take(subscription.heartbeat);
    if (subscription.mode == Subscription::Mode::kSample && !subscription.suppress_redundant)
      take(subscription.interval);
  }
  if (shortest.count() == 0) return std::chrono::milliseconds(0);
  shortest = std::min<nanoseconds>(shortest, std::chrono::hours(24));  // thrice that is no overflow
  return std::chrono::ceil<std::chrono::milliseconds>(3 * shortest) + std::chrono::seconds(1);
}

}  // namespace heddle::gnmi
