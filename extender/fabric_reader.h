#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crds/fabric.h"
#include "kube/client.h"
#include "kube/object.h"

namespace heddle::extender {

// Fabrics as people declare them. A spec that cannot be read declares nothing, as for the operator, which says so
// (SpecUnreadable). But nobody beside us keeps gangs off the nodes that people excluded, so these stay excluded: by
// that list as it is, where it can be read, or else as it last could. Thread rule: one thread at a time.
class FabricReader {
 public:
  // `log`: which Fabric cannot be read and what counts then, once for each trouble; may be empty.
  explicit FabricReader(kube::Log log) : log_(std::move(log)) {}

  // Null where nothing can be read and never could. Requires: the versions of one object in their order.
  std::shared_ptr<const crds::Fabric> Read(const kube::Json& object);

 private:
  struct Last {
    std::string uid;
    std::optional<std::vector<std::string>> excluded;  // nothing = never read
    std::string trouble;
  };
  void Say(Last& last, const std::string& trouble, const char* counts) const;

  const kube::Log log_;
  std::map<std::string, Last> last_;  // by name
};

}  // namespace heddle::extender
