#include "extender/fabric_reader.h"

#include <fmt/format.h>

#include <utility>

namespace heddle::extender {
namespace {

using FabricPtr = std::shared_ptr<const crds::Fabric>;

// Of its spec nothing but excludedNodes; null where that cannot be read.
FabricPtr ReadExclusions(const kube::Json& object) {
  const kube::Json* spec = kube::Find(object, {"spec"});
  if (spec == nullptr || !spec->is_object()) return nullptr;
  kube::Json some = object;
  some.erase("status");
  some["spec"] = kube::Json::object();
  if (const kube::Json* nodes = kube::Find(*spec, {"excludedNodes"})) some["spec"]["excludedNodes"] = *nodes;
  auto fabric = crds::FabricFromJson(some);
  return fabric ? std::make_shared<const crds::Fabric>(*std::move(fabric)) : nullptr;
}

FabricPtr Excluding(const kube::Json& object, const std::vector<std::string>& nodes) {
  crds::Fabric fabric;
  fabric.name = kube::Name(object);
  fabric.uid = kube::Uid(object);
  fabric.spec.excluded_nodes = nodes;
  return std::make_shared<const crds::Fabric>(std::move(fabric));
}

}  // namespace

FabricPtr FabricReader::Read(const kube::Json& object) {
  Last& last = last_[kube::Name(object)];
  if (last.uid != kube::Uid(object)) last = Last{kube::Uid(object), std::nullopt, ""};
  auto whole = crds::FabricFromJson(object);
  if (whole) {
    last.excluded = whole->spec.excluded_nodes;
    last.trouble.clear();
    return std::make_shared<const crds::Fabric>(*std::move(whole));
  }
  const std::string trouble = whole.error().message;
  if (FabricPtr some = ReadExclusions(object)) {
    last.excluded = some->spec.excluded_nodes;
    Say(last, trouble, "of its spec only excludedNodes counts");
    return some;
  }
  if (last.excluded) {
    Say(last, trouble, "of its spec only excludedNodes counts, as that last could be read");
    return Excluding(object, *last.excluded);
  }
  Say(last, trouble, "gangs may get the nodes that it excludes");
  return nullptr;
}

// Its status is written again and again.
void FabricReader::Say(Last& last, const std::string& trouble, const char* counts) const {
  std::string line = fmt::format("Unreadable {}; {}", trouble, counts);
  if (line == last.trouble) return;
  last.trouble = std::move(line);
  if (log_) log_(last.trouble);
}

}  // namespace heddle::extender
