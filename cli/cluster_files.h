#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/fabrics.h"
#include "crds/gang.h"
#include "crds/object_meta.h"

namespace heddle::cli {

using crds::Json;

// What a path holds; main.cc reads the disk, "-" is standard input.
using ReadFile = std::function<base::Result<std::string>(const std::string& path)>;

// The objects that `kubectl get nt,fabrics,gangs -o json` (or yaml) printed, over any number of files.
struct ClusterFiles {
  std::vector<crds::NodeTopology> topologies;             // those that have a status, in the files' order
  std::map<std::string, topology::Declaration> declared;  // by Fabric
  std::vector<crds::Gang> gangs;
  std::vector<Json> pods;
  std::map<std::string, int> passed_over;  // how many objects of each other kind there were
  std::set<std::string> names;             // of the NodeTopologies; two of one name are an error
};

// Reads a List, one object, or several YAML documents into `into`; kinds that say nothing of GPUs are passed
// over. Errors name the file and the item: a what-if on half a cluster would be a wrong answer. JSON: one
// item at a time is taken apart, so that 300 MB need little more than their own size.
[[nodiscard]] base::Status ReadClusterFile(const std::string& path, const std::string& text,
                                           ClusterFiles& into);

// Is shown each object as it stands in a file, once it was read well: who reports what ClusterFiles does not keep.
using SeeObject = std::function<void(const Json& object)>;

// All that --topology names. Errors: as `read` says, or kInvalid; with what to give where no NodeTopology with a status
// is in any of them.
[[nodiscard]] base::Result<ClusterFiles> ReadClusterFiles(const std::vector<std::string>& paths,
                                                          const ReadFile& read, const SeeObject& see = {});
// The same for commands that show a cluster, in place of what they would ask it.
[[nodiscard]] base::Result<FabricReading> ReadFabricFiles(const std::vector<std::string>& paths,
                                                          const ReadFile& read);

}  // namespace heddle::cli
