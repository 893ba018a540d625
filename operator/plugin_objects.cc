#include "operator/plugin_objects.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "crds/keys.h"

namespace heddle::operators {
namespace {

const kube::Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};
constexpr std::chrono::nanoseconds kLookInterval = std::chrono::minutes(1);
// What we made of an object: the server adds defaults, so that the object itself cannot be compared.
constexpr std::string_view kMade = "heddle.dev/made";

std::string Selector() {
  return fmt::format("app.kubernetes.io/managed-by={},{}", crds::keys::kOperatorManager,
                     crds::keys::kLabelRdmaClass);
}

kube::Json WithMark(kube::Json object) {
  object["metadata"]["annotations"][std::string(kMade)] =
      fmt::format("{:016x}", std::hash<std::string>{}(object.dump()));
  return object;
}

std::string MarkOf(const kube::Json& object) {
  const auto annotations = kube::StringMapAt(object, {"metadata", "annotations"});
  const auto found = annotations.find(std::string(kMade));
  return found == annotations.end() ? "" : found->second;
}

}  // namespace

base::Result<const kube::ObjectList*> PluginObjects::There(const kube::Resource& kind, Seen& seen,
                                                           const std::stop_token& stop) {
  const auto known = seen.find(kind.plural);
  if (known != seen.end()) return &known->second;
  ASSIGN_OR_RETURN(kube::ObjectList list,
                   client_.List(kind, {.ns = plugins_.ns, .label_selector = Selector()}, stop),
                   "list what other RDMA device plugins run by");
  return &seen.emplace(kind.plural, std::move(list)).first->second;
}

base::Status PluginObjects::Make(const kube::Resource& kind, const Wanted& wanted, Seen& seen,
                                 const std::stop_token& stop, Outcome& total) {
  if (wanted.empty()) return {};
  ASSIGN_OR_RETURN(const kube::ObjectList* there, There(kind, seen, stop));
  for (const auto& [name, object] : wanted) {
    const auto found =
        std::find_if(there->items.begin(), there->items.end(),
                     [&key = name](const kube::Json& item) { return kube::Name(item) == key; });
    if (found != there->items.end() && MarkOf(*found) == MarkOf(object)) continue;
    spdlog::info("Making {} namespace={} name={}", kind.kind, plugins_.ns, name);
    const auto applied = client_.Apply(
        kind, object, {.field_manager = std::string(crds::keys::kOperatorManager), .force = true}, stop);
    ++total.writes;
    if (!applied) return base::Fail(applied.error().In(fmt::format("make {} {}", kind.kind, name)));
  }
  return {};
}

base::Status PluginObjects::Sweep(const kube::Resource& kind, const Wanted& wanted, const Kept& kept,
                                  Seen& seen, const std::stop_token& stop, Outcome& total) {
  ASSIGN_OR_RETURN(const kube::ObjectList* there, There(kind, seen, stop));
  for (const kube::Json& item : there->items) {
    const std::string name = kube::Name(item);
    const bool keeps = std::any_of(kept.begin(), kept.end(),
                                   [&](const auto& node) { return name.ends_with("-" + node.second); });
    if (keeps || wanted.contains(name)) continue;
    spdlog::info("Removing {} namespace={} name={}", kind.kind, plugins_.ns, name);
    const auto gone = client_.Delete(kind, {plugins_.ns, name}, {}, stop);
    ++total.writes;
    if (!gone && gone.error().code != base::Code::kNotFound)
      return base::Fail(gone.error().In(fmt::format("remove {} {}", kind.kind, name)));
  }
  return {};
}

base::Status PluginObjects::Label(const std::vector<PluginClass>& classes, const Kept& kept,
                                  const View& nodes, const std::stop_token& stop, Outcome& total) {
  std::map<std::string, std::string> wanted = kept;
  for (const PluginClass& one : classes) {
    for (const std::string& node : one.nodes) wanted[node] = one.hash;
  }
  const std::string label(crds::keys::kLabelRdmaClass);
  for (const kube::ObjectPtr& node : nodes.List()) {
    const auto labels = kube::Labels(*node);
    const auto has = labels.find(label);
    const auto wants = wanted.find(kube::Name(*node));
    const bool same =
        wants == wanted.end() ? has == labels.end() : has != labels.end() && has->second == wants->second;
    if (same) continue;
    kube::Json patch{{"metadata", {{"labels", {{label, nullptr}}}, {"uid", kube::Uid(*node)}}}};
    if (wants != wanted.end()) patch["metadata"]["labels"][label] = wants->second;
    const auto patched =
        labels_client_.Patch(kube::kNodes, kube::KeyOf(*node), kube::PatchType::kMerge, patch, {}, stop);
    ++total.writes;
    // Gone or another one: the cache will show it.
    if (!patched && patched.error().code != base::Code::kNotFound &&
        patched.error().code != base::Code::kConflict)
      return base::Fail(patched.error().In("label node " + kube::Name(*node)));
  }
  return {};
}

base::Result<Outcome> PluginObjects::Reconcile(const std::vector<PluginClass>& classes, const View& nodes,
                                               const std::vector<UnreadNode>& unread,
                                               const std::stop_token& stop) {
  Kept kept;
  for (const UnreadNode& node : unread) {
    const auto label = node.labels.find(std::string(crds::keys::kLabelRdmaClass));
    if (label != node.labels.end() && !label->second.empty()) kept.emplace(node.name, label->second);
  }
  const base::MonotonicTime now = clock_.Now();
  const bool same = last_look_ && classes == last_ && kept == last_kept_;
  if (same && idle_) return Outcome{};
  if (same && now - *last_look_ < kLookInterval) return Outcome{.again = *last_look_ + kLookInterval - now};
  Wanted maps, sets;
  for (const PluginClass& one : classes) {
    const auto image = plugins_.images.find(one.plugin);
    if (image == plugins_.images.end()) continue;
    maps[ObjectName(one)] = WithMark(ConfigMapOf(one, plugins_.ns));
    sets[ObjectName(one)] =
        WithMark(DaemonSetOf(one, plugins_.ns, image->second, plugins_.kubelet_root, plugins_.pods));
  }
  Outcome total;
  Seen seen;
  // In this order a plugin never starts without its configuration, and none stays behind on a node that lost it.
  // Without an image we may not even look at such objects.
  const bool may = !plugins_.images.empty();
  if (may) TRY(Make(kube::kConfigMaps, maps, seen, stop, total));
  if (may) TRY(Make(kDaemonSets, sets, seen, stop, total));
  TRY(Label(classes, kept, nodes, stop, total));
  if (may) TRY(Sweep(kDaemonSets, sets, kept, seen, stop, total));
  if (may) TRY(Sweep(kube::kConfigMaps, maps, kept, seen, stop, total));
  idle_ = classes.empty() && kept.empty();
  last_ = classes;
  last_kept_ = std::move(kept);
  last_look_ = now;
  if (!idle_) total.again = kLookInterval;
  return total;
}

}  // namespace heddle::operators
