#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client.h"

namespace heddle::kube {

// Whether a watch's bookmark ends the state that a WatchList (KEP-3157) begins with.
bool EndsInitialEvents(const Json& bookmark);

// All objects as they are at some moment after the call, whatever any cache has: what ListAll with no resource
// version says, read as a WatchList, because a server sends that and we decode it object by object and at once, which
// takes a quarter of the time. Lists where the server has no WatchList or the stream breaks off.
// `options`: ns, selectors, transform and pruning are used. Thread-safe; errors are those of Client::ListAll.
base::Result<ObjectList> ReadConsistently(Client& client, const Resource& resource,
                                          const ListOptions& options, const std::stop_token& stop);

struct ObjectChanges {
  std::vector<Json> objects;         // those that were not known, or in another version
  std::vector<ObjectKey> unchanged;  // those that are as they were known
  std::string resource_version;      // of the whole
};
// Whether an object of this name, uid and resourceVersion is known; nothing else of it is there.
using KnownVersion = std::function<bool(const Json& head)>;

// The same for somebody who knows nearly all of it already: names and versions are read of all objects, and content
// only where it is news, object by object if that is little. Of thousands of NodeTopologies that spares the server
// three quarters of its CPU. An object that went since is in neither list, and one that changed since may be newer than
// the whole.
base::Result<ObjectChanges> ReadChanges(Client& client, const Resource& resource, const ListOptions& options,
                                        const KnownVersion& known, const std::stop_token& stop);

}  // namespace heddle::kube
