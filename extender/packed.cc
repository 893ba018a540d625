#include "extender/packed.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace heddle::extender {
namespace {

constexpr const char* kPacked = "packed";  // no object of Kubernetes has such a field at its top

// What tells one object from another stays outside, so that versions can be compared as ever.
kube::Json TakeHead(kube::Json& object) {
  kube::Json head = kube::Json::object();
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return head;
  for (const char* field : {"name", "namespace", "uid", "resourceVersion"}) {
    const auto found = metadata->find(field);
    if (found == metadata->end()) continue;
    head[field] = std::move(*found);
    metadata->erase(found);
  }
  return head;
}

}  // namespace

kube::Json Packed(kube::Json object) {
  if (!object.is_object() || IsPacked(object)) return object;
  kube::Json packed = {{"metadata", TakeHead(object)}};
  std::vector<std::uint8_t> bytes = kube::Json::to_cbor(object);
  bytes.shrink_to_fit();  // it grew by doubling, and stays
  packed[kPacked] = kube::Json::binary(std::move(bytes));
  return packed;
}

bool IsPacked(const kube::Json& object) {
  const auto found = object.find(kPacked);
  return found != object.end() && found->is_binary();
}

kube::Json Unpacked(kube::Json object) {
  if (!IsPacked(object)) return object;
  kube::Json whole = kube::Json::from_cbor(object[kPacked].get_binary(), true, false);
  if (!whole.is_object()) whole = kube::Json::object();
  if (!whole["metadata"].is_object()) whole["metadata"] = kube::Json::object();
  whole["metadata"].update(object["metadata"]);
  return whole;
}

kube::Json PackedPod(kube::Json pod) {
  if (IsPacked(pod)) return pod;
  const std::string node = kube::StringAt(pod, {"spec", "nodeName"});
  const std::string phase = kube::StringAt(pod, {"status", "phase"});
  kube::Json packed = Packed(std::move(pod));
  packed["spec"]["nodeName"] = node;
  packed["status"]["phase"] = phase;
  return packed;
}

}  // namespace heddle::extender
