#include "nodeagent/devices/pod_watch.h"

#include <chrono>
#include <thread>
#include <utility>

namespace heddle::nodeagent {
namespace {

using kube::Json;

void Keep(const Json& from, Json& to, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = from.is_object() ? from.find(key) : from.end();
    if (from.is_object() && found != from.end()) to[key] = *found;
  }
}

constexpr auto kPatience = std::chrono::seconds(2);  // the kubelet admits no other pod meanwhile

std::string OfNode(const std::string& node) {
  return "spec.nodeName=" + node;
}

// No environment and no arguments: they are nobody's business here.
Json Narrow(const Json& pod) {
  Json kept = Json::object();
  Keep(pod, kept, {"apiVersion", "kind"});
  if (const Json* metadata = kube::Find(pod, {"metadata"}))
    Keep(*metadata, kept["metadata"],
         {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "annotations"});
  if (const Json* phase = kube::Find(pod, {"status", "phase"})) kept["status"]["phase"] = *phase;
  const Json* spec = kube::Find(pod, {"spec"});
  if (spec == nullptr) return kept;
  Keep(*spec, kept["spec"], {"hostNetwork", "nodeName", "resourceClaims"});
  for (const char* list : {"initContainers", "containers"}) {
    Json& containers = kept["spec"][list] = Json::array();
    for (const Json& container : kube::ArrayAt(*spec, {list})) {
      Json narrow = Json::object();
      Keep(container, narrow, {"name", "resources", "securityContext"});
      containers.push_back(std::move(narrow));
    }
  }
  return kept;
}

}  // namespace

PodWatch::PodWatch(kube::Client& client, base::Clock& clock, base::Random random, const std::string& node,
                   kube::Log log, std::function<void()> on_change)
    : client_(client), clock_(clock), node_(node), reflector_(client, clock, random, kube::kPods, [&] {
        kube::ReflectorOptions options;
        options.field_selector = OfNode(node);
        options.transform = Narrow;
        options.log = std::move(log);
        options.on_change = [on_change = std::move(on_change)](auto&&...) { on_change(); };
        return options;
      }()) {}

std::vector<kube::ObjectPtr> PodWatch::Now() {
  std::stop_source late;
  const std::jthread timer([&](std::stop_token done) {
    if (clock_.SleepFor(kPatience, std::move(done))) late.request_stop();
  });
  kube::ListOptions options;
  options.field_selector = OfNode(node_);
  auto listed = client_.ListAll(kube::kPods, options, late.get_token());
  if (!listed) return Pods();
  std::vector<kube::ObjectPtr> pods;
  for (const Json& pod : listed->items) pods.push_back(std::make_shared<const Json>(Narrow(pod)));
  return pods;
}

}  // namespace heddle::nodeagent
