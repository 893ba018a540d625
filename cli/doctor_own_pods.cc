#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/cut_utf8.h"
#include "cli/advice.h"
#include "cli/doctor_parts.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

// What a server or a runtime says may be a page; its beginning says what it is.
std::string Short(std::string text) {
  constexpr std::size_t kLongest = 200;
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= kLongest) return text;
  return base::CutUtf8(text, kLongest) + "…";
}

std::string Joined(const std::string& reason, const std::string& message) {
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

const Json* ConditionOf(const Json& object, std::string_view type) {
  for (const Json& one : kube::ArrayAt(object, {"status", "conditions"})) {
    if (kube::StringAt(one, {"type"}) == type) return &one;
  }
  return nullptr;
}

std::string WhyContainerWaits(const Json& container) {
  const std::string name = kube::StringAt(container, {"name"});
  const std::string reason = kube::StringAt(container, {"state", "waiting", "reason"});
  if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
    std::string why = Joined(reason, kube::StringAt(container, {"state", "waiting", "message"}));
    if (const auto code = kube::IntAt(container, {"lastState", "terminated", "exitCode"}))
      why += fmt::format(" (it ended with {} {})", *code,
                         kube::StringAt(container, {"lastState", "terminated", "reason"}));
    return "container " + name + ": " + why;
  }
  if (const auto code = kube::IntAt(container, {"state", "terminated", "exitCode"}))
    return fmt::format("container {} ended with {}", name, *code);
  return "";
}

// Of one pod that is not ready; empty where it says nothing, or is only on its way.
std::string WhyNotReady(const Json& pod) {
  const Json* scheduled = ConditionOf(pod, "PodScheduled");
  if (scheduled != nullptr && kube::StringAt(*scheduled, {"status"}) == "False")
    return Joined(kube::StringAt(*scheduled, {"reason"}), kube::StringAt(*scheduled, {"message"}));
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : kube::ArrayAt(pod, {"status", list})) {
      if (std::string why = WhyContainerWaits(container); !why.empty()) return why;
    }
  }
  for (const Json& container : kube::ArrayAt(pod, {"status", "containerStatuses"})) {
    const bool runs = kube::Find(container, {"state", "running"}) != nullptr;
    if (runs && !kube::BoolAt(container, {"ready"}).value_or(false))
      return fmt::format("container {} runs and is not ready", kube::StringAt(container, {"name"}));
  }
  return "";
}

bool IsReady(const Json& pod) {
  const Json* ready = ConditionOf(pod, "Ready");
  return ready != nullptr && kube::StringAt(*ready, {"status"}) == "True";
}

}  // namespace

std::string WhyNoneIsMade(const DoctorReading& reading, const Json& controller) {
  if (const Json* failure = ConditionOf(controller, "ReplicaFailure");
      failure != nullptr && kube::StringAt(*failure, {"status"}) == "True")
    return Short(kube::StringAt(*failure, {"message"}));
  if (!reading.failed_creates) return "";
  const Json* last = nullptr;
  for (const Json& event : *reading.failed_creates) {
    if (kube::StringAt(event, {"involvedObject", "uid"}) != kube::Uid(controller)) continue;
    const bool later = last == nullptr ||
                       kube::StringAt(event, {"lastTimestamp"}) >= kube::StringAt(*last, {"lastTimestamp"});
    if (later) last = &event;
  }
  return last == nullptr ? "" : Short(kube::StringAt(*last, {"message"}));
}

std::string WhyPodsAreNotReady(const DoctorReading& reading, std::string_view component) {
  if (!reading.own_pods) return "";
  std::map<std::string, std::vector<std::string>> pods;
  for (const Json& pod : *reading.own_pods) {
    if (kube::Label(pod, "app.kubernetes.io/component") != component || IsReady(pod)) continue;
    if (const std::string why = WhyNotReady(pod); !why.empty()) pods[why].push_back(kube::Name(pod));
  }
  if (pods.empty()) return "";
  const auto most = std::max_element(pods.begin(), pods.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  return fmt::format("{}: {}", FirstNames(most->second), Short(most->first));
}

}  // namespace heddle::cli
